/** A pass: a join on its way to rows, whoever takes them, the command that
 *  writes a dataset or changes one in place, or a layer that is read.
 *
 *   open --> prepare --> start --> next, next, ... --> stop, any number of
 *   (schemas) (join side)          (answers)               times
 *
 *  Its states and what follows on what: oj_pass_state.h.  A pass of the command
 *  is prepared and started by its caller; one that is shared is so by the first
 *  next, on the thread that reads.
 *
 *    call            state before          state after
 *    open            CLOSED                OPEN
 *    prepare         OPEN                  PREPARED
 *    start           PREPARED              STARTED
 *    next            OPEN ... STARTED      INPUT_ROWS, OTHER_ROWS
 *    one             OPEN ... STARTED      STARTED
 *    stop            any                   STARTED, where rows had begun
 *    any that fails                        BROKEN
 *    reopen          BROKEN                OPEN
 *
 *  Answers are asked for one by one; the join runs ahead on threads of its own
 *  (oj_pipeline.h), to which the datasets belong until it is stopped.  Also
 *  single rows by their FID, where the input is not streamed.
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

/** What becomes rows at a time. Borrowed from the pass, until the next one. */
struct oj_answer
{
    const struct oj_batch *batch; /**< of the input, or of the join layer */
    int64_t first_row;            /**< of the batch: row 0 of matches */

    /** Join rows: [batch->n_rows] nonzero: passed over. NULL: input rows. */
    const uint8_t *is_matched;

    /** For the writer, or a cursor: of aggregates one entry to a row, join_row
     *  being no feature. Of join rows: no pair where they are to be written. */
    const struct oj_matches *matches;
    const struct oj_pair_values *values; /**< or NULL */
    const struct oj_flat *join_side;     /**< what join_row means */
    const struct oj_table *join_table;

    /* As joined, for a proof; NULL and zero for join rows. */
    const struct oj_pipeline_part *part;
    const struct oj_matches *pairs;
    struct oj_answer_side side;
};

/** Where the answers of input rows come from, once the pass is prepared. */
enum oj_answers_from
{
    OJ_ANSWERS_JOINED,   /**< rows are joined as they are read */
    OJ_ANSWERS_ADDED_UP, /**< -agg: the join layer was streamed, and the input
                            is read again for the rows of its aggregates */
    OJ_ANSWERS_CHOSEN    /**< -one_to_one: the pairs were chosen, and the input
                              is read again for its rows */
};

/** Zeroed memory is a valid closed one. An open one stays where it is. */
struct oj_pass
{
    struct oj_job job;
    struct oj_rows rows;
    struct oj_pass_unmatched unmatched;
    struct oj_pass_events events;
    const struct oj_pass *like; /**< whose join side can be used; or NULL */
    enum oj_pass_state state;   /**< by oj_pass_state.h only */
    enum oj_answers_from answers_from;

    /** A setting, made by the caller before the first row: answers are the
     *  pairs of input rows as they were joined, without attributes and not
     *  added up. */
    int pairs_only;

    /** -validate, or NULL: is given the answers of the join, before those who
     *  take rows, and before -one_to_one chooses. */
    struct oj_proof *proof;
    double proof_s; /**< spent on it while rows are taken */

    /* Of one that is not for once. */
    const struct oj_command *command; /**< NULL: for once */
    struct oj_message_list messages;
    int cancel;       /**< raised to end what is under way */
    char **settings;  /**< of the thread that asked for the first row */
    char **fields[2]; /**< owned: of input and join when they were first opened,
                           "NAME TYPE SUBTYPE" */

    /* Filters on the input layer from the next first row on, beside those of
     * the command; the caller's, who changes them while no rows are under way.
     * NULL: none. */
    const OGREnvelope *box;
    const char *where;

    /* The rows that are under way. */
    struct oj_pipeline *pipeline; /**< of input rows, from the first one until
                                       the last or until it is stopped */
    struct oj_answer answer;
    struct oj_matches one; /**< of a single row */

    /* What is read. */
    struct oj_layer_reader *reader;
    struct oj_batch batches[OJ_PIPELINE_SLOTS]; /**< as they were read */
    struct oj_side_work batch_work[OJ_PIPELINE_SLOTS];
    double progress_start; /**< where in the bar streaming begins */
    double progress_share; /**< of the bar, that streaming takes; 0: all */
    int progress_open;     /**< the bar has begun and not ended */

    /** Of a side that is read again: it is held, in the state that was joined.
     */
    int was_held[2];

    struct oj_pass_choice choice;

    /* The join layer, streamed past the input layer. */
    struct oj_join_side held_input; /**< all of it, but for its engine, which is
                                         the job's */
    double join_s; /**< of all that was done with join features */
};

/** Opens both sides and plans what becomes of their pairs; reads schemas only.
 *  For a run, which takes all rows once.  command outlives the pass, which is
 * to be closed also after a failure. */
