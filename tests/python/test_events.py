"""events() gives the rows of a plain sequential program over pairs(), for whole, split
and streamed reports, and the rows of the command."""

import os
import shutil
import subprocess

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
gpd = pytest.importorskip("geopandas")
import shapely

COMMAND = os.environ.get("OGRJOIN_COMMAND") or shutil.which("ogrjoin")
rng = np.random.default_rng(7)
N = 600


def make_reports():
    """Makes reports of moving vehicles. Some lack the key or the place. Returns a
    GeoDataFrame."""
    key = rng.integers(0, 15, N)
    xy = np.empty((N, 2))
    at = rng.random((15, 2)) * 100
    for i, k in enumerate(key):
        at[k] = np.clip(at[k] + rng.normal(0, 6, 2), 0, 100)
        xy[i] = at[k]
    points = np.array(shapely.points(xy))
    points[rng.random(N) < 0.04] = None
    vehicle = [None if rng.random() < 0.04 else f"v{k}" for k in key]
    number = [None if v is None else int(v[1:]) - 3 for v in vehicle]
    frame = {"id": np.arange(N), "vehicle": vehicle, "number": gpd.pd.array(number, dtype="Int64")}
    return gpd.GeoDataFrame(frame, geometry=list(points), crs=2263)


REPORTS = make_reports()
FENCES = gpd.GeoDataFrame(
    {"fence": [f"fence {i}" for i in range(40)], "fid": rng.permutation(1000)[:40]},
    geometry=shapely.buffer(shapely.points(rng.random((40, 2)) * 100), rng.uniform(3, 20, 40)),
    crs=2263,
)


def plain(key, op, stays=False, state=None, reports=REPORTS, **named):
    """Returns the events of a plain sequential program: (id, event, join_fid, fence)."""
    state = {} if state is None else state
    fences = FENCES.sort_values("fid").reset_index(drop=True)  # ties go to the smaller FID
    pairs = ogrjoin.pairs(reports, fences, op, **named)
    now = {}
    for i, j in zip(pairs.left, pairs.right):
        now.setdefault(int(i), set()).add(int(fences.fid[j]))
    name = dict(zip(FENCES.fid, FENCES.fence))
    found = []
    for i, (k, g, number) in enumerate(zip(reports[key], reports.geometry, reports.id)):
        if gpd.pd.isna(k) or g is None:
            continue
        have, had = now.get(i, set()), state.get(k, set())
        if op == "nearest":
            if have != had:
                found.append((number, "change", next(iter(have), None)))
            elif have and stays:
                found.append((number, "stay", next(iter(have))))
        else:
            found += [(number, "exit", f) for f in sorted(had - have)]
            found += [(number, "enter", f) for f in sorted(have - had)]
            found += [(number, "stay", f) for f in sorted(have & had) if stays]
        state[k] = have
    return [(*row, name.get(row[2])) for row in found]


def rows(table):
    return list(zip(*(table[name].to_pylist() for name in ("id", "event", "join_fid", "fence"))))


JOINS = (
    ("within", {}), ("intersects", {}), ("coveredby", {}),
    ("dwithin", {"max_distance": 5}), ("nearest", {"max_distance": 8}),
)  # fmt: skip


@pytest.mark.parametrize("op,named", JOINS)
@pytest.mark.parametrize("key,stays", (("vehicle", False), ("number", True)))
def test_random(op, named, key, stays):
    table = ogrjoin.events(REPORTS, FENCES, key, op, stays=stays, fid=(None, "fid"), **named).read_all()
    expected = plain(key, op, stays, **named)
    assert len(expected) > 50
    assert rows(table) == expected
    names = ["id", "vehicle", "number", "geometry", "event", "join_fid"]
    names += ["join_distance"] if op in ("dwithin", "nearest") else []
    assert table.schema.names == [*names, "fence"]
    if "join_distance" in names:
        far = [d for d, e in zip(table["join_distance"].to_pylist(), table["event"].to_pylist()) if e == "exit"]
        assert all(d is None for d in far)


