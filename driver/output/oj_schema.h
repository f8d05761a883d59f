/** The fields of the output: those of the input layer, computed ones, those of
 *  the join layer. */
#ifndef OJ_SCHEMA_H
#define OJ_SCHEMA_H

#include "../../algs/api/rows/oj_row_columns.h"
#include "../../flatten/write/oj_layer_write.h"
#include "../source/oj_crs.h"
#include "../source/oj_source.h"
#include "oj_output.h"

#include <stddef.h>

/** Owner; a zeroed one is valid and empty. */
struct oj_schema
{
    char **taken;         /**< string list: names in use that are not fields */
    OGRFeatureDefnH defn; /**< the fields with their final names */
    /** [n_fields] the writer's columns; type: of the values, which can differ
     *  from the field's */
    struct oj_column *columns;
    int64_t n_fields;
    /** the sides whose fields are copied */
    const struct oj_source *input, *join;
    int keep_fids;
};

/** OGR type of a computed column. */
struct oj_computed_type
{
    OGRFieldType type;
    OGRFieldSubType subtype;
};

/** The contents of a layer. */
struct oj_schema_request
{
    const struct oj_source *input, *join;
    int with_input; /**< 0: the input's fields exist already (-in_place) */
    int with_join;  /**< 0: the join side's fields are not written */
    const struct oj_computed_column *own; /**< [n_own] */
    /** [n_own]; NULL: derived from own[i].kind */
    const struct oj_computed_type *own_types;
    int n_own;
    int one_row_per_input;   /**< no input row has more than one output row */
    int has_other_rows;      /**< some rows have no input feature */
    OGRwkbGeometryType type; /**< geometry type, before promotion to multi */
    const char *prefix;
};

/** Reserves name in schema->taken. "" and NULL are ignored. */
void oj_schema_take_name(struct oj_schema *schema, const char *name);

/** Reserves the names of the layer's FID and geometry column, and those that
 *  the driver uses itself. */
void oj_schema_take_layer(struct oj_schema *schema, GDALDriverH driver,
                          OGRLayerH layer);

/** Name of field i. */
const char *oj_schema_name(const struct oj_schema *schema, int i);

/** Names the fields as oj_row_columns_plan() does and defines them for a layer
 *  without other fields. Names in schema->taken are avoided. Prints a notice of
 *  renamed fields. */
OJ_MUST_USE oj_status oj_schema_plan(const struct oj_schema_request *request,
                                     struct oj_schema *schema,
                                     struct oj_error *err);

/** Returns name, the input's FID or geometry column, or "" if it is NULL or
 *  also the name of a field of the input: a client would take that field for
 *  the FIDs. */
const char *oj_schema_name_beside(const struct oj_source *input,
                                  const char *name);

/** The geometry type of a layer for geometries of this type, after -nlt. */
OGRwkbGeometryType oj_schema_layer_type(const struct oj_output_options *asked,
                                        OGRwkbGeometryType type);

/** Creates field i in layer and stores its index in schema->columns.  A type
 *  that the driver cannot store becomes text, with a warning; a name that the
 *  driver changes causes a notice; a field that does not appear is an error. */
OJ_MUST_USE oj_status oj_schema_create_field(GDALDatasetH dataset,
                                             OGRLayerH layer,
                                             struct oj_schema *schema, int i,
                                             struct oj_error *err);

/** Creates the layer with all its fields, or maps the fields to those of the
 *  layer to append to; schema->columns is then complete. at: one of
 *  output->layers. */
OJ_MUST_USE oj_status oj_schema_create(const struct oj_schema_request *request,
                                       const struct oj_crs *crs,
                                       struct oj_output *output,
                                       struct oj_output_layer *at,
                                       struct oj_schema *schema,
                                       struct oj_error *err);

void oj_schema_free(struct oj_schema *schema);

#endif
