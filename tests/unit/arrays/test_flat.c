/* The builder of flat layers, and the function that checks them.
 * Kinds: unit, degenerate, property (random, compared with a plain model),
 * memory. */
#include "../run_tests.h"

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/base/oj_alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Adds rings and parts. Kinds of parts are letters (p l a), and rings are given
 * as numbers of vertices. Vertex v of a feature is (v, v * v). */
static void add_ring(struct oj_flat_buf *buf, int64_t n, double start)
{
    double *x, *y;
    ck_assert_int_eq(oj_flat_buf_begin_ring(buf, NULL), OJ_OK);
    ck_assert_int_eq(oj_flat_buf_add_vertices(buf, n, &x, &y, NULL), OJ_OK);
    for (int64_t i = 0; i < n; i++)
    {
        x[i] = start + (double)i;
        y[i] = start * start + (double)i;
    }
}

static void begin(struct oj_flat_buf *buf, int64_t fid)
{
    ck_assert_int_eq(oj_flat_buf_begin_feature(buf, fid, NULL), OJ_OK);
}

static void part(struct oj_flat_buf *buf, enum oj_part_kind kind)
{
    ck_assert_int_eq(oj_flat_buf_begin_part(buf, kind, NULL), OJ_OK);
}

static void end(struct oj_flat_buf *buf)
{
    struct oj_flat flat;
    struct oj_error err;
    oj_status status;
    ck_assert_int_eq(oj_flat_buf_end_feature(buf, NULL), OJ_OK);
    flat = oj_flat_buf_view(buf);
    status = oj_flat_check(&flat, &err);
    ck_assert_msg(status == OJ_OK, "%s", err.message);
}

static void point(struct oj_flat_buf *buf, int64_t fid, double x, double y)
{
    ck_assert_int_eq(oj_flat_buf_add_point(buf, fid, x, y, NULL), OJ_OK);
}

TEST(unit_short_form)
{
    LAYER buf = {0};
    struct oj_flat flat = oj_flat_buf_view(&buf);
    ck_assert(oj_flat_is_points(&flat));
    ck_assert_int_eq(oj_flat_check(&flat, NULL), OJ_OK);
    point(&buf, 10, 1, 2);
    ck_assert_int_eq(oj_flat_buf_add_null(&buf, 11, NULL), OJ_OK);
    point(&buf, 12, NAN, NAN);
    point(&buf, 13, 3, NAN);
    point(&buf, 14, -INFINITY, 3);
    flat = oj_flat_buf_view(&buf);
    ck_assert(oj_flat_is_points(&flat));
    ck_assert_int_eq(flat.n_features, 5);
    ck_assert_int_eq(flat.n_vertices, 5);
    ck_assert_int_eq(flat.part_kinds, OJ_PART_POINT);
    for (int i = 1; i < 5; i++)
    {
        ck_assert_double_nan(flat.x[i]);
        ck_assert_double_nan(flat.y[i]);
        ck_assert_int_eq(flat.fid[i], 10 + i);
    }
    ck_assert_int_eq(buf.counts.n_null, 1);
    ck_assert_int_eq(buf.counts.n_empty, 1);
    ck_assert_int_eq(buf.counts.n_not_finite, 2);
    ck_assert_int_eq(oj_flat_check(&flat, NULL), OJ_OK);
}

