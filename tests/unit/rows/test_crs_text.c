/* CRS given as text: their properties, and which of them are equal. No invalid
 * text crashes the reader. unit/source/test_crs_text_osr compares with GDAL.
 * Kinds: unit, degenerate, memory. */
#include "../run_tests.h"

#include "../../../algs/api/rows/oj_crs_text.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../random_numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEGREE (3.14159265358979323846 / 180.0)
#define US_FOOT (12.0 / 39.37)
#define US_FOOT_JSON 0.304800609601219

#define WGS84_WKT1                                                             \
    "GEOGCS[\"WGS 84\",DATUM[\"WGS_1984\",SPHEROID[\"WGS 84\",6378137,"        \
    "298.257223563]],PRIMEM[\"Greenwich\",0],UNIT[\"degree\","                 \
    "0.0174532925199433]"
#define WGS84_ESRI                                                             \
    "GEOGCS[\"GCS_WGS_1984\",DATUM[\"D_WGS_1984\",SPHEROID[\"WGS_1984\","      \
    "6378137.0,298.257223563]],PRIMEM[\"Greenwich\",0.0],UNIT[\"Degree\","     \
    "0.0174532925199433]]"
#define WGS84_WKT2                                                             \
    "GEOGCRS[\"WGS 84\",ENSEMBLE[\"World Geodetic System 1984 ensemble\","     \
    "MEMBER[\"World Geodetic System 1984 (Transit)\"],ELLIPSOID[\"WGS 84\","   \
    "6378137,298.257223563,LENGTHUNIT[\"metre\",1]],ENSEMBLEACCURACY[2.0]],"   \
    "PRIMEM[\"Greenwich\",0,ANGLEUNIT[\"degree\",0.0174532925199433]],"        \
    "CS[ellipsoidal,2],AXIS[\"latitude\",north,ORDER[1],ANGLEUNIT[\"degree\"," \
    "0.0174532925199433]],AXIS[\"longitude\",east,ORDER[2],ANGLEUNIT["         \
    "\"degree\",0.0174532925199433]]"
#define ELLIPSOIDAL_JSON                                                       \
    "\"coordinate_system\":{\"subtype\":\"ellipsoidal\",\"axis\":[{\"name\":"  \
    "\"Longitude\",\"direction\":\"east\",\"unit\":\"degree\"},{\"name\":"     \
    "\"Latitude\",\"direction\":\"north\",\"unit\":\"degree\"}]}"
#define WGS84_JSON                                                             \
    "{\"type\":\"GeographicCRS\",\"name\":\"WGS 84 (CRS84)\","                 \
    "\"datum_ensemble\":{\"name\":\"World Geodetic System 1984 ensemble\","    \
    "\"ellipsoid\":{\"name\":\"WGS 84\",\"semi_major_axis\":6378137,"          \
    "\"inverse_flattening\":298.257223563}}," ELLIPSOIDAL_JSON
#define GRS80_DATUM                                                            \
    "DATUM[\"North American Datum 1983\",ELLIPSOID[\"GRS 1980\",6378137,"      \
    "298.257222101,LENGTHUNIT[\"metre\",1]]],PRIMEM[\"Greenwich\",0,"          \
    "ANGLEUNIT[\"degree\",0.0174532925199433]]"
#define CUSTOM_CONVERSION(meridian)                                            \
    "CONVERSION[\"unnamed\",METHOD[\"Transverse Mercator\",ID[\"EPSG\",9807]]" \
    ",PARAMETER[\"Latitude of natural origin\",10,ANGLEUNIT[\"degree\","       \
    "0.0174532925199433]],PARAMETER[\"Longitude of natural origin\"," meridian \
    ",ANGLEUNIT[\"degree\",0.0174532925199433]],PARAMETER[\"Scale factor at "  \
    "natural origin\",0.9996,SCALEUNIT[\"unity\",1]],PARAMETER[\"False "       \
    "easting\",500000,LENGTHUNIT[\"US survey foot\",0.304800609601219]],"      \
    "PARAMETER[\"False northing\",0,LENGTHUNIT[\"metre\",1]]]"
#define CARTESIAN_FEET                                                         \
    "CS[Cartesian,2],AXIS[\"easting\",east,ORDER[1]],AXIS[\"northing\",north," \
    "ORDER[2]],LENGTHUNIT[\"US survey foot\",0.304800609601219]"
#define CUSTOM_WKT2(meridian)                                                  \
    "PROJCRS[\"mine\",BASEGEOGCRS[\"NAD83\"," GRS80_DATUM                      \
    "]," CUSTOM_CONVERSION(meridian) "," CARTESIAN_FEET "]"
