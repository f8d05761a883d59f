/** Cache of prepared join sides, shared by all jobs of the process. A program
 *  such as QGIS opens one dataset many times, but its join side is read and
 *  indexed once.
 *
 *     key --> entry: join side + engine --- held by: use, use, use
 *
 *  When all entries together exceed the limit, entries without users are
 *  evicted, the least recently used first. The limit is the configuration
 *  option OGRJOIN_CACHE_MAX (bytes, written as for -memory), by default a
 *  quarter of the physical memory; with "0" nothing is kept.
 *
 *  oj_job.c defines the content of a key. Of two keys that differ only in the
 *  state of the files, only the newer one can still be requested.
 */
#ifndef OJ_JOIN_SIDE_CACHE_H
#define OJ_JOIN_SIDE_CACHE_H

#include "../../algs/api/engine/oj_join.h"
#include "../../flatten/read/oj_layer_read.h"
#include "../source/oj_side_preprocessing.h"

/* ---- join side of a job: read, preprocessed, indexed --------------------- */

/** The join side of a job: read, preprocessed, indexed. Zeroed memory is valid
 *  and empty. It must not be moved in memory while the engine is open, because
 *  the engine borrows `flat`. */
struct oj_join_side
{
    struct oj_flat_buf buf; /**< the features as read */
    struct oj_side_work work;
    struct oj_flat flat; /**< the features to join; borrows from buf or work */
    struct oj_table *table;
    struct oj_read_counts counts;
    struct oj_join *engine; /**< NULL if the join side is in tiles */
    double read_s;

    /* For a join side that other jobs borrow: results of reading its rows,
     * copied from the struct oj_sides of the job that read it. */
    struct oj_side_findings findings;
    struct oj_vocabulary *vocabulary; /**< holds one reference */
};

/** Copies the results of reading from sides to side. */
void oj_join_side_copy_from_sides(struct oj_join_side *side,
                                  const struct oj_sides *sides);

/** Copies the results of reading from side to the sides of another job, whose
 *  options for the join side must be equal. */
void oj_join_side_copy_to_sides(const struct oj_join_side *side,
                                struct oj_sides *sides);

/** Estimated bytes of an index per vertex (segments of 36 bytes, trees, rings),
 *  in addition to the coordinates. */
#define OJ_INDEX_BYTES_PER_VERTEX 72

/** Adds to *sum the growth of an engine's statistics from *before to *after, or
 *  since the engine was opened if before is NULL. Two members are not added:
 *  the greater index_bytes stays, and undecided_text is copied only if *sum had
 *  no undecided pair and *after has more than *before. */
void oj_stats_add(struct oj_stats *sum, const struct oj_stats *before,
                  const struct oj_stats *after);

/** Frees what side owns; side is then valid and empty. */
void oj_join_side_free(struct oj_join_side *side);

/* ---- the cache ----------------------------------------------------------- */

/** Key of a join side: two NULL-terminated lists of texts, which the key owns.
 *  Zeroed memory is a valid empty key. */
struct oj_join_key
{
    char **identity;
    char **state; /**< states of its files */
};

/** Frees the texts; an empty key is accepted. */
void oj_join_key_free(struct oj_join_key *key);

struct oj_join_entry;

/** A use of an entry of the cache. Zeroed memory is a valid use without an
 *  entry. Between oj_join_cache_find_or_build() and oj_join_use_release() it
 * must not be moved in memory. Not thread-safe, except oj_join_use_stop(). */
struct oj_join_use
{
    struct oj_join_entry *entry; /**< NULL if the use has no entry */
    const int *cancel;
    struct oj_stats stats; /**< statistics of the batches of this use */
};

/** Builds a join side in *side, which is zeroed. cancel is the flag for the
 *  engine, which keeps the pointer. The rest of the build polls the caller's
 *  own flag. *keep is 1 on entry; the function sets it to 0 if the entry must
 *  not be found later. On failure the cache frees side. */
typedef oj_status (*oj_join_build)(void *user, struct oj_join_side *side,
                                   const int *cancel, int *keep,
                                   struct oj_error *err);

/** Returns the current limit in bytes. 0 means that the cache is off. */
int64_t oj_join_cache_limit(void);

/** Takes a use of an entry. This is the entry of `like`, if like is not NULL
 *  and has one; otherwise the entry with this key. If there is none yet,
 *  build(user) makes it, and *is_mine becomes 1. With key NULL the new entry is
 *  not in the cache: others can use it only through `like`.
 *  Waits while another thread builds the entry. *cancel ends the waiting and
 *  prevents later batches from starting; it must outlive the use.
 *  Errors: those of build, even if it failed on another thread;
 *  OJ_ERR_CANCELLED only by *cancel; OJ_ERR_NOMEM. */
OJ_MUST_USE oj_status oj_join_cache_find_or_build(
    const struct oj_join_use *like, const struct oj_join_key *key,
    oj_join_build build, void *user, const int *cancel, struct oj_join_use *use,
    int *is_mine, struct oj_error *err);

/** Returns the join side of a use that holds an entry; read-only. Thread-safe.
 */
struct oj_join_side *oj_join_use_side(const struct oj_join_use *use);

/** Calls oj_join_batch() on the entry's engine. Several uses may do so at the
 *  same time; those that may use a GPU wait for each other (oj_join_acquire()).
 */
OJ_MUST_USE oj_status oj_join_use_join_batch(struct oj_join_use *use,
                                             const struct oj_flat *input,
                                             struct oj_matches *out,
                                             struct oj_error *err);

/** Makes the engine stop its work for this use, if this use runs the engine
 *  itself. Thread-safe. To be called after the flag given to
 *  oj_join_cache_find_or_build() was set. */
void oj_join_use_stop(struct oj_join_use *use);

/** Releases the entry; a use without one is accepted. */
void oj_join_use_release(struct oj_join_use *use);

/** Frees all entries without users; others are freed when they are released.
 *  Called automatically when the library is unloaded or the process ends. */
void oj_join_cache_clear(void);

struct oj_join_cache_counts
{
    int64_t n_entries, n_bytes; /**< number and bytes of the entries that are
                                     listed now */
    int64_t n_built, n_found;   /**< entries built, and entries found, since the
                                     process began */
};

struct oj_join_cache_counts oj_join_cache_counts(void);

#endif
