/** The fields of the output: the input layer's, ours, the join layer's. */
#ifndef OJ_SCHEMA_H
#define OJ_SCHEMA_H

#include "../../algs/api/rows/oj_row_columns.h"
#include "../../flatten/write/oj_layer_write.h"
#include "../source/oj_crs.h"
#include "../source/oj_source.h"
#include "oj_output.h"

#include <stddef.h>

/** Owner; zeroed memory is a valid empty one. */
struct oj_schema
{
    char **taken;         /**< a string list: names that are none of a field */
    OGRFeatureDefnH defn; /**< the fields, complete, as they are named */
    struct oj_column *columns; /**< [n_fields] of defn, for the writer; type: of
                                    the values, the field may say otherwise */
    int64_t n_fields;
    const struct oj_source *input, *join; /**< whose fields are copied */
    int keep_fids;
};

/** The exact type of a computed column. */
struct oj_computed_type
{
    OGRFieldType type;
    OGRFieldSubType subtype;
};

/** What goes into a layer. */
struct oj_schema_request
{
    const struct oj_source *input, *join;
    int with_input; /**< 0: the input's fields are there already (in place) */
    int with_join;  /**< 0: the join side's fields are not written */
    const struct oj_computed_column *own;     /**< [n_own] */
    const struct oj_computed_type *own_types; /**< [n_own]; NULL: those of their
                                                   kinds */
    int n_own;
    int one_row_per_input;   /**< no input row gives two rows */
    int has_other_rows;      /**< 1: some rows have no input feature */
    OGRwkbGeometryType type; /**< of the geometries, before promotion */
    const char *prefix;
};

/** Adds a copy of name to schema->taken. "" and NULL are passed over. */
void oj_schema_take_name(struct oj_schema *schema, const char *name);

/** Takes the names of the layer's FID and geometry column, and what the driver
 *  keeps for itself. */
void oj_schema_take_layer(struct oj_schema *schema, GDALDriverH driver,
                          OGRLayerH layer);

/** The name of field i. */
const char *oj_schema_name(const struct oj_schema *schema, int i);

/** Names the fields as oj_row_columns_plan() does and defines them, as columns
 * of a layer that has no others; schema->taken may hold names that are taken
 *  already. Says in a notice which fields had to be renamed. */
OJ_MUST_USE oj_status oj_schema_plan(const struct oj_schema_request *request,
                                     struct oj_schema *schema,
                                     struct oj_error *err);

/** The name of the input's FIDs or geometries, or "" where there is none, or a
 *  field of the input that will be written is called so, too: a client would
 *  take its values for FIDs. */
const char *oj_schema_name_beside(const struct oj_source *input,
                                  const char *name);

/** The geometry type of a layer for geometries of this type, as -nlt has it. */
OGRwkbGeometryType oj_schema_layer_type(const struct oj_output_options *asked,
                                        OGRwkbGeometryType type);

/** Creates field i in layer and notes its place in columns.  Types that the
 *  driver cannot store become text, with a notice; a name that the driver
 *  changes is told in a notice; a field that does not appear is an error. */
OJ_MUST_USE oj_status oj_schema_create_field(GDALDatasetH dataset,
                                             OGRLayerH layer,
                                             struct oj_schema *schema, int i,
                                             struct oj_error *err);

/** Makes the layer with all its fields, or maps the fields to those of the
 * layer that rows are added to; schema->columns is then complete. at: one of
 * output->layers. */
OJ_MUST_USE oj_status oj_schema_create(const struct oj_schema_request *request,
                                       const struct oj_crs *crs,
                                       struct oj_output *output,
                                       struct oj_output_layer *at,
                                       struct oj_schema *schema,
                                       struct oj_error *err);

void oj_schema_free(struct oj_schema *schema);

#endif
