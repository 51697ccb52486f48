#!/usr/bin/env bash
# The promises of ./run, one function each: bash promises.sh FUNCTION. Each works in a copy of the
# checkout made of links, with its own build, datasets and runs, so nothing outside it is touched.
# Most use stand-ins for the compiled programs, which print how they were called.
set -euo pipefail

source_dir=${STRATA_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd -P)}
binary_dir=${STRATA_BINARY:-$source_dir/build/release}
work=$(readlink -f "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
strata=$work/strata
unset STRATA_YES

# ------------------------------------------------------------------------------------- harness

fail() {
  printf 'broken: %s\n--- what ./run said:\n%s\n' "$1" "${output-}" >&2
  exit 1
}

# run_code N ARGS...: ./run ARGS must end with exit code N; leaves all that it said in `output`.
run_code() {
  local expected=$1 code=0
  shift
  output=$(cd "$strata" && ./run "$@" 2>&1 </dev/null) || code=$?
  [[ $code == "$expected" ]] || fail "./run $* ended with exit code $code instead of $expected"
}

says() { [[ $output == *"$1"* ]] || fail "it does not say: $1"; }
says_not() { [[ $output != *"$1"* ]] || fail "it says: $1"; }
one_line() { [[ $output != *$'\n'* ]] || fail "it says more than one line"; }

# checkout: the copy made of links; `build` is left to the caller.
checkout() {
  local entry name
  mkdir -p "$strata/build"
  cp "$source_dir/run" "$strata/run"
  for entry in "$source_dir"/*; do
    name=${entry##*/}
    case $name in run | build | runs | datasets) ;; *) ln -s "$entry" "$strata/$name" ;; esac
  done
}

# real_build: the copy uses the programs that were built with this test.
real_build() { checkout; ln -s "$binary_dir" "$strata/build/release"; }

# stand_in NAME: a program of the copy, whose text comes from standard input.
stand_in() {
  mkdir -p "$strata/build/release/bin"
  { echo '#!/usr/bin/env bash'; cat; } >"$strata/build/release/bin/$1"
  chmod +x "$strata/build/release/bin/$1"
}

