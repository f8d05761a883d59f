#include "oj_row_vectors.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_number.h"

#include <math.h>
#include <string.h>

struct oj_row_vectors
{
    int n_fields;
    struct oj_class_field *field[2]; /* [n_fields] */
    double *weight;                  /* [n_fields] */
    enum oj_vector_norm norm;
    int64_t n_dimensions;                  /* 0: not known yet */
    double number[OJ_MOST_DIMENSIONS + 1]; /* of a row */
};

/* ---- the numbers of a row ------------------------------------------------ */

/* Of a field its list, or its one number. Returns how many, at most one more
 * than there may be. */
static int64_t read_value(OGRFieldType type, const struct oj_value *value,
                          double *out)
{
    const OGRField *raw = &value->raw;
    int64_t n, most = OJ_MOST_DIMENSIONS + 1;
    if (!oj_value_is_there(value))
        return 0;
    if (type == OFTString)
    {
        const char *text = oj_value_bytes(value, type, &n);
        return oj_text_numbers(text, n, most, out);
    }
    if (type != OFTRealList && type != OFTIntegerList &&
        type != OFTInteger64List)
    {
        out[0] = oj_value_number(type, value);
        return 1;
    }
    n = raw->RealList.nCount < most ? raw->RealList.nCount : most;
    for (int64_t i = 0; i < n; i++)
        out[i] = type == OFTRealList ? raw->RealList.paList[i]
                 : type == OFTIntegerList
                     ? raw->IntegerList.paList[i]
                     : (double)raw->Integer64List.paList[i];
    return n;
}

static int64_t read_row(struct oj_row_vectors *v, int side,
                        const struct oj_row_values *values, int64_t row)
{
    struct oj_value value;
    for (int i = 0; v->n_fields > 1 && i < v->n_fields; i++)
    {
        const struct oj_class_field *field = &v->field[side][i];
        oj_row_values_get(values, row, field->column, &value);
        v->number[i] = oj_value_number(field->type, &value);
    }
    if (v->n_fields > 1)
        return v->n_fields;
    oj_row_values_get(values, row, v->field[side][0].column, &value);
    return read_value(v->field[side][0].type, &value, v->number);
}

/* ---- vectors ------------------------------------------------------------- */

/* By the first row that has numbers; 0 while a piece to come may have it. */
static oj_status count_dimensions(struct oj_row_vectors *v, int side,
                                  int insert,
                                  const struct oj_row_values *values,
                                  const struct oj_flat *flat,
                                  struct oj_error *err)
{
    int64_t n = 0;
    for (int64_t row = 0;
         insert != OJ_LOOK_UP && n == 0 && row < flat->n_features; row++)
    {
        n = read_row(v, side, values, row);
        if (n > OJ_MOST_DIMENSIONS)
            return oj_fail(
                err, OJ_ERR_DATA,
                "-vector: the list of feature %lld has more than "
                "%d numbers, the most that are compared",
                (long long)(flat->fid != NULL ? flat->fid[row] : row),
                OJ_MOST_DIMENSIONS);
    }
    v->n_dimensions = n > 0 || insert == OJ_INSERT_SOME ? n : 1;
    return OJ_OK;
}

oj_status oj_row_vectors_make(struct oj_row_vectors *v, int side, int insert,
                              const struct oj_row_values *values,
                              double **value, int64_t *capacity,
                              struct oj_flat *flat, int64_t *n_without,
                              struct oj_error *err)
{
    int64_t n = flat->n_features, d;
    if (insert == OJ_INSERT_ALL || v->n_dimensions == 0)
        OJ_TRY(count_dimensions(v, side, insert, values, flat, err));
    d = v->n_dimensions;
    OJ_TRY(oj_reserve(value, 0, n * d, capacity, sizeof **value, err));
    for (int64_t row = 0; row < n; row++)
    {
        double *out = *value + row * d;
        if (read_row(v, side, values, row) == d &&
            oj_vector_weigh(v->norm, v->number, d, v->weight, v->n_fields, out))
            continue;
        for (int64_t i = 0; i < d; i++)
            out[i] = (double)NAN;
        ++*n_without;
    }
    flat->vectors = (struct oj_vectors){d, *value};
    return OJ_OK;
}

/* ---- life ---------------------------------------------------------------- */

oj_status oj_row_vectors_new(const struct oj_class_field *const fields[2],
                             int n, const double *weight,
                             enum oj_vector_norm norm,
                             struct oj_row_vectors **out, struct oj_error *err)
{
    struct oj_row_vectors *v;
    size_t size = (size_t)n * sizeof *v->field[0];
    OJ_NEW_ZEROED(v, 1, err);
    v->n_fields = n;
    v->norm = norm;
    v->weight = oj_malloc(n, sizeof *v->weight);
    v->field[0] = oj_malloc(n, sizeof *v->field[0]);
    v->field[1] = oj_malloc(n, sizeof *v->field[1]);
    if (v->weight == NULL || v->field[0] == NULL || v->field[1] == NULL)
    {
        oj_row_vectors_free(v);
        return oj_fail_nomem(err, n, sizeof *v->field[0]);
    }
    memcpy(v->weight, weight, (size_t)n * sizeof *weight);
    memcpy(v->field[0], fields[0], size);
    memcpy(v->field[1], fields[1], size);
    *out = v;
    return OJ_OK;
}

void oj_row_vectors_use(struct oj_row_vectors *vectors, int64_t n_dimensions)
{
    if (vectors != NULL)
        vectors->n_dimensions = n_dimensions;
}

void oj_row_vectors_free(struct oj_row_vectors *vectors)
{
    if (vectors == NULL)
        return;
    oj_free(vectors->weight);
    oj_free(vectors->field[0]);
    oj_free(vectors->field[1]);
    oj_free(vectors);
}
