#include "../../ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../arrow/oj_arrow_array.h"
#include "../arrow/oj_arrow_plain_values.h"
#include "../arrow/oj_arrow_take.h"
#include "../rows/oj_value_classes.h"
#include "api_pairs.h"

#include <string.h>

/* The values of one side, as an Arrow column. */
struct value_column
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    enum oj_field_kind kind;
};

/* Arguments of read_value(); one per thread. */
struct value_reader
{
    const struct value_column *column;
    int is_moment; /* 1: dates and datetimes are read in microseconds */
    struct oj_arrow_room room;
};

/* Classes of the join side's values for one way of comparison: as numbers,
 * moments or texts. */
struct comparison_classes
{
    struct oj_value_classes classes;
    int32_t *class_of; /* [join rows] class of each row; NULL: not computed
                          yet */
};

struct ogrjoin_classes
{
    struct value_column join;
    pthread_mutex_t lock; /* guards the members below */
    struct comparison_classes of[OJ_N_VALUE_COMPARISONS];
};

static void free_column(struct value_column *column)
{
    oj_arrow_schema_release(&column->schema);
    oj_arrow_array_release(&column->array);
}

/* Opens a zeroed column. array is moved, also on failure. */
static oj_status open_column(const struct ArrowSchema *schema,
                             struct ArrowArray *array,
                             struct value_column *column, struct oj_error *err)
{
    column->array = *array;
    array->release = NULL;
    OJ_TRY(oj_arrow_check_type(schema, err));
    OJ_TRY(oj_arrow_check_array(schema, &column->array, err));
    OJ_TRY(oj_arrow_schema_copy(schema, NULL, &column->schema, err));
    column->kind = oj_arrow_field_kind(schema);
    if (strncmp(oj_arrow_schema_of_decoded_values(schema)->format, "tD", 2) ==
        0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "on: durations cannot be compared, only numbers, texts, "
                       "times and binary values: convert both sides to numbers "
                       "of one unit");
    if (!oj_field_kind_is_compared(column->kind))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "on: values in the Arrow format \"%.100s\" cannot be "
                       "compared, only numbers, texts, times and binary "
                       "values: convert them",
                       schema->format);
    return OJ_OK;
}

static oj_status read_value(void *user, int field, int64_t row,
                            struct oj_plain_value *value, struct oj_error *err)
{
    struct value_reader *r = user;
    (void)field;
    return oj_arrow_compared_value(&r->column->schema, &r->column->array, row,
                                   r->is_moment, &r->room, value, err);
}

static oj_status find_classes(const struct value_column *column,
                              enum oj_value_comparison comparison, int insert,
                              struct oj_value_classes *classes,
                              int32_t *class_of, struct oj_error *err)
{
    struct value_reader reader = {
        .column = column, .is_moment = comparison == OJ_COMPARE_MOMENTS};
    const struct oj_plain_reader rows = {read_value, &reader};
    struct oj_value_key key;
    oj_status status;
    memset(&key, 0, sizeof key);
    status = oj_value_classes_find(classes, &key, &comparison, 1, &rows,
                                   column->array.length, insert, class_of, err);
    oj_value_key_free(&key);
    return status;
}

/* Computes the classes of the join side for a way of comparison, on first use.
 */
static oj_status make_classes_once(struct ogrjoin_classes *self,
                                   enum oj_value_comparison comparison,
                                   struct oj_error *err)
{
    struct comparison_classes *to = &self->of[comparison];
    int32_t *class_of;
    oj_status status;
    if (to->class_of != NULL)
        return OJ_OK;
    OJ_NEW(class_of, self->join.array.length, err);
    status =
        find_classes(&self->join, comparison, 1, &to->classes, class_of, err);
    if (status == OJ_OK)
    {
        to->class_of = class_of;
        return OJ_OK;
    }
    oj_free(class_of);
    oj_value_classes_free(&to->classes);
    return status;
}

static oj_status make_classes_of_column(const struct ArrowSchema *schema,
                                        struct ArrowArray *values,
                                        struct ogrjoin_classes **out,
                                        struct oj_error *err)
{
    struct ogrjoin_classes *self = oj_calloc(1, sizeof *self);
    oj_status status;
    if (self == NULL)
    {
        oj_arrow_array_release(values);
        return oj_fail_nomem(err, 1, sizeof *self);
    }
    pthread_mutex_init(&self->lock, NULL);
    status = open_column(schema, values, &self->join, err);
    if (status == OJ_OK)
        *out = self;
    else
        ogrjoin_classes_free(self);
    return status;
}

int ogrjoin_classes_new(const struct ArrowSchema *schema,
                        struct ArrowArray *values, struct ogrjoin_classes **out,
                        struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(make_classes_of_column(schema, values, out, &why),
                            &why, err);
}

/* Sets class_of to the classes of the input values, and *join_class to the
 * classes of the join side's values. The latter are computed under the lock on
 * first use, and only read afterwards. */
static oj_status find_classes_of_input(struct ogrjoin_classes *self,
                                       struct value_column *input,
                                       int32_t *class_of,
                                       const int32_t **join_class,
                                       struct oj_error *err)
{
    enum oj_value_comparison comparison =
        oj_value_comparison_of(input->kind, self->join.kind);
    oj_status status;
    pthread_mutex_lock(&self->lock);
    status = make_classes_once(self, comparison, err);
    pthread_mutex_unlock(&self->lock);
    if (status == OJ_OK)
        status = find_classes(input, comparison, 0,
                              &self->of[comparison].classes, class_of, err);
    if (status == OJ_OK)
        *join_class = self->of[comparison].class_of;
    return status;
}

int ogrjoin_classes_find(struct ogrjoin_classes *classes,
                         const struct ArrowSchema *schema,
                         struct ArrowArray *values, int32_t *class_of,
                         const int32_t **join_class, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    struct value_column input;
    oj_status status;
    memset(&input, 0, sizeof input);
    status = open_column(schema, values, &input, &why);
    if (status == OJ_OK)
        status =
            find_classes_of_input(classes, &input, class_of, join_class, &why);
    free_column(&input);
    return api_error_export(status, &why, err);
}

void ogrjoin_classes_free(struct ogrjoin_classes *classes)
{
    if (classes == NULL)
        return;
    free_column(&classes->join);
    for (int i = 0; i < OJ_N_VALUE_COMPARISONS; i++)
    {
        oj_value_classes_free(&classes->of[i].classes);
        oj_free(classes->of[i].class_of);
    }
    pthread_mutex_destroy(&classes->lock);
    oj_free(classes);
}
