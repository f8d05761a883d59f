#include "../../ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../../flatten/text/oj_token_sets.h"
#include "../../../flatten/text/oj_word_replacements.h"
#include "../../references/validation/oj_validation.h"
#include "../arrow/oj_arrow_array.h"
#include "../engine/oj_join.h"
#include "api_index.h"
#include "arrow_compared_columns.h"
#include "arrow_features.h"
#include "arrow_pairs.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The public functions of the library: reference-counted handles, joins, and
 * the conversion of errors. */

/* Rows that a thread processes at a time when vectors are computed. */
#define ROWS_AT_ONCE 256

int api_error_export(oj_status status, const struct oj_error *from,
                     struct ogrjoin_error *err)
{
    if (status != OJ_OK && err != NULL)
    {
        err->status = (int)status;
        snprintf(err->message, sizeof err->message, "%s", from->message);
    }
    return (int)status;
}

const char *ogrjoin_version(void)
{
    return OGRJOIN_VERSION;
}

const char *ogrjoin_status_name(int status)
{
    return oj_status_name((oj_status)status);
}

const char *api_side_name(enum api_layer_side side)
{
    return side == API_SIDE_RIGHT ? "right" : "left";
}

oj_status api_fail_on_side(enum api_layer_side side, oj_status status,
                           const struct oj_error *why, struct oj_error *err)
{
    const int is_of_side = status == OJ_ERR_ARG || status == OJ_ERR_DATA ||
                           status == OJ_ERR_LIMIT ||
                           status == OJ_ERR_UNSUPPORTED;
    if (status == OJ_OK)
        return OJ_OK;
    if (is_of_side && side != API_SIDE_NONE)
        return oj_fail(err, status, "%s side: %.900s", api_side_name(side),
                       why->message);
    return oj_fail(err, status, "%s", why->message);
}

/* Returns the side that a layer is read for; settings may be NULL. */
static enum api_layer_side
side_of_settings(const struct ogrjoin_settings *settings)
{
    return settings != NULL ? (enum api_layer_side)settings->side
                            : API_SIDE_NONE;
}

/* Returns the number of the first row of a layer; settings may be NULL. */
static int64_t first_row_of_settings(const struct ogrjoin_settings *settings)
{
    return settings != NULL ? settings->first_row : 0;
}

/* --- layers --------------------------------------------------------------- */

oj_status api_layer_new(struct ogrjoin_layer **out, struct oj_error *err)
{
    struct ogrjoin_layer *layer;
    OJ_NEW_ZEROED(layer, 1, err);
    atomic_init(&layer->n_users, 1);
    pthread_mutex_init(&layer->lock, NULL);
    *out = layer;
    return OJ_OK;
}

oj_status api_layer_share(struct ogrjoin_layer *of, struct ogrjoin_layer **out,
                          struct oj_error *err)
{
    struct ogrjoin_layer *layer = NULL;
    OJ_TRY(api_layer_new(&layer, err));
    layer->flat = of->flat;
    memcpy(layer->texts, of->texts, sizeof layer->texts);
    layer->n_texts = of->n_texts;
    layer->number_offset = of->number_offset;
    layer->number = of->number;
    layer->first_row = of->first_row;
    atomic_fetch_add(&of->n_users, 1);
    layer->of = of;
    *out = layer;
    return OJ_OK;
}

void ogrjoin_layer_free(struct ogrjoin_layer *layer)
{
    if (layer == NULL || atomic_fetch_sub(&layer->n_users, 1) > 1)
        return;
    arrow_features_free(&layer->features);
    arrow_columns_free(&layer->columns);
    oj_free(layer->row_number);
    oj_free(layer->own_x);
    oj_free(layer->own_y);
    oj_free(layer->own_max_distance);
    oj_free(layer->own_heading);
    oj_free(layer->own_id);
    oj_free(layer->own_score);
    oj_free(layer->own_on_class);
    oj_free(layer->own_exclude_class);
    for (int i = 0; i < OJ_MOST_SPANS; i++)
    {
        oj_free(layer->own_from[i]);
        oj_free(layer->own_until[i]);
    }
    pthread_mutex_destroy(&layer->lock);
    ogrjoin_layer_free(layer->of);
    oj_free(layer);
}

int64_t ogrjoin_layer_count(const struct ogrjoin_layer *layer)
{
    return layer->flat.n_features;
}

int ogrjoin_layer_set_columns(struct ogrjoin_layer *layer,
                              const struct ogrjoin_columns *columns,
                              struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status = OJ_OK;
    if (columns->size < offsetof(struct ogrjoin_columns, score))
        status = oj_fail(&why, OJ_ERR_ARG,
                         "the member size of the columns must be set to "
                         "sizeof(struct ogrjoin_columns)");
    if (columns->size >= offsetof(struct ogrjoin_columns, m) &&
        columns->score != NULL)
        layer->score = columns->score;
    if (columns->size >= sizeof *columns && columns->m != NULL)
        layer->flat.m = columns->m;
    if (status == OJ_OK && columns->id != NULL)
        layer->flat.fid = columns->id;
    if (status == OJ_OK && columns->max_distance != NULL)
        layer->flat.max_distance = columns->max_distance;
    if (status == OJ_OK && columns->on_class != NULL)
        layer->flat.on_class = columns->on_class;
    return api_error_export(status, &why, err);
}

/* Checks that offsets are not negative and do not decrease. */
static oj_status check_offsets(const struct ogrjoin_layer *layer,
                               const int64_t *offset, const char *what,
                               struct oj_error *err)
{
    for (int64_t i = 0; i < layer->flat.n_features; i++)
    {
        if (offset[i] < 0 || offset[i] > offset[i + 1])
            return oj_fail(
                err, OJ_ERR_ARG,
                "offsets of %s must be 0 or more and never decrease: "
                "offset %lld is %lld, and the next one %lld",
                what, (long long)i, (long long)offset[i],
                (long long)offset[i + 1]);
    }
    return OJ_OK;
}

static oj_status add_text_column(struct ogrjoin_layer *layer,
                                 const int64_t *offset, const char *bytes,
                                 struct oj_error *err)
{
    if (layer->n_texts == OJ_MOST_TEXTS)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a layer has at most %d texts: leave one out",
                       OJ_MOST_TEXTS);
    OJ_TRY(check_offsets(layer, offset, "texts", err));
    layer->texts[layer->n_texts++] =
        (struct oj_texts){layer->flat.n_features, offset, bytes};
    return OJ_OK;
}

int ogrjoin_layer_add_text(struct ogrjoin_layer *layer, const int64_t *offset,
                           const char *bytes, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(add_text_column(layer, offset, bytes, &why), &why,
                            err);
}

int ogrjoin_layer_set_vectors(struct ogrjoin_layer *layer,
                              const int64_t *offset, const double *number,
                              struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status = check_offsets(layer, offset, "vectors", &why);
    if (status == OJ_OK)
    {
        layer->number_offset = offset;
        layer->number = number;
    }
    return api_error_export(status, &why, err);
}

