/** The part that every way of running shares: two sources opened and brought
 *  into one CRS, the join side read and indexed, the input side streamed
 *  through the join to a sink. */
#ifndef OJ_JOB_H
#define OJ_JOB_H

#include "../../algs/engine/oj_join.h"
#include "../../algs/engine/oj_pipeline.h"
#include "../../flatten/read/oj_layer_read.h"
#include "../base/oj_message.h"
#include "../command/oj_command.h"
#include "../source/oj_crs.h"
#include "../source/oj_sides.h"
#include "../source/oj_source.h"
#include "oj_join_cache.h"
#include "oj_source_files.h"
#include "oj_tiled_join.h"

/** What becomes of the batches of a stream. */
enum oj_streams
{
    OJ_STREAMS_INPUT,  /**< what is joined of the input */
    OJ_STREAMS_JOIN,   /**< what is joined of the join layer */
    OJ_STREAMS_AS_READ /**< nothing: their answers are known */
};

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

    /** The files of both sides, of oj_job_open_shared(). */
    struct oj_join_files input_files, join_files;

    /* A join side larger than -memory: join_side holds no rows, and answers
     * come with the features they speak of. */
    struct oj_tiles tiles;
    struct oj_tiled_join *tiled; /**< NULL: in memory */
    struct oj_feature_set answer_side[OJ_PIPELINE_SLOTS];

    /** Called on the join thread after each join, for what is to be found out
     *  about the pairs; may be NULL. part->answer tells answers apart. */
    oj_status (*after_join)(void *user, const struct oj_pipeline_part *part,
                            const struct oj_matches *matches,
                            struct oj_error *err);
    void *after_join_user;

    /* The input side, while and after it is streamed. */
    enum oj_streams streams;
    struct oj_layer_reader *reader;
    struct oj_batch batches[OJ_PIPELINE_SLOTS]; /**< as they were read */
    struct oj_side_work batch_work[OJ_PIPELINE_SLOTS];
    struct oj_read_counts input_counts;
    struct oj_pipeline_counts counts;
    const int *cancel; /**< what the threads of a stream stop by */

    struct oj_message_list *messages; /**< of the threads of a stream; NULL:
                                           what hears all threads */
    int64_t n_expected; /**< rows that are streamed; -1: unknown */
    int show_progress;
    double progress_start; /**< where in the bar streaming begins */
    double progress_share; /**< of the bar, that streaming takes; 0: all */
    int progress_open;     /**< the bar has begun and not ended */
};

/** Opens both sides, checks their types and chooses the CRS. Nothing is read
 *  yet. command outlives the job, and so does the calling thread's cancel flag,
 *  which all threads of the job stop by. */
OJ_MUST_USE oj_status oj_job_open(const struct oj_command *command,
                                  struct oj_job *job, struct oj_error *err);

/** Reads all rows of a side, 0: the input, 1: the join layer, into to, but for
 *  its engine: as they are, and what is joined of them. The fields of the input
 *  are read where the join asks for them.
 *  watch(rows read, user) stops it with OJ_ERR_CANCELLED when it returns
 *  nonzero (oj_is_cancelled_at()). */
OJ_MUST_USE oj_status oj_job_read_side(struct oj_job *job, int side,
                                       struct oj_join_side *to,
                                       int (*watch)(int64_t, void *),
                                       void *user, struct oj_error *err);

/** What is joined of a batch of a side; it borrows from batch and work.
 *  insert: see oj_sides_make(). */
OJ_MUST_USE oj_status oj_job_make_flat(struct oj_job *job, int side, int insert,
                                       const struct oj_batch *batch,
                                       struct oj_side_work *work,
                                       struct oj_flat *flat,
                                       struct oj_error *err);

/** Reads the join side and indexes it. */
OJ_MUST_USE oj_status oj_job_prepare(struct oj_job *job, struct oj_error *err);

/* Jobs that share join sides; all others keep theirs to
 * themselves. */

/** oj_job_open() of a job that will be given to oj_job_prepare_shared(). */
OJ_MUST_USE oj_status oj_job_open_shared(const struct oj_command *command,
                                         struct oj_job *job,
                                         struct oj_error *err);

