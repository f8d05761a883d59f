/* Parsing of distances, and their conversion to the unit of the join: every
 * cell of the table in oj_distance_scale.h, and the messages of the command and
 * of the library.
 * Kind: unit. */
#include "../run_tests.h"

#include "../../../algs/api/rows/oj_distance_scale.h"
#include "../../../algs/foundations/base/oj_geodesic.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- as they are written ------------------------------------------------- */

static const struct
{
    const char *text;
    double value;
    enum oj_unit unit;
} written[] = {
    {"0", 0, OJ_UNIT_CRS},
    {"100", 100, OJ_UNIT_CRS},
    {"100ft", 100, OJ_UNIT_FT},
    {"1.5 km", 1.5, OJ_UNIT_KM},
    {"2MI", 2, OJ_UNIT_MI},
    {"1e2us-ft", 100, OJ_UNIT_US_FT},
    {".25m", 0.25, OJ_UNIT_M},
    {"0.01deg", 0.01, OJ_UNIT_DEG},
    {"inf", INFINITY, OJ_UNIT_CRS},
    {"INFINITY", INFINITY, OJ_UNIT_CRS},
    {"infdeg", INFINITY, OJ_UNIT_DEG},
    {"infinitym", INFINITY, OJ_UNIT_M},
    {"-0", 0, OJ_UNIT_CRS},
};

TEST_LOOP(unit_distances_as_written, 0, sizeof written / sizeof *written)
{
    struct oj_distance d;
    struct oj_error err;
    if (oj_distance_parse("-", "d", written[_i].text, &d, &err) != OJ_OK)
        ck_abort_msg("%s", err.message);
    ck_assert(d.value == written[_i].value);
    ck_assert_int_eq((int)d.unit, (int)written[_i].unit);
}

static const char *const unwritten[][2] = {
    {"",
     "must be a number, with a unit or without (100, 100ft, 0.5km), not ''"},
    {"ft", "must be a number, with a unit or without (100, 100ft, 0.5km), not "
           "'ft'"},
    {"-1", "must be 0 or more, not '-1'"},
    {"-inf", "must be 0 or more, not '-inf'"},
    {"nan", "must be 0 or more, not 'nan'"},
    {"1,5", "1,5: write a point for the comma, as 1.5"},
    {"1x", "1x: unknown unit 'x'; known are m, km, ft, us-ft, mi and deg, and "
           "none means the units of the CRS"},
    {"1 m ", "1 m : unknown unit 'm '; known are m, km, ft, us-ft, mi and deg, "
             "and none means the units of the CRS"},
};

TEST_LOOP(unit_texts_that_are_no_distance, 0,
          sizeof unwritten / sizeof *unwritten)
{
    struct oj_distance d;
    struct oj_error err;
    char expected[500];
    ck_assert_int_eq(
        oj_distance_parse("-", "max_distance", unwritten[_i][0], &d, &err),
        OJ_ERR_ARG);
    snprintf(expected, sizeof expected, "-max_distance %s", unwritten[_i][1]);
    ck_assert_str_eq(err.message, expected);
    ck_assert_int_eq(
        oj_distance_parse("", "max_distance", unwritten[_i][0], &d, &err),
        OJ_ERR_ARG);
    ck_assert_str_eq(err.message, expected + 1);
}

static int is_field(const void *name, const char *asked)
{
    return strcmp(name, asked) == 0;
}

/* A word that is itself the name of a field is read without a unit. Quotes end
 * a name. */
