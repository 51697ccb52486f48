# shellcheck shell=bash
# Configuring and building; both do nothing where nothing is to be done.

# stage_folder NN: the folder of a stage; says which there are if this one is not.
stage_folder() {
  local folder there=()
  for folder in "$root"/stages/[0-9][0-9]_*/; do
    folder=${folder%/}
    there+=("$(basename "$folder")")
    [[ ${there[-1]} == "$1"_* ]] && { echo "$folder"; return; }
  done
  usage_error "there is no stage $1; the stages are: ${there[*]}."
}

# configure PRESET TESTS(ON|OFF): only if it has not been done; ninja sees to changes.
configure() {
  local dir=$root/build/$1 home log start=$SECONDS
  if [[ -f $dir/CMakeCache.txt && -f $dir/build.ninja ]]; then
    home=$(dirname "$(readlink -f "$root/CMakeLists.txt")")
    if grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$home" "$dir/CMakeCache.txt"; then
      [[ $2 == OFF ]] && return
      grep -qx 'STRATA_TESTS:BOOL=ON' "$dir/CMakeCache.txt" && return
    else
      rm -rf "$dir"  # made for a checkout that has since moved, or for another mount of it
    fi
  fi
  mkdir -p "$root/build"
  log=$root/build/configure-$1.log
  if ! (cd "$root" && cmake --preset "$1" "-DSTRATA_TESTS=$2") >"$log" 2>&1; then
    cat "$log" >&2
    die "CMake could not configure the build (its words are above)."
  fi
  say configure "build/$1 in $(took "$start")"
}

# jobs: as many as there are cores, as long as each has a gigabyte of memory.
jobs() {
  local n kilobytes
  n=$(nproc)
  kilobytes=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  n=$((n < kilobytes / 1000000 ? n : kilobytes / 1000000))
  echo $((n > 1 ? n : 1))
}

# build PRESET TESTS(ON|OFF) TARGET...: silent if there is nothing to do.
build() {
  local preset=$1 dir=$root/build/$1 log start=$SECONDS
  configure "$1" "$2"
  shift 2
  [[ $(cd "$dir" && ninja -n "$@" 2>&1) == *'no work to do'* ]] && return
  if [[ -t 1 ]]; then
    (cd "$dir" && NINJA_STATUS='build    [%f of %t] ' ninja -j "$(jobs)" "$@") ||
      die "the build failed (the compiler's words are above)."
  else
    log=$root/build/build-$preset.log
    if ! (cd "$dir" && ninja -j "$(jobs)" "$@") >"$log" 2>&1; then
      grep -vE '^\[[0-9]+/[0-9]+\]' "$log" >&2
      die "the build failed (the compiler's words are above)."
    fi
  fi
  say build "$* ($preset) in $(took "$start")"
}
