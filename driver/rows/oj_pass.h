/** A join on its way to rows, whoever takes them: the command that writes a
 *  dataset, or a layer that is read.
 *
 *   open -> prepare -> start -> stream [-> stream_join_rows], any number of
 *   (schemas) (join side)       (answers)  (-how right, full)  times
 *
 *  Also single rows by their FID, where the input is not streamed.
 */
#ifndef OJ_PASS_H
#define OJ_PASS_H

#include "../job/oj_job.h"
#include "../output/oj_schema.h"
#include "oj_aggregate_stream.h"
#include "oj_aggregation.h"
#include "oj_rows.h"
#include "oj_unmatched.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zeroed memory is a valid closed one. An open one stays where it is. */
struct oj_pass
{
    struct oj_job job;
    struct oj_rows rows;
    struct oj_aggregation *aggregation; /**< NULL without -agg */
    int streams_join; /**< 1: of -agg, the join layer is the one to stream */
    struct oj_aggregate_stream *stream; /**< NULL: the input layer streams */
    struct oj_unmatched unmatched;
    const struct oj_pass *like; /**< whose join side can be used; or NULL */
    int is_prepared, is_started;
    struct oj_matches one; /**< of a single row */
};

/** What becomes rows at a time. Borrowed from the pass, valid while sink.take()
 *  runs, or until the next single row. */
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

struct oj_answer_sink
{
    oj_status (*take)(void *user, const struct oj_answer *answer,
                      struct oj_error *err);
    void *user;
};

enum oj_pass_use
{
    OJ_PASS_ONCE = 0, /**< a run: all rows, once */
    OJ_PASS_AGAIN,    /**< read again and again, its join side shared */
    OJ_PASS_SOME      /**< the same, and only single rows are wanted */
};

/** Opens both sides and plans what becomes of their pairs; reads schemas only.
 *  command outlives the pass, which is to be closed also after a failure. */
OJ_MUST_USE oj_status oj_pass_open(const struct oj_command *command,
                                   enum oj_pass_use use, struct oj_pass *pass,
                                   struct oj_error *err);

/** The fields of the rows. type: of their geometries, see oj_rows_type(). */
struct oj_schema_request oj_pass_request(const struct oj_pass *pass,
                                         OGRwkbGeometryType type);

/** How the rows are made, but for what a layer decides: columns, keep_fids.
 *  After oj_pass_prepare(). */
void oj_pass_fill_write_options(const struct oj_pass *pass,
                                struct oj_write_options *options);

/** Reads and indexes the join side, or with -agg, where OJ_PASS_SOME is not
 *  asked for, whichever is the smaller side; the join side can come from the
 *  cache, or from pass->like, unless it is for once.  Does nothing where that
 *  is done already. */
OJ_MUST_USE oj_status oj_pass_prepare(struct oj_pass *pass,
                                      enum oj_pass_use use,
                                      struct oj_error *err);

/** From now on answers are made; marks: join rows that match nothing will be
 *  asked for. Does nothing where that is done already. */
OJ_MUST_USE oj_status oj_pass_start(struct oj_pass *pass, int marks,
                                    struct oj_error *err);

/** Hands the answers of all input rows to sink, under the filters that are set
 *  on the input layer. On return nothing reads the layers; after a failure or a
 *  cancel, too. */
OJ_MUST_USE oj_status oj_pass_stream(struct oj_pass *pass,
                                     const struct oj_answer_sink *sink,
                                     struct oj_error *err);

/** After that: the join rows that matched nothing. */
OJ_MUST_USE oj_status oj_pass_stream_join_rows(
    struct oj_pass *pass, const struct oj_answer_sink *sink,
    struct oj_error *err);

/** Rows of the output under the filters on the input layer, without making
 *  them. */
OJ_MUST_USE oj_status oj_pass_count(struct oj_pass *pass, int64_t *n,
                                    struct oj_error *err);

/** The answer for the one input feature with this FID; *there 0: none. Not
 *  while it streams, and not when pass->stream.
 *  is_filtered  1: it has to be found under the filters of the input layer,
 *               which the caller has set to that FID */
OJ_MUST_USE oj_status oj_pass_one(struct oj_pass *pass, int64_t fid,
                                  int is_filtered, struct oj_answer *answer,
                                  int *there, struct oj_error *err);

/** More than the rows that any input row can give; after oj_pass_prepare(). */
int64_t oj_pass_most_rows(const struct oj_pass *pass);

/** Right and full joins take the input's rows as inner and left ones do. */
enum oj_how oj_pass_how(const struct oj_pass *pass);

/** Accepts a closed one. */
void oj_pass_close(struct oj_pass *pass);

#ifdef __cplusplus
}
#endif
#endif
