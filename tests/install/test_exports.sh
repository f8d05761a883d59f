#!/usr/bin/env bash
# The library shows the functions that its headers declare with OJ_EXPORT, all
# of them and nothing else; and every function of a public header is one.
#
#   test_exports.sh LIBRARY SOURCE
set -euo pipefail
library=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Declarations of the headers given, one a line, without comments, directives
# and bodies of functions.
declarations() {
    sed -E '/^extern "C" \{/d; /^ *#/{:a; /\\$/{N; ba}; d}' "$@" |
        tr '\n' ' ' |
        sed -E 's:/\*[^*]*\*+([^/*][^*]*\*+)*/: :g' |
        sed -E ':a; s/\{[^{}]*\}/;/g; ta' | tr ';' '\n'
}
# The functions among them.
functions() {
    sed -nE 's/^[^(]*[ *](oj_[a-z0-9_]+)\(.*/\1/p' | sort -u
}

nm -D --defined-only "$library" | awk '{print $NF}' |
    grep -vxE '_init|_fini|_edata|_end|__bss_start|__gcov.*' |
    sort >"$folder/shown"
declarations "$source"/flatten/*/*.h "$source"/algs/*.h "$source"/algs/*/*.h |
    grep OJ_EXPORT | functions >"$folder/declared"
[ -s "$folder/declared" ]
diff "$folder/declared" "$folder/shown" ||
    { echo "FAILED: < declared and not shown, > shown and not declared"; exit 1; }

mapfile -t public < <(sed -n '/^set(OJ_PUBLIC_HEADERS/,/)/p' \
    "$source/CMakeLists.txt" | grep -oE '[a-z_/]+/[a-z_]+\.h')
(cd "$source" && declarations "${public[@]}") |
    grep -vE '^ *(static|typedef) ' | functions >"$folder/public"
[ -s "$folder/public" ]
hidden=$(comm -23 "$folder/public" "$folder/shown")
[ -z "$hidden" ] || { echo "FAILED: public and not shown: $hidden"; exit 1; }
echo "$(wc -l <"$folder/shown") functions are shown," \
    "$(wc -l <"$folder/public") of them in public headers"
