/* A module that stands for ogrjoin_cuda.so in tests. It has two fake devices,
 * the second of which is unusable, and plain loops for nearest points, equal
 * points, and intersecting boxes of lines and polygons. FAKE_GPU in the
 * environment selects how it fails: abi; none (no device); full (no memory for
 * an index); held (no memory even to open one); refuse (refuses the join side);
 * second (its faster method refuses the join side); crowded (no memory for a
 * batch); lost, broken or stopped (every join fails); mute (pairs can only be
 * counted or summed); plain (pairs can be neither counted nor summed). */
#include "../../algs/foundations/kernels/oj_pair_verdict.h"
#include "../../algs/foundations/relation/oj_gpu.h"
#include "../../flatten/base/oj_alloc.h"
#include "plain_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fake_index
{
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
};

static int fails(const char *how)
{
    const char *asked = getenv("FAKE_GPU");
    return asked != NULL && strcmp(asked, how) == 0;
}

static oj_status count(int *n, struct oj_error *err)
{
    if (fails("none"))
        return oj_fail(err, OJ_ERR_NO_DEVICE, "no fake device either");
    *n = 2;
    return OJ_OK;
}

static oj_status describe(int ordinal, struct oj_gpu_device *out,
                          struct oj_error *err)
{
    static const struct oj_gpu_device device = {
        0, "Fake 1", 9, 0, (int64_t)8 << 30, (int64_t)7 << 30, 10, ""};
    if (ordinal < 0 || ordinal > 1)
        return oj_fail(err, OJ_ERR_NO_DEVICE, "no such device");
    *out = device;
    out->ordinal = ordinal;
    if (ordinal == 1)
        strcpy(out->why_not, "it is in use");
    return OJ_OK;
}

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    return ((relation->op == OJ_OP_NEAREST &&
             !oj_relation_allows_many_pairs(relation)) ||
            relation->op == OJ_OP_EQUALS) &&
           oj_flat_is_points(join_side) &&
           (input == NULL || oj_flat_is_points(input));
}

static const char *method(const struct oj_gpu_index *index,
                          const struct oj_relation *relation,
                          const struct oj_flat *join_side,
                          const struct oj_flat *input)
{
    if (index != NULL && fails("second"))
        return "slower fake loops";
    return takes(relation, join_side, input) ? "fake loops" : "none";
}

static oj_status check_index(struct oj_error *err)
{
    if (fails("refuse"))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "too large");
    if (fails("full"))
        return oj_fail(err, OJ_ERR_NOMEM, "the fake device is full");
    if (fails("held"))
        return oj_fail(err, OJ_ERR_NOMEM, "others hold it; end one of them");
    return OJ_OK;
}

static oj_status make_index(const struct oj_flat *join_side,
                            const int32_t *tie_rank,
                            const struct oj_relation *relation,
                            const struct oj_options *options,
                            struct oj_gpu_index **out, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct fake_index *index;
    (void)options;
    (void)stats;
    OJ_TRY(check_index(err));
    OJ_NEW(index, 1, err);
    index->join_side = join_side;
    index->tie_rank = tie_rank;
    index->relation = *relation;
    *out = (void *)index;
    return OJ_OK;
}

static int32_t rank_of(const struct fake_index *index, int64_t i)
{
    return index->tie_rank != NULL ? index->tie_rank[i] : (int32_t)i;
}

static void answer(const struct fake_index *index, double x, double y,
                   int32_t *row, double *measure)
{
    const struct oj_flat *flat = index->join_side;
    *row = -1;
    *measure = (double)NAN;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        double dx = x - flat->x[i], dy = y - flat->y[i];
        double d = sqrt(dx * dx + dy * dy);
        if (!(d <= index->relation.max_distance))
            continue;
        if (*row >= 0 &&
            (d > *measure ||
             (d == *measure && rank_of(index, i) > rank_of(index, *row))))
            continue;
        *row = (int32_t)i;
        *measure = d;
    }
}

static oj_status check_device(struct oj_error *err)
{
    if (fails("lost"))
        return oj_fail(err, OJ_ERR_NO_DEVICE, "the fake device is lost");
    if (fails("broken"))
        return oj_fail(err, OJ_ERR_INTERNAL, "the fake device is broken");
    if (fails("stopped"))
        return oj_fail(err, OJ_ERR_CANCELLED, "cancelled");
    if (fails("crowded"))
        return oj_fail(err, OJ_ERR_NOMEM, "the fake device is crowded");
    return OJ_OK;
}

static int is_equal(const struct fake_index *index, const struct oj_flat *input,
                    int64_t row, int64_t feature)
{
    return input->x[row] == index->join_side->x[feature] &&
           input->y[row] == index->join_side->y[feature];
}

/* Lists the equal points of each row in the order of ordinals. */
static oj_status join_equal(const struct fake_index *index,
                            const struct oj_flat *input, struct oj_matches *out,
                            struct oj_error *err)
{
    int64_t n = input->n_features, m = index->join_side->n_features, at = 0;
    OJ_TRY(oj_matches_reserve(out, n, n * m, 1, err));
    for (int64_t i = 0; i < n; i++)
    {
        out->offset[i] = at;
        for (int64_t f = 0; f < m; f++)
        {
            out->join_row[at] = (int32_t)f;
            out->measure[at] = (double)NAN;
            at += is_equal(index, input, i, f);
        }
        out->n_matched += at > out->offset[i];
    }
    out->offset[n] = at;
    out->n_entries = out->n_pairs = at;
    return OJ_OK;
}

