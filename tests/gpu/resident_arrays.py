#!/usr/bin/env python3
"""Joins points in arrays of CuPy or PyTorch on a GPU with the lots of nycgen.  Prints
the time of a join by the device's clock, and the bytes that are copied in this time
(counted by CUPTI).  Checks the counts and sums of tests/bench/nycgen.h.

    resident_arrays.py [N [OJ_BENCH]]     PYTHONPATH: folder of ogrjoin

N is the number of points (170,000,000).  OJ_BENCH is the program oj_bench of a build
with tests; its times of resident points are printed, too.
"""

import ctypes
import ctypes.util
import glob
import os
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import ogrjoin
from ogrjoin import _core

HERE = os.path.dirname(os.path.abspath(__file__))
N_LOTS = 735488
SOURCE = r"""
#include "%s/../bench/nycgen.c"
static struct nyc_city city;
static int32_t *blocks, n_blocks;
static struct nyc_shapes lots;
int64_t make(int64_t n_lots)
{
    city = nyc_city(1);
    n_blocks = nyc_land_blocks(&city, &blocks);
    nyc_make_lots(&city, blocks, n_blocks, n_lots, &lots);
    return lots.offset[n_lots];
}
void put_lots(int64_t *offset, double *x, double *y)
{
    for (int64_t i = 0; i <= lots.n; i++)
        offset[i] = lots.offset[i];
    for (int64_t v = 0; v < offset[lots.n]; v++)
    {
        x[v] = lots.xy[2 * v] / 1024.0;
        y[v] = lots.xy[2 * v + 1] / 1024.0;
    }
}
void put_points(int64_t first, int64_t end, double *x, double *y)
{
    for (int64_t i = first; i < end; i++)
    {
        int32_t a, b;
        nyc_point(&city, blocks, n_blocks, (uint64_t)i, &a, &b);
        x[i] = a / 1024.0;
        y[i] = b / 1024.0;
    }
}
"""


def compile_city():
    folder = tempfile.mkdtemp()
    source, library = f"{folder}/city.c", f"{folder}/city.so"
    with open(source, "w") as file:
        file.write(SOURCE % HERE)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(library)


def at(array):
    return ctypes.c_void_p(array.ctypes.data)


