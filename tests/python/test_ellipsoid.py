"""Compares metric="ellipsoid" with pyproj's geodesics.  A build without PROJ, like the
wheel, refuses the metric; then only the refusal is tested."""

import ogrjoin
import pytest

np = pytest.importorskip("numpy")


def points(n, seed):
    """Returns longitudes and latitudes, some at the poles and on the antimeridian."""
    r = np.random.default_rng(seed)
    x = r.uniform(-180, 180, n)
    y = np.degrees(np.arcsin(r.uniform(-1, 1, n)))
    x[:6] = 180, -180, 7, 0, 12, 12
    y[:6] = 0, 0, 90, -90, 30, 30
    return x, y


def series(p, crs="EPSG:4326"):
    geopandas = pytest.importorskip("geopandas")
    return geopandas.GeoSeries(geopandas.points_from_xy(*p), crs=crs)


def has_geodesics():
    """Returns True if the build has geodesics. Also checks that metric="ellipsoid" is
    an error without a CRS, and in a build without geodesics."""
    one = np.zeros(1), np.zeros(1)
    with pytest.raises(ogrjoin.Error, match="metric=ellipsoid") as error:
        ogrjoin.pairs(one, one, "nearest", metric="ellipsoid", crs="ignore")
    text = str(error.value)
    if "no geodesics" in text:
        assert "use metric=sphere" in text
        return False
    assert "give a side with a CRS, or use metric=sphere" in text
    return True


@pytest.fixture
def geod():
    if not has_geodesics():
        pytest.skip("built without PROJ, as the error reports")
    return pytest.importorskip("pyproj").Geod


def metres(geod, a, b):
    """Returns the distances of all pairs in metres, [len(a), len(b)]."""
    i, j = np.meshgrid(np.arange(len(a[0])), np.arange(len(b[0])), indexing="ij")
    i, j = i.ravel(), j.ravel()
    _, _, d = geod.inv(a[0][i], a[1][i], b[0][j], b[1][j])
    return np.asarray(d).reshape(len(a[0]), len(b[0]))


def test_unknown_ellipsoid():
    has_geodesics()


@pytest.mark.parametrize(
    ("crs", "ellipsoid"), [("EPSG:4326", "WGS84"), ("EPSG:4269", "GRS80"), ("EPSG:4267", "clrk66")]
)
def test_nearest(geod, crs, ellipsoid):
    a, b = points(120, 1), points(200, 2)
    d = metres(geod(ellps=ellipsoid), a, b)
    found = ogrjoin.pairs(series(a, crs), series(b, crs), "nearest", k=3, metric="ellipsoid")
    left, right = np.asarray(found.left), np.asarray(found.right)
    assert (left == np.repeat(np.arange(120), 3)).all()
    # other versions of PROJ may differ by nanometres
    np.testing.assert_allclose(np.asarray(found.distance), d[left, right], rtol=0, atol=1e-7)
    least = np.sort(d, axis=1)[:, :3]
    np.testing.assert_allclose(d[left, right].reshape(120, 3), least, rtol=0, atol=1e-7)


def test_dwithin_and_bearings(geod):
    a, b = points(120, 3), points(200, 4)
    wgs84 = geod(ellps="WGS84")
    d = metres(wgs84, a, b)
    found = ogrjoin.pairs(
        series(a), series(b), "dwithin", max_distance="1500km", metric="ellipsoid", bearing=True
    )
    left, right = np.asarray(found.left), np.asarray(found.right)
    expected = np.argwhere(d <= 1.5e6)
    assert len(expected) > 100
    assert sorted(zip(left.tolist(), right.tolist())) == sorted(map(tuple, expected.tolist()))
    course, _, _ = wgs84.inv(a[0][left], a[1][left], b[0][right], b[1][right])
    got = np.asarray(found.values["bearing"])
    apart = d[left, right] > 0
    assert np.isnan(got[~apart]).all()
    turn = (got[apart] - np.asarray(course)[apart] + 180) % 360 - 180
    assert np.abs(turn).max() < 1e-9


