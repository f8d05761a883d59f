#include "oj_geometry_text.h"

#include "../base/oj_alloc.h"
#include "../base/oj_number.h"
#include "../base/oj_utf8.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum
{
    HAS_Z = 1,
    HAS_M = 2
};

/* Types of WKB. */
enum
{
    POINT = 1,
    LINE,
    POLYGON,
    MULTIPOINT,
    MULTILINE,
    MULTIPOLYGON,
    COLLECTION
};

static const struct kind_name
{
    const char *name;
    uint32_t kind; /* type of WKB; 0: the kind is not supported */
} kinds[] = {{"POINT", POINT},
             {"LINESTRING", LINE},
             {"LINEARRING", LINE},
             {"POLYGON", POLYGON},
             {"MULTIPOINT", MULTIPOINT},
             {"MULTILINESTRING", MULTILINE},
             {"MULTIPOLYGON", MULTIPOLYGON},
             {"GEOMETRYCOLLECTION", COLLECTION},
             {"CIRCULARSTRING", 0},
             {"COMPOUNDCURVE", 0},
             {"CURVEPOLYGON", 0},
             {"MULTICURVE", 0},
             {"MULTISURFACE", 0},
             {"POLYHEDRALSURFACE", 0},
             {"TIN", 0},
             {"TRIANGLE", 0}};

/* State of reading one text. */
struct text_reader
{
    const char *text, *at, *end;
    struct oj_geometry_bytes *out;
    struct oj_error *err;
    int depth;      /* number of collections around the geometry */
    int of_members; /* HAS_Z and HAS_M, or'ed, of the members of the innermost
                       collection read so far */
};

/* --- bytes ---------------------------------------------------------------- */

static oj_status append_bytes(struct text_reader *r, const void *bytes,
                              int64_t n)
{
    struct oj_geometry_bytes *out = r->out;
    OJ_ROOM(out->byte, out->n, out->n + n, out->cap, r->err);
    memcpy(out->byte + out->n, bytes, (size_t)n);
    out->n += n;
    return OJ_OK;
}

static void write_uint32(struct text_reader *r, int64_t at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        r->out->byte[at + i] = (uint8_t)(value >> 8 * i);
}

/* Appends an integer and sets *at to its offset, where write_uint32() can
 * change it later. */
static oj_status append_uint32(struct text_reader *r, uint32_t value,
                               int64_t *at)
{
    const uint8_t none[4] = {0};
    *at = r->out->n;
    OJ_TRY(append_bytes(r, none, 4));
    write_uint32(r, *at, value);
    return OJ_OK;
}

static oj_status append_double(struct text_reader *r, double value)
{
    uint8_t bytes[8];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    return append_bytes(r, bytes, 8);
}

static uint32_t iso_type(uint32_t kind, int dimensions)
{
    return kind + 1000 * (uint32_t)dimensions;
}

/* Appends the byte order and the type of a geometry, and sets *at to the offset
 * of the type, which write_uint32() can change later. */
static oj_status append_head(struct text_reader *r, uint32_t kind,
                             int dimensions, int64_t *at)
{
    const uint8_t is_little_endian = 1;
    OJ_TRY(append_bytes(r, &is_little_endian, 1));
    return append_uint32(r, iso_type(kind, dimensions), at);
}

/* --- words ---------------------------------------------------------------- */

void oj_geometry_text_excerpt(const char *text, int64_t n, char *out,
                              size_t size)
{
    int64_t from = 0;
    size_t to = 0;
    while (from < n)
    {
        uint32_t code;
        int length =
            oj_utf8_decode((const unsigned char *)text + from, n - from, &code);
        size_t n_bytes = length > 0 ? (size_t)length : 1;
        if (to + n_bytes >= size)
            break;
        if (length > 1)
            memcpy(out + to, text + from, (size_t)length);
        else
            out[to] = length == 0                   ? '?'
                      : code < 0x20 || code == 0x7f ? ' '
                                                    : text[from];
        from += (int64_t)n_bytes;
        to += n_bytes;
    }
    out[to] = '\0';
}

