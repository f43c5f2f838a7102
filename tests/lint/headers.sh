#!/bin/sh
# Every header of ours compiles on its own: headers.sh ROOT CC
set -eu
cd "$1"
cc=$2
bad=0 seen=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for h in $(git ls-files --cached --others --exclude-standard '*.h'); do
    seen=$((seen + 1))
    printf '#include "%s"\n' "$h" >"$tmp/one.c"
    if ! "$cc" -std=gnu17 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Werror -I. -I/usr/include/postgresql \
        "$tmp/one.c" 2>"$tmp/log"; then
        echo "$h does not compile on its own:"
        head -n 5 "$tmp/log"
        bad=1
    fi
done
echo "$seen headers"
[ "$seen" -gt 0 ] && exit $bad