TEST(unit_short_form_becomes_long)
{
    LAYER buf = {0};
    struct oj_flat flat;
    point(&buf, 1, 1, 2);
    ck_assert_int_eq(oj_flat_buf_add_null(&buf, 2, NULL), OJ_OK);
    point(&buf, 3, 3, 4);
    begin(&buf, 4);
    part(&buf, OJ_PART_LINE);
    add_ring(&buf, 3, 10);
    end(&buf);
    point(&buf, 5, 5, 6);
    point(&buf, 6, NAN, NAN);
    point(&buf, 7, NAN, 1);
    ck_assert_int_eq(oj_flat_buf_add_null(&buf, 8, NULL), OJ_OK);
    flat = oj_flat_buf_view(&buf);
    ck_assert(!oj_flat_is_points(&flat));
    ck_assert_int_eq(oj_flat_check(&flat, NULL), OJ_OK);
    ck_assert_int_eq(flat.n_features, 8);
    ck_assert_int_eq(flat.n_parts, 4);
    ck_assert_int_eq(flat.n_vertices, 6);
    ck_assert_int_eq(flat.part_kinds, OJ_PART_POINT | OJ_PART_LINE);
    ck_assert_int_eq(flat.part_offset[1], 1);
    ck_assert_int_eq(flat.part_offset[2], 1);
    ck_assert_int_eq(flat.part_offset[3], 2);
    ck_assert_int_eq(flat.part_offset[4], 3);
    ck_assert_int_eq(flat.part_offset[8], 4);
    ck_assert_double_eq(flat.x[1], 3);
    ck_assert_double_eq(flat.x[2], 10);
    ck_assert_double_eq(flat.y[5], 6);
    ck_assert_int_eq(buf.counts.n_null, 2);
    ck_assert_int_eq(buf.counts.n_empty, 1);
    ck_assert_int_eq(buf.counts.n_not_finite, 1);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(flat.fid[i], i + 1);

    oj_flat_buf_clear(&buf);
    ck_assert_int_eq(buf.counts.n_null, 0);
    point(&buf, 1, 1, 2);
    flat = oj_flat_buf_view(&buf);
    ck_assert(oj_flat_is_points(&flat));
    begin(&buf, 2);
    part(&buf, OJ_PART_POINT);
    add_ring(&buf, 1, 7);
    end(&buf);
    flat = oj_flat_buf_view(&buf);
    ck_assert_int_eq(flat.n_parts, 2);
}

TEST(unit_drop_restores)
{
    LAYER buf = {0};
    struct oj_flat flat;
    oj_flat_buf_drop_feature(&buf);
    point(&buf, 1, 1, 2);
    begin(&buf, 2);
    part(&buf, OJ_PART_POLYGON);
    add_ring(&buf, 5, 10);
    oj_flat_buf_drop_feature(&buf);
    begin(&buf, 3);
    part(&buf, OJ_PART_LINE);
    add_ring(&buf, 2, 20);
    end(&buf);
    flat = oj_flat_buf_view(&buf);
    ck_assert_int_eq(flat.n_features, 2);
    ck_assert_int_eq(flat.n_vertices, 3);
    ck_assert_int_eq(flat.fid[1], 3);
    ck_assert_double_eq(flat.x[1], 20);
}

TEST(degenerate_empty_members_and_open_rings)
{
    LAYER buf = {0};
    struct oj_flat flat;
    double *x, *y;
    begin(&buf, 1);
    part(&buf, OJ_PART_LINE); /* no ring */
    part(&buf, OJ_PART_POLYGON);
    add_ring(&buf, 3, 1); /* open */
    add_ring(&buf, 0, 1); /* an empty hole */
    add_ring(&buf, 1, 5); /* one vertex: closed */
    add_ring(&buf, 2, 7); /* open */
    part(&buf, OJ_PART_POLYGON);
    add_ring(&buf, 0, 1); /* an empty shell also removes its hole */
    add_ring(&buf, 4, 1);
    part(&buf, OJ_PART_LINE);
    add_ring(&buf, 0, 1);
    part(&buf, OJ_PART_POINT);
    ck_assert_int_eq(oj_flat_buf_begin_ring(&buf, NULL), OJ_OK);
    ck_assert_int_eq(oj_flat_buf_add_vertices(&buf, 1, &x, &y, NULL), OJ_OK);
    *x = *y = NAN;
    part(&buf, OJ_PART_LINE);
    add_ring(&buf, 2, 30); /* lines are not closed */
    end(&buf);
    flat = oj_flat_buf_view(&buf);
    ck_assert_int_eq(flat.n_parts, 2);
    ck_assert_int_eq(flat.n_rings, 4);
    ck_assert_int_eq(flat.n_vertices, 4 + 1 + 3 + 2);
    ck_assert_double_eq(flat.x[3], 1);
    ck_assert_double_eq(flat.x[4], 5);
    ck_assert_double_eq(flat.x[5], 7);
    ck_assert_double_eq(flat.x[7], 7);
    ck_assert_double_eq(flat.x[8], 30);
    ck_assert_int_eq(buf.counts.n_empty_members, 4);
    ck_assert_int_eq(buf.counts.n_rings_closed, 2);
    ck_assert_int_eq(buf.counts.n_empty, 0);

    begin(&buf, 2); /* a feature whose members are all empty is empty */
    part(&buf, OJ_PART_LINE);
    part(&buf, OJ_PART_POLYGON);
    add_ring(&buf, 0, 1);
    end(&buf);
    begin(&buf, 3);
    end(&buf);
    ck_assert_int_eq(buf.counts.n_empty, 2);
    ck_assert_int_eq(buf.counts.n_empty_members, 4);
}