static unsigned collect_part_kinds(const struct oj_flat *flat)
{
    unsigned kinds = 0;
    if (oj_flat_is_points(flat))
        return OJ_PART_POINT;
    for (int64_t p = 0; p < flat->n_parts; p++)
        kinds |= flat->part_kind[p];
    return kinds;
}

static oj_status view_and_check_flat_arrays(const struct ogrjoin_arrays *arrays,
                                            struct oj_flat *out,
                                            struct oj_error *err)
{
    struct oj_flat flat;
    if (arrays->size < sizeof *arrays)
        return oj_fail(err, OJ_ERR_ARG,
                       "the member size of the arrays must be set to "
                       "sizeof(struct ogrjoin_arrays)");
    memset(&flat, 0, sizeof flat);
    flat.n_features = arrays->n_features;
    flat.n_parts = arrays->n_parts;
    flat.n_rings = arrays->n_rings;
    flat.n_vertices = arrays->n_vertices;
    flat.fid = arrays->id;
    flat.part_offset = arrays->part_offset;
    flat.part_kind = arrays->part_kind;
    flat.ring_offset = arrays->ring_offset;
    flat.vertex_offset = arrays->vertex_offset;
    flat.x = arrays->x;
    flat.y = arrays->y;
    if (!oj_flat_is_points(&flat) && flat.part_kind == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "part_kind is missing: arrays with part_offset need the "
                       "kind of each part");
    flat.part_kinds = collect_part_kinds(&flat);
    OJ_TRY(oj_flat_check(&flat, err));
    *out = flat;
    return OJ_OK;
}

static oj_status layer_from_arrays(const struct ogrjoin_arrays *arrays,
                                   struct ogrjoin_layer **out,
                                   struct oj_error *err)
{
    struct oj_flat flat;
    OJ_TRY(view_and_check_flat_arrays(arrays, &flat, err));
    OJ_TRY(api_layer_new(out, err));
    (*out)->flat = flat;
    return OJ_OK;
}

int ogrjoin_layer_from_arrays(const struct ogrjoin_arrays *arrays,
                              struct ogrjoin_layer **out,
                              struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(layer_from_arrays(arrays, out, &why), &why, err);
}

int api_compares_only_attributes(const struct oj_relation *relation)
{
    return (oj_op_get(relation->op)->takes & OJ_TAKES_ATTRIBUTES) != 0 &&
           isinf(relation->max_distance);
}

oj_status api_record_find_columns(const struct ArrowSchema *schema,
                                  const char *column,
                                  const struct compared_fields *compared,
                                  enum api_layer_side side,
                                  const struct oj_relation *relation,
                                  struct arrow_record *out,
                                  struct oj_error *err)
{
    OJ_TRY(arrow_layout_read(schema, column,
                             api_compares_only_attributes(relation),
                             &out->layout, err));
    return arrow_fields_find(schema, compared, side == API_SIDE_RIGHT,
                             &out->fields, err);
}

/* Reads the Arrow schema of a layer into zeroed *out. settings may be NULL. An
 * error of the layer, not of the settings, begins with its side. */
static oj_status read_layer_schema(const struct ArrowSchema *schema,
                                   const char *column,
                                   const struct ogrjoin_settings *settings,
                                   struct arrow_record *out,
                                   struct oj_error *err)
{
    struct compared_fields compared;
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    const enum api_layer_side side = side_of_settings(settings);
    if (side == API_SIDE_NONE)
        return arrow_layout_read(schema, column, 0, &out->layout, err);
    status = api_settings_parse_compared_fields(settings, &compared, err);
    if (status == OJ_OK)
    {
        status = api_record_find_columns(schema, column, &compared, side,
                                         &settings->relation, out, &why);
        status = api_fail_on_side(side, status, &why, err);
    }
    compared_fields_free(&compared);
    return status;
}

oj_status api_layer_add(struct ogrjoin_layer *layer,
                        const struct arrow_record *record,
                        struct ArrowArray *array, struct oj_error *err)
{
    OJ_TRY(arrow_columns_add(&layer->columns, &record->fields, array, err));
    return arrow_features_add(&layer->features, &record->layout, array, err);
}

oj_status api_layer_finish(struct ogrjoin_layer *layer,
                           const struct arrow_record *record,
                           const struct ogrjoin_settings *settings,
                           struct oj_error *err)
{
    static const int64_t no_rows[1] = {0};
    const int *cancel = settings != NULL ? settings->options.cancel : NULL;
    const struct arrow_columns *columns = &layer->columns;
    layer->features.keeps_m =
        settings != NULL && settings->pairs.along == OJ_ALONG_BY_M;
    OJ_TRY(arrow_features_make_layer(
        &layer->features, api_settings_threads(settings), cancel, err));
    layer->flat = layer->features.flat;
    layer->n_texts = record->fields.n_texts;
    for (int i = 0; i < layer->n_texts; i++)
        layer->texts[i] =
            columns->n_rows > 0
                ? (struct oj_texts){columns->n_rows, columns->text[i].offset,
                                    columns->text[i].bytes}
                : (struct oj_texts){0, no_rows, ""};
    if (record->fields.n_vector == 0)
        return OJ_OK;
    layer->number_offset = columns->n_rows > 0 ? columns->offset : no_rows;
    layer->number = columns->number;
    return OJ_OK;
}

/* Makes a layer of one array, which is moved, also on failure. */
static oj_status layer_from_array(const struct arrow_record *record,
                                  struct ArrowArray *array, int64_t first_row,
                                  const struct ogrjoin_settings *settings,
                                  struct ogrjoin_layer **out,
                                  struct oj_error *err)
{
    struct ogrjoin_layer *layer = NULL;
    oj_status status = api_layer_new(&layer, err);
    if (status == OJ_OK)
    {
        layer->features.first_fid = layer->first_row = first_row;
        status = api_layer_add(layer, record, array, err);
    }
    if (status == OJ_OK)
        status = api_layer_finish(layer, record, settings, err);
    if (status == OJ_OK)
        *out = layer;
    else
        ogrjoin_layer_free(layer);
    oj_arrow_array_release(array);
    return status;
}

int ogrjoin_layer_from_array(const struct ArrowSchema *schema,
                             struct ArrowArray *array, const char *column,
                             const struct ogrjoin_settings *settings,
                             struct ogrjoin_layer **out,
                             struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""}, named = {OJ_OK, ""};
    struct arrow_record record = {.layout.child = -1};
    oj_status status =
        read_layer_schema(schema, column, settings, &record, &named);
    if (status == OJ_OK)
    {
        status =
            layer_from_array(&record, array, first_row_of_settings(settings),
                             settings, out, &why);
        status =
            api_fail_on_side(side_of_settings(settings), status, &why, &named);
    }
    arrow_fields_free(&record.fields);
    oj_arrow_array_release(array);
    return api_error_export(status, &named, err);
}

/* --- streams -------------------------------------------------------------- */

/* A stream of arrays, with its schema. */
struct arrow_source
{
    struct ArrowArrayStream stream;
    struct arrow_record record;
};

static oj_status fail_stream(struct ArrowArrayStream *stream, int code,
                             struct oj_error *err)
{
    const char *text = stream->get_last_error(stream);
    return oj_fail(err, code == ENOMEM ? OJ_ERR_NOMEM : OJ_ERR_IO,
                   "reading the Arrow stream failed: %.900s",
                   text != NULL ? text : strerror(code));
}