static oj_status fail_here(const struct text_reader *r, const char *what)
{
    char excerpt[21];
    int64_t n_characters = 1;
    if (r->at >= r->end)
        return oj_fail(r->err, OJ_ERR_DATA, "the text ends where %s belongs",
                       what);
    oj_geometry_text_excerpt(r->at, r->end - r->at, excerpt, sizeof excerpt);
    for (const char *c = r->text; c < r->at; c++)
        n_characters += ((unsigned char)*c & 0xc0) != 0x80;
    return oj_fail(r->err, OJ_ERR_DATA,
                   "character %lld, '%s', stands where %s belongs",
                   (long long)n_characters, excerpt, what);
}

static int is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(struct text_reader *r)
{
    while (r->at < r->end && is_space(*r->at))
        r->at++;
}

/* Skips white space and then the character `mark`. Returns 0 if another
 * character follows. */
static int skip_expected_mark(struct text_reader *r, char mark)
{
    skip_space(r);
    if (r->at == r->end || *r->at != mark)
        return 0;
    r->at++;
    return 1;
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Skips white space and returns the number of letters that follow. */
static int64_t count_letters(struct text_reader *r)
{
    const char *at;
    skip_space(r);
    for (at = r->at; at < r->end && is_letter(*at);)
        at++;
    return at - r->at;
}

static int is_word(const char *text, int64_t n, const char *word)
{
    return (size_t)n == strlen(word) && strncasecmp(text, word, (size_t)n) == 0;
}

static int skip_expected_word(struct text_reader *r, const char *word)
{
    int64_t n = count_letters(r);
    if (!is_word(r->at, n, word))
        return 0;
    r->at += n;
    return 1;
}

/* Returns the dimensions that Z, M or ZM stands for; 0: the word is none of
 * them. */
static int dimensions_of_word(const char *text, int64_t n)
{
    return is_word(text, n, "Z")    ? HAS_Z
           : is_word(text, n, "M")  ? HAS_M
           : is_word(text, n, "ZM") ? HAS_Z | HAS_M
                                    : 0;
}

static const struct kind_name *find_kind(const char *text, int64_t n)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    {
        if (is_word(text, n, kinds[i].name))
            return &kinds[i];
    }
    return NULL;
}

/* Reads the name of a kind, and Z, M or ZM after it; *dimensions is -1 if none
 * of these follows. */
static oj_status read_kind(struct text_reader *r, uint32_t *kind,
                           int *dimensions)
{
    int64_t n = count_letters(r);
    const struct kind_name *found = find_kind(r->at, n);
    *dimensions = -1;
    for (int suffix = 1; found == NULL && suffix <= 2 && suffix < n; suffix++)
    {
        int here = dimensions_of_word(r->at + n - suffix, suffix);
        if (here != 0 && (found = find_kind(r->at, n - suffix)) != NULL)
            *dimensions = here;
    }
    if (found == NULL)
        return fail_here(r, "a kind of geometry, as POINT or POLYGON,");
    if (found->kind == 0)
        return oj_fail(r->err, OJ_ERR_UNSUPPORTED,
                       "%s: curves, surfaces and triangles are not read; make "
                       "lines or polygons of them first",
                       found->name);
    *kind = found->kind;
    r->at += n;
    if (*dimensions >= 0)
        return OJ_OK;
    n = count_letters(r);
    if (dimensions_of_word(r->at, n) == 0)
        return OJ_OK;
    *dimensions = dimensions_of_word(r->at, n);
    r->at += n;
    return OJ_OK;
}

/* --- vertices ------------------------------------------------------------- */

static oj_status read_number(struct text_reader *r, double *out)
{
    const char *end;
    skip_space(r);
    end = oj_number_scan(r->at, r->end, out);
    if (end == NULL || (end < r->end && !is_space(*end) && *end != ',' &&
                        *end != '(' && *end != ')'))
        return fail_here(r, "a number");
    r->at = end;
    return OJ_OK;
}

/* Returns the dimensions beyond x and y of the first vertex that follows, HAS_Z
 * and HAS_M or'ed; 0 also if there is no vertex. */
static int find_dimensions(const struct text_reader *of)
{
    struct text_reader r = *of;
    double unused;
    int n = 0;
    for (;;)
    {
        skip_space(&r);
        if (r.at < r.end && (*r.at == '(' || *r.at == ')' || *r.at == ','))
            r.at++;
        else if (!skip_expected_word(&r, "EMPTY"))
            break;
    }
    for (; n < 4; n++)
    {
        skip_space(&r);
        r.at = oj_number_scan(r.at, r.end, &unused);
        if (r.at == NULL)
            break;
    }
    return n == 4 ? HAS_Z | HAS_M : n == 3 ? HAS_Z : 0;
}

