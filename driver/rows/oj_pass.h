/** A pass: one run of a join that makes output rows, for the command (which
 *  writes a dataset or changes one in place) or for a layer that is read.
 *
 *     open --> prepare --> start --> next, next, ... --> stop, any number of
 *     (schemas) (join side)          (answers)               times
 *
 *  States and transitions: oj_pass_state.h. The command prepares and starts its
 *  pass itself. A shared pass (oj_pass_open_shared()) is prepared and started
 *  by its first oj_pass_next(), on the reader thread.
 *
 *     call            state before          state after
 *     open            CLOSED                OPEN
 *     prepare         OPEN                  PREPARED
 *     start           PREPARED              STARTED
 *     next            OPEN ... STARTED      INPUT_ROWS, OTHER_ROWS
 *     answer_feature  OPEN ... STARTED      STARTED
 *     stop            any                   STARTED if rows had begun
 *     any, failing                          BROKEN
 *     reopen          BROKEN                OPEN
 *
 *  The caller requests one answer after another. The join runs ahead on its own
 *  threads (oj_pipeline.h); until the pass is stopped only these may use the
 *  datasets. Single rows can be requested by FID while no pipeline runs.
 */
#ifndef OJ_PASS_H
#define OJ_PASS_H

#include "../job/oj_job.h"
#include "oj_pass_choice.h"
#include "oj_pass_events.h"
#include "oj_pass_state.h"
#include "oj_pass_unmatched.h"
#include "oj_row_plan.h"
#include "oj_validation_run.h"

/** An answer: the pairs of a batch that become rows. Borrowed from the pass,
 *  valid until the next answer. */
struct oj_answer
{
    const struct oj_batch *batch; /**< rows of the input or the join layer */
    int64_t first_row;            /**< index in batch of row 0 of matches */

    /** For rows of the join layer: [batch->n_rows], nonzero: the row has a pair
     *  and is not written. NULL for input rows. */
    const uint8_t *is_matched;

    /** The pairs, for the writer or a cursor. For aggregates: one entry per
     *  row, whose join_row is no feature. For rows of the join layer: one row
     *  per row of the batch; a row without a pair becomes an output row. */
    const struct oj_matches *matches;
    const struct oj_pair_values *values; /**< values of the pairs, or NULL */
    const struct oj_flat *join_side;     /**< the features to which join_row
                                              refers */
    const struct oj_table *join_table;

    /* For -validate: the part of the batch and its pairs as they were joined;
     * NULL and zero for rows of the join layer. */
    const struct oj_pipeline_part *part;
    const struct oj_matches *pairs;
    struct oj_answer_side side;
};

/** Where the answers for input rows come from; valid when the pass is prepared.
 */
enum oj_answers_from
{
    OJ_ANSWERS_JOINED, /**< rows are joined when they are read */
    /** -agg: the join layer was streamed; the input is read again, and its rows
     *  get their aggregates */
    OJ_ANSWERS_ADDED_UP,
    /** -one_to_one: the pairs were chosen; the input is read again, and its
     *  rows get their chosen pair */
    OJ_ANSWERS_CHOSEN
};

/** A pass. Zeroed memory is valid and closed. An open pass must not be moved in
 *  memory. */
struct oj_pass
{
    struct oj_job job;
    struct oj_rows rows;
    struct oj_pass_unmatched unmatched;
    struct oj_pass_events events;
    /** another pass whose join side can be shared; or NULL */
    const struct oj_pass *like;
    enum oj_pass_state state; /**< state; accessed only by the functions of
                                   oj_pass_state.h */
    enum oj_answers_from answers_from;

    /** 1 if answers are the pairs as joined, without attributes and aggregates;
     *  set by the caller before the first row */
    int pairs_only;

    /** check of -validate, or NULL; it gets each answer of the join before rows
     *  are made of it and before -one_to_one chooses */
    struct oj_proof *proof;
    double proof_s; /**< seconds spent in proof while rows are made */

    /* Members of a shared pass. */
    const struct oj_command *command; /**< NULL if the pass is not shared */
    struct oj_message_list messages;
    int cancel; /**< set to stop the current work */
    /** configuration options of the thread that requested the first row */
    char **settings;
    /** [side] fields of input and join when they were first opened, as texts
     *  "NAME TYPE SUBTYPE"; owned */
    char **fields[2];

    /* Additional filters on the input layer, used from the next first row on.
     * Owned by the caller, who changes them only while no rows are requested.
     * NULL means no filter. */
    const OGREnvelope *box;
    const char *where;

    /* State of the current rows. */
    /** pipeline of input rows; exists from the first row requested until the
     *  last one, or until it is stopped */
    struct oj_pipeline *pipeline;
    struct oj_answer answer;
    struct oj_matches one; /**< scratch: answer of a single row */

    /* State of reading. */
    struct oj_layer_reader *reader;
    /** batches in flight, as they were read */
    struct oj_batch batches[OJ_PIPELINE_SLOTS];
    struct oj_side_work batch_work[OJ_PIPELINE_SLOTS];
    /** progress, 0 to 1, at which the current reading began */
    double progress_start;
    /** fraction of the progress bar for the current reading; 0 stands for all
     *  of it */
    double progress_share;
    /** -nlt POLYGON, LINE or POINT: number of pairs that were dropped, and of
     *  input rows whose pairs were all dropped */
    int64_t n_dropped_pairs, n_dropped_rows;
    int progress_open; /**< 1 if the progress bar is on the screen */

    /** [side] 1 if the side was held ever since its first reading, so that a
     *  second reading has equal rows. */
    int was_held[2];

