/** Cache of prepared join sides, shared by all jobs of the process: a program
 *  such as QGIS opens one dataset many times, but its join side is read and
 *  indexed once.
 *
 *    key --> entry: join side + engine --- held by: use, use, use
 *
 *  When all entries together exceed the limit, entries without users are
 *  evicted, the least recently used first; entries in use count and stay.  The
 *  limit is the configuration option OGRJOIN_CACHE_MAX (bytes, written as for
 *  -memory), by default a quarter of the physical memory; "0": nothing is kept.
 *
 *  What a key must contain: oj_job.c.  Of two keys that differ only in the
 *  state of the files, only the newer one can still be requested.
 */
#ifndef OJ_JOIN_SIDE_CACHE_H
#define OJ_JOIN_SIDE_CACHE_H

#include "../../algs/api/engine/oj_join.h"
#include "../../flatten/read/oj_layer_read.h"
#include "../source/oj_side_preprocessing.h"

/* ---- join side of a job: read, preprocessed, indexed --------------------- */

/** A zeroed one is valid and empty. It must not be moved in memory while the
 *  engine is open, which borrows flat. */
struct oj_join_side
{
    struct oj_flat_buf buf; /**< the features as read */
    struct oj_side_work work;
    struct oj_flat flat; /**< the features to join; borrows from buf or work */
    struct oj_table *table;
    struct oj_read_counts counts;
    struct oj_join *engine; /**< NULL when the join side is in tiles */
    double read_s;

    /* For a side that other jobs borrow: results of reading its rows, copied
     * from the sides of the job that read it. */
    struct oj_side_findings findings;
    struct oj_vocabulary *vocabulary; /**< holds one reference */
};

/** Copies the results of reading from sides to side. */
void oj_join_side_keep(struct oj_join_side *side, const struct oj_sides *sides);

/** Copies the results of reading from side to the sides of another job, which
 *  has equal options for its join side. */
void oj_join_side_lend(const struct oj_join_side *side, struct oj_sides *sides);

/** Estimated bytes of an index per vertex (segments of 36 bytes, trees, rings),
 *  in addition to the coordinates. */
#define OJ_INDEX_BYTES_PER_VERTEX 72

/** Adds to sum the difference of two states of an engine's statistics; before
 *  NULL: all since it was opened. For the bytes of an index, takes the
 *  maximum. */
void oj_stats_add(struct oj_stats *sum, const struct oj_stats *before,
                  const struct oj_stats *after);

/** Frees what it owns; *side is then valid and empty. */
void oj_join_side_free(struct oj_join_side *side);

/* ---- the cache ----------------------------------------------------------- */

/** Identity of a join side: NULL-terminated texts. Owner; a zeroed one is valid
 *  and empty. */
struct oj_join_key
{
    char **identity;
    char **state; /**< state of its files */
};

/** Frees the texts. Accepts an empty one. */
void oj_join_key_free(struct oj_join_key *key);

struct oj_join_entry;

/** A use of an entry. A zeroed one is valid and holds none. Between take and
 *  end it must not be moved in memory. Not thread-safe, except
 *  oj_join_use_stop(). */
struct oj_join_use
{
    struct oj_join_entry *entry; /**< NULL: none */
    const int *cancel;
    struct oj_stats stats; /**< statistics of the batches of this use */
};

/** Builds a join side in *side, which is zeroed.  cancel: the flag for the
 *  engine, which keeps the pointer; the rest of the build polls the caller's
 *  own flag.  *keep: 1 on entry; set to 0 if the entry must not be found later.
 *  On failure the cache frees side. */
typedef oj_status (*oj_join_build)(void *user, struct oj_join_side *side,
                                   const int *cancel, int *keep,
                                   struct oj_error *err);

/** Current limit in bytes; 0: the cache is off. */
int64_t oj_join_cache_limit(void);

/** Takes the entry of `like` (may be NULL) if it has one; else finds the entry
 *  of key, or builds it by build(user). key NULL: builds an unlisted entry,
 *  which can be shared only through `like`.  Waits while another thread builds
 *  the entry.  *cancel stops the waiting and later batches that have not begun;
 *  it must outlive the use.
 *  *is_mine: 1 when build was called.
 *  Errors: those of build, also if it failed on the thread for which this one
 *  waited; OJ_ERR_CANCELLED only by this use's own flag; OJ_ERR_NOMEM. */
OJ_MUST_USE oj_status oj_join_cache_take(const struct oj_join_use *like,
                                         const struct oj_join_key *key,
                                         oj_join_build build, void *user,
                                         const int *cancel,
                                         struct oj_join_use *use, int *is_mine,
                                         struct oj_error *err);

/** The join side of a use that holds an entry; read-only. Thread-safe. */
struct oj_join_side *oj_join_use_side(const struct oj_join_use *use);

/** oj_join_batch() on the engine, concurrently with other uses; or in turns
 *  with them if a device may answer (oj_join_acquire()). */
OJ_MUST_USE oj_status oj_join_use_batch(struct oj_join_use *use,
                                        const struct oj_flat *input,
                                        struct oj_matches *out,
                                        struct oj_error *err);

/** Thread-safe; call it after raising the flag given to oj_join_cache_take().
 *  Stops the engine's work for this use if the engine polls a flag of its
 *  own. */
void oj_join_use_stop(struct oj_join_use *use);

/** Releases the entry. Accepts a use without one. */
void oj_join_use_end(struct oj_join_use *use);

/** Frees all entries without users; others are freed when they are released.
 *  Called automatically when the library is unloaded or the process ends. */
void oj_join_cache_clear(void);

struct oj_join_cache_counts
{
    int64_t n_entries, n_bytes; /**< listed now */
    int64_t n_built, n_found;   /**< since the process began */
};

struct oj_join_cache_counts oj_join_cache_counts(void);

#endif
