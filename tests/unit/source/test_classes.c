/* Compares classes of equal attributes with the values themselves, pair by
 * pair.
 * Kinds: unit, property. */
#include "../run_tests.h"

#include "../../../driver/source/oj_side_compared_columns.h"
#include "../../../flatten/read/oj_layer_read.h"

#include <gdal.h>
#include <ogr_api.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
    N_ROWS = 400, /* more than a block, fewer than fill the first hash table */
    N_FIELDS = 4
};

static const OGRFieldType types[N_FIELDS] = {OFTInteger, OFTInteger64, OFTReal,
                                             OFTString};
static const char *const texts[] = {
    "1", "2", "", "x", "1.5", "-3", "9007199254740993"};
static const double reals[] = {1.0,   2.0, 1.5, -3.0, -0.0, 9007199254740992.0,
                               1e300, NAN};
static const int64_t wholes[] = {
    1, 2, 0, -3, 9007199254740992, 9007199254740993};

#define PICK(list) (list)[rand() % (int)(sizeof(list) / sizeof *(list))]

/* Makes a layer of random values. One in five is NULL. */
static GDALDatasetH make_layer(unsigned seed)
{
    GDALDriverH driver = GDALGetDriverByName("Memory");
    GDALDatasetH dataset;
    OGRLayerH layer;
    if (driver == NULL)
        driver = GDALGetDriverByName("MEM");
    dataset = GDALCreate(driver, "", 0, 0, 0, GDT_Unknown, NULL);
    layer = GDALDatasetCreateLayer(dataset, "rows", NULL, wkbPoint, NULL);
    srand(seed);
    for (int f = 0; f < N_FIELDS; f++)
    {
        char name[8];
        OGRFieldDefnH field;
        snprintf(name, sizeof name, "f%d", f);
        field = OGR_Fld_Create(name, types[f]);
        OGR_L_CreateField(layer, field, 1);
        OGR_Fld_Destroy(field);
    }
    for (int row = 0; row < N_ROWS; row++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        if (rand() % 5 > 0)
            OGR_F_SetFieldInteger(feature, 0, (int)(PICK(wholes) % 1000));
        if (rand() % 5 > 0)
            OGR_F_SetFieldInteger64(feature, 1, PICK(wholes));
        if (rand() % 5 > 0)
            OGR_F_SetFieldDouble(feature, 2, PICK(reals));
        if (rand() % 5 > 0)
            OGR_F_SetFieldString(feature, 3, PICK(texts));
        ck_assert_int_eq(OGR_L_CreateFeature(layer, feature), OGRERR_NONE);
        OGR_F_Destroy(feature);
    }
    return dataset;
}

/* A side that was read. */
struct class_side
{
    GDALDatasetH dataset;
    struct oj_flat_buf flat;
    struct oj_table *table;
};

static struct class_side read_side(unsigned seed)
{
    static const int fields[N_FIELDS] = {0, 1, 2, 3};
    struct class_side side = {0};
    struct oj_read_options options = {0};
    struct oj_read_counts counts;
    side.dataset = make_layer(seed);
    options.batch_rows = N_ROWS;
    options.limit = -1;
    options.fields = fields;
    options.n_fields = N_FIELDS;
    ck_assert_int_eq(oj_layer_read_all(GDALDatasetGetLayer(side.dataset, 0),
                                       &options, &side.flat, &side.table,
                                       &counts, NULL, NULL, NULL),
                     OJ_OK);
    return side;
}

static void free_side(struct class_side *side)
{
    oj_table_free(side->table);
    oj_flat_buf_free(&side->flat);
    GDALClose(side->dataset);
}

/* Returns 1 if both values are there and equal, otherwise 0. */
static int plain_equal(const struct class_side *a, int row_a, int f_a,
                       const struct class_side *b, int row_b, int f_b)
{
    OGRFeatureH x = OGR_L_GetFeature(GDALDatasetGetLayer(a->dataset, 0), row_a);
    OGRFeatureH y = OGR_L_GetFeature(GDALDatasetGetLayer(b->dataset, 0), row_b);
    int equal = 0;
    if (OGR_F_IsFieldSetAndNotNull(x, f_a) &&
        OGR_F_IsFieldSetAndNotNull(y, f_b))
    {
        if (types[f_a] == OFTString || types[f_b] == OFTString)
            equal = (types[f_a] != OFTReal ||
                     !isnan(OGR_F_GetFieldAsDouble(x, f_a))) &&
                    strcmp(OGR_F_GetFieldAsString(x, f_a),
                           OGR_F_GetFieldAsString(y, f_b)) == 0;
        else if (types[f_a] != OFTReal && types[f_b] != OFTReal)
            equal = OGR_F_GetFieldAsInteger64(x, f_a) ==
                    OGR_F_GetFieldAsInteger64(y, f_b);
        else if (types[f_a] == OFTReal && types[f_b] == OFTReal)
            equal = OGR_F_GetFieldAsDouble(x, f_a) ==
                    OGR_F_GetFieldAsDouble(y, f_b);
        else
        {
            double real = types[f_a] == OFTReal
                              ? OGR_F_GetFieldAsDouble(x, f_a)
                              : OGR_F_GetFieldAsDouble(y, f_b);
            int64_t whole = types[f_a] == OFTReal
                                ? OGR_F_GetFieldAsInteger64(y, f_b)
                                : OGR_F_GetFieldAsInteger64(x, f_a);
            equal = real == floor(real) && fabs(real) < 1e18 &&
                    (int64_t)real == whole;
        }
    }
    OGR_F_Destroy(x);
    OGR_F_Destroy(y);
    return equal;
}

