#!/usr/bin/python3
"""Deterministic NYC-like data generator (EPSG:2263 feet).  Debian numpy >= 1.24.

usage: citygen.py OUTDIR NPOINTS NLOTS [--seed 20150735] [--skew 0] [--zones NLOTS/50]

World: nav avenues (900 ft apart) x nst streets (264 ft apart), a square-ish grid of just enough blocks for NLOTS lots;
       every intersection jittered by U(-15,15) ft in x and y; whole grid rotated by 29 deg about its centre, which is put
       at (990000, 197000) in EPSG:2263.  Street right of way 60 ft, avenue 100 ft.
lots:  each block (intersection quad inset by 50/30 ft, bilinear u,v frame) = 2 rows x 11..21 columns of lots, sharing
       side and back boundaries (identical doubles on shared vertices; back line has T-junctions).  20% of the side
       boundaries have an L jog (2 shared extra vertices); 22% of the fronts have 1..12 extra vertices (+-3 ft);
       1.5% slivers (about 1 ft wide); 1% one hole; about 1% two-part multipolygons (column i and i+2).  No overlaps
       (up to rounding at T-junctions: back vertices are computed on the line v=0.5, not exactly collinear).
       4..20 distinct vertices, about 6.4 vertices a lot with the closing one.  lot_id = 1e9 + block*10000 + lot (BBL-like).
points: 60% at a random intersection + N(0,30) ft, 30% uniform along a random centreline + N(0,30), 10% uniform in the
       (rotated) grid rectangle.  --skew k>0: intersections/streets are drawn as rank floor(n*U^(1+k)) of distance from
       the centre.  id = 1..N, fare = round(2.5+lognormal(2,.6),2), hour 0..23.
streets: centreline features intersection-to-intersection, 0..3 extra vertices (+-6 ft), street_id = 1..
zones: NLOTS/50 star-shaped blobs, 20..60 vertices, radius 300..1200 ft (overlapping each other), zone_id = 1..

Raw little-endian files in OUTDIR (C order, no header), counts in meta.json:
  points.x.f64 points.y.f64 points.id.i64 points.fare.f64 points.hour.i32
  lots.x.f64 lots.y.f64 (all vertices, rings closed)  lots.ring.i32 (nrings+1, first vertex of ring)
  lots.part.i32 (nparts+1, first ring of part)  lots.feat.i32 (nfeat+1, first part of feature)
  lots.id.i64 lots.landuse.u8 (0..11 -> "01".."12")      zones.* the same (no landuse)
  streets.x.f64 streets.y.f64 streets.feat.i32 (nfeat+1, first vertex) streets.id.i64
"""
import sys, os, json, argparse
import numpy as np
ap = argparse.ArgumentParser()
ap.add_argument('out'); ap.add_argument('npoints', type=int); ap.add_argument('nlots', type=int)
ap.add_argument('--seed', type=int, default=20150735); ap.add_argument('--skew', type=float, default=0.0)
ap.add_argument('--zones', type=int, default=0)
a = ap.parse_args(); os.makedirs(a.out, exist_ok=True)
M = a.nlots; N = a.npoints
rng = np.random.Generator(np.random.PCG64(a.seed))
AV, ST = 900.0, 264.0
nblk = int(M / 31.0) + 8
nav = max(2, int(round((nblk * ST / AV) ** .5))); nst = -(-nblk // nav)      # blocks in x / y
gx, gy = nav + 1, nst + 1
ix = np.arange(gx)[None, :] * AV + rng.uniform(-15, 15, (gy, gx)); iy = np.arange(gy)[:, None] * ST + rng.uniform(-15, 15, (gy, gx))
W, H = nav * AV, nst * ST
th = np.deg2rad(29.0); ct, sn = np.cos(th), np.sin(th)
def world(x, y):
    x = x - W / 2; y = y - H / 2
    return 990000.0 + x * ct - y * sn, 197000.0 + x * sn + y * ct
def save(name, arr, dt): np.ascontiguousarray(arr, dtype=dt).tofile(os.path.join(a.out, name))
def ragged(starts, counts):
    """Returns the indices of runs of different lengths: of run i, starts[i] and the
    next counts[i] - 1."""
    tot = int(counts.sum()); off = np.cumsum(counts) - counts
    return np.arange(tot) - np.repeat(off - starts, counts)
# ---------------------------------------------------------------- lots
B = nav * nst; bi = np.arange(B); bx, by = bi % nav, bi // nav
# corners of block quads in the local frame
c00 = (ix[by, bx] + 50, iy[by, bx] + 30); c10 = (ix[by, bx + 1] - 50, iy[by, bx + 1] + 30)
c01 = (ix[by + 1, bx] + 50, iy[by + 1, bx] - 30); c11 = (ix[by + 1, bx + 1] - 50, iy[by + 1, bx + 1] - 30)
R = 2 * B; ncol = rng.integers(11, 22, R); P = int(ncol.sum()); rstart = np.cumsum(ncol) - ncol
prow = np.repeat(np.arange(R), ncol); pcol = np.arange(P) - rstart[prow]
first = pcol == 0; last = pcol == ncol[prow] - 1
w = rng.uniform(.5, 1.5, P); sliver = rng.random(P) < .015; w[sliver] = rng.uniform(.01, .03, int(sliver.sum()))
rs = np.add.reduceat(w, rstart); w /= rs[prow]
cum = np.cumsum(w); base = (cum - w)[rstart]; uR = cum - base[prow]; uR[last] = 1.0
uL = np.empty(P); uL[1:] = uR[:-1]; uL[first] = 0.0
JR = (rng.random(P) < .20) & ~last; wn = np.append(w[1:], 1.0)
d = np.where(JR, rng.choice([-.2, .2], P) * np.minimum(w, wn), 0.0); t = rng.uniform(.15, .35, P)
JL = np.zeros(P, bool); JL[1:] = JR[:-1]; JL[first] = False
dL = np.zeros(P); dL[1:] = d[:-1]; dL[first] = 0; tL = np.zeros(P); tL[1:] = t[:-1]
f = np.where(rng.random(P) < .22, np.minimum(rng.geometric(.36, P), 12), 0); f[sliver] = 0
cnt = 5 + f + 2 * JR + 2 * JL; vo = np.cumsum(cnt) - cnt; V = int(cnt.sum())
u = np.empty(V); v = np.empty(V)
def put(idx, uu, vv): u[idx] = uu; v[idx] = vv
put(vo, uL, 0.0)
fi = ragged(vo + 1, f); fp = np.repeat(np.arange(P), f); k = fi - vo[fp] - 1
fr = (k + 1 + rng.uniform(-.3, .3, len(k))) / (f[fp] + 1)
put(fi, uL[fp] + (uR - uL)[fp] * fr, rng.uniform(-.015, .015, len(k)))
q = vo + 1 + f; put(q, uR, 0.0); q = q + 1
m = JR; put(q[m], uR[m], t[m]); put(q[m] + 1, uR[m] + d[m], t[m]); q = q + 2 * JR
put(q, uR + d, .5); put(q + 1, uL + dL, .5); q = q + 2
m = JL; put(q[m], uL[m] + dL[m], tL[m]); put(q[m] + 1, uL[m], tL[m]); q = q + 2 * JL
put(q, uL, 0.0)
vp = np.repeat(np.arange(P), cnt)
odd = (prow & 1)[vp] == 1                       # row 1: mirror v, reverse the ring
rev = 2 * vo[vp] + cnt[vp] - 1 - np.arange(V); src = np.where(odd, rev, np.arange(V)); u = u[src]; v = v[src]
v = np.where(odd, 1.0 - v, v)
hole = (rng.random(P) < .01) & ~sliver; hp = np.flatnonzero(hole); nh = len(hp)
hu0 = uL[hp] + .35 * w[hp]; hu1 = uL[hp] + .65 * w[hp]
hu = np.stack([hu0, hu0, hu1, hu1, hu0], 1).ravel(); hv = np.tile([.2, .3, .3, .2, .2], nh)
ho = np.repeat((prow & 1)[hp] == 1, 5); hv = np.where(ho, 1 - hv, hv)
hr = np.arange(nh * 5); hr = np.where(ho, (hr // 5) * 10 + 4 - hr, hr); hu = hu[hr]; hv = hv[hr]
def bil(uu, vv, b):
    out = []
    for k in (0, 1):
        out.append((1 - vv) * ((1 - uu) * c00[k][b] + uu * c10[k][b]) + vv * ((1 - uu) * c01[k][b] + uu * c11[k][b]))
    return world(*out)
ox, oy = bil(u, v, prow[vp] // 2); hx, hy = bil(hu, hv, np.repeat(prow[hp] // 2, 5))
allx = np.concatenate([ox, hx]); ally = np.concatenate([oy, hy])
# features: parts i (col%4==0) and i+2 of one row merge with p=.04
head = (pcol % 4 == 0) & (pcol + 2 < ncol[prow]) & (rng.random(P) < .04)
owner = np.arange(P); hh = np.flatnonzero(head); owner[hh + 2] = hh
order = np.lexsort((np.arange(P), owner)); isfirst = owner[order] == order
featno = np.cumsum(isfirst) - 1; keep = featno < M; order = order[keep]; featno = featno[keep]
if featno[-1] != M - 1: sys.exit('not enough lots %d' % featno[-1])
# rings of kept parts in order
nr = 1 + hole[order].astype(int); hidx = np.full(P, -1); hidx[hp] = np.arange(nh)
ring_o = np.cumsum(nr) - nr; NR = int(nr.sum())
rst = np.empty(NR, np.int64); rc = np.empty(NR, np.int64)
rst[ring_o] = vo[order]; rc[ring_o] = cnt[order]
hm = hole[order]; rst[ring_o[hm] + 1] = V + 5 * hidx[order[hm]]; rc[ring_o[hm] + 1] = 5
g = ragged(rst, rc); lx, ly = allx[g], ally[g]
save('lots.x.f64', lx, '<f8'); save('lots.y.f64', ly, '<f8')
save('lots.ring.i32', np.concatenate([[0], np.cumsum(rc)]), '<i4')
save('lots.part.i32', np.concatenate([[0], np.cumsum(nr)]), '<i4')
save('lots.feat.i32', np.concatenate([np.flatnonzero(np.append(True, featno[1:] != featno[:-1])), [len(order)]]), '<i4')
fpart = order[np.append(True, featno[1:] != featno[:-1])]; fb = prow[fpart] // 2
fstart = rstart[2 * fb]
save('lots.id.i64', 1000000000 + fb.astype(np.int64) * 10000 + (fpart - fstart) + 1, '<i8')
save('lots.landuse.u8', rng.choice(12, M, p=np.array([38, 20, 10, 6, 5, 3, 2, 3, 2, 2, 4, 5]) / 100.), 'u1')
# ---------------------------------------------------------------- streets
js, je = [], []
hs = (np.arange(gy)[:, None] * gx + np.arange(gx - 1)[None, :]).ravel(); vs = (np.arange(gy - 1)[:, None] * gx + np.arange(gx)[None, :]).ravel()
s0 = np.concatenate([hs, vs]); s1 = np.concatenate([hs + 1, vs + gx]); S = len(s0)
fx, fy = ix.ravel(), iy.ravel(); ne = rng.integers(0, 4, S); sc = ne + 2; so = np.cumsum(sc) - sc
sx = np.empty(int(sc.sum())); sy = sx.copy()
sx[so] = fx[s0]; sy[so] = fy[s0]; sx[so + sc - 1] = fx[s1]; sy[so + sc - 1] = fy[s1]
ei = ragged(so + 1, ne); ep = np.repeat(np.arange(S), ne); fr = (ei - so[ep]) / (ne[ep] + 1.0)
sx[ei] = fx[s0][ep] * (1 - fr) + fx[s1][ep] * fr + rng.uniform(-6, 6, len(ei)); sy[ei] = fy[s0][ep] * (1 - fr) + fy[s1][ep] * fr + rng.uniform(-6, 6, len(ei))
wx, wy = world(sx, sy); save('streets.x.f64', wx, '<f8'); save('streets.y.f64', wy, '<f8')
save('streets.feat.i32', np.append(so, len(sx)), '<i4'); save('streets.id.i64', np.arange(1, S + 1), '<i8')
# ---------------------------------------------------------------- zones
Z = a.zones or max(20, M // 50); zc = rng.integers(20, 61, Z); zo = np.cumsum(zc + 1) - zc - 1
zx0, zy0, zr = rng.uniform(0, W, Z), rng.uniform(0, H, Z), rng.uniform(300, 1200, Z)
zi = ragged(zo, zc + 1); zp = np.repeat(np.arange(Z), zc + 1); k = (zi - zo[zp]) % zc[zp]
rad = rng.uniform(.7, 1.0, len(zi)); rad[zo + zc] = rad[zo]
zx = zx0[zp] + zr[zp] * rad * np.cos(2 * np.pi * k / zc[zp]); zy = zy0[zp] + zr[zp] * rad * np.sin(2 * np.pi * k / zc[zp])
zx, zy = world(zx, zy); save('zones.x.f64', zx, '<f8'); save('zones.y.f64', zy, '<f8')
save('zones.ring.i32', np.append(zo, len(zx)), '<i4'); save('zones.part.i32', np.arange(Z + 1), '<i4'); save('zones.feat.i32', np.arange(Z + 1), '<i4')
save('zones.id.i64', np.arange(1, Z + 1), '<i8')
# ---------------------------------------------------------------- points
kind = rng.random(N); n1 = gx * gy
def pick(n, cx, cy, m):
    if a.skew <= 0: return rng.integers(0, n, m)
    return np.argsort((cx - W / 2) ** 2 + (cy - H / 2) ** 2, kind='stable')[np.minimum((n * rng.random(m) ** (1 + a.skew)).astype(np.int64), n - 1)]
px = np.empty(N); py = np.empty(N)
i = pick(n1, fx, fy, N); px[:] = fx[i]; py[:] = fy[i]
m = (kind >= .6) & (kind < .9); e = pick(S, (fx[s0] + fx[s1]) / 2, (fy[s0] + fy[s1]) / 2, int(m.sum())); fr = rng.random(int(m.sum()))
px[m] = fx[s0[e]] * (1 - fr) + fx[s1[e]] * fr; py[m] = fy[s0[e]] * (1 - fr) + fy[s1[e]] * fr
px += rng.normal(0, 30, N); py += rng.normal(0, 30, N)
m = kind >= .9; px[m] = rng.uniform(0, W, int(m.sum())); py[m] = rng.uniform(0, H, int(m.sum()))
wx, wy = world(px, py)
save('points.x.f64', wx, '<f8'); save('points.y.f64', wy, '<f8'); save('points.id.i64', np.arange(1, N + 1), '<i8')
save('points.fare.f64', np.round(2.5 + rng.lognormal(2, .6, N), 2), '<f8'); save('points.hour.i32', rng.integers(0, 24, N), '<i4')
meta = dict(seed=a.seed, skew=a.skew, npoints=N, nlots=M, nparts=len(order), nrings=NR, nvertices=len(lx), nstreets=S, nstreetvertices=len(sx), nzones=Z, nzonevertices=len(zx),
            nav=nav, nst=nst, bbox=[float(wx.min()), float(wy.min()), float(wx.max()), float(wy.max())], vert_per_lot=len(lx) / M, nmulti=int((np.diff(np.append(np.flatnonzero(np.append(True, featno[1:] != featno[:-1])), len(order))) > 1).sum()), nholes=int(hm.sum()))
json.dump(meta, open(os.path.join(a.out, 'meta.json'), 'w'), indent=1); print(json.dumps(meta))