oj_status api_stream_schema(struct ArrowArrayStream *stream,
                            struct ArrowSchema *schema, struct oj_error *err)
{
    int code;
    memset(schema, 0, sizeof *schema);
    if (stream->release == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "the Arrow stream has been released or moved: export it "
                       "anew for each call");
    code = stream->get_schema(stream, schema);
    return code == 0 ? OJ_OK : fail_stream(stream, code, err);
}

static void release_schema(struct ArrowSchema *schema)
{
    if (schema->release != NULL)
        schema->release(schema);
}

static void close_source(struct arrow_source *source)
{
    arrow_fields_free(&source->record.fields);
    if (source->stream.release != NULL)
        source->stream.release(&source->stream);
    source->stream.release = NULL;
}

oj_status api_stream_next(struct ArrowArrayStream *stream,
                          struct ArrowArray *array, struct oj_error *err)
{
    int code;
    memset(array, 0, sizeof *array);
    code = stream->get_next(stream, array);
    return code == 0 ? OJ_OK : fail_stream(stream, code, err);
}

static oj_status read_stream_into_layer(struct arrow_source *source,
                                        const struct ogrjoin_settings *settings,
                                        struct ogrjoin_layer *layer,
                                        struct oj_error *err)
{
    layer->features.first_fid = layer->first_row =
        first_row_of_settings(settings);
    for (;;)
    {
        struct ArrowArray array;
        oj_status status;
        OJ_TRY(api_stream_next(&source->stream, &array, err));
        if (array.release == NULL)
            return api_layer_finish(layer, &source->record, settings, err);
        status = api_layer_add(layer, &source->record, &array, err);
        oj_arrow_array_release(&array);
        OJ_TRY(status);
    }
}

/* Reads the schema of a stream into from->record, as read_layer_schema(). */
static oj_status read_schema_of_stream(struct arrow_source *from,
                                       const char *column,
                                       const struct ogrjoin_settings *settings,
                                       struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    struct ArrowSchema schema;
    oj_status status = api_stream_schema(&from->stream, &schema, &why);
    if (status != OJ_OK)
        return api_fail_on_side(side_of_settings(settings), status, &why, err);
    status = read_layer_schema(&schema, column, settings, &from->record, err);
    release_schema(&schema);
    return status;
}

int ogrjoin_layer_from_stream(struct ArrowArrayStream *stream,
                              const char *column,
                              const struct ogrjoin_settings *settings,
                              struct ogrjoin_layer **out,
                              struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""}, named = {OJ_OK, ""};
    struct arrow_source source = {.stream = *stream};
    struct ogrjoin_layer *layer = NULL;
    oj_status status = read_schema_of_stream(&source, column, settings, &named);
    stream->release = NULL;
    if (status == OJ_OK)
        status = api_layer_new(&layer, &named);
    if (status == OJ_OK)
    {
        status = read_stream_into_layer(&source, settings, layer, &why);
        status =
            api_fail_on_side(side_of_settings(settings), status, &why, &named);
    }
    if (status == OJ_OK)
        *out = layer;
    else
        ogrjoin_layer_free(layer);
    close_source(&source);
    return api_error_export(status, &named, err);
}

/* --- indexes -------------------------------------------------------------- */

static int compares_feature_ids(const struct oj_relation *relation)
{
    return relation->exclude_self || relation->unordered_pairs != 0;
}

/* Views the features of a layer. If the join compares ids and the caller gave
 * none, row numbers are the ids. */
static oj_status view_layer_with_ids(struct ogrjoin_layer *layer,
                                     const struct oj_relation *relation,
                                     struct oj_flat *out, struct oj_error *err)
{
    int64_t n = layer->flat.n_features;
    oj_status status = OJ_OK;
    *out = layer->flat;
    if (out->fid != NULL || !compares_feature_ids(relation))
        return OJ_OK;
    pthread_mutex_lock(&layer->lock);
    if (layer->row_number == NULL)
    {
        layer->row_number = oj_malloc(n, sizeof *layer->row_number);
        for (int64_t i = 0; layer->row_number != NULL && i < n; i++)
            layer->row_number[i] = layer->first_row + i;
    }
    out->fid = layer->row_number;
    if (out->fid == NULL)
        status = oj_fail_nomem(err, n, sizeof *layer->row_number);
    pthread_mutex_unlock(&layer->lock);
    return status;
}

void api_layer_sets_free(struct layer_sets *sets)
{
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
        oj_token_sets_free(&sets->made[i]);
    oj_free(sets->vector);
}

/* Sets index->n_dimensions to the length of the first vector of the layer that
 * is not empty, or to 1 if there is none. Fails if this length does not fit the
 * setting vector. */
static oj_status find_number_of_dimensions(struct ogrjoin_index *index,
                                           const struct ogrjoin_layer *layer,
                                           struct oj_error *err)
{
    int64_t n = 0;
    for (int64_t row = 0; row < layer->flat.n_features && n == 0; row++)
    {
        n = layer->number_offset[row + 1] - layer->number_offset[row];
        if (n > OJ_MOST_DIMENSIONS)
            return oj_fail(
                err, OJ_ERR_DATA,
                "vector: the list of row %lld has more than %d numbers, the "
                "most that are compared: give shorter lists",
                (long long)row, OJ_MOST_DIMENSIONS);
    }
    index->n_dimensions = n > 0 ? n : 1;
    if (index->compared.vector.n > 1 && n > 0 && n != index->compared.vector.n)
        return oj_fail(err, OJ_ERR_ARG,
                       "the setting vector names %d columns, but rows have "
                       "%lld numbers: give as many numbers as names",
                       index->compared.vector.n, (long long)n);
    return OJ_OK;
}

struct vector_rows
{
    const struct ogrjoin_index *index;
    const struct ogrjoin_layer *layer;
    double *to;
};

static void weigh_vectors_of_rows(int64_t first, int64_t end, void *user)
{
    const struct vector_rows *r = user;
    const struct oj_vector_words *words = &r->index->compared.vector;
    int64_t d = r->index->n_dimensions;
    const int64_t *offset = r->layer->number_offset;
    for (int64_t row = first; row < end; row++)
    {
        double *out = r->to + row * d;
        if (offset[row + 1] - offset[row] == d &&
            oj_vector_apply_weights(r->index->settings.relation.vector.norm,
                                    r->layer->number + offset[row], d,
                                    words->weight, words->n, out))
            continue;
        for (int64_t i = 0; i < d; i++)
            out[i] = NAN;
    }
}

