"""Arrays with a value per row.  If the length is not the number of rows, this is an
error that names the argument and both lengths, in every function, however a side is
divided."""

import numpy as np
import ogrjoin
import pytest

pa = pytest.importorskip("pyarrow")

N = 10
XY = (np.arange(N, dtype=float), np.zeros(N))
TABLE = pa.table({"x": XY[0], "y": XY[1]})


def says(name, n, side, n_rows=N):
    return rf"{name} has {n} values, and {side} has {n_rows}\b"


def values_of(name, n):
    """Returns an argument of n values, and the settings that it needs."""
    values = {
        "on": np.arange(n) % 3,
        "id": np.arange(n),
        "max_distance": np.full(n, 0.5),
        "score": np.arange(n),
        "texts": [["a"] * n],
    }[name]
    words = {
        "max_distance": {"op": "dwithin"},
        "score": {"op": "nearest", "pick": "score", "max_distance": 2},
        "texts": {"op": "nearest", "max_distance": 2, "similar": "0.5"},
    }
    return values, words.get(name, {"op": "nearest"})


def both(name, n_left, n_right):
    (left, words), (right, _) = values_of(name, n_left), values_of(name, n_right)
    return {name: (left, right), **words}


@pytest.mark.parametrize("n", [0, 1, N - 1, N + 1, 3 * N])
@pytest.mark.parametrize("name", ["on", "id", "texts"])
def test_pairs_takes_a_value_for_each_row(name, n):
    text = r"texts\[0\]" if name == "texts" else name
    with pytest.raises(ogrjoin.InvalidError, match=says(text, n, "the left side")):
        ogrjoin.pairs(XY, XY, **both(name, n, N))
    with pytest.raises(ogrjoin.InvalidError, match=says(text, n, "the right side")):
        ogrjoin.pairs(XY, XY, **both(name, N, n))
    assert len(ogrjoin.pairs(XY, XY, **both(name, N, N))) > 0


@pytest.mark.parametrize("n", [0, 1, N - 1, N + 1])
@pytest.mark.parametrize("name, side", [("max_distance", "left"), ("score", "right")])
def test_values_of_one_side(name, side, n):
    values, words = values_of(name, n)
    with pytest.raises(ogrjoin.InvalidError, match=says(name, n, f"the {side} side")):
        ogrjoin.pairs(XY, XY, **{name: values, **words})
    values, words = values_of(name, N)
    assert len(ogrjoin.pairs(XY, XY, **{name: values, **words})) == N


@pytest.mark.parametrize("n", [N - 1, N + 1])
@pytest.mark.parametrize("name", ["on", "id", "score", "texts"])
def test_index_takes_a_value_for_each_row(name, n):
    text = r"texts\[0\]" if name == "texts" else name
    with pytest.raises(ogrjoin.InvalidError, match=says(text, n, "the right side")):
        ogrjoin.Index(XY, **{name: values_of(name, n)[0]})


@pytest.mark.parametrize("n", [N - 1, N + 1])
@pytest.mark.parametrize("name", ["on", "id", "max_distance", "texts"])
def test_lengths_of_a_left_side_that_is_cut(name, n, monkeypatch):
    from ogrjoin import _pairs

    monkeypatch.setattr(_pairs, "_PROGRESS_ROWS", 4)
    right = {} if name == "max_distance" else {name: values_of(name, N)[0]}
    words = {k: v for k, v in values_of(name, N)[1].items()}
    index = ogrjoin.Index(XY, **right, similar=words.get("similar"))
    text = r"texts\[0\]" if name == "texts" else name
    for good in (False, True):
        here = {name: values_of(name, N if good else n)[0], **words}
        calls = [
            lambda: index.pairs(XY, **here, progress=lambda done, n: None),
            lambda: index.pairs(XY, **here),
        ]
        if name != "texts":
            calls += [
                lambda: list(index.pairs_batches(XY, **here, batch_size=3)),
                lambda: list(
                    index.pairs_batches(points_of(TABLE), **here, batch_size=3)
                ),
                lambda: list(
                    index.pairs_batches(iter([XY]), **here, batch_size=3)
                ),
            ]
        for call in calls:
            if good:
                call()
                continue
            with pytest.raises(ogrjoin.InvalidError, match=f"{text} has {n} values") as error:
                call()
            assert "the left side has 1" in str(error.value) or "has 9" in str(error.value)