TEST(degenerate_not_finite_takes_the_feature)
{
    const double bad[] = {
        NAN,        INFINITY, -INFINITY, 1.7976931348623157e308,
        -1.797e308, 1e308,    -1e151,    nextafter(OJ_FLAT_MOST, INFINITY)};
    const int n = 2 * (int)(sizeof bad / sizeof *bad);
    LAYER buf = {0};
    for (int i = 0; i < n; i++)
    {
        double *x, *y;
        begin(&buf, i);
        part(&buf, OJ_PART_POLYGON);
        add_ring(&buf, 5, 1);
        part(&buf, i & 1 ? OJ_PART_POINT : OJ_PART_LINE);
        ck_assert_int_eq(oj_flat_buf_begin_ring(&buf, NULL), OJ_OK);
        ck_assert_int_eq(oj_flat_buf_add_vertices(&buf, 1, &x, &y, NULL),
                         OJ_OK);
        *x = i & 1 ? 1.0 : bad[i / 2];
        *y = i & 1 ? bad[i / 2] : 1.0;
        end(&buf);
    }
    ck_assert_int_eq(buf.n_features, n);
    ck_assert_int_eq(buf.n_parts, 0);
    ck_assert_int_eq(buf.n_vertices, 0);
    ck_assert_int_eq(buf.counts.n_not_finite, n);
    ck_assert_int_eq(buf.counts.n_rings_closed, 0);
    ck_assert_int_eq(buf.part_kinds, 0);
}

/* In both forms of the layer, the coordinate 1e150 is accepted, and the next
 * larger number is not. */
TEST(degenerate_points_beyond_most)
{
    static const double ends[] = {1e150, -1e150};
    for (int long_form = 0; long_form < 2; long_form++)
    {
        LAYER buf = {0};
        struct oj_flat flat;
        if (long_form)
        {
            begin(&buf, -1);
            end(&buf);
        }
        for (int i = 0; i < 2; i++)
        {
            double beyond = nextafter(ends[i], 2 * ends[i]);
            point(&buf, 0, ends[i], ends[i]);
            point(&buf, 1, beyond, 0);
            point(&buf, 2, 0, beyond);
        }
        ck_assert_int_eq(buf.counts.n_not_finite, 4);
        flat = oj_flat_buf_view(&buf);
        ck_assert_int_eq(oj_flat_is_points(&flat), !long_form);
        ck_assert_int_eq(oj_flat_check(&flat, NULL), OJ_OK);
        for (int64_t f = 0; f < 6; f++)
        {
            int64_t first, stop;
            oj_flat_vertex_range(&flat, f + long_form, &first, &stop);
            ck_assert_int_eq(stop - first, f % 3 == 0);
        }
    }
}