/* Computes the layer's weighted vectors and sets flat->vectors to them. */
static oj_status make_vectors(struct ogrjoin_index *index,
                              const struct ogrjoin_layer *layer,
                              struct layer_sets *sets, struct oj_flat *flat,
                              struct oj_error *err)
{
    struct vector_rows rows = {index, layer, NULL};
    if (layer->number_offset == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "the setting vector needs numbers in both layers: read "
                       "the layers from Arrow with the setting side, or call "
                       "ogrjoin_layer_set_vectors()");
    if (index->n_dimensions == 0)
        OJ_TRY(find_number_of_dimensions(index, layer, err));
    OJ_NEW(sets->vector, flat->n_features * index->n_dimensions, err);
    rows.to = sets->vector;
    oj_parallel_slices(api_settings_threads(&index->settings), flat->n_features,
                       ROWS_AT_ONCE, weigh_vectors_of_rows, &rows);
    flat->vectors = (struct oj_vectors){index->n_dimensions, sets->vector};
    return OJ_OK;
}

/* Makes the layer's token sets and vectors, and sets flat->texts and
 * flat->vectors to them; makes the dictionaries on first use. */
static oj_status make_compared_sets(struct ogrjoin_index *index,
                                    const struct ogrjoin_layer *layer,
                                    struct layer_sets *sets,
                                    struct oj_flat *flat, struct oj_error *err)
{
    const struct ogrjoin_settings *s = &index->settings;
    int n = s->relation.n_similar, n_threads = api_settings_threads(s);
    const int *cancel = s->options.cancel;
    if (n != layer->n_texts)
        return oj_fail(
            err, OJ_ERR_ARG,
            "a layer must have a column of texts for each condition on texts "
            "(similar): it has %d, not %d; ogrjoin_layer_add_text() adds one",
            layer->n_texts, n);
    for (int i = 0; i < n; i++)
    {
        struct oj_dictionary **dictionary = &index->dictionary[i];
        if (*dictionary == NULL)
            OJ_TRY(oj_token_dictionary_make(&layer->texts[i], flat->fid,
                                            &s->rules, n_threads, cancel,
                                            dictionary, &sets->made[i], err));
        else
            OJ_TRY(oj_token_dictionary_make_sets(*dictionary, &layer->texts[i],
                                                 flat->fid, n_threads, cancel,
                                                 &sets->made[i], err));
        sets->view[i] = oj_token_sets_view(&sets->made[i]);
    }
    flat->texts = n > 0 ? sets->view : NULL;
    flat->n_texts = n;
    return s->relation.vector.is_asked
               ? make_vectors(index, layer, sets, flat, err)
               : OJ_OK;
}

void ogrjoin_index_free(struct ogrjoin_index *index)
{
    if (index == NULL || atomic_fetch_sub(&index->n_users, 1) > 1)
        return;
    api_pair_maker_close(&index->maker);
    device_joins_free(&index->devices);
    oj_join_close(index->join);
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
        oj_token_dictionary_free(index->dictionary[i]);
    oj_word_map_free(index->word_map);
    compared_fields_free(&index->compared);
    api_layer_sets_free(&index->sets);
    ogrjoin_layer_free(index->join_side);
    oj_free(index);
}

/* Completes k and the conditions on texts and vectors by their defaults. */
static oj_status complete_ranking_conditions(struct ogrjoin_settings *s,
                                             struct oj_error *err)
{
    struct oj_relation *relation = &s->relation;
    api_settings_set_default_k(s, relation);
    for (int i = 0; i < relation->n_similar; i++)
    {
        struct oj_text_condition *condition = &relation->similar[i];
        condition->measure = (enum oj_text_measure)s->measure;
        if (condition->denominator == 0)
        {
            condition->numerator = s->min_similarity[0];
            condition->denominator = s->min_similarity[1];
        }
        if (condition->denominator == 0 && !s->has_k)
            return oj_fail(err, OJ_ERR_ARG,
                           "similar needs a threshold: write name:0.6 (names: "
                           "0.6 to begin with), or set min_similarity or k");
        if (condition->denominator == 0)
            condition->denominator = 1;
    }
    if (relation->vector.is_asked && isinf(relation->vector.max_difference) &&
        !s->has_k)
        return oj_fail(
            err, OJ_ERR_ARG,
            "vector needs a maximum difference: set max_difference or k");
    return OJ_OK;
}

/* As make_compared_sets(), for the layer of a side, which errors name. */
static oj_status make_layer_sets(struct ogrjoin_index *index,
                                 enum api_layer_side side,
                                 const struct ogrjoin_layer *layer,
                                 struct layer_sets *sets, struct oj_flat *flat,
                                 struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status = make_compared_sets(index, layer, sets, flat, &why);
    return api_fail_on_side(side, status, &why, err);
}

oj_status api_index_new(struct ogrjoin_layer *join_side,
                        const struct ogrjoin_settings *settings,
                        struct ogrjoin_index **out, struct oj_error *err)
{
    struct ogrjoin_index *index;
    struct oj_relation *relation;
    oj_status status;
    OJ_NEW_ZEROED(index, 1, err);
    atomic_init(&index->n_users, 1);
    pthread_mutex_init(&index->devices.lock, NULL);
    atomic_fetch_add(&join_side->n_users, 1);
    index->join_side = join_side;
    index->settings = api_settings_copy_without_texts(settings);
    relation = &index->settings.relation;
    index->settings.options.n_threads = api_settings_threads(settings);
    status = api_settings_check_units(settings, err);
    if (status == OJ_OK)
        status = complete_ranking_conditions(&index->settings, err);
    if (status == OJ_OK)
        status =
            api_settings_parse_compared_fields(settings, &index->compared, err);
    if (status == OJ_OK)
        status = view_layer_with_ids(join_side, relation, &index->flat, err);
    if (status == OJ_OK && settings->word_map != NULL)
        status = oj_word_map_make(
            settings->word_map, (int64_t)strlen(settings->word_map),
            (enum oj_fold)settings->rules.fold, &index->word_map, err);
    index->settings.rules.word_map = index->word_map;
    if (status == OJ_OK)
        status = make_layer_sets(index, API_SIDE_RIGHT, join_side, &index->sets,
                                 &index->flat, err);
    if (status == OJ_OK)
        status = oj_join_open(&index->flat, relation, settings->backend,
                              &index->settings.options, &index->join, err);
    if (status == OJ_OK)
        status = api_pair_maker_open(
            &index->maker, &settings->pairs, relation, &index->settings.options,
            &index->flat, join_side->score, oj_join_tie_rank(index->join), err);
    if (status == OJ_OK)
        *out = index;
    else
        ogrjoin_index_free(index);
    return status;
}

/* Settings are compared as bytes. Both were copied from the defaults, so
 * padding is equal; if not, an index is built needlessly, but the result is
 * right. */
int api_index_matches_settings(const struct ogrjoin_index *index,
                               const struct ogrjoin_settings *settings)
{
    const struct ogrjoin_settings *mine = &index->settings;
    struct ogrjoin_settings asked = api_settings_copy_without_texts(settings);
    const struct oj_flat *flat = &index->join_side->flat;
    asked.options.n_threads = api_settings_threads(settings);
    return flat->fid == NULL && flat->on_class == NULL &&
           flat->exclude_class == NULL && flat->max_distance == NULL &&
           flat->n_spans == 0 &&
           !oj_relation_compares_attributes(&asked.relation) &&
           complete_ranking_conditions(&asked, NULL) == OJ_OK &&
           memcmp(&mine->relation, &asked.relation, sizeof asked.relation) ==
               0 &&
           strcmp(mine->backend, asked.backend) == 0 &&
           mine->options.n_threads == asked.options.n_threads &&
           mine->options.max_batch_pairs == 0 &&
           mine->options.gpus == asked.options.gpus &&
           mine->options.gpu_memory == asked.options.gpu_memory;
}

