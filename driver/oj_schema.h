/** The fields of the output: the input layer's, ours, the join layer's. */
#ifndef OJ_SCHEMA_H
#define OJ_SCHEMA_H

#include "../flatten/oj_layer_write.h"
#include "oj_crs.h"
#include "oj_names.h"
#include "oj_output.h"
#include "oj_source.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A field to be: where its values come from and how it is to be defined. */
struct oj_planned_field
{
    enum oj_column_origin origin;
    int source;                 /**< as in struct oj_column */
    const char *name;           /**< owned by the schema's names */
    OGRFieldDefnH defn;         /**< owned: complete, under that name */
    const struct oj_source *of; /**< whose field this is a copy of, or NULL */

    /** OJ_COLUMN_AGGREGATE: of the values, whatever becomes of defn. */
    OGRFieldType type;
    OGRFieldSubType subtype;
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_schema
{
    struct oj_names taken; /**< all names, with FID and geometry column */
    struct oj_planned_field *fields;
    int64_t n_fields, cap_fields;
    struct oj_column *columns; /**< [n_fields], for the writer */
    int keep_fids;
};

/** A column of aggregates. */
struct oj_schema_aggregate
{
    const char *name;   /**< that it should have */
    OGRFieldDefnH defn; /**< type, width and precision; not changed */
};

/** What goes into a schema. */
struct oj_schema_request
{
    const struct oj_source *input, *join;
    int with_input; /**< 0: the input's fields are there already (in place) */
    int with_join;  /**< 0: semi and anti joins */
    int with_rank;  /**< 1: join_rank */
    const char *prefix;

    /** [n_aggregates], after the input's fields; source of their columns is
     *  their place here. */
    const struct oj_schema_aggregate *aggregates;
    int n_aggregates;
};

/** Names the fields and defines them; schema->taken may hold names that are
 *  taken already. Says in a notice which fields had to be renamed. */
OJ_MUST_USE oj_status oj_schema_plan(const struct oj_schema_request *request,
                                     struct oj_schema *schema,
                                     struct oj_error *err);

/** Creates field f in layer and returns its place in *target.  Types that the
 *  driver cannot store become text, with a notice; a name that the driver
 *  changes is told in a notice; a field that does not appear is an error. */
OJ_MUST_USE oj_status oj_schema_create_field(GDALDatasetH dataset,
                                             OGRLayerH layer,
                                             struct oj_planned_field *field,
                                             int *target, struct oj_error *err);

/** Makes output->layer with all its fields, or maps the fields to those of the
 *  layer that rows are added to; schema->columns is then complete. */
OJ_MUST_USE oj_status oj_schema_create(const struct oj_schema_request *request,
                                       const struct oj_crs *crs,
                                       struct oj_output *output,
                                       struct oj_schema *schema,
                                       struct oj_error *err);

void oj_schema_free(struct oj_schema *schema);

#ifdef __cplusplus
}
#endif
#endif
