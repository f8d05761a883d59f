/* Kinds: unit, degenerate, memory. The WKB reader. */
#include "../../../flatten/arrays/oj_wkb.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../run_tests.h"
#include "wkb_seeds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Copies the bytes to memory of exactly their size, so that a sanitizer reports
 * a read beyond the end. */
static oj_status add(struct oj_flat_buf *buf, const struct wkb *w, size_t n,
                     struct oj_error *err)
{
    uint8_t *exact = malloc(n > 0 ? n : 1);
    oj_status status;
    memcpy(exact, w->bytes, n);
    status = oj_wkb_add(buf, 42, exact, n, err);
    free(exact);
    return status;
}

static int64_t n_parts_of(const struct oj_flat *flat, int64_t i)
{
    if (oj_flat_is_points(flat))
        return !isnan(flat->x[i]);
    return flat->part_offset[i + 1] - flat->part_offset[i];
}

TEST_LOOP(unit_every_seed_in_every_form, 0, 2 * WKB_FLAGS)
{
    LAYER buf = {0};
    struct oj_error err;
    struct wkb w;
    uint32_t flags = wkb_flags(_i / 2);
    int64_t n = 0;
    for (int i = 0; i < WKB_SEEDS; i++)
    {
        int expected = wkb_seed(&w, i, flags, _i % 2);
        oj_status status = add(&buf, &w, w.n, &err);
        struct oj_flat flat = oj_flat_buf_view(&buf);
        if (expected < 0)
        {
            ck_assert_int_eq(status,
                             i == 18 ? OJ_ERR_UNSUPPORTED : OJ_ERR_DATA);
            ck_assert_int_eq(flat.n_features, n);
        }
        else
        {
            ck_assert_msg(status == OJ_OK, "seed %d: %s", i, err.message);
            ck_assert_int_eq(flat.n_features, ++n);
            ck_assert_int_eq(n_parts_of(&flat, n - 1), expected);
            ck_assert_int_eq(flat.fid[n - 1], 42);
        }
        status = oj_flat_check(&flat, &err);
        ck_assert_msg(status == OJ_OK, "seed %d: %s", i, err.message);
    }
    ck_assert_int_eq(buf.counts.n_empty, 5);
    ck_assert_int_eq(buf.counts.n_not_finite, 2);
    ck_assert_int_eq(buf.counts.n_empty_members, 4);
    ck_assert_int_eq(buf.counts.n_rings_closed, 4);
}

TEST_LOOP(unit_coordinates_are_those_of_the_bytes, 0, 2)
{
    LAYER buf = {0};
    struct oj_flat flat;
    struct wkb w = {0};
    w.big_endian = _i;
    wkb_polygon(&w, 3000, 0, 0.1, -0.5);
    ck_assert_int_eq(add(&buf, &w, w.n, NULL), OJ_OK);
    flat = oj_flat_buf_view(&buf);
    ck_assert_int_eq(flat.n_vertices, 9);
    ck_assert_int_eq(flat.vertex_offset[1], 5);
    for (int i = 0; i < 4; i++)
    {
        ck_assert_double_eq(flat.x[i], 0.1 + i);
        ck_assert_double_eq(flat.y[i], -0.5 + i * i);
    }
    ck_assert_double_eq(flat.x[4], 0.1);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(flat.x[5 + i], 0.1 + 0.25 + i);
    ck_assert_double_eq(flat.x[8], 0.1 + 0.25);
    oj_flat_buf_clear(&buf);
    w.n = 0; /* the sign matters, also of zero */
    wkb_point(&w, 0, -0.0, 5e-324);
    ck_assert_int_eq(add(&buf, &w, w.n, NULL), OJ_OK);
    ck_assert(signbit(buf.x[0]));
    ck_assert_double_eq(buf.y[0], 5e-324);
}

/* oj_wkb_copy_as_iso() makes of each example geometry (wkb_seeds.h), extended
 * or ISO, its ISO WKB, with the byte order kept. It refuses the examples that
 * the reader refuses. */
TEST_LOOP(unit_extended_becomes_iso, 0, 2 * WKB_FLAGS)
{
    const uint32_t flags = wkb_flags(_i / 2);
    const int n_ordinates = wkb_ordinates(flags);
    const int has_z =
        (flags & 0x80000000u) != 0 || ((flags & 0x1FFFFFFFu) / 1000 & 1) != 0;
    const uint32_t iso_flags = n_ordinates == 4   ? 3000
                               : n_ordinates == 2 ? 0
                               : has_z            ? 1000
                                                  : 2000;
    struct oj_error err;
    for (int i = 0; i < WKB_SEEDS; i++)
    {
        struct wkb w, iso;
        uint8_t *to;
        int64_t srid = -1;
        size_t n = 0;
        oj_status status;
        int expected = wkb_seed(&w, i, flags, _i % 2);
        (void)wkb_seed(&iso, i, iso_flags, _i % 2);
        to = malloc(w.n > 0 ? w.n : 1);
        status = oj_wkb_copy_as_iso(w.bytes, w.n, to, &n, &srid, &err);
        ck_assert_int_eq(status == OJ_OK, expected >= 0);
        if (status == OJ_OK)
        {
            ck_assert_int_eq(oj_wkb_is_extended(w.bytes, w.n),
                             (flags & 0xE0000000u) != 0);
            ck_assert_int_eq(srid, flags & 0x20000000u ? 4326 : 0);
            ck_assert_uint_eq(n, iso.n);
            ck_assert_mem_eq(to, iso.bytes, n);
        }
        free(to);
    }
}

