/** Features from WKT, which GEOS reads: wkt_open(), add_shape(), wkt_close().
 * Include once, in a test program. */
#ifndef WKT_SHAPES_H
#define WKT_SHAPES_H

#include "../../flatten/arrays/oj_wkb.h"

#include <geos_c.h>

#include <stdio.h>
#include <stdlib.h>

static GEOSContextHandle_t geos;
static GEOSWKTReader *wkt_reader;
static GEOSWKBWriter *wkb_writer;

static inline void wkt_open(void)
{
    geos = GEOS_init_r();
    wkt_reader = GEOSWKTReader_create_r(geos);
    wkb_writer = GEOSWKBWriter_create_r(geos);
}

static inline void wkt_close(void)
{
    GEOSWKTReader_destroy_r(geos, wkt_reader);
    GEOSWKBWriter_destroy_r(geos, wkb_writer);
    GEOS_finish_r(geos);
}

static inline void add_shape(struct oj_flat_buf *buf, const char *wkt)
{
    GEOSGeometry *shape = GEOSWKTReader_read_r(geos, wkt_reader, wkt);
    unsigned char *wkb = NULL;
    struct oj_error err;
    size_t n = 0;
    if (shape != NULL)
        wkb = GEOSWKBWriter_write_r(geos, wkb_writer, shape, &n);
    if (wkb == NULL)
    {
        fprintf(stderr, "GEOS cannot read %s\n", wkt);
        exit(1);
    }
    if (oj_wkb_add(buf, 1, wkb, n, &err) != OJ_OK)
    {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    GEOSFree_r(geos, wkb);
    GEOSGeom_destroy_r(geos, shape);
}

#endif
