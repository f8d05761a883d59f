#include "envelope_rings.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/oj_feature_box.h"

#include <string.h>

#define CORNERS 5 /* vertices of a closed rectangle */

static void add_rectangle(struct envelope_rings *rings, int64_t at,
                          const struct oj_box *box)
{
    const double x[CORNERS] = {box->x0, box->x1, box->x1, box->x0, box->x0};
    const double y[CORNERS] = {box->y0, box->y0, box->y1, box->y1, box->y0};
    double *to = rings->xy + CORNERS * at;
    memcpy(to, x, sizeof x);
    memcpy(to + CORNERS * rings->flat.n_features, y, sizeof y);
}

oj_status envelope_rings_make(struct envelope_rings *rings,
                              const struct oj_flat *layer, struct oj_error *err)
{
    struct oj_flat *flat = &rings->flat;
    int64_t n = layer->n_features, n_parts = 0;
    int64_t *part_offset, *ring_offset, *vertex_offset;
    *flat = *layer;
    OJ_NEW(rings->offset, 3 * (n + 1), err);
    OJ_NEW(rings->kind, n, err);
    OJ_NEW(rings->xy, 2 * CORNERS * n, err);
    part_offset = rings->offset;
    ring_offset = part_offset + n + 1;
    vertex_offset = ring_offset + n + 1;
    for (int64_t f = 0; f < n; f++)
    {
        struct oj_box box = oj_box_of_feature(layer, f);
        part_offset[f] = n_parts;
        if (!oj_box_is_empty(&box))
            add_rectangle(rings, n_parts++, &box);
    }
    part_offset[n] = n_parts;
    for (int64_t i = 0; i <= n; i++)
    {
        ring_offset[i] = i;
        vertex_offset[i] = CORNERS * i;
    }
    memset(rings->kind, OJ_PART_POLYGON, (size_t)n);
    flat->n_parts = flat->n_rings = n_parts;
    flat->n_vertices = CORNERS * n_parts;
    flat->part_kinds = OJ_PART_POLYGON;
    flat->part_offset = part_offset;
    flat->part_kind = rings->kind;
    flat->ring_offset = ring_offset;
    flat->vertex_offset = vertex_offset;
    flat->x = rings->xy;
    flat->y = rings->xy + CORNERS * n;
    flat->overlaps = NULL;
    return OJ_OK;
}

void envelope_rings_free(struct envelope_rings *rings)
{
    oj_free(rings->offset);
    oj_free(rings->kind);
    oj_free(rings->xy);
    memset(rings, 0, sizeof *rings);
}
