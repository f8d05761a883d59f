/** Visits of a batch's points, for pairs of points within a distance: what the
 *  family (cpu_near_points.c) and the visits (cpu_near_visit.c) share.
 */
#ifndef CPU_NEAR_VISIT_H
#define CPU_NEAR_VISIT_H

#include "../base/cpu_order.h"
#include "../relation/oj_backend.h"
#include "cpu_list_places.h"
#include "cpu_near_marks.h"
#include "cpu_near_rows.h"

#include <stdatomic.h>

/** One task of so many is counted for the estimate. */
#define OJ_NEAR_ONE_OF 32

/** Entries that a thread takes at once for scattered lists. */
#define OJ_NEAR_BLOCK 65536

struct oj_near_worker
{
    struct oj_near_hood hood;
    int32_t *id, *sort_id; /* partners of a point */
    double *d2, *sort_d2;
    int64_t cap_id, cap_sort_id, cap_d2, cap_sort_d2;
    int64_t block_at, block_end; /* entries of its own that are free */
    int64_t squares_from;        /* entries from here to block_at are squares */
    int64_t n_pairs, n_matched, n_seen, n_unlooked;
};

/** What a visit of the points is for. */
enum oj_near_visit
{
    OJ_NEAR_ESTIMATE, /* counts the pairs of some */
    OJ_NEAR_COUNT,    /* counts the pairs of each */
    OJ_NEAR_FILL,     /* writes them where the counts say */
    OJ_NEAR_SCATTER   /* writes them anywhere */
};

struct oj_near_index
{
    struct oj_relation relation;
    struct oj_options options;
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    const struct oj_near_kernel *kernel;
    struct oj_near_grid grid;
    int32_t *feature_of; /* [features] by tie rank, or NULL: the ordinal */
    struct oj_near_fids fids;
    struct oj_near_worker *worker; /* [n_threads] */
    struct oj_order order;         /* of the batch; its memory is used again */
    struct oj_list_places places;  /* likewise */
    struct oj_index *general; /* data that cells do not serve: by the family
                                 that measures anything */
};

/** A batch on its way. */
struct oj_near_batch
{
    struct oj_near_index *self;
    const struct oj_flat *input;
    struct oj_matches *out;
    struct oj_pair_filter filter;
    struct oj_near_marks marks;
    int is_join_side; /* the input is the join side: visited in its order */
    int asks_filter;  /* pairs one by one */
    enum oj_near_visit visit;
    struct oj_near_query query; /* what all points ask alike */
    atomic_llong n_taken;       /* entries in blocks */
    int64_t n_entries;          /* that there is room for */
    atomic_int is_full;         /* the room was not enough */
};

/** How many points a visit has. */
static inline int64_t oj_near_n_visits(const struct oj_near_batch *b)
{
    return b->is_join_side ? b->self->grid.n : b->self->order.n_points;
}

/** Visits the points of the batch, for OJ_NEAR_ESTIMATE one of OJ_NEAR_ONE_OF
 *  tasks of them; what is found is in the workers and b->out.  A visit that
 *  scatters sets b->is_full when there is no room for all. */
OJ_MUST_USE oj_status oj_near_visit(struct oj_near_batch *b,
                                    enum oj_near_visit what,
                                    struct oj_error *err);

/** Makes distances of the squares that a worker wrote since the last time; many
 *  at once, since vectors are wider than most rows. */
void oj_near_take_roots(const struct oj_near_batch *b,
                        struct oj_near_worker *worker);

#endif
