# shellcheck shell=bash
# ./run data: data sets under datasets/, from the corpus generator or from a text.

# The default corpus: stories whose entropy is known. Its seeds make it the same everywhere.
tales_train=(--seed 1 --bytes 16000000)
tales_validation=(--seed 2 --bytes 1000000)
tales_vocabulary=896  # with these, all but the rarest words are one token

shakespeare_url=https://raw.githubusercontent.com/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt
shakespeare_sha256=86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed

# is_data_set DIR: has it been made by strata-data?
is_data_set() { [[ -f $1/dataset.json ]]; }

# has_tokenizer DIR: are there files of a tokenizer in it, as Hugging Face names them?
has_tokenizer() { [[ -f $1/tokenizer.json || ( -f $1/vocab.json && -f $1/merges.txt ) ]]; }

# place BASE TOKENIZER: the folder of the data set BASE, in `prepared`. One that takes another
# model's tokenizer (TOKENIZER, a directory, or nothing) has a folder of its own.
place() {
  prepared=$root/datasets/$1
  tokenizer_flags=()
  [[ -n $2 ]] || return 0
  ! cmp -s "$2/tokenizer.json" "$prepared/tokenizer.json" || return 0
  prepared+=-$(basename "$(readlink -f "$2")")
  tokenizer_flags=(--tokenizer "$2")
}

# write_tales: the text of the default corpus in datasets/tales-text, written anew when the program
# that writes it has changed.
write_tales() {
  local folder=$root/datasets/tales-text settings="${tales_train[*]} / ${tales_validation[*]}" said
  if [[ -f $folder/made-with && ! $bin/strata-tales -nt $folder/made-with &&
    $(<"$folder/made-with") == "$settings" ]]; then return; fi
  mkdir -p "$folder"
  said=$("$bin/strata-tales" write "${tales_train[@]}" --out "$folder/train.txt" --facts "$folder/train.json")
  say tales "$said"
  said=$("$bin/strata-tales" write "${tales_validation[@]}" --out "$folder/val.txt" --facts "$folder/val.json")
  say "" "$said"
  echo "$settings" >"$folder/made-with"
}

# prepare_tales [TOKENIZER]: the default corpus as a data set; leaves its folder in `prepared`.
prepare_tales() {
  local text=$root/datasets/tales-text tokenizer_flags
  write_tales
  place tales "${1-}"
  ((${#tokenizer_flags[@]})) || tokenizer_flags=(--vocab-size "$tales_vocabulary")
  "$bin/strata-data" prepare --if-changed --name tales --source "stories by strata-tales" \
    --out "$(shown "$prepared")" --train "$text/train.txt" --val "$text/val.txt" \
    --facts "$text/train.json" "$text/val.json" "${tokenizer_flags[@]}"
}

# data_set_name FILE|DIRECTORY: a name for the data set made from it; one that was made from another
# source of the same name is left alone.
data_set_name() {
  local base suffix made_from
  base=$(basename "$1")
  base=${base%.*}
  base=${base//[^A-Za-z0-9_-]/-}
  made_from=$(sed -n 's/^ *"source": "\(.*\)",\{0,1\}$/\1/p' "$root/datasets/$base/dataset.json" 2>/dev/null || true)
  if [[ $base == tales* || -n $made_from && $made_from != "$1" ]]; then
    suffix=$(cksum <<<"$1")
    base+=-${suffix%% *}
  fi
  echo "${base:-text}"
}

# prepare_text FILE|DIRECTORY TOKENIZER FLAGS...: one's own text as a data set; leaves its folder in
# `prepared`. FLAGS are those of strata-data prepare; they are kept, and hold the next time as well.
prepare_text() {
  local source tokenizer_flags flags=("${@:3}")
  source=$(readlink -f "$1")
  place "$(data_set_name "$source")" "$2"
  ((${#flags[@]})) || [[ ! -f $prepared/made-with ]] || mapfile -t flags <"$prepared/made-with"
  "$bin/strata-data" prepare --if-changed --name "$(basename "$prepared")" --source "$source" \
    --out "$(shown "$prepared")" ${tokenizer_flags[@]+"${tokenizer_flags[@]}"} ${flags[@]+"${flags[@]}"} "$source"
  ((${#flags[@]} == 0)) || printf '%s\n' "${flags[@]}" >"$prepared/made-with"
}

# fetch URL FILE: downloads a file once, whole or not at all.
fetch() {
  [[ ! -s $2 ]] || return 0
  require fetch
  mkdir -p "$(dirname "$2")"
  say fetch "$1"
  if ! curl -fL --retry 2 --connect-timeout 15 -sS -o "$2.part" "$1"; then
    rm -f "$2.part"
    die "$1 could not be downloaded; is this machine online? A file that you already have works as well: ./run data FILE."
  fi
  mv "$2.part" "$2"
}

fetch_shakespeare() {
  local file=$root/datasets/downloads/tinyshakespeare.txt sum
  fetch "$shakespeare_url" "$file"
  sum=$(sha256sum "$file")
  if [[ ${sum%% *} != "$shakespeare_sha256" ]]; then
    rm -f "$file"
    die "what came from $shakespeare_url is not the file that was expected (SHA-256 ${sum%% *}, not $shakespeare_sha256); it was deleted."
  fi
}

help_data() {
  cat <<'END'
./run data WHAT... [FLAGS]   turns text into a tokenizer and token shards under datasets/

  tales              the default corpus, written by data/tales (no download)
  tinyshakespeare    1.1 MB of plays, downloaded and compared with a known checksum
  FILE or DIRECTORY  your own text; a directory is read with all that is below it
  URL                a text file to be downloaded
  FLAGS              go to strata-data prepare, for example --vocab-size N or --tokenizer DIR;
                     they are kept for the next time

Then: ./run train --data datasets/NAME
END
}

# prepare WHAT FLAGS...: one of the above; leaves its folder in `prepared`.
prepare() {
  local file
  case $1 in
    tales) prepare_tales ;;
    tinyshakespeare)
      fetch_shakespeare
      prepare_text "$root/datasets/downloads/tinyshakespeare.txt" "" "${@:2}" ;;
    *://*)
      file=$root/datasets/downloads/${1##*/}
      [[ $file != */ ]] || usage_error "the address $1 does not end in the name of a file."
      fetch "$1" "$file"
      prepare_text "$file" "" "${@:2}" ;;
    *)
      [[ -e $1 ]] || usage_error "there is no file or directory $1, nor a data set of that name (tales, tinyshakespeare)."
      prepare_text "$1" "" "${@:2}" ;;
  esac
}

cmd_data() {
  local all=() what
  while (($#)) && [[ $1 != -* ]]; do all+=("$1"); shift; done
  ((${#all[@]})) || usage_error "./run data wants the name of a data set, a text file, a directory or a URL; ./run data --help says more."
  require build
  build release OFF strata-tales strata-data
  for what in "${all[@]}"; do
    prepare "$what" "$@"
    say next "./run train --data $(shown "$prepared")"
  done
}
