"""Joins of folders of GeoParquet, in this process and in several.  The rows are those
of one call of join(), bit for bit and in its order."""

import errno
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
shapely = pytest.importorskip("shapely")
import pyarrow.parquet as pq
from test_scale_tiles import layer, table

from ogrjoin.scale import blocks, explain_files, files, join_files
from ogrjoin.scale.boxes import of_wkb
from ogrjoin.scale.files import FilesPlan
from ogrjoin.scale.footers import RowGroups, read_row_groups
from ogrjoin.scale.parquet_out import ParquetOutput
from ogrjoin.scale.parts import take_rows, with_types


def write_folder(folder, side, n_files=3, group_rows=40, is_sorted=True, kind=None):
    """Writes a folder of GeoParquet 1.1 with bbox columns of this kind. Returns the
    path of the folder."""
    boxes = of_wkb(side.column("geometry"))
    if is_sorted:
        order = np.lexsort((boxes[:, 1], np.floor(boxes[:, 0] / 25)))
        side, boxes = side.take(pa.array(order)), boxes[order]
    told = {"encoding": "WKB", "geometry_types": [], "crs": None}
    if kind is not None:
        columns = [pa.array(boxes[:, i], kind, from_pandas=True) for i in range(4)]
        names = ["xmin", "ymin", "xmax", "ymax"]
        side = side.append_column("bbox", pa.StructArray.from_arrays(columns, names))
        told["covering"] = {"bbox": {name: ["bbox", name] for name in names}}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": told}}
    side = side.replace_schema_metadata({"geo": json.dumps(geo)})
    os.makedirs(folder)
    for i, rows in enumerate(np.array_split(np.arange(len(side)), n_files)):
        rows = side.take(pa.array(rows))
        pq.write_table(rows, f"{folder}/{i}.parquet", row_group_size=group_rows)
    return str(folder)


def sides(tmp_path, left="points", right="boxes", kind=None, **how):
    r = np.random.default_rng(7)
    kind = kind or pa.float64()
    return (
        write_folder(tmp_path / "left", layer(r, left, 600), kind=kind, **how),
        write_folder(tmp_path / "right", layer(r, right, 400), kind=kind, **how),
    )


def same_files(out, left, right, **options):
    one = ogrjoin.join(left, right, **options).read_all()
    got = ogrjoin.scan(str(out)).reader().read_all().select(one.schema.names)
    assert len(got) == len(one)
    for name in one.schema.names:
        a, b = one.column(name).combine_chunks(), got.column(name).combine_chunks()
        if pa.types.is_floating(a.type):
            assert a.is_valid().equals(b.is_valid()), name
            a, b = (np.asarray(c.fill_null(0)).view(np.int64) for c in (a, b))
            assert np.array_equal(a, b), name
        elif pa.types.is_struct(a.type):
            assert str(a) == str(b), name
        else:
            assert a.equals(b), name
    return one


def content(folder):
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


JOINS = (
    {"op": "nearest", "max_distance": 3},
    {"op": "nearest", "k": 3, "ties": "all", "how": "full"},
    {"op": "nearest", "on": "name=name", "how": "inner"},
    {"op": "intersects", "how": "right", "pick": "min:n"},
    {"op": "within", "how": "anti"},
    {"op": "dwithin", "max_distance_field": "reach", "agg": "count, sum(v), median(v)"},
    {"op": "dwithin", "max_distance": 2, "exclude": "self", "geometry": "join", "how": "inner"},
)


@pytest.mark.filterwarnings("ignore:the join side is read")
@pytest.mark.parametrize("i", range(len(JOINS)))
def test_folders(tmp_path, i):
    left, right = sides(tmp_path, kind=(pa.float64(), pa.float32())[i % 2])
    out = tmp_path / "out"
    for tiles in (1, 7, 64):
        n = join_files(left, right, out, tiles=tiles, overwrite=True, **JOINS[i])
        assert n == len(same_files(out, left, right, **JOINS[i]))
    assert sorted(os.listdir(tmp_path)) == ["left", "out", "right"]


@pytest.mark.filterwarnings("ignore:the join side is read")
def test_several_processes(tmp_path):
    left, right = sides(tmp_path)
    options = {"op": "nearest", "max_distance": 3, "how": "full"}
    join_files(left, right, tmp_path / "out", tiles=4, processes=2, **options)
    same_files(tmp_path / "out", left, right, **options)