TEST(unit_fields_of_distances)
{
    static const struct
    {
        const char *word, *field, *name;
        enum oj_unit unit;
    } cases[] = {{"reach", "reach", "reach", OJ_UNIT_CRS},
                 {"reach:KM", "reach", "reach", OJ_UNIT_KM},
                 {"a:b", "a:b", "a:b", OJ_UNIT_CRS},
                 {"a:km", "a:km", "a:km", OJ_UNIT_CRS},
                 {"\"a:km\"", "", "a:km", OJ_UNIT_CRS},
                 {"\"a:b\":m", "", "a:b", OJ_UNIT_M},
                 {"\"say \"\"x\"\"\":ft", "", "say \"x\"", OJ_UNIT_FT}};
    enum oj_unit unit;
    struct oj_error err;
    char name[40];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        ck_assert_int_eq(oj_distance_field_parse("-", "f", cases[i].word,
                                                 is_field, cases[i].field, name,
                                                 &unit, &err),
                         OJ_OK);
        ck_assert_str_eq(name, cases[i].name);
        ck_assert_int_eq((int)unit, (int)cases[i].unit);
    }
    ck_assert_int_eq(oj_distance_field_parse("-", "max_distance_field",
                                             "reach:x", is_field, "reach", name,
                                             &unit, &err),
                     OJ_ERR_ARG);
    ck_assert_str_eq(err.message,
                     "-max_distance_field reach:x: unknown unit 'x'; known are "
                     "m, km, ft, us-ft, mi and deg");
    ck_assert_int_eq(oj_distance_field_parse("-", "f", "\"a\"b:m", is_field,
                                             "a", name, &unit, &err),
                     OJ_ERR_ARG);
}

/* ---- the table ----------------------------------------------------------- */

static const double us_foot = 12.0 / 39.37;
static const double degree = 3.14159265358979323846 / 180.0;

static struct oj_distance_frame frame_of(const char *dash,
                                         enum oj_crs_kind kind, double unit)
{
    return (struct oj_distance_frame){
        .dash = dash, .kind = kind, .unit = unit, .crs = "EPSG:1"};
}

/* Returns the scale. Returns NaN if the distance is refused, with the reason in
 * err. */
static double scale_of(const struct oj_distance_frame *frame, enum oj_unit unit,
                       struct oj_error *err)
{
    char text[20];
    double scale = 0.0;
    snprintf(text, sizeof text, "1%s", oj_units[unit].name);
    *err = (struct oj_error){OJ_OK, ""};
    if (oj_distance_scale(frame, "max_distance", text, unit, &scale, err) !=
        OJ_OK)
        return (double)NAN;
    return scale;
}

#define NONE (-1.0)

/* Expected scales for the units: unit of the CRS, m, km, ft, us-ft, mi, deg.
 * NONE: refused. Each kind of CRS has two rows: plain numbers are accepted, or
 * not. */
static const struct
{
    enum oj_crs_kind kind;
    enum oj_metric metric;
    double unit;
    int takes_plain_numbers;
    double scale[OJ_N_UNITS];
} table[] = {
    {OJ_CRS_KIND_NONE,
     OJ_METRIC_PLANAR,
     NAN,
     0,
     {1, NONE, NONE, NONE, NONE, NONE, NONE}},
    {OJ_CRS_KIND_NONE,
     OJ_METRIC_PLANAR,
     NAN,
     1,
     {1, NONE, NONE, NONE, NONE, NONE, NONE}},
    {OJ_CRS_KIND_UNKNOWN,
     OJ_METRIC_PLANAR,
     NAN,
     0,
     {NONE, NONE, NONE, NONE, NONE, NONE, NONE}},
    {OJ_CRS_KIND_UNKNOWN,
     OJ_METRIC_PLANAR,
     NAN,
     1,
     {1, NONE, NONE, NONE, NONE, NONE, NONE}},
    {OJ_CRS_KIND_PROJECTED,
     OJ_METRIC_PLANAR,
     1.0,
     0,
     {1, 1, 1000, 0.3048, 1200.0 / 3937.0, 1609.344, NONE}},
    {OJ_CRS_KIND_PROJECTED,
     OJ_METRIC_PLANAR,
     0.3048,
     1,
     {1, 1 / 0.3048, 1000 / 0.3048, 1, 1200.0 / 3937.0 / 0.3048, 5280, NONE}},
    {OJ_CRS_KIND_PROJECTED,
     OJ_METRIC_PLANAR,
     NAN,
     0,
     {1, NONE, NONE, NONE, NONE, NONE, NONE}},
    {OJ_CRS_KIND_LOCAL,
     OJ_METRIC_PLANAR,
     1000.0,
     0,
     {1, 0.001, 1, 0.3048 / 1000, 1200.0 / 3937.0 / 1000, 1.609344, NONE}},
    {OJ_CRS_KIND_GEOGRAPHIC,
     OJ_METRIC_PLANAR,
     3.14159265358979323846 / 180.0,
     0,
     {NONE, NONE, NONE, NONE, NONE, NONE, 1}},
    {OJ_CRS_KIND_GEOGRAPHIC,
     OJ_METRIC_PLANAR,
     3.14159265358979323846 / 200.0,
     1,
     {1, NONE, NONE, NONE, NONE, NONE, 10.0 / 9.0}},
    {OJ_CRS_KIND_GEOGRAPHIC,
     OJ_METRIC_SPHERE,
     3.14159265358979323846 / 180.0,
     0,
     {1, 1, 1000, 0.3048, 1200.0 / 3937.0, 1609.344, NONE}},
    {OJ_CRS_KIND_GEOGRAPHIC,
     OJ_METRIC_SPHERE,
     3.14159265358979323846 / 200.0,
     1,
     {NONE, NONE, NONE, NONE, NONE, NONE, NONE}},
    {OJ_CRS_KIND_PROJECTED,
     OJ_METRIC_SPHERE,
     1.0,
     1,
     {NONE, NONE, NONE, NONE, NONE, NONE, NONE}},
    {OJ_CRS_KIND_UNKNOWN,
     OJ_METRIC_SPHERE,
     NAN,
     0,
     {NONE, NONE, NONE, NONE, NONE, NONE, NONE}},
    {OJ_CRS_KIND_NONE,
     OJ_METRIC_SPHERE,
     NAN,
     0,
     {NONE, NONE, NONE, NONE, NONE, NONE, NONE}},
    {OJ_CRS_KIND_NONE,
     OJ_METRIC_SPHERE,
     NAN,
     1,
     {1, 1, 1000, 0.3048, 1200.0 / 3937.0, 1609.344, NONE}},
};

