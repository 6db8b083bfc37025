# Sourced by scripts that build: makes sure of tools and libraries, from Debian's packages where some are missing.
# shellcheck shell=sh

# need PACKAGE TEST...: notes PACKAGE as missing unless the command TEST succeeds.
missing=
need() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
have_tool() { command -v "$1"; }
have_library() { command -v pkg-config && pkg-config --exists "$1"; }
have_header() { echo "#include <$1>" | cc -E -x c - ; }

need_build_packages() {
    need gcc have_tool cc
    need libc6-dev have_header stdio.h
    need cmake have_tool cmake
    command -v ninja >/dev/null || need make have_tool make
    need pkg-config have_tool pkg-config
    need zlib1g-dev have_library zlib
    need libzstd-dev have_library libzstd
    need libhwloc-dev have_library hwloc
    need libjansson-dev have_library jansson
    need libexpat1-dev have_library expat
    need libglpk-dev have_header glpk.h
    need_executor_packages
}

# What the executor computes and communicates with; it builds without them, and is then slow and of one process.
need_executor_packages() {
    need libopenblas-dev have_library openblas
    need libopenmpi-dev have_library ompi-c
    need openmpi-bin have_tool mpirun
}

# Installs what is missing, as root or through sudo; else says what to run and ends the script.
install_missing() {
    [ -n "$missing" ] || return 0
    line="apt-get install -y --no-install-recommends$missing"
    if ! command -v apt-get >/dev/null; then
        echo "missing (Debian's names):$missing" >&2
        exit 1
    fi
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        as_root=sudo
    else
        echo "missing packages; run this as root, then start again:" >&2
        echo "  apt-get update && $line" >&2
        exit 1
    fi
    echo "installing$missing"
    log=$(mktemp)
    # shellcheck disable=SC2086
    if ! { $as_root apt-get update -q && DEBIAN_FRONTEND=noninteractive $as_root $line; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "cannot install$missing" >&2
        exit 1
    fi
    rm -f "$log"
    missing=
}

# Prints how many builds to run at once.
processors() { getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

# configure BUILD ARGUMENT...: CMake with Ninja where it is there; a build folder keeps the generator it began with.
configure() {
    if [ -f "$1/CMakeCache.txt" ] || ! command -v ninja >/dev/null; then
        cmake -S . -B "$@"
    else
        cmake -S . -B "$@" -G Ninja
    fi
}

# Prints what python3 starts, nothing without one: a wrapper such as pyenv's takes a tenth of a second each time.
python_itself() { python3 -c 'import sys; print(sys.executable)' 2>/dev/null || true; }

# Prints the first Python that has torch and numpy.
python_with_torch() {
    for candidate in python3 /usr/bin/python3; do
        if "$candidate" -c 'import numpy, torch.distributed' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# Prints the first Python that has numpy: a user's own python3 may lack it while Debian's has it.
python_with_numpy() {
    for candidate in python3 /usr/bin/python3; do
        if "$candidate" -c 'import numpy' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# Whether that Python can make environments.
python_with_venv() { "$(python_with_numpy)" -c 'import ensurepip, venv'; }