int ogrjoin_index_new(struct ogrjoin_layer *join_side,
                      const struct ogrjoin_settings *settings,
                      struct ogrjoin_index **out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    struct ogrjoin_settings *defaults = NULL;
    oj_status status;
    if (settings == NULL)
        settings = defaults = ogrjoin_settings_new();
    status = settings != NULL ? api_index_new(join_side, settings, out, &why)
                              : oj_fail_nomem(&why, 1, sizeof *settings);
    ogrjoin_settings_free(defaults);
    return api_error_export(status, &why, err);
}

void ogrjoin_index_trim(struct ogrjoin_index *index)
{
    oj_join_free_unused_copies(index->join, 0);
}

const char *ogrjoin_index_backend(struct ogrjoin_index *index)
{
    const char *name;
    struct oj_join *join;
    /* no memory for a copy. Only joins on the CPU make copies, so the backend
     * is that of the original */
    if (oj_join_acquire(index->join, NULL, &join, NULL) != OJ_OK)
        return oj_join_backend(index->join)->name;
    name = oj_join_backend(join)->name;
    oj_join_release(join);
    return name;
}

/* --- pairs ---------------------------------------------------------------- */

/* Joins a batch of an input side that already has n_before pairs. */
static oj_status compute_batch_matches(const struct ogrjoin_index *index,
                                       struct oj_join *join,
                                       const struct oj_flat *flat,
                                       int64_t n_before, struct oj_matches *out,
                                       struct oj_error *err)
{
    int64_t most = index->settings.options.max_batch_pairs;
    oj_status status = oj_join_batch(join, flat, out, err);
    return api_check_max_pairs(status, most, n_before, out->n_pairs, err);
}

static oj_status compute_layer_matches(struct ogrjoin_index *index,
                                       const struct oj_flat *flat,
                                       struct oj_matches *out,
                                       struct oj_error *err)
{
    struct oj_join *join;
    oj_status status;
    OJ_TRY(oj_join_acquire(index->join, NULL, &join, err));
    status = compute_batch_matches(index, join, flat, 0, out, err);
    oj_join_release(join);
    return status;
}

oj_status api_index_view_input(struct ogrjoin_index *index,
                               struct ogrjoin_layer *input,
                               struct layer_sets *sets, struct oj_flat *flat,
                               struct oj_error *err)
{
    OJ_TRY(view_layer_with_ids(input, &index->settings.relation, flat, err));
    return make_layer_sets(index, API_SIDE_LEFT, input, sets, flat, err);
}

/* On the CPU, a large layer of points is joined in pieces of a million rows or,
 * if each row has at most k pairs, of 8 million / k rows, whichever is more.
 * The pieces share working memory, and pairs are written directly to their
 * final position. (For SpatialBench's Q12 with 30 million pairs this needs a
 * third of the memory.) */
#define PIECE_PAIRS (INT64_C(8) << 20)
#define LEAST_PIECE_ROWS (INT64_C(1) << 20)

/* Returns the number of rows per piece, or INT32_MAX if the input is not to be
 * split. */
static int64_t count_rows_of_piece(const struct ogrjoin_index *index)
{
    const struct oj_relation *relation = &index->settings.relation;
    const struct api_pair_maker *maker = &index->maker;
    int64_t rows = LEAST_PIECE_ROWS;
    if (maker->stage != NULL || maker->settings.one_to_one ||
        oj_relation_compares_attributes(relation) ||
        !oj_join_is_on_cpu(index->join))
        return INT32_MAX;
    if (oj_relation_sorts_by_measure(relation) && relation->k > 0 &&
        PIECE_PAIRS / relation->k > rows)
        rows = PIECE_PAIRS / relation->k;
    return rows;
}

/* Pairs that are made piece by piece. */
struct pairs_in_work
{
    struct ogrjoin_index *index;
    struct ogrjoin_pairs *pairs;
    struct oj_join *join; /* copy of the join; NULL: get one for each batch
                             (oj_join_acquire()) */
    struct oj_matches matches;
};

static oj_status begin_pairs(struct ogrjoin_index *index, int is_lists,
                             struct pairs_in_work *w, struct oj_error *err)
{
    memset(w, 0, sizeof *w);
    w->index = index;
    OJ_NEW_ZEROED(w->pairs, 1, err);
    atomic_fetch_add(&index->join_side->n_users, 1);
    w->pairs->join_side = index->join_side;
    w->pairs->join_id = index->flat.fid;
    w->pairs->n_join = index->flat.n_features;
    w->pairs->is_lists = is_lists;
    return OJ_OK;
}

/* Moves the pairs to *out; after an error frees them. */
static oj_status end_pairs(struct pairs_in_work *w, oj_status status,
                           struct ogrjoin_pairs **out)
{
    if (w->join != NULL)
        oj_join_release(w->join);
    oj_matches_free(&w->matches);
    if (status == OJ_OK)
        *out = w->pairs;
    else
        ogrjoin_pairs_free(w->pairs);
    return status;
}

/* Joins a piece. If w->join is NULL, the piece is the whole input. */
static oj_status join_piece(struct pairs_in_work *w, const struct oj_flat *flat,
                            struct oj_error *err)
{
    if (w->join == NULL)
        OJ_TRY(compute_layer_matches(w->index, flat, &w->matches, err));
    else
    {
        api_pairs_lend_arrays_to_matches(w->pairs, &w->matches);
        OJ_TRY(compute_batch_matches(w->index, w->join, flat, w->pairs->n,
                                     &w->matches, err));
    }
    return api_pairs_add(&w->index->maker, flat, w->join == NULL, &w->matches,
                         w->pairs, err);
}

/* Views the points first .. end - 1 of a layer. FROM() leaves NULL unchanged.
 */
#define FROM(array, first) ((array) != NULL ? (array) + (first) : NULL)

static struct oj_flat view_points_of_piece(const struct oj_flat *all,
                                           int64_t first, int64_t end)
{
    struct oj_flat piece = *all;
    piece.n_features = piece.n_parts = piece.n_rings = piece.n_vertices =
        end - first;
    piece.x += first;
    piece.y += first;
    piece.fid = FROM(all->fid, first);
    piece.max_distance = FROM(all->max_distance, first);
    piece.heading = FROM(all->heading, first);
    piece.on_class = FROM(all->on_class, first);
    piece.exclude_class = FROM(all->exclude_class, first);
    for (int i = 0; i < all->n_spans && all->spans[i].from != NULL; i++)
    {
        piece.spans[i].from += first;
        piece.spans[i].until += first;
    }
    return piece;
}