def make_points(city, n):
    x, y = np.empty(n), np.empty(n)
    n_threads = os.cpu_count() or 1
    ends = [n * i // n_threads for i in range(n_threads + 1)]
    threads = [
        threading.Thread(
            target=city.put_points,
            args=(ctypes.c_int64(a), ctypes.c_int64(b), at(x), at(y)),
        )
        for a, b in zip(ends, ends[1:])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return x, y


def make_index(city):
    """Makes an index of the lots from arrays, without shapely and pyarrow. Returns the
    index."""
    city.make.restype = ctypes.c_int64
    n = city.make(ctypes.c_int64(N_LOTS))
    offset, x, y = np.empty(N_LOTS + 1, np.int64), np.empty(n), np.empty(n)
    city.put_lots(at(offset), at(x), at(y))
    one_each = np.arange(N_LOTS + 1)
    index = ogrjoin.Index(np.empty((0, 2)))
    index._layer = _core.arrays(
        N_LOTS, x, y, one_each, np.full(N_LOTS, 4, np.uint8), one_each, offset
    )
    return index


class Bus:
    """Counts the bytes of all copies of the process. Direction 1 is to a device, 2 from
    a device."""

    def __init__(self):
        places = ["/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*"]
        places += [f"{p}/nvidia/*/lib/libcupti.so*" for p in sys.path if p]
        found = [f for place in places for f in glob.glob(place)]
        name = ctypes.util.find_library("cupti") or (found[0] if found else None)
        self.cupti = ctypes.CDLL(name) if name else None
        self.bytes = {}
        if self.cupti is None:
            return
        size = 1 << 20
        request = ctypes.CFUNCTYPE(
            None,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.POINTER(ctypes.c_size_t),
            ctypes.POINTER(ctypes.c_size_t),
        )
        complete = ctypes.CFUNCTYPE(
            None,
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_size_t,
        )
        kept = {}

        def give(buffer, n, most):
            memory = ctypes.create_string_buffer(size + 8)
            start = (ctypes.addressof(memory) + 7) // 8 * 8
            kept[start] = memory
            buffer[0], n[0], most[0] = start, size, 0

        def take(context, stream, buffer, n, n_valid):
            record = ctypes.c_void_p()
            while n_valid and not self.cupti.cuptiActivityGetNextRecord(
                ctypes.c_void_p(buffer), ctypes.c_size_t(n_valid), ctypes.byref(record)
            ):
                # A record begins with its kind (4 bytes), here 1 for a copy. Byte 4 is
                # the direction of the copy; the number of bytes copied is at byte 8.
                kind = ctypes.c_uint32.from_address(record.value).value
                how = ctypes.c_uint8.from_address(record.value + 4).value
                bytes_ = ctypes.c_uint64.from_address(record.value + 8).value
                if kind == 1:
                    self.bytes[how] = self.bytes.get(how, 0) + bytes_
            kept.pop(buffer, None)

        self.calls = request(give), complete(take)
        failed = self.cupti.cuptiActivityRegisterCallbacks(*self.calls)
        if failed or self.cupti.cuptiActivityEnable(1):
            self.cupti = None

    def read(self):
        """Returns {direction: bytes} since the last call, or None without CUPTI."""
        if self.cupti is None:
            return None
        self.cupti.cuptiActivityFlushAll(1)
        counts, self.bytes = self.bytes, {}
        return {("", "to", "from")[k] if k < 3 else k: v for k, v in counts.items()}


def library():
    """Returns, for PyTorch or else CuPy: its name, and functions that copy an array to the
    device, record an event, return the milliseconds between two events, wait for the
    device, and view an answer as an array."""
    try:
        import torch

        def event():
            e = torch.cuda.Event(enable_timing=True)
            e.record()
            return e

        return (
            "PyTorch " + torch.__version__,
            lambda a: torch.from_numpy(a).cuda(),
            event,
            lambda a, b: a.elapsed_time(b),
            torch.cuda.synchronize,
            lambda a: torch.from_dlpack(a),
        )
    except ImportError:
        import cupy

        def event():
            e = cupy.cuda.Event()
            e.record()
            return e

        return (
            "CuPy " + cupy.__version__,
            cupy.asarray,
            event,
            cupy.cuda.get_elapsed_time,
            cupy.cuda.Device().synchronize,
            cupy.asarray,
        )


JOINS = [
    ("nearest lot, 0 inside", "nearest", {"max_distance": 100}),
    (
        "nearest lot boundary",
        "nearest",
        {"max_distance": 100, "distance_to": "boundary"},
    ),
    ("points in lots, lists", "within", {}),
]


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 170_000_000
    bench = sys.argv[2] if len(sys.argv) > 2 else None
    start = time.time()
    city = compile_city()
    index = make_index(city)
    x, y = make_points(city, n)
    bus = Bus()
    name, to_device, event, elapsed, wait, of = library()
    points = to_device(x), to_device(y)
    wait()
    copied = bus.read()
    assert copied is None or copied["to"] >= 16 * n, copied
    cpu = ogrjoin.Index(np.empty((0, 2)), backend="cpu")
    cpu._layer = index._layer
    few = x[:300_000].copy(), y[:300_000].copy()
    print(f"{name}, {n} points, {N_LOTS} lots, made in {time.time() - start:.0f} s")
    for words, op, named in JOINS:
        pairs = index.pairs(points, op, **named)  # the lots go to the device
        wait()
        bus.read()
        device, wall = [], []
        for _ in range(5):
            del pairs
            wait()
            at = time.perf_counter()
            first = event()
            pairs = index.pairs(points, op, **named)
            last = event()
            wait()
            wall.append(1000 * (time.perf_counter() - at))
            device.append(elapsed(first, last))
        copied = bus.read()
        crossed = "not counted" if copied is None else f"{copied} bytes in 5 joins"
        print(
            f"{words}: device {sorted(device)[2]:.2f} ms "
            f"({' '.join(f'{t:.2f}' for t in device)}), wall {sorted(wall)[2]:.2f} ms, "
            f"over the bus: {crossed}"
        )
        check(pairs, of, n, cpu, few, op, named)
    if bench:
        for words in ([], ["--distance_to", "boundary"]):
            command = [bench, "--backend", "cuda", "--resident", "--n", str(n)]
            subprocess.run([*command, "--repeat", "5", *words], check=False)


def check(pairs, of, n, cpu, few, op, named):
    """Checks counts and sums of all pairs, and the first few rows against the CPU."""
    right = of(pairs.right)
    truth = cpu.pairs(few, op, **named)
    if pairs.offsets is not None:
        print(f"   {len(pairs)} pairs")
        assert n != 170_000_000 or len(pairs) == 13_108_918
        assert right[: len(truth)].tolist() == truth.right.tolist()
        return
    first = right[: len(few[0])].tolist()
    found_first = [r for r in first if r >= 0]
    assert found_first == truth.right.tolist()
    distance = of(pairs.distance)[: len(first)].tolist()
    assert [d for d in distance if d == d] == truth.distance.tolist()
    found = right >= 0
    n_found = int(found.sum())
    distance = of(pairs.distance)[found]
    total = int((distance * 1024).round().sum())
    print(f"   {n_found} points, sum of round(d * 1024) {total}")
    if n == 170_000_000 and "distance_to" in named:
        assert (n_found, total) == (159_009_823, 4034606752505)


if __name__ == "__main__":
    main()
