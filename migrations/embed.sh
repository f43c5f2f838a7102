#!/bin/sh
# Writes a C file that holds the migrations: embed.sh OUTPUT 0001_name.sql …
set -eu
out=$1
shift
{
    printf '/* Made by migrations/embed.sh. */\n#include "scheduler/store/migration_store.h"\n\n'
    printf 'const struct migration store_migrations[] = {\n'
    for f in "$@"; do
        base=$(basename "$f" .sql)
        printf '    {%d, "%s",\n' "$(expr "${base%%_*}" + 0)" "${base#*_}"
        awk '{ gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); printf "     \"%s\\n\"\n", $0 }' "$f"
        printf '    },\n'
    done
    printf '};\nconst size_t store_migrations_count = %d;\n' "$#"
} >"$out"
