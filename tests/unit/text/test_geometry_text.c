/* Geometries as texts. Random WKT is compared with GDAL's reader, bit for bit.
 * EWKT that GDAL does not read is compared with equivalent texts that it
 * reads. The message about a refused text must give the position of the wrong
 * character. Numbers are compared with strtod().
 * Kind: unit, property, degenerate, memory. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_number.h"
#include "../../../flatten/text/oj_geometry_text.h"

#include "../random_numbers.h"
#include "../run_tests.h"

#include <ogr_api.h>

#include <stdarg.h>
#include <stdlib.h>

static struct oj_error error;
static int64_t srid;

/* --- random texts --------------------------------------------------------- */

static char text[1 << 16];
static size_t n_text;

static void put(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    n_text +=
        (size_t)vsnprintf(text + n_text, sizeof text - n_text, format, args);
    va_end(args);
    ck_assert(n_text < sizeof text);
}

static const char *gap(void)
{
    static const char *const gaps[] = {"", "", "", " ", "  ", "\n", "\t "};
    return gaps[pick(7)];
}

static void put_word(const char *word)
{
    int is_small = pick(4) == 0;
    for (; *word != '\0'; word++)
        put("%c",
            is_small && *word >= 'A' && *word <= 'Z' ? *word + 32 : *word);
}

static void put_number(void)
{
    switch (pick(6))
    {
        case 0:
            put("%d", pick(2000) - 1000);
            return;
        case 1:
            put("%.17g", (unit() - 0.5) * 1e3);
            return;
        case 2:
            put("%.*f", pick(12), (unit() - 0.5) * 1e6);
            return;
        case 3:
            put("%.*e", pick(18), unit() - 0.5);
            return;
        case 4:
            put(".%d", pick(1000));
            return;
        default:
            put("%d.", pick(1000));
    }
}

/* Writes a vertex of n_ordinates numbers; n_ordinates is 2 to 4. */
static void put_vertex(int n_ordinates)
{
    for (int i = 0; i < n_ordinates; i++)
    {
        put_number();
        put("%s", i + 1 < n_ordinates ? pick(4) ? " " : "  " : gap());
    }
}

static void put_list(int n_ordinates, int depth, int n)
{
    put("(%s", gap());
    for (int i = 0; i < n; i++)
    {
        if (i > 0)
            put(",%s", gap());
        if (depth == 0)
            put_vertex(n_ordinates);
        else if (depth == 1 || pick(8) > 0)
            put_list(n_ordinates, depth - 1, 1 + pick(5));
        else
            put_list(n_ordinates, depth - 1, 1);
        put("%s", gap());
    }
    put(")");
}

static const struct
{
    const char *name;
    int depth, is_one;
} shapes[] = {{"POINT", 0, 1},           {"LINESTRING", 0, 0},
              {"POLYGON", 1, 0},         {"MULTIPOINT", 1, 0},
              {"MULTILINESTRING", 1, 0}, {"MULTIPOLYGON", 2, 0}};

/* tag: "", "Z", "M" or "ZM". */
static void put_geometry(const char *tag, int n_ordinates, int depth)
{
    int which = pick(depth < 3 ? 8 : 6);
    put("%s", gap());
    put_word(which < 6 ? shapes[which].name : "GEOMETRYCOLLECTION");
    if (tag[0] != '\0')
    {
        put(" ");
        put_word(tag);
    }
    if (pick(8) == 0)
    {
        put(" ");
        put_word("EMPTY");
        put("%s", gap());
        return;
    }
    put("%s", pick(2) ? " " : "");
    if (which >= 6)
    {
        put("(");
        for (int n = 1 + pick(4); n > 0; n--)
        {
            put_geometry(tag, n_ordinates, depth + 1);
            put("%s", n > 1 ? "," : "");
        }
        put(")");
    }
    else if (which == 3)
    {
        int in_brackets = pick(2);
        put("(");
        for (int n = 1 + pick(4); n > 0; n--)
        {
            put("%s", in_brackets ? "(" : "");
            put_vertex(n_ordinates);
            put("%s%s", in_brackets ? ")" : "", n > 1 ? "," : "");
        }
        put(")");
    }
    else
        put_list(n_ordinates, shapes[which].depth,
                 shapes[which].is_one ? 1 : 1 + pick(5));
    put("%s", gap());
}

/* --- against GDAL --------------------------------------------------------- */