TEST_LOOP(unit_the_table, 0, sizeof table / sizeof *table)
{
    struct oj_distance_frame frame =
        frame_of("-", table[_i].kind, table[_i].unit);
    struct oj_error err;
    frame.metric = table[_i].metric;
    frame.takes_plain_numbers = table[_i].takes_plain_numbers;
    for (int unit = 0; unit < OJ_N_UNITS; unit++)
    {
        double expected = table[_i].scale[unit];
        double scale = scale_of(&frame, (enum oj_unit)unit, &err);
        if (expected == NONE)
        {
            ck_assert_msg(isnan(scale), "unit %d: %g", unit, scale);
            ck_assert(err.message[0] != '\0');
        }
        else
            ck_assert_msg(fabs(scale - expected) <= 1e-12 * expected,
                          "unit %d: %.17g, not %.17g: %s", unit, scale,
                          expected, err.message);
    }
}

/* 100us-ft in a CRS of US survey feet stays 100, whatever factor the CRS gives
 * for its unit. */
TEST(unit_units_of_the_crs_are_exact)
{
    static const double feet[] = {1200.0 / 3937.0, 12.0 / 39.37,
                                  0.304800609601219, 0.3048006096012192};
    struct oj_error err;
    for (int i = 0; i < 4; i++)
    {
        struct oj_distance_frame frame =
            frame_of("", OJ_CRS_KIND_PROJECTED, feet[i]);
        ck_assert(scale_of(&frame, OJ_UNIT_US_FT, &err) == 1.0);
        ck_assert(scale_of(&frame, OJ_UNIT_FT, &err) != 1.0);
    }
}

/* ---- messages ------------------------------------------------------------ */

