/** The output of a run. It appears completely or not at all.
 *
 *  A new dataset (also one that replaces an old one) is made in a temporary
 *  folder next to its destination and moved there after it was closed and
 *  checked. A layer in an existing dataset, appended rows, and databases are
 *  written in one transaction through one handle. Streams such as /vsistdout/
 *  are written directly.
 *
 *    plan -> open -> (oj_schema creates the layer, rows are written) -> finish
 *                                                                \-> abort
 */
#ifndef OJ_OUTPUT_H
#define OJ_OUTPUT_H

#include "../command/oj_parsed_command.h"
#include "../files/oj_temporary.h"
#include "../source/oj_source.h"

#include <gdal.h>

enum oj_output_kind
{
    OJ_OUTPUT_FILE = 0, /**< a new dataset, moved into place when complete */
    /** written directly: /vsistdout/, a device or a pipe */
    OJ_OUTPUT_STREAM,
    OJ_OUTPUT_TRANSACTION /**< changes in an existing dataset */
};

/** A layer of the output. The first layer has the rows of the join; further
 *  ones are in the same dataset, or in files beside it if the driver writes one
 *  layer per file. */
struct oj_output_layer
{
    /** option that requests the layer, for messages; NULL for the first layer
     */
    const char *option;
    const char *name;
    int has_file; /**< 1 if the layer is a separate file beside the first one */
    /** 1 if an existing layer or file of this name will be removed */
    int replaces;
    int appends; /**< 1 if rows are appended to `layer`, an existing layer */
    OGRLayerH layer;     /**< created by oj_schema, or the layer to append to */
    int64_t rows_before; /**< rows before appending; -1 if unknown */
    /** 1 if the rows are in oj_output_file_of_lane(), which replaces the
     * dataset's file once the dataset is closed. Set by the writer of the rows
     */
    int rows_in_file;

    /** Set by the writer of the rows before the output is finished. */
    int64_t n_rows, n_no_geometry;
    /** lane that wrote the rows, or NULL if GDAL wrote features */
    const char *lane;

    /** Set by oj_output_finish(), for formats whose rows can be counted. */
    /** rows counted after closing; -1 if they were not counted */
    int64_t n_checked;
    int64_t n_left_out; /**< rows without geometry that the driver dropped */
};

enum
{
    OJ_MAX_OUTPUT_LAYERS = 3
};

/** An output. Zeroed memory is valid and closed. */
struct oj_output
{
    const struct oj_output_options *asked;
    const struct oj_source *sides[2]; /**< input and join */
    enum oj_output_kind kind;
    GDALDriverH driver;
    char path[OJ_PATH_MAX]; /**< path of the destination with links resolved */
    char **old_members;     /**< files of the dataset that is replaced; owned */
    struct oj_temporary temporary;
    GDALDatasetH dataset;
    int in_transaction;
    struct oj_output_layer layers[OJ_MAX_OUTPUT_LAYERS];
    int n_layers;
};

/** Chooses driver and kind of the output, and checks three things. If the
 *  output exists, an option must allow changing it. It must not be an input.
 *  The driver must be able to write and to roll back. Writes nothing. asked,
 *  layer_name and both sides must outlive the output. */
OJ_MUST_USE oj_status oj_output_plan(const struct oj_output_options *asked,
                                     const char *layer_name,
                                     const struct oj_source *input,
                                     const struct oj_source *join,
                                     struct oj_output *output,
                                     struct oj_error *err);

/** Plans a further layer. Call it between plan and open. Refuses the layer if
 *  the output cannot hold it. option is the option that requests the layer.
 *  name must outlive the output. */
OJ_MUST_USE oj_status oj_output_plan_layer(struct oj_output *output,
                                           const char *option, const char *name,
                                           struct oj_error *err);

/** Called in place of oj_output_plan() and oj_output_open(): opens asked->dst
 *  to update rows of its layer layer_name, which becomes layers[0].layer. The
 *  driver may lack transactions. n_layers is 0, since no rows are added. If
 *  *output is open already, it is aborted first. */
OJ_MUST_USE oj_status oj_output_open_layer(
    const struct oj_output_options *asked, const char *layer_name,
    struct oj_output *output, struct oj_error *err);

/** Creates the dataset, or begins a transaction in the existing one and deletes
 *  the layers that are replaced. */
OJ_MUST_USE oj_status oj_output_open(struct oj_output *output,
                                     struct oj_error *err);

/** Returns 1 and sets path (size bytes) to the file into which a lane may write
 *  the rows of the only layer. Returns 0 if the driver has to write them. */
int oj_output_file_of_lane(const struct oj_output *output, char *path,
                           int size);

/** Returns the name of the lane that will write the rows, or NULL if no lane
 *  will. A lane may leave some rows to GDAL. */
const char *oj_output_lane(const struct oj_output *output);

/** Returns the dataset into whose layers a lane may write rows directly, or
 *  NULL if GDAL has to write them. */
GDALDatasetH oj_output_dataset_of_lane(const struct oj_output *output);

/** Passes the rows written so far to the reader of a stream. Does nothing for
 *  other outputs, which appear when they are complete. */
OJ_MUST_USE oj_status oj_output_flush(const struct oj_output *output,
                                      struct oj_error *err);

/** Commits, closes, checks that the rows of all layers were written (except
 *  rows without geometry that some drivers drop) and moves the dataset into
 *  place. Afterwards nothing is open, even on failure; layers[] can be read
 *  until oj_output_abort(). */
OJ_MUST_USE oj_status oj_output_finish(struct oj_output *output,
                                       struct oj_error *err);

/** Replaces the error text if the disk is full, because drivers report that in
 *  different words. Returns status. */
oj_status oj_output_explain_full_disk(const struct oj_output *output,
                                      oj_status status, struct oj_error *err);

/** Removes or rolls back everything and closes the output; a closed one is
 *  accepted. */
void oj_output_abort(struct oj_output *output);

/** Returns 1 if dst is stdout, where nothing else may then be printed. */
int oj_output_is_stdout(const char *dst);

#endif
