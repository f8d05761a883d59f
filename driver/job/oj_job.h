/** The part that every way of running shares: two sources opened and brought
 *  into one CRS, the join side read and indexed, input rows joined. */
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

/** Zeroed memory is a valid closed one. */
struct oj_job
{
    const struct oj_command *command;
    struct oj_source input, join;
    struct oj_crs crs;
    struct oj_relation relation;
    struct oj_sides sides;

    /** The join side, once read: own_join_side, or a borrowed one. A job that
     *  is open stays where it is. */
    struct oj_join_side *join_side;
    struct oj_join_side own_join_side;
    struct oj_join_use join_use; /**< of a borrowed one */

    int64_t most_join_rows; /**< to be read at all; -1, once open: every one */

    int shares; /**< it may borrow join sides and lend its own */
    struct oj_join_files input_files, join_files; /**< where it shares */

    /* A join side larger than -memory: join_side holds no rows, and answers
     * come with the features they speak of. */
    struct oj_tiles tiles;
    struct oj_tiled_join *tiled; /**< NULL: in memory */
    struct oj_feature_set answer_side[OJ_PIPELINE_SLOTS];
    int n_slots; /**< batches that are held at a time: one where each is joined
                      with all tiles, and is large for that */

    /* Of the input side, by whoever streams it. */
    struct oj_read_counts input_counts;
    struct oj_pipeline_counts counts;
    int64_t n_pairs_joined; /**< with -one_to_one, before the choice */
    int64_t n_expected;     /**< rows that are streamed; -1: unknown */
    int show_progress;
};

/** Opens both sides, checks their types and chooses the CRS. Nothing is read
 *  yet. command outlives the job, and so does the calling thread's cancel flag.
 *  shares: 1 for a job whose join side can be the cache's; 0: for once */
OJ_MUST_USE oj_status oj_job_open(const struct oj_command *command, int shares,
                                  struct oj_job *job, struct oj_error *err);

/** Reads all rows of a side, 0: the input, 1: the join layer, into to, but for
 *  its engine: as they are, and what is joined of them. The fields of the input
 *  are read where the join asks for them.
 *  insert  see oj_sides_make()
 *  watch   NULL, or stops it with OJ_ERR_CANCELLED when watch(rows read, job)
 *          is not 0 */
OJ_MUST_USE oj_status oj_job_read_side(struct oj_job *job, int side, int insert,
                                       struct oj_join_side *to,
                                       int (*watch)(int64_t, void *),
                                       struct oj_error *err);

/** Indexes the join side, which has been read, as the command asks for. *cancel
 *  outlives the engine. */
OJ_MUST_USE oj_status oj_job_open_engine(struct oj_job *job, const int *cancel,
                                         struct oj_error *err);

/** What is joined of a batch of a side; it borrows from batch and work.
 *  insert: see oj_sides_make(). */
OJ_MUST_USE oj_status oj_job_make_flat(struct oj_job *job, int side, int insert,
                                       const struct oj_batch *batch,
                                       struct oj_side_work *work,
                                       struct oj_flat *flat,
                                       struct oj_error *err);

/** Reads the join side and indexes it.  Of a job that shares it comes from the
 *  cache of the process, or is put there; one that cannot be kept can still be
 *  shared with a job that is like another one.  Looks at the calling thread's
 *  cancel flag, which outlives the job, also while another thread prepares the
 *  same join side.
 *  like  NULL, or a job that is open for the same command, and stays so
 *        meanwhile: its join side is taken, if it has one; it may be joining,
 *        or being prepared */
OJ_MUST_USE oj_status oj_job_prepare(struct oj_job *job,
                                     const struct oj_job *like,
                                     struct oj_error *err);

/** 1 when a file of one of the sides may have changed since a job that shares
 *  was opened: whoever reads from the start opens it anew. Of what is not known
 *  to be all in files (databases, /vsi files) it is 0. */
int oj_job_is_outdated(const struct oj_job *job);

/** From any thread while the job is open, after its cancel flag was raised: has
 *  a shared engine stop at once what it does for this job. */
void oj_job_stop(struct oj_job *job);

/** 1: a few rows may be joined beforehand, to count their pairs (struct
 *  oj_batch_parts.sample). */
int oj_job_may_sample(const struct oj_job *job);

/** Joins rows of the input.
 *  answer           which of the answers in flight it is, below
 *                   OJ_PIPELINE_SLOTS
 *  with_attributes  of join features, where they are in tiles */
OJ_MUST_USE oj_status oj_job_join(struct oj_job *job,
                                  const struct oj_flat *input, int answer,
                                  int with_attributes, struct oj_matches *out,
                                  struct oj_error *err);

/** All of the input has been joined; what is read of it again is not. */
void oj_job_end_joining(struct oj_job *job);

/** Bytes of pairs of -one_to_one that may be held in memory. */
int64_t oj_job_most_held_pairs(const struct oj_command *command);

/** What the join_row of an answer means. Borrowed from the job, valid until the
 *  answer's number is used again. */
struct oj_answer_side
{
    struct oj_flat flat;
    const struct oj_table *table;
    const int64_t
        *ordinal;         /**< place in the join layer, NULL: the row itself */
    const int64_t *place; /**< for oj_join_tiles_fetch(), NULL: not in tiles */
};

/** Of the answer with that number (struct oj_pipeline_part). */
struct oj_answer_side oj_job_answer_side(const struct oj_job *job, int answer);

/** What the engine did for this job, whichever it is. Of a shared join side the
 *  backend and its reason may change while others join. */
const struct oj_stats *oj_job_stats(const struct oj_job *job);
const struct oj_backend *oj_job_backend(const struct oj_job *job);
int oj_job_threads(const struct oj_job *job);

/** Why -backend auto chose the backend; "" when there was no choice. */
const char *oj_job_reason(const struct oj_job *job);

/** How a side is read, 0: the input, 1: the join layer; its fields only where
 *  the join asks for some, or with_fields. */
struct oj_read_options oj_job_read_options(const struct oj_job *job, int side,
                                           int with_fields);

/** Options of a backend after the command. */
struct oj_options oj_job_options(const struct oj_command *command);

/** Accepts a closed one. */
void oj_job_close(struct oj_job *job);

#endif