#define CUSTOM_JSON                                                            \
    "{\"$schema\":\"https://proj.org/schemas/v0.7/projjson.schema.json\","     \
    "\"type\":\"ProjectedCRS\",\"name\":\"also mine\",\"base_crs\":{\"name\":" \
    "\"NAD83\",\"datum\":{\"type\":\"GeodeticReferenceFrame\",\"name\":"       \
    "\"North American Datum 1983\",\"ellipsoid\":{\"name\":\"GRS 1980\","      \
    "\"semi_major_axis\":{\"value\":6378.137,\"unit\":{\"type\":"              \
    "\"LinearUnit\",\"name\":\"kilometre\",\"conversion_factor\":1000}},"      \
    "\"inverse_flattening\":298.257222101}}," ELLIPSOIDAL_JSON "},"            \
    "\"conversion\":{\"name\":\"x\",\"method\":{\"name\":\"Transverse "        \
    "Mercator\"},\"parameters\":[{\"name\":\"False northing\",\"value\":0,"    \
    "\"unit\":\"metre\"},{\"name\":\"Latitude of natural origin\",\"value\":"  \
    "10,\"unit\":\"degree\"},{\"name\":\"Longitude of natural origin\","       \
    "\"value\":-70.5,\"unit\":\"degree\"},{\"name\":\"Scale factor at "        \
    "natural origin\",\"value\":0.9996,\"unit\":\"unity\"},{\"name\":\"False " \
    "easting\",\"value\":500000,\"unit\":{\"type\":\"LinearUnit\",\"name\":"   \
    "\"US survey foot\",\"conversion_factor\":0.304800609601219}}]},"          \
    "\"coordinate_system\":{\"subtype\":\"Cartesian\",\"axis\":[{\"name\":"    \
    "\"Easting\",\"direction\":\"east\",\"unit\":{\"type\":\"LinearUnit\","    \
    "\"name\":\"US survey foot\",\"conversion_factor\":0.304800609601219}}]}"
#define CUSTOM_WKT1(method, meridian)                                          \
    "PROJCS[\"mine\",GEOGCS[\"NAD83\",DATUM[\"North_American_Datum_1983\","    \
    "SPHEROID[\"GRS 1980\",6378137,298.257222101]],PRIMEM[\"Greenwich\",0],"   \
    "UNIT[\"degree\",0.0174532925199433]],PROJECTION[\"" method "\"],"         \
    "PARAMETER[\"latitude_of_origin\",10],PARAMETER[\"central_"                \
    "meridian\"," meridian "],PARAMETER[\"scale_factor\",0.9996],PARAMETER["   \
    "\"false_easting\",500000],PARAMETER[\"false_northing\",0],UNIT["          \
    "\"US survey foot\",0.304800609601219]]"
#define GRADS                                                                  \
    "GEOGCS[\"NTF (Paris)\",DATUM[\"NTF_Paris\",SPHEROID[\"Clarke 1880\","     \
    "6378249.2,293.466021293627]],PRIMEM[\"Paris\",2.33722917],UNIT[\"grad\"," \
    "0.0157079632679489],AUTHORITY[\"EPSG\",\"4807\"]]"

