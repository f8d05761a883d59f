/** Layers of random geometries as WKT, of one type or of all types. Include
 * once. */
#ifndef RANDOM_WKT_LAYERS_H
#define RANDOM_WKT_LAYERS_H

#include "random_wkt.h"

enum
{
    WKT_MOST_FEATURES = 120
};

/* WKT of the features, owned. A feature without geometry is "". */
struct wkt_layer
{
    int n;
    char *text[WKT_MOST_FEATURES];
};

/* Reads WKT. Returns NULL if OGR refuses the text, for example if a ring ends
 * in a coordinate that is infinite or NaN, and so cannot be closed. */
static inline OGRGeometryH read_wkt(const char *text)
{
    OGRGeometryH geometry = NULL;
    char *at = CPLStrdup(text), *rest = at;
    if (OGR_G_CreateFromWkt(&rest, NULL, &geometry) != OGRERR_NONE)
        geometry = NULL;
    CPLFree(at);
    return geometry;
}

static inline char *make_wkt(struct pen *pen, enum wkt_type type)
{
    for (int n = 0; n < 1000; n++)
    {
        OGRGeometryH geometry;
        pen->used = 0;
        pen->has_z = one_in(5);
        pen->has_m = one_in(8);
        put_geometry(pen, type, 0);
        geometry = read_wkt(pen->text);
        OGR_G_DestroyGeometry(geometry);
        if (geometry != NULL)
            return CPLStrdup(pen->text);
    }
    ck_abort_msg("OGR reads none of them: %s", pen->text);
    return NULL;
}

/* Makes a layer of geometries of one type, or of any type if type is
 * WKT_N_TYPES. Some features of the layer other are put into this one, too.
 * other may be NULL. */
static inline void make_layer(struct wkt_layer *layer,
                              const struct wkt_lattice *lattice,
                              enum wkt_type type, const struct wkt_layer *other)
{
    static struct pen pen;
    int n = one_in(40) ? 0 : one_in(30) ? 40 + pick(80) : 1 + pick(14);
    pen.lattice = *lattice;
    for (layer->n = 0; layer->n < n; layer->n++)
    {
        enum wkt_type one =
            type == WKT_N_TYPES ? (enum wkt_type)pick(WKT_N_TYPES) : type;
        char **text = &layer->text[layer->n];
        if (one_in(25))
            *text = CPLStrdup("");
        else if (one_in(8) && other != NULL && other->n > 0)
            *text = CPLStrdup(other->text[pick(other->n)]);
        else
            *text = make_wkt(&pen, one);
    }
}

static inline void free_layer(struct wkt_layer *layer)
{
    for (int i = 0; i < layer->n; i++)
        CPLFree(layer->text[i]);
    layer->n = 0;
}

#endif
