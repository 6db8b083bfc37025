#!/bin/sh
# docs/reference/options.md is what lib/base/records.inc says of the structs of options: one table a struct.
# usage: options.sh [--write] SOURCE
set -eu
write=
if [ "$1" = --write ]; then write=1; shift; fi
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LC_ALL=C awk '
    # The arguments of STRUCT(...), FIELD(...), CHOICE(...) into part[1..]; strings without their quotes.
    function cut(line,    n, at, c, text, inside) {
        sub(/^[A-Z]+\(/, "", line); sub(/\)$/, "", line)
        n = 1; text = ""; inside = 0; split("", part)
        for (at = 1; at <= length(line); at++) {
            c = substr(line, at, 1)
            if (inside && c == "\\") text = text substr(line, ++at, 1)
            else if (c == "\"") inside = !inside
            else if (!inside && c == "," ) { part[n++] = text; text = ""; while (substr(line, at + 1, 1) == " ") at++ }
            else text = text c
        }
        part[n] = text
        return n
    }
    function limit(text) {
        if (match(text, /^INT64_C\(1\) << /)) return "2^" substr(text, RLENGTH + 1)
        return text == "INT64_MAX" ? "2^63 - 1" : text == "INT32_MAX" ? "2^31 - 1" : text
    }
    function cell(text) { gsub(/\|/, "\\|", text); gsub(/</, "\\&lt;", text); gsub(/\*/, "\\*", text); return text }
    /^STRUCT/ { cut($0); of = part[1]; structs[++count] = of; about[of] = part[2]; next }
    /^CHOICE/ { cut($0); choices[part[1]]++; name_of[part[1], choices[part[1]]] = part[3]; next }
    /^FIELD/ { cut($0); if (part[2] != "struct_size") { rows[of]++; row[of, rows[of]] = $0 } next }
    END {
        print "# Options\n\nThe fields of every struct of options, from the headers; made by `tests/house/options.sh --write .`, not by hand."
        print "Zero is the default of every field; what lies outside a range is refused with `HBP_E_INVALID`. `hbp COMMAND --help` has"
        print "the options of the command, which take theirs from here."
        for (s = 1; s <= count; s++) {
            of = structs[s]
            if (of !~ /_options$/ && of != "hbp_model_fields" && of != "hbp_machine_fields") continue
            print "\n## " of
            if (about[of] != "") print "\n" cell(about[of])
            print "\n| field | type | range or choices | text |\n|---|---|---|---|"
            for (r = 1; r <= rows[of]; r++) {
                cut(row[of, r]); range = ""
                if (part[5] == "FLAG") range = "flag"
                else if (part[8] != "NULL") {
                    listed = 0
                    for (c = 1; c <= choices[part[8]]; c++)
                        if (c - 1 >= part[6] + 0 && c - 1 <= part[7] + 0) range = range (listed++ ? ", " : "") name_of[part[8], c]
                }
                else if (part[5] == "RANGE") range = limit(part[6]) ".." limit(part[7])
                else if (part[9] != "NULL") range = "[" part[9] "]"
                type = part[4]; if (type ~ /\(/) type = "function"
                print "| `" part[2] "` | `" type "` | " cell(range) " | " cell(part[10]) " |"
            }
        }
    }' lib/base/records.inc >"$work/options.md"
[ "$(grep -c '^## ' "$work/options.md")" -ge 20 ] || { echo "few structs found"; exit 1; }
if [ -n "$write" ]; then
    mkdir -p docs/reference
    cp "$work/options.md" docs/reference/options.md
    exit
fi
diff -u docs/reference/options.md "$work/options.md" >"$work/differ" || { head -n 40 "$work/differ"; echo "the records have changed; run options.sh --write"; exit 1; }