def test_validate(geod):
    a, b = series(points(80, 7)), series(points(90, 8))
    assert ogrjoin.validate(a, b, "nearest", k=2, metric="ellipsoid", reference="ellipsoid")


def test_errors(geod):
    shapely = pytest.importorskip("shapely")
    a, b = points(10, 5), points(10, 6)
    flat = series((a[0] * 1e4, a[1] * 1e4), "EPSG:3857")
    with pytest.raises(ogrjoin.Error, match="longitudes and latitudes"):
        ogrjoin.pairs(flat, flat, "nearest", metric="ellipsoid")
    with pytest.raises(ogrjoin.Error, match="give a side with a CRS"):
        ogrjoin.pairs(a, b, "nearest", metric="ellipsoid")
    with pytest.raises(ogrjoin.Error, match="two CRS"):
        ogrjoin.pairs(series(a), series(b, "EPSG:4267"), "nearest", metric="ellipsoid")
    with pytest.raises(ogrjoin.Error, match="lengths"):
        ogrjoin.pairs(series(a), series(b), "dwithin", max_distance="1deg", metric="ellipsoid")
    lines = series(b).copy()
    lines[3] = shapely.LineString([(0, 0), (1, 1)])
    with pytest.raises(ogrjoin.Error, match="one of the sides must be of points"):
        ogrjoin.pairs(lines, lines, "nearest", metric="ellipsoid")


def least(geod, p, line):
    """Returns the metres from a point to a line, by a golden-section search along each
    of its geodesics."""
    best = np.inf
    for (x0, y0), (x1, y1) in zip(line[:-1], line[1:]):
        course, _, length = geod.inv(x0, y0, x1, y1)

        def far(t):
            n = len(t)
            x, y, _ = geod.fwd([x0] * n, [y0] * n, [course] * n, t)
            return np.asarray(geod.inv([p[0]] * n, [p[1]] * n, x, y)[2])

        low, high = 0.0, length
        for _ in range(10):
            t = np.linspace(low, high, 60)
            d = far(t)
            i = int(d.argmin())
            best = min(best, d[i])
            low, high = t[max(i - 1, 0)], t[min(i + 1, 59)]
    return best


def lines(n, seed):
    """Returns short and long lines: across the antimeridian, at poles, and nearly
    around half the Earth."""
    r = np.random.default_rng(seed)
    found = []
    for i in range(n):
        x, y = r.uniform(-180, 180), np.degrees(np.arcsin(r.uniform(-1, 1)))
        step = 10.0 ** r.uniform(-4, 1.8)
        line = [(x, y)]
        for _ in range(1 + int(r.integers(3))):
            x, y = line[-1]
            line.append((x + r.uniform(-step, step), float(np.clip(y + r.uniform(-step, step), -90, 90))))
        found.append(line)
    found += [
        [(0, 0), (170, 0)],
        [(12, -60), (12, 60)],
        [(20, 80), (200, 80)],
        [(10, 20), (189.6, -20.3)],
        [(7, 7), (7, 7)],
        [(170, 10), (-170, -10)],
    ]
    return found


@pytest.mark.parametrize("turn", [False, True])
def test_lines(geod, turn):
    """nearest and dwithin, with points on either side, compared with a search along
    every edge."""
    shapely = pytest.importorskip("shapely")
    geopandas = pytest.importorskip("geopandas")
    wgs84 = geod(ellps="WGS84")
    a, b = points(25, 11), lines(25, 12)
    a[0][10:14], a[1][10:14] = [b[0][0][0], b[1][1][0], 12, 30], [b[0][0][1], b[1][1][1], 5, 0]
    shapes = geopandas.GeoSeries([shapely.LineString(line) for line in b], crs="EPSG:4326")
    d = np.array([[least(wgs84, (a[0][i], a[1][i]), line) for line in b] for i in range(len(a[0]))])
    sides = (shapes, series(a)) if turn else (series(a), shapes)
    d = d.T if turn else d
    found = ogrjoin.pairs(*sides, "nearest", k=4, metric="ellipsoid")
    left, right = np.asarray(found.left), np.asarray(found.right)
    np.testing.assert_allclose(np.asarray(found.distance), d[left, right], rtol=0, atol=1e-3)
    near = d[left, right] < 9e6
    np.testing.assert_allclose(np.asarray(found.distance)[near], d[left, right][near], rtol=0, atol=2e-6)
    np.testing.assert_allclose(
        d[left, right].reshape(-1, 4), np.sort(d, axis=1)[:, :4], rtol=0, atol=1e-3
    )
    found = ogrjoin.pairs(*sides, "dwithin", max_distance="3000km", metric="ellipsoid")
    got = set(zip(np.asarray(found.left).tolist(), np.asarray(found.right).tolist()))
    assert len(got) > 50
    assert got == set(map(tuple, np.argwhere(d <= 3e6).tolist()))


