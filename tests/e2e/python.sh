#!/usr/bin/env bash
# Runs an end-to-end test with a Python that has GDAL's bindings.
#
#   python.sh test_x.py [names of single checks]
#
# Ends with 77 (skipped) where no such Python is found.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for python in "${PYTHON:-python3}" /usr/bin/python3; do
    if "$python" -c 'from osgeo import ogr' 2>/dev/null; then
        script=$1
        shift
        exec env PYTHONDONTWRITEBYTECODE=1 "$python" "$here/$script" "$@"
    fi
done
echo "skipped: no Python with osgeo (Debian: python3-gdal)"
exit 77