static void check_as_gdal(const char *of_gdal, const char *ours)
{
    struct oj_geometry_bytes bytes = {0};
    OGRGeometryH shape = NULL;
    char *copy = strdup(of_gdal), *at = copy, *exact;
    unsigned char *wkb;
    size_t n = strlen(ours);
    int size;
    ck_assert_msg(OGR_G_CreateFromWkt(&at, NULL, &shape) == OGRERR_NONE, "%s",
                  of_gdal);
    size = OGR_G_WkbSize(shape);
    wkb = malloc((size_t)size);
    OGR_G_ExportToIsoWkb(shape, wkbNDR, wkb);
    /* memory of exactly this size, so that reads beyond it are reported */
    exact = malloc(n);
    memcpy(exact, ours, n);
    ck_assert_msg(oj_geometry_text_read(exact, (int64_t)n, &bytes, &srid,
                                        &error) == OJ_OK,
                  "%s: %s", ours, error.message);
    ck_assert_msg(bytes.n == size && memcmp(bytes.byte, wkb, (size_t)size) == 0,
                  "%d bytes of GDAL, ours are %d: %s", size, (int)bytes.n,
                  ours);
    free(exact);
    free(wkb);
    free(copy);
    OGR_G_DestroyGeometry(shape);
    oj_geometry_bytes_free(&bytes);
}

TEST(random_texts_as_gdal)
{
    static const char *const tags[] = {"", "Z", "M", "ZM"};
    for (int i = 0; i < 20000; i++)
    {
        int tag = pick(4);
        n_text = 0;
        put_geometry(tags[tag], tag == 0 ? 2 : tag == 3 ? 4 : 3, 0);
        check_as_gdal(text, text);
    }
}

/* Pairs of texts: one that GDAL reads, and an equivalent one that it does not
 * read. */
TEST(other_forms)
{
    static const char *const pairs[][2] = {
        {"POINT Z (1 2 3)", "POINTZ(1 2 3)"},
        {"POINT Z (1 2 3)", "POINT(1 2 3)"},
        {"POINT ZM (1 2 3 4)", "POINT(1 2 3 4)"},
        {"POINT ZM (1 2 3 4)", "pointzm ( 1  2  3  4 )"},
        {"POINT M (1 2 3)", "SRID=4326; POINTM(1 2 3)"},
        {"POINT (1 2)", "\n SRID=-1;POINT(1 2)\t"},
        {"POINT (1 2)", "0101000000000000000000f03f0000000000000040"},
        {"POINT (1 2)", "SRID=7;0101000000000000000000F03F0000000000000040 "},
        {"POINT (1 2)", "0x0101000000000000000000F03F0000000000000040"},
        {"POINT (1 2)", " \\x0101000000000000000000f03f0000000000000040"},
        {"POINT (1 2)", "SRID=7; 0X0101000000000000000000F03F0000000000000040"},
        {"LINESTRING (0 0,1 1)", "LINEARRING(0 0,1 1)"},
        {"MULTIPOINT (1 2,3 4)", "MULTIPOINT((1 2),3 4)"},
        {"LINESTRING Z (1 2 3,4 5 6)", "LINESTRING(+1 2.0 3e0,4E+0 50e-1 6)"},
        {"MULTIPOLYGON Z (((0 0 1,1 0 1,1 1 1)))",
         "MULTIPOLYGON(((0 0 1,1 0 1,1 1 1)))"},
        {"GEOMETRYCOLLECTION Z (POINT Z (1 2 3))",
         "GEOMETRYCOLLECTION(POINT(1 2 3))"}};
    struct oj_geometry_bytes bytes = {0};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        check_as_gdal(pairs[i][0], pairs[i][1]);
    ck_assert_int_eq(oj_geometry_text_read(" \n ", 3, &bytes, &srid, &error),
                     OJ_OK);
    ck_assert_int_eq(oj_geometry_text_read("", 0, &bytes, &srid, &error),
                     OJ_OK);
    ck_assert_int_eq(bytes.n, 0);
    ck_assert(bytes.byte == NULL);
}

TEST(srid_of_texts)
{
    static const struct
    {
        const char *text;
        int64_t srid;
    } texts[] = {{"POINT (1 2)", 0},
                 {"SRID=4326;POINT (1 2)", 4326},
                 {"srid = 2147483647 ; POINT (1 2)", 2147483647},
                 {"SRID=-7;POINT (1 2)", 0},
                 {"SRID=0;POINT (1 2)", 0},
                 {"SRID=7;0101000000000000000000F03F0000000000000040", 7}};
    struct oj_geometry_bytes bytes = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    {
        const char *of = texts[i].text;
        ck_assert_int_eq(oj_geometry_text_read(of, (int64_t)strlen(of), &bytes,
                                               &srid, &error),
                         OJ_OK);
        ck_assert_int_eq(srid, texts[i].srid);
    }
    oj_geometry_bytes_free(&bytes);
}

/* --- refused texts -------------------------------------------------------- */

