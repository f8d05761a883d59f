"""Some lists of joins are written by hand.  Each must name every join of the table in
algs/foundations/relation/oj_relation.c, or say here why it leaves one out.  Until a new
join is in all of them, this file fails."""

import ast
import re

from e2e import *
from meeting_shapes import PREDICATE_OPS

TOP = os.path.join(HERE, "..", "..")
BY_DISTANCE = {"nearest", "dwithin"}
BY_ATTRIBUTES = {"similar", "attributes"}


def ops():
    """Returns the joins that the command's completion offers. -op window is left out:
    it is not in the table, because it uses the envelope of each join feature as a
    box."""
    found = set(run("--complete", "-op").out.split())
    true("window" in found and "intersects" in found, f"joins: {found}")
    return found - {"window"}


def text_of(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def assigned(path, name):
    """Returns the expression that a Python file assigns to a name. The file is not
    run."""
    for node in ast.parse(text_of(path)).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return node.value
    raise AssertionError(f"{path} assigns no {name}")


def names_all(where, found, left_out=()):
    missing = ops() - set(left_out) - set(found)
    true(not missing, f"{where} lacks {', '.join(sorted(missing))}")


def check_qgis():
    """The algorithm Join by location. nearest, dwithin and similar have their own
    algorithms, and a pattern is a parameter."""
    found = {op for _, op in ast.literal_eval(assigned("driver/qgis/ogrjoin/parameters.py", "PREDICATES"))}
    names_all("PREDICATES of QGIS", found, BY_DISTANCE | BY_ATTRIBUTES | {"relate"})
    same(found - ops(), set(), "predicates of QGIS that the command lacks")


def check_python():
    """The joins that help(ogrjoin.pairs) lists. Each predicate of GeoPandas is one of
    them."""
    text = text_of("driver/python/ogrjoin/_pairs.py")
    listed = re.search(r"^    op +(nearest, .*?)^    settings", text, re.M | re.S)
    names_all("help(ogrjoin.pairs)", re.findall(r"\w+", listed[1]))
    mapped = ast.literal_eval(assigned("driver/python/ogrjoin/_pairs.py", "PREDICATES"))
    same(set(mapped.values()) - ops(), set(), "PREDICATES of the Python package")


def check_tests_against_geos():
    """Joins that the tests compare with GEOS. GEOS does not compare texts; distances
    and patterns have other tests."""
    names_all("PREDICATE_OPS of meeting_shapes.py", PREDICATE_OPS, BY_DISTANCE | BY_ATTRIBUTES | {"relate"})


def check_tests_of_python():
    """Joins by attributes have tests of their own (test_similar.py, test_tables.py)."""
    joins = ast.literal_eval(assigned("tests/python/test_command.py", "JOINS"))
    names_all("JOINS of tests/python/test_command.py", [join[0] for join in joins], BY_ATTRIBUTES)


def check_random_commands():
    text = text_of("tests/bench/random_commands.py")
    listed = re.search(r'^    "op": \(0, (.*?)\.split\(\)', text, re.M | re.S)
    names_all("OPTIONS of random_commands.py", re.findall(r"\w+", listed[1]))


def check_random_layers():
    """Joins that are compared among the backends. Joins by attributes are not."""
    text = text_of("tests/unit/job/test_random_layers.c")
    listed = re.search(r"ops\[\] = \{(.*?)\}", text, re.S)
    names_all("ops of test_random_layers.c", re.findall(r'"(\w+)"', listed[1]), BY_ATTRIBUTES)


def check_pages():
    """Each join has an example in the page of joins, and one in the samples."""
    for path in ("driver/docs/joins.md", "samples/joins.sh"):
        text = text_of(path)
        found = re.findall(r"-op (\w+)", text)
        if "-relate '" in text:
            found.append("relate")
        if "-similar" in text:
            found.append("similar")
        found += ["intersects"]  # the default, in examples without -op
        names_all(path, found)


if __name__ == "__main__":
    main(globals())