static const struct
{
    enum oj_crs_kind kind;
    enum oj_metric metric;
    double unit;
    enum oj_unit asked;
    const char *command, *library;
} messages[] = {
    {OJ_CRS_KIND_NONE, OJ_METRIC_PLANAR, NAN, OJ_UNIT_M,
     "-max_distance 1m: the input layer has no CRS, so the length of units is "
     "unknown; name it with -s_srs, or write the distance without a unit",
     "max_distance=1m: the left side has no CRS, so the length of units is "
     "unknown; name it with left_crs, or write the distance without a unit"},
    {OJ_CRS_KIND_GEOGRAPHIC, OJ_METRIC_PLANAR, 0.017453292519943295,
     OJ_UNIT_CRS,
     "the CRS of the join, EPSG:1, is in degrees, and -max_distance 1 has no "
     "fixed length there: use -metric sphere for metres along great circles, "
     "or name a projected CRS to join in with -t_srs, or write degrees, for "
     "example -max_distance 0.01deg",
     "the CRS of the join, EPSG:1, is in degrees, and max_distance=1 has no "
     "fixed length there: use metric=sphere for metres along great circles, or "
     "bring both sides into a projected CRS, or write degrees, for example "
     "max_distance=0.01deg"},
    {OJ_CRS_KIND_PROJECTED, OJ_METRIC_PLANAR, 1.0, OJ_UNIT_DEG,
     "-max_distance 1deg: the CRS of the join is not in degrees; write m, km, "
     "ft, us-ft, mi, or no unit",
     "max_distance=1deg: the CRS of the join is not in degrees; write m, km, "
     "ft, us-ft, mi, or no unit"},
    {OJ_CRS_KIND_UNKNOWN, OJ_METRIC_PLANAR, NAN, OJ_UNIT_FT,
     "-max_distance 1ft: the CRS of the join, EPSG:1, does not state its unit, "
     "nor whether it is in degrees: give it as PROJJSON or WKT with -s_srs",
     "max_distance=1ft: the CRS of the join, EPSG:1, does not state its unit, "
     "nor whether it is in degrees: give it as PROJJSON or WKT, or write "
     "crs=ignore to take coordinates as they are"},
    {OJ_CRS_KIND_NONE, OJ_METRIC_SPHERE, NAN, OJ_UNIT_CRS,
     "-metric sphere measures between longitudes and latitudes, and the CRS of "
     "the join is unknown: bring both sides into degrees with -t_srs EPSG:4326 "
     "(the output too), or leave -metric out",
     "metric=sphere: the left side has no CRS; name it with left_crs, or write "
     "crs=ignore to take coordinates as they are"},
    {OJ_CRS_KIND_PROJECTED, OJ_METRIC_SPHERE, 1.0, OJ_UNIT_CRS,
     "-metric sphere measures between longitudes and latitudes, and the CRS of "
     "the join is EPSG:1: bring both sides into degrees with -t_srs EPSG:4326 "
     "(the output too), or leave -metric out",
     "metric=sphere measures between longitudes and latitudes, and the CRS of "
     "the join is EPSG:1: bring both sides into EPSG:4326, or leave metric "
     "out"},
    {OJ_CRS_KIND_GEOGRAPHIC, OJ_METRIC_SPHERE, 1.0, OJ_UNIT_CRS,
     "-metric sphere needs degrees, and the CRS of the join, EPSG:1, has "
     "another unit: use -t_srs EPSG:4326",
     "metric=sphere needs degrees, and the CRS of the join, EPSG:1, has "
     "another unit: bring both sides into EPSG:4326"},
    {OJ_CRS_KIND_GEOGRAPHIC, OJ_METRIC_SPHERE, 0.017453292519943295,
     OJ_UNIT_DEG,
     "-max_distance 1deg: with -metric sphere distances are lengths; write m, "
     "km, ft, us-ft, mi, or none for metres",
     "max_distance=1deg: with metric=sphere distances are lengths; write m, "
     "km, ft, us-ft, mi, or none for metres"},
};

TEST_LOOP(unit_messages, 0, sizeof messages / sizeof *messages)
{
    for (int i = 0; i < 2; i++)
    {
        struct oj_distance_frame frame =
            frame_of(i == 0 ? "-" : "", messages[_i].kind, messages[_i].unit);
        struct oj_error err;
        frame.metric = messages[_i].metric;
        ck_assert(isnan(scale_of(&frame, messages[_i].asked, &err)));
        ck_assert_str_eq(err.message,
                         i == 0 ? messages[_i].command : messages[_i].library);
    }
}

/* Messages of the library, whose frame names layers, for metrics of the globe
 * with a maximum distance of 1. */
