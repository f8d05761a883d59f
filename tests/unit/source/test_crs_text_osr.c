/* GDAL exports CRS as WKT 1, ESRI WKT, WKT 2 and PROJJSON. The reader of CRS
 * texts must read from them what GDAL reads. Tested are one EPSG code in forty,
 * one in three from 4000 to 5000, and CRS of other authorities.
 * Kinds: unit, against GDAL. */
#include "../run_tests.h"

#include "../../../algs/api/rows/oj_crs_text.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <ogr_srs_api.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum
{
    FIRST_CODE = 2000,
    END_CODE = 33000,
    N_FORMS = 5
};

static const char *const forms[N_FORMS] = {"WKT1_GDAL", "WKT1_ESRI",
                                           "WKT2_2015", "WKT2_2019", NULL};

/* number of compared CRS by kind */
static int n_read[OJ_CRS_KIND_LOCAL + 1];

/* Returns the CRS as a text in this form, or NULL if it has no such form. */
static char *export_text(OGRSpatialReferenceH srs, const char *form)
{
    char *text = NULL;
    const char *option = CPLSPrintf("FORMAT=%s", form != NULL ? form : "");
    const char *const options[] = {option, "MULTILINE=YES", NULL};
    OGRErr error;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    error = form == NULL ? OSRExportToPROJJSON(srs, &text, NULL)
                         : OSRExportToWktEx(srs, &text, options);
    CPLPopErrorHandler();
    if (error == OGRERR_NONE && text != NULL && text[0] != '\0')
        return text;
    CPLFree(text);
    return NULL;
}

static enum oj_crs_kind kind_by_osr(OGRSpatialReferenceH srs)
{
    return OSRIsGeographic(srs)   ? OJ_CRS_KIND_GEOGRAPHIC
           : OSRIsGeocentric(srs) ? OJ_CRS_KIND_GEOCENTRIC
           : OSRIsProjected(srs)  ? OJ_CRS_KIND_PROJECTED
                                  : OJ_CRS_KIND_LOCAL;
}

/* Compares what GDAL and the reader read from a text. */
static void compare_reading(const char *text)
{
    struct oj_crs_text read;
    struct oj_error err = {OJ_OK, ""};
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    char identity[128] = "", *name = NULL;
    double unit;
    enum oj_crs_kind kind;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (OSRSetFromUserInput(srs, text) != OGRERR_NONE)
    {
        CPLPopErrorHandler();
        OSRRelease(srs);
        ck_assert_msg(strncmp(text, "VERTCS[", 7) == 0, "%.3000s", text);
        return; /* GDAL writes such texts for ESRI, but cannot read them */
    }
    kind = kind_by_osr(srs);
    unit = kind == OJ_CRS_KIND_GEOGRAPHIC ? OSRGetAngularUnits(srs, &name)
                                          : OSRGetLinearUnits(srs, &name);
    if (OSRGetAuthorityCode(srs, NULL) != NULL)
        snprintf(identity, sizeof identity, "%s:%s",
                 OSRGetAuthorityName(srs, NULL),
                 OSRGetAuthorityCode(srs, NULL));
    CPLPopErrorHandler();
    if (oj_crs_text_read(text, "it", NULL, &read, &err) != OJ_OK)
        ck_abort_msg("%s: %.3000s", err.message, text);
    ck_assert_msg(read.kind == kind, "kind %d, GDAL's %d: %.3000s",
                  (int)read.kind, (int)kind, text);
    ck_assert_msg(strcmp(read.identity, identity) == 0,
                  "'%s', not '%s': %.3000s", read.identity, identity, text);
    if (kind == OJ_CRS_KIND_GEOGRAPHIC || kind == OJ_CRS_KIND_PROJECTED)
    {
        /* with PROJ 9.1 equal bit for bit, except for grads, of which PROJ
         * stores more digits; other versions treat other factors as exact */
        ck_assert_msg(fabs(read.unit / unit - 1.0) < 1e-14,
                      "unit %.17g, GDAL's %.17g: %.3000s", read.unit, unit,
                      text);
        ck_assert_msg(strcasecmp(read.unit_name, name) == 0,
                      "%s, not %s: %.3000s", read.unit_name, name, text);
    }
    n_read[read.kind]++;
    OSRRelease(srs);
}