/* Texts and their expected properties. */
static const struct
{
    const char *text;
    enum oj_crs_kind kind;
    int is_wgs84;
    double unit; /* 0: not stated */
    const char *unit_name, *identity, *name;
} stated[] = {
    {NULL, OJ_CRS_KIND_NONE, 0, 0, "", "", "none"},
    {"", OJ_CRS_KIND_NONE, 0, 0, "", "", "none"},
    {" null ", OJ_CRS_KIND_NONE, 0, 0, "", "", "none"},
    {"\"\"", OJ_CRS_KIND_NONE, 0, 0, "", "", "none"},
    {"epsg:2263", OJ_CRS_KIND_UNKNOWN, 0, 0, "", "EPSG:2263", "EPSG:2263"},
    {"\"EPSG:2263\"", OJ_CRS_KIND_UNKNOWN, 0, 0, "", "EPSG:2263", "EPSG:2263"},
    {"EPSG::2263", OJ_CRS_KIND_UNKNOWN, 0, 0, "", "EPSG:2263", "EPSG:2263"},
    {"urn:ogc:def:crs:EPSG::2263", OJ_CRS_KIND_UNKNOWN, 0, 0, "", "EPSG:2263",
     "EPSG:2263"},
    {"URN:OGC:DEF:CRS:OGC:1.3:CRS84", OJ_CRS_KIND_GEOGRAPHIC, 1, DEGREE,
     "degree", "OGC:CRS84", "OGC:CRS84"},
    {"http://www.opengis.net/def/crs/EPSG/0/4326", OJ_CRS_KIND_GEOGRAPHIC, 1,
     DEGREE, "degree", "EPSG:4326", "EPSG:4326"},
    {"https://www.opengis.net/def/crs/OGC/0/CRS84h", OJ_CRS_KIND_GEOGRAPHIC, 1,
     DEGREE, "degree", "OGC:CRS84h", "OGC:CRS84h"},
    {" EPSG:4326\n", OJ_CRS_KIND_GEOGRAPHIC, 1, DEGREE, "degree", "EPSG:4326",
     "EPSG:4326"},
    {"EPSG:4326+5773", OJ_CRS_KIND_GEOGRAPHIC, 1, DEGREE, "degree",
     "EPSG:4326+5773", "EPSG:4326+5773"},
    {"EPSG:3857", OJ_CRS_KIND_PROJECTED, 0, 1, "metre", "EPSG:3857",
     "EPSG:3857"},
    {"OGC:CRS27", OJ_CRS_KIND_GEOGRAPHIC, 0, DEGREE, "degree", "OGC:CRS27",
     "OGC:CRS27"},
    {"EPSG:4269", OJ_CRS_KIND_UNKNOWN, 0, 0, "", "EPSG:4269", "EPSG:4269"},

    {WGS84_WKT1 ",AUTHORITY[\"EPSG\",\"4326\"]]", OJ_CRS_KIND_GEOGRAPHIC, 1,
     DEGREE, "degree", "EPSG:4326", "EPSG:4326"},
    {WGS84_WKT1 "]", OJ_CRS_KIND_GEOGRAPHIC, 1, DEGREE, "degree", "", "WGS 84"},
    {WGS84_ESRI, OJ_CRS_KIND_GEOGRAPHIC, 1, DEGREE, "degree", "",
     "GCS_WGS_1984"},
    {WGS84_WKT2 ",ID[\"OGC\",\"CRS84\"]]", OJ_CRS_KIND_GEOGRAPHIC, 1, DEGREE,
     "degree", "OGC:CRS84", "OGC:CRS84"},
    {WGS84_JSON ",\"id\":{\"authority\":\"OGC\",\"code\":\"CRS84\"}}",
     OJ_CRS_KIND_GEOGRAPHIC, 1, DEGREE, "degree", "OGC:CRS84", "OGC:CRS84"},
    {WGS84_JSON "}", OJ_CRS_KIND_GEOGRAPHIC, 1, DEGREE, "degree", "",
     "WGS 84 (CRS84)"},
    /* another sphere, meridian or unit, and a CRS derived from it */
    {"GEOGCS[\"x\",DATUM[\"WGS_1984\",SPHEROID[\"s\",6371000,0]],PRIMEM["
     "\"Greenwich\",0],UNIT[\"degree\",0.0174532925199433]]",
     OJ_CRS_KIND_GEOGRAPHIC, 0, DEGREE, "degree", "", "x"},
    {"GEOGCS[\"x\",DATUM[\"WGS_1984\",SPHEROID[\"s\",6378137,298.257223563]],"
     "PRIMEM[\"Paris\",2.33],UNIT[\"degree\",0.0174532925199433]]",
     OJ_CRS_KIND_GEOGRAPHIC, 0, DEGREE, "degree", "", "x"},
    {"GEOGCS[\"x\",DATUM[\"WGS_1984\",SPHEROID[\"s\",6378137,298.257223563]],"
     "PRIMEM[\"Greenwich\",0],UNIT[\"radian\",1]]",
     OJ_CRS_KIND_GEOGRAPHIC, 0, 1, "radian", "", "x"},
    {"GEOGCRS[\"rotated\",BASEGEOGCRS[\"WGS 84\",DATUM[\"World Geodetic System "
     "1984\",ELLIPSOID[\"WGS 84\",6378137,298.257223563]]],DERIVINGCONVERSION["
     "\"r\",METHOD[\"PROJ ob_tran o_proj=longlat\"],PARAMETER[\"o_lat_p\",39,"
     "ANGLEUNIT[\"degree\",0.0174532925199433]]],CS[ellipsoidal,2],AXIS["
     "\"longitude\",east],AXIS[\"latitude\",north],ANGLEUNIT[\"degree\","
     "0.0174532925199433]]",
     OJ_CRS_KIND_GEOGRAPHIC, 0, DEGREE, "degree", "", "rotated"},
    {GRADS, OJ_CRS_KIND_GEOGRAPHIC, 0, 0.0157079632679489, "grad", "EPSG:4807",
     "EPSG:4807"},
    /* three dimensions, with another unit of the height */
    {"GEODCRS[\"x\",DATUM[\"d\",ELLIPSOID[\"e\",6378137,298]],CS[ellipsoidal,3]"
     ",AXIS[\"lat\",north,ANGLEUNIT[\"degree\",0.0174532925199433]],AXIS["
     "\"lon\",east,ANGLEUNIT[\"degree\",0.0174532925199433]],AXIS[\"h\",up,"
     "LENGTHUNIT[\"metre\",1]],ID[\"EPSG\",4937]]",
     OJ_CRS_KIND_GEOGRAPHIC, 0, DEGREE, "degree", "EPSG:4937", "EPSG:4937"},
    {"GEODCRS[\"x\",DATUM[\"d\",ELLIPSOID[\"e\",6378137,298]],CS[Cartesian,3],"
     "AXIS[\"X\",geocentricX],AXIS[\"Y\",geocentricY],AXIS[\"Z\",geocentricZ],"
     "LENGTHUNIT[\"metre\",1],ID[\"EPSG\",4978]]",
     OJ_CRS_KIND_GEOCENTRIC, 0, 1, "metre", "EPSG:4978", "EPSG:4978"},
    {"GEOCCS[\"x\",DATUM[\"d\",SPHEROID[\"e\",6378137,298]],UNIT[\"metre\",1]]",
     OJ_CRS_KIND_GEOCENTRIC, 0, 1, "metre", "", "x"},

    {CUSTOM_WKT2("-70.5"), OJ_CRS_KIND_PROJECTED, 0, US_FOOT, "US survey foot",
     "", "mine"},
    {CUSTOM_JSON "}", OJ_CRS_KIND_PROJECTED, 0, US_FOOT_JSON, "US survey foot",
     "", "also mine"},
    {"projcs (\n \"a \"\"b\"\" c\" , " WGS84_ESRI
     ", PROJECTION ( \"x\" ), UNIT ( \"Foot_US\" , 0.3048006096012192 ) )",
     OJ_CRS_KIND_PROJECTED, 0, US_FOOT, "US survey foot", "", "a \"b\" c"},
    {"PROJCS[\"x\"," WGS84_ESRI ",PROJECTION[\"p\"],UNIT[\"Kilometer\",1000],"
     "AUTHORITY[\"ESRI\",\"54009\"]]",
     OJ_CRS_KIND_PROJECTED, 0, 1000, "kilometre", "ESRI:54009", "ESRI:54009"},
    {"PROJCS[\"x\"," WGS84_ESRI ",PROJECTION[\"p\"]]", OJ_CRS_KIND_PROJECTED, 0,
     0, "", "", "x"},

    /* compound, bound, with an epoch, and two CRS as ESRI writes them */
    {"COMPD_CS[\"both\"," GRADS ",VERT_CS[\"v\",VERT_DATUM[\"d\",2005],UNIT["
     "\"metre\",1],AUTHORITY[\"EPSG\",\"5720\"]],AUTHORITY[\"EPSG\",\"7400\"]]",
     OJ_CRS_KIND_GEOGRAPHIC, 0, 0.0157079632679489, "grad", "EPSG:7400",
     "EPSG:7400"},
    {"COMPOUNDCRS[\"both\"," CUSTOM_WKT2(
         "-70.5") ",VERTCRS[\"v\",VDATUM["
                  "\"d\"],CS[vertical,1],AXIS[\"up\",up],LENGTHUNIT[\"metre\","
                  "1]]]",
     OJ_CRS_KIND_PROJECTED, 0, US_FOOT, "US survey foot", "", "both"},
    {"{\"type\":\"CompoundCRS\",\"name\":\"both\",\"components\":[" CUSTOM_JSON
     "},{\"type\":\"VerticalCRS\",\"name\":\"v\"}]}",
     OJ_CRS_KIND_PROJECTED, 0, US_FOOT_JSON, "US survey foot", "", "both"},
    {"BOUNDCRS[SOURCECRS[" CUSTOM_WKT2(
         "-70.5") "],TARGETCRS[" WGS84_WKT2
                  "]],ABRIDGEDTRANSFORMATION[\"t\",METHOD[\"m\"]]]",
     OJ_CRS_KIND_PROJECTED, 0, US_FOOT, "US survey foot", "", "mine"},
    {"{\"type\":\"BoundCRS\",\"target_crs\":{\"type\":\"GeocentricCRS\"},"
     "\"source_crs\":" CUSTOM_JSON "}}",
     OJ_CRS_KIND_PROJECTED, 0, US_FOOT_JSON, "US survey foot", "", "also mine"},
    {"COORDINATEMETADATA[" WGS84_WKT2 "],EPOCH[2016.47]]",
     OJ_CRS_KIND_GEOGRAPHIC, 1, DEGREE, "degree", "",
     "WGS 84 at epoch 2016.47"},
    {GRADS ",VERTCS[\"NAP\",VDATUM[\"NAP\"],UNIT[\"Meter\",1.0]]",
     OJ_CRS_KIND_GEOGRAPHIC, 0, 0.0157079632679489, "grad", "EPSG:4807",
     "EPSG:4807"},

    {"LOCAL_CS[\"site\",UNIT[\"metre\",1]]", OJ_CRS_KIND_LOCAL, 0, 1, "metre",
     "", "site"},
    {"ENGCRS[\"site\",EDATUM[\"d\"],CS[Cartesian,2],AXIS[\"x\",east],AXIS["
     "\"y\",north],LENGTHUNIT[\"foot\",0.3048]]",
     OJ_CRS_KIND_LOCAL, 0, 0.3048, "foot", "", "site"},
    {"{\"type\":\"EngineeringCRS\",\"name\":\"\"}", OJ_CRS_KIND_LOCAL, 0, 0, "",
     "", "unnamed"},
    {"{\"type\":\"GeographicCRS\",\"name\":\"N\\u00fc\\\"\\n\\ud83d\\ude00x\","
     "\"id\":{\"authority\":\"a\",\"code\":12,\"version\":\"3\"}}",
     OJ_CRS_KIND_GEOGRAPHIC, 0, 0, "", "A:12", "A:12"},
    {"{\"type\":\"GeographicCRS\",\"name\":\"N\\u00fc\\\"\\n\\ud83d\\ude00x\"}",
     OJ_CRS_KIND_GEOGRAPHIC, 0, 0, "", "", "N\xc3\xbc\" \xf0\x9f\x98\x80x"},
};

