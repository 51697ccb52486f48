# shellcheck shell=bash
# ./run doctor: what this machine has.

help_doctor() {
  cat <<'END'
./run doctor   what this machine has, what Strata will use of it, what is missing and how to get it;
               exit code 0 if stage 01 can run
END
}

fact() { printf '%-12s %s\n' "$1" "$2"; }

# first_line COMMAND...: the first line of what it prints, or "none".
first_line() {
  local text
  if command -v "$1" >/dev/null && text=$("$@" 2>/dev/null); then echo "${text%%$'\n'*}"; else echo none; fi
}

processor_features() {
  local flags name found=()
  flags=" $(sed -n '/^\(flags\|Features\)/ { s/.*: //; p; q }' /proc/cpuinfo) "
  for name in sse4_2 avx2 fma avx512f avx512_bf16 amx_bf16 asimd sve; do
    [[ $flags != *" $name "* ]] || found+=("$name")
  done
  echo "${found[*]:-none of those we look for}"
}

# openmp_works: can the compiler here build and run a program with threads?
openmp_works() {
  local work status=0
  command -v g++ >/dev/null || return 1
  work=$(mktemp -d)
  echo 'int main() { int n = 0;
  _Pragma("omp parallel reduction(+ : n)") n += 1;
  return n < 1; }' >"$work/a.cpp"
  { g++ -std=c++20 -march=native -fopenmp -o "$work/a" "$work/a.cpp" && "$work/a"; } >/dev/null 2>&1 || status=1
  rm -rf "$work"
  return $status
}

doctor_machine() {
  local name='' total available
  [[ ! -r /etc/os-release ]] || name=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)
  [[ ! -r /proc/version || $(</proc/version) != *icrosoft* ]] || name+=" under WSL"
  total=$(awk '/^MemTotal:/ { printf "%.1f", $2 / 1048576 }' /proc/meminfo)
  available=$(awk '/^MemAvailable:/ { printf "%.1f", $2 / 1048576 }' /proc/meminfo)
  fact system "${name:-Linux}, $(uname -sr), $(uname -m)"
  fact processor "$(sed -n '/^\(model name\|Hardware\)/ { s/.*: //; p; q }' /proc/cpuinfo)"
  fact cores "$(nproc)"
  fact features "$(processor_features)"
  fact memory "$total GiB, $available GiB of it free"
  fact disk "$(df -h --output=avail "$root" | tail -n 1 | tr -d ' ') free in $root"
}

doctor_tools() {
  fact compiler "$(first_line g++ --version)"
  if openmp_works; then fact OpenMP "works"; else fact OpenMP "does not work"; fi
  fact CMake "$(first_line cmake --version)"
  fact Ninja "$(first_line ninja --version)"
  fact ccache "$(first_line ccache --version)"
  fact CUDA "$(first_line nvcc --version | sed 's/^nvcc: //')"
  fact GPU "$(first_line nvidia-smi -L)"
}

cmd_doctor() {
  local row cells
  check_platform
  doctor_machine
  doctor_tools
  missing_for build tests fetch
  for row in ${missing[@]+"${missing[@]}"}; do
    IFS='|' read -r -a cells <<<"$row"
    fact missing "${cells[0]} (${cells[3]})"
  done
  ((${#missing[@]} == 0)) || fact "get them" "apt-get install $(column 0); ./run does it when it needs them"
  fact uses "the processor only, with $(nproc) threads, compiled for it (-march=native)"
  missing_for build
  if ((${#missing[@]})) || ! openmp_works; then fact verdict "stage 01 cannot run yet"; return 1; fi
  fact verdict "stage 01 can run: ./run train"
}
