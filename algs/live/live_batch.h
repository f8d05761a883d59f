/** A batch of changes while it is applied, for the files that apply it. The
 * steps are listed in live_batch_apply.c. A mover is a row whose point goes to
 * another page or is new. A leaver is a row whose point leaves its page. */
#ifndef LIVE_BATCH_H
#define LIVE_BATCH_H

#include "../../flatten/base/oj_parallel.h"
#include "../foundations/base/oj_radix_sort.h"
#include "oj_live.h"

#include <math.h>

/** Value of live_batch.entry: a later row of the batch has the id of this row,
 * so this row has no effect. */
#define LIVE_SUPERSEDED UINT32_MAX

/** The number of a slot among the slots of all pages. */
#define LIVE_PLACE_OF(page, slot) ((uint64_t)(page)*LIVE_PAGE_POINTS + (slot))

/** Flags of live_batch.place. A row without flags stays in its page.
 *
 *   LIVE_NO_PLACE  no point of the id was in a page, or the row is superseded
 *   LIVE_LEAVES    the point leaves its page
 *   LIVE_ARRIVES   the point goes to another page, or is new
 */
#define LIVE_NO_PLACE (UINT64_C(1) << 61)
#define LIVE_LEAVES (UINT64_C(1) << 62)
#define LIVE_ARRIVES (UINT64_C(1) << 63)

/** Counts of the rows of a slice. */
struct live_rows
{
    int has_repeats; /* an id has several rows in the batch */
    int64_t n_new;   /* rows with unknown ids */
    int64_t n_in_place, n_leaving, n_arriving;
    int64_t first_arriving; /* number of arriving rows in earlier slices */
    struct oj_live_counts counts;
};

/** A bucket: a range of pages. */
struct live_bucket
{
    int64_t n_left;     /* distinct pages that points leave */
    int64_t n_promised; /* upper bound of new pages for arriving points if no
                           page is split */
    int64_t n_groups;   /* groups of arriving points that are left to step 8 */
    int64_t n_untidy;   /* pages that step 9 changes */
};

struct live_batch
{
    struct oj_live *live;
    int n_threads;
    int64_t n;
    const int64_t *id;
    const double *x, *y;
    uint32_t *entry; /* [n] entry of the id; or LIVE_SUPERSEDED */
    uint64_t *place; /* [n] LIVE_PLACE_OF() or LIVE_NO_PLACE, and flags */
    uint16_t mark;   /* mark of the batch, see live_entry */
    struct live_ids_parts parts; /* rows by ids, while entries are added */
    int64_t rows_of_slice;
    int64_t n_slices;
    struct live_rows
        *rows;            /* [n_slices]; place and entry follow in its memory */
    struct live_rows all; /* sums over slices */

    /* Movers and leavers by bucket.  The last bucket is that of movers whose
     * target has no page. */
    int shift; /* bucket of a page: page >> shift */
    int64_t n_buckets;
    struct live_bucket *bucket; /* [n_buckets]; the arrays below follow in its
                                   memory */
    int64_t *start; /* [2][n_slices][n_buckets] where each slice puts its next
                       element of each bucket: [0] mover, index in sorted; [1]
                       leaver, index in leaver */
    int64_t *first_mover;    /* [n_buckets + 1] first mover of each bucket */
    int64_t *first_leaver;   /* [n_buckets + 1] first leaver of each bucket */
    struct oj_keyed *mover;  /* [n_arriving] key: target; value: row */
    struct oj_keyed *sorted; /* [n_arriving] movers sorted by target */
    uint64_t *leaver;        /* [n_leaving] places that points leave, bucket by
                                bucket */
    uint32_t *left; /* [n_leaving] pages that points leave, each once; the pages
                       of bucket k begin at left[first_leaver[k]] */

    int64_t n_promised;
    struct live_state *state; /* state that is changed */
    uint8_t *touched;         /* [n_pages] 1: the batch changes the block of the
                                 page, which readers use; NULL: no readers */
};

/** Distance in rows between prefetch and use. */
#define LIVE_AHEAD 24

static inline int live_batch_can_join_point(double x, double y)
{
    return fabs(x) <= OJ_FLAT_MOST && fabs(y) <= OJ_FLAT_MOST;
}

/** The key of a mover is the number of its target page. For a child without
 *  page it is LIVE_KEY_OF_NONE + 4 * node + child. */
#define LIVE_KEY_OF_NONE (UINT64_C(1) << 32)

static inline uint32_t live_batch_page_of_place(uint64_t place)
{
    return (uint32_t)((place & (LIVE_NO_PLACE - 1)) / LIVE_PAGE_POINTS);
}

/** Returns the end of the group that begins at mover `first`: consecutive
 *  movers with one target. */
static inline int64_t live_batch_end_of_group(const struct live_batch *b,
                                              int64_t first, int64_t end)
{
    int64_t at = first + 1;
    while (at < end && b->sorted[at].key == b->sorted[first].key)
        at++;
    return at;
}

static inline void
live_batch_run_on_slices(struct live_batch *b,
                         void (*body)(int64_t first, int64_t end, void *user))
{
    oj_parallel_slices(b->n_threads, b->n, b->rows_of_slice, body, b);
}

static inline void
live_batch_run_on_buckets(struct live_batch *b,
                          void (*body)(int64_t bucket, int thread, void *user))
{
    oj_parallel_for(b->n_threads, b->n_buckets, body, b);
}

/** Adds all counts of changes except n_batches. */
static inline void live_counts_add(struct oj_live_counts *to,
                                   const struct oj_live_counts *of)
{
    to->n_put += of->n_put;
    to->n_moved += of->n_moved;
    to->n_removed += of->n_removed;
    to->n_unknown += of->n_unknown;
    to->n_unjoinable += of->n_unjoinable;
    to->n_superseded += of->n_superseded;
    to->n_rebuilt += of->n_rebuilt;
}

/** Steps 1 and 2 (live_batch_classify.c): finds or adds the entries of all
 * rows, and sets b->place. After an error, live_batch_remove_ids() removes the
 * new ids. */
OJ_MUST_USE oj_status live_batch_classify_rows(struct live_batch *b,
                                               struct oj_error *err);
void live_batch_remove_ids(struct live_batch *b);

/** Returns 1 if it is cheaper to rebuild the tree than to move points. */
int live_batch_is_rebuild_cheaper(const struct live_batch *b);

/** Step 3 (live_batch_rebuild.c): rebuilds the tree from all points as they are
 * after the batch. */
OJ_MUST_USE oj_status live_batch_rebuild(struct live_batch *b,
                                         struct oj_error *err);

/** Frees the memory that rebuilds use again. */
void live_free_gathered(struct oj_live *live);

/** Step 4 (live_batch_buckets.c): deals movers and leavers to buckets, sorts
 * movers by target, and counts the points that leave each page.
 *  live_batch_clear_leaving() sets these counts to 0 again. */
OJ_MUST_USE oj_status live_batch_distribute_to_buckets(struct live_batch *b,
                                                       struct oj_error *err);
void live_batch_clear_leaving(struct live_batch *b, int64_t bucket);

#endif