TEST_LOOP(unit_what_texts_state, 0, sizeof stated / sizeof *stated)
{
    struct oj_crs_text text;
    struct oj_error err = {OJ_OK, ""};
    if (oj_crs_text_read(stated[_i].text, "it", NULL, &text, &err) != OJ_OK)
        ck_abort_msg("%s: %s", stated[_i].text, err.message);
    ck_assert_msg(text.kind == stated[_i].kind, "%d: %s", (int)text.kind,
                  stated[_i].text);
    ck_assert_msg(text.is_wgs84 == stated[_i].is_wgs84, "WGS 84: %s",
                  stated[_i].text);
    ck_assert_str_eq(text.identity, stated[_i].identity);
    ck_assert_str_eq(text.name, stated[_i].name);
    ck_assert_str_eq(text.unit_name, stated[_i].unit_name);
    if (stated[_i].unit == 0)
        ck_assert(isnan(text.unit));
    else
        ck_assert_msg(text.unit == stated[_i].unit, "%.17g: %s", text.unit,
                      stated[_i].text);
}

/* Texts that are refused, and a part of each message. */
static const char *const refused[][2] = {
    {"4326", "write EPSG:4326"},
    {"WGS84", "for example EPSG:2263"},
    {"+proj=utm +zone=33", "for example EPSG:2263"},
    {"NAD83(2011)", "for example EPSG:2263"},
    {"EPSG:", "AUTHORITY:CODE"},
    {":4326", "AUTHORITY:CODE"},
    {"EPSG:43 26", "AUTHORITY:CODE"},
    {"urn:ogc:def:crs:EPSG:4326", "AUTHORITY:CODE"},
    {"{", "the name of a member is missing at byte 2"},
    {"{}", "without \"type\""},
    {"{\"type\":\"ProjectedCRS\"", "a comma is missing"},
    {"{\"type\":\"ProjectedCRS\"} x", "more text"},
    {"{\"type\":\"a\\x\"}", "an unknown escape"},
    {"{\"type\":\"a\n\"}",
     "a string that is not closed, or has a control character at byte"},
    {"{\"type\":01x}", "a value is missing"},
    {"{\"type\":nul}", "a value is missing"},
    {"{\"type\":\"CompoundCRS\"}", "describes no CRS"},
    {"{\"type\":\"BoundCRS\",\"source_crs\":7}", "describes no CRS"},
    {"[1]", "describes no CRS"},
    {"\"\\\"EPSG:4326\\\"\"", "is in quotes twice"},
    {"PROJCS[\"x\"", "a comma or a closing bracket is missing"},
    {"PROJCS[\"x\")", "a comma or a closing bracket is missing"},
    {"PROJCS[\"x\"]]", "more text"},
    {"PROJCS[\"x", "a text that is not closed"},
    {"PROJCS[]", "a value is missing"},
    {"POINT[\"x\"]", "describes no CRS"},
    {"COMPD_CS[\"x\"]", "describes no CRS"},
    {"PROJCS[\"x\"],", "a value is missing"},
};

