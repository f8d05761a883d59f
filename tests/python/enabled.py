"""Plugin of pytest: GeoPandas' own tests, with its joins made here."""

import ogrjoin

ogrjoin.geopandas.enable()