    struct oj_pass_choice choice;

    /* Used while the join layer is streamed: its batches are joined with the
     * indexed input layer. */
    /** the input side, indexed; its engine belongs to the job */
    struct oj_join_side held_input;
    double join_s; /**< seconds of joining the streamed join layer */
};

/** Opens a pass that the command runs once: opens both sides, reads schemas and
 *  plans the rows. command must outlive the pass, which must be closed even
 *  after a failure. */
OJ_MUST_USE oj_status oj_pass_open(const struct oj_command *command,
                                   struct oj_pass *pass, struct oj_error *err);

/** Opens a shared pass, which can be run any number of times. Messages of all
 *  its threads are collected in pass->messages, and the caller must report
 *  them.
 *   like  NULL, or another pass of an equal command that outlives this one: its
 *         join side is used if it exists when this pass needs one
 */
OJ_MUST_USE oj_status oj_pass_open_shared(const struct oj_command *command,
                                          const struct oj_pass *like,
                                          struct oj_pass *pass,
                                          struct oj_error *err);

/** Opens a shared pass for a layer and fills *schema with its fields. Names
 *  that the input's format reserves for FIDs and geometries are avoided. Sets
 *  schema->keep_fids to 1 if the FIDs are derived from those of the input. */
OJ_MUST_USE oj_status oj_pass_open_layer(const struct oj_command *command,
                                         struct oj_pass *pass,
                                         struct oj_schema *schema,
                                         struct oj_error *err);

/** Returns 1 from the first requested row until oj_pass_stop(); meanwhile only
 *  the threads of the pass may use the datasets. */
int oj_pass_is_running(const struct oj_pass *pass);

/** Returns 1 if oj_pass_reopen_if_outdated() is needed: no pipeline runs, and
 * something failed or a file of a side has changed. */
int oj_pass_is_outdated(struct oj_pass *pass);

/** Reopens both sides of an outdated pass, so that all rows belong to one state
 *  of the files. OJ_ERR_DATA if the fields have changed. */
OJ_MUST_USE oj_status oj_pass_reopen_if_outdated(struct oj_pass *pass,
                                                 struct oj_error *err);

/** Reads and indexes the join side (with -agg the smaller side) and prepares
 *  -validate. A shared pass may use the cache or the join side of pass->like.
 *  Does nothing if the pass is prepared already.
 *
 *     -agg with the join layer the larger one:
 *     input layer, geometry ----> index
 *     join layer --read--> exchanged join --pairs--> rows.aggregation
 *     input layer, again --read--> rows and their aggregates --write-->
 *
 *  Pairs and results do not depend on which side is indexed.
 */
OJ_MUST_USE oj_status oj_pass_prepare(struct oj_pass *pass,
                                      struct oj_error *err);

/** Prepares for answers. marks: 1 if unmatched join rows will be requested.
 *  With -one_to_one this joins all input rows, without the filters of the pass,
 *  and chooses the pairs. */
OJ_MUST_USE oj_status oj_pass_start(struct oj_pass *pass, int marks,
                                    struct oj_error *err);

/** Sets *answer to the next answer, or to NULL after the last one. First all
 *  input rows that pass the filters of the input layer are answered, then
 *  unmatched join rows. The first call prepares and starts a shared pass, on
 *  the reader thread. */
OJ_MUST_USE oj_status oj_pass_next(struct oj_pass *pass,
                                   const struct oj_answer **answer,
                                   struct oj_error *err);

/** Ends the current run; the next answer is then the first one again. On return
 *  no thread reads the layers.
 *    status, err  on entry the caller's own error, or OJ_OK
 *  Returns the earliest error, of the join or of the caller, in *err, too. */
OJ_MUST_USE oj_status oj_pass_stop(struct oj_pass *pass, oj_status status,
                                   struct oj_error *err);

/** Counts the output rows that the filters of the input layer let through,
 *  without making them. */
OJ_MUST_USE oj_status oj_pass_count(struct oj_pass *pass, int64_t *n,
                                    struct oj_error *err);

/** Gets from the input layer's driver the number of rows that pass the filters,
 *  or, if extent is not NULL, the extent of these rows.
 *   force  0: only if the driver has it without reading the layer
 *   *n     the number of rows, -1 if unknown; with an extent 1 if it was set,
 *          0 if it is unknown */
OJ_MUST_USE oj_status oj_pass_input_count_or_extent(struct oj_pass *pass,
                                                    int force, int64_t *n,
                                                    OGREnvelope *extent,
                                                    struct oj_error *err);

/** Makes the output rows of one input feature. Output row i of the feature with
 *  FID f has the FID f * oj_pass_most_rows() + i. Prepares and starts the pass
 *  if necessary (with -agg this indexes the join side). Precondition: no
 *  pipeline runs.
 *   *fid    on entry the FID of an output row; on return the index i of this
 *           row among the rows of its feature
 *   *there  receives 0 if no feature with this FID passes the filters */
OJ_MUST_USE oj_status oj_pass_answer_feature(struct oj_pass *pass, int64_t *fid,
                                             struct oj_answer *answer,
                                             int *there, struct oj_error *err);

/** Returns an upper bound of the output rows per input row. To be called after
 *  oj_pass_prepare(). */
int64_t oj_pass_most_rows(const struct oj_pass *pass);

/** Completes the progress bar. To be called when the output is complete. */
void oj_pass_end_progress(struct oj_pass *pass);

/** Frees what pass owns; a closed one is accepted. */
void oj_pass_close(struct oj_pass *pass);

#endif
