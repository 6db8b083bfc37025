#!/bin/sh
# The command lines of README.md and of pages of docs/ run as printed, in a copy of what they need of the tree: a page's ```sh
# blocks one after another in one shell, from the root of the repository, as after the quickstart; ```python blocks as well, except in
# how-tos, where they are fragments, and where no Python has numpy. Files that the quickstart draws have the same names and fewer samples, and so have those that the lines draw.
# usage: pages.sh PROGRAMS LIBHBP SOURCE
set -u
programs=$1 library=$2 source=$3
. "$source/cmake/packages.sh"
python=$(python_with_numpy || true)
[ -n "$python" ] || echo "no numpy: Python is not run"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
fail() { echo "FAIL: $*"; bad=1; }

# A build/quickstart of links to this build, and lengths as the quickstart draws them.
tree() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/build/quickstart/examples" "$work/tree/build/quickstart/lib" "$work/tree/examples" "$work/tree/tests"
    cd "$work/tree" || exit 1
    cp -r "$source/examples/data" examples/
    ln -s "$source/bindings" bindings
    for program in hbp first stepper tasks draw_plan; do ln -s "$programs/$program" build/quickstart/examples/$program; done
    cat >build/quickstart/examples/draw_lengths <<END
#!/bin/sh
[ "\$3" -le 8000 ] || { from=\$1 to=\$2; shift 3; set -- "\$from" "\$to" 8000 "\$@"; }
exec "$programs/draw_lengths" "\$@"
END
    chmod +x build/quickstart/examples/draw_lengths
    ln -s "$library" build/quickstart/lib/libhbp.so
    [ ! -e "$(dirname "$library")/libhbp-io.so" ] || ln -s "$(dirname "$library")/libhbp-io.so" build/quickstart/lib/libhbp-io.so
    for script in examples/quickstart.sh tests/run.sh; do # build and install: that they are there, and can be read by sh
        sh -n "$source/$script" || fail "$script"
        echo 'echo "not run here"' >$script
    done
    build/quickstart/examples/draw_lengths examples/data/wikipedia.csv build/quickstart/lengths.npy 8000 0 131072
    build/quickstart/examples/hbp plan build/quickstart/lengths.npy --model llama-3.1-8b --machine h100:4 -o build/quickstart/plan.msgpack >out
}

# script PAGE: its blocks as one script; a line of its own counts each command that ended well.
script() {
    case $1 in */how-to/*) with= ;; *) with=$python ;; esac
    awk -v python="$with" '
        /^```/ {
            if (kind == "python" && python != "") print "END_OF_PYTHON\necho line >>\"$RAN\""
            was = kind
            kind = was == "" ? substr($0, 4) : ""
            if (was == "" && kind == "") kind = "text"
            if (kind == "python" && python != "") print python " - <<'"'END_OF_PYTHON'"'"
            next
        }
        kind == "sh" && !open && /<<.?[A-Z]+.?$/ { open = $0; sub(/.*<<.?/, "", open); sub(/[^A-Z]*$/, "", open) }
        kind == "sh" { print; if (open && $0 == open) open = ""; if (!open && NF && !/^#/ && !/\\$/) print "echo line >>\"$RAN\"" }
        kind == "python" && python != "" { print }' "$1"
}

for page in README.md docs/command.md docs/tutorial.md docs/how-to/plan-one-step.md docs/how-to/vision-language.md docs/how-to/many-tasks.md; do
    tree
    script "$source/$page" >"$work/script"
    lines=$(grep -cxF 'echo line >>"$RAN"' "$work/script")
    : >"$work/ran"
    HBP_LIBRARY=$library PYTHONPATH=$source/bindings/python/src PYTHONDONTWRITEBYTECODE=1 RAN=$work/ran \
        sh -eu "$work/script" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    ran=$(wc -l <"$work/ran")
    echo "$page: $((ran)) of $lines commands"
    [ $status = 0 ] && [ "$ran" = "$lines" ] || fail "$page: after $((ran)) of $lines commands: $(tail -n 5 "$work/err")"
    [ "$lines" -ge 3 ] || fail "$page has hardly a command"
    [ ! -s "$work/err" ] || fail "$page: on standard error: $(head -n 5 "$work/err")"
done
exit $bad
