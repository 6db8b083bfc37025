# Makes the pages of docs/reference/ from the public headers; tests/house/reference.sh runs it. It reads, in this order,
#   what=python   a line a function that Python calls: its name, and what of Python calls it
#   what=records  lib/base/records.inc: range, choices and text of every field
#   what=header   the headers, and writes OUT/<header>.md and OUT/README.md.
#
# A header is a comment that says what it is for, then blocks with blank lines between them: a section (a comment that begins
# with ---- Name ----), text (a comment alone), or a comment and the declarations that it is about.
function fault(text) { print "reference: " text > "/dev/stderr"; bad = 1 }
function trim(text) { gsub(/^[ \t\n]+|[ \t\n]+$/, "", text); return text }
function page_of(header) { return header ".md" }

# --- records --------------------------------------------------------------------------------------------------------

# The arguments of STRUCT(...), FIELD(...), CHOICE(...) into part[1..]; strings without their quotes.
function cut(line,    n, at, c, text, inside) {
    sub(/^[A-Z]+\(/, "", line); sub(/\)$/, "", line)
    n = 1; text = ""; inside = 0; split("", part)
    for (at = 1; at <= length(line); at++) {
        c = substr(line, at, 1)
        if (inside && c == "\\") text = text substr(line, ++at, 1)
        else if (c == "\"") inside = !inside
        else if (!inside && c == ",") { part[n++] = text; text = ""; while (substr(line, at + 1, 1) == " ") at++ }
        else text = text c
    }
    part[n] = text
}
function limit(text) {
    if (match(text, /^INT64_C\(1\) << /)) return "2^" substr(text, RLENGTH + 1)
    return text == "INT64_MAX" ? "2^63 - 1" : text == "INT32_MAX" ? "2^31 - 1" : text
}
# What the field in part[] may be.
function range_of(    c, text, least, most) {
    if (part[5] == "FLAG") return "flag"
    least = part[6] + 0; most = part[7] + 0
    if (part[8] ~ /_METHODS$/) return marked(part[8])
    if (part[8] != "NULL") {
        for (c = 1; c <= choices[part[8]]; c++)
            if (part[5] != "RANGE" || (c - 1 >= least && c - 1 <= most)) text = text (text == "" ? "" : ", ") choice[part[8], c]
        return text " (" marked(part[8] "_*") ")"
    }
    return part[5] == "RANGE" ? limit(part[6]) ".." marked(limit(part[7])) : ""
}

# --- headers into items ---------------------------------------------------------------------------------------------

