#!/bin/sh
# A manual page from what a program prints for --help, which follows from its table of options:
# man_page.sh PROGRAM "SUMMARY" VERSION
set -eu
name=$(basename "$1")
help=$("$1" --help)
printf '%s\n' "$help" | awk -v name="$name" -v summary="$2" -v version="$3" '
function roff(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    return s ~ /^[.\x27]/ ? "\\&" s : s
}
NR == 1 {
    sub(/^[Uu]sage: */, "")
    printf ".TH %s 1 \"\" \"assay %s\" \"User Commands\"\n.nh\n", toupper(name), version
    printf ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n%s\n.SH DESCRIPTION\n%s.\n", name, summary, roff($0), roff(name ": " summary)
    next
}
/^ +-/ {
    if (!has_options++)
        print ".SH OPTIONS"
    sub(/^ +/, "")
    at = match($0, /   *[^ ]/)
    printf ".TP\n\\fB%s\\fR\n%s\n", roff(at ? substr($0, 1, at - 1) : $0), at ? roff(substr($0, at + RLENGTH - 1)) : ""
    next
}
/^$/ { print ".PP"; next }
{ sub(/^ +/, ""); print roff($0) }'