TEST(unit_points_stay_in_the_short_form)
{
    LAYER buf = {0};
    struct oj_flat flat;
    struct wkb w;
    for (int f = 0; f < WKB_FLAGS; f++)
    {
        wkb_seed(&w, 0, wkb_flags(f), 0);
        ck_assert_int_eq(add(&buf, &w, w.n, NULL), OJ_OK);
        wkb_seed(&w, 7, wkb_flags(f), 1);
        ck_assert_int_eq(add(&buf, &w, w.n, NULL), OJ_OK);
        wkb_seed(&w, 1, wkb_flags(f), 0);
        ck_assert_int_eq(add(&buf, &w, w.n, NULL), OJ_OK);
    }
    flat = oj_flat_buf_view(&buf);
    ck_assert(oj_flat_is_points(&flat));
    ck_assert_int_eq(flat.n_features, 3 * WKB_FLAGS);
    for (int i = 0; i < 3 * WKB_FLAGS; i += 3)
    {
        ck_assert_double_eq(flat.x[i], 1.5);
        ck_assert_double_eq(flat.y[i], -2.5);
        ck_assert_double_eq(flat.x[i + 1], 7);
        ck_assert_double_nan(flat.x[i + 2]);
    }
}

TEST_LOOP(degenerate_every_cut_is_refused, 0, WKB_SEEDS)
{
    LAYER buf = {0};
    struct oj_error err;
    struct wkb w, first;
    wkb_seed(&first, 12, 0, 0);
    ck_assert_int_eq(add(&buf, &first, first.n, NULL), OJ_OK);
    for (int f = 0; f < WKB_FLAGS; f++)
    {
        int64_t n_vertices = buf.n_vertices;
        if (wkb_seed(&w, _i, wkb_flags(f), f & 1) < 0)
            continue;
        for (size_t n = 0; n < w.n; n++)
        {
            ck_assert_int_eq(add(&buf, &w, n, &err), OJ_ERR_DATA);
            ck_assert_int_eq(buf.n_vertices, n_vertices);
            ck_assert_int_eq(buf.n_features, 1);
        }
        wkb_byte(&w, 0); /* one byte too many is refused, too */
        ck_assert_int_eq(add(&buf, &w, w.n, &err), OJ_ERR_DATA);
        ck_assert_int_eq(buf.n_features, 1);
    }
}

TEST(degenerate_depth_has_a_limit)
{
    LAYER buf = {0};
    struct oj_error err;
    for (int depth = OJ_WKB_MAX_DEPTH - 1; depth <= OJ_WKB_MAX_DEPTH + 2;
         depth++)
    {
        struct wkb w = {0};
        oj_status status;
        for (int i = 0; i < depth; i++)
            wkb_header_count(&w, 7, 1);
        wkb_point(&w, 0, 1, 1);
        status = add(&buf, &w, w.n, &err);
        if (depth <= OJ_WKB_MAX_DEPTH)
        {
            ck_assert_int_eq(status, OJ_OK);
        }
        else
        {
            ck_assert_int_eq(status, OJ_ERR_DATA);
            ck_assert_ptr_nonnull(strstr(err.message, "nested"));
        }
    }
}

TEST(degenerate_bad_byte_order)
{
    LAYER buf = {0};
    struct wkb w;
    wkb_seed(&w, 0, 0, 0);
    w.bytes[0] = 2;
    ck_assert_int_eq(add(&buf, &w, w.n, NULL), OJ_ERR_DATA);
    wkb_seed(&w, 0, 4000, 0);
    ck_assert_int_eq(add(&buf, &w, w.n, NULL), OJ_ERR_DATA);
}

static oj_status add_all(struct oj_flat_buf *buf, struct oj_error *err)
{
    struct wkb w;
    for (int i = 0; i < WKB_SEEDS; i++)
    {
        if (wkb_seed(&w, i, 0, i & 1) >= 0)
            OJ_TRY(oj_wkb_add(buf, i, w.bytes, w.n, err));
    }
    return oj_flat_buf_add_null(buf, WKB_SEEDS, err);
}

TEST(memory_every_allocation_may_fail)
{
    LAYER whole = {0};
    ck_assert_int_eq(add_all(&whole, NULL), OJ_OK);
    for (int64_t n = 1;; n++)
    {
        LAYER buf = {0};
        struct oj_error err = {OJ_OK, ""};
        struct oj_flat flat;
        oj_status status;
        oj_alloc_fail_at(n);
        status = add_all(&buf, &err);
        oj_alloc_fail_at(0);
        flat = oj_flat_buf_view(&buf);
        ck_assert_int_eq(oj_flat_check(&flat, NULL), OJ_OK);
        if (status != OJ_OK)
        {
            ck_assert_int_eq(status, OJ_ERR_NOMEM);
            ck_assert_int_eq(err.status, OJ_ERR_NOMEM);
            ck_assert_int_lt(flat.n_features, whole.n_features);
        }
        else
        {
            ck_assert_int_eq(flat.n_vertices, whole.n_vertices);
            ck_assert_int_gt(n, 7);
        }
        if (status == OJ_OK)
            break;
    }
}

int main(void)
{
    tests_open("wkb");
    return tests_run();
}