TEST_LOOP(unit_texts_that_are_refused, 0, sizeof refused / sizeof *refused)
{
    struct oj_crs_text text;
    struct oj_error err = {OJ_OK, ""};
    oj_status status =
        oj_crs_text_read(refused[_i][0], "left_crs", NULL, &text, &err);
    ck_assert_msg(status == OJ_ERR_DATA, "%s", refused[_i][0]);
    ck_assert_msg(strstr(err.message, refused[_i][1]) != NULL, "%s: %s",
                  refused[_i][0], err.message);
    ck_assert_msg(strncmp(err.message, "left_crs ", 9) == 0, "%s", err.message);
}

/* ---- equality ------------------------------------------------------------ */

static enum oj_crs_equality
compare_both_orders(const char *a, const char *b,
                    const struct oj_crs_callbacks *callbacks)
{
    enum oj_crs_equality there, back;
    struct oj_error err = {OJ_OK, ""};
    if (oj_crs_text_compare(a, b, callbacks, &there, &err) != OJ_OK ||
        oj_crs_text_compare(b, a, callbacks, &back, &err) != OJ_OK)
        ck_abort_msg("%s", err.message);
    ck_assert_int_eq((int)there, (int)back);
    return there;
}

/* Two epochs make two CRS; a text without an epoch fits each. */
TEST(unit_epochs)
{
    static const char *const one[] = {
        "COORDINATEMETADATA[" WGS84_WKT2 "],EPOCH[2016.5]]",
        "{\"type\":\"CoordinateMetadata\",\"crs\":{\"type\":"
        "\"GeographicCRS\",\"id\":{\"authority\":\"EPSG\",\"code\":4326}},"
        "\"coordinateEpoch\":2016.5}"};
    static const char *const other[] = {
        "COORDINATEMETADATA[" WGS84_WKT2 "],EPOCH[2010]]",
        "{\"type\":\"CoordinateMetadata\",\"crs\":{\"type\":"
        "\"GeographicCRS\",\"id\":{\"authority\":\"EPSG\",\"code\":4326}},"
        "\"coordinateEpoch\":2010}"};
    for (int i = 0; i < 2; i++)
    {
        ck_assert_int_eq((int)compare_both_orders(one[i], "EPSG:4326", NULL),
                         OJ_CRS_EQUAL);
        for (int k = 0; k < 2; k++)
        {
            ck_assert_int_eq((int)compare_both_orders(one[i], one[k], NULL),
                             OJ_CRS_EQUAL);
            ck_assert_int_eq((int)compare_both_orders(one[i], other[k], NULL),
                             OJ_CRS_DIFFERENT);
        }
    }
}