/* Joins an input layer, in pieces if it is of single points. */
static oj_status join_flat(struct pairs_in_work *w, const struct oj_flat *flat,
                           struct oj_error *err)
{
    int64_t n = flat->n_features, at_once = count_rows_of_piece(w->index);
    int64_t n_pieces = n / at_once + (n % at_once != 0);
    if (n_pieces < 2 || !oj_flat_is_points(flat))
        return join_piece(w, flat, err);
    OJ_TRY(oj_join_acquire(w->index->join, NULL, &w->join, err));
    w->pairs->n_expected = n;
    for (int64_t i = 0; i < n_pieces; i++)
    {
        int64_t end = i + 1 < n_pieces ? n / n_pieces * (i + 1) : n;
        struct oj_flat piece =
            view_points_of_piece(flat, n / n_pieces * i, end);
        OJ_TRY(join_piece(w, &piece, err));
    }
    return OJ_OK;
}

oj_status api_index_join(struct ogrjoin_index *index,
                         struct ogrjoin_layer *input, int is_lists,
                         struct ogrjoin_pairs **out, struct oj_error *err)
{
    struct layer_sets sets = {0};
    struct pairs_in_work w;
    struct oj_flat flat;
    oj_status status;
    OJ_TRY(begin_pairs(index, is_lists, &w, err));
    w.pairs->first = input->first_row;
    status = api_index_view_input(index, input, &sets, &flat, err);
    if (status == OJ_OK)
        status = join_flat(&w, &flat, err);
    api_layer_sets_free(&sets);
    return end_pairs(&w, status, out);
}

int ogrjoin_join(struct ogrjoin_index *index, struct ogrjoin_layer *input,
                 struct ogrjoin_pairs **out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(api_index_join(index, input, 0, out, &why), &why,
                            err);
}

int ogrjoin_join_lists(struct ogrjoin_index *index, struct ogrjoin_layer *input,
                       struct ogrjoin_pairs **out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(api_index_join(index, input, 1, out, &why), &why,
                            err);
}

/* --- points on a device --------------------------------------------------- */

static oj_status join_device(struct ogrjoin_index *index,
                             const struct ogrjoin_device_points *points,
                             struct ogrjoin_device_pairs *out,
                             struct oj_error *err)
{
    const struct ogrjoin_settings *settings = &index->settings;
    struct device_join_side side = {&index->flat, oj_join_tie_rank(index->join),
                                    &settings->relation, &settings->options};
    if (strcasecmp(settings->backend, oj_auto_backend.name) != 0 &&
        strcasecmp(settings->backend, "cuda") != 0)
        return oj_fail(
            err, OJ_ERR_ARG,
            "points in device memory need backend cuda or auto, not %s",
            settings->backend);
    if (index->maker.stage != NULL || settings->pairs.one_to_one ||
        oj_relation_compares_attributes(&settings->relation))
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "joins of points in device memory give pairs and distances only: "
            "leave out one_to_one, similar, vector, pick and values of pairs "
            "(overlap_area, nearest_point, bearing, intersection ...)");
    OJ_TRY(device_join(&index->devices, &side, index, points, out, err));
    atomic_fetch_add(&index->n_users, 1);
    return OJ_OK;
}

int ogrjoin_join_device(struct ogrjoin_index *index,
                        const struct ogrjoin_device_points *points,
                        struct ogrjoin_device_pairs *out,
                        struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(join_device(index, points, out, &why), &why, err);
}

/* --- validation of pairs by a reference ----------------------------------- */

static void export_validation(const struct oj_validation *v,
                              struct ogrjoin_validation *out)
{
    const struct oj_difference *first = NULL;
    for (int64_t i = v->n_first; i-- > 0;)
    {
        if (v->first[i].kind < OJ_DIFFERENCE_PROVED)
            first = &v->first[i];
    }
    out->n_rows = v->n_rows;
    out->n_pairs = v->n_pairs;
    out->n_differences = v->n_differences;
    out->n_rows_proved = v->n_rows_proved + v->n_rows_rounding;
    out->n_rows_undecided = v->n_undecided;
    out->n_pairs_undecided = v->n_undecided_pairs;
    out->left = first != NULL ? first->input_row : -1;
    out->right = first == NULL               ? -1
                 : first->join_row_ours >= 0 ? first->join_row_ours
                                             : first->join_row_reference;
    out->kind =
        first != NULL ? oj_validation_difference_name(first->kind) : NULL;
}

static oj_status validate_layer(struct ogrjoin_index *index,
                                struct ogrjoin_layer *input,
                                const char *reference,
                                struct ogrjoin_validation *out,
                                struct oj_error *err)
{
    const struct oj_relation *relation = &index->settings.relation;
    struct oj_matches ours = {0}, theirs = {0};
    struct layer_sets sets = {0};
    struct oj_flat flat;
    struct oj_validation v = {
        .join_side = &index->flat, .input = &flat, .relation = relation};
    struct oj_options options = index->settings.options;
    struct oj_join *other = NULL;
    oj_status status;
    /* no limit: max_pairs was checked for the first result, and a reference
     * counts undecided pairs, too */
    options.max_batch_pairs = 0;
    if (out->size < sizeof *out)
        return oj_fail(err, OJ_ERR_ARG,
                       "the member size of the validation must be set to "
                       "sizeof(struct ogrjoin_validation)");
    if (reference == NULL)
        reference = oj_relation_reference_backend(relation);
    status = api_index_view_input(index, input, &sets, &flat, err);
    if (status == OJ_OK)
        status = compute_layer_matches(index, &flat, &ours, err);
    if (status == OJ_OK)
        status = oj_join_open(&index->flat, relation, reference, &options,
                              &other, err);
    if (status == OJ_OK)
        status = oj_join_batch(other, &flat, &theirs, err);
    if (status == OJ_OK)
        status = oj_validation_compare(&v, &ours, &theirs, err);
    if (status == OJ_OK)
        export_validation(&v, out);
    oj_validation_free(&v);
    api_layer_sets_free(&sets);
    oj_matches_free(&ours);
    oj_matches_free(&theirs);
    oj_join_close(other);
    return status;
}

int ogrjoin_validate(struct ogrjoin_index *index, struct ogrjoin_layer *input,
                     const char *reference, struct ogrjoin_validation *out,
                     struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(validate_layer(index, input, reference, out, &why),
                            &why, err);
}

/* --- pairs as Arrow ------------------------------------------------------- */

static oj_status pairs_to_arrow(struct ogrjoin_pairs *pairs,
                                struct ArrowSchema *schema,
                                struct ArrowArray *array, struct oj_error *err)
{
    oj_status status;
    OJ_TRY(arrow_pairs_schema(schema, err));
    status = arrow_pairs_move_to_array(pairs, array, err);
    if (status != OJ_OK)
        schema->release(schema);
    return status;
}

int ogrjoin_pairs_to_arrow(struct ogrjoin_pairs *pairs,
                           struct ArrowSchema *schema, struct ArrowArray *array,
                           struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(pairs_to_arrow(pairs, schema, array, &why), &why,
                            err);
}

/* --- sources: streams that are read as several layers --------------------- */

