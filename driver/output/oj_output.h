/** Where the answer goes, never half-written.
 *
 *  A new dataset (also one that replaces an old one) is made in a temporary
 *  folder next to its place and moved there after a checked close.  A layer in
 *  an existing dataset, rows added to one, and databases are written in one
 *  transaction on one handle.  Streams such as /vsistdout/ are written as they
 *  come.
 *
 *   plan -> open -> (oj_schema makes the layer, rows are written) -> finish
 *                                                              \-> abort
 */
#ifndef OJ_OUTPUT_H
#define OJ_OUTPUT_H

#include "../command/oj_command.h"
#include "../files/oj_temporary.h"
#include "../source/oj_source.h"

#include <gdal.h>

enum oj_output_kind
{
    OJ_OUTPUT_FILE = 0,   /**< a dataset of its own, moved into place */
    OJ_OUTPUT_STREAM,     /**< written as it comes: /vsistdout/ and the like */
    OJ_OUTPUT_TRANSACTION /**< part of an existing dataset */
};

enum
{
    OJ_MAX_BESIDE = 2
};

/** A further layer of the output: in the same dataset, or, where the driver's
 *  datasets are files of one layer, in a file beside it. */
struct oj_beside
{
    const char *option; /**< that asked for it, for messages */
    const char *name;
    int has_file; /**< 1: a file of its own */
    int replaces; /**< a layer of that name exists and will go */
    int appends;  /**< rows are added to layer */
    OGRLayerH layer;
    int64_t rows_before; /**< in a layer that is added to; -1 unknown */

    /** Told by who writes, before the output is finished. */
    int64_t n_rows, n_no_geometry;
};

/** Zeroed memory is a valid closed one. */
struct oj_output
{
    const struct oj_command *command;
    enum oj_output_kind kind;
    GDALDriverH driver;
    const char *layer_name; /**< the layer to be written */
    int replaces;           /**< something of that name exists and will go */
    int appends;            /**< rows are added to layer */
    char path[OJ_PATH_MAX]; /**< what the user named, links resolved */
    char **old_members;     /**< owned: files of the dataset replaced */
    struct oj_temporary temporary;
    GDALDatasetH dataset;
    OGRLayerH layer; /**< set by oj_schema, or the layer added to */
    int in_transaction;
    int64_t rows_before; /**< in a layer that is added to; -1 unknown */
    struct oj_beside beside[OJ_MAX_BESIDE];
    int n_beside;
};

/** Rows that the finished output holds, as far as that could be counted. */
struct oj_output_counts
{
    int64_t n_rows_checked; /**< rows counted after closing; -1: not counted */
    int64_t n_left_out;     /**< rows without geometry the driver dropped */
};

/** Decides driver and kind, and refuses what cannot end well: an existing
 *  output without leave to touch it, an output that is an input, a driver that
 *  cannot write or undo. Writes nothing. layer_name outlives the output. */
OJ_MUST_USE oj_status oj_output_plan(const struct oj_command *command,
                                     const char *layer_name,
                                     const struct oj_source *input,
                                     const struct oj_source *join,
                                     struct oj_output *output,
                                     struct oj_error *err);

/** Plans a further layer, between plan and open; option is the one that asks
 * for it. Refuses what the output cannot hold. name outlives the output. */
OJ_MUST_USE oj_status oj_output_plan_beside(struct oj_output *output,
                                            const char *option,
                                            const char *name,
                                            const struct oj_source *input,
                                            const struct oj_source *join,
                                            struct oj_error *err);

/** Creates the dataset, or begins the transaction in the existing one; in the
 *  latter layers to be replaced are deleted. */
OJ_MUST_USE oj_status oj_output_open(struct oj_output *output,
                                     struct oj_error *err);

/** Commits, closes, checks that n_rows arrived (less n_no_geometry rows that
 *  some drivers drop) and moves the dataset into place. The output is closed
 *  afterwards, whatever is returned. */
OJ_MUST_USE oj_status oj_output_finish(struct oj_output *output, int64_t n_rows,
                                       int64_t n_no_geometry,
                                       struct oj_output_counts *counts,
                                       struct oj_error *err);

/** Replaces the text of a failure when the disk is full, which drivers tell in
 *  ways of their own; returns status. */
oj_status oj_output_explain(const struct oj_output *output, oj_status status,
                            struct oj_error *err);

/** Undoes all that was done. Accepts a closed one. */
void oj_output_abort(struct oj_output *output);

/** 1 when dst is a stream on which nothing else may be printed. */
int oj_output_is_stdout(const char *dst);

#endif