/* Removes the identity of the whole CRS from a text of GDAL. GDAL writes it at
 * the end of the text. */
static void remove_identity(char *text)
{
    static const char *const words[] = {"AUTHORITY[", "ID[", "\n  \"id\": {"};
    char *last = NULL;
    const char *end = text[0] == '{' ? "\n}" : "]";
    for (int i = text[0] == '{' ? 2 : 0; i < (text[0] == '{' ? 3 : 2); i++)
    {
        for (char *at = text; (at = strstr(at, words[i])) != NULL; at++)
            last = at > text && at > last ? at : last;
    }
    if (last == NULL ||
        (text[0] != '{' && strcmp(last + strcspn(last, "]"), "]]") != 0))
        return;
    while (*last != ',')
        last--;
    memcpy(last, end, strlen(end) + 1);
}

static enum oj_crs_equality compare_texts(const char *a, const char *b)
{
    enum oj_crs_equality equality;
    struct oj_error err;
    if (oj_crs_text_compare(a, b, NULL, &equality, &err) != OJ_OK)
        ck_abort_msg("%s", err.message);
    return equality;
}

struct crs_forms
{
    OGRSpatialReferenceH srs;
    char *text[N_FORMS]; /* NULL: the CRS has no such form */
};

static struct crs_forms export_forms(OGRSpatialReferenceH srs)
{
    struct crs_forms made = {.srs = srs};
    for (int i = 0; i < N_FORMS; i++)
        made.text[i] = export_text(srs, forms[i]);
    return made;
}

static void free_forms(struct crs_forms *made)
{
    for (int i = 0; i < N_FORMS; i++)
        CPLFree(made->text[i]);
    OSRRelease(made->srs);
}

/* Asserts that each form is read as GDAL reads it, and that none is found
 * different from the PROJJSON. Adds the forms found equal to it to n_equal: [0]
 * as exported, [1] after removing the authority code of the whole CRS. */
static void compare_forms(const struct crs_forms *made, int n_equal[2])
{
    for (int i = 0; i < N_FORMS; i++)
    {
        if (made->text[i] != NULL)
            compare_reading(made->text[i]);
    }
    for (int k = 0; k < 2; k++)
    {
        for (int i = 0; i < N_FORMS; i++)
        {
            if (made->text[i] == NULL || made->text[N_FORMS - 1] == NULL)
                continue;
            if (k == 1)
                remove_identity(made->text[i]);
            ck_assert_msg(
                compare_texts(made->text[i], made->text[N_FORMS - 1]) !=
                    OJ_CRS_DIFFERENT,
                "%.3000s\n%.3000s", made->text[i], made->text[N_FORMS - 1]);
            n_equal[k] +=
                compare_texts(made->text[i], made->text[N_FORMS - 1]) ==
                OJ_CRS_EQUAL;
        }
    }
}

/* If two CRS without identities are equal for the reader, they must be equal
 * for GDAL. Adds the number of equal texts to *n_equal. */
static void compare_neighbours(const struct crs_forms *a,
                               const struct crs_forms *b, int *n_equal)
{
    static const char *const options[] = {
        "IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES",
        "CRITERION=EQUIVALENT_EXCEPT_AXIS_ORDER_GEOGCRS", NULL};
    if (OSRGetAxesCount(a->srs) != OSRGetAxesCount(b->srs) ||
        OSRIsCompound(a->srs) || OSRIsCompound(b->srs))
        return;
    for (int i = 0; i < N_FORMS; i++)
    {
        if (a->text[i] == NULL || b->text[N_FORMS - 1] == NULL ||
            compare_texts(a->text[i], b->text[N_FORMS - 1]) != OJ_CRS_EQUAL)
            continue;
        ck_assert_msg(OSRIsSameEx(a->srs, b->srs, options), "%.3000s\n%.3000s",
                      a->text[i], b->text[N_FORMS - 1]);
        ++*n_equal;
    }
}

