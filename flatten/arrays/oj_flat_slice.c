#include "../base/oj_array.h"
#include "oj_flat.h"

#include <string.h>

/* to[i] = from[first + i] - from[first], n + 1 entries. */
static oj_status rebase(const int64_t *from, int64_t first, int64_t n,
                        int64_t **to, int64_t *capacity, struct oj_error *err)
{
    OJ_TRY(oj_reserve(to, 0, n + 1, capacity, sizeof **to, err));
    for (int64_t i = 0; i <= n; i++)
        (*to)[i] = from[first + i] - from[first];
    return OJ_OK;
}

oj_status oj_flat_slice_make(const struct oj_flat *flat, int64_t first,
                             int64_t n, struct oj_flat_slice *slice,
                             struct oj_error *err)
{
    struct oj_flat view = *flat;
    int64_t part = first, ring = first, vertex = first;
    view.n_features = view.n_parts = view.n_rings = view.n_vertices = n;
    if (!oj_flat_is_points(flat))
    {
        part = flat->part_offset[first];
        ring = flat->ring_offset[part];
        vertex = flat->vertex_offset[ring];
        view.n_parts = flat->part_offset[first + n] - part;
        view.n_rings = flat->ring_offset[part + view.n_parts] - ring;
        view.n_vertices = flat->vertex_offset[ring + view.n_rings] - vertex;
        OJ_TRY(rebase(flat->part_offset, first, n, &slice->part_offset,
                      &slice->cap_part_offset, err));
        OJ_TRY(rebase(flat->ring_offset, part, view.n_parts,
                      &slice->ring_offset, &slice->cap_ring_offset, err));
        OJ_TRY(rebase(flat->vertex_offset, ring, view.n_rings,
                      &slice->vertex_offset, &slice->cap_vertex_offset, err));
        view.part_offset = slice->part_offset;
        view.ring_offset = slice->ring_offset;
        view.vertex_offset = slice->vertex_offset;
        view.part_kind = flat->part_kind + part;
    }
    view.x = flat->x + vertex;
    view.y = flat->y + vertex;
    if (flat->fid != NULL)
        view.fid = flat->fid + first;
    if (flat->max_distance != NULL)
        view.max_distance = flat->max_distance + first;
    if (flat->on_class != NULL)
        view.on_class = flat->on_class + first;
    if (flat->exclude_class != NULL)
        view.exclude_class = flat->exclude_class + first;
    if (flat->overlaps != NULL)
        view.overlaps = flat->overlaps + first;
    slice->flat = view;
    return OJ_OK;
}

void oj_flat_slice_free(struct oj_flat_slice *slice)
{
    oj_free(slice->part_offset);
    oj_free(slice->ring_offset);
    oj_free(slice->vertex_offset);
    memset(slice, 0, sizeof *slice);
}