struct ogrjoin_source
{
    struct arrow_source from;
    struct ogrjoin_settings settings; /* settings for threads, cancel flag and
                                         side */
    struct oj_arrow_shared *held;     /* array with rows that are not in a layer
                                         yet; NULL: none */
    int64_t at;                       /* first row of held that is not in a
                                         layer yet */
    int64_t n_read;                   /* number of the next row: first_row of
                                         the settings, plus the rows of all
                                         layers so far */
    int n_layers;                     /* 0: no layer was made yet; otherwise
                                         1 */
    struct oj_arrow_srid srid, other_srid; /* of the features in all layers so
                                              far, as in arrow_features */
};

/* Reads the next array into source->held, which stays NULL at the end of the
 * stream. */
static oj_status hold_next_array(struct ogrjoin_source *source,
                                 struct oj_error *err)
{
    struct ArrowArray array;
    OJ_TRY(api_stream_next(&source->from.stream, &array, err));
    if (array.release == NULL)
        return OJ_OK;
    OJ_TRY(oj_arrow_shared_make(&array, &source->held, err));
    source->at = 0;
    return OJ_OK;
}

/* Appends rows of the held array to a layer, which then has at most n_rows
 * rows. Reads the next array before, if none is held; sets *is_end to 1 if
 * there is none, otherwise to 0. */
static oj_status add_held_rows(struct ogrjoin_source *source, int64_t n_rows,
                               struct ogrjoin_layer *layer, int *is_end,
                               struct oj_error *err)
{
    const struct ArrowArray *array;
    struct ArrowArray part;
    int64_t n;
    oj_status status;
    if (source->held == NULL)
        OJ_TRY(hold_next_array(source, err));
    *is_end = source->held == NULL;
    if (*is_end)
        return OJ_OK;
    array = oj_arrow_shared_array(source->held);
    n = array->length - source->at;
    if (n > n_rows - layer->features.n_rows)
        n = n_rows - layer->features.n_rows;
    OJ_TRY(oj_arrow_array_view_rows(source->held, array, source->at, n, &part,
                                    err));
    source->at += n;
    if (source->at >= array->length)
    {
        oj_arrow_shared_release(source->held);
        source->held = NULL;
    }
    status = api_layer_add(layer, &source->from.record, &part, err);
    oj_arrow_array_release(&part);
    return status;
}

static oj_status read_layer_of_source(struct ogrjoin_source *source,
                                      int64_t n_rows,
                                      struct ogrjoin_layer *layer,
                                      struct oj_error *err)
{
    int is_end = 0;
    layer->features.first_fid = layer->first_row = source->n_read;
    layer->features.srid = source->srid;
    while (!is_end && layer->features.n_rows < n_rows)
    {
        OJ_TRY(oj_check_cancel(source->settings.options.cancel, err));
        OJ_TRY(add_held_rows(source, n_rows, layer, &is_end, err));
    }
    OJ_TRY(
        api_layer_finish(layer, &source->from.record, &source->settings, err));
    source->n_read += layer->flat.n_features;
    source->srid = layer->features.srid;
    if (!source->other_srid.is_found)
        source->other_srid = layer->features.other;
    return OJ_OK;
}

/* Reads the next layer; *out is NULL after the last. */
static oj_status next_layer_of_source(struct ogrjoin_source *source,
                                      int64_t n_rows,
                                      struct ogrjoin_layer **out,
                                      struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    struct ogrjoin_layer *layer = NULL;
    oj_status status;
    if (n_rows < 1)
        return oj_fail(err, OJ_ERR_ARG, "n_rows must be 1 or more, not %lld",
                       (long long)n_rows);
    OJ_TRY(api_layer_new(&layer, err));
    status = read_layer_of_source(source, n_rows, layer, &why);
    status = api_fail_on_side(side_of_settings(&source->settings), status, &why,
                              err);
    if (status == OJ_OK && layer->flat.n_features == 0 && source->n_layers > 0)
    {
        ogrjoin_layer_free(layer);
        layer = NULL;
    }
    source->n_layers = 1;
    if (status == OJ_OK)
        *out = layer;
    else
        ogrjoin_layer_free(layer);
    return status;
}

int ogrjoin_source_next(struct ogrjoin_source *source, int64_t n_rows,
                        struct ogrjoin_layer **out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(next_layer_of_source(source, n_rows, out, &why),
                            &why, err);
}

static oj_status check_srids(const struct oj_arrow_srid *srid,
                             const struct oj_arrow_srid *other,
                             struct oj_error *err)
{
    if (!other->is_found)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "row %lld: the geometry has the SRID %lld, and that of row "
                   "%lld has %lld (0: none), but a layer has one CRS: bring "
                   "its rows to one CRS, or write crs=ignore",
                   (long long)other->row, (long long)other->number,
                   (long long)srid->row, (long long)srid->number);
}

/* Returns the SRID of a layer without rows of another SRID; -1: all of its rows
 * are NULL in Arrow columns. */
static int64_t number_of_srid(const struct ogrjoin_layer *layer)
{
    const struct oj_arrow_srid *srid = &layer->features.srid;
    return srid->is_found || layer->features.n_rows < layer->flat.n_features
               ? srid->number
               : -1;
}

int ogrjoin_layer_srid(const struct ogrjoin_layer *layer, int64_t *srid,
                       struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    while (layer->of != NULL)
        layer = layer->of;
    status = check_srids(&layer->features.srid, &layer->features.other, &why);
    if (status == OJ_OK)
        *srid = number_of_srid(layer);
    return api_error_export(status, &why, err);
}

/* Reads the SRID of the next array, if no layer was made yet. */
static oj_status srid_of_source(struct ogrjoin_source *source, int64_t *srid,
                                struct oj_error *err)
{
    *srid = source->srid.is_found ? source->srid.number : -1;
    if (source->n_layers > 0)
        return check_srids(&source->srid, &source->other_srid, err);
    if (source->held == NULL)
        OJ_TRY(hold_next_array(source, err));
    return source->held == NULL
               ? OJ_OK
               : arrow_features_first_srid(&source->from.record.layout,
                                           oj_arrow_shared_array(source->held),
                                           srid, err);
}

int ogrjoin_source_srid(struct ogrjoin_source *source, int64_t *srid,
                        struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""}, named = {OJ_OK, ""};
    int64_t number = 0;
    oj_status status = srid_of_source(source, &number, &why);
    if (status == OJ_OK)
        *srid = number;
    status = api_fail_on_side(side_of_settings(&source->settings), status, &why,
                              &named);
    return api_error_export(status, &named, err);
}

void ogrjoin_source_free(struct ogrjoin_source *source)
{
    if (source == NULL)
        return;
    oj_arrow_shared_release(source->held);
    close_source(&source->from);
    oj_free(source);
}

/* Opens a source. It owns `from` afterwards, also after an error. */
static oj_status open_source(const struct arrow_source *from,
                             const char *column,
                             const struct ogrjoin_settings *settings,
                             struct ogrjoin_source **out, struct oj_error *err)
{
    struct ogrjoin_source *source = oj_calloc(1, sizeof *source);
    oj_status status;
    if (source == NULL)
    {
        struct arrow_source unused = *from;
        close_source(&unused);
        return oj_fail_nomem(err, 1, sizeof *source);
    }
    source->from = *from;
    source->settings.options.n_threads = api_settings_threads(settings);
    source->settings.side = (int)side_of_settings(settings);
    source->n_read = first_row_of_settings(settings);
    if (settings != NULL)
        source->settings.options.cancel = settings->options.cancel;
    status = read_schema_of_stream(&source->from, column, settings, err);
    if (status == OJ_OK)
        *out = source;
    else
        ogrjoin_source_free(source);
    return status;
}

