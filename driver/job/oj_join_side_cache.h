/** Prepared join sides, shared by all jobs of the process: a program such as
 *  QGIS opens one dataset many times, and its join side is read and indexed
 *  once.
 *
 *   key --> entry: join side + engine --- held by: use, use, use
 *
 *  An entry goes when nobody holds it and all entries together are larger than
 *  the bound, the one used least recently first; entries in use are counted and
 *  stay.  The bound is the configuration option OGRJOIN_CACHE_MAX, bytes as
 *  -memory takes them; without it a quarter of the physical memory; "0":
 *  nothing is kept.
 *
 *  What a key must hold: oj_job.c.  Of two keys that differ only in the
 *  state of the files the older one is never asked for again.
 */
#ifndef OJ_JOIN_SIDE_CACHE_H
#define OJ_JOIN_SIDE_CACHE_H

#include "../../algs/api/engine/oj_join.h"
#include "../../flatten/read/oj_layer_read.h"
#include "../source/oj_side_preprocessing.h"

/* ---- the join side of a job: read, made into what is joined, indexed ----- */

/** Zeroed memory is a valid empty one. It stays where it is once the engine is
 *  open, which borrows flat. */
struct oj_join_side
{
    struct oj_flat_buf buf; /**< as it was read */
    struct oj_side_work work;
    struct oj_flat flat; /**< what is joined: of buf or work */
    struct oj_table *table;
    struct oj_read_counts counts;
    struct oj_join *engine; /**< NULL when the join side lies in tiles */
    double read_s;

    /* Of a side that other jobs borrow: what its rows left with the sides of
     * the job that read it. */
    struct oj_side_findings findings;
    struct oj_vocabulary *vocabulary; /**< held */
};

/** Keeps with side what the reading of it left with sides. */
void oj_join_side_keep(struct oj_join_side *side, const struct oj_sides *sides);

/** Gives it to the sides of another job, which asks the same of its join
 *  side. */
void oj_join_side_lend(const struct oj_join_side *side, struct oj_sides *sides);

/** What the index of a join takes for each vertex, about (segments of 36 bytes,
 *  trees, rings), and what it holds beside the coordinates. */
#define OJ_INDEX_BYTES_PER_VERTEX 72

/** Adds to sum what an engine did between two looks at its stats; before NULL:
 *  since it was opened.  Bytes of an index are the most of all. */
void oj_stats_add(struct oj_stats *sum, const struct oj_stats *before,
                  const struct oj_stats *after);

/** Frees what it holds; it is a valid empty one afterwards. */
void oj_join_side_free(struct oj_join_side *side);

/* ---- the cache ------------------------------------------------------------
 */

/** What decides a join side: texts, NULL-terminated. Owner; zeroed memory is a
 *  valid empty one. */
struct oj_join_key
{
    char **identity;
    char **state; /**< of the files */
};

/** Accepts an empty one. */
void oj_join_key_free(struct oj_join_key *key);

struct oj_join_entry;

/** One who uses an entry. Zeroed memory is a valid one that holds none. It
 *  stays where it is between take and end, and is used by one thread at a time,
 *  oj_join_use_stop() aside. */
struct oj_join_use
{
    struct oj_join_entry *entry; /**< NULL: none */
    const int *cancel;
    struct oj_stats stats; /**< of its own batches */
};

/** Fills side, which is zeroed.  cancel: the flag for the engine, which stays
 *  with it; the caller's own stops everything else.  *keep, which is 1 on
 *  entry: 0 when nobody who comes later may have it.  On failure the cache
 *  frees side. */
typedef oj_status (*oj_join_build)(void *user, struct oj_join_side *side,
                                   const int *cancel, int *keep,
                                   struct oj_error *err);

/** Bytes that the cache may keep, now; 0: it is off. */
int64_t oj_join_cache_limit(void);

/** Takes the entry that like holds or makes, if there is one (NULL: nobody);
 *  else finds that of key, or makes it with build(user); key NULL: makes one
 *  that cannot be found, and can be shared.  While another thread makes it,
 *  this one waits.  *cancel stops the waiting, and later batches that have not
 *  begun; it outlives the use.
 *  *is_mine: 1 when build was called.
 *  Errors     those of build, also where another's failed for which this one
 *             waited; OJ_ERR_CANCELLED, only its own; OJ_ERR_NOMEM. */
OJ_MUST_USE oj_status oj_join_cache_take(const struct oj_join_use *like,
                                         const struct oj_join_key *key,
                                         oj_join_build build, void *user,
                                         const int *cancel,
                                         struct oj_join_use *use, int *is_mine,
                                         struct oj_error *err);

/** Of a use that holds an entry. To read from any thread. */
struct oj_join_side *oj_join_use_side(const struct oj_join_use *use);

/** oj_join_batch() of the engine, side by side with those of other uses, or in
 *  turns with them where a device may answer (oj_join_take()). */
OJ_MUST_USE oj_status oj_join_use_batch(struct oj_join_use *use,
                                        const struct oj_flat *input,
                                        struct oj_matches *out,
                                        struct oj_error *err);

/** From any thread, after the flag that oj_join_cache_take() was given was
 *  raised: has the engine stop what it does for this use, where it looks at a
 *  flag of its own. */
void oj_join_use_stop(struct oj_join_use *use);

/** Gives the entry back. Accepts one that holds none. */
void oj_join_use_end(struct oj_join_use *use);

/** Frees all entries that nobody holds; the others are freed when they are
 *  given back. Runs by itself when the library is unloaded or the process
 *  ends. */
void oj_join_cache_clear(void);

struct oj_join_cache_counts
{
    int64_t n_entries, n_bytes; /**< that can be found now */
    int64_t n_built, n_found;   /**< since the process began */
};

struct oj_join_cache_counts oj_join_cache_counts(void);

#endif