TEST(unit_messages_of_layers_and_ellipsoids)
{
    struct oj_distance_frame none = frame_of("", OJ_CRS_KIND_NONE, (double)NAN);
    struct oj_distance_frame degrees =
        frame_of("-", OJ_CRS_KIND_GEOGRAPHIC, 0.017453292519943295);
    struct oj_error err;
    none.are_layers = 1;
    ck_assert(isnan(scale_of(&none, OJ_UNIT_M, &err)));
    ck_assert_str_eq(err.message,
                     "max_distance=1m: the sides have no CRS, so the length of "
                     "units is unknown; give a side with a CRS, or write the "
                     "distance without a unit");
    none.metric = OJ_METRIC_SPHERE;
    ck_assert(isnan(scale_of(&none, OJ_UNIT_CRS, &err)));
    ck_assert_str_eq(err.message,
                     "metric=sphere: the sides have no CRS; give a side with a "
                     "CRS, or write crs=ignore to take coordinates as they "
                     "are");
    if (!oj_geodesic_is_available())
        return;
    none.metric = degrees.metric = OJ_METRIC_ELLIPSOID;
    none.takes_plain_numbers = 1;
    ck_assert(isnan(scale_of(&none, OJ_UNIT_CRS, &err)));
    ck_assert_str_eq(err.message,
                     "metric=ellipsoid measures on the ellipsoid of a CRS, and "
                     "the sides have none: give a side with a CRS, or use "
                     "metric=sphere");
    none.are_layers = 0;
    ck_assert(isnan(scale_of(&none, OJ_UNIT_CRS, &err)));
    ck_assert_str_eq(err.message,
                     "metric=ellipsoid measures on the ellipsoid of a CRS, and "
                     "the left side has none: name it with left_crs, or use "
                     "metric=sphere");
    ck_assert(isnan(scale_of(&degrees, OJ_UNIT_CRS, &err)));
    ck_assert_str_eq(err.message,
                     "-metric ellipsoid measures on the ellipsoid of a CRS, "
                     "and the CRS of the join, EPSG:1, does not state its "
                     "ellipsoid: name with -s_srs a CRS that does");
    degrees.semi_major = 6378137.0;
    degrees.inverse_flattening = 2.0;
    degrees.crs = "unknown";
    ck_assert(isnan(scale_of(&degrees, OJ_UNIT_CRS, &err)));
    ck_assert_ptr_nonnull(
        strstr(err.message, "the ellipsoid of the CRS of the join, unknown, "
                            "has a flattening of 0.5, and geodesics are "));
}

/* ---- the distances of a join --------------------------------------------- */

static oj_status convert_distances(const struct oj_distance_frame *frame,
                                   enum oj_op op, const char *max,
                                   const char *min,
                                   struct oj_relation *relation,
                                   struct oj_error *err)
{
    struct oj_distance read[2];
    struct oj_distance_request request = {
        .max_distance = max != NULL ? &read[0] : NULL,
        .min_distance = min != NULL ? &read[1] : NULL};
    *relation = (struct oj_relation){.op = op};
    if (max != NULL)
        OJ_TRY(oj_distance_parse("-", "max_distance", max, &read[0], err));
    if (min != NULL)
        OJ_TRY(oj_distance_parse("-", "min_distance", min, &read[1], err));
    return oj_distances_convert(frame, &request, relation, err);
}

