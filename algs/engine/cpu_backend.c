#include "../../flatten/base/oj_array.h"
#include "../relation/cpu_family.h"
#include "../relation/oj_backend.h"

#include <string.h>

static const struct oj_cpu_family *const families[] = {
    &oj_cpu_nearest_points, &oj_cpu_points_in_polygons,
    &oj_cpu_near_points,    &oj_cpu_distance,
    &oj_cpu_sphere,         &oj_cpu_predicate};

#define N_FAMILIES ((int)(sizeof families / sizeof *families))

/* The join side, indexed by the families that were needed so far. */
struct cpu_index
{
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    struct oj_index *of[N_FAMILIES]; /* NULL: not needed yet */
};

/* The first family that takes such a batch, or -1. */
static int choose(const struct oj_relation *relation,
                  const struct oj_flat *join_side, const struct oj_flat *input)
{
    for (int i = 0; i < N_FAMILIES; i++)
    {
        if (families[i]->takes(relation, join_side, input))
            return i;
    }
    return -1;
}

const char *oj_cpu_family_name(const struct oj_relation *relation,
                               const struct oj_flat *join_side,
                               const struct oj_flat *input)
{
    int family = choose(relation, join_side, input);
    return family >= 0 ? families[family]->name : "none";
}

static oj_status index_for(struct cpu_index *index, int family,
                           struct oj_stats *stats, struct oj_error *err)
{
    if (index->of[family] != NULL)
        return OJ_OK;
    return families[family]->index(index->join_side, index->tie_rank,
                                   &index->relation, &index->options,
                                   &index->of[family], stats, err);
}

static void free_index(struct oj_index *wrapped)
{
    struct cpu_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    for (int i = 0; i < N_FAMILIES; i++)
    {
        if (index->of[i] != NULL)
            families[i]->free_index(index->of[i]);
    }
    oj_free(index);
}

/* The family of the batches that are expected: of points, as a rule, one to a
 * feature. */
static int choose_expected(const struct cpu_index *index)
{
    static const int64_t none[1] = {0};
    struct oj_flat expected;
    if (index->options.input_kinds == 0 ||
        index->options.input_kinds == OJ_PART_POINT)
        return choose(&index->relation, index->join_side, NULL);
    memset(&expected, 0, sizeof expected);
    expected.part_kinds = index->options.input_kinds;
    expected.part_offset = none;
    return choose(&index->relation, index->join_side, &expected);
}

/* What the expected input needs is made ready at once: errors of the join side
 * should not wait for it. */
static oj_status
make_index(const struct oj_backend *row, const struct oj_flat *join_side,
           const int32_t *tie_rank, const struct oj_relation *relation,
           const struct oj_options *options, struct oj_index **out,
           struct oj_stats *stats, struct oj_error *err)
{
    struct cpu_index *index = oj_calloc(1, sizeof *index);
    int family;
    oj_status status = OJ_OK;
    (void)row;
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->join_side = join_side;
    index->tie_rank = tie_rank;
    index->relation = *relation;
    index->options = *options;
    family = choose_expected(index);
    if (family >= 0)
        status = index_for(index, family, stats, err);
    if (status != OJ_OK)
    {
        free_index((void *)index);
        return status;
    }
    *out = (void *)index;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct cpu_index *index = (void *)wrapped;
    int family = choose(&index->relation, index->join_side, input);
    if (family < 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-op %s is not possible between these kinds of features",
                       oj_op_get(index->relation.op)->name);
    OJ_TRY(index_for(index, family, stats, err));
    return families[family]->join(index->of[family], input, out, stats, err);
}

const struct oj_backend oj_cpu_backend = {
    OJ_BACKEND_ABI,
    "cpu",
    "our engine on all CPU cores: packed trees, cells with a known state, "
    "exact kernels",
    0,
    0,
    make_index,
    join,
    free_index,
    NULL,
    NULL,
    NULL};
