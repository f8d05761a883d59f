#!/usr/bin/env python3
"""Draws pictures of the sample city and of the results of joins.

    draw_city.py map OUT.png JOINED LOTS STREETS LAND [WIDTH_FT]
    draw_city.py zones OUT.png TOTALS LOTS LAND
    draw_city.py shops OUT.png SHOPS LOTS STREETS LAND [WIDTH_FT]
    draw_city.py fleet OUT.png FOLDER LOTS STREETS LAND [WIDTH_FT]

JOINED is a join of each pickup with its nearest lot: use_code, land_use,
hour and join_distance. The map shows a window of WIDTH_FT (12,600) around the
middle of all pickups; the panel beside it counts all of them.

TOTALS is the output of -agg "count, mean(fare)": zones with count and mean_fare. A
zone is the darker the more pickups it has per acre; both numbers are drawn on it.

SHOPS is the output of -one_to_one -geometry connection for places_a and places_b, with
unmatched places in the layers a_only and b_only. The window is WIDTH_FT (1,500).

FOLDER is the output of samples/fleet.c: fences.csv, reports.csv and events.csv. The window
of WIDTH_FT (11,000) is around the fences. The path of the vehicle with the most events
has a colour of its own.

Python with GDAL and Qt is needed (Debian: python3-gdal, python3-pyqt5).
"""

import csv
import os
import sys

from osgeo import ogr

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
from PyQt5.QtCore import QPointF, QRectF, Qt  # noqa: E402
from PyQt5.QtGui import (  # noqa: E402
    QColor,
    QFont,
    QGuiApplication,
    QImage,
    QPainter,
    QPainterPath,
    QPen,
)

ogr.UseExceptions()

WATER, SHORE, PAPER = "#bfd9e4", "#93b7c6", "#fbfaf6"
INK, FAINT, RULE = "#26303a", "#6f7a83", "#d5d3c9"
UNMATCHED = "#101010"
USES = (
    "#e3a51a",  # homes
    "#e2681e",  # apartments
    "#c2272d",  # homes above shops
    "#b0338a",  # offices and shops
    "#6b4ba3",  # industry
    "#5c6f82",  # transport
    "#1f78b4",  # public buildings
    "#2e9348",  # parks
)
PARK = 8
FT2_PER_ACRE = 43560


def shade(colour, alpha):
    colour = QColor(colour)
    colour.setAlphaF(alpha)
    return colour


def mix(a, b, share):
    """Mixes two opaque colours; share: that of b."""
    pairs = zip(QColor(a).getRgb()[:3], QColor(b).getRgb()[:3])
    return QColor(*(round(x + (y - x) * share) for x, y in pairs))


class Picture:
    """Pixels, and the part of the plane that is shown in them."""

    def __init__(self, width, height):
        self.image = QImage(width, height, QImage.Format_RGB32)
        self.image.fill(QColor(WATER))
        self.painter = QPainter(self.image)
        self.painter.setRenderHint(QPainter.Antialiasing)
        self.x0 = self.y1 = self.feet = 0

    def show(self, middle, feet, width):
        """Shows the plane around middle in the `width` pixels on the left, each
        `feet` wide."""
        self.feet = feet
        self.x0 = middle[0] - width / 2 * feet
        self.y1 = middle[1] + self.image.height() / 2 * feet
        self.box = (self.x0, self.y1 - self.image.height() * feet,
                    self.x0 + width * feet, self.y1)

    def at(self, x, y):
        return QPointF((x - self.x0) / self.feet, (self.y1 - y) / self.feet)

    def path(self, shape):
        """Returns all rings or lines of a geometry as a path."""
        path = QPainterPath()
        for i in range(shape.GetGeometryCount()):
            path.addPath(self.path(shape.GetGeometryRef(i)))
        if shape.GetGeometryCount() == 0 and not shape.IsEmpty():
            first, *others = (self.at(p[0], p[1]) for p in shape.GetPoints())
            path.moveTo(first)
            for point in others:
                path.lineTo(point)
        return path

    def features(self, name):
        """Yields the features of a layer that are in the window, with their paths."""
        dataset = ogr.Open(name)
        layer = dataset.GetLayer(0)
        layer.SetSpatialFilterRect(*self.box)
        for feature in layer:
            if feature.GetGeometryRef() is not None:
                yield feature, self.path(feature.GetGeometryRef())

    def outline(self, path, width, colour):
        self.painter.strokePath(path, QPen(QColor(colour), width))

    def box_of(self, x, y, width, height, colour):
        self.painter.fillRect(QRectF(x, y, width, height), QColor(colour))

    def text(self, x, y, size, words, colour=INK, bold=False, align=0.0):
        """On the line y; align: 0 begins at x, 0.5 is centred, 1 ends there."""
        font = QFont("DejaVu Sans")
        font.setPixelSize(round(size))
        font.setBold(bold)
        self.painter.setFont(font)
        self.painter.setPen(QColor(colour))
        width = self.painter.fontMetrics().horizontalAdvance(words)
        self.painter.drawText(QPointF(x - align * width, y), words)

    def save(self, name):
        self.painter.end()
        if not self.image.save(name):
            sys.exit(f"draw_city: {name} was not written")