TEST(unit_drop_not_finite)
{
    LAYER buf = {0};
    struct oj_flat flat;
    int64_t n;
    for (int i = 0; i < 4; i++)
        point(&buf, i, i, i);
    ck_assert_int_eq(oj_flat_buf_add_null(&buf, 4, NULL), OJ_OK);
    buf.x[0] = INFINITY; /* vertices before first are not checked */
    buf.y[2] = NAN;
    buf.y[1] = -1e151;
    ck_assert_int_eq(oj_flat_buf_drop_not_finite(&buf, 1, &n, NULL), OJ_OK);
    ck_assert_int_eq(n, 2);
    ck_assert_double_nan(buf.x[1]);
    ck_assert_double_nan(buf.x[2]);
    ck_assert_double_eq(buf.x[3], 3);
    buf.x[0] = buf.x[1] = buf.y[1] = 0;

    for (int i = 5; i < 9; i++)
    {
        begin(&buf, i);
        part(&buf, OJ_PART_POLYGON);
        add_ring(&buf, 3, i);
        add_ring(&buf, 4, 10 * i);
        part(&buf, OJ_PART_POINT);
        add_ring(&buf, 1, i);
        end(&buf);
    }
    flat = oj_flat_buf_view(&buf);
    ck_assert_int_eq(flat.n_vertices, 3 + 4 * 10);
    buf.x[3 + 2] = INFINITY;
    buf.y[3 + 29] = 1e308;
    ck_assert_int_eq(oj_flat_buf_drop_not_finite(&buf, 3, &n, NULL), OJ_OK);
    ck_assert_int_eq(n, 2);
    flat = oj_flat_buf_view(&buf);
    ck_assert_int_eq(oj_flat_check(&flat, NULL), OJ_OK);
    ck_assert_int_eq(flat.n_features, 9);
    ck_assert_int_eq(flat.n_vertices, 3 + 2 * 10);
    ck_assert_int_eq(flat.part_offset[5], 3);
    ck_assert_int_eq(flat.part_offset[6], 3);
    ck_assert_int_eq(flat.part_offset[7], 5);
    ck_assert_int_eq(flat.part_offset[8], 5);
    ck_assert_int_eq(flat.part_offset[9], 7);
    ck_assert_int_eq(flat.part_kind[3], OJ_PART_POLYGON);
    ck_assert_int_eq(flat.part_kind[6], OJ_PART_POINT);
    ck_assert_double_eq(flat.x[3], 6);
    ck_assert_double_eq(flat.x[3 + 4], 60);
    ck_assert_double_eq(flat.x[3 + 10], 8);
    ck_assert_double_eq(flat.x[3 + 19], 8);
}

/* The plain model decides in advance which vertices remain, so that it never
 * moves a vertex. */
TEST_LOOP(property_random_features_like_a_plain_model, 0, 20)
{
    LAYER buf = {0};
    double *x = malloc(200000 * sizeof *x);
    int64_t n = 0, n_rings = 0, n_parts = 0;
    srand((unsigned)_i + 1);
    for (int f = 0; f < 300; f++)
    {
        int64_t n_before = n, rings_before = n_rings, parts_before = n_parts;
        int is_bad = rand() % 8 == 0;
        begin(&buf, f);
        for (int p = rand() % 5; p > 0; p--)
        {
            int kind = 1 << rand() % 3;
            int rings = kind == OJ_PART_POLYGON ? rand() % 4 : 1;
            int stays = 1;
            part(&buf, (enum oj_part_kind)kind);
            for (int r = 0; r < rings; r++)
            {
                int64_t m = kind == OJ_PART_POINT ? 1 : rand() % 6;
                double *to_x, *to_y;
                ck_assert_int_eq(oj_flat_buf_begin_ring(&buf, NULL), OJ_OK);
                ck_assert_int_eq(
                    oj_flat_buf_add_vertices(&buf, m, &to_x, &to_y, NULL),
                    OJ_OK);
                stays = stays && (r > 0 || m > 0);
                for (int64_t i = 0; i < m; i++)
                {
                    to_x[i] = to_y[i] = rand() % 3;
                    if (stays)
                        x[n++] = to_x[i];
                }
                if (stays && kind == OJ_PART_POLYGON && m > 0 &&
                    to_x[0] != to_x[m - 1])
                    x[n++] = to_x[0];
                n_rings += stays && m > 0;
            }
            n_parts += stays && rings > 0;
        }
        if (is_bad)
        {
            double *to_x, *to_y;
            part(&buf, OJ_PART_LINE);
            ck_assert_int_eq(oj_flat_buf_begin_ring(&buf, NULL), OJ_OK);
            ck_assert_int_eq(
                oj_flat_buf_add_vertices(&buf, 1, &to_x, &to_y, NULL), OJ_OK);
            *to_x = 0;
            *to_y = INFINITY;
            n = n_before;
            n_rings = rings_before;
            n_parts = parts_before;
        }
        end(&buf);
        ck_assert_int_eq(buf.n_vertices, n);
        ck_assert_int_eq(buf.n_rings, n_rings);
        ck_assert_int_eq(buf.n_parts, n_parts);
    }
    for (int64_t i = 0; i < n; i++)
        ck_assert(buf.x[i] == x[i] && buf.y[i] == x[i]);
    free(x);
}

