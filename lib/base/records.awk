# Makes lib/base/records.inc from the public headers: a row for each open struct, each of its fields and each constant that a
# field may be, in the order of the headers. tests/house/records.sh runs it and holds the file against what it prints.
#
# A field's comment may begin with what it may be, in brackets:
#   [0..9], [-1..2^20], [1..HBP_MAX_LENGTH], [0..1]   the least and the most, both allowed
#   [HBP_ZERO_*]                                        a constant of that name; [HBP_COMPOSITION_*, 0..3]: not all of them
#   [flag]                                              0 or nonzero
#   [HBP_STEP_METHODS]                                  a method of that list, by name; the field is a text
# and else with the shape of an array, [count]. Comments stand behind the field on its line, or on lines of their own before it.
function quoted(text) {
    gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text)
    return "\"" text "\""
}
function plain(comment) { # the text of /* ... */
    sub(/^\/\*[ \t\n]*/, "", comment); sub(/[ \t\n]*\*\/$/, "", comment)
    gsub(/\n[ \t]*\*/, "\n", comment); gsub(/[ \t\n]+/, " ", comment)
    sub(/^ /, "", comment); sub(/ $/, "", comment)
    return comment
}
function number(text) { # 2^20 -> INT64_C(1) << 20
    return substr(text, 1, 2) == "2^" ? "INT64_C(1) << " substr(text, 3) : text
}
function fault(text) { print "records: " text > "/dev/stderr"; bad = 1 }
function type_of(declared) {
    if (declared == "int32_t" || declared == "hbp_status") return "INT32"
    if (declared == "uint32_t") return "UINT32"
    if (declared == "int64_t") return "INT64"
    if (declared == "uint64_t") return "UINT64"
    if (declared == "double") return "DOUBLE"
    if (declared == "const char *") return "TEXT"
    return "POINTER"
}
function field(of, declaration, comment,    name, declared, text, inside, ends, kind, least, most, choices, shape, check) {
    gsub(/[ \t\n]+/, " ", declaration); sub(/^ /, "", declaration)
    if (match(declaration, /\(\*[a-z0-9_]+\)/)) name = substr(declaration, RSTART + 2, RLENGTH - 3)
    else { name = declaration; sub(/\[[^]]*\]$/, "", name); sub(/.*[ *]/, "", name) }
    declared = declaration
    if (declaration !~ /\(/) { sub(name "(\\[[^]]*\\])?$", "", declared); sub(/ $/, "", declared) }
    text = plain(comment); kind = type_of(declared); least = most = "0"; choices = ""; shape = "NULL"; check = "NONE"
    if (match(text, /^\[[^]]*\]+/)) {
        inside = substr(text, 2, RLENGTH - 2); text = substr(text, RLENGTH + 1); sub(/^[;,]? /, "", text)
        if (inside == "flag") check = "FLAG"
        else if (inside ~ /^HBP_[A-Z_]+_METHODS$/) { check = "METHOD"; choices = inside }
        else if (inside ~ /^HBP_[A-Z0-9_]+_\*/) {
            check = "RANGE"; choices = inside; sub(/_\*.*/, "", choices); used[choices] = 1
            sub(/^[^*]*\*(, )?/, "", inside)
            if (inside == "") least = most = ""
            else if (split(inside, ends, /\.\./) == 2) { least = number(ends[1]); most = number(ends[2]) }
            else fault(of "." name ": what is [" inside "]?")
        }
        else if (split(inside, ends, /\.\./) == 2) { check = "RANGE"; least = number(ends[1]); most = number(ends[2]) }
        else shape = quoted(inside)
        if ((check == "METHOD") != (kind == "TEXT" && check != "NONE")) fault(of "." name " is a " kind ", no text with the name of a method")
        if (check != "NONE" && check != "METHOD" && kind != "INT32" && kind != "INT64" && (kind != "DOUBLE" || check != "RANGE")) fault(of "." name " is no number that a range can check")
    }
    rows++; row_choices[rows] = choices; row_least[rows] = least; row_most[rows] = most
    row_head[rows] = "FIELD(" of ", " name ", " kind ", " quoted(declared) ", " check ", "
    row_tail[rows] = (choices == "" ? "NULL" : quoted(choices)) ", " shape ", " quoted(text) ")"
}
# Takes the next comment or declaration off `rest` into `item`; a declaration ends in ';' in a struct, in ',' in an enum, the
# last of which has none. `gap` is what stood before it.
function take(end,    at, comment) {
    match(rest, /^[ \t\n]*/); gap = substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1)
    if (rest == "") return 0
    is_comment = substr(rest, 1, 2) == "/*"
    if (is_comment) at = index(rest, "*/") + 1
    else {
        at = index(rest, end); comment = index(rest, "/*")
        if (!at || (comment && comment < at)) at = comment ? comment - 1 : length(rest)
    }
    item = substr(rest, 1, at); rest = substr(rest, at + 1)
    return 1
}
function structure(of, body, before,    pending, declaration) {
    row_head[++rows] = "STRUCT(" of ", " quoted(plain(before)) ")"
    rest = body; pending = ""; declaration = ""
    while (take(";")) {
        if (is_comment && declaration != "" && gap !~ /\n/) { field(of, declaration, item); declaration = "" }
        else if (is_comment) { if (declaration != "") field(of, declaration, ""); declaration = ""; pending = item }
        else {
            if (declaration != "") field(of, declaration, "")
            sub(/;$/, "", item); declaration = item
            if (pending != "") { field(of, declaration, pending); declaration = ""; pending = "" }
        }
    }
    if (declaration != "") field(of, declaration, "")
}
function constant(declaration, comment,    name, value) {
    gsub(/[ \t\n]+$/, "", declaration); sub(/,$/, "", declaration)
    name = value = declaration; sub(/[ \t\n]*=.*/, "", name); sub(/.*=[ \t\n]*/, "", value)
    if (name !~ /^HBP_/ || name ~ /_(COUNT|TYPES|CHOICES)$/) return
    constants++; constant_name[constants] = name; constant_text[constants] = plain(comment); constant_value[constants] = value + 0
}
function enumeration(body,    declaration, pending) {
    rest = body; declaration = ""; pending = ""
    while (take(",")) {
        if (is_comment && declaration != "") { constant(declaration, item); declaration = "" }
        else if (is_comment) pending = item
        else {
            if (declaration != "") constant(declaration, "")
            declaration = item
            if (pending != "") { constant(declaration, pending); declaration = ""; pending = "" }
        }
    }
    if (declaration != "") constant(declaration, "")
}
# The last comment of `text`, which ends with it.
function last_comment(text,    at, found) {
    if (text !~ /\*\/\n$/) return ""
    while ((at = index(text, "/*")) > 0) { found = substr(text, at); text = substr(text, at + 2) }
    sub(/\n$/, "", found)
    return found
}
function read_header(text,    before, of, end) {
    while (match(text, /(typedef struct hbp_[a-z0-9_]+|enum) \{/)) {
        before = last_comment(substr(text, 1, RSTART - 1)); of = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (of ~ /^enum/) { end = index(text, "};"); enumeration(substr(text, 1, end - 1)) }
        else {
            sub(/^typedef struct /, "", of); sub(/ \{$/, "", of)
            end = index(text, "} " of ";"); structure(of, substr(text, 1, end - 1), before)
        }
        text = substr(text, end + 1)
    }
}
FNR == 1 && NR > 1 { read_header(whole); whole = "" }
{ whole = whole $0 "\n" }
END {
    read_header(whole)
    for (i = 1; i <= constants; i++) { # the longest name that it begins with
        owner = ""
        for (choices in used) if (index(constant_name[i], choices "_") == 1 && length(choices) > length(owner)) owner = choices
        if (owner == "") continue
        short = tolower(substr(constant_name[i], length(owner) + 2)); gsub(/_/, "-", short)
        choice_row[++choice_rows] = "CHOICE(" quoted(owner) ", " constant_name[i] ", " quoted(short) ", " quoted(constant_text[i]) ")"
        if (!(owner in lowest) || constant_value[i] < lowest[owner]) lowest[owner] = constant_value[i]
        if (!(owner in highest) || constant_value[i] > highest[owner]) highest[owner] = constant_value[i]
    }
    for (choices in used) if (!(choices in lowest)) fault("no constant begins with " choices "_")
    print "/* What the public headers say of each open struct. Made by records.awk; do not edit. */"
    for (i = 1; i <= rows; i++) {
        if (row_tail[i] == "") { print row_head[i]; continue }
        if (row_least[i] == "") { row_least[i] = lowest[row_choices[i]]; row_most[i] = highest[row_choices[i]] }
        print row_head[i] row_least[i] ", " row_most[i] ", " row_tail[i]
    }
    for (i = 1; i <= choice_rows; i++) print choice_row[i]
    exit bad
}
