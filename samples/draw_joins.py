#!/usr/bin/env python3
"""Draws pictures of three joins of small generated layers, each with its result.

    draw_joins.py along|time|covered OUT.png [OGRJOIN]

along    places along a street: how far from its start, how far to the left or right
time     two ships: reports at most 100 m and 10 minutes apart
covered  the share of each lot that flood zones cover together

OGRJOIN is the command (default: ogrjoin).  Everything that is drawn and written in a
picture is read from the output of the command.  Python with GDAL and Qt is needed
(Debian: python3-gdal, python3-pyqt5).
"""

import json
import math
import os
import subprocess
import sys
import tempfile

import draw_city as drawing
from osgeo import ogr
from PyQt5.QtCore import Qt
from PyQt5.QtGui import QColor, QPen

WIDTH, HEIGHT = 1000, 560
LEFT, RIGHT, MATCH = "#0072b2", "#d55e00", "#009e73"  # also for the colour-blind
CRS = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32631"}}


def write(path, kind, rows):
    """Writes rows of (coordinates, attributes) as GeoJSON."""
    features = [
        {"type": "Feature", "properties": values,
         "geometry": {"type": kind, "coordinates": coordinates}}
        for coordinates, values in rows
    ]  # fmt: skip
    with open(path, "w") as file:
        json.dump({"type": "FeatureCollection", "crs": CRS, "features": features}, file)


def join(command, folder, *words):
    out = f"{folder}/out.gpkg"
    sides = [f"{folder}/a.json", f"{folder}/b.json"]
    subprocess.run([command, "-q", "-overwrite", *words, out, *sides], check=True)
    return out


def rows_of(path):
    """Geometry and attributes of each feature of a file."""
    dataset = ogr.Open(path)
    return [(f.GetGeometryRef().Clone(), f.items()) for f in dataset.GetLayer(0)]


def begin(title, note):
    picture = drawing.Picture(WIDTH, HEIGHT)
    picture.box_of(0, 0, WIDTH, HEIGHT, drawing.PAPER)
    picture.show((500, 260), 1, WIDTH)
    picture.text(24, 38, 24, title, bold=True)
    picture.text(24, 66, 18, note, drawing.FAINT)
    return picture


def dot(picture, x, y, colour, size=9):
    picture.painter.setPen(QPen(QColor("#ffffff"), 2))
    picture.painter.setBrush(QColor(colour))
    picture.painter.drawEllipse(picture.at(x, y), size, size)
    picture.painter.setBrush(Qt.NoBrush)


def label(picture, x, y, words, colour=drawing.INK, align=0.5):
    at = picture.at(x, y)
    picture.text(at.x(), at.y(), 18, words, colour, align=align)


def draw_along(command, folder, out):
    street = [[60, 120], [230, 230], [420, 180], [600, 290], [780, 260], [940, 400]]
    houses = [(150, 260), (250, 120), (420, 290), (560, 150), (700, 380), (850, 210)]
    write(f"{folder}/a.json", "Point", [(place, {}) for place in houses])
    write(f"{folder}/b.json", "LineString", [(street, {})])
    found = join(
        command, folder, "-op", "nearest", "-geometry", "connection", "-along_field", "along",
        "-offset_field", "side_m", "-side_field", "side",
    )  # fmt: skip
    picture = begin("Place along lines", "metres from the start of the street, and beside it")
    path = picture.path(ogr.CreateGeometryFromJson(
        json.dumps({"type": "LineString", "coordinates": street})
    ))  # fmt: skip
    picture.outline(path, 9, "#b5b0a2")
    dot(picture, *street[0], drawing.INK, 8)
    label(picture, street[0][0] + 10, street[0][1] - 30, "start")
    for line, feature in rows_of(found):
        (x, y), (to_x, to_y) = (line.GetPoint_2D(i) for i in (0, 1))
        colour = LEFT if feature["side"] == "left" else RIGHT
        pen = QPen(QColor(colour), 2.5, Qt.DashLine)
        picture.painter.strokePath(picture.path(line), pen)
        dot(picture, to_x, to_y, drawing.INK, 5)
        dot(picture, x, y, colour)
        words = f"{feature['along']:.0f} m, {abs(feature['side_m']):.0f} m {feature['side']}"
        label(picture, x, y + (22 if y > to_y else -34), words, colour)
    picture.save(out)


def clock(minutes):
    return f"{12 + minutes // 60}:{minutes % 60:02d}"


