#include "arrow_pairs.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../arrow/oj_arrow_array.h"

enum
{
    MEASURE = 2, /* index of the column of the measure, behind left and right */
    N_COLUMNS
};

static const char *const column_name[N_COLUMNS] = {"left", "right", "measure"};
static const char *const column_format[N_COLUMNS] = {"l", "l", "g"};

static oj_status make_schema(struct ArrowSchema *out, struct oj_error *err)
{
    OJ_TRY(oj_arrow_schema_make("+s", "", NULL, 0, N_COLUMNS, out, err));
    for (int i = 0; i < N_COLUMNS; i++)
        OJ_TRY(oj_arrow_schema_make(column_format[i], column_name[i], NULL,
                                    i == MEASURE ? ARROW_FLAG_NULLABLE : 0, 0,
                                    out->children[i], err));
    return OJ_OK;
}

oj_status arrow_pairs_schema(struct ArrowSchema *out, struct oj_error *err)
{
    oj_status status = make_schema(out, err);
    if (status != OJ_OK)
        oj_arrow_schema_release(out);
    return status;
}

/* Makes the record batch without the values; these are moved last, when no step
 * can fail any more. */
static oj_status make_columns(const struct ogrjoin_pairs *pairs,
                              struct ArrowArray *out, struct oj_error *err)
{
    OJ_TRY(oj_arrow_array_make(1, N_COLUMNS, out, err));
    out->length = pairs->n;
    for (int i = 0; i < N_COLUMNS; i++)
    {
        OJ_TRY(oj_arrow_array_make(2, 0, out->children[i], err));
        out->children[i]->length = pairs->n;
    }
    if (pairs->has_measure)
        return OJ_OK;
    out->children[MEASURE]->buffers[0] = oj_calloc(pairs->n / 8 + 1, 1);
    out->children[MEASURE]->null_count = pairs->n;
    return out->children[MEASURE]->buffers[0] != NULL
               ? OJ_OK
               : oj_fail_nomem(err, pairs->n / 8 + 1, 1);
}

oj_status arrow_pairs_move_to_array(struct ogrjoin_pairs *pairs,
                                    struct ArrowArray *out,
                                    struct oj_error *err)
{
    oj_status status;
    if (pairs->is_lists)
        return oj_fail(err, OJ_ERR_ARG,
                       "pairs of ogrjoin_join_lists() cannot become a record "
                       "batch: join with ogrjoin_join()");
    status = make_columns(pairs, out, err);
    if (status != OJ_OK)
    {
        oj_arrow_array_release(out);
        return status;
    }
    out->children[0]->buffers[1] = pairs->left;
    out->children[1]->buffers[1] = pairs->right;
    out->children[MEASURE]->buffers[1] = pairs->measure;
    pairs->left = pairs->right = NULL;
    pairs->measure = NULL;
    pairs->n = 0;
    return OJ_OK;
}