/** 1 when a file of one of the sides may have changed since the job was opened:
 *  whoever reads from the start opens it anew. Of what is not known to be all
 *  in files (databases, /vsi files) it is 0. */
int oj_job_is_outdated(const struct oj_job *job);

/** oj_job_prepare(), with a join side from the cache of the process, or put
 *  there; one that cannot be kept can still be shared with a job that is like
 *  another one.  Looks at the calling thread's cancel flag, which outlives the
 *  job, also while another thread prepares the same join side.
 *  like  NULL, or a job that is open for the same command, and stays so
 *        meanwhile: its join side is taken, if it has one; it may be joining,
 * or being prepared */
OJ_MUST_USE oj_status oj_job_prepare_shared(struct oj_job *job,
                                            const struct oj_job *like,
                                            struct oj_error *err);

/** From any thread while the job is open, after its cancel flag was raised: has
 *  a shared engine stop at once what it does for this job. */
void oj_job_stop(struct oj_job *job);

/* The input side, streamed through somebody's pipeline: begin, read batches,
 * join their parts, end. */

/** Opens job->reader on the layer of a side, with the progress bar. Before the
 *  pipeline is opened, or on its reader thread. */
OJ_MUST_USE oj_status oj_job_open_reader(struct oj_job *job,
                                         const struct oj_source *source,
                                         const struct oj_read_options *reading,
                                         struct oj_error *err);

/** The same of the input layer; job->cancel is set.
 *  keep_attributes: batches carry geometry and fields as read. */
OJ_MUST_USE oj_status oj_job_begin_input(struct oj_job *job,
                                         int keep_attributes,
                                         struct oj_error *err);

/** The next batch, into job->batches[slot], and what job->streams says of it.
 */
OJ_MUST_USE oj_status oj_job_read_batch(struct oj_job *job, int slot,
                                        struct oj_flat *flat,
                                        struct oj_error *err);

/** Joins a part of a batch, with what is found out after the join. */
OJ_MUST_USE oj_status oj_job_join_part(struct oj_job *job,
                                       const struct oj_pipeline_part *part,
                                       struct oj_matches *out,
                                       struct oj_error *err);

/** Shows progress, when asked to; 1 when the calling thread is to stop. */
int oj_job_show_progress(const struct oj_job *job, int64_t n_rows);

/** After the pipeline was closed with status: keeps what the reader counted.
 *  OJ_ERR_DATA where rows are missing. */
OJ_MUST_USE oj_status oj_job_end_input(struct oj_job *job, oj_status status,
                                       struct oj_error *err);

/** For struct oj_pipeline_work: its threads stop by job->cancel, and their
 *  messages go to job->messages. */
void oj_job_on_thread(const struct oj_job *job,
                      void (*stages)(struct oj_pipeline *),
                      struct oj_pipeline *pipeline);

/** Reads the one input row with this FID into job->batches[0]; *flat: what is
 *  joined of it, *there 0: there is none. Not while the input is streamed;
 *  oj_job_end_reading() ends it.
 *  is_filtered  1: by the filters on the layer, which let through that row at
 *               most; 0: by its random access, whatever the filters are */
OJ_MUST_USE oj_status oj_job_read_one(struct oj_job *job, int64_t fid,
                                      int is_filtered, struct oj_flat *flat,
                                      int *there, struct oj_error *err);

/** Closes the reader and frees the batches: nothing reads the input any more.
 *  oj_job_close() does it, too. */
void oj_job_end_reading(struct oj_job *job);

/** Ends the progress bar: the output is complete. */
void oj_job_end_progress(struct oj_job *job);

/** What the join_row of an answer means. Borrowed from the job, valid until the
 *  answer's number is used again. */
struct oj_answer_side
{
    struct oj_flat flat;
    const struct oj_table *table;
    const int64_t
        *ordinal;         /**< place in the join layer, NULL: the row itself */
    const int64_t *place; /**< for oj_tiles_fetch(), NULL: not in tiles */
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

/** How a source is read. */
struct oj_read_options oj_job_read_options(const struct oj_job *job,
                                           const struct oj_source *source);

/** Options of a backend after the command. */
struct oj_options oj_job_options(const struct oj_command *command);

/** Accepts a closed one. */
void oj_job_close(struct oj_job *job);

#endif