def draw_time(command, folder, out):
    # place and minute of each report: the tracks cross twice, at one time only once
    first = [(80 + 140 * i, 230 + 8 * (i % 2), 10 * i) for i in range(7)]
    second = [(270, 410, 0), (310, 340, 10), (360, 275, 20), (430, 140, 40), (560, 95, 60),
              (690, 140, 80), (770, 275, 100), (820, 345, 110), (860, 410, 120)]  # fmt: skip
    for name, track in (("a", first), ("b", second)):
        write(f"{folder}/{name}.json", "Point", [
            ((x, y), {"seen": f"2026-11-29T{clock(minutes)}:00Z"}) for x, y, minutes in track
        ])  # fmt: skip
    found = join(
        command, folder, "-op", "dwithin", "-max_distance", "100", "-within_time",
        "seen:10min", "-geometry", "connection", "-how", "inner",
    )  # fmt: skip
    picture = begin(
        "Join within distance and time",
        "reports of two ships: 100 m and 10 minutes apart at most",
    )
    for track, colour in ((first, LEFT), (second, RIGHT)):
        pen = QPen(QColor(colour), 2.5)
        for (x, y, _), (u, v, _) in zip(track, track[1:]):
            picture.painter.setPen(pen)
            picture.painter.drawLine(picture.at(x, y), picture.at(u, v))
    for line, _ in rows_of(found):
        picture.outline(picture.path(line), 7, MATCH)
    for x, y, minutes in first:
        dot(picture, x, y, LEFT)
        label(picture, x, y - 32, clock(minutes), LEFT)
    for x, y, minutes in second:
        dot(picture, x, y, RIGHT)
        label(picture, x + 18, y - 2, clock(minutes), RIGHT, 0)
    picture.box_of(24, HEIGHT - 36, 34, 7, MATCH)
    picture.text(68, HEIGHT - 26, 18, "a pair; the tracks cross again, but 50 minutes apart", MATCH)
    picture.save(out)


def circle(x, y, radius):
    turns = [2 * math.pi * i / 48 for i in [*range(48), 0]]
    return [[[x + radius * math.cos(t), y + radius * math.sin(t)] for t in turns]]


def draw_covered(command, folder, out):
    lots = [(60, 80, 300, 400), (350, 80, 590, 400), (640, 80, 940, 400)]
    zones = [(140, 200, 100), (232, 270, 110), (560, 330, 130), (720, 330, 90), (790, 250, 90)]
    corners = [[[[a, b], [c, b], [c, d], [a, d], [a, b]]] for a, b, c, d in lots]
    write(f"{folder}/a.json", "Polygon", [(ring, {}) for ring in corners])
    write(f"{folder}/b.json", "Polygon", [(circle(*zone), {}) for zone in zones])
    found = join(
        command, folder, "-op", "intersects", "-agg", "count, covered_area, covered_percent"
    )
    picture = begin("Covered shares", "where flood zones overlap, a place counts once")
    rows = rows_of(found)
    for shape, _ in rows:
        picture.painter.fillPath(picture.path(shape), QColor("#efe6d2"))
    for shape, _ in rows_of(f"{folder}/b.json"):
        path = picture.path(shape)
        picture.painter.fillPath(path, drawing.shade(LEFT, 0.35))
        picture.outline(path, 1.5, LEFT)
    for shape, lot in rows:
        picture.outline(picture.path(shape), 3, "#5c5340")
        x, _, y, _ = shape.GetEnvelope()
        at = picture.at(x, y)
        picture.text(at.x(), at.y() + 28, 22, f"{lot['covered_percent']:.0f} % covered", bold=True)
        words = f"{lot['covered_area']:,.0f} m² by {lot['count']} zones"
        picture.text(at.x(), at.y() + 54, 18, words, drawing.FAINT)
    picture.save(out)


def main():
    drawn = {"along": draw_along, "time": draw_time, "covered": draw_covered}
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in drawn:
        sys.exit(__doc__)
    app = drawing.QGuiApplication(sys.argv[:1])  # fonts need an application
    command = sys.argv[3] if len(sys.argv) == 4 else os.environ.get("OGRJOIN", "ogrjoin")
    with tempfile.TemporaryDirectory() as folder:
        drawn[sys.argv[1]](command, folder, os.path.abspath(sys.argv[2]))
    del app


if __name__ == "__main__":
    main()