OJ_MUST_USE oj_status oj_pass_open(const struct oj_command *command,
                                   struct oj_pass *pass, struct oj_error *err);

/** Opens a pass that is read again and again.  Its join side can be shared;
 *  messages of all its threads go to pass->messages, for the caller to report.
 *  like  another pass of the same command, whose join side can be used where it
 *        is made first; or NULL. It outlives this one's use. */
OJ_MUST_USE oj_status oj_pass_open_shared(const struct oj_command *command,
                                          const struct oj_pass *like,
                                          struct oj_pass *pass,
                                          struct oj_error *err);

/** Opens a pass whose rows are a layer that is read, with the fields of that
 *  layer, under names that no format has to change for its FIDs and geometries
 *  when the input came from the same one; schema->keep_fids: FIDs follow from
 *  the input's. */
OJ_MUST_USE oj_status oj_pass_open_layer(const struct oj_command *command,
                                         struct oj_pass *pass,
                                         struct oj_schema *schema,
                                         struct oj_error *err);

/** 1 from the first row asked for until oj_pass_stop(): the datasets belong to
 *  the threads of the pass. */
int oj_pass_is_running(const struct oj_pass *pass);

/** 1 when oj_pass_reopen() has something to do: something failed, or a file of
 *  one of the sides has changed, and no rows are under way. */
int oj_pass_is_outdated(struct oj_pass *pass);

/** Opens both sides anew where that is so; rows are of one state of the files.
 *  OJ_ERR_DATA: their fields are others than before. */
OJ_MUST_USE oj_status oj_pass_reopen(struct oj_pass *pass,
                                     struct oj_error *err);

/** Reads and indexes the join side, and opens the proof; or with -agg whichever
 * is the smaller side; the join side can come from the cache, or from
 * pass->like, unless it is for once.  Does nothing where that is done already.
 *
 *   -agg with the join layer the larger one:
 *   input layer, geometry ----> index
 *   join layer --read--> exchanged join --pairs--> rows.aggregation
 *   input layer, again --read--> rows and their aggregates --write-->
 *
 *  Pairs and results are the same as when the join layer is indexed. */
OJ_MUST_USE oj_status oj_pass_prepare(struct oj_pass *pass,
                                      struct oj_error *err);

/** From now on answers are made; marks: join rows that match nothing will be
 *  asked for.  With -one_to_one all of the input, without the filters of the
 *  pass, is joined here, and the pairs are chosen. */
OJ_MUST_USE oj_status oj_pass_start(struct oj_pass *pass, int marks,
                                    struct oj_error *err);

/** The next answer: of all input rows, under the filters that are set on the
 *  input layer, then of the join rows that matched nothing; *answer NULL after
 *  the last.  A pass that is not for once is prepared and started by the first
 *  one, on the thread that reads. */
OJ_MUST_USE oj_status oj_pass_next(struct oj_pass *pass,
                                   const struct oj_answer **answer,
                                   struct oj_error *err);

/** Ends what is under way; the next answer is the first one again.  On return
 *  nothing reads the layers.
 *  status, err  in: why, OJ_OK: for no error of the caller's own
 *  Returns the first error in time, of the join or the caller's, with *err. */
OJ_MUST_USE oj_status oj_pass_stop(struct oj_pass *pass, oj_status status,
                                   struct oj_error *err);

/** Rows of the output under the filters on the input layer, without making
 *  them. */
OJ_MUST_USE oj_status oj_pass_count(struct oj_pass *pass, int64_t *n,
                                    struct oj_error *err);

/** Rows of the input layer under the filters, by its own count. *n -1: not
 *  known, without force where it would be a pass over the data.
 *  extent  not NULL: where they are, instead, and *n is 1; 0: not known */
OJ_MUST_USE oj_status oj_pass_ask_input(struct oj_pass *pass, int force,
                                        int64_t *n, OGREnvelope *extent,
                                        struct oj_error *err);

/** The answer for an input feature, whose rows are numbered from its FID times
 *  oj_pass_most_rows() on: which of them *fid is, and becomes its number within
 *  the answer.  *there 0: there is no such feature under the filters.  Prepares
 *  and starts the pass for it, of -agg with the join side indexed. Not while
 *  rows are under way. */
OJ_MUST_USE oj_status oj_pass_one(struct oj_pass *pass, int64_t *fid,
                                  struct oj_answer *answer, int *there,
                                  struct oj_error *err);

/** More than the rows that any input row can give; after oj_pass_prepare(). */
int64_t oj_pass_most_rows(const struct oj_pass *pass);

/** Ends the progress bar: the output is complete. */
void oj_pass_end_progress(struct oj_pass *pass);

/** Accepts a closed one. */
void oj_pass_close(struct oj_pass *pass);

#endif
