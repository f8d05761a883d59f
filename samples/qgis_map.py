#!/usr/bin/env python3
"""Loads a join as a layer of QGIS, colours it by a joined attribute and draws a map,
without a screen.

    qgis_map.py OUT.png JOIN FIELD [LAYER below ...]

JOIN is a live layer (FILE.ogrjoin) or the name of one:

    qgis_map.py map.png "JOIN:-op nearest -max_distance 100 pickups.fgb lots.fgb" \
        land_use land.fgb streets.fgb

QGIS's Python is needed (Debian: python3-qgis), and GDAL's driver JOIN where GDAL
looks for plugins, or in GDAL_DRIVER_PATH.
"""

import os
import sys

from qgis.core import (
    QgsApplication,
    QgsCategorizedSymbolRenderer,
    QgsMapRendererParallelJob,
    QgsMapSettings,
    QgsRendererCategory,
    QgsSymbol,
    QgsVectorLayer,
    QgsWkbTypes,
)
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtGui import QColor

# Colours that red-green colour-blind readers can distinguish, too (Okabe, Ito).
COLOURS = (
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#f0e442",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
    "#000000",
)
NO_VALUE = "#999999"
BELOW = ("#efece4", "#b5b0a2", "#8c8778")
WIDTH, HEIGHT = 1000, 750


def open_layer(name):
    layer = QgsVectorLayer(name, os.path.basename(name), "ogr")
    if not layer.isValid():
        sys.exit(f"QGIS cannot open {name}: {layer.error().summary()}")
    return layer


def make_symbol(layer, colour):
    symbol = QgsSymbol.defaultSymbol(layer.geometryType())
    symbol.setColor(QColor(colour))
    part = symbol.symbolLayer(0)
    if layer.geometryType() == QgsWkbTypes.LineGeometry:
        part.setWidth(0.2)
        return symbol
    if layer.geometryType() == QgsWkbTypes.PointGeometry:
        part.setSize(0.9)
    part.setStrokeColor(QColor(colour).darker(120))
    part.setStrokeWidth(0.1)
    return symbol


def colour_by(layer, field):
    place = layer.fields().lookupField(field)
    if place < 0:
        sys.exit(f"no field {field} in {[f.name() for f in layer.fields()]}")
    values = sorted(v for v in layer.uniqueValues(place) if v)
    renderer = QgsCategorizedSymbolRenderer(field)
    for i, value in enumerate(values):
        symbol = make_symbol(layer, COLOURS[i % len(COLOURS)])
        renderer.addCategory(QgsRendererCategory(value, symbol, str(value)))
    rest = make_symbol(layer, NO_VALUE)
    renderer.addCategory(QgsRendererCategory(None, rest, "no match"))
    layer.setRenderer(renderer)
    return values


def draw(out, name, field, below):
    joined = open_layer(name)
    values = colour_by(joined, field)
    layers = [joined]
    for i, path in enumerate(below):
        layer = open_layer(path)
        colour = BELOW[min(i, len(BELOW) - 1)]
        layer.renderer().setSymbol(make_symbol(layer, colour))
        layers.insert(1, layer)
    settings = QgsMapSettings()
    settings.setLayers(layers)
    settings.setDestinationCrs(joined.crs())
    settings.setOutputSize(QSize(WIDTH, HEIGHT))
    settings.setBackgroundColor(QColor("white"))
    extent = joined.extent()
    extent.scale(1.05)
    settings.setExtent(extent)
    job = QgsMapRendererParallelJob(settings)
    job.start()
    job.waitForFinished()
    for problem in job.errors():
        print(problem.message, file=sys.stderr)
    if job.errors() or not job.renderedImage().save(out):
        sys.exit(f"{out} could not be drawn")
    print(f"{out}: {joined.featureCount()} rows by {field}: {', '.join(map(str, values))}")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    out, name, field, *below = sys.argv[1:]
    application = QgsApplication([], False)
    application.initQgis()
    draw(out, name, field, below)  # its layers are gone before QGIS is
    application.exitQgis()


if __name__ == "__main__":
    main()