def test_a_thread_gets_its_own_join_side(tmp_path):
    """Another thread may need another join side between any two lines of this one."""
    mine, other = (FilesPlan(*sides(tmp_path / name), {}) for name in "ab")
    theirs = []

    def trace(frame, event, _):
        if frame.f_code is files._hold_row_groups.__code__ and event == "line":
            theirs.append(files._hold_row_groups(other, other._pairs[0], False))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        got = files._hold_row_groups(mine, mine._pairs[0], False)
    finally:
        sys.settrace(before)
    assert theirs and all(got is not side for side in theirs)


def test_sorted_sides_are_read_in_part_and_unsorted_ones_warned_of(tmp_path):
    r = np.random.default_rng(7)
    points, boxes = layer(r, "points", 4000), layer(r, "points", 4000)
    left = write_folder(tmp_path / "left", points, kind=pa.float64())
    right = write_folder(tmp_path / "right", boxes, kind=pa.float64())
    told = explain_files(left, right, op="nearest", max_distance=1, tiles=4)
    assert told.tiles >= 4 and told.copies < 2.5 and "read" in str(told)
    mixed = write_folder(tmp_path / "mixed", boxes, kind=pa.float64(), is_sorted=False)
    assert explain_files(left, mixed, op="nearest", max_distance=1, tiles=4).copies > 3
    with pytest.warns(UserWarning, match="sort both sides by place"):
        join_files(left, mixed, tmp_path / "out", op="nearest", max_distance=1, tiles=4)
    same_files(tmp_path / "out", left, mixed, op="nearest", max_distance=1)


@pytest.mark.filterwarnings("ignore:the join side is read")
@pytest.mark.parametrize("i", range(len(JOINS)))
def test_tiles_that_are_too_large_for_the_memory(tmp_path, i):
    left, right = sides(tmp_path, right="points", kind=pa.float64())
    whole = sum(read_row_groups(right).n_bytes) * 4
    counts = []
    for share in (1, 0.5, 0.2):
        memory = int(share * whole)
        counts.append(explain_files(left, right, task_memory=memory, **JOINS[i]).tiles)
        try:
            join_files(left, right, tmp_path / "out", overwrite=True, task_memory=memory, **JOINS[i])
        except ogrjoin.InvalidError as error:
            # a smaller limit fails if each part needs the whole join side
            assert share == 0.2 or "max_distance_field" in JOINS[i]
            assert "set task_memory=" in str(error)
        else:
            same_files(tmp_path / "out", left, right, **JOINS[i])
    assert counts[0] == 1 and counts == sorted(counts)


@pytest.mark.filterwarnings("ignore:the join side is read")
def test_one_row_group_that_is_too_large_is_joined_in_parts(tmp_path):
    r = np.random.default_rng(7)
    at = r.uniform(0, 1000, (3000, 2))
    at = at[np.argsort(at[:, 0])]
    left = write_folder(tmp_path / "left", table(shapely.points(at)), 1, 3000, False, pa.float64())
    other = table(shapely.points(r.uniform(0, 1000, (3000, 2))), m=np.arange(3000))
    right = write_folder(tmp_path / "right", other, 1, 100, True, pa.float64())
    memory = other.nbytes // 2
    for options in ({"op": "nearest", "max_distance": 20, "how": "full"}, {"op": "nearest", "k": 2}):
        join_files(left, right, tmp_path / "out", overwrite=True, task_memory=memory, **options)
        same_files(tmp_path / "out", left, right, **options)
    with pytest.raises(ogrjoin.InvalidError, match="tile 0: .* set task_memory="):
        options["max_distance"] = 2000  # each row reaches all rows
        join_files(left, right, tmp_path / "out", overwrite=True, task_memory=memory, **options)
    del options["max_distance"]
    same_files(tmp_path / "out", left, right, **options)
    assert sorted(os.listdir(tmp_path)) == ["left", "out", "right"]


