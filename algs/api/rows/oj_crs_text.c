#include "oj_crs_text.h"

#include "../../../flatten/base/oj_alloc.h"
#include "oj_crs_tree.h"
#include "oj_distance_unit.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum
{
    NAME_BYTES = 128,
    MOST_PARAMETERS = 24
};

/* The definition of a CRS, for comparison. Names are written by
 * normalize_name() and normalize_datum(). */
struct crs_definition
{
    int is_complete;  /* 0: the text has parts that are not stored here */
    int is_wkt1;      /* 1: methods and parameters have their WKT 1 names, and
                         parameters no units */
    int is_derived;   /* 1: derived from another CRS by a conversion that is not
                         a map projection */
    double base_unit; /* if is_wkt1: unit of angles in the base CRS;
                         otherwise 0 */
    char datum[NAME_BYTES];
    double semi_major, inverse_flattening, prime_meridian;
    char method[NAME_BYTES];
    int n;
    struct crs_parameter
    {
        char name[NAME_BYTES];
        double value;
    } parameter[MOST_PARAMETERS];
    char extension[512]; /* the PROJ string of an EXTENSION node (in WKT 1 of
                            GDAL) */
};

/* All that was read from a text. */
struct crs_reading
{
    struct oj_crs_text text;
    /* Identity (AUTHORITY:CODE) of the horizontal part of a compound CRS; "":
     * none. */
    char horizontal[sizeof((struct oj_crs_text *)0)->identity];
    struct crs_definition definition; /* not complete if the text is only a
                                         code */
};

/* ---- codes --------------------------------------------------------------- */

#define WGS84_ELLIPSOID 6378137.0, 298.257223563

/* Codes whose properties are known without a text. */
static const struct
{
    const char *identity;
    enum oj_crs_kind kind;
    int is_wgs84;
    double semi_major, inverse_flattening; /* ellipsoid of a geographic CRS; 0.0
                                              for other CRS */
} known_codes[] = {
    {"EPSG:4326", OJ_CRS_KIND_GEOGRAPHIC, 1, WGS84_ELLIPSOID},
    {"EPSG:4979", OJ_CRS_KIND_GEOGRAPHIC, 1, WGS84_ELLIPSOID},
    {"OGC:CRS84", OJ_CRS_KIND_GEOGRAPHIC, 1, WGS84_ELLIPSOID},
    {"OGC:CRS84H", OJ_CRS_KIND_GEOGRAPHIC, 1, WGS84_ELLIPSOID},
    {"CRS:84", OJ_CRS_KIND_GEOGRAPHIC, 1, WGS84_ELLIPSOID},
    {"OGC:CRS83", OJ_CRS_KIND_GEOGRAPHIC, 0, 6378137.0,
     298.257222101}, /* NAD83, GRS 1980 */
    {"OGC:CRS27", OJ_CRS_KIND_GEOGRAPHIC, 0, 6378206.4,
     294.978698213898}, /* NAD27, Clarke 1866 */
    {"EPSG:3857", OJ_CRS_KIND_PROJECTED, 0, 0.0, 0.0},
};

/* Returns the index of a code in known_codes, or -1 if it is not there. */
static int index_in_known_codes(const char *identity)
{
    for (size_t i = 0; i < sizeof known_codes / sizeof *known_codes; i++)
    {
        if (strcasecmp(known_codes[i].identity, identity) == 0)
            return (int)i;
    }
    return -1;
}

/* Writes AUTHORITY:CODE, as "EPSG:2263", to identity [size]. Returns 1; if it
 * does not fit or a part is empty, makes identity "" and returns 0. */
static int write_identity(const char *authority, int n_authority,
                          const char *code, int n_code, char *identity,
                          size_t size)
{
    int n = snprintf(identity, size, "%.*s:%.*s", n_authority, authority,
                     n_code, code);
    if (n_authority == 0 || n_code == 0 || n < 0 || (size_t)n >= size)
    {
        identity[0] = '\0';
        return 0;
    }
    for (int i = 0; i < n_authority; i++)
        identity[i] = (char)toupper((unsigned char)identity[i]);
    return 1;
}

/* Parses a code and its authority, from AUTHORITY:CODE, a URN or a URL, and
 * writes both to identity. URNs and URLs may have a version between the two.
 * Returns 0 if the text is none of these. */
static int parse_code(const char *text, int n, char *identity, size_t size)
{
    static const char *const prefixes[] = {
        "urn:ogc:def:crs:", "urn:x-ogc:def:crs:",
        "http://www.opengis.net/def/crs/", "https://www.opengis.net/def/crs/"};
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789_.-";
    const char *end = text + n, *code;
    char separator[2] = ":";
    int n_authority, has_version = 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    {
        size_t length = strlen(prefixes[i]);
        if ((size_t)n > length && strncasecmp(text, prefixes[i], length) == 0)
        {
            separator[0] = prefixes[i][length - 1];
            text += length;
            has_version = 1;
            break;
        }
    }
    n_authority = (int)strspn(text, letters);
    code = text + n_authority;
    if (n_authority == 0 || code >= end || *code != separator[0])
        return 0;
    code++;
    if (has_version)
        code += strcspn(code, separator);
    if (code < end && *code == separator[0]) /* also accepts EPSG::2263 */
        code++;
    else if (has_version)
        return 0;
    n = (int)strspn(code, letters);
    while (code + n < end && code[n] == '+' &&
           n > 0) /* a compound CRS has two codes, joined by + */
        n += 1 + (int)strspn(code + n + 1, letters);
    return code + n == end &&
           write_identity(text, n_authority, code, n, identity, size);
}

/* Sets *out to what is known of a code without a text. Returns 1 if these are
 * all properties that a join needs, 0 if the text of the CRS is needed. */
static int describe_code(const char *identity, struct crs_reading *out)
{
    int known;
    *out = (struct crs_reading){.text.kind = OJ_CRS_KIND_UNKNOWN,
                                .text.unit = (double)NAN};
    snprintf(out->text.identity, sizeof out->text.identity, "%s", identity);
    snprintf(out->text.name, sizeof out->text.name, "%s", identity);
    snprintf(out->horizontal, sizeof out->horizontal, "%.*s",
             (int)strcspn(identity, "+"), identity);
    known = index_in_known_codes(out->horizontal);
    if (known < 0)
        return 0;
    out->text.kind = known_codes[known].kind;
    out->text.is_wgs84 = known_codes[known].is_wgs84;
    out->text.semi_major = known_codes[known].semi_major;
    out->text.inverse_flattening = known_codes[known].inverse_flattening;
    out->text.unit = out->text.kind == OJ_CRS_KIND_GEOGRAPHIC
                         ? oj_units[OJ_UNIT_DEG].size
                         : 1.0;
    snprintf(out->text.unit_name, sizeof out->text.unit_name, "%s",
             out->text.kind == OJ_CRS_KIND_GEOGRAPHIC ? "degree" : "metre");
    return 1;
}

