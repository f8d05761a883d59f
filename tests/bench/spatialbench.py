#!/usr/bin/env python3
"""Measures two queries of Apache's SpatialBench in Python, by ogrjoin and other packages:

  q8   buildings within 0.0045 of each trip's start: counts of the first 100
  q12  the 5 nearest buildings of each: averages of the 100 farthest trips

    spatialbench.py [--turns N] [--scale N] [--answers DIR] FOLDER [PEER...]

FOLDER     the tables; spatialbench-cli (PyPI) makes them if they do not exist;
           without it the script is skipped, exit code 77
--scale    1 (default): 6,000,000 trips and 20,000 buildings; 10: ten times that
--turns    runs of each, of which the median counts (default 3)
--answers  the published answers, answer_q8.csv and answer_q12.csv of scale 1
PEER       ogrjoin, batches (of ogrjoin), pycanopy, sedonadb (default: those that are
           installed; sedonadb takes minutes for q12)

Each run is a process of its own with one thread. Batches write the averages of q12 to a
file, so that memory does not grow with the number of trips. Prints the processor seconds from the
tables in memory to the answer, and those of the whole process with reading; its peak
memory, and the increase after the tables were read. If answers differ in any row by more
than 1e-9 relative, or from the published ones by more than 1e-6, the exit code is 1.
"""

import argparse
import csv
import importlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

REACH = 0.0045
K = 5
SHOWN = 100
PEERS = {
    "ogrjoin": "ogrjoin",
    "batches": "ogrjoin",
    "pycanopy": "pycanopy",
    "sedonadb": "sedonadb",
}
LIMITS = ("OGRJOIN_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS")
SQL = {
    "q8": f"""SELECT b.b_buildingkey, COUNT(*) AS n FROM trip t JOIN building b
        ON ST_DWithin(ST_GeomFromWKB(t.t_pickuploc), ST_GeomFromWKB(b.b_boundary),
        {REACH}) GROUP BY b.b_buildingkey""",
    "q12": f"""WITH t AS (SELECT t_tripkey, ST_GeomFromWKB(t_pickuploc) AS g FROM trip),
        b AS (SELECT ST_GeomFromWKB(b_boundary) AS h FROM building),
        knn AS (SELECT t.t_tripkey, ST_Distance(t.g, b.h) AS d
        FROM t JOIN b ON ST_KNN(t.g, b.h, {K}, FALSE))
        SELECT t_tripkey, AVG(d) AS n FROM knn GROUP BY t_tripkey""",
}


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime


def megabytes(name):
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(name))
    return int(line.split()[1]) / 1000


def forget_peak():
    """Resets VmHWM, so that it is the peak memory from now on (Linux:
    proc_pid_clear_refs(5))."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


# --- one run, in a process of its own: keys and values of all rows ---------------


def read_columns(folder, columns):
    """Returns the wanted columns of each table, read by one thread, or None for a table
    of which none is wanted. columns is {name of a table: names of its columns}."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    return [
        pq.ParquetFile(f"{folder}/{name}.parquet").read(columns=wanted, use_threads=False)
        if wanted
        else None
        for name, wanted in columns.items()
    ]


def read_tables(folder):
    import pyarrow as pa

    tables = read_columns(
        folder,
        {
            "trip": ["t_tripkey", "t_pickuploc"],
            "building": ["b_buildingkey", "b_boundary"],
        },
    )
    tables[1].column(0).to_numpy()  # the first call imports pandas, if it is installed
    pa.default_memory_pool().release_unused()
    return tables


