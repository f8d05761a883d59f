/* Columns in memory, and values that are stored in fields of another type.
 * Kinds: unit, degenerate. */
#include "../layers.h"
#include "../run_tests.h"

#include "../../../flatten/read/oj_attribute_table.h"
#include "../../../flatten/read/oj_layer_read.h"
#include "../../../flatten/read/oj_value.h"

#include <float.h>
#include <limits.h>
#include <stdio.h>

static int every_field[N_FIELDS];

static struct oj_read_options reading(int use_lanes)
{
    struct oj_read_options options;
    memset(&options, 0, sizeof options);
    options.batch_rows = 77;
    options.limit = -1;
    options.lanes = use_lanes ? OJ_LANES_ALL : 0;
    options.fields = every_field;
    options.n_fields = N_FIELDS;
    for (int i = 0; i < N_FIELDS; i++)
        every_field[i] = i;
    return options;
}

/* Every value is read from the table as it was in the feature. */
TEST_LOOP(unit_tables_give_back_what_they_got, 0, 3)
{
    GDALDatasetH in =
        make_layer(_i ? "GPKG" : "Memory", "/vsimem/table.gpkg",
                   _i ? N_SIMPLE_FIELDS : N_FIELDS, wkbPoint, NULL);
    OGRLayerH layer = first_layer(in);
    struct oj_read_options options = reading(_i == 2);
    LAYER flat = {0};
    struct oj_table *table;
    struct oj_read_counts counts;
    struct oj_setter setters[N_FIELDS];
    OGRFeatureH feature, copy;
    options.n_fields = _i ? N_SIMPLE_FIELDS : N_FIELDS;
    add_points(layer, 500, 0);
    ck_assert_int_eq(oj_layer_read_all(layer, &options, &flat, &table, &counts,
                                       NULL, NULL, NULL),
                     OJ_OK);
    ck_assert_int_eq(counts.lane != NULL, _i == 2);
    ck_assert_int_eq(oj_table_rows(table), 500);
    ck_assert_int_eq(oj_table_columns(table), options.n_fields);
    ck_assert_int_gt(oj_table_bytes(table), 500 * 20);
    memset(setters, 0, sizeof setters);
    for (int f = 0; f < options.n_fields; f++)
    {
        OGRFieldSubType subtype;
        ck_assert_int_eq(oj_table_type(table, f, &subtype),
                         test_fields[f].type);
        ck_assert_int_eq(subtype, test_fields[f].subtype);
        ck_assert_int_eq(
            oj_value_setter_init(&setters[f], test_fields[f].type, subtype,
                                 OGR_L_GetLayerDefn(layer), f, NULL),
            OJ_OK);
        ck_assert(setters[f].is_same);
    }
    copy = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    OGR_L_ResetReading(layer);
    for (int64_t row = 0; row < 500; row++)
    {
        feature = OGR_L_GetNextFeature(layer);
        ck_assert_int_eq(flat.fid[row], OGR_F_GetFID(feature));
        for (int f = 0; f < options.n_fields; f++)
        {
            struct oj_value value;
            oj_table_value(table, row, f, &value);
            ck_assert_int_eq(
                oj_value_setter_set(&setters[f], copy, &value, NULL), OJ_OK);
            same_value(feature, copy, f, 1);
        }
        OGR_F_Destroy(feature);
    }
    for (int f = 0; f < options.n_fields; f++)
        oj_value_setter_free(&setters[f]);
    OGR_F_Destroy(copy);
    oj_table_free(table);
    GDALClose(in);
    VSIUnlink("/vsimem/table.gpkg");
}

/* Stores a value of one type in a field of another type, which had another
 * value before. Returns the result as OGR writes it, or "-" for NULL. */
