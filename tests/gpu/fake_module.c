/* A module that stands for ogrjoin_cuda.so in tests: two devices that are none,
 * and plain loops for the nearest of points and for pairs of equal points.
 * FAKE_GPU in the environment says how it fails: abi, none, full (no memory for
 * an index), refuse (the join side), second (the better method refuses it),
 * crowded (no memory for a batch), lost (every join), mute (pairs are only
 * counted). */
#include "../../algs/oj_gpu.h"
#include "../../flatten/oj_array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oj_index
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
             !oj_relation_gives_lists(relation)) ||
            relation->op == OJ_OP_EQUALS) &&
           oj_flat_is_points(join_side) &&
           (input == NULL || oj_flat_is_points(input));
}

static const char *method(const struct oj_index *index,
                          const struct oj_relation *relation,
                          const struct oj_flat *join_side,
                          const struct oj_flat *input)
{
    if (index != NULL && fails("second"))
        return "slower fake loops";
    return takes(relation, join_side, input) ? "fake loops" : "none";
}

static oj_status
make_index(const struct oj_flat *join_side, const int32_t *tie_rank,
           const struct oj_relation *relation, const struct oj_options *options,
           struct oj_index **out, struct oj_stats *stats, struct oj_error *err)
{
    struct oj_index *index;
    (void)options;
    (void)stats;
    if (fails("refuse"))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "too large");
    if (fails("full"))
        return oj_fail(err, OJ_ERR_NOMEM, "the fake device is full");
    OJ_NEW(index, 1, err);
    index->join_side = join_side;
    index->tie_rank = tie_rank;
    index->relation = *relation;
    *out = index;
    return OJ_OK;
}

static int32_t rank_of(const struct oj_index *index, int64_t i)
{
    return index->tie_rank != NULL ? index->tie_rank[i] : (int32_t)i;
}

static void answer(const struct oj_index *index, double x, double y,
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
    if (fails("crowded"))
        return oj_fail(err, OJ_ERR_NOMEM, "the fake device is crowded");
    return OJ_OK;
}

static int is_equal(const struct oj_index *index, const struct oj_flat *input,
                    int64_t row, int64_t feature)
{
    return input->x[row] == index->join_side->x[feature] &&
           input->y[row] == index->join_side->y[feature];
}

/* Without FIDs, so that the order is that of the ordinals. */
static oj_status join_equal(const struct oj_index *index,
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

static oj_status count_pairs(struct oj_index *index,
                             const struct oj_flat *input, int64_t *counts,
                             int64_t *n_pairs, struct oj_stats *stats,
                             struct oj_error *err)
{
    int64_t sum = 0;
    (void)stats;
    OJ_TRY(check_device(err));
    if (index->relation.op != OJ_OP_EQUALS)
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "not counted");
    for (int64_t f = 0; f < index->join_side->n_features; f++)
    {
        for (int64_t i = 0; i < input->n_features; i++)
        {
            int equal = is_equal(index, input, i, f);
            counts[f] += equal;
            sum += equal;
        }
    }
    *n_pairs = sum;
    return OJ_OK;
}

static const char *why_refused(const struct oj_index *index)
{
    (void)index;
    return fails("second") ? "the better fake method is full" : "";
}

static oj_status join(struct oj_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
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

static void free_index(struct oj_index *index)
{
    oj_free(index);
}

static const struct oj_gpu_module module = {.abi = OJ_GPU_ABI,
                                            .build = "fake",
                                            .count = count,
                                            .describe = describe,
                                            .takes = takes,
                                            .method = method,
                                            .index = make_index,
                                            .join = join,
                                            .count_pairs = count_pairs,
                                            .why_refused = why_refused,
                                            .free_index = free_index};

OJ_EXPORT const struct oj_gpu_module *oj_gpu_module(uint32_t abi);

const struct oj_gpu_module *oj_gpu_module(uint32_t abi)
{
    return abi == OJ_GPU_ABI && !fails("abi") ? &module : NULL;
}