TEST(unit_distances_of_a_join)
{
    struct oj_distance_frame feet =
        frame_of("-", OJ_CRS_KIND_PROJECTED, us_foot);
    struct oj_distance_frame degrees =
        frame_of("-", OJ_CRS_KIND_GEOGRAPHIC, degree);
    struct oj_distance_frame unknown =
        frame_of("", OJ_CRS_KIND_UNKNOWN, (double)NAN);
    struct oj_relation r;
    struct oj_error err = {OJ_OK, ""};
    ck_assert_int_eq(
        convert_distances(&feet, OJ_OP_NEAREST, "1us-ft", "0.1", &r, &err),
        OJ_OK);
    ck_assert(r.max_distance == 1.0 && r.min_distance == 0.1);
    ck_assert_int_eq(
        convert_distances(&feet, OJ_OP_NEAREST, NULL, NULL, &r, &err), OJ_OK);
    ck_assert(isinf(r.max_distance) && r.min_distance == 0.0);
    /* joins without distances accept degrees */
    ck_assert_int_eq(
        convert_distances(&degrees, OJ_OP_INTERSECTS, NULL, NULL, &r, &err),
        OJ_OK);
    ck_assert_int_eq(
        convert_distances(&unknown, OJ_OP_INTERSECTS, NULL, NULL, &r, &err),
        OJ_OK);
    ck_assert(isinf(r.max_distance));

    ck_assert_int_eq(
        convert_distances(&degrees, OJ_OP_NEAREST, NULL, NULL, &r, &err),
        OJ_ERR_ARG);
    ck_assert_str_eq(
        err.message,
        "the CRS of the join, EPSG:1, is in degrees, where the nearest feature "
        "is not well defined: use -metric sphere, or name a projected CRS to "
        "join in with -t_srs, or accept distances in degrees with "
        "-max_distance infdeg");
    ck_assert_int_eq(
        convert_distances(&degrees, OJ_OP_NEAREST, "infdeg", NULL, &r, &err),
        OJ_OK);
    ck_assert_int_eq(
        convert_distances(&degrees, OJ_OP_DWITHIN, "5", NULL, &r, &err),
        OJ_ERR_ARG);
    ck_assert_int_eq(
        convert_distances(&unknown, OJ_OP_NEAREST, NULL, NULL, &r, &err),
        OJ_ERR_ARG);
    ck_assert(strstr(err.message, "crs=ignore") != NULL);
    degrees.takes_plain_numbers = unknown.takes_plain_numbers = 1;
    ck_assert_int_eq(
        convert_distances(&degrees, OJ_OP_NEAREST, NULL, NULL, &r, &err),
        OJ_OK);
    ck_assert_int_eq(
        convert_distances(&unknown, OJ_OP_DWITHIN, "5", NULL, &r, &err), OJ_OK);
    ck_assert(r.max_distance == 5.0);
}

/* Returns the message of a join without distances whose pairs are measured, or
 * "" if the join is not refused. */
static const char *
message_of_measured_pairs(const struct oj_distance_frame *frame, enum oj_op op,
                          const struct oj_distance_request *request,
                          struct oj_error *err)
{
    struct oj_relation r = {.op = op};
    *err = (struct oj_error){OJ_OK, ""};
    (void)!oj_distances_convert(frame, request, &r, err);
    return err->message;
}

/* Pairs that may be apart are not measured in degrees. */
TEST(unit_pairs_measured_in_degrees)
{
    static const struct oj_distance one_degree = {1.0, OJ_UNIT_DEG};
    static const enum oj_op apart[] = {OJ_OP_ATTRIBUTES, OJ_OP_SIMILAR,
                                       OJ_OP_DISJOINT, OJ_OP_BBOX};
    const struct oj_distance_request pick = {.picks_nearest = 1},
                                     bearing = {.wants_bearing = 1}, none = {0},
                                     within = {.max_distance = &one_degree,
                                               .picks_nearest = 1};
    struct oj_distance_frame degrees =
        frame_of("-", OJ_CRS_KIND_GEOGRAPHIC, degree);
    const struct oj_distance_frame metres =
        frame_of("-", OJ_CRS_KIND_PROJECTED, 1.0);
    const struct oj_distance_frame unknown =
        frame_of("", OJ_CRS_KIND_UNKNOWN, (double)NAN);
    struct oj_error err;
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
    {
        const enum oj_op op = apart[i];
        ck_assert_str_eq(
            message_of_measured_pairs(&degrees, op, &pick, &err),
            "-pick nearest: the CRS of the join, EPSG:1, is in degrees, where "
            "the nearest feature is not well defined: name a projected CRS to "
            "join in with -t_srs");
        ck_assert_str_eq(
            message_of_measured_pairs(&degrees, op, &bearing, &err),
            "-bearing_field: the CRS of the join, EPSG:1, is in degrees, where "
            "directions are not well defined: name a projected CRS to join in "
            "with -t_srs");
        ck_assert_str_eq(message_of_measured_pairs(&degrees, op, &none, &err),
                         "");
        ck_assert_str_eq(message_of_measured_pairs(&metres, op, &pick, &err),
                         "");
        ck_assert_ptr_nonnull(
            strstr(message_of_measured_pairs(&unknown, op, &pick, &err),
                   "crs=ignore"));
    }
    ck_assert_str_eq(
        message_of_measured_pairs(&degrees, OJ_OP_INTERSECTS, &pick, &err), "");
    ck_assert_str_eq(
        message_of_measured_pairs(&degrees, OJ_OP_SIMILAR, &within, &err), "");
    degrees.dash = "";
    ck_assert_str_eq(
        message_of_measured_pairs(&degrees, OJ_OP_ATTRIBUTES, &pick, &err),
        "pick=nearest: the CRS of the join, EPSG:1, is in degrees, where the "
        "nearest feature is not well defined: bring both sides into a "
        "projected CRS, or write crs=ignore to take coordinates as they are");
    degrees.takes_plain_numbers = 1;
    ck_assert_str_eq(
        message_of_measured_pairs(&degrees, OJ_OP_ATTRIBUTES, &pick, &err), "");
}

