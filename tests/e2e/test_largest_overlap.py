"""-pick largest_overlap on real layers against a plain loop that asks GEOS for
the area of every intersection, in both directions.  London; with
OGRJOIN_TEST_LONG=1 England too."""

import time
from collections import defaultdict

import plain_geos
from e2e import *
from plain_geos import Shape, ctypes

lib, handle = plain_geos._lib, plain_geos._handle
for name, result, arguments in (
    ("GEOSIntersection_r", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]),
    ("GEOSArea_r", ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_double)]),
):
    getattr(lib, name).restype = result
    getattr(lib, name).argtypes = [ctypes.c_void_p, *arguments]

# Areas nearer than this, of the larger, are a tie that rounding decides.
ROUNDING = 1e-9


def overlap(a, b):
    """Area of what two features share; None where GEOS raises."""
    shared = lib.GEOSIntersection_r(handle, a.geos, b.geos)
    if not shared:
        return None
    area = ctypes.c_double()
    lib.GEOSArea_r(handle, shared, ctypes.byref(area))
    lib.GEOSGeom_destroy_r(handle, shared)
    return area.value


def read(path):
    """FID -> the feature and its box."""
    layer, found = Layer(path), {}
    for (fid, _, _), geometry in zip(layer.rows, layer.shapes()):
        shape = Shape(geometry)
        if shape:
            found[fid] = (shape, shape.ogr.GetEnvelope())
    return found


def overlaps(zones, areas):
    """For each pair that meets: zone, area, and how much they share. Found by
    squares of the plane as large as a zone."""
    side = max(max(e[1] - e[0], e[3] - e[2]) for _, e in areas.values())
    squares = defaultdict(list)
    for fid, (_, e) in areas.items():
        squares[int(e[0] // side), int(e[2] // side)].append(fid)
    for zone, (a, e) in zones.items():
        for x in range(int(e[0] // side) - 1, int(e[1] // side) + 1):
            for y in range(int(e[2] // side) - 1, int(e[3] // side) + 1):
                for fid in squares.get((x, y), ()):
                    b, f = areas[fid]
                    if e[0] > f[1] or f[0] > e[1] or e[2] > f[3] or f[2] > e[3]:
                        continue
                    met = plain_geos.holds("intersects", a, b)
                    if met is not False:
                        yield zone, fid, met, a, b


def compare(chosen, best, shared, undecided, what):
    """chosen: of the join; best: of the loop, the least FID of equal areas."""
    n_same = n_tied = 0
    for row, (area, fid) in best.items():
        got = chosen.pop(row, None)
        if got == fid:
            n_same += 1
            continue
        true(got is not None and (row, got) in shared, f"{what} {row}: {got}, not {fid}")
        mine = shared[row, got]
        true(abs(mine - area) <= ROUNDING * max(mine, area),
             f"{what} {row}: {got} shares {mine!r}, {fid} {area!r}")
        n_tied += 1
    for row, got in chosen.items():
        true(got is None or row in undecided, f"{what} {row}: {got}, but nothing meets it")
    print(f"   {what}: {n_same} the same, {n_tied} ties that rounding decides, "
          f"{len(undecided)} with pairs that GEOS cannot decide")


def best_of(pairs):
    best = {}
    for (row, fid), area in pairs.items():
        if row not in best or (area, -fid) > (best[row][0], -best[row][1]):
            best[row] = (area, fid)
    return best


def picked(inputs, joins):
    """FID of each input row -> FID of the join row picked, or None."""
    r = run("-op", "intersects", "-pick", "largest_overlap", "-overwrite", "-q", "o.csv", inputs,
            joins)
    true(r.rc == 0, f"should succeed: {r}")
    chosen = Layer("o.csv").column("join_fid")
    fids = [fid for fid, _, _ in Layer(inputs).rows]
    same(len(chosen), len(fids), "rows")
    return {fid: int(got) if got else None for fid, got in zip(fids, chosen)}


def both_ways(zones_path, areas_path):
    zones, areas = read(zones_path), read(areas_path)
    start = time.time()
    by_zone, by_area, lost_zones, lost_areas = {}, {}, set(), set()
    for zone, fid, met, a, b in overlaps(zones, areas):
        there, back = overlap(a, b), overlap(b, a)
        if met == plain_geos.CANNOT_SAY or there is None or back is None:
            lost_zones.add(zone)
            lost_areas.add(fid)
        elif met:
            by_zone[zone, fid], by_area[fid, zone] = there, back
    print(f"   plain loop: {len(by_zone)} pairs, {time.time() - start:.1f} s")
    for paths, pairs, lost, what in (
        ((zones_path, areas_path), by_zone, lost_zones, "wards"),
        ((areas_path, zones_path), by_area, lost_areas, "output areas"),
    ):
        start = time.time()
        chosen = picked(*paths)
        print(f"   join: {len(chosen)} rows, {time.time() - start:.1f} s with reading them back")
        compare(chosen, best_of(pairs), pairs, lost, what)


def check_london():
    both_ways(need_data("uk_london_wards2013.fgb"), need_data("uk_london_oa2011.fgb"))


def check_england():
    if not IS_LONG:
        raise Skip("takes minutes: OGRJOIN_TEST_LONG=1")
    both_ways(need_data("large/uk_england_wards2013.fgb"), need_data("large/uk_england_oa2011.fgb"))


if __name__ == "__main__":
    main(globals())
