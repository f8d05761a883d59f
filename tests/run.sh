#!/usr/bin/env bash
# Builds ogrjoin and runs its tests: one command, from a fresh clone.
#
#   tests/run.sh [options of ctest, e.g. -R wkb or -L unit]
#   tests/run.sh --quick [options of ctest]
#
# --quick runs a subset that takes at most five minutes on two processors after
# the build: unit tests with a third of their random rounds, and the end-to-end
# tests of joins, rows, values and pages. It lists the tests that it leaves out.
#
# OGRJOIN_BUILD      build folder (build/tests)
# OGRJOIN_TEST_DATA  folder of the shared layers (../shared/data); tests that
#                    need one that is not there are skipped
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${OGRJOIN_BUILD:-$here/build/tests}
export OGRJOIN_TEST_DATA=${OGRJOIN_TEST_DATA:-$here/../shared/data}
is_quick=0
if [ "${1:-}" = --quick ]; then
    is_quick=1
    shift
fi

bash "$here/tests/install_packages.sh" build test
generator=()
if command -v ninja >/dev/null && [ ! -e "$build/CMakeCache.txt" ]; then
    generator=(-G Ninja)
fi
mkdir -p "$build"
quietly() { # prints the output of a command only when it fails
    "$@" >"$build/run.log" 2>&1 || { cat "$build/run.log"; return 1; }
}
# The CUDA module is built for the GPU of this machine, or without one for one
# architecture.
architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader \
    2>/dev/null | head -1 | tr -dc 0-9 || true)
echo "building in $build"
quietly cmake -S "$here" -B "$build" "${generator[@]}" \
    "-DOGRJOIN_CUDA_ARCHITECTURES=${architecture:-90}"
quietly cmake --build "$build" -j "$(nproc)"
[ -d "$OGRJOIN_TEST_DATA" ] ||
    echo "no folder $OGRJOIN_TEST_DATA: tests on its layers are skipped"

# Prints the names of the tests that ctest would run with these options.
names() { ctest --test-dir "$build" -N "$@" | sed -n 's/^ *Test *#[0-9]*: //p'; }

# Tests of --quick have the label quick (tests/CMakeLists.txt).
chosen=("$@")
if [ $is_quick = 1 ]; then
    export OGRJOIN_TEST_SHORT=1
    chosen=(-L quick "$@")
    left_out=$(comm -23 <(names "$@" | sort) <(names "${chosen[@]}" | sort))
    echo "quick: $(names "${chosen[@]}" | wc -l) tests, unit tests with a third" \
        "of their random rounds; left out are $(wc -w <<<"$left_out"):"
    fmt -w 78 <<<"$(paste -s -d ' ' <<<"$left_out")" | sed 's/^/  /'
fi

# Limits of time are only for tests that hang. No test may fail because the
# machine is busy.
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-5}
status=0
# One more than there are processors: end-to-end tests wait for pipes, disks and
# times of files a quarter of their time.
ctest --test-dir "$build" --output-on-failure -j $(($(nproc) + 1)) \
    --output-junit "$build/junit.xml" "${chosen[@]}" || status=$?

# The first line of the report holds its counts.
count() { grep -m1 -o "$1=\"[0-9]*\"" "$build/junit.xml" | tr -dc 0-9; }
n=$(count tests) failed=$(count failures) disabled=$(count disabled)
skipped=$(($(count skipped) + disabled))
echo "$((n - failed - skipped)) passed, $failed failed, $skipped skipped"
[ "$n" -gt 0 ] || { echo "no test was run"; exit 1; }
exit "$status"
