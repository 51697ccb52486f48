# shellcheck shell=bash
# What Strata needs of the machine, and how it gets there.

# Debian's name | needed for | how to tell that it is there | what it is for | Fedora | Arch.
# "build" is what training takes, "tests" and "fetch" come on top; "wish" is installed along with
# others but never missed. A probe is a command, a header below an include folder, or a file.
packages=(
  'g++|build|command g++|compiles the C++ sources, with OpenMP|gcc-c++|gcc'
  'cmake|build|command cmake|describes the build|cmake|cmake'
  'ninja-build|build|command ninja|runs the build|ninja-build|ninja'
  'nlohmann-json3-dev|build|header nlohmann/json.hpp|reads and writes JSON|json-devel|nlohmann-json'
  'libfmt-dev|build|header fmt/core.h|formats text|fmt-devel|fmt'
  'libpcre2-dev|build|header pcre2.h|splits text into words as GPT-2 does|pcre2-devel|pcre2'
  'libcli11-dev|build|header CLI/CLI.hpp|reads command lines|cli11-devel|cli11'
  'ccache|wish|command ccache|makes rebuilding quick|ccache|ccache'
  'catch2|tests|header catch2|runs the tests|catch-devel|catch2'
  'curl|fetch|command curl|downloads data sets|curl|curl'
  'ca-certificates|fetch|file /etc/ssl/certs/ca-certificates.crt|checks whom we download from|ca-certificates|ca-certificates'
)

# is_there KIND WHAT: does a probe of the table find its thing?
is_there() {
  local prefix
  case $1 in
    command) command -v "$2" >/dev/null ;;
    file) [[ -e $2 ]] ;;
    header)
      for prefix in /usr /usr/local ${CONDA_PREFIX:+"$CONDA_PREFIX"} ${CMAKE_PREFIX_PATH:+"$CMAKE_PREFIX_PATH"}; do
        [[ -e $prefix/include/$2 ]] && return 0
      done
      return 1 ;;
  esac
}

# missing_for NEED...: the rows of the table that are needed and not there, in the array `missing`.
missing_for() {
  local row cells probe serious=0
  missing=()
  for row in "${packages[@]}"; do
    IFS='|' read -r -a cells <<<"$row"
    [[ " $* wish " == *" ${cells[1]} "* ]] || continue
    probe=${cells[2]}
    is_there "${probe%% *}" "${probe#* }" && continue
    missing+=("$row")
    [[ ${cells[1]} == wish ]] || serious=1
  done
  ((serious)) || missing=()
}

# column N: that column of the missing rows, on one line.
column() {
  local row cells out=()
  for row in "${missing[@]}"; do
    IFS='|' read -r -a cells <<<"$row"
    out+=("${cells[$1]}")
  done
  echo "${out[*]}"
}

# require NEED...: makes sure that everything in the table for these needs is there.
require() {
  local row cells
  check_platform
  missing_for "$@"
  ((${#missing[@]})) || return 0
  echo "Missing on this machine:"
  for row in "${missing[@]}"; do
    IFS='|' read -r -a cells <<<"$row"
    printf '  %-20s %s\n' "${cells[0]}" "${cells[3]}"
  done
  command -v apt-get >/dev/null || without_apt
  apt_install
  missing_for "$@"
  ((${#missing[@]} == 0)) || die "these packages were installed, yet what they bring was not found: $(column 0)."
}

without_apt() {
  {
    echo "There is no apt-get here, so please install them yourself, then try again:"
    echo "  Debian, Ubuntu  apt-get install $(column 0)"
    echo "  Fedora          dnf install $(column 4)"
    echo "  Arch            pacman -S $(column 5)"
  } >&2
  exit 3
}

apt_install() {
  local names log as_root=() answer start=$SECONDS
  read -r -a names <<<"$(column 0)"
  local by_hand="apt-get install ${names[*]}"
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { echo "Please run this as root, then try again: $by_hand" >&2; exit 3; }
    as_root=(sudo)
    [[ -t 0 ]] || as_root=(sudo -n)
  fi
  if [[ -t 0 && -t 1 && ${STRATA_YES:-0} != 1 ]]; then
    read -r -p "Install them now with ${as_root[*]+${as_root[*]} }apt-get? [Y/n] " answer
    [[ -z $answer || $answer == [Yy]* ]] || { echo "Nothing was installed. By hand: $by_hand" >&2; exit 3; }
  fi
  echo "Installing them with apt-get ..."
  log=$(mktemp)
  compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null || apt_get update >"$log" 2>&1 || true
  if ! apt_get install "${names[@]}" >>"$log" 2>&1; then
    # The lists may name versions that the archive no longer has.
    { apt_get update && apt_get install "${names[@]}"; } >>"$log" 2>&1 || {
      grep -E '^(E|Err|W):|^sudo:' "$log" | sort -u | tail -n 8 >&2 || true
      rm -f "$log"
      echo "run: error: apt-get could not install what is missing; by hand: $by_hand" >&2
      exit 3
    }
  fi
  rm -f "$log"
  echo "Installed in $(took "$start")."
}

# apt_get ARGS...: apt-get without questions; `as_root` comes from apt_install.
apt_get() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
    apt-get -y -o DPkg::Lock::Timeout=120 --no-install-recommends "$@" </dev/null
}

check_platform() {
  case $(uname -s) in
    Linux) return 0 ;;
    Darwin)
      cat >&2 <<'END'
Strata does not build on macOS itself: it is written for GCC with OpenMP on Linux.
What works is a Linux container, started in this folder:
  docker run --rm -it -v "$PWD":/strata -w /strata debian:12 ./run train
END
      ;;
    MINGW* | MSYS* | CYGWIN*)
      cat >&2 <<'END'
Strata does not build on Windows itself: it is written for GCC with OpenMP on Linux.
What works is WSL 2: run `wsl --install -d Debian` in PowerShell, then clone Strata inside that
Debian (in its own file system: it is much faster than /mnt/c) and run ./run train there.
END
      ;;
    *) echo "Strata builds on Linux; this is $(uname -s). A Linux container or virtual machine works." >&2 ;;
  esac
  exit 3
}