def by_ogrjoin(query, trip, building, file=None):
    """Returns (keys, values). With a file, joins in batches, and q12 writes the averages to
    the file instead of returning them."""
    import numpy as np
    import ogrjoin

    options = {"k": K} if query == "q12" else {"max_distance": REACH}
    op = "nearest" if query == "q12" else "dwithin"
    index = ogrjoin.Index(building.select(["b_boundary"]), threads=1)
    points = trip.select(["t_pickuploc"])
    if file is not None:
        batches = index.pairs_batches(points, op, **options)
    else:
        batches = [index.pairs(points, op, **options)]
    counts, averages = np.zeros(len(building), np.int64), None
    for pairs in batches:
        if query == "q8":
            counts += np.bincount(pairs.right32, minlength=len(building))
        elif len(pairs) != K * pairs.n_left:
            raise SystemExit("a trip has fewer neighbours than there are")
        else:
            averages = pairs.distance.reshape(-1, K).mean(axis=1)
            if file is not None:
                averages.tofile(file)
    if query == "q12":
        return trip["t_tripkey"].to_numpy(), averages
    kept = np.flatnonzero(counts)
    return building["b_buildingkey"].to_numpy()[kept], counts[kept]


def by_pycanopy(query, trip, building):
    import polars as pl
    import pycanopy

    x, y = pycanopy.wkb_points_to_xy(trip["t_pickuploc"])
    points = pl.DataFrame({"t_tripkey": pl.from_arrow(trip["t_tripkey"]), "x": x, "y": y})
    frame = pycanopy.SpatialFrame.from_wkb_polygons(pl.from_arrow(building), "b_boundary")
    lazy = frame.lazy()
    if query == "q12":
        found = lazy.polygon_knn_join(points, "x", "y", k=K).collect()
        found = found.group_by("t_tripkey").agg(pl.col("distance_to_polygon").mean())
        return found["t_tripkey"].to_numpy(), found["distance_to_polygon"].to_numpy()
    found = lazy.polygon_within_distance_join(points, "x", "y", distance=REACH).collect()
    found = found.group_by("b_buildingkey").len()
    return found["b_buildingkey"].to_numpy(), found["len"].to_numpy()


def by_sedonadb(query, trip, building):
    import sedonadb

    db = sedonadb.connect()
    db.sql("SET datafusion.execution.target_partitions = 1").execute()
    db.create_data_frame(trip).to_view("trip")
    db.create_data_frame(building).to_view("building")
    found = db.sql(SQL[query]).to_arrow_table()
    return found.column(0).to_numpy(), found.column(1).to_numpy()


def run_one(peer, query, folder, out):
    import numpy as np

    importlib.import_module(PEERS[peer])
    trip, building = read_tables(folder)
    peak_of_reading = megabytes("VmHWM")
    forget_peak()
    before, start = megabytes("VmRSS"), cpu()
    if peer == "batches":
        with tempfile.TemporaryFile(dir=os.path.dirname(out)) as file:
            keys, values = by_ogrjoin(query, trip, building, file)
            join, peak = cpu() - start, megabytes("VmHWM")
            if query == "q12":
                file.seek(0)
                values = np.fromfile(file)
    else:
        keys, values = globals()[f"by_{peer}"](query, trip, building)
        join, peak = cpu() - start, megabytes("VmHWM")
    least = np.partition(values, -SHOWN)[-SHOWN] if len(values) > SHOWN else 0
    some = np.flatnonzero(values >= least)
    first = some[np.lexsort((keys[some], -values[some]))][:SHOWN]
    figures = {
        "join": join,
        "peak": max(peak, peak_of_reading),
        "beyond": peak - before,
        "first": [(int(keys[i]), float(values[i])) for i in first],
        "process": cpu(),
    }
    order = np.argsort(keys, kind="stable")
    np.savez(out, keys=keys[order], values=values[order])
    print(json.dumps(figures))


# --- all of them -----------------------------------------------------------------


def runs(source):
    """Returns True if a new Python process runs the source without an error."""
    return subprocess.run([sys.executable, "-c", source], stderr=subprocess.DEVNULL).returncode == 0


def is_installed(module):
    return runs(f"import {module}")


