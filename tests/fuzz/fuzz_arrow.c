/* Reads Arrow arrays of every format with changed bytes, offsets, views and
 * structs. The library refuses them, or makes a layer that passes
 * oj_flat_check(). Lengths of buffers stay right, because Arrow does not store
 * them. fuzz_arrow [ITERATIONS] mutates random arrays, from a fixed seed. */
#include "../../algs/api/library/arrow_features.h"
#include "fuzz_bytes.h"

#include "../unit/api/arrow_rows.h"

static int64_t n_bytes_seen;

static void spoil_bytes(uint8_t *bytes, int64_t n)
{
    static const uint8_t values[] = {0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0xF0};
    n_bytes_seen += n;
    for (int m = n > 0 ? pick(4) : 0; m > 0; m--)
        bytes[pick((int)n)] = one_in(2) ? values[pick(8)] : (uint8_t)pick(256);
}

static void *buffer_of(const struct ArrowArray *array, int i)
{
    return (void *)(uintptr_t)array->buffers[i];
}

/* Changes offsets of lists to any value. The length of the child stays
 * right. */
static void spoil_lists(struct ArrowArray *array, int levels, int is_large)
{
    int64_t width = is_large ? 8 : 4;
    for (; levels > 0; levels--, array = array->children[0])
    {
        if (one_in(2))
            spoil_bytes(buffer_of(array, 1), (array->length + 1) * width);
    }
}

static void spoil_wkb(struct ArrowArray *array, enum arrow_form form,
                      int64_t n_rows)
{
    const int64_t *large = array->buffers[1], *used;
    const int32_t *small = array->buffers[1];
    if (form != FORM_VIEW)
    {
        spoil_bytes(buffer_of(array, 2),
                    form == FORM_BINARY ? small[n_rows] : large[n_rows]);
        return;
    }
    used = array->buffers[4];
    spoil_bytes(buffer_of(array, 2), used[0]);
    spoil_bytes(buffer_of(array, 3), used[1]);
    if (one_in(2))
        spoil_bytes(buffer_of(array, 1), 16 * n_rows);
}

/* Reduces the number of elements, or sets senseless counts. */
static void spoil_struct(struct ArrowArray *array)
{
    switch (pick(8))
    {
        case 0:
            array->length = pick((int)array->length + 1);
            break;
        case 1:
            array->length = -1;
            break;
        case 2:
            array->offset = -pick(3);
            break;
        case 3:
            array->null_count = pick(3);
            break;
        case 4:
            array->length = INT64_MAX;
            break;
        case 5:
            array->offset = INT64_MAX;
            break;
        default:
            break;
    }
    for (int64_t i = 0; i < array->n_children; i++)
    {
        if (one_in(4))
            spoil_struct(array->children[i]);
    }
}

static void spoil(const struct arrow_rows *rows,
                  const struct arrow_options *options, struct ArrowArray *array)
{
    struct ArrowArray *column = options->is_column ? array->children[1] : array;
    const int64_t *offset[3];
    int64_t n[3];
    if (options->form < FORM_SEPARATED)
        spoil_wkb(column, options->form, rows->n_rows);
    else
        spoil_lists(column, list_levels(rows, offset, n), options->is_large);
    if (one_in(3))
        spoil_struct(array);
}

/* Reads a changed array. Restores it afterwards, since its owner must free
 * it. */
static void read_spoiled(const struct arrow_rows *rows,
                         const struct arrow_options *options)
{
    struct arrow_schema schema;
    struct arrow_layout layout;
    struct arrow_features features;
    struct oj_error err;
    oj_status status = OJ_OK;
    memset(&features, 0, sizeof features);
    make_schema(rows, options, &schema);
    require(arrow_layout_read(&schema.node[0], NULL, 0, &layout, &err) == OJ_OK,
            "a good schema is refused");
    for (int times = 1 + pick(3); status == OJ_OK && times > 0; times--)
    {
        struct ArrowArray array;
        make_array(rows, options, &array);
        if (!one_in(3))
            spoil(rows, options, &array);
        status = arrow_features_add(&features, &layout, &array, &err);
        require(array.release == NULL, "an array is not released");
    }
    if (status == OJ_OK &&
        arrow_features_make_layer(&features, 1 + pick(2), NULL, &err) == OJ_OK)
        require(oj_flat_check(&features.flat, &err) == OJ_OK,
                "the layer is inconsistent");
    arrow_features_free(&features);
}

int main(int argc, char **argv)
{
    static const enum oj_part_kind kinds[] = {OJ_PART_POINT, OJ_PART_LINE,
                                              OJ_PART_POLYGON};
    long n = argc > 1 ? atol(argv[1]) : 20000;
    for (long i = 0; i < n; i++)
    {
        struct arrow_rows rows;
        struct arrow_options options = {0};
        random_state = (uint64_t)i;
        make_rows(&rows, kinds[pick(3)], pick(2), 1 + pick(MOST_ROWS - 1),
                  pick(2));
        options.form = (enum arrow_form)pick(5);
        options.n_ordinates = 2 + pick(3);
        options.is_large = pick(2);
        options.is_column = pick(2);
        options.has_nulls = pick(2);
        options.skip = pick(rows.n_rows);
        read_spoiled(&rows, &options);
    }
    printf("fuzz_arrow: %ld arrays, %lld bytes of WKB, views and offsets\n", n,
           (long long)n_bytes_seen);
    return 0;
}
