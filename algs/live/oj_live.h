/** A kept index of points: put, moved and removed in batches, and read by any
 *  number of threads in between.
 *
 *   batch: id x y   id x y   id NaN ..
 *      |
 *   live_ids         where each id is
 *   live_state       directory and pages (live_tree.h)
 *      |
 *   readers          search (live_search.h)
 *
 *  Source: G-PICS (Lewis and Tu 2022), sections on updates: movement check,
 * leaf finding, splits, merges and leaf lists, here page by page on the CPU.
 */
#ifndef OJ_LIVE_H
#define OJ_LIVE_H

#include "live_split.h"
#include "live_tree.h"

/** Values of the setting tree. */
#define OJ_LIVE_TREE_WORDS "auto|quadtree|kdtree"

enum oj_live_tree
{
    OJ_LIVE_AUTO = 0,
    OJ_LIVE_QUADTREE,
    OJ_LIVE_KDTREE
};

/** How often what has happened since the index was made. */
struct oj_live_counts
{
    int64_t n;            /**< points now */
    int64_t n_batches;    /**< batches applied */
    int64_t n_put;        /**< ids that were new */
    int64_t n_moved;      /**< ids that were there */
    int64_t n_removed;    /**< ids that were there */
    int64_t n_unknown;    /**< removals of ids that were not there */
    int64_t n_unjoinable; /**< changes with a place that joins nothing */
    int64_t
        n_superseded;  /**< changes before the last one of an id in a batch */
    int64_t n_rebuilt; /**< batches after which all was built anew */
    int64_t n_pages;
    int64_t n_bytes; /**< of memory, all in all */
};

struct oj_live;

/** An empty index.  n_threads: 0: all. */
OJ_MUST_USE oj_status oj_live_new(enum oj_live_tree tree, int n_threads,
                                  struct oj_live **out, struct oj_error *err);

/** Applies n changes as one instant: of several of an id the last one holds.
 *  x NaN, or a coordinate that no join takes, removes the id.  All changes are
 *  applied, or after an error none.  One batch at a time: others wait.
 *  Errors  OJ_ERR_NOMEM; OJ_ERR_LIMIT: more than 2^30 ids, new ones of the
 *          batch with them, or changes
 *  Cost    O(changes), each a few cache misses, and the pages that overflow or
 *          empty; where many points leave their pages, that of building: O(n
 * log n) */
OJ_MUST_USE oj_status oj_live_apply(struct oj_live *live, int64_t n,
                                    const int64_t *id, const double *x,
                                    const double *y, struct oj_error *err);

/** The state now, which does not change until it is given back.  Waits for a
 *  batch that is changing the state in place. */
const struct live_state *oj_live_read(struct oj_live *live);
void oj_live_give_back(struct oj_live *live, const struct live_state *state);

/** Counts what batches have done so far; waits for a batch at work. */
struct oj_live_counts oj_live_count(struct oj_live *live);

/** Which tree there is, and why. Zero-terminated into text. */
void oj_live_explain(struct oj_live *live, char *text, size_t size);

/** No thread has a state of it. Accepts NULL. */
void oj_live_free(struct oj_live *live);

/* --- for the files of this room --------------------------------------------
 */

#include "live_ids.h"

#include <pthread.h>

struct oj_live
{
    enum oj_live_tree tree;
    int n_threads;
    pthread_mutex_t writer; /**< held while a batch is applied: guards all but
                                 what lock does */
    const struct live_split_rule *rule;
    struct oj_box frame; /**< around all points when they were built */
    char reason[200];
    struct live_ids ids;
    struct live_blocks blocks;
    struct oj_live_counts counts;
    int32_t newest_read; /**< of the states with readers when the batch began
                              to change things; -1: none had any */

    /* The memory of batches, used again. */
    uint32_t *leaving; /**< [cap_leaving] points that leave a page; 0 between
                            batches */
    int64_t cap_leaving;

    pthread_mutex_t lock; /**< guards what follows, and counts of readers */
    pthread_cond_t was_changed;
    int is_changing; /**< 1 while a batch changes pages in place: readers wait
                      */
    struct live_state *state;
};

/** Makes state what readers begin with; the old one is freed when its last
 *  reader has gone. */
void live_publish(struct oj_live *live, struct live_state *state);

/** Gives up the block of a page that is changed or freed. */
static inline void live_drop_block(struct oj_live *live,
                                   const struct live_page *page)
{
    if (page->birth > live->newest_read)
        live_blocks_give_back(&live->blocks, page->block);
    else
        live_blocks_retire(&live->blocks, page->block, live->newest_read);
}

/** Builds all anew, of points whose entries are known or -1.  Everything that
 *  can fail comes first: after an error live is as it was, but for entries. */
OJ_MUST_USE oj_status live_rebuild(struct oj_live *live, int64_t n,
                                   struct live_point *point,
                                   struct live_point *scratch,
                                   struct oj_error *err);

/** Puts the points of a subtree into pages below parent of state; for all of
 *  it there is room.  node_of: [nodes of the subtree]. */
void live_place_subtree(struct oj_live *live, struct live_state *state,
                        const struct live_subtree *subtree,
                        const struct live_point *point, uint32_t parent,
                        int32_t *node_of);

/** Pages that a leaf of n points takes. */
static inline int64_t live_pages_of(int64_t n)
{
    return (n + LIVE_PAGE_POINTS - 1) / LIVE_PAGE_POINTS;
}

#endif
