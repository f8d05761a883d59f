#!/usr/bin/env bash
# Joins real layers, and compares every pair and distance with GEOS. The cases
# also have the expected numbers of matched rows and of pairs.
#
#   test_real_layers.sh OGRJOIN CASES DATA
#
# DATA is the folder of the layers, unless OGRJOIN_TEST_DATA names another.
# Cases marked "long" run only if OGRJOIN_TEST_LONG is set and not 0. Ends with
# 77 (skipped) if no join could be tried.
set -uo pipefail
ogrjoin=$1 cases=$2 data=${OGRJOIN_TEST_DATA:-$3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0

# number NAME: of the summary
number() { sed -nE "s/.*\"$1\": *([0-9]+).*/\1/p" "$dir/summary" | head -1; }

while IFS='|' read -r expected input input_layer join join_layer options; do
    case $expected in '#'* | '') continue ;; esac
    is_long=0
    [ "${expected#long}" = "$expected" ] || is_long=1
    expected=${expected#long}
    expected=${expected// /} input=${input// /} join=${join// /}
    input_layer=${input_layer// /} join_layer=${join_layer// /}
    name="$input $input_layer x $join $join_layer $options"
    if [ ! -e "$data/$input" ] || [ ! -e "$data/$join" ] ||
        { [ $is_long -eq 1 ] && [ "${OGRJOIN_TEST_LONG:-0}" = 0 ]; }; then
        skipped=$((skipped + 1))
        continue
    fi
    start=$SECONDS
    words=(-q)
    case " $options " in
    *' -op '* | *' -relate '*) ;;
    *) words+=(-op nearest) ;;
    esac
    read -ra more <<<"$options"
    words+=("${more[@]}")
    [ "$input_layer" = - ] || words+=(-input_layer "$input_layer")
    [ "$join_layer" = - ] || words+=(-join_layer "$join_layer")
    # Without geometries, so that a country is not written once for each of its
    # cities.
    rm -f "$dir/summary"
    "$ogrjoin" "${words[@]}" -validate geos -json_summary "$dir/summary" \
        -overwrite "$dir/out.csv" "$data/$input" "$data/$join" >"$dir/log" 2>&1
    status=$?
    n=$(number matched 2>/dev/null)
    case $expected in */*) n=$n/$(number pairs) ;; esac
    if [ $status -eq 0 ] && { [ "$expected" = "$n" ] || [ "$expected" = - ]; }
    then
        passed=$((passed + 1))
        echo "ok: $n matched, $((SECONDS - start)) s: $name"
    else
        failed=$((failed + 1))
        echo "FAILED ($status, $n matched, expected $expected): $name"
        cat "$dir/log"
    fi
done <"$cases"
echo "real layers: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