TEST(unit_wgs84_in_all_spellings_is_one)
{
    static const char *const spellings[] = {
        "EPSG:4326",
        "OGC:CRS84",
        "EPSG:4979",
        "OGC:CRS84h",
        "\"EPSG:4326\"",
        "urn:ogc:def:crs:OGC:1.3:CRS84",
        WGS84_WKT1 "]",
        WGS84_WKT1 ",AUTHORITY[\"EPSG\",\"4326\"]]",
        WGS84_ESRI,
        WGS84_WKT2 "]",
        WGS84_WKT2 ",ID[\"OGC\",\"CRS84\"]]",
        WGS84_JSON "}",
        WGS84_JSON ",\"id\":{\"authority\":\"EPSG\",\"code\":4326}}"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
    {
        for (size_t k = 0; k < sizeof spellings / sizeof *spellings; k++)
            ck_assert_msg(compare_both_orders(spellings[i], spellings[k],
                                              NULL) == OJ_CRS_EQUAL,
                          "%s\n%s", spellings[i], spellings[k]);
        ck_assert_int_eq(compare_both_orders(spellings[i], GRADS, NULL),
                         OJ_CRS_DIFFERENT);
        ck_assert_int_eq(
            compare_both_orders(spellings[i], CUSTOM_JSON "}", NULL),
            OJ_CRS_DIFFERENT);
    }
}

/* Two texts, and whether their CRS are equal. */
static const struct
{
    const char *a, *b;
    enum oj_crs_equality equality;
} compared[] = {
    {NULL, "", OJ_CRS_EQUAL},
    {NULL, "EPSG:4326", OJ_CRS_DIFFERENT},
    {"EPSG:2263", "urn:ogc:def:crs:EPSG::2263", OJ_CRS_EQUAL},
    {"EPSG:2263", "epsg:2264", OJ_CRS_DIFFERENT},
    {"EPSG:2263", "ESRI:102718", OJ_CRS_NOT_KNOWN},
    {"EPSG:4807", GRADS, OJ_CRS_EQUAL},
    {"EPSG:4269", GRADS, OJ_CRS_DIFFERENT},
    {"ESRI:4269", CUSTOM_WKT2("-70.5"), OJ_CRS_NOT_KNOWN},
    /* a custom CRS with other names, in another syntax, with parameters in
     * another order and in other units */
    {CUSTOM_WKT2("-70.5"), CUSTOM_JSON "}", OJ_CRS_EQUAL},
    {CUSTOM_WKT2("-70.5"), CUSTOM_WKT2("-70.50"), OJ_CRS_EQUAL},
    {CUSTOM_WKT2("-70.5"), CUSTOM_WKT2("-70.6"), OJ_CRS_DIFFERENT},
    {CUSTOM_WKT2("-70.6"), CUSTOM_JSON "}", OJ_CRS_DIFFERENT},
    /* WKT 1 and ESRI have other names for methods and parameters */
    {CUSTOM_WKT1("Transverse_Mercator", "-70.5"), CUSTOM_JSON "}",
     OJ_CRS_EQUAL},
    {CUSTOM_WKT1("Transverse_Mercator", "-70.5"), CUSTOM_WKT2("-70.6"),
     OJ_CRS_DIFFERENT},
    {CUSTOM_WKT1("Mercator_1SP", "-70.5"), CUSTOM_JSON "}", OJ_CRS_NOT_KNOWN},
    {CUSTOM_WKT1("Mercator_1SP", "-70.5"), CUSTOM_WKT1("Mercator_1SP", "-70.5"),
     OJ_CRS_EQUAL},
    {CUSTOM_WKT1("Polar_Stereographic", "-70.5"),
     CUSTOM_WKT1("Polar_Stereographic", "-70.6"), OJ_CRS_DIFFERENT},
    {CUSTOM_WKT1("Polar_Stereographic", "1"),
     CUSTOM_WKT1("Polar_Stereographic", "1.0"), OJ_CRS_EQUAL},
    /* a height does not change the horizontal CRS */
    {"COMPOUNDCRS[\"both\"," CUSTOM_WKT2(
         "-70.5") ",VERTCRS[\"v\",VDATUM["
                  "\"d\"],CS[vertical,1],AXIS[\"up\",up],LENGTHUNIT[\"metre\","
                  "1]]]",
     CUSTOM_JSON "}", OJ_CRS_EQUAL},
    {"LOCAL_CS[\"a\",UNIT[\"metre\",1]]", "LOCAL_CS[\"b\",UNIT[\"metre\",1]]",
     OJ_CRS_NOT_KNOWN},
    {"LOCAL_CS[\"a\",UNIT[\"metre\",1]]", "LOCAL_CS[\"a\",UNIT[\"metre\",1]]",
     OJ_CRS_EQUAL},
};

TEST_LOOP(unit_which_texts_are_one, 0, sizeof compared / sizeof *compared)
{
    ck_assert_msg(compare_both_orders(compared[_i].a, compared[_i].b, NULL) ==
                      compared[_i].equality,
                  "%s\n%s", compared[_i].a, compared[_i].b);
}

/* ---- callbacks ----------------------------------------------------------- */

struct known
{
    int n_expanded, n_compared, answer;
    const char *text;
};

static int expand_known_code(void *user, const char *crs, char *text,
                             size_t size)
{
    struct known *known = user;
    known->n_expanded++;
    if (strcmp(crs, "EPSG:1") != 0 && strcmp(crs, "a name") != 0)
        return 0;
    return snprintf(text, size, "%s", known->text);
}

static int compare_known(void *user, const char *a, const char *b)
{
    struct known *known = user;
    known->n_compared++;
    ck_assert(a[0] != '"' && b[0] != '"');
    return known->answer;
}

TEST(unit_callbacks_know_more)
{
    struct known known = {0, 0, 1, CUSTOM_JSON "}"};
    struct oj_crs_callbacks callbacks = {expand_known_code, compare_known,
                                         &known};
    struct oj_crs_text text;
    struct oj_error err = {OJ_OK, ""};
    ck_assert_int_eq(oj_crs_text_read("EPSG:1", "it", &callbacks, &text, &err),
                     OJ_OK);
    ck_assert_int_eq((int)text.kind, OJ_CRS_KIND_PROJECTED);
    ck_assert_str_eq(text.identity, "EPSG:1");
    ck_assert_str_eq(text.name, "EPSG:1");
    ck_assert(text.unit == US_FOOT_JSON);
    ck_assert_int_eq(oj_crs_text_read("a name", "it", &callbacks, &text, &err),
                     OJ_OK);
    ck_assert_str_eq(text.name, "also mine");
    ck_assert_int_eq(oj_crs_text_read("EPSG:2", "it", &callbacks, &text, &err),
                     OJ_OK);
    ck_assert_int_eq((int)text.kind, OJ_CRS_KIND_UNKNOWN);
    known.n_expanded = 0; /* the callback is not needed */
    ck_assert_int_eq(
        oj_crs_text_read("EPSG:4326", "it", &callbacks, &text, &err), OJ_OK);
    ck_assert_int_eq(known.n_expanded, 0);

    /* a callback that returns only another code is called once, and its result
     * is ignored */
    known.text = "EPSG:2";
    ck_assert_int_eq(oj_crs_text_read("EPSG:1", "it", &callbacks, &text, &err),
                     OJ_OK);
    ck_assert_int_eq((int)text.kind, OJ_CRS_KIND_UNKNOWN);
    ck_assert_str_eq(text.identity, "EPSG:1");
    ck_assert_int_eq(known.n_expanded, 1);
    known.text = "PROJCS[";
    ck_assert_int_eq(oj_crs_text_read("EPSG:1", "it", &callbacks, &text, &err),
                     OJ_ERR_DATA);

    known.text = CUSTOM_JSON "}";
    ck_assert_int_eq(compare_both_orders("\"EPSG:2\"", "EPSG:3", &callbacks),
                     OJ_CRS_EQUAL);
    known.answer = 0;
    ck_assert_int_eq(compare_both_orders("EPSG:2", "ESRI:3", &callbacks),
                     OJ_CRS_DIFFERENT);
    known.answer = -1;
    ck_assert_int_eq(compare_both_orders("EPSG:2", "ESRI:3", &callbacks),
                     OJ_CRS_NOT_KNOWN);
    ck_assert_int_eq(known.n_compared, 6);
    ck_assert_int_eq(
        compare_both_orders("EPSG:1", CUSTOM_WKT2("-70.5"), &callbacks),
        OJ_CRS_EQUAL);
}

/* The text is too long for the reader's first buffer, so it is asked for
 * twice. */
TEST(unit_long_texts_are_expanded)
{
    static char text[20000];
    struct known known = {0, 0, 1, text};
    struct oj_crs_callbacks callbacks = {expand_known_code, NULL, &known};
    struct oj_crs_text read;
    struct oj_error err;
    memset(text, ' ', sizeof text - 1);
    memcpy(text + sizeof text - 1 - strlen(GRADS), GRADS, strlen(GRADS));
    ck_assert_int_eq(oj_crs_text_read("EPSG:1", "it", &callbacks, &read, &err),
                     OJ_OK);
    ck_assert_int_eq((int)read.kind, OJ_CRS_KIND_GEOGRAPHIC);
    ck_assert_int_eq(known.n_expanded, 2);
}

/* ---- metadata of GeoArrow ------------------------------------------------ */

TEST(unit_crs_of_metadata)
{
    static const char *const cases[][2] = {
        {NULL, NULL},
        {"", NULL},
        {"{}", NULL},
        {"{\"crs\": null}", NULL},
        {"{\"edges\": \"spherical\"}", NULL},
        {"{\"crs\": \"EPSG:4326\", \"crs_type\": \"authority_code\"}",
         "EPSG:4326"},
        {"{\"crs\": {\"type\": \"x\", \"a\": [1, 2]}}",
         "{\"type\": \"x\", \"a\": [1, 2]}"},
        {"{\"crs\": \"PROJCS[\\\"x\\\"]\"}", "PROJCS[\"x\"]"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        struct oj_error err = {OJ_OK, ""};
        char *crs = NULL;
        ck_assert_int_eq(oj_crs_text_of_metadata(cases[i][0], &crs, &err),
                         OJ_OK);
        if (cases[i][1] == NULL)
            ck_assert_ptr_null(crs);
        else
            ck_assert_str_eq(crs, cases[i][1]);
        oj_free(crs);
    }
}

/* ---- any text ------------------------------------------------------------ */

/* Reads and compares a text that ends with a zero byte, in memory of exactly
 * its size. */
static void try_text(const char *text, size_t n)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_crs_text read;
    enum oj_crs_equality equality;
    char *copy = oj_malloc((int64_t)n + 1, 1), *crs = NULL;
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (oj_crs_text_read(copy, "it", NULL, &read, &err) == OJ_OK)
    {
        ck_assert(read.kind <= OJ_CRS_KIND_LOCAL);
        ck_assert(isnan(read.unit) || read.unit > 0);
        ck_assert(read.name[0] != '\0');
        ck_assert_int_eq(
            oj_crs_text_compare(copy, CUSTOM_JSON "}", NULL, &equality, &err),
            OJ_OK);
    }
    else
        ck_assert(err.message[0] != '\0');
    if (oj_crs_text_of_metadata(copy, &crs, &err) == OJ_OK)
        oj_free(crs);
    oj_free(copy);
}

TEST(degenerate_texts_that_are_cut)
{
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++)
    {
        const char *text = stated[i].text != NULL ? stated[i].text : "";
        for (size_t n = strlen(text); n > 0; n--)
            try_text(text, n);
    }
}