static oj_status sum_pairs(struct oj_gpu_index *wrapped,
                           const struct oj_flat *input,
                           const struct oj_sum_request *request, int64_t *words,
                           int64_t *n_pairs, struct oj_stats *stats,
                           struct oj_error *err)
{
    struct fake_index *index = (void *)wrapped;
    (void)stats;
    OJ_TRY(check_device(err));
    if (index->relation.op != OJ_OP_EQUALS || fails("plain"))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "not summed");
    *n_pairs = 0;
    for (int64_t f = 0; f < index->join_side->n_features; f++)
    {
        int64_t *of_feature = words + f * request->n_words;
        for (int64_t i = 0; i < input->n_features; i++)
        {
            if (is_equal(index, input, i, f))
                plain_add_pair(request, i, of_feature);
        }
        *n_pairs += of_feature[0];
    }
    return OJ_OK;
}

static const char *why_refused(const struct oj_gpu_index *index)
{
    (void)index;
    return fails("second") ? "the better fake method is full" : "";
}

static oj_status join(struct oj_gpu_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct fake_index *index = (void *)wrapped;
    int64_t n = input->n_features;
    (void)stats;
    OJ_TRY(check_device(err));
    if (fails("mute"))
        return oj_fail(err, OJ_ERR_INTERNAL, "the fake device only counts");
    if (index->relation.op == OJ_OP_EQUALS)
        return join_equal(index, input, out, err);
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    for (int64_t i = 0; i < n; i++)
    {
        answer(index, input->x[i], input->y[i], &out->join_row[i],
               &out->measure[i]);
        out->n_matched += out->join_row[i] >= 0;
    }
    out->n_pairs = out->n_matched;
    return OJ_OK;
}

static void free_index(struct oj_gpu_index *index)
{
    oj_free(index);
}

/* --- boxes of lines and polygons ------------------------------------------ */

struct feature_box
{
    double x0, y0, x1, y1;
};

struct fake_screen
{
    const struct oj_flat *join_side;
    struct oj_screen_rule rule;
};

static oj_status screen_index(const struct oj_flat *join_side,
                              const struct oj_screen_rule *rule,
                              const struct oj_options *options,
                              struct oj_gpu_screen **out,
                              struct oj_stats *stats, struct oj_error *err)
{
    struct fake_screen *screen;
    (void)options;
    (void)stats;
    OJ_TRY(check_index(err));
    OJ_NEW(screen, 1, err);
    screen->join_side = join_side;
    screen->rule = *rule;
    *out = (void *)screen;
    return OJ_OK;
}

static struct feature_box box_of(const struct oj_flat *flat, int64_t feature)
{
    struct feature_box box = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    int64_t end = flat->ring_offset[flat->part_offset[feature + 1]];
    int64_t ring = flat->ring_offset[flat->part_offset[feature]];
    for (int64_t v = flat->vertex_offset[ring]; v < flat->vertex_offset[end];
         v++)
    {
        box.x0 = fmin(box.x0, flat->x[v]);
        box.y0 = fmin(box.y0, flat->y[v]);
        box.x1 = fmax(box.x1, flat->x[v]);
        box.y1 = fmax(box.y1, flat->y[v]);
    }
    return box;
}

static int boxes_meet(const struct feature_box *a, const struct feature_box *b)
{
    return a->x0 <= b->x1 && b->x0 <= a->x1 && a->y0 <= b->y1 && b->y0 <= a->y1;
}

static oj_status screen_find(struct oj_gpu_screen *wrapped,
                             const struct oj_flat *input, int64_t most,
                             struct oj_screen_pairs *out,
                             struct oj_stats *stats, struct oj_error *err)
{
    const struct fake_screen *screen = (void *)wrapped;
    int64_t n = input->n_features, m = screen->join_side->n_features, at = 0;
    (void)most;
    (void)stats;
    OJ_TRY(check_device(err));
    OJ_TRY(oj_reserve(&out->offset, 0, n + 1, &out->cap_offset,
                      sizeof *out->offset, err));
    OJ_TRY(oj_reserve(&out->feature, 0, n * m, &out->cap_feature,
                      sizeof *out->feature, err));
    OJ_TRY(oj_reserve(&out->verdict, 0, n * m, &out->cap_verdict,
                      sizeof *out->verdict, err));
    for (int64_t i = 0; i < n; i++)
    {
        struct feature_box row = box_of(input, i);
        out->offset[i] = at;
        for (int64_t f = 0; f < m; f++)
        {
            struct feature_box other = box_of(screen->join_side, f);
            out->feature[at] = (int32_t)f;
            out->verdict[at] = screen->rule.is_enough ? OJ_VERDICT_INTERSECTS
                                                      : OJ_VERDICT_OPEN;
            at += boxes_meet(&row, &other);
        }
    }
    out->offset[n] = at;
    out->n_rows = n;
    out->n_pairs = at;
    return OJ_OK;
}

static void screen_free(struct oj_gpu_screen *screen)
{
    oj_free(screen);
}

static const struct oj_gpu_module module = {.abi = OJ_GPU_ABI,
                                            .build = "fake",
                                            .count = count,
                                            .describe = describe,
                                            .supports = takes,
                                            .method = method,
                                            .index = make_index,
                                            .join = join,
                                            .sum_pairs = sum_pairs,
                                            .why_refused = why_refused,
                                            .screen_index = screen_index,
                                            .screen_find = screen_find,
                                            .screen_free = screen_free,
                                            .free_index = free_index};

OJ_EXPORT const struct oj_gpu_module *oj_gpu_module(uint32_t abi);

const struct oj_gpu_module *oj_gpu_module(uint32_t abi)
{
    return abi == OJ_GPU_ABI && !fails("abi") ? &module : NULL;
}
