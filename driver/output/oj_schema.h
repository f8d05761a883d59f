/** The fields of the output: those of the input layer, computed ones, and those
 *  of the join layer. */
#ifndef OJ_SCHEMA_H
#define OJ_SCHEMA_H

#include "../../algs/api/rows/oj_row_columns.h"
#include "../../flatten/write/oj_layer_write.h"
#include "../source/oj_crs.h"
#include "../source/oj_source.h"
#include "oj_output.h"

#include <stddef.h>

/** The fields of the output. Owns its arrays; zeroed memory is valid and empty.
 */
struct oj_schema
{
    char **taken;         /**< string list: names in use besides those of
                               fields */
    OGRFeatureDefnH defn; /**< the fields with their final names */
    /** [n_fields] the columns for the writer; `type` is the type of the values,
     *  which can differ from that of the field */
    struct oj_column *columns;
    int64_t n_fields;
    /** the sides whose fields are copied */
    const struct oj_source *input, *join;
    int keep_fids;
};

/** The OGR type of a computed column. */
struct oj_computed_type
{
    OGRFieldType type;
    OGRFieldSubType subtype;
};

/** What a layer must contain. */
struct oj_schema_request
{
    const struct oj_source *input, *join;
    /** 0 if the input's fields exist already in the layer (-in_place) */
    int with_input;
    int with_join; /**< 0 if the join side's fields are not written */
    const struct oj_computed_column *own; /**< [n_own] the computed columns */
    /** [n_own] types of the computed columns; NULL if own[i].kind determines
     *  the type */
    const struct oj_computed_type *own_types;
    int n_own;
    /** 1 if no input row has more than one output row */
    int one_row_per_input;
    int has_other_rows; /**< 1 if some output rows come from no input feature */
    OGRwkbGeometryType type; /**< type of the geometries, before -nlt changes it
                                  to a multi type */
    const char *prefix;
};

/** Reserves name, so that no field gets it. "" and NULL are ignored. */
void oj_schema_reserve_name(struct oj_schema *schema, const char *name);

/** Reserves the names of the layer's FID and geometry columns, and those that
 *  the driver itself uses. */
void oj_schema_reserve_layer_names(struct oj_schema *schema, GDALDriverH driver,
                                   OGRLayerH layer);

/** Returns the name of field i. */
const char *oj_schema_field_name(const struct oj_schema *schema, int i);

/** Chooses the names of the fields by oj_row_columns_plan(), avoiding those in
 *  schema->taken, and defines the fields. Prints a notice of renamed fields. */
OJ_MUST_USE oj_status oj_schema_plan(const struct oj_schema_request *request,
                                     struct oj_schema *schema,
                                     struct oj_error *err);

/** Returns name, the name of the input's FID or geometry column. Returns "" if
 *  name is NULL, or if a field of the input has this name, too: clients would
 *  take the field's values for FIDs. */
const char *oj_schema_name_unless_field(const struct oj_source *input,
                                        const char *name);

/** Returns the geometry type of a layer that holds geometries of this type,
 *  with -nlt applied. */
OGRwkbGeometryType oj_schema_layer_type(const struct oj_output_options *asked,
                                        OGRwkbGeometryType type);

/** Creates field i in layer and stores its index in schema->columns. If the
 *  driver cannot store the type, a 64-bit integer becomes a real, any other
 *  type text, with a warning. If the driver changes the name, a notice is
 *  printed. It is an error if the layer then lacks the field. */
OJ_MUST_USE oj_status oj_schema_create_field(GDALDatasetH dataset,
                                             OGRLayerH layer,
                                             struct oj_schema *schema, int i,
                                             struct oj_error *err);

/** Creates the layer with all its fields. If rows are appended to a layer,
 *  finds its fields instead. Completes schema->columns. at is an element of
 *  output->layers. */
OJ_MUST_USE oj_status oj_schema_create(const struct oj_schema_request *request,
                                       const struct oj_crs *crs,
                                       struct oj_output *output,
                                       struct oj_output_layer *at,
                                       struct oj_schema *schema,
                                       struct oj_error *err);

void oj_schema_free(struct oj_schema *schema);

#endif