TEST(unit_distances_that_match_nothing)
{
    struct oj_distance_frame feet =
        frame_of("-", OJ_CRS_KIND_PROJECTED, us_foot);
    struct oj_relation r;
    struct oj_error err;
    ck_assert_int_eq(
        convert_distances(&feet, OJ_OP_NEAREST, "1", "2", &r, &err),
        OJ_ERR_ARG);
    ck_assert_str_eq(err.message,
                     "-min_distance is greater than -max_distance, so no "
                     "feature would match: write a smaller -min_distance");
    ck_assert_int_eq(
        convert_distances(&feet, OJ_OP_NEAREST, NULL, "inf", &r, &err),
        OJ_ERR_ARG);
    ck_assert_str_eq(err.message,
                     "-min_distance is infinite: write a finite distance");
}

/* Without -max_distance, -metric sphere still requires degrees. */
TEST(unit_the_sphere_without_a_distance)
{
    struct oj_distance_frame frame = frame_of("-", OJ_CRS_KIND_PROJECTED, 1.0);
    struct oj_relation r;
    struct oj_error err;
    frame.metric = OJ_METRIC_SPHERE;
    ck_assert_int_eq(
        convert_distances(&frame, OJ_OP_NEAREST, NULL, NULL, &r, &err),
        OJ_ERR_ARG);
    frame = frame_of("-", OJ_CRS_KIND_GEOGRAPHIC, degree);
    frame.metric = OJ_METRIC_SPHERE;
    ck_assert_int_eq(
        convert_distances(&frame, OJ_OP_NEAREST, NULL, NULL, &r, &err), OJ_OK);
    ck_assert(isinf(r.max_distance));
    ck_assert_str_eq(oj_distance_unit_name(&frame), "metre");
}

/* Reads a CRS and converts a distance to its unit. */
TEST(unit_frames_of_crs_texts)
{
    static const char text[] =
        "PROJCS[\"x\",GEOGCS[\"y\",DATUM[\"d\",SPHEROID[\"s\",6378137,298]],"
        "UNIT[\"degree\",0.0174532925199433]],PROJECTION[\"p\"],UNIT["
        "\"US survey foot\",0.304800609601219]]";
    struct oj_crs_text crs;
    struct oj_distance_frame frame;
    struct oj_relation r;
    struct oj_error err;
    ck_assert_int_eq(oj_crs_text_read(text, "it", NULL, &crs, &err), OJ_OK);
    frame = oj_distance_frame_of_crs_text("", OJ_METRIC_PLANAR, &crs);
    ck_assert_str_eq(oj_distance_unit_name(&frame), "US survey foot");
    ck_assert_int_eq(
        convert_distances(&frame, OJ_OP_DWITHIN, "1mi", NULL, &r, &err), OJ_OK);
    ck_assert(fabs(r.max_distance - 5279.98944) < 1e-5);
    ck_assert_int_eq(oj_crs_text_read(NULL, "it", NULL, &crs, &err), OJ_OK);
    frame = oj_distance_frame_of_crs_text("", OJ_METRIC_PLANAR, &crs);
    ck_assert_int_eq(
        convert_distances(&frame, OJ_OP_DWITHIN, "1mi", NULL, &r, &err),
        OJ_ERR_ARG);
    ck_assert_int_eq(
        convert_distances(&frame, OJ_OP_DWITHIN, "1", NULL, &r, &err), OJ_OK);
    ck_assert_str_eq(oj_distance_unit_name(&frame), "");
}

int main(void)
{
    tests_open("distance_scale");
    return tests_run();
}
