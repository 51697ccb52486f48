# shellcheck shell=bash
# ./run data: data sets under datasets/, from the corpus generator or from a text.

# The default corpus: stories whose entropy is known. Its seeds make it the same everywhere.
tales_train=(--seed 1 --bytes 24000000)
tales_validation=(--seed 2 --bytes 1000000)
vocabulary=1024

shakespeare_url=https://raw.githubusercontent.com/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt
shakespeare_sha256=86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed

# is_data_set DIR: has it been made by strata-data?
is_data_set() { [[ -f $1/dataset.json ]]; }

# make_tales WORK: the data set, in WORK/set.
make_tales() {
  "$bin/strata-tales" write "${tales_train[@]}" --out "$1/train.txt" --facts "$1/train.json" &&
    "$bin/strata-tales" write "${tales_validation[@]}" --out "$1/val.txt" --facts "$1/val.json" &&
    "$bin/strata-data" prepare --name tales --vocab "$vocabulary" --out "$1/set" \
      --train "$1/train.txt" --val "$1/val.txt" --facts "$1/train.json" "$1/val.json" >/dev/null
}

# prepare_tales: datasets/tales, made anew when a program that makes it has changed.
prepare_tales() {
  local folder=$root/datasets/tales work start=$SECONDS
  if is_data_set "$folder" && [[ ! $bin/strata-tales -nt $folder/dataset.json ]] &&
    [[ $(cat "$folder/made-with" 2>/dev/null) == "${tales_train[*]} ${tales_validation[*]} $vocabulary" ]]; then
    return
  fi
  mkdir -p "$root/datasets"
  work=$(mktemp -d "$root/datasets/.tales-XXXXXX")
  if ! make_tales "$work"; then
    rm -rf "$work"
    die "the default corpus could not be prepared."
  fi
  echo "${tales_train[*]} ${tales_validation[*]} $vocabulary" >"$work/set/made-with"
  put_in_place "$work/set" "$folder"
  rm -rf "$work"
  say data "$(shown "$folder"): made in $(took "$start")"
}

# put_in_place NEW FOLDER: the new folder takes the place of the old one, which goes.
put_in_place() {
  local old
  old=$(mktemp -d "$root/datasets/.old-XXXXXX")
  [[ ! -e $2 ]] || mv "$2" "$old/"
  mv "$1" "$2"
  rm -rf "$old"
}

# data_set_name FILE|DIRECTORY: a name for the data set made from it; one made from another source
# of the same name is not overwritten.
data_set_name() {
  local base suffix
  base=$(basename "$1")
  base=${base%.*}
  base=${base//[^A-Za-z0-9_-]/-}
  suffix=$(cksum <<<"$1")
  if [[ $base == tales || ( -f $root/datasets/$base/made-with &&
    $(sed 1q "$root/datasets/$base/made-with") != "$1" ) ]]; then
    base+=-${suffix%% *}
  fi
  echo "${base:-text}"
}

# fingerprint FILE|DIRECTORY: changes when a file in it does.
fingerprint() { find -L "$1" -type f -printf '%p %s %T@\n' | sort | cksum; }

# prepare_text FILE|DIRECTORY: one's own text as a data set; leaves its folder in `prepared`.
prepare_text() {
  local source work start=$SECONDS mark
  source=$(readlink -f "$1")
  prepared=$root/datasets/$(data_set_name "$source")
  mark=$source$'\n'$(fingerprint "$source")
  if is_data_set "$prepared" && [[ $(cat "$prepared/made-with" 2>/dev/null) == "$mark" ]]; then return; fi
  mkdir -p "$root/datasets"
  work=$(mktemp -d "$root/datasets/.text-XXXXXX")
  "$bin/strata-data" prepare --name "$(basename "$prepared")" --out "$work/set" "$source" || {
    rm -rf "$work"
    exit 1
  }
  echo "$mark" >"$work/set/made-with"
  put_in_place "$work/set" "$prepared"
  rm -rf "$work"
  say data "$(shown "$prepared"): made in $(took "$start")"
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
./run data WHAT...   turns text into a tokenizer and token shards under datasets/

  tales              the default corpus, written by data/tales (no download)
  tinyshakespeare    1.1 MB of plays, downloaded and compared with a known checksum
  FILE or DIRECTORY  your own text; a directory is read with all that is below it
  URL                a text file to be downloaded

Then: ./run train --data datasets/NAME
END
}

cmd_data() {
  local what
  (($#)) || usage_error "./run data wants the name of a data set, a text file, a directory or a URL; ./run data --help says more."
  require build
  build release OFF strata-tales strata-data
  for what; do
    case $what in
      tales) prepare_tales; prepared=$root/datasets/tales ;;
      tinyshakespeare) fetch_shakespeare; prepare_text "$root/datasets/downloads/tinyshakespeare.txt" ;;
      *://*)
        local file=$root/datasets/downloads/${what##*/}
        [[ $file != */ ]] || usage_error "the address $what does not end in the name of a file."
        fetch "$what" "$file"
        prepare_text "$file" ;;
      *)
        [[ -e $what ]] || usage_error "there is no file or directory $what, nor a data set of that name (tales, tinyshakespeare)."
        prepare_text "$what" ;;
    esac
    say "" "$(shown "$prepared") is ready: ./run train --data $(shown "$prepared")"
  done
}