/* ---- the tree of a text: parts of a CRS ---------------------------------- */

#define GEOGRAPHIC_WORDS "GEOGCS|GEOGCRS|GEOGRAPHICCRS|BASEGEOGCRS"
#define GEODETIC_WORDS "GEODCRS|GEODETICCRS|BASEGEODCRS"
#define PROJECTED_WORDS                                                        \
    "PROJCS|PROJCRS|PROJECTEDCRS|BASEPROJCRS|DERIVEDPROJCRS|DERIVEDPROJECTED"
#define LOCAL_WORDS                                                            \
    "LOCAL_CS|ENGCRS|ENGINEERINGCRS|VERT_CS|VERTCS|VERTCRS|VERTICALCRS|"       \
    "PARAMETRICCRS|TIMECRS|TEMPORALCRS"
#define COMPOUND_WORDS                                                         \
    "COMPD_CS|COMPOUNDCRS|BOUNDCRS|SOURCECRS|COORDINATEMETADATA"
#define UNIT_WORDS "UNIT|LENGTHUNIT|ANGLEUNIT|SCALEUNIT"

static int is_crs_of_wkt(const struct oj_crs_tree *tree, int32_t node)
{
    return oj_crs_tree_has_name(tree, node,
                                GEOGRAPHIC_WORDS
                                "|" GEODETIC_WORDS "|" PROJECTED_WORDS
                                "|" LOCAL_WORDS "|" COMPOUND_WORDS "|GEOCCS");
}

/* Returns the CRS in a node for which is_compound() holds: the first component
 * of a compound CRS, which is the horizontal one, the source CRS of a bound
 * CRS, or the CRS of coordinate metadata; -1 if it is missing. */
static int32_t find_part_of_compound(const struct oj_crs_tree *tree,
                                     int32_t node)
{
    int32_t child;
    if (tree->is_json)
    {
        child = oj_crs_tree_find(tree, node, "components");
        return child >= 0 ? oj_crs_tree_child(tree, child, 0)
                          : oj_crs_tree_find(tree, node, "source_crs|crs");
    }
    child = oj_crs_tree_child(tree, node, 0);
    while (child >= 0 && !is_crs_of_wkt(tree, child))
        child = tree->node[child].next;
    return child;
}

static int is_json_type(const struct oj_crs_tree *tree, int32_t node,
                        const char *types)
{
    char type[64];
    oj_crs_tree_copy_text(tree, oj_crs_tree_find(tree, node, "type"), type,
                          sizeof type);
    for (const char *at = types; type[0] != '\0';)
    {
        size_t n = strcspn(at, "|");
        if (strlen(type) == n && strncmp(at, type, n) == 0)
            return 1;
        if (at[n] == '\0')
            return 0;
        at += n + 1;
    }
    return 0;
}

static int is_compound(const struct oj_crs_tree *tree, int32_t node)
{
    return tree->is_json ? is_json_type(tree, node,
                                        "CompoundCRS|BoundCRS|"
                                        "CoordinateMetadata")
                         : oj_crs_tree_has_name(tree, node, COMPOUND_WORDS);
}

/* Returns the node of the horizontal CRS, or -1 if there is none. */
static int32_t find_horizontal_part(const struct oj_crs_tree *tree)
{
    int32_t node = 0;
    while (node >= 0 && is_compound(tree, node))
        node = find_part_of_compound(tree, node);
    return node;
}

/* Returns the kind of a geodetic CRS by its axes, for texts that do not state
 * its type. */
static enum oj_crs_kind kind_of_axes(const struct oj_crs_tree *tree,
                                     int32_t node)
{
    char word[32];
    if (tree->is_json)
        node = oj_crs_tree_find(
            tree, oj_crs_tree_find(tree, node, "coordinate_system"), "subtype");
    else
        node = oj_crs_tree_child(tree, oj_crs_tree_find(tree, node, "CS"), 0);
    oj_crs_tree_copy_text(tree, node, word, sizeof word);
    return strcasecmp(word, "Cartesian") == 0 ? OJ_CRS_KIND_GEOCENTRIC
           : strcasecmp(word, "ellipsoidal") == 0 ||
                   strcasecmp(word, "spherical") == 0
               ? OJ_CRS_KIND_GEOGRAPHIC
               : OJ_CRS_KIND_UNKNOWN;
}

static enum oj_crs_kind kind_of_json(const struct oj_crs_tree *tree,
                                     int32_t node)
{
    if (is_json_type(tree, node, "GeographicCRS|DerivedGeographicCRS"))
        return OJ_CRS_KIND_GEOGRAPHIC;
    if (is_json_type(tree, node, "GeodeticCRS|DerivedGeodeticCRS"))
        return kind_of_axes(tree, node);
    if (is_json_type(tree, node, "ProjectedCRS|DerivedProjectedCRS"))
        return OJ_CRS_KIND_PROJECTED;
    if (is_json_type(tree, node,
                     "EngineeringCRS|DerivedEngineeringCRS|VerticalCRS|"
                     "DerivedVerticalCRS|TemporalCRS|DerivedTemporalCRS|"
                     "ParametricCRS|DerivedParametricCRS"))
        return OJ_CRS_KIND_LOCAL;
    return OJ_CRS_KIND_UNKNOWN;
}

static enum oj_crs_kind kind_of_wkt(const struct oj_crs_tree *tree,
                                    int32_t node)
{
    if (oj_crs_tree_has_name(tree, node, GEOGRAPHIC_WORDS))
        return OJ_CRS_KIND_GEOGRAPHIC;
    if (oj_crs_tree_has_name(tree, node, GEODETIC_WORDS))
        return kind_of_axes(tree, node);
    if (oj_crs_tree_has_name(tree, node, PROJECTED_WORDS))
        return OJ_CRS_KIND_PROJECTED;
    if (oj_crs_tree_has_name(tree, node, "GEOCCS"))
        return OJ_CRS_KIND_GEOCENTRIC;
    return OJ_CRS_KIND_LOCAL;
}

/* Reads the identity of a node; "" if it has none. Each version of IAU's
 * catalogue is an authority of its own, as IAU_2015. */
