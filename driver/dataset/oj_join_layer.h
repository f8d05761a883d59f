/** A join as a layer that can be read: all that the GDAL driver's classes ask
 *  of it.
 *
 *   words --> struct oj_command --> oj_join_layer <-- OGRLayer's methods
 *
 *  Opening reads schemas only.  The first row, count or Arrow batch reads and
 *  indexes the join side, on a thread of its own, from which answers are handed
 *  over one by one: what is read ahead is bounded, and rows come as soon as
 *  their batch is joined.
 *
 *  Every function is called on the reader's thread, which may be another one
 *  each time, but one at a time.  Failures are told by CPLError(), once, in one
 *  line, and by the value that is returned; warnings of a join come as
 *  CPLError(CE_Warning), notices as CPLDebug("OGRJOIN"), both on the calling
 *  thread.  Nothing is printed.
 *
 *  FIDs do not hang on filters: they are the input's where no input feature
 *  gives two rows; else those of the input feature f are f * n, f * n + 1, ...,
 *  n being what one can have at most (-k, or the features of the join layer).
 *  Rows of a SELECT, or with -how right and full, are numbered 0, 1, 2, ...
 */
#ifndef OJ_JOIN_LAYER_H
#define OJ_JOIN_LAYER_H

#include "../command/oj_command.h"

#include <ogr_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oj_join_layer;

struct ArrowArrayStream;

/* ---- open and close ------------------------------------------------------ */

/** A layer of what command says; NULL after an error, and nothing is left then.
 *  command  its contents are taken over in every case, also on failure, and it
 *           is zeroed; it has no destination. Options that make no sense for a
 *           layer (-in_place, -append, -validate, ...) are an error that names
 *           them. */
struct oj_join_layer *oj_join_layer_open(struct oj_command *command);

/** Ends what is under way, within a moment, and frees all. Accepts NULL. An
 *  Arrow stream of the layer has to be released before. */
void oj_join_layer_close(struct oj_join_layer *layer);

/** Frees the join sides that no layer uses any more: the driver is unloaded. */
void oj_join_layer_unload(void);

/* ---- what it is ---------------------------------------------------------- */

/** Owned by the layer. */
struct oj_join_about
{
    char *name;

    /** Fields, geometry and its CRS. The layer has one reference; whoever keeps
     *  it longer takes one of their own. Fields and geometry may be marked as
     *  ignored in it before rows are read: they are left unset then. */
    OGRFeatureDefnH defn;

    char *fid_column; /**< the input layer's where FIDs are the same, else "" */
    char **metadata;  /**< "NAME=VALUE": the sources and the options */
    char **files; /**< behind both sides, as GDALGetFileList() names them, or
                       NULL */
};

const struct oj_join_about *
oj_join_layer_about(const struct oj_join_layer *layer);

/** 1 for a capability of ogr_core.h (OLC...) that the layer has as it is now:
 *  where it hangs on filters, under those that are set. */
int oj_join_layer_has(struct oj_join_layer *layer, const char *capability);

/* ---- filters ------------------------------------------------------------- */

/* Both are called whenever the reader's filter changes, with what it is now.
 * They go down to the input layer where no row is lost by it, and the reader
 * filters the rows that come all the same: what filters look at is set in them,
 * also where it is ignored.  A change ends what is under way, as
 * oj_join_layer_reset() does. */

/** Rows whose geometry may meet box; NULL: all. Of another filter than a
 *  rectangle: its envelope. */
void oj_join_layer_filter_box(struct oj_join_layer *layer,
                              const OGREnvelope *box);

/** Rows that fulfil where; NULL: all.
 *  used_fields  names of the fields that where speaks of, NULL-terminated (as
 *               OGRFeatureQuery::GetUsedFields() gives them); NULL: not known
 *  Returns 1 when the input layer filters by it, else 0. Never an error: a
 *  condition that makes no sense is the reader's to tell. */
int oj_join_layer_filter_where(struct oj_join_layer *layer, const char *where,
                               char **used_fields);

/* ---- rows ---------------------------------------------------------------- */

/** The next row, the caller's to destroy; NULL at the end, and after an error,
 *  from which on there are none until the next reset. */
OGRFeatureH oj_join_layer_next(struct oj_join_layer *layer);

/** The next row is the first one. Costs nothing until rows are asked for. */
void oj_join_layer_reset(struct oj_join_layer *layer);

/** The next row is the one with this place among the rows that next() gives
 *  (before the reader filters), 0 being the first. 1: done; 0: there is no such
 *  row, and next() has none either; or an error, which was told. Rows in
 *  between are joined and not made. */
int oj_join_layer_skip_to(struct oj_join_layer *layer, GIntBig index);

/** The row with this FID whatever the filters are, the caller's to destroy;
 *  NULL when there is none, without an error, or after an error. What next()
 *  gives afterwards is what it would have given.  One lookup in the input layer
 *  where FIDs are the input's and it has random access; else rows are passed
 *  over, from where the call before ended if that was before this one. */
OGRFeatureH oj_join_layer_get(struct oj_join_layer *layer, GIntBig fid);

/** Rows; what next() gives is not touched.
 *  force  0: only if that costs nothing; 1: joins without making rows if need
 *         be
 *  Returns -1 when it is not known, after an error, and where a filter is set
 *  that would have to be applied to rows: the reader counts them then. */
GIntBig oj_join_layer_count(struct oj_join_layer *layer, int force);

/** Where rows are, whatever the filters are: 1, and *extent is filled; 0: not
 *  known at this price, or there are none; the reader looks at the rows then.
 *  force  0: only if that costs nothing */
int oj_join_layer_extent(struct oj_join_layer *layer, OGREnvelope *extent,
                         int force);

/** All rows as an Arrow stream (GDAL >= 3.6). It reads what next() would read:
 *  while it is open, next() must not be called; when it is released, the layer
 *  is as after reset().
 *  stream  in: GDAL's generic one of a layer with about.defn; out: ours, which
 *          releases that one, too
 *  Returns 1; 0: not so, and *stream is as it was: a filter is set, a stream is
 *  open already, or the options or fields ask for what only GDAL's generic
 *  stream has. */
int oj_join_layer_arrow(struct oj_join_layer *layer,
                        struct ArrowArrayStream *stream, char **options);

#ifdef __cplusplus
}
#endif
#endif