def places_of(layer, *fields):
    """Returns the indexes of these fields; ends the program if one is missing."""
    places = [layer.GetLayerDefn().GetFieldIndex(name) for name in fields]
    if min(places) < 0:
        sys.exit(f"draw_city: {layer.GetName()} has no fields {', '.join(fields)}")
    return places


# --- the map ---------------------------------------------------------------------

WIDTH, HEIGHT, MAP_WIDTH = 1600, 1200, 1170  # the panel has the rest


class Pickups:
    """Places with their use (0: no lot near), and what the panel counts."""

    def __init__(self, name):
        dataset = ogr.Open(name)
        layer = dataset.GetLayer(0)
        # fields by number, since access by name takes ten times as long
        code, name_of, hour, distance = places_of(
            layer, "use_code", "land_use", "hour", "join_distance")
        self.places, self.names = [], {}
        self.by_use = [0] * (len(USES) + 1)
        self.by_hour = [[0] * (len(USES) + 1) for _ in range(24)]
        self.n_inside, self.sum_distance = 0, 0.0
        for row in layer:
            point, use = row.GetGeometryRef(), 0
            if row.IsFieldSetAndNotNull(distance):
                use = row.GetFieldAsInteger(code)
                if use not in self.names:
                    self.names[use] = row.GetFieldAsString(name_of)
                feet = row.GetFieldAsDouble(distance)
                self.n_inside += feet == 0
                self.sum_distance += feet
            self.by_use[use] += 1
            self.by_hour[row.GetFieldAsInteger(hour)][use] += 1
            self.places.append((point.GetX(), point.GetY(), use))
        if not self.places:
            sys.exit(f"draw_city: nothing to draw in {name}")
        self.n, self.n_matched = len(self.places), len(self.places) - self.by_use[0]

    def middle(self):
        return [sorted(p[i] for p in self.places)[self.n // 2] for i in (0, 1)]


def draw_city(picture, lots, streets, land):
    for _, path in picture.features(land):
        picture.outline(path, 9, mix(WATER, SHORE, 0.5))
        picture.outline(path, 4, SHORE)
        picture.painter.fillPath(path, QColor(PAPER))
    for feature, path in picture.features(lots):
        use = feature["use_code"]
        colour = mix(PAPER, USES[use - 1], 0.38 if use == PARK else 0.26)
        for ring in path.toSubpathPolygons() if use == PARK else ():
            lake = QPainterPath()  # the holes of the park
            lake.addPolygon(ring)
            picture.painter.fillPath(lake, QColor(WATER))
        picture.painter.fillPath(path, colour)
        picture.outline(path, 0.4, mix(colour, "#5f6470", 0.38))
    for _, path in picture.features(streets):
        picture.outline(path, 0.8, mix(PAPER, "#8a8778", 0.35))


def draw_pickups(picture, pickups):
    pens = [QPen(shade(c, 0.38), 1.6, cap=Qt.RoundCap) for c in USES]
    pens.insert(0, QPen(shade(UNMATCHED, 0.8), 2.4, cap=Qt.RoundCap))
    x0, y0, x1, y1 = picture.box
    for x, y, use in pickups.places:
        if x0 <= x <= x1 and y0 <= y <= y1:
            picture.painter.setPen(pens[use])
            picture.painter.drawPoint(picture.at(x, y))


def draw_scale(picture, x, y):
    lengths = (100, 200, 500, 1000, 2000, 5000, 10000)
    length = max((n for n in lengths if n / picture.feet < 260), default=lengths[0])
    width = length / picture.feet
    picture.box_of(x - 16, y - 34, width + 32, 50, shade(PAPER, 0.88))
    picture.box_of(x - 1, y - 5, width + 2, 8, INK)
    picture.box_of(x + width / 2, y - 4, width / 2, 6, PAPER)
    picture.text(x, y - 13, 14, f"{length:,} ft")


def draw_legend(picture, x, x1, y, pickups):
    """Draws one row for each use: name, bar, share."""
    picture.text(x, y, 16, "Land use of the nearest lot", bold=True)
    y += 30
    most = max(1, *pickups.by_use[1:])
    for use, colour in enumerate(USES, 1):
        n = pickups.by_use[use]
        picture.text(x, y, 14, pickups.names.get(use, ""))
        picture.box_of(x, y + 10, max(2, (x1 - x - 86) * n / most), 13, colour)
        picture.text(x1, y + 22, 14, f"{100 * n / pickups.n:.1f} %", align=1)
        y += 50
    picture.painter.setPen(QPen(QColor(UNMATCHED), 8, cap=Qt.RoundCap))
    picture.painter.drawPoint(QPointF(x + 4, y - 6))
    picture.text(x + 18, y - 1, 14, "No lot in reach")
    picture.text(x1, y - 1, 14, f"{100 * pickups.by_use[0] / pickups.n:.1f} %", align=1)
    return y + 58


def draw_hours(picture, x, x1, y, pickups):
    """Draws stacked bars, one for each hour."""
    height, step = 190, (x1 - x) / 24
    picture.text(x, y, 16, "Pickups by hour of the day", bold=True)
    y += 22 + height
    most = max(sum(hour[1:]) for hour in pickups.by_hour)
    for hour, by_use in enumerate(pickups.by_hour):
        top = y
        for n, colour in zip(by_use[1:], USES):
            top -= height * n / max(1, most)
            picture.box_of(x + step * hour + 1, top, step - 2, height * n / max(1, most), colour)
    picture.box_of(x, y, x1 - x, 1, FAINT)
    for hour in range(0, 25, 6):
        picture.box_of(x + step * hour - 0.5, y, 1, 6, FAINT)
        picture.text(x + step * hour, y + 21, 13, str(hour), FAINT, align=hour / 24)
    return y + 62


def draw_panel(picture, pickups, n_lots):
    x, x1, y = MAP_WIDTH + 34, WIDTH - 34, 66
    picture.box_of(MAP_WIDTH, 0, WIDTH - MAP_WIDTH, HEIGHT, PAPER)
    picture.box_of(MAP_WIDTH, 0, 1.5, HEIGHT, RULE)
    picture.text(x, y, 34, "Where taxi trips", bold=True)
    picture.text(x, y + 42, 34, "begin", bold=True)
    picture.text(x, y + 82, 15, f"{pickups.n:,} pickups, each joined to", FAINT)
    picture.text(x, y + 105, 15, f"the nearest of {n_lots:,} tax lots", FAINT)
    picture.text(x, y + 128, 15, "within 100 feet", FAINT)
    y = draw_legend(picture, x, x1, y + 174, pickups)
    y = draw_hours(picture, x, x1, y, pickups)
    for words, number in (
        ("Pickups with a lot", f"{100 * pickups.n_matched / pickups.n:.2f} %"),
        ("Inside their lot", f"{100 * pickups.n_inside / pickups.n:.2f} %"),
        ("Mean distance", f"{pickups.sum_distance / max(1, pickups.n_matched):.1f} ft"),
    ):
        picture.text(x, y, 14, words)
        picture.text(x1, y, 14, number, align=1)
        y += 24
    picture.box_of(x, HEIGHT - 76, x1 - x, 1, RULE)
    picture.text(x, HEIGHT - 50, 13, "ogrjoin -op nearest -max_distance 100", FAINT)
    picture.text(x, HEIGHT - 30, 13, "Generated city, EPSG:2263", FAINT)


def draw_map(out, joined, lots, streets, land, width_ft="12600"):
    pickups = Pickups(joined)
    picture = Picture(WIDTH, HEIGHT)
    picture.show(pickups.middle(), float(width_ft) / MAP_WIDTH, MAP_WIDTH)
    draw_city(picture, lots, streets, land)
    draw_pickups(picture, pickups)
    draw_scale(picture, 36, HEIGHT - 40)
    dataset = ogr.Open(lots)
    draw_panel(picture, pickups, dataset.GetLayer(0).GetFeatureCount())
    picture.save(out)


# --- the zones -------------------------------------------------------------------

SIDE, MARGIN = 1000, 30
# Pickups per acre: each class up to its limit, the last without one.
LIMITS = (25, 50, 100, 200, 400)
CLASSES = ("#fff3d1", "#fbd38a", "#f5a65b", "#e5743d", "#bd3c33", "#7a1430")


def zone_class(zone):
    acres = zone.GetGeometryRef().GetArea() / FT2_PER_ACRE
    return sum(zone["count"] / acres >= limit for limit in LIMITS)


def draw_zone_legend(picture, x, y):
    picture.text(x, y, 26, "Taxi pickups by zone", bold=True)
    picture.text(x, y + 30, 14, "Their number and mean fare in dollars")
    picture.text(x, y + 50, 14, "Colour: pickups per acre")
    between = [f"{a} to {b}" for a, b in zip(LIMITS, LIMITS[1:])]
    names = [f"under {LIMITS[0]}", *between, f"{LIMITS[-1]} and more"]
    for i, (colour, words) in enumerate(zip(CLASSES, names)):
        picture.box_of(x, y + 70 + 25 * i, 34, 19, colour)
        picture.text(x + 46, y + 85 + 25 * i, 14, words)
    notes = ('ogrjoin -agg "count, mean(fare)"', "Generated city, EPSG:2263")
    for i, words in enumerate(notes):
        picture.text(SIDE - MARGIN, SIDE - 42 + 20 * i, 13, words, FAINT, align=1)


def draw_zones(out, totals, lots, land):
    dataset = ogr.Open(totals)
    layer = dataset.GetLayer(0)
    places_of(layer, "count", "mean_fare")
    x0, x1, y0, y1 = layer.GetExtent()
    picture = Picture(SIDE, SIDE)
    feet = max(x1 - x0, y1 - y0) / (SIDE - 2 * MARGIN)
    picture.show(((x0 + x1) / 2, (y0 + y1) / 2), feet, SIDE)
    for _, path in picture.features(land):
        picture.outline(path, 6, SHORE)
    for zone, path in picture.features(totals):
        picture.painter.fillPath(path, QColor(CLASSES[zone_class(zone)]))
    for _, path in picture.features(lots):
        picture.outline(path, 0.4, shade(INK, 0.1))
    for zone, path in picture.features(totals):
        picture.outline(path, 2, PAPER)
        centre = zone.GetGeometryRef().Centroid()
        at = picture.at(centre.GetX(), centre.GetY())
        colour = PAPER if zone_class(zone) > 2 else INK
        picture.text(at.x(), at.y() - 1, 14, str(zone["count"]), colour, True, 0.5)
        picture.text(at.x(), at.y() + 15, 12, f"{zone['mean_fare']:.2f}", colour, align=0.5)
    draw_zone_legend(picture, MARGIN, 52)
    picture.save(out)


# --- the shops of two maps ----------------------------------------------------------

SHOPS_WIDTH, SHOPS_HEIGHT, HEAD = 1100, 760, 92
SIDES = ("#1f6fb4", "#d9641a")  # colours of map a and of map b
PAIR, WRONG = "#2a3138", "#d3122f"


def draw_shop(picture, x, y, side, is_alone):
    at = picture.at(x, y)
    picture.painter.setPen(QPen(QColor(SIDES[side]), 2))
    picture.painter.setBrush(QColor(PAPER if is_alone else SIDES[side]))
    picture.painter.drawEllipse(at, 5, 5)


def draw_pair(picture, pair):
    line = pair.GetGeometryRef()
    (x, y), (x1, y1) = line.GetPoint_2D(0), line.GetPoint_2D(1)
    is_right = pair["place_id"] == pair["join_place_id"]
    picture.painter.setPen(QPen(QColor(PAIR if is_right else WRONG), 1.6))
    picture.painter.drawLine(picture.at(x, y), picture.at(x1, y1))
    draw_shop(picture, x, y, 0, False)
    draw_shop(picture, x1, y1, 1, False)


def draw_names(picture, pair, taken):
    """Both beside their places, or neither where other names are in the way."""
    line = pair.GetGeometryRef()
    boxes, texts = [], []
    lower = line.GetY(0) < line.GetY(1)
    for side, name in enumerate((pair["name"], pair["join_name"])):
        at = picture.at(line.GetX(side), line.GetY(side))
        down = 1 if lower == (side == 0) else -1
        x, y = at.x() + 8, at.y() + 5 + 6 * down
        boxes.append(QRectF(x - 14, y - 11, 8 * len(name) + 14, 14))
        texts.append((x, y, 12, name, SIDES[side]))
    if not any(box.intersects(other) for box in boxes for other in taken):
        taken += boxes
        for words in texts:
            picture.text(*words)


def draw_shops_legend(picture):
    picture.box_of(0, 0, SHOPS_WIDTH, HEAD, PAPER)
    picture.text(24, 36, 24, "The same shops on two maps", bold=True)
    x = 24
    for side, is_alone, words in (
        (0, False, "map a"), (1, False, "map b"), (0, True, "only on a"), (1, True, "only on b")
    ):
        picture.painter.setPen(QPen(QColor(SIDES[side]), 2))
        picture.painter.setBrush(QColor(PAPER if is_alone else SIDES[side]))
        picture.painter.drawEllipse(QPointF(x + 6, 66), 5, 5)
        picture.text(x + 20, 71, 14, words)
        x += 110
    for colour, words in ((PAIR, "a pair by name and distance"), (WRONG, "a wrong one")):
        picture.box_of(x, 65, 24, 2, colour)
        picture.text(x + 32, 71, 14, words)
        x += 250
    notes = ("ogrjoin -op dwithin -max_distance 200m", "-similar name:0.5 -one_to_one")
    for i, words in enumerate(notes):
        picture.text(SHOPS_WIDTH - 24, 28 + 18 * i, 13, words, FAINT, align=1)


def draw_shops(out, shops, lots, streets, land, width_ft="1500"):
    dataset = ogr.Open(shops)
    pairs = dataset.GetLayer(0)
    places_of(pairs, "place_id", "join_place_id", "name", "join_name")
    picture = Picture(SHOPS_WIDTH, SHOPS_HEIGHT)
    starts = [f.GetGeometryRef().GetPoint_2D(0) for f in pairs]
    if not starts:
        sys.exit(f"draw_city: nothing to draw in {shops}")
    middle = [sorted(p[i] for p in starts)[len(starts) // 4] for i in (0, 1)]
    picture.show(middle, float(width_ft) / SHOPS_WIDTH, SHOPS_WIDTH)
    draw_city(picture, lots, streets, land)
    for side, name in enumerate(("a_only", "b_only")):
        layer = dataset.GetLayer(name)
        layer.SetSpatialFilterRect(*picture.box)
        for feature in layer:
            draw_shop(picture, *feature.GetGeometryRef().GetPoint_2D(0), side, True)
    pairs.SetSpatialFilterRect(*picture.box)
    taken = []
    for draw in (draw_pair, lambda *of: draw_names(*of, taken)):
        for pair in pairs:
            draw(picture, pair)
    draw_scale(picture, 36, SHOPS_HEIGHT - 30)
    draw_shops_legend(picture)
    picture.save(out)


# --- a fleet and its events -----------------------------------------------------------

FLEET_WIDTH, FLEET_HEIGHT = 1100, 1000
FENCE, TRACK, ENTER, EXIT = "#3a6ea5", "#3d3a52", "#1d8a4a", "#d3122f"
ONE = "#c45a00"  # the way of one vehicle


def rows_of(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def draw_fences(picture, fences):
    for name, shape in fences:
        path = picture.path(shape)
        picture.painter.fillPath(path, shade(FENCE, 0.16))
        picture.outline(path, 2.6, FENCE)


def draw_fence_names(picture, fences):
    for name, shape in fences:
        centre = shape.Centroid()
        at = picture.at(centre.GetX(), centre.GetY())
        picture.box_of(at.x() - 42, at.y() - 11, 84, 22, FENCE)
        picture.text(at.x(), at.y() + 5, 14, name, PAPER, True, 0.5)


def draw_track(picture, track, width, colour):
    path = QPainterPath(picture.at(*track[0]))
    for place in track[1:]:
        path.lineTo(picture.at(*place))
    picture.painter.setBrush(Qt.NoBrush)
    picture.painter.setPen(QPen(colour, width, cap=Qt.RoundCap, join=Qt.RoundJoin))
    picture.painter.drawPath(path)


def draw_tracks(picture, reports, one):
    """The ways of all vehicles, that of one on top."""
    tracks = {}
    for row in reports:
        tracks.setdefault(row["vehicle"], []).append((float(row["x"]), float(row["y"])))
    for track in tracks.values():
        draw_track(picture, track, 1.4, shade(TRACK, 0.3))
    if one in tracks:
        draw_track(picture, tracks[one], 7, shade(PAPER, 0.9))
        draw_track(picture, tracks[one], 4, QColor(ONE))
    return len(tracks)


def busiest_vehicle(events):
    counts = {}
    for row in events:
        counts[row["vehicle"]] = counts.get(row["vehicle"], 0) + 1
    return max(counts, key=lambda vehicle: (counts[vehicle], -int(vehicle)), default=None)


def draw_event(picture, at, kind):
    colour = ENTER if kind == "enter" else EXIT
    picture.painter.setPen(QPen(QColor(colour), 2))
    picture.painter.setBrush(QColor(colour if kind == "enter" else PAPER))
    picture.painter.drawEllipse(at, 4.2, 4.2)


def draw_fleet_legend(picture, n_vehicles, n_reports, events, one):
    picture.box_of(0, 0, FLEET_WIDTH, HEAD, PAPER)
    picture.text(24, 36, 24, f"{n_vehicles} vehicles, {n_reports:,} reports, one of each every ten seconds", bold=True)
    x = 24
    picture.box_of(x, 65, 24, 2, shade(TRACK, 0.5))
    picture.text(x + 32, 71, 14, "way of a vehicle")
    x += 170
    if one is not None:
        picture.box_of(x, 64, 24, 4, ONE)
        picture.text(x + 32, 71, 14, f"way of vehicle {one}")
        x += 190
    for kind, words in (("enter", "first report inside"), ("exit", "first report outside again")):
        draw_event(picture, QPointF(x + 6, 66), kind)
        n = sum(row["event"] == kind for row in events)
        picture.text(x + 20, 71, 14, f"{words}: {n}")
        x += 200
    notes = ("ogrjoin -events -key vehicle -op within", "events.csv reports.csv fences.csv")
    for i, words in enumerate(notes):
        picture.text(FLEET_WIDTH - 24, 20 + 17 * i, 13, words, FAINT, align=1)


def draw_fleet(out, folder, lots, streets, land, width_ft="11000"):
    fences = [(row["name"], ogr.CreateGeometryFromWkt(row["WKT"])) for row in rows_of(folder, "fences.csv")]
    reports, events = rows_of(folder, "reports.csv"), rows_of(folder, "events.csv")
    if not fences or not reports:
        sys.exit(f"draw_city: nothing to draw in {folder}")
    boxes = [shape.GetEnvelope() for _, shape in fences]
    middle = [(min(b[i] for b in boxes) + max(b[i + 1] for b in boxes)) / 2 for i in (0, 2)]
    feet = float(width_ft) / FLEET_WIDTH
    picture = Picture(FLEET_WIDTH, FLEET_HEIGHT)
    picture.show((middle[0], middle[1] + HEAD / 2 * feet), feet, FLEET_WIDTH)
    draw_city(picture, lots, streets, land)
    picture.box_of(0, 0, FLEET_WIDTH, FLEET_HEIGHT, shade(PAPER, 0.55))
    one = busiest_vehicle(events)
    draw_fences(picture, fences)
    n_vehicles = draw_tracks(picture, reports, one)
    draw_fence_names(picture, fences)
    for row in events:
        draw_event(picture, picture.at(float(row["x"]), float(row["y"])), row["event"])
    draw_scale(picture, 36, FLEET_HEIGHT - 30)
    draw_fleet_legend(picture, n_vehicles, len(reports), events, one)
    picture.save(out)


def main():
    what, *words = sys.argv[1:] or [""]
    if what == "map" and len(words) in (5, 6):
        draw = draw_map
    elif what == "zones" and len(words) == 4:
        draw = draw_zones
    elif what == "shops" and len(words) in (5, 6):
        draw = draw_shops
    elif what == "fleet" and len(words) in (5, 6):
        draw = draw_fleet
    else:
        sys.exit(__doc__)
    application = QGuiApplication(sys.argv[:1])
    draw(*words)
    application.quit()


if __name__ == "__main__":
    main()
