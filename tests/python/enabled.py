"""Plugin of pytest that runs GeoPandas' own tests with the joins of this package."""

import ogrjoin

ogrjoin.geopandas.enable()