int ogrjoin_source_open(struct ArrowArrayStream *stream, const char *column,
                        const struct ogrjoin_settings *settings,
                        struct ogrjoin_source **out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    struct arrow_source from = {.stream = *stream};
    stream->release = NULL;
    return api_error_export(open_source(&from, column, settings, out, &why),
                            &why, err);
}

static oj_status join_layer_of_source(struct pairs_in_work *w,
                                      struct ogrjoin_layer *layer,
                                      struct oj_error *err)
{
    struct layer_sets sets = {0};
    struct oj_flat flat;
    oj_status status = api_index_view_input(w->index, layer, &sets, &flat, err);
    if (status == OJ_OK)
        status = join_piece(w, &flat, err);
    api_layer_sets_free(&sets);
    return status;
}

static oj_status join_source(struct ogrjoin_index *index,
                             struct ogrjoin_source *source, int64_t n_rows,
                             struct ogrjoin_pairs **out, struct oj_error *err)
{
    int64_t at_once = count_rows_of_piece(index);
    int is_whole = at_once == INT32_MAX, is_end = 0;
    struct pairs_in_work w;
    oj_status status;
    OJ_TRY(begin_pairs(index, 1, &w, err));
    w.pairs->first = source->n_read;
    w.pairs->n_expected = n_rows;
    status =
        is_whole ? OJ_OK : oj_join_acquire(index->join, NULL, &w.join, err);
    source->n_layers = 0;              /* forget earlier layers, so that at
                                          least one is made even without rows */
    if (!is_whole && n_rows > at_once) /* makes the pieces equally large */
        at_once = n_rows / (n_rows / at_once + 1) + 1;
    while (status == OJ_OK && !is_end)
    {
        struct ogrjoin_layer *layer = NULL;
        status = next_layer_of_source(source, at_once, &layer, err);
        is_end = layer == NULL;
        if (!is_end && is_whole && w.pairs->n_rows > 0)
            status = oj_fail(err, OJ_ERR_LIMIT,
                             "a layer can have at most %d features: join the "
                             "stream array by array",
                             INT32_MAX);
        if (status == OJ_OK && !is_end)
            status = join_layer_of_source(&w, layer, err);
        ogrjoin_layer_free(layer);
    }
    return end_pairs(&w, status, out);
}

int ogrjoin_join_source(struct ogrjoin_index *index,
                        struct ogrjoin_source *source, int64_t n_rows,
                        struct ogrjoin_pairs **out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(join_source(index, source, n_rows, out, &why), &why,
                            err);
}

/* --- streams of pairs ----------------------------------------------------- */

struct pair_stream
{
    struct ogrjoin_index *index;
    struct arrow_source source;
    int64_t n_read; /* number of rows read so far */
    struct oj_error error;
};

int api_errno_of(oj_status status)
{
    switch (status)
    {
        case OJ_OK:
            return 0;
        case OJ_ERR_NOMEM:
            return ENOMEM;
        case OJ_ERR_IO:
            return EIO;
        case OJ_ERR_UNSUPPORTED:
            return ENOSYS;
        case OJ_ERR_CANCELLED:
            return ECANCELED;
        default:
            return EINVAL;
    }
}

static int get_pair_schema(struct ArrowArrayStream *stream,
                           struct ArrowSchema *out)
{
    struct pair_stream *self = stream->private_data;
    return api_errno_of(arrow_pairs_schema(out, &self->error));
}

static oj_status join_array(struct pair_stream *self, struct ArrowArray *array,
                            struct ArrowArray *out)
{
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    struct oj_error *err = &self->error;
    struct oj_error why = {OJ_OK, ""};
    oj_status status =
        layer_from_array(&self->source.record, array, self->n_read,
                         &self->index->settings, &layer, &why);
    status = api_fail_on_side(API_SIDE_LEFT, status, &why, err);
    if (status == OJ_OK)
        status = api_index_join(self->index, layer, 0, &pairs, err);
    if (status == OJ_OK)
        status = arrow_pairs_move_to_array(pairs, out, err);
    if (status == OJ_OK)
        self->n_read += layer->flat.n_features;
    ogrjoin_pairs_free(pairs);
    ogrjoin_layer_free(layer);
    return status;
}

static int get_next_pairs(struct ArrowArrayStream *stream,
                          struct ArrowArray *out)
{
    struct pair_stream *self = stream->private_data;
    struct ArrowArray array;
    oj_status status =
        api_stream_next(&self->source.stream, &array, &self->error);
    memset(out, 0, sizeof *out);
    if (status == OJ_OK && array.release != NULL)
        status = join_array(self, &array, out);
    return api_errno_of(status);
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    const struct pair_stream *self = stream->private_data;
    return self->error.message[0] != '\0' ? self->error.message : NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    struct pair_stream *self = stream->private_data;
    close_source(&self->source);
    ogrjoin_index_free(self->index);
    oj_free(self);
    stream->release = NULL;
}

static oj_status join_stream(struct ogrjoin_index *index,
                             struct arrow_source *source, const char *column,
                             struct ArrowArrayStream *out, struct oj_error *err)
{
    const struct oj_relation *relation = &index->settings.relation;
    const struct compared_fields *compared = &index->compared;
    struct oj_error why = {OJ_OK, ""};
    struct ArrowSchema schema;
    struct pair_stream *self;
    oj_status status;
    if (index->settings.pairs.one_to_one)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "one_to_one needs all rows at once, and a stream is "
                       "joined array by array: read the stream as one layer");
    if (relation->n_similar > 0 && compared->similar[0].fields[0] == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "similar needs the names of the columns of texts when a "
                       "stream is joined: write them as name:0.6");
    status = api_stream_schema(&source->stream, &schema, &why);
    if (status == OJ_OK)
        status =
            api_record_find_columns(&schema, column, compared, API_SIDE_LEFT,
                                    relation, &source->record, &why);
    release_schema(&schema);
    OJ_TRY(api_fail_on_side(API_SIDE_LEFT, status, &why, err));
    OJ_NEW(self, 1, err);
    memset(self, 0, sizeof *self);
    atomic_fetch_add(&index->n_users, 1);
    self->index = index;
    self->source = *source;
    out->get_schema = get_pair_schema;
    out->get_next = get_next_pairs;
    out->get_last_error = get_last_error;
    out->release = release_stream;
    out->private_data = self;
    return OJ_OK;
}

int ogrjoin_join_stream(struct ogrjoin_index *index,
                        struct ArrowArrayStream *input, const char *column,
                        struct ArrowArrayStream *out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    struct arrow_source source = {.stream = *input};
    oj_status status;
    input->release = NULL;
    status = join_stream(index, &source, column, out, &why);
    if (status != OJ_OK)
        close_source(&source);
    return api_error_export(status, &why, err);
}