static size_t change_at_random(char *text, size_t n, size_t size)
{
    static const char letters[] = "\"[](){},:\\u 019.-+eE\n\xff\x80";
    size_t at = (size_t)pick((int)n), length;
    switch (pick(5))
    {
        case 0:
            text[at] = letters[pick(sizeof letters - 1)];
            return n;
        case 1:
            text[at] = (char)(1 + pick(255));
            return n;
        case 2: /* a gap */
            length = (size_t)pick((int)(n - at) < 40 ? (int)(n - at) : 40);
            memmove(text + at, text + at + length, n - at - length);
            return n - length;
        case 3: /* duplicates a part */
            length = (size_t)pick((int)(n - at) < 60 ? (int)(n - at) : 60);
            if (n + length > size)
                return n;
            memmove(text + at + length, text + at, n - at);
            return n + length;
        default: /* exchanges two parts */
            length = (size_t)pick((int)n);
            text[at] = text[length];
            return n;
    }
}

TEST(degenerate_texts_that_are_changed)
{
    static char text[16384];
    for (int i = 0; i < 60000; i++)
    {
        const char *from = stated[pick(sizeof stated / sizeof *stated)].text;
        size_t n = from != NULL ? strlen(from) : 0;
        if (n == 0 || n > sizeof text / 2)
            continue;
        memcpy(text, from, n);
        for (int k = 1 + pick(6); k > 0 && n > 0; k--)
            n = change_at_random(text, n, sizeof text);
        try_text(text, n);
    }
}