TEST(unit_check_finds_what_is_wrong)
{
    int64_t part_offset[] = {0, 1, 2}, ring_offset[] = {0, 1, 2};
    int64_t vertex_offset[] = {0, 4, 6};
    uint8_t kind[] = {OJ_PART_POLYGON, OJ_PART_LINE};
    double x[] = {0, 1, 2, 0, 5, 6}, y[] = {0, 1, 0, 0, 5, 6};
    struct oj_flat good = {.n_features = 2,
                           .n_parts = 2,
                           .n_rings = 2,
                           .n_vertices = 6,
                           .part_kinds = OJ_PART_POLYGON | OJ_PART_LINE,
                           .part_offset = part_offset,
                           .part_kind = kind,
                           .ring_offset = ring_offset,
                           .vertex_offset = vertex_offset,
                           .x = x,
                           .y = y};
    struct oj_flat bad;
    ck_assert_int_eq(oj_flat_check(&good, NULL), OJ_OK);
#define REFUSES(change, back)                                                  \
    bad = good;                                                                \
    change;                                                                    \
    ck_assert_int_eq(oj_flat_check(&bad, NULL), OJ_ERR_ARG);                   \
    back
    REFUSES(bad.n_features = -1, );
    REFUSES(bad.n_features = 1, );
    REFUSES(bad.n_parts = 1, );
    REFUSES(bad.n_vertices = 5, );
    REFUSES(bad.part_kinds = OJ_PART_POLYGON, );
    REFUSES(bad.x = NULL, );
    REFUSES(bad.part_kind = NULL, );
    REFUSES(part_offset[0] = 1, part_offset[0] = 0);
    REFUSES(part_offset[1] = 3, part_offset[1] = 1);
    REFUSES(vertex_offset[1] = 3, vertex_offset[1] = 4);
    REFUSES(vertex_offset[1] = 6, vertex_offset[1] = 4);
    REFUSES(kind[0] = 3, kind[0] = OJ_PART_POLYGON);
    REFUSES(kind[1] = OJ_PART_POINT, kind[1] = OJ_PART_LINE);
    REFUSES(x[3] = 7, x[3] = 0);
    REFUSES(y[5] = INFINITY, y[5] = 6);
    REFUSES(x[4] = -1e151, x[4] = -OJ_FLAT_MOST);
    bad = good;
    bad.part_offset = NULL;
    ck_assert_int_eq(oj_flat_check(&bad, NULL), OJ_ERR_ARG);
    bad.n_features = 6;
    bad.part_kinds = OJ_PART_POINT;
    ck_assert_int_eq(oj_flat_check(&bad, NULL), OJ_OK);
    y[2] = INFINITY;
    ck_assert_int_eq(oj_flat_check(&bad, NULL), OJ_ERR_ARG);
    y[2] = 1e151;
    ck_assert_int_eq(oj_flat_check(&bad, NULL), OJ_ERR_ARG);
    x[2] = NAN; /* NaN: no geometry */
    ck_assert_int_eq(oj_flat_check(&bad, NULL), OJ_OK);
}

