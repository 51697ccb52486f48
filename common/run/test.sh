# shellcheck shell=bash
# ./run test: the tests, and everything else that has to hold.

help_test() {
  cat <<'END'
./run test            builds everything and runs the tests
./run test FILTER     only the tests of an area (io, data, ...) or whose name matches FILTER
./run test all        all of it: the tests; stage 01 built by its single command; the tests again
                      under AddressSanitizer and UndefinedBehaviorSanitizer; the formatting, where
                      clang-format 14 is installed; and a short training run from data to report
END
}

# tests_of PRESET CTEST-FLAG...: runs CTest. Tests that wait must not spin: they share the cores.
tests_of() {
  OMP_WAIT_POLICY=passive ctest --test-dir "$root/build/$1" -j "$(nproc)" --output-on-failure \
    --no-tests=error "${@:2}"
}

# filter_flags FILTER: how CTest is to select: the label if there is one of that name, else names.
filter_flags() {
  local labels
  labels=$(ctest --test-dir "$root/build/release" --print-labels | sed -n 's/^  //p')
  if grep -qxF -- "$1" <<<"$labels"; then
    selection=(-L "^$1\$")
  else
    selection=(-R "$1")
    [[ $(ctest --test-dir "$root/build/release" -N -R "$1" 2>&1) != *'Total Tests: 0'* ]] ||
      usage_error "no test has '$1' in its name, and no area is called so; the areas are: ${labels//$'\n'/, }."
  fi
}

phase_core() { build release ON all && tests_of release "$@"; }

phase_single_command() {
  local work
  work=$(mktemp -d)
  cp "$root/stages/01_cpu/train.cpp" "$work/"
  echo "g++ -std=c++20 -O3 -march=native -fopenmp train.cpp"
  (cd "$work" && g++ -std=c++20 -O3 -march=native -fopenmp train.cpp && ./a.out --help >/dev/null)
  local status=$?
  rm -rf "$work"
  return $status
}

phase_sanitizers() { build asan ON all && tests_of asan -LE '^(run|stage01-runs)$'; }

phase_format() {
  local status=0 version='' sources
  mapfile -t sources < <(cd "$root" && find bench common data stages tests -name '*.cpp' -o -name '*.h' 2>/dev/null)
  if command -v clang-format >/dev/null; then version=$(clang-format --version); fi
  if [[ $version == *'version 14'* ]]; then
    (cd "$root" && clang-format --dry-run -Werror "${sources[@]}") || status=1
  else
    echo "clang-format 14 is not installed: the C++ formatting is not checked."
  fi
  if command -v shellcheck >/dev/null; then
    (cd "$root" && shellcheck -a -x run .ci/run tests/run/*.sh) || status=1
  else
    echo "shellcheck is not installed: the scripts are not checked."
  fi
  return $status
}

phase_training() {
  local work status=0
  work=$(mktemp -d)
  "$root/run" train --steps 20 --out "$work/run" && [[ -s $work/run/report.html ]] &&
    compgen -G "$work/run/step_*/model.safetensors" >/dev/null || status=1
  rm -rf "$work"
  return $status
}

# phase NAME COMMAND...: runs one part of the tests in a shell of its own and notes how it went.
phase() {
  local start=$SECONDS
  printf '\n== %s\n' "$1"
  if ("${@:2}"); then
    verdicts+=("passed  $1 ($(took "$start"))")
  else
    verdicts+=("FAILED  $1 ($(took "$start"))")
    failed=$((failed + 1))
  fi
}

cmd_test() {
  local verdicts=() failed=0 start=$SECONDS selection=()
  require build tests
  if [[ ${1-} != all && -n ${1-} ]]; then
    build release ON all
    filter_flags "$1"
  fi
  phase "tests" phase_core ${selection[@]+"${selection[@]}"}
  if [[ ${1-} == all ]]; then
    phase "stage 01 by its single command" phase_single_command
    phase "tests under the sanitizers" phase_sanitizers
    phase "formatting" phase_format
    phase "a short training run" phase_training
  fi
  printf '\n'
  printf '%s\n' "${verdicts[@]}"
  if ((failed)); then echo "$failed of ${#verdicts[@]} parts failed, in $(took "$start")."; return 1; fi
  echo "All passed in $(took "$start")."
}