static void read_identity(const struct oj_crs_tree *tree, int32_t node,
                          char *identity, size_t size)
{
    char authority[64], code[64];
    int32_t id, place[3]; /* nodes of the authority, the code and the version */
    id = oj_crs_tree_find(tree, node, tree->is_json ? "id" : "ID|AUTHORITY");
    if (id < 0 && tree->is_json)
        id = oj_crs_tree_child(tree, oj_crs_tree_find(tree, node, "ids"), 0);
    for (int i = 0; i < 3; i++)
    {
        static const char *const keys[] = {"authority", "code", "version"};
        place[i] = tree->is_json ? oj_crs_tree_find(tree, id, keys[i])
                                 : oj_crs_tree_child(tree, id, i);
    }
    oj_crs_tree_copy_text(tree, place[0], authority, sizeof authority);
    if (strcmp(authority, "IAU") == 0 && place[2] >= 0 &&
        tree->node[place[2]].kind <= OJ_CRS_NODE_NUMBER)
    {
        memcpy(authority, "IAU_", 5);
        oj_crs_tree_copy_text(tree, place[2], authority + 4,
                              sizeof authority - 4);
    }
    oj_crs_tree_copy_text(tree, place[1], code, sizeof code);
    write_identity(authority, (int)strlen(authority), code, (int)strlen(code),
                   identity, size);
}

static void read_name(const struct oj_crs_tree *tree, int32_t node, char *name,
                      size_t size)
{
    oj_crs_tree_copy_text(tree,
                          tree->is_json ? oj_crs_tree_find(tree, node, "name")
                                        : oj_crs_tree_child(tree, node, 0),
                          name, size);
}

/* ---- units --------------------------------------------------------------- */

/* WKT rounds factors to 15 digits or fewer: returns the exact factor for the
 * usual ones. (PROJ also does this for WKT, but not for PROJJSON.) */
static double exact_unit_factor(double factor)
{
    static const double exact[] = {1.0, 0.3048, 12.0 / 39.37,
                                   3.14159265358979323846 / 180.0};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
    {
        if (fabs(factor - exact[i]) <= 1e-10 * exact[i])
            return exact[i];
    }
    return factor;
}

