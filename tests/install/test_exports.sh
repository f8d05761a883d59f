#!/usr/bin/env bash
# Checks that the library exports all functions that its header declares, and
# no others.
#
#   test_exports.sh LIBRARY HEADER
set -euo pipefail
library=$1 header=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

nm -D --defined-only "$library" | awk '$2 != "A" { print $NF }' |
    sed 's/@.*//' | grep -vxE '__gcov.*' | sort >"$folder/shown"
tr '\n' ' ' <"$header" | sed -E 's:/\*[^*]*\*+([^/*][^*]*\*+)*/: :g' |
    tr ';' '\n' | grep OGRJOIN_API |
    sed -nE 's/^[^(]*[ *](ogrjoin_[a-z0-9_]+)\(.*/\1/p' |
    sort >"$folder/declared"
[ -s "$folder/declared" ]
diff "$folder/declared" "$folder/shown" ||
    { echo "FAILED: < declared and not shown, > shown and not declared"; exit 1; }
echo "$(wc -l <"$folder/shown") functions are shown"
