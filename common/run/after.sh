# shellcheck shell=bash
# ./run sample, ./run report and ./run bench: what is done with a trained model or a built trainer.

help_sample() {
  cat <<'END'
./run sample [NN] [RUN|CHECKPOINT] [--prompt TEXT] [FLAGS]   writes text with a trained model

  RUN or CHECKPOINT  a run's folder (its newest checkpoint is taken) or one checkpoint;
                     default: the newest run
  --prompt TEXT      how the text begins
  other flags        go to the sampler: --sample-tokens N, --temperature X, --top-k N, --top-p X,
                     --sample-seed N
END
}

# newest_checkpoint DIR: DIR itself if it is a checkpoint, else the newest one in it.
newest_checkpoint() {
  local all
  if [[ -f $1/model.safetensors ]]; then echo "$1"; return; fi
  all=("$1"/step_*/model.safetensors)
  [[ -f ${all[-1]} ]] || usage_error "there is no checkpoint in $(shown "$1")."
  dirname "${all[-1]}"
}

cmd_sample() {
  local stage=01 where='' prompt='' flags=() checkpoint
  if [[ ${1-} =~ ^[0-9]{1,2}$ ]]; then printf -v stage %02d "$((10#$1))"; shift; fi
  if (($#)) && [[ $1 != -* ]]; then where=$1; shift; fi
  while (($#)); do
    case $1 in
      --prompt) (($# > 1)) || usage_error "--prompt wants a value."; prompt=$2; shift ;;
      --prompt=*) prompt=${1#*=} ;;
      *) flags+=("$1") ;;
    esac
    shift
  done
  stage_folder "$stage" >/dev/null
  [[ -n $where ]] || where=$(latest_run)
  [[ -d $where ]] || usage_error "there is no directory $where."
  checkpoint=$(newest_checkpoint "$where")
  require build
  build release OFF "strata$stage" strata-data
  if [[ -n $prompt ]]; then
    flags+=(--prompt-tokens "$("$bin/strata-data" encode --tokenizer "$checkpoint" --text "$prompt")")
  fi
  exec "$bin/strata$stage" --sample --init "$checkpoint" ${flags[@]+"${flags[@]}"}
}

help_report() {
  cat <<'END'
./run report [RUN]   writes RUN/report.html from RUN/metrics.jsonl; default: the newest run
END
}

cmd_report() {
  local where=${1-}
  [[ -n $where ]] || where=$(latest_run)
  require build
  build release OFF strata-report
  exec "$bin/strata-report" "$(shown "$where")"
}

help_bench() {
  cat <<'END'
./run bench train NN [FLAGS]   times a step of stage NN on this machine
END
  [[ ! -x $root/bench/run ]] || "$root/bench/run" --help
}

cmd_bench() {
  [[ -f $root/bench/run ]] || usage_error "there are no benchmarks in this version."
  require build
  exec bash "$root/bench/run" "$@"
}