static const char *convert_value(OGRFieldType from, const OGRField *raw,
                                 OGRFieldType to, OGRFieldSubType subtype)
{
    static char text[200];
    OGRFeatureDefnH defn = OGR_FD_Create("output");
    OGRFieldDefnH field = OGR_Fld_Create("f", to);
    OGRFeatureH feature;
    struct oj_setter setter;
    struct oj_value value;
    OGR_FD_Reference(defn);
    OGR_Fld_SetSubType(field, subtype);
    OGR_FD_AddFieldDefn(defn, field);
    OGR_Fld_Destroy(field);
    feature = OGR_F_Create(defn);
    OGR_F_SetFieldString(feature, 0, "77");
    memset(&setter, 0, sizeof setter);
    value.raw = *raw;
    value.n_text = -1;
    ck_assert_int_eq(
        oj_value_setter_init(&setter, from, OFSTNone, defn, 0, NULL), OJ_OK);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    ck_assert_int_eq(oj_value_setter_set(&setter, feature, &value, NULL),
                     OJ_OK);
    CPLPopErrorHandler();
    ck_assert(OGR_F_IsFieldSet(feature, 0));
    CPLsnprintf(text, sizeof text, "%s",
                OGR_F_IsFieldNull(feature, 0)
                    ? "-"
                    : OGR_F_GetFieldAsString(feature, 0));
    oj_value_setter_free(&setter);
    OGR_F_Destroy(feature);
    OGR_FD_Release(defn);
    return text;
}

TEST(unit_numbers_become_other_numbers_and_text)
{
    OGRField v;
    memset(&v, 0, sizeof v);
    v.Integer = -5;
    ck_assert_str_eq(convert_value(OFTInteger, &v, OFTInteger64, OFSTNone),
                     "-5");
    ck_assert_str_eq(convert_value(OFTInteger, &v, OFTReal, OFSTNone), "-5");
    ck_assert_str_eq(convert_value(OFTInteger, &v, OFTString, OFSTNone), "-5");
    memset(&v, 0, sizeof v);
    v.Integer64 = 9007199254740993LL;
    ck_assert_str_eq(convert_value(OFTInteger64, &v, OFTString, OFSTNone),
                     "9007199254740993");
    ck_assert_str_eq(convert_value(OFTInteger64, &v, OFTInteger, OFSTNone),
                     "-");
    v.Integer64 = INT_MIN;
    ck_assert_str_eq(convert_value(OFTInteger64, &v, OFTInteger, OFSTNone),
                     "-2147483648");
    memset(&v, 0, sizeof v);
    v.Real = 0.1;
    ck_assert_str_eq(convert_value(OFTReal, &v, OFTString, OFSTNone), "0.1");
    v.Real = 1.0 / 3.0;
    ck_assert_double_eq(
        CPLAtof(convert_value(OFTReal, &v, OFTString, OFSTNone)), 1.0 / 3.0);
    v.Real = DBL_MAX;
    ck_assert_double_eq(
        CPLAtof(convert_value(OFTReal, &v, OFTString, OFSTNone)), DBL_MAX);
    ck_assert_str_eq(convert_value(OFTReal, &v, OFTInteger, OFSTNone), "-");
    ck_assert_str_eq(convert_value(OFTReal, &v, OFTInteger64, OFSTNone), "-");
    v.Real = 9223372036854775808.0;
    ck_assert_str_eq(convert_value(OFTReal, &v, OFTInteger64, OFSTNone), "-");
    v.Real = -9223372036854775808.0;
    ck_assert_str_eq(convert_value(OFTReal, &v, OFTInteger64, OFSTNone),
                     "-9223372036854775808");
    v.Real = NAN;
    ck_assert_str_eq(convert_value(OFTReal, &v, OFTInteger, OFSTNone), "-");
    v.Real = -2.0;
    ck_assert_str_eq(convert_value(OFTReal, &v, OFTInteger, OFSTNone), "-2");
}

