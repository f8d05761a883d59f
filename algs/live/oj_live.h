/** A kept index of points: batches put, move and remove points, and any number
 *  of threads read between batches.
 *
 *   batch: id x y   id x y   id NaN ..
 *      |
 *   live_ids         page and slot of each id
 *   live_state       directory and pages (live_tree.h)
 *      |
 *   readers          search (live_search.h)
 *
 *  Source: G-PICS (Lewis and Tu 2022), sections on updates: movement check,
 *  leaf finding, splits, merges and leaf lists, here page by page on the
 *  CPU. */
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

/** Counts since the index was made. */
struct oj_live_counts
{
    int64_t n;            /**< points now */
    int64_t n_batches;    /**< batches applied */
    int64_t n_put;        /**< changes that added an id */
    int64_t n_moved;      /**< changes of an existing id */
    int64_t n_removed;    /**< removals of an existing id */
    int64_t n_unknown;    /**< removals of an id that does not exist */
    int64_t n_unjoinable; /**< changes with coordinates that no join takes */
    int64_t n_superseded; /**< changes that a later change of their id in the
                               batch replaces */
    int64_t n_rebuilt;    /**< batches that rebuilt the whole tree */
    int64_t n_pages;
    int64_t n_bytes; /**< memory of the index */
};

struct oj_live;

/** Makes an empty index. n_threads: 0 stands for all processors. */
OJ_MUST_USE oj_status oj_live_new(enum oj_live_tree tree, int n_threads,
                                  struct oj_live **out, struct oj_error *err);

/** Applies n changes in one step. If an id has several changes, the last one
 *  counts. x NaN, or a coordinate that no join takes, removes the id. After an
 *  error no change is applied. Other threads wait, so one batch is applied at a
 *  time.
 *  Errors  OJ_ERR_NOMEM; OJ_ERR_LIMIT: more than 2^30 changes, or more than
 *          2^30 ids including the new ones of the batch
 *  Cost    O(changes), a few cache misses each, plus the pages that overflow or
 *          become empty; if many points leave their pages, a rebuild: O(n log
 *          n) */
OJ_MUST_USE oj_status oj_live_apply(struct oj_live *live, int64_t n,
                                    const int64_t *id, const double *x,
                                    const double *y, struct oj_error *err);

/** Returns the current state, which does not change until
 * oj_live_release_state(). Waits while a batch changes the state in place. */
const struct live_state *oj_live_acquire_state(struct oj_live *live);
void oj_live_release_state(struct oj_live *live,
                           const struct live_state *state);

/** Returns the counts. Waits for a batch that is being applied. */
struct oj_live_counts oj_live_count(struct oj_live *live);

/** Writes the kind of tree in use, and why it was chosen, as a zero-terminated
 *  text. */
void oj_live_explain_tree_choice(struct oj_live *live, char *text, size_t size);

/** Precondition: no thread holds a state of the index. Accepts NULL. */
void oj_live_free(struct oj_live *live);

/* --- for the files of this room --------------------------------------------
 */

#include "../../flatten/base/oj_parallel.h"
#include "live_ids.h"

#include <pthread.h>

struct oj_live
{
    enum oj_live_tree tree;
    int n_threads;
    pthread_mutex_t writer; /**< held while a batch is applied; guards all
                               members that lock does not guard */
    struct oj_team team;    /**< threads of batches, asleep between them */
    const struct live_split_rule *rule;
    struct oj_box frame; /**< around all points at the last build */
    char reason[200];
    struct live_ids ids;
    struct live_blocks blocks;
    struct oj_live_counts counts;
    int32_t newest_read; /**< greatest number of the states that had readers
                            when the batch began its changes; -1: none */

    /* Scratch memory that batches use again. */
    uint32_t *leaving; /**< [cap_leaving] number of points that leave a page; 0
                          between batches */
    int64_t cap_leaving;
    int was_rebuilt;             /**< 1: the batch before rebuilt the tree */
    struct live_point *gathered; /**< [cap_gathered] points of a new tree, and
                                    as many to sort them; NULL between batches
                                    unless the last two rebuilt the tree */
    int64_t cap_gathered;

    pthread_mutex_t lock; /**< guards the members below, and n_readers */
    pthread_cond_t was_changed;
    int is_changing; /**< 1 while a batch changes pages in place: readers wait
                      */
    struct live_state *state;
};

/** Makes state the current state of the index. The previous state is freed when
 *  its last reader has given it back. */
void live_publish_state(struct oj_live *live, struct live_state *state);

/** Gives back the block of a page that is changed or freed, or retires it if a
 *  reader may still use it. */
static inline void live_drop_block(struct oj_live *live,
                                   const struct live_page *page)
{
    if (page->birth > live->newest_read)
        live_blocks_give_back(&live->blocks, page->block);
    else
        live_blocks_retire(&live->blocks, page->block, live->newest_read);
}

/** Rebuilds the whole tree from n points, whose member entry may be -1 (not
 *  looked up).  Allocations come first: after an error live is unchanged,
 *  except for ids. */
OJ_MUST_USE oj_status live_rebuild(struct oj_live *live, int64_t n,
                                   struct live_point *point,
                                   struct live_point *scratch,
                                   struct oj_error *err);

/** Makes the nodes and pages of a subtree below parent; live_fill_leaf() puts
 *  the points into the pages. The state must have room for all of them.
 *  node_of  [nodes of the subtree] set to the number of each node in the state
 *  page     [leaves] set to the first page of each leaf */
void live_add_subtree_to_state(struct oj_live *live, struct live_state *state,
                               const struct live_subtree *subtree,
                               uint32_t parent, int32_t *node_of,
                               uint32_t *page);

/** Puts the points of a leaf into its pages, the chain from `page` on, and sets
 *  the entries of their ids. Threads may fill different leaves at once. */
void live_fill_leaf(struct oj_live *live, struct live_state *state,
                    const struct live_leaf *leaf,
                    const struct live_point *point, uint32_t page);

/** Returns the number of pages of a leaf with n points. */
static inline int64_t live_count_pages_of_leaf(int64_t n)
{
    return (n + LIVE_PAGE_POINTS - 1) / LIVE_PAGE_POINTS;
}

#endif