/* Returns EPSG's name for one of ESRI's unit names, or name itself. */
static const char *usual_unit_name(const char *name)
{
    static const char *const names[][2] = {{"Meter", "metre"},
                                           {"Kilometer", "kilometre"},
                                           {"Foot_US", "US survey foot"},
                                           {"Foot", "foot"},
                                           {"Degree", "degree"},
                                           {"Grad", "grad"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    {
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    }
    return name;
}

/* Reads a unit and returns its factor; NaN if there is none. *is_angle: 1: unit
 * of angles, 0: not, -1: not stated. Writes the unit's name to name, unless
 * that is NULL. */
static double read_unit(const struct oj_crs_tree *tree, int32_t node,
                        int *is_angle, char *name, size_t size)
{
    char word[64] = "";
    double factor = (double)NAN;
    *is_angle = -1;
    if (node < 0)
        return factor;
    if (!tree->is_json)
    {
        read_name(tree, node, word, sizeof word);
        factor = oj_crs_tree_number(tree, oj_crs_tree_child(tree, node, 1));
        *is_angle = oj_crs_tree_has_name(tree, node, "ANGLEUNIT") ? 1
                    : oj_crs_tree_has_name(tree, node, "UNIT")    ? -1
                                                                  : 0;
    }
    else if (tree->node[node].kind == OJ_CRS_NODE_GROUP)
    {
        read_name(tree, node, word, sizeof word);
        factor = oj_crs_tree_number(
            tree, oj_crs_tree_find(tree, node, "conversion_factor"));
        *is_angle = is_json_type(tree, node, "AngularUnit")            ? 1
                    : is_json_type(tree, node, "LinearUnit|ScaleUnit") ? 0
                                                                       : -1;
    }
    else
    {
        oj_crs_tree_copy_text(tree, node, word, sizeof word);
        *is_angle = strcmp(word, "degree") == 0;
        if (*is_angle)
            factor = oj_units[OJ_UNIT_DEG].size;
        else if (strcmp(word, "metre") == 0 || strcmp(word, "unity") == 0)
            factor = 1.0;
    }
    if (name != NULL)
        snprintf(name, size, "%.*s", (int)size - 1, usual_unit_name(word));
    if (!(factor > 0))
        return (double)NAN;
    return tree->is_json ? factor : exact_unit_factor(factor);
}

/* Returns the node of the unit of the first axis or, if that axis has none, of
 * the unit that all axes share; -1 if there is neither. */
static int32_t find_axis_unit(const struct oj_crs_tree *tree, int32_t node)
{
    int32_t axis, unit;
    if (tree->is_json)
    {
        int32_t system = oj_crs_tree_find(tree, node, "coordinate_system");
        axis =
            oj_crs_tree_child(tree, oj_crs_tree_find(tree, system, "axis"), 0);
        unit = oj_crs_tree_find(tree, axis, "unit");
        return unit >= 0 ? unit : oj_crs_tree_find(tree, system, "unit");
    }
    axis = oj_crs_tree_find(tree, node, "AXIS");
    unit = oj_crs_tree_find(tree, axis, UNIT_WORDS);
    return unit >= 0 ? unit : oj_crs_tree_find(tree, node, UNIT_WORDS);
}

/* Sets the unit of the axes: in radians for a geographic CRS, otherwise in
 * metres; NaN if it is missing or not of this kind. */
static void read_axis_unit(const struct oj_crs_tree *tree, int32_t node,
                           struct oj_crs_text *out)
{
    int is_angle;
    double unit = read_unit(tree, find_axis_unit(tree, node), &is_angle,
                            out->unit_name, sizeof out->unit_name);
    if (is_angle >= 0 && is_angle != (out->kind == OJ_CRS_KIND_GEOGRAPHIC))
        unit = (double)NAN;
    out->unit = unit;
    if (isnan(unit))
        out->unit_name[0] = '\0';
}

/* ---- definition of a CRS ------------------------------------------------- */

/* Writes a name to out [size] in a form for comparison: keeps letters (in lower
 * case), digits, non-ASCII characters and "+" (CH1903+ is not CH1903). */
static void normalize_name(const char *name, char *out, size_t size)
{
    size_t n = 0;
    for (; *name != '\0' && n + 1 < size; name++)
    {
        unsigned char c = (unsigned char)*name;
        if (c >= 0x80 || c == '+' || isalnum(c))
            out[n++] = (char)tolower(c);
    }
    out[n] = '\0';
}

/* Normalises the name of a datum. Different names of WGS 84 become one:
 * WGS_1984 (WKT 1), D_WGS_1984 (ESRI), the ensemble of EPSG. */
static void normalize_datum(const char *name, char *out, size_t size)
{
    static const char *const wgs84[] = {"wgs84", "wgs1984",
                                        "worldgeodeticsystem1984"};
    static const char ensemble[] = "ensemble";
    size_t n;
    normalize_name(strncasecmp(name, "D_", 2) == 0 ? name + 2 : name, out,
                   size);
    n = strlen(out);
    if (n > sizeof ensemble &&
        strcmp(out + n - (sizeof ensemble - 1), ensemble) == 0)
        out[n - (sizeof ensemble - 1)] = '\0';
    for (int i = 0; i < 3; i++)
    {
        if (strcmp(out, wgs84[i]) == 0)
            snprintf(out, size, "%s", wgs84[0]);
    }
}

/* Returns a number of JSON multiplied by `usual`, or the value of a group
 * {"value": ..., "unit": ...} multiplied by its unit; NaN if the number or the
 * unit is missing. */
static double read_json_measure(const struct oj_crs_tree *tree, int32_t node,
                                double usual)
{
    int is_angle;
    double unit;
    if (node < 0 || tree->node[node].kind == OJ_CRS_NODE_NUMBER)
        return oj_crs_tree_number(tree, node) * usual;
    unit = read_unit(tree, oj_crs_tree_find(tree, node, "unit"), &is_angle,
                     NULL, 0);
    return oj_crs_tree_number(tree, oj_crs_tree_find(tree, node, "value")) *
           unit;
}

static void define_by_json_base(const struct oj_crs_tree *tree, int32_t base,
                                struct crs_definition *out)
{
    int32_t datum = oj_crs_tree_find(tree, base, "datum|datum_ensemble");
    int32_t ellipsoid = oj_crs_tree_find(tree, datum, "ellipsoid");
    int32_t meridian = oj_crs_tree_find(tree, datum, "prime_meridian");
    int32_t minor = oj_crs_tree_find(tree, ellipsoid, "semi_minor_axis");
    char name[NAME_BYTES];
    read_name(tree, datum, name, sizeof name);
    normalize_datum(name, out->datum, sizeof out->datum);
    out->semi_major = read_json_measure(
        tree, oj_crs_tree_find(tree, ellipsoid, "semi_major_axis|radius"), 1.0);
    out->inverse_flattening = oj_crs_tree_number(
        tree, oj_crs_tree_find(tree, ellipsoid, "inverse_flattening"));
    if (oj_crs_tree_find(tree, ellipsoid, "radius") >= 0)
        out->inverse_flattening = 0.0;
    if (minor >= 0)
        out->inverse_flattening =
            out->semi_major /
            (out->semi_major - read_json_measure(tree, minor, 1.0));
    out->prime_meridian =
        meridian < 0
            ? 0.0
            : read_json_measure(tree,
                                oj_crs_tree_find(tree, meridian, "longitude"),
                                oj_units[OJ_UNIT_DEG].size);
}

/* Returns number i of a WKT node, multiplied by the unit that follows, or by
 * `usual` if there is none. */
static double read_wkt_measure(const struct oj_crs_tree *tree, int32_t node,
                               int i, double usual)
{
    int is_angle;
    double unit = read_unit(tree, oj_crs_tree_find(tree, node, UNIT_WORDS),
                            &is_angle, NULL, 0);
    return oj_crs_tree_number(tree, oj_crs_tree_child(tree, node, i)) *
           (isnan(unit) ? usual : unit);
}

static void define_by_wkt_base(const struct oj_crs_tree *tree, int32_t base,
                               struct crs_definition *out)
{
    int32_t datum =
        oj_crs_tree_find(tree, base, "DATUM|GEODETICDATUM|TRF|ENSEMBLE");
    int32_t ellipsoid = oj_crs_tree_find(tree, datum, "SPHEROID|ELLIPSOID");
    int32_t meridian = oj_crs_tree_find(tree, base, "PRIMEM|PRIMEMERIDIAN");
    char name[NAME_BYTES];
    int is_angle;
    read_name(tree, datum, name, sizeof name);
    normalize_datum(name, out->datum, sizeof out->datum);
    out->semi_major = read_wkt_measure(tree, ellipsoid, 1, 1.0);
    out->inverse_flattening =
        oj_crs_tree_number(tree, oj_crs_tree_child(tree, ellipsoid, 2));
    out->prime_meridian =
        meridian < 0
            ? 0.0
            : read_wkt_measure(tree, meridian, 1, oj_units[OJ_UNIT_DEG].size);
    if (out->is_wkt1)
        out->base_unit = read_unit(tree, oj_crs_tree_find(tree, base, "UNIT"),
                                   &is_angle, NULL, 0);
}

/* Pairs of names of projection methods: in GDAL's WKT 1, and elsewhere. The two
 * polar stereographic methods are missing, because they share a name in WKT 1.
 */
static const char *const methods_of_wkt1[][2] = {
    {"transversemercator", "transversemercator"},
    {"lambertconformalconic1sp", "lambertconicconformal1sp"},
    {"lambertconformalconic2sp", "lambertconicconformal2sp"},
    {"albersconicequalarea", "albersequalarea"},
    {"mercator2sp", "mercatorvariantb"},
    {"lambertazimuthalequalarea", "lambertazimuthalequalarea"},
    {"obliquestereographic", "obliquestereographic"},
    {"cassinisoldner", "cassinisoldner"}};

enum parameter_unit
{
    PARAMETER_ANGLE,
    PARAMETER_LENGTH,
    PARAMETER_SCALE
};

/* Names of projection parameters: in WKT 1; in EPSG with one standard parallel;
 * in EPSG with two. */
static const struct
{
    const char *name[3];
    enum parameter_unit unit;
} usual_parameters[] = {
    {{"latitudeoforigin", "latitudeofnaturalorigin", "latitudeoffalseorigin"},
     PARAMETER_ANGLE},
    {{"latitudeofcenter", "latitudeofnaturalorigin", "latitudeoffalseorigin"},
     PARAMETER_ANGLE},
    {{"centralmeridian", "longitudeofnaturalorigin", "longitudeoffalseorigin"},
     PARAMETER_ANGLE},
    {{"longitudeofcenter", "longitudeofnaturalorigin",
      "longitudeoffalseorigin"},
     PARAMETER_ANGLE},
    {{"standardparallel1", "latitudeof1ststandardparallel", ""},
     PARAMETER_ANGLE},
    {{"standardparallel2", "latitudeof2ndstandardparallel", ""},
     PARAMETER_ANGLE},
    {{"scalefactor", "scalefactoratnaturalorigin", ""}, PARAMETER_SCALE},
    {{"falseeasting", "falseeasting", "eastingatfalseorigin"},
     PARAMETER_LENGTH},
    {{"falsenorthing", "falsenorthing", "northingatfalseorigin"},
     PARAMETER_LENGTH}};

/* Returns the index of a parameter in usual_parameters by its WKT 1 name
 * (is_wkt1 1) or by its EPSG name, or -1 if it is not there. */
static int find_usual_parameter(const char *name, int is_wkt1)
{
    for (size_t i = 0; i < sizeof usual_parameters / sizeof *usual_parameters;
         i++)
    {
        for (int k = is_wkt1 ? 0 : 1; k < (is_wkt1 ? 1 : 3); k++)
        {
            if (strcmp(usual_parameters[i].name[k], name) == 0)
                return (int)i;
        }
    }
    return -1;
}

/* Replaces the name of a projection method in WKT 1 by its name elsewhere;
 * returns 0 if there is none. */
static int rename_method_of_wkt1(char *method, size_t size)
{
    for (size_t i = 0; i < sizeof methods_of_wkt1 / sizeof *methods_of_wkt1;
         i++)
    {
        if (strcmp(methods_of_wkt1[i][0], method) == 0)
        {
            snprintf(method, size, "%s", methods_of_wkt1[i][1]);
            return 1;
        }
    }
    return 0;
}

/* Inserts a parameter, sorted by name, with EPSG's first name if it has several
 * names. Marks the definition as incomplete if value is NaN or the array is
 * full. */
static void add_parameter(struct crs_definition *out, const char *name,
                          double value)
{
    struct crs_parameter parameter = {"", value};
    int i = out->n, usual;
    normalize_name(name, parameter.name, sizeof parameter.name);
    usual = find_usual_parameter(parameter.name, out->is_wkt1);
    if (usual >= 0)
        snprintf(parameter.name, sizeof parameter.name, "%s",
                 usual_parameters[usual].name[1]);
    if (isnan(value) || i == MOST_PARAMETERS)
    {
        out->is_complete = 0;
        return;
    }
    for (; i > 0 && strcmp(out->parameter[i - 1].name, parameter.name) > 0; i--)
        out->parameter[i] = out->parameter[i - 1];
    out->parameter[i] = parameter;
    out->n++;
}

static void define_by_json_conversion(const struct oj_crs_tree *tree,
                                      int32_t node, struct crs_definition *out)
{
    int32_t conversion = oj_crs_tree_find(tree, node, "conversion");
    int32_t list = oj_crs_tree_find(tree, conversion, "parameters");
    char name[NAME_BYTES];
    read_name(tree, oj_crs_tree_find(tree, conversion, "method"), name,
              sizeof name);
    normalize_name(name, out->method, sizeof out->method);
    for (int32_t at = list >= 0 ? tree->node[list].first : -1; at >= 0;
         at = tree->node[at].next)
    {
        int is_angle;
        int32_t value = oj_crs_tree_find(tree, at, "value");
        double unit = read_unit(tree, oj_crs_tree_find(tree, at, "unit"),
                                &is_angle, NULL, 0);
        read_name(tree, at, name, sizeof name);
        add_parameter(out, name, oj_crs_tree_number(tree, value) * unit);
    }
}

/* Returns the factor of the unit of a WKT 1 parameter, which WKT 1 does not
 * state: for angles the unit of the base CRS, for lengths that of the axes.
 * Returns 0 for parameters that only WKT 1 has. */
static double unit_of_wkt1_parameter(const struct crs_definition *definition,
                                     const char *name, double axis_unit)
{
    char normalized[NAME_BYTES];
    int usual;
    normalize_name(name, normalized, sizeof normalized);
    usual = find_usual_parameter(normalized, 1);
    if (usual < 0)
        return 0.0;
    return usual_parameters[usual].unit == PARAMETER_ANGLE
               ? definition->base_unit
           : usual_parameters[usual].unit == PARAMETER_LENGTH ? axis_unit
                                                              : 1.0;
}

/* Reads the projection and its parameters. In WKT 1 their nodes are siblings of
 * the axes, not children of a conversion. */
static void define_by_wkt_conversion(const struct oj_crs_tree *tree,
                                     int32_t node, double axis_unit,
                                     struct crs_definition *out)
{
    int32_t conversion =
        out->is_wkt1
            ? node
            : oj_crs_tree_find(tree, node, "CONVERSION|DERIVINGCONVERSION");
    int is_usual = out->is_wkt1;
    char name[NAME_BYTES];
    read_name(tree, oj_crs_tree_find(tree, conversion, "METHOD|PROJECTION"),
              name, sizeof name);
    normalize_name(name, out->method, sizeof out->method);
    if (is_usual)
        is_usual = rename_method_of_wkt1(out->method, sizeof out->method);
    for (int32_t at = conversion >= 0 ? tree->node[conversion].first : -1;
         at >= 0; at = tree->node[at].next)
    {
        double unit = 1.0;
        if (oj_crs_tree_has_name(tree, at, "PARAMETERFILE"))
            out->is_complete = 0;
        if (!oj_crs_tree_has_name(tree, at, "PARAMETER"))
            continue;
        read_name(tree, at, name, sizeof name);
        if (out->is_wkt1)
        {
            unit = unit_of_wkt1_parameter(out, name, axis_unit);
            is_usual = is_usual && unit > 0;
            unit = unit > 0 ? unit : 1.0;
        }
        add_parameter(out, name, read_wkt_measure(tree, at, 1, unit));
    }
    if (is_usual) /* every name has a counterpart outside of WKT 1, so the
                     definition can be compared with others */
    {
        out->is_wkt1 = 0;
        out->base_unit = 0.0;
    }
}

/* Returns the base CRS of a projected or derived CRS, and node itself for
 * others. */
static int32_t find_base(const struct oj_crs_tree *tree, int32_t node)
{
    int32_t base = tree->is_json
                       ? oj_crs_tree_find(tree, node, "base_crs")
                       : oj_crs_tree_find(tree, node,
                                          GEOGRAPHIC_WORDS "|" GEODETIC_WORDS
                                                           "|BASEPROJCRS");
    return base >= 0 ? base : node;
}

static void define_crs(const struct oj_crs_tree *tree, int32_t node,
                       const struct oj_crs_text *text,
                       struct crs_definition *out)
{
    int32_t base = find_base(tree, node), extension;
    *out = (struct crs_definition){0};
    out->is_complete = text->kind == OJ_CRS_KIND_GEOGRAPHIC ||
                       text->kind == OJ_CRS_KIND_PROJECTED;
    if (!out->is_complete)
        return;
    out->is_derived = base != node && text->kind == OJ_CRS_KIND_GEOGRAPHIC;
    out->is_wkt1 =
        !tree->is_json && oj_crs_tree_has_name(tree, node, "PROJCS|GEOGCS");
    if (find_base(tree, base) != base)
        out->is_complete = 0; /* derived from a CRS that is itself derived */
    extension = oj_crs_tree_find(tree, node, "EXTENSION");
    oj_crs_tree_copy_text(tree, oj_crs_tree_child(tree, extension, 1),
                          out->extension, sizeof out->extension);
    if (strlen(out->extension) + 4 >= sizeof out->extension)
        out->is_complete = 0;
    if (tree->is_json)
    {
        define_by_json_base(tree, base, out);
        if (base != node)
            define_by_json_conversion(tree, node, out);
    }
    else
    {
        define_by_wkt_base(tree, base, out);
        if (base != node)
            define_by_wkt_conversion(tree, node, text->unit, out);
    }
    if (out->datum[0] == '\0' || !(out->semi_major > 0) ||
        isnan(out->inverse_flattening) || isnan(out->prime_meridian) ||
        (base != node && out->method[0] == '\0'))
        out->is_complete = 0;
}

static int are_nearly_equal(double a, double b)
{
    return a == b || fabs(a - b) <= 1e-11 * fmax(fabs(a), fabs(b));
}

static int is_definition_of_wgs84(const struct crs_definition *d,
                                  const struct oj_crs_text *text)
{
    return d->is_complete && text->kind == OJ_CRS_KIND_GEOGRAPHIC &&
           !d->is_derived && strcmp(d->datum, "wgs84") == 0 &&
           are_nearly_equal(d->semi_major, 6378137.0) &&
           fabs(d->inverse_flattening - 298.257223563) < 1e-6 &&
           d->prime_meridian == 0.0 && d->extension[0] == '\0' &&
           are_nearly_equal(text->unit, oj_units[OJ_UNIT_DEG].size);
}

/* Sets the ellipsoid of a geographic CRS. A derived CRS (rotated pole) gets
 * none, because its coordinates are not longitudes and latitudes on the
 * ellipsoid. */
static void describe_ellipsoid(const struct crs_definition *definition,
                               struct oj_crs_text *text)
{
    if (text->kind != OJ_CRS_KIND_GEOGRAPHIC || definition->is_derived ||
        !(definition->semi_major > 0.0) ||
        isnan(definition->inverse_flattening))
        return;
    text->semi_major = definition->semi_major;
    text->inverse_flattening = definition->inverse_flattening;
}

/* ---- reading a text ------------------------------------------------------ */

/* Returns the epoch of coordinate metadata as a year, or 0 if there is none. */
static double read_epoch(const struct oj_crs_tree *tree)
{
    int32_t node = -1;
    double epoch;
    if (tree->is_json && is_json_type(tree, 0, "CoordinateMetadata"))
        node = oj_crs_tree_find(tree, 0, "coordinateEpoch");
    else if (!tree->is_json &&
             oj_crs_tree_has_name(tree, 0, "COORDINATEMETADATA"))
        node = oj_crs_tree_child(tree, oj_crs_tree_find(tree, 0, "EPOCH"), 0);
    epoch = oj_crs_tree_number(tree, node);
    return epoch > 0.0 && isfinite(epoch) ? epoch : 0.0;
}

static oj_status describe_crs_of_tree(const struct oj_crs_tree *tree,
                                      const char *whose,
                                      struct crs_reading *out,
                                      struct oj_error *err)
{
    int32_t part = find_horizontal_part(tree);
    struct oj_crs_text *text = &out->text;
    const char *identity;
    int known;
    *out = (struct crs_reading){.text.unit = (double)NAN};
    if (part < 0 || (tree->is_json ? tree->node[part].kind != OJ_CRS_NODE_GROUP
                                   : !is_crs_of_wkt(tree, part)))
        return oj_fail(err, OJ_ERR_DATA,
                       "%s is %s that describes no CRS: give PROJJSON, WKT or "
                       "AUTHORITY:CODE",
                       whose, tree->is_json ? "JSON" : "a text");
    if (tree->is_json && oj_crs_tree_find(tree, 0, "type|id") < 0)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s is JSON without \"type\", so it is no PROJJSON: "
                       "give PROJJSON, WKT or AUTHORITY:CODE",
                       whose);
    text->kind =
        tree->is_json ? kind_of_json(tree, part) : kind_of_wkt(tree, part);
    read_axis_unit(tree, part, text);
    read_identity(tree, 0, text->identity, sizeof text->identity);
    read_identity(tree, part, out->horizontal, sizeof out->horizontal);
    read_name(tree, 0, text->name, sizeof text->name);
    if (text->name[0] == '\0')
        read_name(tree, part, text->name, sizeof text->name);
    if (text->identity[0] != '\0')
        snprintf(text->name, sizeof text->name, "%s", text->identity);
    else if (text->name[0] == '\0')
        snprintf(text->name, sizeof text->name, "unnamed");
    text->epoch = read_epoch(tree);
    if (text->epoch > 0.0)
        snprintf(text->name + strlen(text->name),
                 sizeof text->name - strlen(text->name), " at epoch %.10g",
                 text->epoch);
    define_crs(tree, part, text, &out->definition);
    describe_ellipsoid(&out->definition, text);
    identity = out->horizontal[0] != '\0' ? out->horizontal : text->identity;
    known = index_in_known_codes(identity);
    text->is_wgs84 = text->kind == OJ_CRS_KIND_GEOGRAPHIC &&
                     ((known >= 0 && known_codes[known].is_wgs84) ||
                      is_definition_of_wgs84(&out->definition, text));
    return OJ_OK;
}

static oj_status read_text(const char *text, const char *whose,
                           const struct oj_crs_callbacks *callbacks,
                           struct crs_reading *out, struct oj_error *err);

/* Copies the content of a text node without escapes; the caller frees it. */
static oj_status copy_text_of_node(const struct oj_crs_tree *tree, int32_t node,
                                   char **out, struct oj_error *err)
{
    size_t size = (size_t)tree->node[node].n_text + 1;
    char *content;
    OJ_NEW(content, (int64_t)size, err);
    oj_crs_tree_copy_text(tree, node, content, size);
    *out = content;
    return OJ_OK;
}

/* Reads a JSON string: its content is the text of a CRS. */
static oj_status read_json_string(const struct oj_crs_tree *tree,
                                  const char *whose,
                                  const struct oj_crs_callbacks *callbacks,
                                  struct crs_reading *out, struct oj_error *err)
{
    char *content = NULL;
    oj_status status;
    OJ_TRY(copy_text_of_node(tree, 0, &content, err));
    if (content[strspn(content, " \t\r\n")] == '"')
        status = oj_fail(
            err, OJ_ERR_DATA,
            "%s is in quotes twice: write it with one pair of quotes", whose);
    else
        status = read_text(content, whose, callbacks, out, err);
    oj_free(content);
    return status;
}

static oj_status read_tree(const char *text, const char *whose,
                           const struct oj_crs_callbacks *callbacks,
                           struct crs_reading *out, struct oj_error *err)
{
    struct oj_crs_tree tree;
    oj_status status;
    OJ_TRY(oj_crs_tree_read(text, whose, &tree, err));
    if (tree.is_json && tree.node[0].kind == OJ_CRS_NODE_TEXT)
        status = read_json_string(&tree, whose, callbacks, out, err);
    else
        status = describe_crs_of_tree(&tree, whose, out, err);
    oj_crs_tree_free(&tree);
    return status;
}

/* Gets the definition of a code or name from the caller's callback; *text is
 * NULL if it has none. The caller frees *text. */
static oj_status
look_up_crs_definition(const char *words,
                       const struct oj_crs_callbacks *callbacks, char **text,
                       struct oj_error *err)
{
    int size = 8192, length;
    *text = NULL;
    if (callbacks == NULL || callbacks->expand == NULL)
        return OJ_OK;
    for (;;)
    {
        OJ_NEW(*text, size, err);
        (*text)[0] = '\0';
        length = callbacks->expand(callbacks->user, words, *text, (size_t)size);
        if (length > 0 && length < size)
        {
            (*text)[length] = '\0';
            return OJ_OK;
        }
        oj_free(*text);
        *text = NULL;
        if (length <= 0)
            return OJ_OK;
        if (length >= OJ_CRS_TREE_BYTES)
            return oj_fail(err, OJ_ERR_DATA,
                           "expand() gives a text of %d bytes for the CRS "
                           "'%.100s', more than the %d that a CRS may have: "
                           "give its PROJJSON or WKT",
                           length, words, OJ_CRS_TREE_BYTES);
        size = length + 1;
    }
}

/* Reads the definition that the callback gives for a code or name. identity:
 * AUTHORITY:CODE of the code, or "". *is_expanded: 0 if the callback gives
 * none. */
static oj_status read_definition_from_callback(
    const char *words, const char *identity, const char *whose,
    const struct oj_crs_callbacks *callbacks, struct crs_reading *out,
    int *is_expanded, struct oj_error *err)
{
    char *text;
    oj_status status;
    *is_expanded = 0;
    OJ_TRY(look_up_crs_definition(words, callbacks, &text, err));
    if (text == NULL)
        return OJ_OK;
    status = read_text(text, whose, NULL, out, err);
    oj_free(text);
    OJ_TRY(status);
    *is_expanded = out->text.kind != OJ_CRS_KIND_NONE;
    if (identity[0] != '\0')
    {
        snprintf(out->text.identity, sizeof out->text.identity, "%s", identity);
        snprintf(out->text.name, sizeof out->text.name, "%s", identity);
    }
    return OJ_OK;
}

/* Reads a code, or a name that the callback may have a definition for. (The
 * text is neither JSON nor WKT.) */
static oj_status read_code_or_name(const char *text, int n, const char *whose,
                                   const struct oj_crs_callbacks *callbacks,
                                   struct crs_reading *out,
                                   struct oj_error *err)
{
    char identity[sizeof out->text.identity] = "";
    int is_number = (int)strspn(text, "0123456789") == n, is_expanded;
    int is_code = parse_code(text, n, identity, sizeof identity);
    if (is_code && describe_code(identity, out))
        return OJ_OK;
    OJ_TRY(read_definition_from_callback(is_code ? identity : text, identity,
                                         whose, callbacks, out, &is_expanded,
                                         err));
    if (is_expanded)
        return OJ_OK;
    if (!is_code)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s '%.100s' is no CRS in PROJJSON or WKT, nor "
                       "AUTHORITY:CODE; write %sEPSG:%.20s",
                       whose, text, is_number ? "" : "for example ",
                       is_number ? text : "2263");
    describe_code(identity, out);
    return OJ_OK;
}

