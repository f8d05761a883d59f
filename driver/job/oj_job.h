/** A prepared join, which all ways of running use: opens both sides in one CRS,
 *  reads and indexes the join side, and joins input rows. */
#ifndef OJ_JOB_H
#define OJ_JOB_H

#include "../../algs/api/engine/oj_join.h"
#include "../../algs/api/engine/oj_pipeline.h"
#include "../../flatten/read/oj_layer_read.h"
#include "../base/oj_message.h"
#include "../command/oj_parsed_command.h"
#include "../source/oj_crs.h"
#include "../source/oj_side_preprocessing.h"
#include "../source/oj_source.h"
#include "oj_join_side_cache.h"
#include "oj_source_file_state.h"
#include "oj_tiled_join.h"

/** A prepared join. Zeroed memory is valid and closed. */
struct oj_job
{
    const struct oj_command *command;
    struct oj_source input, join;
    struct oj_crs crs;
    struct oj_relation relation;
    struct oj_sides sides;

    /** The join side: &own_join_side, or one borrowed from the cache. Because
     *  of this pointer an open job must not be moved in memory. */
    struct oj_join_side *join_side;
    struct oj_join_side own_join_side;
    struct oj_join_use join_use; /**< the use of a borrowed join side */

    /** maximum number of join rows to read, set by -explain; -1 if there is no
     *  limit */
    int64_t most_join_rows;

    int shares; /**< 1 if the job may use the cache of join sides */
    /** states of the sides' files; set if `shares` */
    struct oj_join_files input_files, join_files;

    /* Used if the join side is larger than -memory. join_side has no rows then,
     * and each answer comes with its join features. */
    struct oj_tiles tiles;
    struct oj_tiled_join *tiled; /**< NULL if the join side is in memory */
    struct oj_feature_set answer_side[OJ_PIPELINE_SLOTS];
    /** number of batches in flight: one with tiles, because that batch is large
     */
    int n_slots;

    /* Counts of the input side; its reader updates them. */
    struct oj_read_counts input_counts;
    struct oj_pipeline_counts counts;
    /** number of pairs that the join found, before some were dropped; counted
     *  with -one_to_one, and with -nlt POLYGON, LINE or POINT */
    int64_t n_pairs_joined;
    /** with -one_to_one best: number of groups of pairs that are too large for
     *  the best assignment */
    int64_t n_large_groups;
    int64_t n_expected; /**< expected number of input rows; -1 if unknown */
    int show_progress;
};

/** Opens both sides, checks their types and chooses the CRS. Reads no rows.
 *  command and the calling thread's cancel flag must outlive the job. shares: 1
 *  if the join side may come from the cache. */
OJ_MUST_USE oj_status oj_job_open(const struct oj_command *command, int shares,
                                  struct oj_job *job, struct oj_error *err);

/** Reads all rows of a side (0: input, 1: join layer) into *to, without
 *  building an engine. Fields of the input are read if the join uses them.
 *   insert  enum oj_insertion
 *   watch   NULL, or a function that is called with (rows read, job): if it
 *           returns nonzero, the reading stops with OJ_ERR_CANCELLED
 */
OJ_MUST_USE oj_status oj_job_read_side(struct oj_job *job, int side, int insert,
                                       struct oj_join_side *to,
                                       int (*watch)(int64_t, void *),
                                       struct oj_error *err);

/** Opens an engine over the join side, which must have been read. *cancel must
 *  outlive the engine. */
OJ_MUST_USE oj_status oj_job_open_engine(struct oj_job *job, const int *cancel,
                                         struct oj_error *err);

/** Makes the features and columns to join from a batch of a side. *flat borrows
 *  from batch and work. insert is an enum oj_insertion. */
OJ_MUST_USE oj_status oj_job_preprocess_batch(
    struct oj_job *job, int side, int insert, const struct oj_batch *batch,
    struct oj_side_work *work, struct oj_flat *flat, struct oj_error *err);

/** Reads the join side and indexes it. A job with `shares` takes the join side
 *  from the process-wide cache, or puts it there if it can be cached. Polls the
 *  calling thread's cancel flag, which must outlive the job, also while another
 *  thread prepares the join side.
 *   like  NULL, or a job of an equal command that stays open during the call,
 *   in any state. This job uses the join side of `like` if there is one
 */
OJ_MUST_USE oj_status oj_job_prepare(struct oj_job *job,
                                     const struct oj_job *like,
                                     struct oj_error *err);

/** Returns 1 if a file of a side may have changed since the job was opened
 *  (with `shares`), so that it must be reopened before reading from the start.
 *  Always 0 for sources whose files are not all known (databases, /vsi files).
 */
int oj_job_is_outdated(const struct oj_job *job);

/** Makes a shared engine stop its work for this job at once. Thread-safe while
 *  the job is open; to be called after the job's cancel flag was set. */
void oj_job_stop_engine(struct oj_job *job);

/** Returns 1 if a sample of rows may be joined first to estimate the number of
 *  pairs (struct oj_batch_parts.sample). */
int oj_job_may_sample(const struct oj_job *job);

/** Joins rows of the input and sets *out to their pairs.
 *   answer           slot of the answer, below OJ_PIPELINE_SLOTS
 *   with_attributes  with tiles: also loads the attributes of the join
 *                    features */
OJ_MUST_USE oj_status oj_job_join(struct oj_job *job,
                                  const struct oj_flat *input, int answer,
                                  int with_attributes, struct oj_matches *out,
                                  struct oj_error *err);

/** Frees the tile in memory after the last batch. The input may then be read
 *  again for its rows, but no batch may be joined. */
void oj_job_end_joining(struct oj_job *job);

/** Returns how many bytes of pairs -one_to_one may hold in memory. */
int64_t oj_job_most_held_pairs(const struct oj_command *command);

/** The features to which join_row of an answer refers. Borrowed from the job,
 *  valid until the slot is used again. */
struct oj_answer_side
{
    struct oj_flat flat;
    const struct oj_table *table;
    /** [join_row] index of the feature in the join layer; NULL if that index
     *  equals join_row */
    const int64_t *ordinal;
    /** [join_row] argument of oj_join_tiles_read_features(); NULL if the join
     *  side is not in tiles */
    const int64_t *place;
};

/** Returns the join features of the answer in this slot (struct
 *  oj_pipeline_part). */
struct oj_answer_side oj_job_answer_side(const struct oj_job *job, int answer);

/** Returns the statistics of the engine's work for this job. For a shared join
 *  side, backend and reason may change while other jobs join. */
const struct oj_stats *oj_job_stats(const struct oj_job *job);
const struct oj_backend *oj_job_backend(const struct oj_job *job);
int oj_job_threads(const struct oj_job *job);

/** Returns why -backend auto chose the backend; "" if it did not choose. */
const char *oj_job_backend_reason(const struct oj_job *job);

/** Returns the options for reading a side (0: input, 1: join layer). Its fields
 *  are included if the join uses them, or if with_fields is 1. */
struct oj_read_options oj_job_read_options(const struct oj_job *job, int side,
                                           int with_fields);

/** Returns the engine options that the command sets. */
struct oj_options oj_job_options(const struct oj_command *command);

/** Frees what job owns; a closed one is accepted. */
void oj_job_close(struct oj_job *job);

#endif
