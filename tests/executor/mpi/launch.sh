# Sourced: launch, which starts ranks for a test. Wants $launcher and $work; $patience is the longest that they may take, 40 s
# unless told.
# shellcheck shell=sh disable=SC2154

# OpenMPI's alone: as root, more ranks than processors, nothing but memory and loopback, and no copies by the
# kernel out of another process, which containers forbid.
flags=
case $("$launcher" --version 2>&1) in
*"Open MPI"* | *OpenRTE*)
    flags='--oversubscribe --mca btl self,vader,tcp --mca btl_vader_single_copy_mechanism none'
    [ "$(id -u)" != 0 ] || flags="--allow-run-as-root $flags"
    ;;
esac

# launch RANKS COMMAND...: its status; 124 when it hangs. Output in $work.
launch() {
    ranks=$1
    shift
    # shellcheck disable=SC2086
    timeout "${patience:-40}" "$launcher" $flags -n "$ranks" "$@" >"$work/out" 2>"$work/err"
}
