/* Truth cases from tests/cases on every backend. The shapes are then mirrored,
 * rotated, translated and scaled, as far as that is exact: answers must not
 * change.
 * Kind: unit, degenerate. */
#include "../references.h"
#include "../run_tests.h"
#include "../wkt_shapes.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_word_list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_PAIRS 16

struct expected_pair
{
    int32_t feature;
    double distance;
    int ulps; /* allowed error of the distance */
};

struct truth_case
{
    const char *name;
    int line;
    struct oj_relation relation;
    struct oj_flat_buf input, join;
    int has_fids, not_geos;
    int n_pairs;
    struct expected_pair pair[MOST_PAIRS];
};

/* --- reading ---------------------------------------------------------------
 */

/* Returns the text before the next separator, without surrounding blanks, and
 * advances *text beyond the separator. Returns NULL at the end. */
static char *next_field(char **text, char separator)
{
    char *field = *text, *end;
    if (field == NULL)
        return NULL;
    end = strchr(field, separator);
    *text = end != NULL ? end + 1 : NULL;
    if (end == NULL)
        end = field + strlen(field);
    while (isspace((unsigned char)*field))
        field++;
    while (end > field && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return field;
}

static void add_feature(struct oj_flat_buf *buf, const char *wkt)
{
    if (strcmp(wkt, "NULL") == 0)
        must(oj_flat_buf_add_null(buf, 0, &error));
    else
        add_shape(buf, wkt);
    buf->fid[buf->n_features - 1] = buf->n_features - 1;
}

static void read_fids(struct truth_case *c, char *list)
{
    c->has_fids = strcmp(list, "none") != 0;
    for (int64_t i = 0; c->has_fids && i < c->join.n_features; i++)
    {
        char *fid = next_field(&list, ',');
        ck_assert_msg(fid != NULL, "line %d: too few FIDs", c->line);
        c->join.fid[i] = atoll(fid);
    }
}

static void read_options(struct truth_case *c, char *options)
{
    char *option;
    c->relation = oj_relation_default();
    c->has_fids = 1;
    while ((option = next_field(&options, ' ')) != NULL)
    {
        char *value = strchr(option, '=');
        if (*option == '\0')
            continue;
        ck_assert_msg(value != NULL, "line %d: %s", c->line, option);
        *value++ = '\0';
        if (strcmp(option, "max") == 0)
            c->relation.max_distance = atof(value);
        else if (strcmp(option, "k") == 0)
            c->relation.k = atoll(value);
        else if (strcmp(option, "ties") == 0 && strcmp(value, "all") == 0)
            c->relation.ties = OJ_TIES_ALL;
        else if (strcmp(option, "to") == 0 && strcmp(value, "boundary") == 0)
            c->relation.distance_to = OJ_TO_BOUNDARY;
        else if (strcmp(option, "geos") == 0 && strcmp(value, "no") == 0)
            c->not_geos = 1;
        else if (strcmp(option, "fids") == 0)
            read_fids(c, value);
        else
            ck_abort_msg("line %d: %s=%s", c->line, option, value);
    }
}

static void read_expected(struct truth_case *c, char *list)
{
    char *text;
    while (strcmp(list, "none") != 0 && (text = next_field(&list, ' ')) != NULL)
    {
        struct expected_pair *pair = &c->pair[c->n_pairs];
        char *distance = strchr(text, ':');
        ck_assert_msg(distance != NULL && c->n_pairs < MOST_PAIRS,
                      "line %d: %s", c->line, text);
        distance++;
        pair->feature = atoi(text);
        pair->ulps = *distance == '~' ? 2 : 0;
        distance += pair->ulps > 0;
        pair->distance = strncmp(distance, "sqrt(", 5) == 0
                             ? sqrt(atof(distance + 5))
                             : atof(distance);
        c->n_pairs++;
        if (list == NULL)
            break;
    }
}

/* Reads the case in a line of the file. Returns 0 if the line has none. */
static int read_case(char *line, int number, struct truth_case *c)
{
    char *options, *input, *join, *expected, *shape;
    memset(c, 0, sizeof *c);
    c->line = number;
    if (*line == '#' || *line == '\n')
        return 0;
    c->name = next_field(&line, '|');
    options = next_field(&line, '|');
    input = next_field(&line, '|');
    join = next_field(&line, '|');
    expected = next_field(&line, '|');
    ck_assert_msg(expected != NULL && line == NULL, "line %d: fields", number);
    add_feature(&c->input, input);
    while (*join != '\0' && (shape = next_field(&join, ';')) != NULL)
    {
        add_feature(&c->join, shape);
        if (join == NULL)
            break;
    }
    read_options(c, options);
    read_expected(c, expected);
    return 1;
}

/* --- running ---------------------------------------------------------------
 */

/* A motion: x' = xx x + xy y + dx, y' = yx x + yy y + dy. It multiplies
 * distances by scale. */
struct affine_motion
{
    const char *name;
    double xx, xy, yx, yy, dx, dy, scale;
};

static const struct affine_motion motions[] = {
    {"as given", 1, 0, 0, 1, 0, 0, 1},
    {"mirrored", -1, 0, 0, 1, 0, 0, 1},
    {"turned", 0, -1, 1, 0, 0, 0, 1},
    {"swapped", 0, 1, 1, 0, 0, 0, 1},
    {"scaled up", 1024, 0, 0, 1024, 0, 0, 1024},
    {"scaled down", 0x1p-30, 0, 0, 0x1p-30, 0, 0, 0x1p-30},
    {"moved", 1, 0, 0, 1, 4096, -2048, 1},
    {"moved far", 1, 0, 0, 1, 0x1p33, 0x1p34, 1},
};

/* Returns 1 if coordinates have so few bits that a translation changes no
 * difference. */
static int can_move(const struct oj_flat_buf *buf)
{
    for (int64_t i = 0; i < buf->n_vertices; i++)
    {
        double x = buf->x[i] * 1024.0, y = buf->y[i] * 1024.0;
        if (isnan(x) || isnan(y))
            continue;
        if (x != rint(x) || y != rint(y) || fabs(x) > 0x1p34 ||
            fabs(y) > 0x1p34)
            return 0;
    }
    return 1;
}

static void transform_layer(const struct affine_motion *m,
                            const struct oj_flat_buf *from, struct oj_flat *to)
{
    double *x = oj_malloc(from->n_vertices, sizeof *x);
    double *y = oj_malloc(from->n_vertices, sizeof *y);
    ck_assert(x != NULL && y != NULL);
    *to = oj_flat_buf_view(from);
    for (int64_t i = 0; i < from->n_vertices; i++)
    {
        x[i] = m->xx * from->x[i] + m->xy * from->y[i] + m->dx;
        y[i] = m->yx * from->x[i] + m->yy * from->y[i] + m->dy;
    }
    to->x = x;
    to->y = y;
}

static void free_moved(struct oj_flat *flat)
{
    oj_free((void *)(uintptr_t)flat->x);
    oj_free((void *)(uintptr_t)flat->y);
}

static int is_close(double a, double b, int ulps)
{
    for (; ulps > 0 && a != b; ulps--)
        a = nextafter(a, b);
    return a == b;
}

static void check_answer(const struct truth_case *c,
                         const struct affine_motion *m, const char *backend,
                         const struct oj_matches *out)
{
    int64_t first = oj_matches_first(out, 0);
    int n = (int)(oj_matches_end(out, 0) - first);
    ck_assert_msg(out->n_undecided == 0, "%s: undecided", c->name);
    ck_assert_msg(n == c->n_pairs, "line %d, %s (%s, %s): %d pairs, not %d",
                  c->line, c->name, backend, m->name, n, c->n_pairs);
    for (int i = 0; i < n; i++)
    {
        const struct expected_pair *pair = &c->pair[i];
        ck_assert_msg(out->join_row[first + i] == pair->feature &&
                          is_close(out->measure[first + i],
                                   pair->distance * m->scale, pair->ulps),
                      "line %d, %s (%s, %s): pair %d is %d:%.17g, not %d:%.17g",
                      c->line, c->name, backend, m->name, i,
                      (int)out->join_row[first + i], out->measure[first + i],
                      (int)pair->feature, pair->distance * m->scale);
    }
}

static void run_case(const struct truth_case *c, const struct affine_motion *m)
{
    struct oj_relation relation = c->relation;
    const struct oj_backend *backend;
    struct oj_flat join_side, input;
    transform_layer(m, &c->join, &join_side);
    transform_layer(m, &c->input, &input);
    relation.max_distance *= m->scale;
    if (!c->has_fids)
        join_side.fid = NULL;
    must(oj_flat_check(&join_side, &error));
    must(oj_flat_check(&input, &error));
    for (int b = 0; (backend = oj_backend_at(b)) != NULL; b++)
    {
        struct oj_options options = {
            .n_threads = 1, .quadrant_size = 0, .timings = 0, .cancel = NULL};
        MATCHES out = {0};
        struct oj_join *join;
        oj_status status;
        /* skip backends with another metric, backends for few joins, and those
         * for texts */
        if (oj_words_find(
                "sphere|ellipsoid|cuda_quadrant|lists|cuda_lists|cut_points|"
                "cuda_size_blocks|zlists|cuda_zlists|cuda_cut_points|"
                "gpics_quadtree|gpics_kdtree|gpics_quadtree_single|"
                "gpics_kdtree_single|live_quadtree|live_kdtree|"
                "cuda_gpics_quadtree|cuda_gpics_kdtree|"
                "cuda_gpics_quadtree_single|cuda_gpics_kdtree_single",
                backend->name) >= 0)
            continue;
        if (c->not_geos && backend->is_reference &&
            backend != oj_backend_find("quadrant"))
            continue;
        status = oj_join_open(&join_side, &relation, backend->name, &options,
                              &join, &error);
        if (backend == oj_backend_find("cuda") && status == OJ_ERR_NO_DEVICE)
            continue;
        must(status);
        must(oj_join_batch(join, &input, &out, &error));
        check_answer(c, m, backend->name, &out);
        oj_join_close(join);
    }
    free_moved(&join_side);
    free_moved(&input);
}

static int run_case_moved(const struct truth_case *c)
{
    int n_motions = (int)(sizeof motions / sizeof *motions), n = 0;
    int movable = can_move(&c->join) && can_move(&c->input);
    for (int i = 0; i < n_motions; i++)
    {
        int shifts = motions[i].dx != 0.0 || motions[i].dy != 0.0;
        if (shifts && (!movable || c->pair[0].ulps > 0))
            continue;
        run_case(c, &motions[i]);
        n++;
    }
    return n;
}

TEST(nearest)
{
    char line[4096];
    int n_cases = 0, n_runs = 0, number = 0;
    const char *folder = getenv("OGRJOIN_TEST_CASES");
    char path[4096];
    FILE *file;
    snprintf(path, sizeof path, "%s/nearest.txt",
             folder != NULL ? folder : OJ_TEST_CASES);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    wkt_open();
    while (fgets(line, sizeof line, file) != NULL)
    {
        struct truth_case c;
        number++;
        ck_assert_msg(strchr(line, '\n') != NULL, "line %d is too long",
                      number);
        if (!read_case(line, number, &c))
            continue;
        n_runs += run_case_moved(&c);
        n_cases++;
        oj_flat_buf_free(&c.input);
        oj_flat_buf_free(&c.join);
    }
    fclose(file);
    wkt_close();
    printf("%d cases, run %d times on every backend\n", n_cases, n_runs);
    ck_assert_int_gt(n_cases, 80);
}

int main(void)
{
    tests_open("cases");
    return tests_run();
}