static int count_ordinates(int dimensions)
{
    return 2 + (dimensions & HAS_Z) + dimensions / HAS_M;
}

static oj_status read_vertex(struct text_reader *r, int dimensions)
{
    for (int i = count_ordinates(dimensions); i > 0; i--)
    {
        double number;
        OJ_TRY(read_number(r, &number));
        OJ_TRY(append_double(r, number));
    }
    skip_space(r);
    if (r->at < r->end && *r->at != ',' && *r->at != ')')
        return fail_here(r, "a comma or a closing bracket");
    return OJ_OK;
}

static oj_status append_empty_point(struct text_reader *r, int dimensions)
{
    for (int i = count_ordinates(dimensions); i > 0; i--)
        OJ_TRY(append_double(r, (double)NAN));
    return OJ_OK;
}

/* --- lists ---------------------------------------------------------------- */

typedef oj_status (*member_reader)(struct text_reader *r, int dimensions);

/* Reads "EMPTY" or "(member, member, ..)", whose members read_member reads;
 * writes the number of the members, then the members. */
static oj_status read_list(struct text_reader *r, int dimensions,
                           member_reader read_member)
{
    uint32_t n = 0;
    int64_t at;
    OJ_TRY(append_uint32(r, 0, &at));
    if (skip_expected_word(r, "EMPTY"))
        return OJ_OK;
    if (!skip_expected_mark(r, '('))
        return fail_here(r, "EMPTY or an opening bracket");
    do
    {
        OJ_TRY(read_member(r, dimensions));
        n++;
    } while (skip_expected_mark(r, ','));
    if (!skip_expected_mark(r, ')'))
        return fail_here(r, "a comma or a closing bracket");
    write_uint32(r, at, n);
    return OJ_OK;
}

static oj_status read_ring(struct text_reader *r, int dimensions)
{
    return read_list(r, dimensions, read_vertex);
}

static oj_status read_point(struct text_reader *r, int dimensions)
{
    if (skip_expected_word(r, "EMPTY"))
        return append_empty_point(r, dimensions);
    if (!skip_expected_mark(r, '('))
        return fail_here(r, "EMPTY or an opening bracket");
    OJ_TRY(read_vertex(r, dimensions));
    return skip_expected_mark(r, ')') ? OJ_OK
                                      : fail_here(r, "a closing bracket");
}

static oj_status read_point_of_multi(struct text_reader *r, int dimensions)
{
    int64_t at;
    OJ_TRY(append_head(r, POINT, dimensions, &at));
    skip_space(r);
    if (r->at < r->end && (*r->at == '(' || *r->at == 'E' || *r->at == 'e'))
        return read_point(r, dimensions); /* in brackets, or EMPTY */
    return read_vertex(r, dimensions);
}

static oj_status read_line_of_multi(struct text_reader *r, int dimensions)
{
    int64_t at;
    OJ_TRY(append_head(r, LINE, dimensions, &at));
    return read_list(r, dimensions, read_vertex);
}

static oj_status read_polygon_of_multi(struct text_reader *r, int dimensions)
{
    int64_t at;
    OJ_TRY(append_head(r, POLYGON, dimensions, &at));
    return read_list(r, dimensions, read_ring);
}

static oj_status read_geometry(struct text_reader *r, int *dimensions);

static oj_status read_member_of_collection(struct text_reader *r,
                                           int dimensions)
{
    OJ_TRY(read_geometry(r, &dimensions));
    r->of_members |= dimensions;
    return OJ_OK;
}

/* Reads the members of a collection; adds their dimensions to *dimensions. */
static oj_status read_collection(struct text_reader *r, int *dimensions)
{
    const int of_members = r->of_members;
    r->of_members = *dimensions;
    r->depth++;
    OJ_TRY(read_list(r, *dimensions, read_member_of_collection));
    r->depth--;
    *dimensions = r->of_members;
    r->of_members = of_members;
    return OJ_OK;
}