TEST(refused)
{
    static const struct
    {
        const char *text, *message;
    } bad[] = {
        {"no text", "character 1, 'no text'"},
        {"POINT", "ends where EMPTY or an opening bracket"},
        {"POINT (1", "ends where a number"},
        {"POINT (1 2", "ends where a closing bracket"},
        {"POINT (1 2) x",
         "character 13, 'x', stands where the end of the text"},
        {"POINT (1 2, 3 4)", "character 11, ', 3 4)'"},
        {"POINT Z (1 2)", "character 13, ')', stands where a number"},
        {"POINT (1 2 3 4 5)", "character 16, '5)'"},
        {"POINT (0x10 2)", "character 8, '0x10 2)', stands where a number"},
        {"POINT (1,2)", "stands where a number"},
        {"POINT (1..2 2)", "stands where a number"},
        {"POINT (1e 2)", "stands where a number"},
        {"POINT ()", "character 8, ')'"},
        {"POINT Q (1 2)", "character 7, 'Q (1 2)'"},
        {"LINESTRING (0 0, 1 1 1)", "character 22, '1)'"},
        {"LINESTRING (0 0,, 1 1)", "character 17"},
        {"POLYGON (0 0, 1 1, 1 0, 0 0)", "character 10"},
        {"SRID=;POINT (1 2)", "the number of SRID="},
        {"SRID=4326 POINT (1 2)", "the ; after SRID="},
        {"SRID=2147483648;POINT (1 2)", "a smaller number of SRID="},
        {"0x", "the text ends where WKB belongs"},
        {"\\x zz", "stands where WKB belongs"},
        {"01010", "ends where a hexadecimal digit"},
        {"0101g0", "character 5, 'g0', stands where a hexadecimal digit"},
        {"CIRCULARSTRING (0 0, 1 1, 2 0)", "CIRCULARSTRING: curves"},
        {"TIN EMPTY", "TIN: curves"},
        {"GEOMETRYCOLLECTION (POINT (1 2), )", "a kind of geometry"},
        {"POINT (\n\xc3\xa4\xff\x01 2)",
         "character 9, '\xc3\xa4?  2)', stands where a number"},
        {"xxxxxxxxxxxxxxxxxxx\xe2\x82\xac",
         "character 1, 'xxxxxxxxxxxxxxxxxxx', stands"},
        {"POINT (\xe2\x82\xac", "character 8"},
        {"\xe2\x82\xac (", "character 1"},
    };
    struct oj_geometry_bytes bytes = {0};
    ck_assert_int_eq(
        oj_geometry_text_read("POINT (1 2)", 11, &bytes, &srid, &error), OJ_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    {
        oj_status status = oj_geometry_text_read(
            bad[i].text, (int64_t)strlen(bad[i].text), &bytes, &srid, &error);
        ck_assert_msg(status == OJ_ERR_DATA || status == OJ_ERR_UNSUPPORTED,
                      "%s", bad[i].text);
        ck_assert_msg(strstr(error.message, bad[i].message) != NULL, "%s: %s",
                      bad[i].text, error.message);
        ck_assert_int_eq(bytes.n, 21);
    }
    oj_geometry_bytes_free(&bytes);
}

TEST(depth)
{
    struct oj_geometry_bytes bytes = {0};
    for (int depth = 30; depth < 36; depth++)
    {
        n_text = 0;
        for (int i = 0; i < depth; i++)
            put("GEOMETRYCOLLECTION (");
        put("POINT (1 2)");
        for (int i = 0; i < depth; i++)
            put(")");
        ck_assert_int_eq(
            oj_geometry_text_read(text, (int64_t)n_text, &bytes, &srid, &error),
            depth <= OJ_GEOMETRY_TEXT_MAX_DEPTH ? OJ_OK : OJ_ERR_DATA);
    }
    oj_geometry_bytes_free(&bytes);
}

/* --- numbers -------------------------------------------------------------- */

TEST(numbers_as_strtod)
{
    double number;
    for (int i = 0; i < 300000; i++)
    {
        const char *end;
        char *stop;
        n_text = 0;
        put("%s", pick(3) ? "" : pick(2) ? "-" : "+");
        if (pick(3))
            put_number();
        else
            put("%d%09d%09d.%d", pick(10), pick(1000000000), pick(1000000000),
                pick(1000000));
        if (text[0] != '\0' && (text[1] == '-' || text[1] == '+'))
            continue;
        end = oj_number_scan(text, text + n_text, &number);
        ck_assert_msg(end == text + n_text, "%s", text);
        double expected = strtod(text, &stop);
        ck_assert_msg(memcmp(&number, &expected, sizeof number) == 0, "%s",
                      text);
    }
    ck_assert(oj_number_scan("nAn", (const char *)"nAn" + 3, &number) == NULL ||
              number != number);
}

/* --- memory --------------------------------------------------------------- */

TEST(memory_runs_out)
{
    static const char shape[] = "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0)), EMPTY)";
    for (int64_t n = 1;; n++)
    {
        struct oj_geometry_bytes bytes = {0};
        oj_status status;
        (void)oj_alloc_fail_at(n);
        status = oj_geometry_text_read(shape, sizeof shape - 1, &bytes, &srid,
                                       &error);
        (void)oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        ck_assert(status == OJ_OK || bytes.n == 0);
        oj_geometry_bytes_free(&bytes);
        if (status == OJ_OK)
        {
            ck_assert_int_gt(n, 1);
            break;
        }
    }
}

int main(void)
{
    tests_open("geometry text");
    return tests_run();
}