def run_script(script, words, threads, limit=None):
    """Runs a benchmark once, in a process of its own, with this number of threads; raises
    subprocess.TimeoutExpired, and ends it, after limit seconds."""
    limits = {name: str(threads) for name in LIMITS}
    return subprocess.run(
        [sys.executable, os.path.abspath(script), "--run", *words],
        env={**os.environ, **limits, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=limit,
    )


def figures_of(done):
    """Returns the figures in the last line that run_one() has printed."""
    return json.loads(done.stdout.splitlines()[-1])


def make_parser(description):
    """Returns a parser with the arguments that both benchmarks have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--answers")
    parser.add_argument("folder", metavar="FOLDER")
    return parser


def check_words(parser, words, allowed):
    for word in words:
        if word not in allowed:
            parser.error(f"{word} is none of {', '.join(allowed)}")


def exit_code(compare, *arguments):
    """Runs compare(*arguments, scratch) in a temporary folder. Returns 1 if answers
    differ, otherwise 0."""
    with tempfile.TemporaryDirectory() as scratch:
        return 0 if compare(*arguments, scratch) else 1


def make_tables(folder, scale):
    if all(os.path.exists(f"{folder}/{t}.parquet") for t in ("trip", "building")):
        return
    beside = os.path.join(os.path.dirname(sys.executable), "spatialbench-cli")
    program = beside if os.path.exists(beside) else shutil.which("spatialbench-cli")
    if program is None:
        print("skipped: spatialbench-cli is not installed (pip install spatialbench-cli)")
        raise SystemExit(77)
    os.makedirs(folder, exist_ok=True)
    words = [program, "-s", str(scale), "-T", "trip,building", "-o", folder]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def measure(peer, query, folder, scratch):
    out = f"{scratch}/{peer}_{query}.npz"
    done = run_script(__file__, [peer, query, folder, out], 1)
    if done.returncode != 0:
        raise SystemExit(f"{peer} {query}: exit code {done.returncode}\n{done.stderr}")
    return figures_of(done)


def is_as_published(first, answers, query):
    if answers is None:
        return True
    with open(f"{answers}/answer_{query}.csv", newline="") as file:
        rows = list(csv.reader(file))[1:]
    wanted = {int(row[0]): float(row[-1]) for row in rows}
    found = dict(first[: len(rows)])
    return found.keys() == wanted.keys() and all(
        abs(found[key] - value) <= 1e-6 * abs(value) for key, value in wanted.items()
    )


def is_equal(one, other):
    import numpy as np

    a, b = np.load(one), np.load(other)
    return np.array_equal(a["keys"], b["keys"]) and np.allclose(
        a["values"], b["values"], rtol=1e-9, atol=0
    )


def compare(args, scratch):
    is_all_right = True
    peers = args.peers or [p for p, module in PEERS.items() if is_installed(module)]
    print(f"{'':4} {'':9} {'join s':>8} {'process s':>9} {'peak MB':>8} {'beyond':>7}")
    for query in ("q8", "q12"):
        runs = {peer: [] for peer in peers}
        for _ in range(args.turns):
            for peer in peers:
                runs[peer].append(measure(peer, query, args.folder, scratch))
        for peer, turns in runs.items():
            middle = [
                statistics.median(turn[name] for turn in turns)
                for name in ("join", "process", "peak", "beyond")
            ]
            words = []
            if not is_as_published(turns[0]["first"], args.answers, query):
                words.append("NOT AS PUBLISHED")
            of = [f"{scratch}/{p}_{query}.npz" for p in (peers[0], peer)]
            if not is_equal(*of):
                words.append(f"NOT AS {peers[0]}")
            is_all_right &= not words
            print(
                f"{query:4} {peer:9} {middle[0]:8.2f} {middle[1]:9.2f} {middle[2]:8.0f}"
                f" {middle[3]:7.0f} {' '.join(words)}",
                flush=True,
            )
    return is_all_right


def main():
    if sys.argv[1:2] == ["--run"]:
        run_one(*sys.argv[2:])
        return 0
    parser = make_parser(__doc__)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("peers", metavar="PEER", nargs="*")
    args = parser.parse_args()
    check_words(parser, args.peers, PEERS)
    if not is_installed("ogrjoin") or not is_installed("pyarrow"):
        print("skipped: ogrjoin or pyarrow is not installed")
        return 77
    make_tables(args.folder, args.scale)
    return exit_code(compare, args)


if __name__ == "__main__":
    sys.exit(main())
