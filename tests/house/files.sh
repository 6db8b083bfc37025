#!/bin/sh
# Files are short, every source has its test, and the library calls nothing that prints, ends the process, reads the
# environment or depends on the C library's order of equal elements.
# usage: files.sh SOURCE
set -eu
cd "$1"
bad=0
fail() { echo "$*"; bad=1; }

LC_ALL=C awk '
    FNR == 601 { print FILENAME " has more than 600 lines"; bad = 1 }
    /[[:space:]]$/ { print FILENAME ":" FNR " has trailing blanks"; bad = 1 }
    FNR == 1 { files++ }
    END { if (files < 1000) { print "only " files " files were read"; bad = 1 } exit bad }' lib/*/*.[ch] lib/*/*/*.[ch] include/hbp/*.h tests/*.h tests/*/*.[ch] tests/*/*/*.[ch]* \
    examples/*.c examples/*/*.[ch] examples/*/*/*.[ch]* examples/*/*/*/*.[ch]* benchmarks/*.c || bad=1

# A file of the library opens with a comment that says what it is, or with its own header, which does.
for file in lib/*/*.[ch] lib/*/*/*.[ch] include/hbp/*.h; do
    own=${file#lib/} own=${own%.c}.h
    IFS= read -r line <"$file"
    case $line in
    '/*'*) ;;
    "#include \"$own\"") ;;
    *) fail "$file does not open with a comment that says what it is" ;;
    esac
done

# The page of "(docs: page, section)" is there: its name with blanks for hyphens, or its title.
titles=$(for page in docs/explanation/*.md; do
    basename "$page" .md | tr '-' ' '
    sed -n '1s/^# //p' "$page" | tr 'A-Z' 'a-z'
done)
pages=$(cat lib/*/*.[ch] lib/*/*/*.[ch] include/hbp/*.h | tr '\n' ' ' | sed 's/  *\*  */ /g' |
    grep -oE '\(docs: [a-z -]+' | sed 's/(docs: *//' | sort -u)
for page in $(echo "$pages" | tr ' ' '_'); do
    echo "$titles" | grep -qxE "(the )?$(echo "$page" | tr '_' ' ')" || fail "no page of docs/explanation/ is called '$(echo "$page" | tr '_' ' ')'"
done

# A file of the library that a comment or a page names is there: layer/file.h, lib/layer/file.c.
layers=$(echo lib/*/ | sed 's|lib/||g; s|/||g; s| |\||g')
named=$(find lib include docs tests README.md CONTRIBUTING.md \( -name '*.[ch]' -o -name '*.md' \) -exec grep -hoE "(^|[ (\`\"])(lib/)?($layers)/[a-z0-9_/]+\.[ch]\>" {} + |
    sed 's/^[^a-z]*//; s|^lib/||' | sort -u)
for file in $named; do
    [ -f "lib/$file" ] || [ -f "examples/executor/$file" ] || [ -f "tests/$file" ] || fail "lib/$file, which $(grep -rlF "$file" lib include docs tests CONTRIBUTING.md | head -n 1) names, is not there"
done

# A source without a test of its own stands in covered.txt beside the test that covers it. Tests are not sorted into the
# sub-folders of a layer, so that names are distinct within a layer.
for source in lib/*/*.c lib/*/*/*.c; do
    folder=${source#lib/} folder=${folder%%/*} name=$(basename "$source" .c)
    [ -f "tests/$folder/test_$name.c" ] && continue
    test=$(awk -v s="$source" '$1 == s { print $2 }' tests/house/covered.txt)
    if [ -z "$test" ]; then
        fail "$source has no tests/$folder/test_$name.c"
    elif [ ! -f "$test" ]; then
        fail "$source: covered.txt names $test, which is not there"
    fi
done
twice=$(for file in lib/*/*.[ch] lib/*/*/*.[ch]; do path=${file#lib/}; echo "${path%%/*}/$(basename "$file")"; done | sort | uniq -d)
[ -z "$twice" ] || fail "names that a layer has twice: $twice"
awk '!/^#/ && NF { print $1 }' tests/house/covered.txt | while read -r source; do
    [ -f "$source" ] || { echo "covered.txt names $source, which is not there"; exit 1; }
done || bad=1

# A call is a name, a '(' after it and neither part of a longer name nor a member.
banned='printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|putc|perror|abort|exit|_exit|quick_exit|atexit|getenv|secure_getenv|setenv|qsort|qsort_r|rand|srand|random|drand48|signal|sigaction|assert|time|clock|clock_gettime|gettimeofday|strtod|strtof|atof|setlocale|gets|strcpy|strcat|sprintf|vsprintf|malloc|calloc|realloc|free|alloca'
# allowed FILE CALLS: what one file may call for all that, as a pattern of lines "FILE:LINE:".
allowed() { printf '^%s:[0-9]*:(.*[^A-Za-z0-9_.>])?(%s) *\\(' "$1" "$2"; }
# Comments and strings are taken out first.
found=$(awk '
    FNR == 1 { comment = 0 }
    {
        line = $0; out = ""
        while (length(line)) {
            if (comment) {
                at = index(line, "*/")
                if (!at) { line = ""; break }
                line = substr(line, at + 2); comment = 0
            } else if (match(line, /"([^"\\]|\\.)*"|\/\*|\/\//)) {
                out = out substr(line, 1, RSTART - 1)
                token = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
                if (token == "/*") comment = 1
                else if (token == "//") line = ""
                else out = out "\"\""
            } else { out = out line; line = "" }
        }
        print FILENAME ":" FNR ":" out
    }' lib/*/*.[ch] lib/*/*/*.[ch] | grep -aE "(^|[^A-Za-z0-9_.>])($banned) *\\(" |
    grep -avE "$(allowed lib/base/memory.c 'malloc|calloc|realloc|free')" |
    grep -avE "$(allowed lib/base/worker.c clock_gettime)" | # says until when a wait lasts before it looks up
    grep -avE "$(allowed lib/glpk/glpk_solver.c clock_gettime)" | # waits for its worker; decides nothing by the clock
    grep -avE "$(allowed lib/step/problem.c clock_gettime)" || true) # the time limit of a step, where the caller sets one
[ -z "$found" ] || fail "the library calls what it may not:
$found"

version=$(sed -n 's/^project(hbp VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
grep -q "HBP_VERSION_STRING \"$version\"" include/hbp/base.h || fail "base.h is not of version $version"
grep -q "^## $version" CHANGELOG.md || fail "CHANGELOG.md has no section for $version"
exit $bad
