# shellcheck shell=bash
# ./run train: from data to report.

help_train() {
  cat <<'END'
./run train [NN] [FLAGS]   trains stage NN (default 01) and writes a report

  --data WHAT   a data set made by ./run data, or a text file or directory (prepared on the way);
                default: the corpus in datasets/tales, made on first use
  --out DIR     where metrics, checkpoints and report go; default: runs/DATE-TIME-NN
  --resume      goes on with the newest run (or with --out DIR)
  other flags   go to the trainer unchanged

Ctrl-C writes a checkpoint and stops; --resume goes on from there.
END
  if [[ -x $bin/strata01 ]]; then
    printf '\nThe flags of the trainer (strata01 --help):\n\n'
    "$bin/strata01" --help
  else
    printf '\nOnce it is built, the flags of the trainer are listed here, too.\n'
  fi
}

# resolve_data: leaves the folder of the data set in `data`, prepared if need be: with the tokenizer
# of the model that training starts from, if it brings one.
resolve_data() {
  local prepared tokenizer=''
  if [[ -n $init && -d $init ]] && has_tokenizer "$init"; then tokenizer=$init; fi
  if [[ -z $data ]]; then
    prepare_tales "$tokenizer"
  elif is_data_set "$data"; then
    prepared=$data
  else
    prepare_text "$data" "$tokenizer"
  fi
  data=$prepared
}

# fit_vocabulary: the trainer's default model has 1,024 tokens; data with more gets a larger one.
fit_vocabulary() {
  local words
  words=$(sed -n 's/.*"vocab_size": *\([0-9]*\).*/\1/p' "$data/dataset.json")
  if [[ -z $init && $words -gt 1024 ]]; then flags+=(--init "L4,C128,H4,T256,V$words"); fi
}

# parse_train ARGS...: takes out what ./run itself deals with (stage, data, destination) and notes
# what it has to know (resume, init); the rest goes to `flags`.
parse_train() {
  stage=01 data='' destination='' init='' resume=0 flags=()
  if [[ ${1-} =~ ^[0-9]{1,2}$ ]]; then
    printf -v stage %02d "$((10#$1))"
    shift
  fi
  while (($#)); do
    case $1 in
      --data | --out | --init)
        (($# > 1)) || usage_error "$1 wants a value."
        case $1 in
          --data) data=$2 ;;
          --out) destination=$2 ;;
          --init) init=$2; flags+=("$1" "$2") ;;
        esac
        shift ;;
      --data=*) data=${1#*=} ;;
      --out=*) destination=${1#*=} ;;
      --init=*) init=${1#*=}; flags+=("$1") ;;
      --resume) resume=1; flags+=("$1") ;;
      *) flags+=("$1") ;;
    esac
    shift
  done
  [[ -z $data || -e $data ]] || usage_error "--data $data: there is no such file or directory."
}

# latest_run: the folder of the newest run.
latest_run() {
  [[ -d $root/runs/latest/ ]] || usage_error "there is no run yet; ./run train makes one."
  readlink -f "$root/runs/latest"
}

# run_folder: where this run goes.
run_folder() {
  local name n=2
  if [[ -n $destination ]]; then absolute "$destination"
  elif ((resume)); then latest_run
  else
    name=$root/runs/$(date +%Y-%m-%d-%H%M%S)-$stage
    [[ ! -e $name ]] || { while [[ -e $name-$n ]]; do n=$((n + 1)); done; name+=-$n; }
    echo "$name"
  fi
}

cmd_train() {
  local stage data destination init resume flags run status=0 previous
  parse_train "$@"
  stage_folder "$stage" >/dev/null
  run=$(run_folder)
  require build
  build release OFF "strata$stage" strata-tales strata-data strata-report
  if [[ $resume == 0 || -n $data ]]; then resolve_data; fi  # a resumed run knows its data
  ((resume)) || fit_vocabulary
  previous=$(readlink "$root/runs/latest" || true)
  mkdir -p "$root/runs"
  ln -sfn "$run" "$root/runs/latest"

  trap : INT  # Ctrl-C ends the trainer; what it has written is still reported
  "$bin/strata$stage" ${data:+--data "$data"} --out "$run" ${flags[@]+"${flags[@]}"} || status=$?
  trap - INT
  if [[ ! -s $run/metrics.jsonl ]]; then  # it never began
    rmdir "$run" 2>/dev/null || true
    rm -f "$root/runs/latest"
    [[ -z $previous ]] || ln -s "$previous" "$root/runs/latest"
    return $status
  fi
  "$bin/strata-report" "$(shown "$run")" || ((status)) || status=1
  ((status == 0)) || say stopped "with exit code $status; ./run train $stage --resume --out $(shown "$run") goes on from the last checkpoint"
  return $status
}