/* Returns 1 if the text begins like WKT, with KEYWORD[ or KEYWORD(". The name
 * "NAD83(2011)" does not. */
static int begins_like_wkt(const char *text)
{
    const char *at = text;
    while (isalnum((unsigned char)*at) || *at == '_')
        at++;
    if (at == text)
        return 0;
    at += strspn(at, " \t\r\n");
    if (*at != '(')
        return *at == '[';
    at++;
    at += strspn(at, " \t\r\n");
    return *at == '"';
}

static oj_status read_text(const char *text, const char *whose,
                           const struct oj_crs_callbacks *callbacks,
                           struct crs_reading *out, struct oj_error *err)
{
    size_t n;
    text += strspn(text, " \t\r\n");
    n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    if (n == 0 || (n == 4 && strncmp(text, "null", n) == 0))
    {
        *out =
            (struct crs_reading){.text.unit = (double)NAN, .text.name = "none"};
        return OJ_OK;
    }
    if (strchr("{[\"", *text) != NULL || begins_like_wkt(text))
        return read_tree(text, whose, callbacks, out, err);
    if (n > 4096)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s is a text of %lld bytes and no CRS: give PROJJSON, "
                       "WKT or AUTHORITY:CODE",
                       whose, (long long)n);
    return read_code_or_name(text, (int)n, whose, callbacks, out, err);
}

