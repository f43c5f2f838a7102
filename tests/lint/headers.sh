#!/bin/sh
# Every header of ours compiles on its own: headers.sh ROOT CC BUILD
#
# A header that a file of the build includes before anything else has been compiled on its own by the build, which is
# nine of ten: house style has foo.c include foo.h first. The others are compiled here.
set -eu
cd "$1"
cc=$2 build=$3
bad=0 seen=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git ls-files --cached --others --exclude-standard '*.h' | sort -u >"$tmp/headers"
python3 -c 'import json, os, sys
for unit in json.load(open(sys.argv[1])):
    print(os.path.relpath(os.path.join(unit["directory"], unit["file"])))' "$build/compile_commands.json" |
    grep '\.c$' | sort -u | while read -r file; do [ ! -e "$file" ] || echo "$file"; done |
    xargs awk 'FNR == 1 { done = 0 }
        !done && /^[ \t]*#/ { done = 1; if ($1 == "#include" && $2 ~ /^"/) print substr($2, 2, length($2) - 2) }' |
    sort -u >"$tmp/first"
for h in $(comm -23 "$tmp/headers" "$tmp/first"); do
    seen=$((seen + 1))
    printf '#include "%s"\n' "$h" >"$tmp/one.c"
    if ! "$cc" -std=gnu17 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Werror -I. -I/usr/include/postgresql \
        "$tmp/one.c" 2>"$tmp/log"; then
        echo "$h does not compile on its own:"
        head -n 5 "$tmp/log"
        bad=1
    fi
done
first=$(comm -12 "$tmp/headers" "$tmp/first" | wc -l)
echo "$first headers are the first of a file of the build, $seen were compiled"
[ "$first" -gt 0 ] && [ "$seen" -gt 0 ] && exit $bad