/* Deeply nested brackets, closed or not, are refused without deep recursion. */
TEST(degenerate_deep_texts)
{
    static char text[1 << 20];
    static const char *const openings[] = {"[", "{\"a\":", "A[", "A(\"\",",
                                           "COMPD_CS[\"\","};
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
    {
        size_t length = strlen(openings[i]), n = 0;
        for (; n + length < sizeof text; n += length)
            memcpy(text + n, openings[i], length);
        try_text(text, n);
        try_text(text, 40 * length);
    }
}

TEST(degenerate_long_texts)
{
    const int64_t n = INT64_C(5) << 20;
    struct oj_crs_text read;
    struct oj_error err = {OJ_OK, ""};
    char *text = oj_malloc(n + 1, 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', (size_t)n);
    text[n] = '\0';
    ck_assert_int_eq(oj_crs_text_read(text, "it", NULL, &read, &err),
                     OJ_ERR_DATA);
    text[0] = '{';
    ck_assert_int_eq(oj_crs_text_read(text, "it", NULL, &read, &err),
                     OJ_ERR_DATA);
    oj_free(text);
}

TEST(memory_each_allocation_fails)
{
    static const char *const texts[] = {CUSTOM_JSON "}", WGS84_ESRI,
                                        "\"EPSG:4326\"", "EPSG:1"};
    struct known known = {0, 0, -1, CUSTOM_JSON "}"};
    struct oj_crs_callbacks callbacks = {expand_known_code, compare_known,
                                         &known};
    for (size_t i = 0; i < 4; i++)
    {
        for (size_t k = 0; k < 4; k++)
        {
            enum oj_crs_equality equality;
            struct oj_error err = {OJ_OK, ""};
            oj_status status = OJ_ERR_NOMEM;
            for (int64_t n = 1; status != OJ_OK; n++)
            {
                oj_alloc_fail_at(n);
                status = oj_crs_text_compare(texts[i], texts[k], &callbacks,
                                             &equality, &err);
                oj_alloc_fail_at(0);
                ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
            }
        }
    }
}

int main(void)
{
    tests_open("crs_text");
    return tests_run();
}