# on_path NAME: the same for a program of the machine, found before the real one.
on_path() {
  mkdir -p "$work/path"
  { echo '#!/usr/bin/env bash'; cat; } >"$work/path/$1"
  chmod +x "$work/path/$1"
  PATH=$work/path:${PATH#"$work/path:"}
}

# fake_build: a build that is up to date and made of stand-ins.
fake_build() {
  checkout
  mkdir -p "$strata/build/release/bin"
  echo >"$strata/build/release/build.ninja"
  echo "CMAKE_HOME_DIRECTORY:INTERNAL=$(readlink -f "$source_dir")" >"$strata/build/release/CMakeCache.txt"
  on_path ninja <<<'echo "ninja: no work to do."'
  stand_in strata-tales <<'END'
while (($#)); do case $1 in --out | --facts) echo text >"$2"; shift ;; esac; shift; done
END
  stand_in strata-data <<'END'
echo "strata-data: $(printf '<%s>' "$@")"
while (($#)); do case $1 in --out) out=$2 ;; --source) source=$2 ;; esac; shift; done
mkdir -p "$out"
printf '{\n  "source": "%s",\n  "vocab_size": %d\n}\n' "$source" "${STAND_IN_WORDS:-1024}" >"$out/dataset.json"
echo "{}" >"$out/tokenizer.json"
END
  stand_in strata01 <<'END'
echo "strata01: $(printf '<%s>' "$@")"
while (($#)); do case $1 in --out) mkdir -p "$2/step_00000001" "$2/step_00000002"
  echo '{"kind":"run"}' >>"$2/metrics.jsonl"; touch "$2"/step_0000000{1,2}/model.safetensors ;;
esac; shift; done
exit "${STAND_IN_CODE:-0}"
END
  stand_in strata-report <<'END'
echo page >"$1/report.html"; echo "report   $1/report.html"
END
}

# bare_path NAME...: from here on PATH holds what every Debian has, without the programs named.
bare_path() {
  local file bare=$work/bare
  mkdir -p "$bare"
  for file in /usr/bin/* /bin/*; do
    [[ " $* " == *" ${file##*/} "* || -e $bare/${file##*/} ]] || echo "$file"
  done | sort -u -t/ -k4 | xargs ln -sf -t "$bare"
  PATH=$bare
}

# --------------------------------------------------------------------------- words and refusals

help() {
  local command
  checkout
  run_code 0 help
  for command in train sample data report test doctor; do
    says "./run $command"
    (run_code 0 "$command" --help; says "./run $command") || exit 1
  done
}

unknown_command() {
  checkout
  run_code 2 trian
  says "there is no command trian"
  one_line
}

unknown_stage() {
  checkout
  run_code 2 train 97
  says "there is no stage 97; the stages are: 01_cpu"
  one_line
}

missing_data() {
  fake_build
  run_code 2 train --data nowhere/at/all
  says "nowhere/at/all"
  one_line
  run_code 2 data nowhere/at/all
  says "nowhere/at/all"
  [[ ! -e $strata/runs ]] || fail "a run was begun"
}

missing_value() {
  fake_build
  run_code 2 train --data
  says "--data wants a value"
}

# ----------------------------------------------------------------------------------- platforms

macos() {
  checkout
  on_path uname <<<'echo Darwin'
  run_code 3 train
  says "macOS"
  says "docker run"
  run_code 0 help
}

windows() {
  checkout
  on_path uname <<<'echo MINGW64_NT-10.0'
  run_code 3 test
  says "WSL 2"
}

no_apt() {
  checkout
  bare_path apt-get g++ cmake ninja ccache
  run_code 3 train
  says "apt-get install g++ cmake ninja-build"
  says "dnf install gcc-c++ cmake ninja-build"
  says "pacman -S gcc cmake ninja"
  [[ ! -e $strata/runs && ! -e $strata/datasets ]] || fail "something was begun"
}

apt_installs() {
  fake_build
  mv "$work/path/ninja" "$work/ninja"
  bare_path apt-get cmake ninja
  on_path apt-get <<END
echo "\$*" >>"$work/asked"
[[ " \$* " != *" install "* ]] || { ln -s "$work/ninja" "$work/bare/"; ln -s bash "$work/bare/cmake"; }
END
  on_path sudo <<<'shift; exec "$@"'
  run_code 0 train
  says "cmake "
  says "ninja-build "
  says "Installed in"
  grep -q -- "install cmake ninja-build" "$work/asked" || fail "apt-get was asked: $(cat "$work/asked")"
  rm "$work/asked"
  run_code 0 train
  says_not "Missing"
  [[ ! -e $work/asked ]] || fail "apt-get was asked again"
}

apt_fails() {
  checkout
  bare_path apt-get cmake ninja
  on_path apt-get <<<'echo "E: Unable to locate package cmake"; exit 100'
  on_path sudo <<<'shift; exec "$@"'
  run_code 3 train
  says "E: Unable to locate package cmake"
  says "run: error: apt-get could not install what is missing; by hand: apt-get install cmake ninja-build"
}

no_root() {
  checkout
  if ((EUID == 0)); then
    command -v setpriv >/dev/null || { echo "setpriv is not installed: not tested as root"; return; }
    chmod -R a+rX "$work"
  fi
  bare_path apt-get cmake ninja sudo
  on_path apt-get <<<'exit 0'
  chmod -R a+rX "$work"
  ((EUID != 0)) || on_path bash_as_nobody <<<'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'
  local code=0
  output=$(cd "$strata" && { if ((EUID == 0)); then bash_as_nobody ./run train; else ./run train; fi; } 2>&1 </dev/null) || code=$?
  [[ $code == 3 ]] || fail "exit code $code instead of 3"
  says "Please run this as root, then try again: apt-get install cmake ninja-build"
}

# ------------------------------------------------------------------------------------ training

flags_pass() {
  fake_build
  STAND_IN_CODE=7 run_code 7 train 01 --steps 20 --prompt "two words" --init "L4,C128" --lr=0.1
  says "<--steps><20><--prompt><two words><--init><L4,C128><--lr=0.1>"
  says "<--data><$strata/datasets/tales>"
}

run_folder() {
  local first
  fake_build
  run_code 0 train
  says "report   runs/"
  first=$(readlink -f "$strata/runs/latest")
  [[ -s $first/report.html ]] || fail "no report in runs/latest"
  run_code 0 train --resume
  says "<--out><$first>"
  says_not "<--data>"
  run_code 0 train --out "$work/elsewhere"
  says "<--out><$work/elsewhere>"
  [[ $(readlink -f "$strata/runs/latest") == "$work/elsewhere" ]] || fail "runs/latest is not the newest run"
  run_code 0 report
  says "$work/elsewhere/report.html"
}

never_began() {
  local first
  fake_build
  run_code 0 train
  first=$(readlink -f "$strata/runs/latest")
  stand_in strata01 <<<'echo "strata01: error: no." >&2; exit 2'
  run_code 2 train --stepz 3
  says "strata01: error: no."
  [[ $(readlink -f "$strata/runs/latest") == "$first" ]] || fail "runs/latest has changed"
}

interrupt() {
  local code=0 pid
  fake_build
  stand_in strata01 <<END
while ((\$#)); do [[ \$1 != --out ]] || { mkdir -p "\$2"; echo '{}' >"\$2/metrics.jsonl"; }; shift; done
touch "$work/started"
sleep 60
END
  # As a terminal does it: the signal goes to the whole foreground group.
  set -m
  (cd "$strata" && exec ./run train >"$work/said" 2>&1 </dev/null) &
  pid=$!
  set +m
  for _ in {1..200}; do [[ ! -e $work/started ]] || break; sleep 0.05; done
  kill -INT -- "-$pid"
  wait "$pid" || code=$?
  output=$(cat "$work/said")
  [[ $code == 130 ]] || fail "exit code $code instead of 130"
  says "report.html"
  says "--resume"
}

# ---------------------------------------------------------------------------------------- data

own_text() {
  fake_build
  mkdir -p "$work/my notes"
  run_code 0 train --data "$work/my notes"
  says "strata-data: <prepare><--if-changed><--name><my-notes><--source><$work/my notes><--out><datasets/my-notes><$work/my notes>"
  says "<--data><$strata/datasets/my-notes>"
  STAND_IN_WORDS=5000 run_code 0 train --data "$work/my notes"
  says "<--init><L4,C128,H4,T256,V5000>"
  run_code 0 train --data "$strata/datasets/my-notes" --init d12
  says_not "strata-data: <prepare>"
  says "<--init><d12>"
  says_not "V5000"
}

kept_flags() {
  fake_build
  mkdir "$work/notes"
  run_code 0 data "$work/notes" --vocab-size 300
  says "<--vocab-size><300><$work/notes>"
  says "next     ./run train --data datasets/notes"
  run_code 0 train --data "$work/notes"
  says "<--vocab-size><300><$work/notes>"
}

same_name() {
  fake_build
  mkdir -p "$work/one/notes" "$work/two/notes"
  run_code 0 data "$work/one/notes" "$work/two/notes"
  says "datasets/notes"
  [[ $(find "$strata/datasets" -maxdepth 1 -name 'notes*' | wc -l) == 2 ]] || fail "one took the other's place"
  run_code 0 data "$work/two/notes"
  [[ $(find "$strata/datasets" -maxdepth 1 -name 'notes*' | wc -l) == 2 ]] || fail "the second has no name of its own"
}

foreign_model() {
  fake_build
  mkdir -p "$work/gpt2" "$work/notes"
  echo "another" >"$work/gpt2/tokenizer.json"
  run_code 0 train --init "$work/gpt2" --data "$work/notes"
  says "<--out><datasets/notes-gpt2><--tokenizer><$work/gpt2>"
  says "<--data><$strata/datasets/notes-gpt2>"
  run_code 0 train --init "$work/gpt2"
  says "<--data><$strata/datasets/tales-gpt2>"
  # A model that has the tokenizer of the data set takes that.
  run_code 0 train --data "$work/notes"
  cp "$strata/datasets/notes/tokenizer.json" "$work/gpt2/"
  run_code 0 train --init "$work/gpt2" --data "$work/notes"
  says "<--data><$strata/datasets/notes>"
}

prompt() {
  fake_build
  run_code 0 train
  stand_in strata-data <<'END'
[[ $1 == encode && $* == *"a b"* ]] && echo 5,6
END
  run_code 0 sample --prompt "a b" --top-k 3
  says "<--sample><--init><$(readlink -f "$strata/runs/latest")/step_00000002>"
  says "<--top-k><3><--prompt-tokens><5,6>"
}

download() {
  fake_build
  echo "a text" >"$work/book.txt"
  run_code 0 data "file://$work/book.txt"
  says "./run train --data datasets/book"
  run_code 1 data "file://$work/nothing-there.txt"
  says "could not be downloaded"
  on_path curl <<'END'
while (($#)); do [[ $1 != -o ]] || echo wrong >"$2"; shift; done
END
  run_code 1 data tinyshakespeare
  says "is not the file that was expected"
  [[ $(echo "$strata"/datasets/downloads/*) == "$strata/datasets/downloads/book.txt" ]] || fail "something wrong was kept"
}

# ----------------------------------------------------------------------------- build and tests

compiler_error() {
  fake_build
  on_path ninja <<'END'
[[ $1 != -n ]] || { echo "[1/1] something"; exit 0; }
echo "[1/2] c++ a"; echo "a.cpp:1: error: words of the compiler"; exit 1
END
  run_code 1 train
  says "a.cpp:1: error: words of the compiler"
  says_not "[1/2]"
  says "run: error: the build failed"
}

unmatched_filter() {
  real_build
  run_code 2 test no_such_test_anywhere
  says "no test has 'no_such_test_anywhere' in its name"
}

quick_start() {
  local start took best=9999999
  real_build
  run_code 0 train --plan
  for _ in 1 2 3 4 5; do
    start=${EPOCHREALTIME/./}
    run_code 0 train --plan  # all that comes before training, and stops there
    took=$((${EPOCHREALTIME/./} - start))
    ((took >= best)) || best=$took
  done
  ((best < 1000000)) || fail "it took $best microseconds"
}

whole_way() {
  local run
  real_build
  mkdir "$work/notes"
  cp "$source_dir"/*.md "$work/notes/"
  run_code 0 train --data "$work/notes" --steps 3 --batch 2 --val-batches 2 --sample-tokens 20 --checkpoint-every 2
  run=$(readlink -f "$strata/runs/latest")
  for file in metrics.jsonl report.html step_00000003/model.safetensors step_00000003/config.json; do
    [[ -s $run/$file ]] || fail "there is no $file in the run"
  done
  says "report.html"
  run_code 0 train --resume --steps 4
  [[ -s $run/step_00000004/model.safetensors ]] || fail "the run was not resumed"
  run_code 0 sample --prompt "Grüße, 世界" --sample-tokens 5
  says "Grüße, 世界"
}

doctor() {
  checkout
  run_code 0 doctor
  says "stage 01 can run"
  bare_path g++
  run_code 1 doctor
  says "g++ (compiles"
  says "stage 01 cannot run yet"
}

"$1"
