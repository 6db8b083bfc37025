# Words of words.txt in texts: the whole of a page but `code`, comments and names of a public header, string literals of a
# source, docstrings and comments of a Python module. A name in a header counts by its parts.
# usage: awk -f words.awk words.txt FILE...
function report(text, where,   k, low) {
    if (text !~ /[^ ]/) return
    low = " " tolower(text) " "
    for (k = 1; k <= phrases; k++) gsub(phrase[k], " ", low)
    gsub(/[^a-z0-9_-]+/, " ", low)
    if (low !~ "[ -](" any ")[ -]") return
    for (k = 1; k <= words; k++)
        if (match(low, "[ -](" word[k] ")[ -]")) {
            print where ": " substr(low, RSTART + 1, RLENGTH - 2) " -> " instead[k]
            found = 1
        }
}
# A line of a page without `code`, which may go on in the next line, and without where links go.
function page_text(line,   n, i, part, text) {
    gsub(/\]\([^)]*\)/, "]", line)
    if (line ~ /^ *```/) { fence = !fence; return "" }
    if (fence) return line
    if (line ~ /^ *$/) code = 0
    n = split(line, part, "`"); text = ""
    for (i = 1; i <= n; i++) {
        if (!code) text = text " " part[i]
        if (i < n) code = !code
    }
    return text
}
# What a line of C says in string literals; with `header`, its comments and names, too.
function c_text(line, header,   text, rest, piece) {
    if (header) { gsub(/_/, " ", line); return line }
    text = ""
    gsub(/\\\\/, "", line); gsub(/\\"/, " ", line); gsub(/\\[ntr]/, " ", line); gsub(/'"'/, "", line)
    if (comment) { if (!sub(/^.*\*\//, "", line)) return ""; comment = 0 }
    while (match(line, /"[^"]*"|\/\*|\/\//)) {
        piece = substr(line, RSTART, RLENGTH); rest = substr(line, RSTART + RLENGTH)
        if (piece == "//") break
        if (piece == "/*") {
            if (!match(rest, /\*\//)) { comment = 1; break }
            rest = substr(rest, RSTART + 2)
        } else if (line !~ /^ *#include/) text = text " " substr(piece, 2, length(piece) - 2)
        line = rest
    }
    return text
}
# Docstrings, literals and comments of a line of Python.
function python_text(line,   text, piece) {
    gsub(/``?[^`]*``?/, "", line)
    if (docstring) { if (line ~ /"""/) docstring = 0; return line }
    if (line ~ /"""/) { if (line !~ /""".*"""/) docstring = 1; return line }
    text = ""
    while (match(line, /"[^"]*"|#.*/)) {
        piece = substr(line, RSTART, RLENGTH); text = text " " piece
        line = substr(line, RSTART + RLENGTH)
    }
    return text
}
BEGIN { FS = "\t" }
FILENAME ~ /words\.txt$/ {
    if (/^#/) next
    if ($2 == "-") phrase[++phrases] = $1
    else { word[++words] = $1; instead[words] = $2; any = any (words > 1 ? "|" : "") $1 }
    next
}
FNR == 1 { comment = docstring = fence = code = 0; files++ }
FILENAME ~ /\.md$/ { report(page_text($0), FILENAME ":" FNR); next }
FILENAME ~ /^include\/.*\.h$/ { report(c_text($0, 1), FILENAME ":" FNR); next }
FILENAME ~ /\.py$/ { report(python_text($0), FILENAME ":" FNR); next }
{ report(c_text($0, 0), FILENAME ":" FNR) }
END { if (files < 100) { print "only " files " files were read"; found = 1 } exit found }
