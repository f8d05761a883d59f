#include "oj_layer_transform.h"
#include "../base/oj_array.h"

#include <math.h>
#include <string.h>

/* Vertices per call: small against a cache, large against the cost of a
 * call. */
#define CHUNK 16384

void oj_layer_transform_free(struct oj_layer_transform *work)
{
    oj_free(work->is_good);
    oj_free(work->has_none);
    memset(work, 0, sizeof *work);
}

/* In the short form NaN means that there is no geometry, and must not become
 * one that was lost; infinity marks what was lost. */
static void transform_chunk(struct oj_layer_transform *work,
                            OGRCoordinateTransformationH transformation,
                            double *x, double *y, int n)
{
    for (int i = 0; i < n; i++)
    {
        work->is_good[i] = 0; /* when the call fails as a whole */
        work->has_none[i] = (uint8_t)(isnan(x[i]) != 0);
        if (work->has_none[i])
            x[i] = y[i] = 0.0;
    }
    (void)OCTTransformEx(transformation, n, x, y, NULL, work->is_good);
    for (int i = 0; i < n; i++)
    {
        if (work->has_none[i])
            x[i] = y[i] = (double)NAN;
        else if (!work->is_good[i] || !(fabs(x[i]) <= OJ_FLAT_MOST) ||
                 !(fabs(y[i]) <= OJ_FLAT_MOST))
            x[i] = y[i] = (double)INFINITY;
    }
}

oj_status oj_layer_transform_flat(struct oj_layer_transform *work,
                                  OGRCoordinateTransformationH transformation,
                                  struct oj_flat_buf *flat, int64_t first,
                                  int64_t *n_lost, struct oj_error *err)
{
    int64_t v = first;
    if (work->is_good == NULL)
        OJ_NEW(work->is_good, CHUNK, err);
    if (work->has_none == NULL)
        OJ_NEW(work->has_none, CHUNK, err);
    if (flat->long_form)
        v = flat->vertex_offset[flat->ring_offset[flat->part_offset[first]]];
    while (v < flat->n_vertices)
    {
        int64_t n = flat->n_vertices - v;
        if (n > CHUNK)
            n = CHUNK;
        transform_chunk(work, transformation, flat->x + v, flat->y + v, (int)n);
        v += n;
    }
    *n_lost += oj_flat_buf_drop_not_finite(flat, first);
    return OJ_OK;
}