def test_cut_and_continued(tmp_path):
    state, got, expected, kept = tmp_path / "state", [], [], {}
    cuts = [0, 1, 90, 90, 333, N]
    for a, b in zip(cuts, cuts[1:]):
        part = REPORTS.iloc[a:b].reset_index(drop=True)
        if a == 0:
            with pytest.warns(UserWarning, match="does not exist yet"):
                events = ogrjoin.events(part, FENCES, "vehicle", state=state, fid=(None, "fid"))
        else:
            events = ogrjoin.events(part, FENCES, "vehicle", state=state, fid=(None, "fid"))
        got += rows(events.read_all())
        expected += plain("vehicle", "within", state=kept, reports=part)
    assert got == expected == plain("vehicle", "within")


def test_stream_gives_events_before_it_is_asked_for_more():
    """The events of a batch of reports are returned before the next batch is read."""
    table = pa.table(REPORTS.to_arrow())
    log = []

    def batches():
        for batch in table.to_batches(max_chunksize=50):
            log.append("reports")
            yield batch

    reports = pa.RecordBatchReader.from_batches(table.schema, batches())
    got = []
    for batch in ogrjoin.events(reports, FENCES, "vehicle", fid=(None, "fid")):
        log.append("events")
        got += rows(batch)
    assert got == plain("vehicle", "within")
    assert "events" in log[:3] and log.count("events") >= 10


def test_what_is_refused(tmp_path):
    for named, says in (
        ({"key": "nothing"}, "nothing"), ({"key": "geometry"}, "integers or texts"),
        ({"key": "vehicle", "agg": "count"}, "agg"), ({"key": "vehicle", "pick": "first"}, "pick"),
        ({"key": "vehicle", "op": "nearest", "k": 2}, "k"), ({"key": "vehicle", "overlap": "area"}, "overlap"),
        ({"key": "vehicle", "how": "inner"}, "how has no effect on events"),
        ({"key": "vehicle", "events": "all"}, "write stays=True"),
    ):  # fmt: skip
        with pytest.raises(ogrjoin.Error, match=says):
            ogrjoin.events(REPORTS, FENCES, **named).read_all()
    with pytest.raises(ogrjoin.Error, match="events needs key"):
        ogrjoin.join(REPORTS, FENCES, how=None, events="changes")
    with pytest.raises(ogrjoin.Error, match="key has no effect without events"):
        ogrjoin.join(REPORTS, FENCES, key="vehicle")
    state = tmp_path / "state"
    with pytest.warns(UserWarning):
        ogrjoin.events(REPORTS, FENCES, "vehicle", state=state).read_all()
    ogrjoin.events(REPORTS, FENCES, "vehicle", state=state)
    for fences, named, says in (
        (FENCES.iloc[1:], {}, "another join layer"), (FENCES, {"op": "intersects"}, "other options"),
    ):  # fmt: skip
        with pytest.raises(ogrjoin.Error, match=says):
            ogrjoin.events(REPORTS, fences, "vehicle", state=state, **named)
    whole = state.read_bytes()
    for broken in (b"", whole[:-1], whole[:40] + b"x" + whole[41:]):
        state.write_bytes(broken)
        with pytest.raises(ogrjoin.Error, match="state"):
            ogrjoin.events(REPORTS, FENCES, "vehicle", state=state)


@pytest.mark.skipif(not COMMAND, reason="no command (OGRJOIN_COMMAND)")
def test_command_gives_the_same_rows(tmp_path):
    pytest.importorskip("pyogrio")
    reports, fences, out = (str(tmp_path / f"{name}.gpkg") for name in ("reports", "fences", "out"))
    REPORTS.to_file(reports)
    FENCES.drop(columns="fid").to_file(fences)
    subprocess.run(
        [COMMAND, "-q", "-events", "all", "-key", "number", "-op", "dwithin", "-max_distance", "4",
         out, reports, fences], check=True,
    )  # fmt: skip
    command = gpd.read_file(out)
    table = ogrjoin.events(REPORTS, FENCES.drop(columns="fid"), "number", "dwithin", stays=True, max_distance=4)
    mine = [(i, e, f + 1, n) for i, e, f, n in rows(table.read_all())]
    theirs = list(zip(command.id, command.event, command.join_fid, command.fence))
    assert mine == [tuple(row) for row in theirs] and len(mine) > 50