oj_status oj_crs_text_read(const char *text, const char *whose,
                           const struct oj_crs_callbacks *callbacks,
                           struct oj_crs_text *out, struct oj_error *err)
{
    struct crs_reading reading;
    OJ_TRY(
        read_text(text != NULL ? text : "", whose, callbacks, &reading, err));
    *out = reading.text;
    return OJ_OK;
}

/* ---- comparison ---------------------------------------------------------- */

static int are_identities_equal(const char *a, const char *b)
{
    return a[0] != '\0' && strcasecmp(a, b) == 0;
}

static int are_methods_equal(const struct crs_definition *a,
                             const struct crs_definition *b)
{
    if (strcmp(a->method, b->method) != 0 || a->n != b->n)
        return 0;
    for (int i = 0; i < a->n; i++)
    {
        if (strcmp(a->parameter[i].name, b->parameter[i].name) != 0)
            return 0;
    }
    return 1;
}

static int are_parameters_equal(const struct crs_definition *a,
                                const struct crs_definition *b)
{
    for (int i = 0; i < a->n; i++)
    {
        if (!are_nearly_equal(a->parameter[i].value, b->parameter[i].value))
            return 0;
    }
    return are_nearly_equal(a->base_unit, b->base_unit);
}

/* Returns the result of comparing two definitions. Without a map projection,
 * the names in WKT 1 equal those elsewhere. */
