/** A feature as the joins of shapes see it: where its vertices are, its box,
 *  and, when it has many edges, cells that know which edges touch them
 *  (cpu_cells.h).
 *
 *  A feature of parts of different kinds is a shape whose members are shapes of
 *  one part each; all other shapes are of one kind, all parts together.
 */
#ifndef CPU_SHAPE_H
#define CPU_SHAPE_H

#include "../../flatten/arrays/oj_flat.h"
#include "../base/oj_boxes.h"

struct oj_cells;

/** A view of a feature. */
struct oj_shape
{
    struct oj_box box; /**< exact; empty: no parts */
    const struct oj_flat *flat;
    /** NULL: none, or not yet; of a side: owned by it */
    _Atomic(struct oj_cells *) cells;
    const struct oj_shape *member; /**< [n_parts] of mixed kinds, or NULL */
    int64_t first_vertex, n_vertices;
    int64_t first_part; /**< nothing in the short form */
    int32_t n_parts, n_rings;
    int32_t feature;
    uint8_t kinds; /**< enum oj_part_kind or'ed */
    /** Polygon parts whose boxes meet: what several of them hold may not be
     * what even-odd over all their rings says. */
    uint8_t may_overlap;
    _Atomic(uint8_t) n_asks; /**< how often cells were missed */
};

/** 1 when the parts of shape are of different kinds. */
static inline int oj_shape_is_mixed(const struct oj_shape *shape)
{
    return (shape->kinds & (shape->kinds - 1)) != 0;
}

/** First vertex of part p (0 <= p < n_parts) of shape. */
static inline int64_t oj_shape_part(const struct oj_shape *shape, int64_t p)
{
    const struct oj_flat *flat = shape->flat;
    return p == 0
               ? shape->first_vertex
               : flat->vertex_offset[flat->ring_offset[shape->first_part + p]];
}

/** First vertex of ring r (0 <= r < n_rings) of shape, and how many. */
static inline int64_t oj_shape_ring(const struct oj_shape *shape, int64_t r,
                                    int64_t *n)
{
    const int64_t *offset;
    if (shape->n_rings == 1)
    {
        *n = shape->n_vertices;
        return shape->first_vertex;
    }
    offset = shape->flat->vertex_offset +
             shape->flat->ring_offset[shape->first_part] + r;
    *n = offset[1] - offset[0];
    return offset[0];
}

#endif