static oj_status build_features(struct oj_flat_buf *buf, struct oj_error *err)
{
    double *x, *y;
    for (int i = 0; i < 40; i++)
        OJ_TRY(oj_flat_buf_add_point(buf, i, i, i, err));
    OJ_TRY(oj_flat_buf_add_null(buf, 40, err));
    OJ_TRY(oj_flat_buf_begin_feature(buf, 41, err));
    for (int p = 0; p < 40; p++)
    {
        OJ_TRY(oj_flat_buf_begin_part(buf, OJ_PART_POLYGON, err));
        for (int r = 0; r < 2; r++)
        {
            OJ_TRY(oj_flat_buf_begin_ring(buf, err));
            OJ_TRY(oj_flat_buf_add_vertices(buf, 3, &x, &y, err));
            for (int i = 0; i < 3; i++)
                x[i] = y[i] = i;
        }
    }
    OJ_TRY(oj_flat_buf_end_feature(buf, err));
    return oj_flat_buf_add_point(buf, 42, 1, 1, err);
}

TEST(memory_every_allocation_may_fail)
{
    for (int64_t n = 1;; n++)
    {
        LAYER buf = {0};
        struct oj_flat flat;
        oj_status status;
        oj_alloc_fail_at(n);
        status = build_features(&buf, NULL);
        oj_alloc_fail_at(0);
        if (status != OJ_OK)
        {
            ck_assert_int_eq(status, OJ_ERR_NOMEM);
            oj_flat_buf_drop_feature(&buf);
        }
        flat = oj_flat_buf_view(&buf);
        ck_assert_int_eq(oj_flat_check(&flat, NULL), OJ_OK);
        /* the builder can be used as if no call had failed */
        point(&buf, 99, 5, 5);
        flat = oj_flat_buf_view(&buf);
        ck_assert_int_eq(oj_flat_check(&flat, NULL), OJ_OK);
        if (status == OJ_OK)
        {
            ck_assert_int_eq(flat.n_features, 44);
            ck_assert_int_gt(n, 10);
            break;
        }
    }
}

/* A slice of features has exactly their parts, rings and vertices. */
TEST(unit_slices)
{
    LAYER buf = {0};
    struct oj_flat_slice slice = {0};
    struct oj_flat flat;
    ck_assert_int_eq(build_features(&buf, NULL), OJ_OK);
    flat = oj_flat_buf_view(&buf);
    for (int64_t first = 0; first < flat.n_features; first++)
    {
        int64_t n = flat.n_features - first < 5 ? flat.n_features - first : 5;
        ck_assert_int_eq(oj_flat_slice_make(&flat, first, n, &slice, NULL),
                         OJ_OK);
        ck_assert_int_eq(slice.flat.n_features, n);
        ck_assert_int_eq(oj_flat_check(&slice.flat, NULL), OJ_OK);
        for (int64_t i = 0; i < n; i++)
        {
            int64_t v, end, w, end_w;
            oj_flat_vertex_range(&slice.flat, i, &v, &end);
            oj_flat_vertex_range(&flat, first + i, &w, &end_w);
            ck_assert_int_eq(slice.flat.fid[i], flat.fid[first + i]);
            ck_assert_int_eq(end - v, end_w - w);
            ck_assert_ptr_eq(slice.flat.x + v, flat.x + w);
            ck_assert_ptr_eq(slice.flat.y + v, flat.y + w);
            for (int64_t p = slice.flat.part_offset[i];
                 p < slice.flat.part_offset[i + 1]; p++)
                ck_assert_int_eq(slice.flat.part_kind[p],
                                 flat.part_kind[flat.part_offset[first] + p]);
        }
    }
    oj_flat_slice_free(&slice);
}

int main(void)
{
    tests_open("flat");
    return tests_run();
}