static enum oj_crs_equality compare_definitions(const struct crs_reading *x,
                                                const struct crs_reading *y)
{
    const struct crs_definition *a = &x->definition, *b = &y->definition;
    int is_projected = x->text.kind == OJ_CRS_KIND_PROJECTED || a->is_derived;
    if (!a->is_complete || !b->is_complete)
        return OJ_CRS_NOT_KNOWN;
    if (!are_nearly_equal(x->text.unit, y->text.unit) ||
        a->is_derived != b->is_derived ||
        fabs(a->semi_major - b->semi_major) > 1e-3 ||
        fabs(a->inverse_flattening - b->inverse_flattening) > 1e-3 ||
        fabs(a->prime_meridian - b->prime_meridian) > 1e-9)
        return OJ_CRS_DIFFERENT;
    if (strcmp(a->datum, b->datum) != 0 ||
        strcmp(a->extension, b->extension) != 0)
        return OJ_CRS_NOT_KNOWN;
    if (!is_projected)
        return OJ_CRS_EQUAL;
    if (a->is_wkt1 != b->is_wkt1 || !are_methods_equal(a, b))
        return OJ_CRS_NOT_KNOWN;
    return are_parameters_equal(a, b) ? OJ_CRS_EQUAL : OJ_CRS_DIFFERENT;
}

