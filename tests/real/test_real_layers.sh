#!/usr/bin/env bash
# Joins real layers and has every pair and distance compared with GEOS; counts
# of matched rows are in the cases too.
#
#   test_real_layers.sh OGRJOIN CASES DATA
#
# DATA: the folder of the layers, unless OGRJOIN_TEST_DATA says another.
# Ends with 77 (skipped) when no join could be tried.
set -uo pipefail
ogrjoin=$1 cases=$2 data=${OGRJOIN_TEST_DATA:-$3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0
while IFS='|' read -r matched input input_layer join join_layer options; do
    case $matched in '#'* | '') continue ;; esac
    matched=${matched// /} input=${input// /} join=${join// /}
    input_layer=${input_layer// /} join_layer=${join_layer// /}
    name="$input x $join $join_layer $options"
    if [ ! -e "$data/$input" ] || [ ! -e "$data/$join" ]; then
        skipped=$((skipped + 1))
        continue
    fi
    start=$SECONDS
    read -ra words <<<"-op nearest -q $options"
    [ "$input_layer" = - ] || words+=(-input_layer "$input_layer")
    [ "$join_layer" = - ] || words+=(-join_layer "$join_layer")
    "$ogrjoin" "${words[@]}" -validate geos -json_summary "$dir/summary" \
        -lco SPATIAL_INDEX=NO -overwrite "$dir/out.fgb" "$data/$input" \
        "$data/$join" >"$dir/log" 2>&1
    status=$?
    n=$(sed -nE 's/.*"matched": *([0-9]+).*/\1/p' "$dir/summary" | head -1)
    if [ $status -eq 0 ] && { [ "$matched" = "$n" ] || [ "$matched" = - ]; }
    then
        passed=$((passed + 1))
        echo "ok: $n matched, $((SECONDS - start)) s: $name"
    else
        failed=$((failed + 1))
        echo "FAILED ($status, $n matched, expected $matched): $name"
        cat "$dir/log"
    fi
done <"$cases"
echo "real layers: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