static struct oj_side_field field_at(int f)
{
    struct oj_side_field field = {f, types[f], OFSTNone, NULL, NULL};
    return field;
}

/* Makes the classes of -on for pairs of fields. Rows are equal if each field of
 * the input equals its field of the join side. Returns a status. */
static oj_status new_classes(const struct oj_side_field *left,
                             const struct oj_side_field *right, int n_fields,
                             struct oj_side_columns *out, struct oj_error *err)
{
    OJ_TRY(oj_side_columns_open(out, NULL, err));
    for (int i = 0; i < n_fields; i++)
    {
        OJ_TRY(oj_side_columns_add(out, OJ_MADE_ON_CLASS, 0, &left[i], err));
        OJ_TRY(oj_side_columns_add(out, OJ_MADE_ON_CLASS, 1, &right[i], err));
    }
    return OJ_OK;
}

static oj_status find_classes(struct oj_side_columns *classes, int side,
                              int insert, const struct oj_table *table,
                              int32_t *class_of, struct oj_error *err)
{
    const struct oj_attributes values = {.table = table};
    struct oj_compared_columns made = {0};
    struct oj_missing_values missing = {0};
    struct oj_flat flat = {.n_features = N_ROWS};
    oj_status status = oj_side_columns_make(classes, side, insert, &values,
                                            &made, &flat, &missing, err);
    if (status == OJ_OK)
        memcpy(class_of, flat.on_class, N_ROWS * sizeof *class_of);
    oj_compared_columns_free(&made);
    return status;
}

/* Every pair of field types. Pairs of rows are compared at a fixed stride. */
TEST_LOOP(property_classes_are_equal_where_values_are, 0, N_FIELDS *N_FIELDS)
{
    struct class_side a = read_side(1), b = read_side(2);
    struct oj_side_field from = field_at(_i / N_FIELDS);
    struct oj_side_field to = field_at(_i % N_FIELDS);
    struct oj_side_columns classes = {0};
    int32_t class_a[N_ROWS], class_b[N_ROWS];
    int n_equal = 0;
    ck_assert_int_eq(new_classes(&from, &to, 1, &classes, NULL), OJ_OK);
    ck_assert_int_eq(find_classes(&classes, 1, 1, b.table, class_b, NULL),
                     OJ_OK);
    ck_assert_int_eq(find_classes(&classes, 0, 0, a.table, class_a, NULL),
                     OJ_OK);
    for (int i = 0; i < N_ROWS; i += 3)
    {
        for (int j = 0; j < N_ROWS; j += 7)
        {
            int equal = class_a[i] >= 0 && class_a[i] == class_b[j];
            ck_assert_msg(equal ==
                              plain_equal(&a, i, from.column, &b, j, to.column),
                          "fields %d and %d, rows %d and %d", from.column,
                          to.column, i, j);
            n_equal += equal;
        }
    }
    ck_assert_int_gt(n_equal, 0);
    oj_side_columns_close(&classes);
    free_side(&a);
    free_side(&b);
}

/* Rows with four fields are equal if each field is. Before the values of the
 * join side are read, no row of the other side has a class. */
TEST(unit_several_fields)
{
    struct class_side a = read_side(3);
    struct oj_side_field fields[N_FIELDS];
    struct oj_side_columns classes = {0};
    int32_t first[N_ROWS], again[N_ROWS];
    for (int f = 0; f < N_FIELDS; f++)
        fields[f] = field_at(f);
    ck_assert_int_eq(new_classes(fields, fields, N_FIELDS, &classes, NULL),
                     OJ_OK);
    ck_assert_int_eq(find_classes(&classes, 0, 0, a.table, first, NULL), OJ_OK);
    for (int i = 0; i < N_ROWS; i++)
        ck_assert_int_eq(first[i], -1);
    ck_assert_int_eq(find_classes(&classes, 1, 1, a.table, first, NULL), OJ_OK);
    ck_assert_int_eq(find_classes(&classes, 0, 0, a.table, again, NULL), OJ_OK);
    ck_assert_mem_eq(first, again, sizeof first);
    for (int i = 0; i < N_ROWS; i += 5)
    {
        for (int j = 0; j < N_ROWS; j += 3)
        {
            int equal = 1;
            for (int f = 0; f < N_FIELDS && equal; f++)
                equal = plain_equal(&a, i, f, &a, j, f);
            ck_assert_int_eq(equal, first[i] >= 0 && first[i] == first[j]);
        }
    }
    oj_side_columns_close(&classes);
    free_side(&a);
}

int main(void)
{
    tests_open("classes");
    GDALAllRegister();
    return tests_run();
}
