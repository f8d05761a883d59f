#!/usr/bin/env bash
# Builds ogrjoin and runs all its tests: one command, from a fresh clone.
#
#   tests/run.sh [options of ctest, e.g. -R wkb or -L unit]
#
# OGRJOIN_BUILD      build folder (build/tests)
# OGRJOIN_TEST_DATA  folder of the shared layers (../shared/data); tests that
#                    need one that is not there are skipped
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${OGRJOIN_BUILD:-$here/build/tests}
export OGRJOIN_TEST_DATA=${OGRJOIN_TEST_DATA:-$here/../shared/data}

bash "$here/tests/install_packages.sh" build test
generator=()
if command -v ninja >/dev/null && [ ! -e "$build/CMakeCache.txt" ]; then
    generator=(-G Ninja)
fi
mkdir -p "$build"
quietly() { # prints the output of a command only when it fails
    "$@" >"$build/run.log" 2>&1 || { cat "$build/run.log"; return 1; }
}
# The CUDA module for the GPU that is here; without one for one architecture.
architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader \
    2>/dev/null | head -1 | tr -dc 0-9 || true)
echo "building in $build"
quietly cmake -S "$here" -B "$build" "${generator[@]}" \
    "-DOGRJOIN_CUDA_ARCHITECTURES=${architecture:-90}"
quietly cmake --build "$build" -j "$(nproc)"
[ -d "$OGRJOIN_TEST_DATA" ] ||
    echo "no folder $OGRJOIN_TEST_DATA: tests on its layers are skipped"

# Limits of time are there to end what hangs, not to fail on a busy machine.
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-5}
status=0
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" \
    --output-junit "$build/junit.xml" "$@" || status=$?

# The first line of the report holds its counts.
count() { grep -m1 -o "$1=\"[0-9]*\"" "$build/junit.xml" | tr -dc 0-9; }
n=$(count tests) failed=$(count failures) disabled=$(count disabled)
skipped=$(($(count skipped) + disabled))
echo "$((n - failed - skipped)) passed, $failed failed, $skipped skipped"
[ "$n" -gt 0 ] || { echo "no test was run"; exit 1; }
exit "$status"