# Items are numbered over all headers: kind (section, text, functions, struct, object, enum, constants, methods, type), name (the
# heading), comment (paragraphs), and what is declared.
function item(kind, name, comment) {
    kind_of[++items] = kind; name_of[items] = name; comment_of[items] = comment; header_of[items] = header
    if (!(header in first_item)) first_item[header] = items
    last_item[header] = items
    return items
}
# The text of a comment, a line each: paragraphs with an empty line between.
function plain(comment) {
    sub(/^\/\*[ \t]*/, "", comment); sub(/[ \t\n]*\*\/[ \t]*$/, "", comment)
    gsub(/\n \*\n/, "\n\n", comment); gsub(/\n \*\n/, "\n\n", comment); gsub(/\n \* ?/, "\n", comment)
    return comment
}
function place(name, anchor) {
    known[name] = 1
    if (name in at_page) return
    at_page[name] = header; at_anchor[name] = tolower(anchor)
}
function last_name(declaration) { # of a typedef
    sub(/;[ \t\n]*$/, "", declaration); sub(/.*[ *]/, "", declaration)
    return declaration
}
function function_name(declaration) {
    sub(/\(.*/, "", declaration); sub(/.*[ *]/, "", declaration)
    return declaration
}
# The constants of an enum's body into rows of item `n`.
function enumeration(n, body,    at, entry, comment, name, value, next_value) {
    next_value = 0
    while ((body = trim(body)) != "") {
        comment = ""
        match(body, /^[^,\/]*/); entry = trim(substr(body, 1, RLENGTH)); body = substr(body, RLENGTH + 1)
        sub(/^,/, "", body); sub(/^[ \t\n]*/, "", body)
        if (substr(body, 1, 2) == "/*") { at = index(body, "*/"); comment = substr(body, 1, at + 1); body = substr(body, at + 2) }
        sub(/^[ \t\n]*,/, "", body)
        if (entry == "") { fault(header ": what is " body "?"); return }
        name = value = entry; sub(/[ \t\n]*=.*/, "", name)
        if (!sub(/[^=]*=[ \t\n]*/, "", value)) value = next_value
        next_value = value + 1
        if (name !~ /_(COUNT|KINDS|CHOICES)$/) constant(n, name, value, comment)
    }
}
function constant(n, name, value, comment) {
    constants[n]++
    constant_name[n, constants[n]] = name; constant_value[n, constants[n]] = value
    comment = plain(comment); gsub(/[ \t\n]+/, " ", comment)
    constant_text[n, constants[n]] = comment; known[name] = 1
}
# The rows X(id, name, paper, text) of a list of methods.
function methods(n, code,    rows, k, at) {
    gsub(/[ \t]*\\\n[ \t]*/, " ", code); gsub(/" +"/, "", code)
    at = split(code, rows, / X\(/)
    for (k = 2; k <= at; k++) {
        sub(/\)[ \n]*$/, ")", rows[k]); cut("X(" rows[k])
        constants[n]++; constant_name[n, constants[n]] = part[2]; constant_value[n, constants[n]] = part[3]; constant_text[n, constants[n]] = part[4]
    }
}
# What the constants of item `n` begin with, "HBP_ZERO_"; "" where that is no more than HBP_.
function prefix_of(n,    prefix, k) {
    prefix = constant_name[n, 1]
    for (k = 2; k <= constants[n]; k++)
        while (index(constant_name[n, k], prefix) != 1) prefix = substr(prefix, 1, length(prefix) - 1)
    sub(/[^_]*$/, "", prefix)
    return prefix ~ /^HBP_[A-Z]/ ? prefix : ""
}
function names_of_constants(n,    k, text) {
    for (k = 1; k <= constants[n]; k++) text = text (k > 1 ? ", " : "") constant_name[n, k]
    return constants[n] > 2 ? constant_name[n, 1] " to " constant_name[n, constants[n]] : text
}
# Declarations `code` that stand below `comment`, each ended by a newline of its own.
function declare(code, comment,    n, name, body, at, rows, row, i) {
    if (code ~ /^HBP_API/) {
        gsub(/HBP_API /, "", code); gsub(/\n        /, "\n", code)
        at = split(code, rows, /;\n/); n = 0
        for (i = 1; i < at; i++) {
            name = function_name(rows[i])
            if (!n) { n = item("functions", name, comment); if (comment == "") fault(header ": " name " has no comment") }
            functions[n]++; function_of[n, functions[n]] = name; declared[name] = rows[i] ";"
            place(name, name_of[n])
        }
        code_of[n] = trim(code)
    } else if (code ~ /^typedef struct [a-z0-9_]+ \{/) {
        name = code; sub(/^typedef struct /, "", name); sub(/ \{.*/, "", name)
        n = item("struct", name, comment); place(name, name)
        if (!fields[name]) fault(header ": " name " has no record")
    } else if (code ~ /^typedef struct/) {
        at = split(code, rows, /;\n/)
        for (i = 1; i < at; i++) { name = last_name(rows[i]); n = item("object", name, i == 1 ? comment : ""); place(name, name); code_of[n] = rows[i] ";" }
    } else if (code ~ /^typedef/) {
        name = code
        if (match(code, /\(\*hbp_[a-z0-9_]+\)/)) name = substr(code, RSTART + 2, RLENGTH - 3)
        else name = last_name(code)
        n = item("type", name, comment); place(name, name); code_of[n] = trim(code)
    } else if (code ~ /^enum \{/) {
        body = code; sub(/^enum \{/, "", body); sub(/\};[ \t\n]*$/, "", body)
        if (body ~ /#define/) return # made of a list above it
        n = item("enum", "", comment); enumeration(n, body)
    } else if (code ~ /^#define HBP_[A-Z_]+_METHODS\(X\)/) {
        name = code; sub(/^#define /, "", name); sub(/\(.*/, "", name)
        n = item("methods", name, comment); place(name, name); methods(n, code)
    } else if (code ~ /^#define [A-Z0-9_]+\(X\)/) {
        name = code; sub(/^#define /, "", name); sub(/\(.*/, "", name)
        n = item("constants", name, comment)
        at = split(code, rows, /\n/)
        for (i = 2; i <= at; i++) {
            row = rows[i]
            if (row !~ /X\(/) continue
            sub(/.*X\(/, "", row); name = row; sub(/,.*/, "", name)
            sub(/^[^,]*, /, "", row); value = row; sub(/,.*/, "", value)
            sub(/^[^"]*"/, "", row); sub(/".*/, "", row)
            constant(n, name, value, row)
        }
    } else if (code ~ /^#define/) {
        # Constants that follow one another are one table, each with its own comment.
        n = joined && kind_of[items] == "constants" && header_of[items] == header ? items : item("constants", "", "")
        at = split(code, rows, /\n/)
        for (i = 1; i < at; i++) {
            name = rows[i]; sub(/^#define /, "", name); value = name; sub(/ .*/, "", name); sub(/^[^ ]* +/, "", value)
            constant(n, name, value, i == 1 ? comment : "")
        }
    } else fault(header ": what is " code)
}
function comment_alone(text,    name) {
    if (match(text, /^---- [^\n]* ----/)) {
        name = substr(text, 6, RLENGTH - 10); item("section", name, trim(substr(text, RLENGTH + 1)))
    } else if (trim(text) != "") item("text", "", text)
}
# Takes a block's lines apart: a comment, what it is about, and again.
function block_ends(    comment, code, at, line, rows, n, i, depth) {
    if (block == "") { joined = 0; return }
    n = split(block, rows, /\n/); comment = code = ""; has_comment = 0; joined = 0
    for (i = 1; i < n; i++) {
        line = rows[i]
        if (line ~ /^\/\*/) {
            if (code != "") { declare(code, comment); joined = 1; code = "" }
            else if (has_comment) comment_alone(comment)
            comment = line; has_comment = 1
            while (index(line, "*/") == 0 && i < n) { line = rows[++i]; comment = comment "\n" line }
            comment = plain(comment)
        } else {
            # Another kind of declaration begins.
            if (code != "" && depth == 0 && line ~ /^[^ \t}]/ && sort_of(line) != sort_of(code)) { declare(code, comment); joined = 1; code = ""; comment = ""; has_comment = 0 }
            code = code line "\n"
            depth += (line ~ /\{$/) - (line ~ /^\}/)
            if (depth == 0 && line ~ /^\}.*;$/) { declare(code, comment); joined = 1; code = ""; comment = ""; has_comment = 0 }
        }
    }
    if (code != "") declare(code, comment)
    else if (has_comment) comment_alone(comment)
    block = ""
}
function sort_of(code) { return code ~ /^HBP_API/ ? "function" : code ~ /^#define/ ? "define" : code ~ /^typedef struct [a-z0-9_]+ [a-z]/ ? "object" : "other" }

# --- prose ----------------------------------------------------------------------------------------------------------

function reference(name) { # where `name` stands, seen from the page that is written; "" where nowhere, or here
    if (!(name in at_page) || name == self) return ""
    return (at_page[name] == page ? "" : page_of(at_page[name])) "#" at_anchor[name]
}
function marked(token,    to) {
    to = token ~ /^[A-Za-z0-9_]+\*?$/ ? reference(token) : ""
    if (token ~ /^[^A-Za-z]*$/) return token
    return to == "" ? "`" token "`" : "[`" token "`](" to ")"
}
function docs_link(name,    slug) {
    slug = name; gsub(/ /, "-", slug)
    if (name in title) slug = title[name]
    if (!(slug in explained)) { fault(page ": there is no page (docs: " name ")"); return name }
    return "[" name "](../explanation/" slug ".md)"
}
# A comment's text in Markdown: names in back-ticks, with links.
function prose(text,    out, token, at) {
    out = ""
    while (text != "") {
        if (match(text, /^`[^`]*`/)) { token = substr(text, 2, RLENGTH - 2); out = out marked(token) }
        else if (match(text, /^"[^"]*"/)) { token = substr(text, 1, RLENGTH); out = out (token ~ /[_=*<\[]/ ? "`" token "`" : token) }
        else if (match(text, /^\{[^}]*\}/)) out = out "`" substr(text, 1, RLENGTH) "`"
        else if (match(text, /^docs: [a-z][a-z -]*/)) { at = RLENGTH; token = substr(text, 7, at - 6); out = out "docs: " docs_link(token); RLENGTH = at }
        else if (match(text, /^docs\/explanation\/[a-z-]+\.md/)) { at = RLENGTH; token = substr(text, 18, at - 20); out = out docs_link(token); RLENGTH = at }
        else if (match(text, /^arXiv [0-9]+\.[0-9]+/)) { token = substr(text, 7, RLENGTH - 6); out = out "[arXiv " token "](https://arxiv.org/abs/" token ")" }
        else if (match(text, /^hbp\/[a-z]+\.h/)) { token = substr(text, 5, RLENGTH - 6); out = out (token in first_item ? "[`hbp/" token ".h`](" page_of(token) ")" : "`hbp/" token ".h`") }
        else if (match(text, /^\*[a-z_]+/)) out = out "`" substr(text, 1, RLENGTH) "`"
        else if (match(text, /^[A-Za-z_][A-Za-z0-9_]*/)) {
            token = substr(text, 1, RLENGTH); at = RLENGTH
            if (token ~ /^(hbp|HBP)_.*_$/ && substr(text, at + 1, 1) == "*") { at++; token = token "*" }
            else if (substr(text, at + 1, 1) == "[") at = close_of(text, at + 1)
            token = substr(text, 1, at)
            if (token ~ /^(hbp|HBP)_[A-Za-z0-9_]+$/ && !(token in known)) fault(page ": there is no " token)
            out = out (token ~ /_|\[/ ? marked(token) : token); RLENGTH = at
        }
        else if (match(text, /^[0-9]+(\.[0-9]+)?[A-Za-z]*/)) out = out substr(text, 1, RLENGTH)
        else { RLENGTH = 1; token = substr(text, 1, 1); out = out (token == "<" ? "&lt;" : token == "*" ? "\\*" : token) }
        text = substr(text, RLENGTH + 1)
    }
    return out
}
function close_of(text, at,    depth) { # of the bracket that opens at `at`
    depth = 0
    for (; at <= length(text); at++) {
        if (substr(text, at, 1) == "[") depth++
        else if (substr(text, at, 1) == "]" && --depth == 0) return at
    }
    return length(text)
}
function cell(text) { gsub(/\n/, " ", text); text = prose(text); gsub(/\|/, "\\|", text); return text }
# Paragraphs; what is indented stands as it is.
function paragraphs(text,    n, i, rows, paragraph, verbatim) {
    n = split(trim(text), rows, /\n/); paragraph = verbatim = ""
    for (i = 1; i <= n + 1; i++) {
        if (i <= n && rows[i] ~ /^  /) { end_paragraph(paragraph); paragraph = ""; verbatim = verbatim substr(rows[i], 3) "\n"; continue }
        if (verbatim != "") { print "\n```text\n" verbatim "```" > file; verbatim = "" }
        if (i > n || rows[i] == "") { end_paragraph(paragraph); paragraph = "" }
        else paragraph = paragraph (paragraph == "" ? "" : " ") rows[i]
    }
}
function end_paragraph(text) { if (text != "") print "\n" prose(text) > file }
function first_sentence(text,    at, from, rest) {
    sub(/\n\n.*/, "", text); sub(/\n  .*/, "", text); gsub(/\n/, " ", text); from = ""
    while (match(text, /[.:;] /) || match(text, /\.$/)) {
        from = from substr(text, 1, RSTART - 1); rest = substr(text, RSTART + 2)
        if (substr(text, RSTART, 1) == "." && from !~ /\.$/ && (rest == "" || rest ~ /^[A-Z`*"]/)) return from "."
        from = from substr(text, RSTART, 2); text = rest
    }
    return from text
}

# --- pages ----------------------------------------------------------------------------------------------------------

function write_fields(of,    r, ranged, range, type, row) {
    ranged = 0
    for (r = 1; r <= fields[of]; r++) { cut(field[of, r]); if (range_of() != "") ranged = 1 }
    print (ranged ? "\n| field | type | range or choices | text |\n|---|---|---|---|" : "\n| field | type | text |\n|---|---|---|") > file
    for (r = 1; r <= fields[of]; r++) {
        cut(field[of, r])
        type = "`" part[4] "`"; if (part[9] != "NULL") type = type " [" part[9] "]"
        row = "| `" part[2] "` | " type " | "
        if (ranged) { range = range_of(); row = row range " | " }
        print row cell(part[10]) " |" > file
    }
}
function write_methods(n,    k) {
    print "\n| method | paper | what it does |\n|---|---|---|" > file
    for (k = 1; k <= constants[n]; k++) print "| `" constant_name[n, k] "` | " cell(constant_value[n, k]) " | " cell(constant_text[n, k]) " |" > file
}
function write_constants(n,    k) {
    print "\n| constant | value | text |\n|---|---|---|" > file
    for (k = 1; k <= constants[n]; k++) {
        print "| `" constant_name[n, k] "` | " (constant_value[n, k] ~ /^-?[0-9]+$/ ? constant_value[n, k] : "`" constant_value[n, k] "`") " | " cell(constant_text[n, k]) " |" > file
    }
}
# What makes an object, and what frees it.
function write_object(of,    n, k, name, makers, free) {
    makers = free = ""
    for (n = 1; n <= items; n++)
        for (k = 1; k <= functions[n]; k++) {
            name = function_of[n, k]
            if (declared[name] ~ ("[(, \n]" of " \\*\\*[a-z]+\\)") && declared[name] !~ ("const " of " \\*\\*")) makers = makers (makers == "" ? "" : ", ") marked(name)
            if (name == of "_free") free = name
        }
    if (makers != "") print "\nMade by " makers (free == "" ? "" : "; freed by " marked(free)) "." > file
}
function write_table(    n, k, names) {
    print "\n| function | what it does |\n|---|---|" > file
    for (n = first_item[page]; n <= last_item[page]; n++) {
        if (kind_of[n] != "functions") continue
        names = ""; for (k = 1; k <= functions[n]; k++) names = names (k > 1 ? ", " : "") marked(function_of[n, k])
        self = function_of[n, 1]; print "| " names " | " cell(first_sentence(comment_of[n])) " |" > file; self = ""
    }
}
function write_python(n,    k, name, text) {
    text = ""
    for (k = 1; k <= functions[n]; k++)
        if ((name = function_of[n, k]) in python && index(text, python[name]) == 0) text = text (text == "" ? "" : ", ") python[name]
    if (text != "") print "\nPython: " text "." > file
}
function write_page(    n, kind) {
    file = out "/" page_of(page)
    print "# hbp/" page ".h\n\nMade from [the header](../../include/hbp/" page ".h) by `tests/house/reference.sh --write .`; " library(page) "." > file
    self = ""; paragraphs(purpose[page])
    print "\n**Stability:** " prose(stability[page]) > file
    write_table()
    for (n = first_item[page]; n <= last_item[page]; n++) {
        kind = kind_of[n]; self = name_of[n]
        if (kind == "section") { self = ""; print "\n## " name_of[n] > file }
        else if (kind != "text") print "\n### " name_of[n] > file
        if (kind == "functions" || kind == "type" || (kind == "object" && code_of[n] !~ /^typedef struct/)) print "\n```c\n" code_of[n] "\n```" > file
        paragraphs(comment_of[n])
        if (kind == "functions") write_python(n)
        else if (kind == "object") write_object(name_of[n])
        else if (kind == "struct") write_fields(name_of[n])
        else if (kind == "methods") write_methods(n)
        else if (kind == "enum" || kind == "constants") write_constants(n)
    }
    close(file)
}
function library(header) { return header == "io" || header == "glpk" ? "in `libhbp-" header "`" : "in `libhbp`, by `#include <hbp/hbp.h>`" }
function write_front(    i, n, text) {
    file = out "/README.md"; page = self = ""
    print "# Reference\n\nWhat the headers in `include/hbp/` say, a page each, made by `tests/house/reference.sh --write .`, not by hand.\n" > file
    print "What is **stable** only grows: functions are added, fields are appended, zero stays the default of each. What is **advanced** may change until 1.0," > file
    print "and the [changelog](../../CHANGELOG.md) says how ([what you can rely on](../explanation/promises.md)).\n\n| header | for | stability |\n|---|---|---|" > file
    for (i = 1; i <= headers; i++) {
        text = first_sentence(stability[header_at[i]]); sub(/\.$/, "", text)
        print "| [hbp/" header_at[i] ".h](" page_of(header_at[i]) ") | " cell(first_sentence(purpose[header_at[i]])) " | " prose(text) " |" > file
    }
    print "\n## Options\n\nZero is the default of every field; what lies outside a range is refused with `HBP_E_INVALID`. `hbp COMMAND --help` has the options of" > file
    print "the command, which take their ranges, choices and texts from here.\n" > file
    for (n = 1; n <= items; n++) if (kind_of[n] == "struct" && name_of[n] ~ /_options$|^hbp_(model|machine|vlm)_fields$/) print "- " marked(name_of[n]) > file
    close(file)
}

# --- input ----------------------------------------------------------------------------------------------------------

what == "pages" { explained[$1] = 1; name = tolower($0); sub(/^[^ ]* # /, "", name); title[name] = $1; next }
what == "python" { name = $1; sub(/^[^ ]* /, ""); python[name] = $0; next }
what == "records" && /^FIELD/ { cut($0); if (part[2] != "struct_size") field[part[1], ++fields[part[1]]] = $0; next }
what == "records" && /^CHOICE/ { cut($0); choice[part[1], ++choices[part[1]]] = part[3]; next }
what == "records" { next }
FNR == 1 {
    block_ends(); header = FILENAME; sub(/.*\//, "", header); sub(/\.h$/, "", header)
    header_at[++headers] = header; block = opening = ""; begun = in_comment = skipped = 0
}
!begun { # the first comment says what the header is for
    opening = opening $0 "\n"
    if (!index($0, "*/")) next
    begun = 1; sub(/\n$/, "", opening); opening = plain(opening)
    if ((at = index(opening, "\n\nStability: "))) { stability[header] = substr(opening, at + 13); gsub(/\n/, " ", stability[header]); opening = substr(opening, 1, at - 1) }
    else fault(header ": the first comment ends without a paragraph that begins with Stability:")
    purpose[header] = opening; next
}
/^#if/ && !/^#ifndef HBP_[A-Z]+_H$/ { skipped = 1 }
/^#endif/ { skipped = 0; next }
skipped || /^#(ifndef|include|undef)/ || /^#define HBP_[A-Z]+_H$/ || /^HBP_(BEGIN|END)_DECLS$/ { next }
{ in_comment = in_comment ? !index($0, "*/") : /^\/\*/ && !index($0, "*/") }
/^$/ && !in_comment { block_ends(); next }
{ block = block $0 "\n" }
END {
    block_ends()
    # A table of constants is headed by what they all begin with, unless another's begin so, too.
    for (n = 1; n <= items; n++) if (kind_of[n] == "enum" || kind_of[n] == "constants") begins[prefix_of(n)]++
    for (n = 1; n <= items; n++) {
        if (kind_of[n] != "enum" && kind_of[n] != "constants") continue
        prefix = prefix_of(n); header = header_of[n]
        if (name_of[n] == "") name_of[n] = prefix != "" && begins[prefix] == 1 && constants[n] > 1 ? prefix "*" : names_of_constants(n)
        anchor = name_of[n]; gsub(/[^A-Za-z0-9_ -]/, "", anchor); gsub(/ /, "-", anchor)
        place(name_of[n], anchor)
        for (k = 1; k <= constants[n]; k++) if (constant_name[n, k] !~ /^HBP_(E_|OK$)/) place(constant_name[n, k], anchor)
    }
    for (i = 1; i <= headers; i++) { page = header_at[i]; write_page() }
    write_front()
    exit bad
}
