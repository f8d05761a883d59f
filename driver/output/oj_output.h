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

#include "../command/oj_parsed_command.h"
#include "../files/oj_temporary.h"
#include "../source/oj_source.h"

#include <gdal.h>

enum oj_output_kind
{
    OJ_OUTPUT_FILE = 0,   /**< a dataset of its own, moved into place */
    OJ_OUTPUT_STREAM,     /**< written as it comes: /vsistdout/ and the like */
    OJ_OUTPUT_TRANSACTION /**< part of an existing dataset */
};

/** A layer of the output. The first is that of the join; further ones are in
 * the same dataset, or, where the driver's datasets are files of one layer, in
 * a file beside it. */
struct oj_output_layer
{
    const char *option; /**< that asked for it, for messages; NULL: the first */
    const char *name;
    int has_file;        /**< 1: a file beside the first one */
    int replaces;        /**< something of that name exists and will go */
    int appends;         /**< rows are added to layer */
    OGRLayerH layer;     /**< set by oj_schema, or the layer added to */
    int64_t rows_before; /**< in a layer that is added to; -1 unknown */
    int rows_in_file;    /**< 1: the rows are in oj_output_rows_file(), which
                              takes the place of the dataset once that is closed;
                              set by who writes */

    /** Set by who writes, before the output is finished. */
    int64_t n_rows, n_no_geometry;
    const char *lane; /**< of the rows; NULL: they were features */

    /** Set when the output is finished, as far as that could be counted. */
    int64_t n_checked;  /**< rows counted after closing; -1: not counted */
    int64_t n_left_out; /**< rows without geometry the driver dropped */
};

enum
{
    OJ_MAX_OUTPUT_LAYERS = 3
};

/** Zeroed memory is a valid closed one. */
struct oj_output
{
    const struct oj_output_options *asked;
    const struct oj_source *sides[2]; /**< input and join */
    enum oj_output_kind kind;
    GDALDriverH driver;
    char path[OJ_PATH_MAX]; /**< what the user named, links resolved */
    char **old_members;     /**< owned: files of the dataset replaced */
    struct oj_temporary temporary;
    GDALDatasetH dataset;
    int in_transaction;
    struct oj_output_layer layers[OJ_MAX_OUTPUT_LAYERS];
    int n_layers;
};

/** Decides driver and kind, and refuses what cannot end well: an existing
 *  output without leave to touch it, an output that is an input, a driver that
 *  cannot write or undo. Writes nothing. asked, layer_name and both sides
 * outlive the output. */
OJ_MUST_USE oj_status oj_output_plan(const struct oj_output_options *asked,
                                     const char *layer_name,
                                     const struct oj_source *input,
                                     const struct oj_source *join,
                                     struct oj_output *output,
                                     struct oj_error *err);

/** Plans a further layer, between plan and open; option is the one that asks
 * for it. Refuses what the output cannot hold. name outlives the output. */
OJ_MUST_USE oj_status oj_output_plan_layer(struct oj_output *output,
                                           const char *option, const char *name,
                                           struct oj_error *err);

/** In place of a plan: opens asked->dst for changes to rows of its layer of
 * that name, layers[0].layer, also where its driver has no transactions.
 * n_layers is 0, as no rows are added.  Undoes what output was before. */
OJ_MUST_USE oj_status oj_output_open_layer(
    const struct oj_output_options *asked, const char *layer_name,
    struct oj_output *output, struct oj_error *err);

/** Creates the dataset, or begins the transaction in the existing one; in the
 *  latter layers to be replaced are deleted. */
OJ_MUST_USE oj_status oj_output_open(struct oj_output *output,
                                     struct oj_error *err);

/** Where the rows of the only layer may be written as a file of the format, in
 *  place of the driver's; 0: the driver writes them. */
int oj_output_rows_file(const struct oj_output *output, char *path, int size);

/** The lane that rows will go by, but those that it leaves to GDAL; NULL: none.
 */
const char *oj_output_lane(const struct oj_output *output);

/** The dataset, where rows may be written to its layers past the driver; else
 *  NULL. */
GDALDatasetH oj_output_rows_dataset(const struct oj_output *output);

/** Hands the rows of a stream on to whoever reads it; does nothing with other
 *  outputs, which are complete or not there. */
OJ_MUST_USE oj_status oj_output_flush(const struct oj_output *output,
                                      struct oj_error *err);

/** Commits, closes, checks that the rows of all layers arrived (less those
 *  without geometry that some drivers drop) and moves the dataset into place.
 *  Whatever is returned, nothing is open afterwards; layers[] can be read until
 *  oj_output_abort(). */
OJ_MUST_USE oj_status oj_output_finish(struct oj_output *output,
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