def test_an_output_that_no_disk_has_room_for(tmp_path):
    resource = pytest.importorskip("resource")
    left, right = sides(tmp_path)
    out = tmp_path / "out"
    join_files(left, right, out, op="within")
    before, limit = content(out), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))
    try:
        with pytest.raises(OSError):
            join_files(left, right, out, op="within", overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert content(out) == before
    assert sorted(os.listdir(tmp_path)) == ["left", "out", "right"]


@pytest.mark.filterwarnings("ignore:the join side is read")
def test_footers_without_boxes(tmp_path):
    r = np.random.default_rng(7)
    left = write_folder(tmp_path / "left", layer(r, "points", 300))
    right = write_folder(tmp_path / "right", layer(r, "boxes", 200))
    told = explain_files(left, right, op="within", tiles=3)
    assert told.unboxed[0] == len(read_row_groups(left)) and told.copies == told.tiles
    assert "without a box" in str(told)
    join_files(left, right, tmp_path / "out", op="within", tiles=3)
    same_files(tmp_path / "out", left, right, op="within")


def test_rows_of_two_row_groups_have_their_numbers(tmp_path):
    r = np.random.default_rng(7)
    left = read_row_groups(write_folder(tmp_path / "left", layer(r, "points", 500)))
    names = ["n", "name", "geometry"]
    rows = ogrjoin.scan(str(tmp_path / "left")).reader().read_all().select(names)
    rows = rows.replace_schema_metadata(None)
    for groups in (np.arange(len(left)), np.array([1, 2, 4, 9]), np.array([], dtype=int)):
        n_rows = 0
        for first, batch in left.batches(groups, names):
            assert pa.Table.from_batches([batch]).equals(rows.slice(first, len(batch)))
            n_rows += len(batch)
        assert n_rows == left.n_rows[groups].sum()


def test_output_is_geoparquet(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    left, right = sides(tmp_path)
    join_files(left, right, tmp_path / "out", op="within", how="right")
    frame = geopandas.read_parquet(tmp_path / "out")
    joined = ogrjoin.join(left, right, op="within", how="right").read_all()
    assert len(frame) == len(joined)
    groups = read_row_groups(str(tmp_path / "out"))
    assert groups.is_boxed.all()
    assert np.isfinite(groups.box).all()


def test_a_job_that_fails_leaves_the_former_output(tmp_path):
    left, right = sides(tmp_path)
    out = tmp_path / "out"
    join_files(left, right, out, op="within")
    with pytest.raises(ogrjoin.InvalidError, match="overwrite"):
        join_files(left, right, out, op="within")
    before = content(out)
    with open(f"{right}/1.parquet", "r+b") as file:  # a page that cannot be read
        file.seek(4)
        file.write(b"\xff" * 40)
    with pytest.raises(Exception):
        join_files(left, right, out, op="within", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["left", "out", "right"]
    assert content(out) == before


def test_a_folder_that_is_replaced_leaves_its_permissions(tmp_path, monkeypatch):
    left, right = sides(tmp_path)
    out = tmp_path / "out"
    join_files(left, right, out, op="within")
    out.chmod(0o700)
    seen = []

    def commit(output, names):
        seen.extend(p.stat().st_mode & 0o777 for p in tmp_path.glob(".out.ogrjoin-*"))
        committed(output, names)

    committed = ParquetOutput.commit
    monkeypatch.setattr(ParquetOutput, "commit", commit)
    join_files(left, right, out, op="within", overwrite=True)
    assert seen == [0o700]  # permissions of the temporary folder
    assert out.stat().st_mode & 0o777 == 0o700
    out.chmod(0o500)
    join_files(left, right, out, op="within", overwrite=True)
    assert out.stat().st_mode & 0o777 == 0o700


def test_a_killed_job_leaves_nothing_that_the_next_does_not_remove(tmp_path):
    left, right = sides(tmp_path)
    out = tmp_path / "out"
    join_files(left, right, out, op="within")
    before = content(out)
    program = f"""if True:
        import os, signal, ogrjoin
        from ogrjoin.scale import join_files, parquet_out
        whole = parquet_out.ParquetOutput.{{when}}
        def killed(*arguments):
            whole(*arguments) if {{after}} else None
            os.kill(os.getpid(), signal.SIGKILL)
        parquet_out.ParquetOutput.{{when}} = killed
        join_files({left!r}, {right!r}, {str(out)!r}, op="within", how="inner", overwrite=True)
    """
    for when, after in (("write", True), ("commit", False)):
        code = program.format(when=when, after=after)
        ended = subprocess.run([sys.executable, "-c", code], check=False)
        assert ended.returncode == -signal.SIGKILL
        assert content(out) == before
        assert len(os.listdir(tmp_path)) == 4
    # The job is killed between the two renamings of commit().
    temporary = next(n for n in os.listdir(tmp_path) if n.startswith(".out.ogrjoin-"))
    os.rename(out, tmp_path / f"{temporary}.former")
    with pytest.raises(ogrjoin.InvalidError, match="overwrite"):  # the former output is there again
        join_files(left, right, out, op="within")
    assert content(out) == before
    join_files(left, right, out, op="within", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["left", "out", "right"]


def test_columns_of_views(tmp_path):
    """take() of pyarrow refuses columns of views."""
    folders = sides(tmp_path, "boxes", "boxes")
    for folder in folders:
        for name in os.listdir(folder):
            rows = pq.read_table(f"{folder}/{name}", partitioning=None)
            names = rows.column("name").cast(pa.string())
            for title, kind in (("t", pa.string_view()), ("b", pa.binary_view())):
                rows = rows.append_column(title, names.cast(kind))
            pq.write_table(rows, f"{folder}/{name}", row_group_size=40)
    for how in ("right", "full"):
        for memory in (1 << 30, 160000):
            join_files(*folders, tmp_path / "out", overwrite=True, how=how, task_memory=memory)
            found = same_files(tmp_path / "out", *folders, how=how)
            assert pa.types.is_string_view(found.schema.field("t").type)


def columns_of_views():
    """Returns a table with views in each nested type, and with a NULL in a field that
    allows none."""
    view = pa.string_view()
    values = {
        view: ["a", "b", None],
        pa.binary_view(): [b"a", None, b"c"],
        pa.list_(view): [["a"], [], None],
        pa.large_list(view): [["a"], None, ["c"]],
        pa.list_(view, 1): [["a"], ["b"], [None]],
        pa.struct([("t", view)]): [{"t": "a"}, {"t": None}, None],
        pa.map_(pa.string(), view): [[("k", "a")], [], [("l", "c")]],
        pa.list_(pa.struct([("t", view)])): [[{"t": "a"}], [], None],
        pa.int32(): [1, None, 3],
    }
    schema = pa.schema([pa.field(f"c{i}", kind, kind not in (view, pa.int32())) for i, kind in enumerate(values)])
    return pa.Table.from_arrays([pa.array(v, kind) for kind, v in values.items()], schema=schema)


def test_rows_with_views():
    """Rows with views are taken as those without, in the types of the table."""
    rows = columns_of_views()
    for side in (rows, rows.to_batches()[0], rows.select(["c8"])):
        taken = take_rows(side, np.array([2, 0]))
        assert taken.schema.equals(side.schema) and type(taken) is type(side)
        assert taken.to_pylist() == [side.to_pylist()[i] for i in (2, 0)]


def test_blocks_with_views(monkeypatch):
    """Rows with views are shuffled; the whole table is converted once, not for each tile."""
    rows = columns_of_views().append_column("row", pa.array([0, 1, 2]))
    lengths = []
    monkeypatch.setattr(
        blocks, "with_types", lambda rows, types: lengths.append(len(rows)) or with_types(rows, types)
    )
    found = list(blocks.pieces(rows, np.arange(3), np.array([1, 0, 1]), 0, "row", itertools.count()))
    assert sorted(lengths) == [1, 2, 3]
    read = {one.tile: one.rows for one in blocks.blocks(found, (rows.schema, rows.schema))}
    assert {tile: one.to_pylist() for tile, one in read.items()} == {
        tile: [rows.to_pylist()[i] for i in of] for tile, of in ((0, [1]), (1, [0, 2]))
    }


def test_a_pyarrow_without_views(monkeypatch):
    """The oldest pyarrow that GeoPandas needs has no views."""
    monkeypatch.delattr(pa, "string_view")
    monkeypatch.delattr(pa, "binary_view")
    spec = importlib.util.find_spec("ogrjoin.scale.parts")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.take_rows(pa.table({"a": [1, 2]}), np.array([1])).to_pylist() == [{"a": 2}]


def test_names_are_written_to_disk(tmp_path, monkeypatch):
    """commit() syncs the new folder (the names of its files) before it renames it to the
    output's name, and syncs the parent folder before it removes the former output."""
    rows = table([None], v=[1])
    events = []

    def sync(descriptor):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        listed = sorted(os.listdir(path)) if os.path.isdir(path) else []
        events.append((os.path.basename(path).partition(".ogrjoin-")[2][16:], listed))

    monkeypatch.setattr(os, "fsync", sync)
    for overwrite in (False, True):
        output = ParquetOutput(
            str(tmp_path / "out"), rows.schema, "geometry", overwrite=overwrite
        )
        output.begin()
        name = output.write(0, rows.to_batches())[0]
        del events[:]
        output.commit([name])
        assert events[0] == (".whole", ["part-00000.parquet"])
        whole = f".out.ogrjoin-{output._job}"
        assert events[1][1] == [whole, *([f"{whole}.former"] if overwrite else []), "out"]
        assert len(events) == 2
    output = ParquetOutput(str(tmp_path / "none"), rows.schema, "geometry")
    output.begin()
    del events[:]
    output.commit([])
    assert [listed for _, listed in events[1:2]] == [["part-00000.parquet"]] and len(events) == 3
    ogrjoin.join(rows, rows).to_parquet(tmp_path / "one.parquet")
    assert "one.parquet" in events[-1][1]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EINVAL, errno.ENOSYS])
def test_names_that_cannot_be_written_to_disk(tmp_path, monkeypatch, number):
    """A disk that refuses fsync() of folders is no error; one that fails is."""
    rows, sync = table([None], v=[1]), os.fsync

    def fails(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fails)
    if number in (errno.EINVAL, errno.ENOSYS):
        ogrjoin.join(rows, rows).to_parquet(tmp_path / "one.parquet")
    else:
        with pytest.raises(OSError, match="the output is complete, but .*cannot write") as error:
            ogrjoin.join(rows, rows).to_parquet(tmp_path / "one.parquet")
        assert error.value.errno == number and error.value.filename == str(tmp_path)
    assert os.listdir(tmp_path) == ["one.parquet"]


def test_an_output_folder_whose_names_are_not_on_the_disk(tmp_path, monkeypatch):
    rows = table([None], v=[1])

    def fails(descriptor):
        if os.path.samefile(f"/proc/self/fd/{descriptor}", tmp_path):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    output = ParquetOutput(str(tmp_path / "out"), rows.schema, "geometry")
    output.begin()
    with pytest.raises(OSError, match="the output is complete, but"):
        output.commit([output.write(0, rows.to_batches())[0]])
    assert os.listdir(tmp_path / "out") == ["part-00000.parquet"]


def test_only_files_of_attempts_that_count_are_shown(tmp_path):
    rows = table([None], v=[1])
    output = ParquetOutput(str(tmp_path / "out"), rows.schema, "geometry")
    output.begin()
    names = [output.write(part, rows.to_batches())[0] for part in (0, 0, 1)]
    assert output.write(2, []) == ("", 0)
    output.commit([names[1], names[2], ""])
    assert sorted(os.listdir(tmp_path / "out")) == ["part-00000.parquet", "part-00001.parquet"]


def test_what_others_put_beside_the_output_stays(tmp_path):
    """Links, files and names beside the output that no job of this user has made are
    left unchanged."""
    left, right = sides(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_text("dear")
    token = "0123456789abcdef"
    os.symlink(home, tmp_path / f".out.ogrjoin-{token}")
    os.symlink(home, tmp_path / f".out.ogrjoin-{token}.former")
    (tmp_path / f".out.ogrjoin-{token[::-1]}").write_text("a file")
    (tmp_path / ".out.ogrjoin-notes").mkdir()
    os.mkdir(tmp_path / f".out.ogrjoin-{token[1:]}0")  # as a job that was killed leaves it
    join_files(left, right, tmp_path / "out", op="within")
    same_files(tmp_path / "out", left, right, op="within")
    assert (home / "letter").read_text() == "dear"
    assert sorted(n for n in os.listdir(tmp_path) if n.startswith(".")) == [
        f".out.ogrjoin-{token}",
        f".out.ogrjoin-{token}.former",
        f".out.ogrjoin-{token[::-1]}",
        ".out.ogrjoin-notes",
    ]


def test_an_output_that_comes_while_the_join_runs_stays(tmp_path):
    rows = table([None], v=[1])
    output = ParquetOutput(str(tmp_path / "out"), rows.schema, "geometry")
    output.begin()
    name = output.write(0, rows.to_batches())[0]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs").write_text("theirs")
    with pytest.raises(ogrjoin.InvalidError, match="while the join ran"):
        output.commit([name])
    output.abort()
    assert os.listdir(tmp_path) == ["out"] and os.listdir(tmp_path / "out") == ["theirs"]


def test_the_output_is_no_side(tmp_path):
    left, right = sides(tmp_path)
    before = content(tmp_path / "left")
    os.symlink(tmp_path / "left", tmp_path / "link")
    for out in (left, f"{left}/joined", tmp_path, right + "/", tmp_path / "link"):
        with pytest.raises(ogrjoin.InvalidError, match="a folder of its own"):
            join_files(left, right, out, op="within", overwrite=True)
    assert content(tmp_path / "left") == before


def test_folder_around_the_output(tmp_path):
    left, right = sides(tmp_path)
    with pytest.raises(ogrjoin.InvalidError, match="there is no folder .*/no: make it first"):
        join_files(left, right, tmp_path / "no" / "out", op="within")
    assert sorted(os.listdir(tmp_path)) == ["left", "right"]


def test_a_script_that_its_processes_would_run_again(tmp_path):
    left, right = sides(tmp_path)
    call = f"join_files({left!r}, {right!r}, {str(tmp_path / 'out')!r}, op='within', processes=2)"
    script = tmp_path / "script.py"
    script.write_text(f"from ogrjoin.scale import join_files\n{call}\n")
    made = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert made.returncode == 1
    assert made.stderr.count("Traceback") == 1
    assert 'under if __name__ == "__main__":' in made.stderr.splitlines()[-1]
    assert sorted(os.listdir(tmp_path)) == ["left", "right", "script.py"]
    script.write_text(
        f"from ogrjoin.scale import join_files\nif __name__ == '__main__':\n    {call}\n"
    )
    made = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
    same_files(tmp_path / "out", left, right, op="within")


@pytest.mark.filterwarnings("ignore:the join side is read")
def test_files_without_some_columns(tmp_path):
    """A column that a later file does not have is NULL there, as in join()."""
    left, right = sides(tmp_path)
    for folder in (left, right):
        names = sorted(os.listdir(folder))
        file = pq.ParquetFile(os.path.join(folder, names[1])).read()
        dropped = next(n for n in file.schema.names if n not in ("bbox", "geometry"))
        less = file.drop_columns(["bbox", dropped])
        less = less.select(less.schema.names[::-1])
        pq.write_table(less, os.path.join(folder, names[1]), row_group_size=40)
    for options in ({"op": "within", "how": "full"}, {"op": "nearest", "k": 2}):
        out = str(tmp_path / options["op"])
        join_files(left, right, out, tiles=3, **options)
        same_files(out, left, right, **options)


def test_no_rows_are_a_folder_with_columns(tmp_path):
    left, right = sides(tmp_path)
    options = {"op": "equals", "how": "inner"}  # no box equals a point
    assert join_files(left, right, tmp_path / "out", **options) == 0
    same_files(tmp_path / "out", left, right, **options)
    assert os.listdir(tmp_path / "out") == ["part-00000.parquet"]
    # An output without rows can be an input.
    assert join_files(tmp_path / "out", right, tmp_path / "more", op="within") == 0
    assert len(ogrjoin.scan(str(tmp_path / "more")).reader().read_all()) == 0


def test_row_groups_of_rows_with_unknown_boxes_are_never_left_out(tmp_path):
    """Shapely cannot read a ring that is not closed. So its box is unknown, and its row
    group is always read."""
    corners = np.array([50, 50, 51, 51, 52, 50], "<f8").tobytes()
    ring = b"\x01" + np.array([3, 1, 3], "<u4").tobytes() + corners
    assert np.isinf(of_wkb(pa.array([ring]))).all()
    rows = table([None, None], v=[1, 2])
    i = rows.schema.get_field_index("geometry")
    field = rows.schema.field(i)
    output = ParquetOutput(str(tmp_path / "out"), rows.schema, "geometry")
    output.begin()
    names = []
    for part, geometry in enumerate(([ring, None], [None, None])):
        rows = rows.set_column(i, field, pa.array(geometry, field.type))
        names.append(output.write(part, rows.to_batches())[0])
    output.commit(names)
    groups = read_row_groups(str(tmp_path / "out"))
    assert groups.is_boxed.tolist() == [False, True]
    assert np.isinf(groups.box[0]).all() and np.isnan(groups.box[1]).all()


def made_up(n, r):
    at = r.uniform(0, 1e6, (n, 2))
    box = np.hstack((at, at + 1e4))
    number, rows = np.arange(n), np.full(n, 100_000)
    schema = table([None]).schema
    return RowGroups(None, ["file"], schema, "geometry", number * 0, number, number * 100_000,
                     rows, rows * 100, box, np.ones(n, dtype=bool))  # fmt: skip


def test_ten_thousand_row_groups_are_planned_soon():
    r = np.random.default_rng(1)
    start = time.process_time()
    sides, options = (made_up(10_000, r), made_up(10_000, r)), {"op": "nearest", "max_distance": 9}
    told = FilesPlan(*sides, options, task_memory=1 << 40).explain()
    assert time.process_time() - start < 2 * float(os.environ.get("CK_TIMEOUT_MULTIPLIER") or 1)
    assert told.tiles == 1000 and told.rows == (10**9, 10**9)