def test_polygons(geod):
    """Polygons have the distance 0 inside, otherwise that of the ring. Which points are
    inside is decided by a ring with a vertex every kilometre."""
    shapely = pytest.importorskip("shapely")
    geopandas = pytest.importorskip("geopandas")
    wgs84 = geod(ellps="WGS84")
    r = np.random.default_rng(13)
    rings = []
    for i in range(12):
        x, y, step = r.uniform(-150, 150), r.uniform(-60, 60), 10.0 ** r.uniform(-2, 1)
        turns = np.sort(r.uniform(0, 2 * np.pi, 7))
        rings.append([(x + step * np.cos(t), y + step * np.sin(t)) for t in turns])
    dense = []
    for ring in rings:
        at = []
        for (x0, y0), (x1, y1) in zip(ring, ring[1:] + ring[:1]):
            n = max(int(wgs84.inv(x0, y0, x1, y1)[2] / 1000), 1)
            at += [(x0, y0)] + wgs84.npts(x0, y0, x1, y1, n)
        dense.append(shapely.Polygon(at))
    x, y = (
        np.concatenate([r.uniform(min(p[i] for p in ring), max(p[i] for p in ring), 30) for ring in rings])
        for i in (0, 1)
    )
    found = ogrjoin.pairs(
        series((x, y)),
        geopandas.GeoSeries([shapely.Polygon(ring) for ring in rings], crs="EPSG:4326"),
        "dwithin",
        max_distance="1000km",
        metric="ellipsoid",
    )
    n_inside = 0
    for i, j, metres in zip(np.asarray(found.left), np.asarray(found.right), np.asarray(found.distance)):
        outline = least(wgs84, (x[i], y[i]), rings[j] + rings[j][:1])
        inside = dense[j].contains(shapely.Point(x[i], y[i]))
        assert abs(metres - (0 if inside else outline)) < 2e-6 or outline < 1
        n_inside += metres == 0
    assert n_inside > 50


def test_frames_on_the_sphere():
    geopandas = pytest.importorskip("geopandas")
    import ogrjoin.geopandas

    frame = geopandas.GeoDataFrame(geometry=series(([0, 1], [0, 0])))
    found = ogrjoin.geopandas.sjoin_nearest(
        frame, frame[1:], metric="sphere", distance_col="metres", max_distance=2e5
    )
    np.testing.assert_allclose(found["metres"], [6371008.7714 * np.radians(1), 0], atol=1e-6)


def test_rows_and_frames(geod):
    geopandas = pytest.importorskip("geopandas")
    pytest.importorskip("pyarrow")
    import ogrjoin.geopandas

    a, b = points(40, 5), points(60, 6)
    left, right = (geopandas.GeoDataFrame({"n": range(len(p[0]))}, geometry=series(p)) for p in (a, b))
    d = metres(geod(ellps="WGS84"), a, b)
    found = ogrjoin.geopandas.sjoin_nearest(left, right, metric="ellipsoid", distance_col="metres")
    np.testing.assert_allclose(found["metres"], d.min(axis=1)[found.index], rtol=0, atol=1e-7)
    table = ogrjoin.join(
        left, right, "nearest", metric="ellipsoid", bearing_field=True, name_distance="far"
    ).read_all()
    np.testing.assert_allclose(table.column("far").to_numpy(), d.min(axis=1), rtol=0, atol=1e-7)
    assert "join_bearing" in table.column_names