TEST(unit_subtypes_keep_their_range)
{
    OGRField v;
    memset(&v, 0, sizeof v);
    v.Integer = 5;
    ck_assert_str_eq(convert_value(OFTInteger, &v, OFTInteger, OFSTBoolean),
                     "1");
    v.Integer = 100000;
    ck_assert_str_eq(convert_value(OFTInteger, &v, OFTInteger, OFSTInt16),
                     "32767");
}

TEST(degenerate_text_that_is_no_number_or_date)
{
    OGRField v;
    memset(&v, 0, sizeof v);
    v.String = "2020/02/03";
    ck_assert_str_eq(convert_value(OFTString, &v, OFTDate, OFSTNone),
                     "2020/02/03");
    v.String = "not a date";
    ck_assert_str_eq(convert_value(OFTString, &v, OFTDate, OFSTNone), "-");
    ck_assert_str_eq(convert_value(OFTString, &v, OFTDateTime, OFSTNone), "-");
    v.String = "12.5";
    ck_assert_str_eq(convert_value(OFTString, &v, OFTReal, OFSTNone), "12.5");
}

TEST(unit_times_and_lists)
{
    int ints[] = {1, -2};
    GIntBig longs[] = {1LL << 40, 3};
    double reals[] = {0.5, 2};
    char *words[] = {"x", "y", NULL};
    OGRField v;
    memset(&v, 0, sizeof v);
    v.Date.Year = 2021;
    v.Date.Month = 12;
    v.Date.Day = 31;
    v.Date.Hour = 23;
    v.Date.Minute = 5;
    v.Date.Second = 6.5f;
    v.Date.TZFlag = 100;
    ck_assert_str_eq(convert_value(OFTDateTime, &v, OFTString, OFSTNone),
                     "2021/12/31 23:05:06.500+00");
    ck_assert_str_eq(convert_value(OFTDateTime, &v, OFTDate, OFSTNone),
                     "2021/12/31");
    v.Date.Hour = v.Date.Minute = v.Date.TZFlag = 0;
    v.Date.Second = 0;
    ck_assert_str_eq(convert_value(OFTDate, &v, OFTDateTime, OFSTNone),
                     "2021/12/31 00:00:00");
    memset(&v, 0, sizeof v);
    v.IntegerList.nCount = 2;
    v.IntegerList.paList = ints;
    ck_assert_str_eq(
        convert_value(OFTIntegerList, &v, OFTInteger64List, OFSTNone),
        "(2:1,-2)");
    ck_assert_str_eq(convert_value(OFTIntegerList, &v, OFTRealList, OFSTNone),
                     "(2:1,-2)");
    ck_assert_str_eq(convert_value(OFTIntegerList, &v, OFTStringList, OFSTNone),
                     "(2:1,-2)");
    ck_assert_str_eq(convert_value(OFTIntegerList, &v, OFTString, OFSTNone),
                     "(2:1,-2)");
    v.Integer64List.paList = longs;
    ck_assert_str_eq(convert_value(OFTInteger64List, &v, OFTRealList, OFSTNone),
                     "(2:1099511627776,3)");
    v.RealList.paList = reals;
    ck_assert_str_eq(convert_value(OFTRealList, &v, OFTStringList, OFSTNone),
                     "(2:0.5,2)");
    v.StringList.paList = words;
    ck_assert_str_eq(convert_value(OFTStringList, &v, OFTString, OFSTNone),
                     "(2:x,y)");
    ck_assert_str_eq(convert_value(OFTStringList, &v, OFTStringList, OFSTJSON),
                     "(2:x,y)");
}

TEST(degenerate_null_and_unset)
{
    OGRField v;
    OGR_RawField_SetNull(&v);
    ck_assert_str_eq(convert_value(OFTInteger, &v, OFTString, OFSTNone), "-");
    ck_assert_str_eq(convert_value(OFTString, &v, OFTString, OFSTNone), "-");
}

int main(void)
{
    tests_open("table");
    GDALAllRegister();
    return tests_run();
}