/* Returns the result of comparing what the two texts state. */
static enum oj_crs_equality compare_parsed_crs(const struct crs_reading *x,
                                               const struct crs_reading *y)
{
    if (x->text.kind != y->text.kind && x->text.kind != OJ_CRS_KIND_UNKNOWN &&
        y->text.kind != OJ_CRS_KIND_UNKNOWN)
        return OJ_CRS_DIFFERENT;
    if (x->text.is_wgs84 ? y->definition.is_complete
                         : y->text.is_wgs84 && x->definition.is_complete)
        return OJ_CRS_DIFFERENT;
    return compare_definitions(x, y);
}

/* Returns 1 if both are codes of one authority. */
static int have_one_authority(const struct crs_reading *x,
                              const struct crs_reading *y)
{
    size_t n = strcspn(x->text.identity, ":") + 1;
    return x->text.identity[0] != '\0' &&
           strncasecmp(x->text.identity, y->text.identity, n) == 0;
}

int oj_crs_text_has_other_epoch(const struct oj_crs_text *a,
                                const struct oj_crs_text *b)
{
    return a->epoch > 0.0 && b->epoch > 0.0 && a->epoch != b->epoch;
}

static oj_status compare_texts(const char *a, const char *b,
                               const struct oj_crs_callbacks *callbacks,
                               enum oj_crs_equality *out, struct oj_error *err)
{
    struct crs_reading x, y;
    OJ_TRY(read_text(a, "the first CRS", callbacks, &x, err));
    OJ_TRY(read_text(b, "the second CRS", callbacks, &y, err));
    if (x.text.kind == OJ_CRS_KIND_NONE || y.text.kind == OJ_CRS_KIND_NONE)
        *out = x.text.kind == y.text.kind ? OJ_CRS_EQUAL : OJ_CRS_DIFFERENT;
    else if (oj_crs_text_has_other_epoch(&x.text, &y.text))
        *out = OJ_CRS_DIFFERENT;
    else if ((x.text.is_wgs84 && y.text.is_wgs84) || strcmp(a, b) == 0 ||
             are_identities_equal(x.text.identity, y.text.identity) ||
             are_identities_equal(x.horizontal, y.horizontal))
        *out = OJ_CRS_EQUAL;
    else
        *out = compare_parsed_crs(&x, &y);
    if (*out == OJ_CRS_NOT_KNOWN && callbacks != NULL &&
        callbacks->compare != NULL)
    {
        int answer = callbacks->compare(callbacks->user, a, b);
        *out = answer > 0    ? OJ_CRS_EQUAL
               : answer == 0 ? OJ_CRS_DIFFERENT
                             : OJ_CRS_NOT_KNOWN;
    }
    if (*out == OJ_CRS_NOT_KNOWN && have_one_authority(&x, &y))
        *out = OJ_CRS_DIFFERENT; /* two different codes */
    return OJ_OK;
}

/* Replaces *text, if it is a JSON string, by its content, and NULL by "". The
 * caller frees *owned. */
static oj_status unquote_json_text(const char **text, char **owned,
                                   struct oj_error *err)
{
    struct oj_crs_tree tree;
    oj_status status;
    if (*text == NULL)
        *text = "";
    if ((*text)[strspn(*text, " \t\r\n")] != '"')
        return OJ_OK;
    OJ_TRY(oj_crs_tree_read(*text, "a CRS", &tree, err));
    status = copy_text_of_node(&tree, 0, owned, err);
    oj_crs_tree_free(&tree);
    if (status == OJ_OK)
        *text = *owned;
    return status;
}

oj_status oj_crs_text_compare(const char *a, const char *b,
                              const struct oj_crs_callbacks *callbacks,
                              enum oj_crs_equality *out, struct oj_error *err)
{
    char *owned[2] = {NULL, NULL};
    oj_status status = unquote_json_text(&a, &owned[0], err);
    if (status == OJ_OK)
        status = unquote_json_text(&b, &owned[1], err);
    if (status == OJ_OK)
        status = compare_texts(a, b, callbacks, out, err);
    oj_free(owned[0]);
    oj_free(owned[1]);
    return status;
}

/* ---- metadata of GeoArrow ------------------------------------------------ */

/* Copies a JSON value as it is written; for a string its content. */
static oj_status copy_json_value(const struct oj_crs_tree *tree, int32_t node,
                                 char **out, struct oj_error *err)
{
    const struct oj_crs_node *n = &tree->node[node];
    char *text;
    if (n->kind == OJ_CRS_NODE_TEXT)
        return copy_text_of_node(tree, node, out, err);
    OJ_NEW(text, n->n_text + 1, err);
    memcpy(text, n->text, (size_t)n->n_text);
    text[n->n_text] = '\0';
    *out = text;
    return OJ_OK;
}

oj_status oj_crs_text_of_metadata(const char *metadata, char **crs,
                                  struct oj_error *err)
{
    struct oj_crs_tree tree;
    int32_t node;
    oj_status status = OJ_OK;
    char *text = NULL;
    if (metadata != NULL && metadata[strspn(metadata, " \t\r\n")] != '\0')
    {
        OJ_TRY(oj_crs_tree_read(metadata, "the metadata of a geometry column",
                                &tree, err));
        node = tree.is_json ? oj_crs_tree_find(&tree, 0, "crs") : -1;
        if (node >= 0 && tree.node[node].kind != OJ_CRS_NODE_WORD)
            status = copy_json_value(&tree, node, &text, err);
        oj_crs_tree_free(&tree);
    }
    if (status == OJ_OK)
        *crs = text;
    return status;
}