static struct crs_forms import_code(int code)
{
    struct crs_forms made = {NULL, {NULL}};
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (OSRImportFromEPSG(srs, code) == OGRERR_NONE)
        made = export_forms(srs);
    else
        OSRRelease(srs);
    CPLPopErrorHandler();
    return made;
}

static int is_chosen(int code)
{
    static const int usual[] = {2263, 3857, 4326, 4807, 4979, 7415, 27572};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    {
        if (code == usual[i])
            return 1;
    }
    return code % (code > 4000 && code < 5000 ? 3 : 40) == 0;
}

TEST(unit_texts_of_gdal)
{
    int n = 0, n_equal[2] = {0, 0}, n_neighbours = 0;
    for (int code = FIRST_CODE; code < END_CODE; code++)
    {
        struct crs_forms made, next;
        if (!is_chosen(code))
            continue;
        made = import_code(code);
        if (made.srs == NULL)
            continue;
        compare_forms(&made, n_equal);
        n++;
        next = import_code(code + 1);
        if (next.srs != NULL)
        {
            for (int i = 0; i < N_FORMS; i++)
            {
                if (next.text[i] != NULL)
                    remove_identity(next.text[i]);
            }
            compare_neighbours(&made, &next, &n_neighbours);
            free_forms(&next);
        }
        free_forms(&made);
    }
    printf("%d codes: %d geographic, %d projected, %d geocentric, %d others; "
           "%d forms found equal to PROJJSON, %d without identities, %d of "
           "neighbours\n",
           n, n_read[OJ_CRS_KIND_GEOGRAPHIC], n_read[OJ_CRS_KIND_PROJECTED],
           n_read[OJ_CRS_KIND_GEOCENTRIC], n_read[OJ_CRS_KIND_LOCAL],
           n_equal[0], n_equal[1], n_neighbours);
    ck_assert_int_ge(n, 300);
    ck_assert_int_gt(n_read[OJ_CRS_KIND_PROJECTED], 300);
    ck_assert_int_gt(n_read[OJ_CRS_KIND_GEOGRAPHIC], 100);
    ck_assert_int_gt(n_read[OJ_CRS_KIND_GEOCENTRIC], 10);
    ck_assert_int_gt(n_equal[0], 3 * n);
    ck_assert_int_gt(n_equal[1], 3 * n);
}

/* CRS of other authorities. */
static const char *const others[] = {
    "+proj=utm +zone=33 +ellps=bessel +units=km",
    "+proj=longlat +ellps=GRS80 +pm=paris",
    "+proj=longlat +datum=WGS84",
    "+proj=aea +lat_1=29.5 +lat_2=45.5 +lon_0=-96 +datum=NAD83 +units=us-ft",
    "+proj=tmerc +lat_0=1 +towgs84=1,2,3 +ellps=intl +units=m +vunits=m",
    "+proj=ob_tran +o_proj=longlat +o_lat_p=39 +lon_0=10 +ellps=WGS84",
    "+proj=geocent +datum=WGS84",
    "EPSG:4326+5773",
    "EPSG:2263+6360",
    "OGC:CRS84",
    "OGC:CRS83",
    "ESRI:54009",
    "ESRI:102003",
    "IAU:49900",
    "WGS84",
    "NAD27",
    "LOCAL_CS[\"site\",UNIT[\"foot\",0.3048]]"};

TEST_LOOP(unit_other_texts_of_gdal, 0, sizeof others / sizeof *others)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    struct crs_forms made;
    int n_equal[2] = {0, 0};
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (OSRSetFromUserInput(srs, others[_i]) != OGRERR_NONE)
        printf("this GDAL has no %s\n", others[_i]);
    else
    {
        made = export_forms(OSRClone(srs));
        compare_forms(&made, n_equal);
        free_forms(&made);
    }
    CPLPopErrorHandler();
    OSRRelease(srs);
}

int main(void)
{
    tests_open("crs_text_osr");
    return tests_run();
}
