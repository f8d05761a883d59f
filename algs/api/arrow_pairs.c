#include "arrow_pairs.h"

#include "../../flatten/base/oj_alloc.h"
#include "../arrow/arrow_abi.h"

#include <stdatomic.h>
#include <string.h>

enum
{
    MEASURE = 2, /* after left and right */
    N_COLUMNS
};

static const char *const column_name[N_COLUMNS] = {"left", "right", "measure"};
static const char *const column_format[N_COLUMNS] = {"l", "l", "g"};

/* A schema and its columns, in one piece: a consumer that takes a column out
 * needs nothing of it. */
struct pair_schema
{
    struct ArrowSchema column[N_COLUMNS];
    struct ArrowSchema *child[N_COLUMNS];
};

static void release_column_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_schema(struct ArrowSchema *schema)
{
    oj_free(schema->private_data);
    schema->release = NULL;
}

oj_status arrow_pairs_schema(struct ArrowSchema *out, struct oj_error *err)
{
    struct pair_schema *all;
    OJ_NEW_ZEROED(all, 1, err);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < N_COLUMNS; i++)
    {
        all->column[i].format = column_format[i];
        all->column[i].name = column_name[i];
        all->column[i].flags = i == MEASURE ? ARROW_FLAG_NULLABLE : 0;
        all->column[i].release = release_column_schema;
        all->child[i] = &all->column[i];
    }
    out->format = "+s";
    out->name = "";
    out->n_children = N_COLUMNS;
    out->children = all->child;
    out->release = release_schema;
    out->private_data = all;
    return OJ_OK;
}

/* An array and its columns: freed with the last of the four, since a consumer
 * may take columns out and release the rest. */
struct pair_array
{
    atomic_int n_users;
    int64_t *left, *right;
    double *measure;
    uint8_t *valid; /* bits of measure where it is NULL throughout, or NULL */
    const void *no_buffer[1];
    const void *buffer[N_COLUMNS][2];
    struct ArrowArray column[N_COLUMNS];
    struct ArrowArray *child[N_COLUMNS];
};

static void unref_pair_array(struct pair_array *all)
{
    if (atomic_fetch_sub(&all->n_users, 1) > 1)
        return;
    oj_free(all->left);
    oj_free(all->right);
    oj_free(all->measure);
    oj_free(all->valid);
    oj_free(all);
}

static void release_column_array(struct ArrowArray *array)
{
    array->release = NULL;
    unref_pair_array(array->private_data);
}

static void release_pair_array(struct ArrowArray *array)
{
    struct pair_array *all = array->private_data;
    for (int i = 0; i < N_COLUMNS; i++)
    {
        if (all->column[i].release != NULL)
            all->column[i].release(&all->column[i]);
    }
    array->release = NULL;
    unref_pair_array(all);
}

static void fill_record_batch_of_pairs(struct pair_array *all, int64_t n,
                                       struct ArrowArray *out)
{
    const void *values[N_COLUMNS] = {all->left, all->right, all->measure};
    for (int i = 0; i < N_COLUMNS; i++)
    {
        struct ArrowArray *column = &all->column[i];
        all->buffer[i][0] = i == MEASURE ? all->valid : NULL;
        all->buffer[i][1] = values[i];
        column->length = n;
        column->null_count = all->buffer[i][0] != NULL ? n : 0;
        column->n_buffers = 2;
        column->buffers = all->buffer[i];
        column->release = release_column_array;
        column->private_data = all;
        all->child[i] = column;
    }
    atomic_init(&all->n_users, 1 + N_COLUMNS);
    memset(out, 0, sizeof *out);
    out->length = n;
    out->n_buffers = 1;
    out->buffers = all->no_buffer;
    out->n_children = N_COLUMNS;
    out->children = all->child;
    out->release = release_pair_array;
    out->private_data = all;
}

oj_status arrow_pairs_take(struct ogrjoin_pairs *pairs, struct ArrowArray *out,
                           struct oj_error *err)
{
    struct pair_array *all;
    if (pairs->is_lists)
        return oj_fail(err, OJ_ERR_ARG,
                       "these pairs are lists, not columns: a record batch "
                       "takes those of ogrjoin_join()");
    OJ_NEW_ZEROED(all, 1, err);
    if (!pairs->has_measure)
    {
        all->valid = oj_calloc(pairs->n / 8 + 1, 1);
        if (all->valid == NULL)
        {
            oj_free(all);
            return oj_fail_nomem(err, pairs->n / 8 + 1, 1);
        }
    }
    all->left = pairs->left;
    all->right = pairs->right;
    all->measure = pairs->measure;
    fill_record_batch_of_pairs(all, pairs->n, out);
    pairs->left = pairs->right = NULL;
    pairs->measure = NULL;
    pairs->n = 0;
    return OJ_OK;
}