static oj_status read_geometry(struct text_reader *r, int *dimensions)
{
    uint32_t kind = POINT;
    int64_t at;
    OJ_TRY(read_kind(r, &kind, dimensions));
    if (r->depth > OJ_GEOMETRY_TEXT_MAX_DEPTH)
        return oj_fail(r->err, OJ_ERR_DATA,
                       "collections are nested more than %d deep: make one "
                       "collection of them",
                       OJ_GEOMETRY_TEXT_MAX_DEPTH);
    if (*dimensions < 0)
        *dimensions = kind == COLLECTION ? 0 : find_dimensions(r);
    OJ_TRY(append_head(r, kind, *dimensions, &at));
    switch (kind)
    {
        case POINT:
            return read_point(r, *dimensions);
        case LINE:
            return read_list(r, *dimensions, read_vertex);
        case POLYGON:
            return read_list(r, *dimensions, read_ring);
        case MULTIPOINT:
            return read_list(r, *dimensions, read_point_of_multi);
        case MULTILINE:
            return read_list(r, *dimensions, read_line_of_multi);
        case MULTIPOLYGON:
            return read_list(r, *dimensions, read_polygon_of_multi);
        default:
            OJ_TRY(read_collection(r, dimensions));
            write_uint32(r, at, iso_type(kind, *dimensions));
            return OJ_OK;
    }
}

/* --- texts ---------------------------------------------------------------- */

static int value_of_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static oj_status read_hexadecimal(struct text_reader *r)
{
    if (r->at == r->end || is_space(*r->at))
        return fail_here(r, "WKB");
    while (r->at < r->end && !is_space(*r->at))
    {
        int high = value_of_digit(r->at[0]), low;
        uint8_t byte;
        if (high < 0)
            return fail_here(r, "a hexadecimal digit");
        r->at++;
        low = r->at < r->end ? value_of_digit(r->at[0]) : -1;
        if (low < 0)
            return fail_here(r, "a hexadecimal digit");
        r->at++;
        byte = (uint8_t)(high << 4 | low);
        OJ_TRY(append_bytes(r, &byte, 1));
    }
    return OJ_OK;
}

/* If the text begins with "SRID=number;", reads it and sets *srid to the number
 * of the CRS, or to 0 if the number is negative. */
static oj_status read_srid(struct text_reader *r, int64_t *srid)
{
    int is_negative;
    if (!skip_expected_word(r, "SRID"))
        return OJ_OK;
    if (!skip_expected_mark(r, '='))
        return fail_here(r, "the = of SRID=");
    is_negative = skip_expected_mark(r, '-');
    skip_space(r);
    if (r->at == r->end || *r->at < '0' || *r->at > '9')
        return fail_here(r, "the number of SRID=");
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
    {
        *srid = 10 * *srid + (*r->at - '0');
        if (*srid > INT32_MAX)
            return fail_here(r, "a smaller number of SRID=");
    }
    if (is_negative)
        *srid = 0;
    return skip_expected_mark(r, ';') ? OJ_OK
                                      : fail_here(r, "the ; after SRID=");
}

/* Skips the 0x or \x that programs write before hexadecimal digits. Returns 1
 * if digits follow. */
static int begins_hexadecimal(struct text_reader *r)
{
    skip_space(r);
    if (r->end - r->at > 1 && (*r->at == '0' || *r->at == '\\') &&
        (r->at[1] == 'x' || r->at[1] == 'X'))
    {
        r->at += 2;
        return 1;
    }
    return r->at < r->end && *r->at == '0';
}

static oj_status read_text(struct text_reader *r, int64_t *srid)
{
    int unused;
    skip_space(r);
    if (r->at == r->end)
        return OJ_OK;
    OJ_TRY(read_srid(r, srid));
    OJ_TRY(begins_hexadecimal(r) ? read_hexadecimal(r)
                                 : read_geometry(r, &unused));
    skip_space(r);
    return r->at == r->end ? OJ_OK : fail_here(r, "the end of the text");
}

oj_status oj_geometry_text_read(const char *text, int64_t n,
                                struct oj_geometry_bytes *out, int64_t *srid,
                                struct oj_error *err)
{
    struct text_reader r = {text, text, text + n, out, err, 0, 0};
    int64_t before = out->n;
    oj_status status;
    *srid = 0;
    status = read_text(&r, srid);
    if (status != OJ_OK)
        out->n = before;
    return status;
}

void oj_geometry_bytes_free(struct oj_geometry_bytes *bytes)
{
    oj_free(bytes->byte);
    memset(bytes, 0, sizeof *bytes);
}