def points_of(table):
    """Returns the points as GeoArrow, in batches of four."""
    import json

    column = pa.StructArray.from_arrays(
        [table["x"].combine_chunks(), table["y"].combine_chunks()], ["x", "y"]
    )
    metadata = {
        b"ARROW:extension:name": b"geoarrow.point",
        b"ARROW:extension:metadata": json.dumps({}).encode(),
    }
    field = pa.field("p", column.type, metadata=metadata)
    made = pa.table([column], schema=pa.schema([field]))
    return pa.RecordBatchReader.from_batches(made.schema, made.to_batches(4))


@pytest.mark.parametrize("name", ["on", "id", "texts"])
def test_two_are_asked_for(name):
    for wrong in (np.arange(N), [1, 2, 3], "ab", ()):
        with pytest.raises(ogrjoin.InvalidError, match=f"{name} needs a pair"):
            ogrjoin.pairs(XY, XY, "nearest", **{name: wrong})


@pytest.mark.parametrize("name", ["on", "id", "score", "max_distance"])
def test_columns_have_one_dimension(name):
    wrong = np.zeros((N, 2))
    words = values_of(name, N)[1]
    with pytest.raises(ogrjoin.InvalidError, match=f"{name} (needs a|must be a|must be one) column"):
        if name in ("score", "max_distance"):
            ogrjoin.pairs(XY, XY, **{name: wrong, **words})
        else:
            ogrjoin.pairs(XY, XY, **{name: (wrong, wrong), **words})


@pytest.mark.parametrize("n", [N - 1, N + 1])
def test_x_and_y(n):
    side = (np.zeros(N), np.zeros(n))
    expected = rf"y has {n} values, and x has {N}\b"
    for call in (
        lambda: ogrjoin.pairs(side, XY, "nearest"),
        lambda: ogrjoin.pairs(XY, side, "nearest"),
        lambda: ogrjoin.Index(side),
        lambda: ogrjoin.join(side, XY, "nearest", left_crs="EPSG:2263", right_crs="EPSG:2263"),
        lambda: ogrjoin.join(XY, side, "nearest"),
        lambda: ogrjoin.Index(XY).join(side, "nearest"),
        lambda: ogrjoin.events(side, XY, "k", "nearest"),
        lambda: ogrjoin.Live().pairs(side, "nearest"),
    ):
        with pytest.raises(ogrjoin.InvalidError, match=expected):
            call()


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("n", [N - 1, N + 1])
def test_live_takes_a_place_for_each_id(name, n):
    live = ogrjoin.Live()
    columns = {"x": np.zeros(N), "y": np.zeros(N), name: np.zeros(n)}
    with pytest.raises(ogrjoin.InvalidError, match=rf"{name} has {n} values, and ids has {N}\b"):
        live.apply(np.arange(N), **columns)
    assert len(live) == 0


@pytest.mark.parametrize("name", ["on", "fid", "max_distance", "agg", "pick", "similar", "key"])
def test_join_and_events_take_names_of_columns(name):
    """An array where join() and events() expect the name of a column is an error that names the
    argument."""
    for values in (np.arange(N), pa.array(range(N))):
        with pytest.raises(ogrjoin.InvalidError, match=name):
            if name == "key":
                ogrjoin.events(XY, XY, values, "nearest")
            else:
                ogrjoin.join(XY, XY, "nearest", **{name: values})
        if name not in ("key", "fid"):
            with pytest.raises(ogrjoin.InvalidError, match=name):
                ogrjoin.Index(XY).join(XY, "nearest", **{name: values})
    if name == "max_distance":
        for call in (
            lambda v: ogrjoin.Live().pairs(XY, "nearest", max_distance=v),
            lambda v: ogrjoin.Live().near_pairs(v),
        ):
            with pytest.raises(ogrjoin.InvalidError, match=name):
                call(np.ones(N))
