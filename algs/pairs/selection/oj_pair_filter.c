#include "oj_pair_filter.h"

#include "../../../flatten/base/oj_hash_mix.h"
#include "../../foundations/base/cpu_lane_loops.h"

#include <string.h>

static void
fill_bit_difference_limits(const struct oj_text_condition *condition,
                           struct oj_pair_filter *filter)
{
    for (int a = 0; a <= OJ_LONG_TEXT; a++)
    {
        filter->most_apart_short[a] = INT32_MAX;
        for (int b = 0; b <= OJ_LONG_TEXT; b++)
        {
            int most = a < b ? a : b;
            int common =
                most > 0 ? (int)oj_text_min_common_tokens(condition, a, b) : 1;
            int apart = common > most ? -1 : a + b - 2 * common;
            if (a == OJ_LONG_TEXT || b == OJ_LONG_TEXT)
                apart = INT32_MAX;
            else if (b == 0 || apart > filter->most_apart_short[a])
                filter->most_apart_short[a] = apart;
            filter->most_apart[a][b] = apart;
        }
    }
}

oj_status oj_pair_filter_make(const struct oj_relation *relation,
                              const struct oj_flat *input,
                              const struct oj_flat *join_side,
                              struct oj_pair_filter *out, struct oj_error *err)
{
    int asks_fids = relation->exclude_self || relation->unordered_pairs != 0;
    struct oj_pair_filter filter = {
        .relation = relation, .input = input, .join_side = join_side};
    int has_conditions;
    if (input->n_features == 0 || join_side->n_features == 0)
    {
        *out = filter; /* without features there are no pairs, and the arrays of
                          conditions may be missing */
        return OJ_OK;
    }
    if (asks_fids && (input->fid == NULL || join_side->fid == NULL))
        return oj_fail(err, OJ_ERR_ARG,
                       "exclude_self and unordered_pairs compare FIDs: give "
                       "both sides their FIDs");
    if ((input->on_class == NULL) != (join_side->on_class == NULL) ||
        (input->exclude_class == NULL) != (join_side->exclude_class == NULL))
        return oj_fail(err, OJ_ERR_ARG,
                       "attributes to compare (on, exclude) are given for one "
                       "side only: give them for both sides, or for neither");
    if (oj_relation_is_of_equal_attributes(relation) && input->on_class == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "op attributes needs the columns whose values must "
                       "be equal: give on");
    if (input->n_texts < relation->n_similar ||
        join_side->n_texts < relation->n_similar)
        return oj_fail(
            err, OJ_ERR_ARG,
            "a condition on texts (similar) lacks the texts of a side: give "
            "both sides a column of texts for each condition");
    if (relation->vector.is_asked &&
        (input->vectors.value == NULL || join_side->vectors.value == NULL ||
         input->vectors.n_dimensions != join_side->vectors.n_dimensions))
        return oj_fail(err, OJ_ERR_ARG,
                       "a condition on vectors (vector) needs vectors on both "
                       "sides: give both vectors of equally many numbers");
    if (input->n_spans < relation->n_spans ||
        join_side->n_spans < relation->n_spans)
        return oj_fail(err, OJ_ERR_ARG,
                       "a condition on spans (within_time, during) lacks the "
                       "spans of a side: name columns of both sides");
    if (relation->heading.is_asked && input->heading == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "heading lacks the headings of the input: name the "
                       "column that holds them");
    has_conditions = oj_relation_compares_attributes(relation) || asks_fids ||
                     relation->n_spans > 0 || relation->exclude_same_geometry ||
                     input->exclude_class != NULL;
    filter.is_needed = has_conditions || input->on_class != NULL;
    filter.tests_classes = filter.is_needed && !has_conditions;
    if (relation->n_similar > 0)
        fill_bit_difference_limits(&relation->similar[0], &filter);
    *out = filter;
    return OJ_OK;
}

/* Returns 1 if both arrays of n + 1 offsets are equal after subtracting their
 * first entries. */
static int have_equal_relative_offsets(const int64_t *a, const int64_t *b,
                                       int64_t n)
{
    for (int64_t i = 1; i <= n; i++)
    {
        if (a[i] - a[0] != b[i] - b[0])
            return 0;
    }
    return 1;
}

/* Returns 1 if the features have equal kinds of parts and equal counts of rings
 * and vertices. */
static int have_equal_parts_and_rings(const struct oj_flat *a,
                                      int64_t feature_a,
                                      const struct oj_flat *b,
                                      int64_t feature_b)
{
    int64_t pa = a->part_offset[feature_a], pb = b->part_offset[feature_b];
    int64_t n = a->part_offset[feature_a + 1] - pa;
    int64_t ra = a->ring_offset[pa], rb = b->ring_offset[pb];
    return b->part_offset[feature_b + 1] - pb == n &&
           memcmp(a->part_kind + pa, b->part_kind + pb, (size_t)n) == 0 &&
           have_equal_relative_offsets(a->ring_offset + pa, b->ring_offset + pb,
                                       n) &&
           have_equal_relative_offsets(a->vertex_offset + ra,
                                       b->vertex_offset + rb,
                                       a->ring_offset[pa + n] - ra);
}

int oj_flat_same_geometry(const struct oj_flat *a, int64_t feature_a,
                          const struct oj_flat *b, int64_t feature_b)
{
    int64_t va, end_a, vb, end_b;
    oj_flat_vertex_range(a, feature_a, &va, &end_a);
    oj_flat_vertex_range(b, feature_b, &vb, &end_b);
    if (end_a - va != end_b - vb || end_a == va)
        return 0;
    for (int64_t i = 0; i < end_a - va; i++)
    {
        if (a->x[va + i] != b->x[vb + i] || a->y[va + i] != b->y[vb + i])
            return 0;
    }
    if (oj_flat_is_points(a) || oj_flat_is_points(b))
        return oj_flat_is_one_point(a, feature_a) &&
               oj_flat_is_one_point(b, feature_b);
    return have_equal_parts_and_rings(a, feature_a, b, feature_b);
}

uint64_t oj_flat_geometry_hash(const struct oj_flat *flat, int64_t feature)
{
    int64_t first, end;
    uint64_t hash;
    oj_flat_vertex_range(flat, feature, &first, &end);
    hash = (uint64_t)(end - first);
    for (int64_t v = first; v < end && v < first + 3; v++)
    {
        double xy[2] = {flat->x[v] + 0.0, flat->y[v] + 0.0}; /* no -0 */
        hash = oj_hash_mix(oj_hash_mix(hash, &xy[0]), &xy[1]);
    }
    return hash;
}

int oj_pair_filter_supports_attributes_join(const struct oj_relation *relation,
                                            const struct oj_flat *join_side,
                                            const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_is_of_equal_attributes(relation);
}

double oj_pair_vector_difference(const struct oj_relation *relation,
                                 const struct oj_flat *input, int64_t row,
                                 const struct oj_flat *join_side,
                                 int64_t feature)
{
    return oj_vector_difference(relation->vector.norm,
                                oj_vector_at(&input->vectors, row),
                                oj_vector_at(&join_side->vectors, feature),
                                input->vectors.n_dimensions);
}

static int are_vectors_near(const struct oj_pair_filter *f, int64_t row,
                            int64_t feature)
{
    return oj_vector_is_there(&f->input->vectors, row) &&
           oj_vector_is_there(&f->join_side->vectors, feature) &&
           oj_pair_vector_difference(f->relation, f->input, row, f->join_side,
                                     feature) <=
               f->relation->vector.max_difference;
}

/* Returns 0 if the numbers of tokens and the token bitmaps prove that the texts
 * of the first condition are not similar. */
OJ_INLINE int may_be_similar(const struct oj_pair_filter *f, int64_t row,
                             int64_t feature)
{
    const struct oj_token_sets *a = f->input->texts, *b = f->join_side->texts;
    const uint64_t *s = a->bits[row].word, *t = b->bits[feature].word;
    return __builtin_popcountll(s[0] ^ t[0]) +
               __builtin_popcountll(s[1] ^ t[1]) <=
           f->most_apart[oj_token_count_class(a->size[row])]
                        [oj_token_count_class(b->size[feature])];
}

/* Returns 1 if the texts of the pair meet the condition. Tests token counts and
 * bitmaps first: they are cheap and give an upper bound of the number of common
 * tokens. */
static int are_texts_similar(const struct oj_text_condition *condition,
                             const struct oj_token_sets *a, int64_t row,
                             const struct oj_token_sets *b, int64_t feature)
{
    int64_t n_a = a->size[row], n_b = b->size[feature];
    int64_t common = oj_token_sets_bound(a, row, b, feature);
    if (common <= 0 || !oj_text_is_similar(condition, common, n_a, n_b))
        return 0;
    common = oj_token_sets_count_common(a, row, b, feature);
    return common > 0 && oj_text_is_similar(condition, common, n_a, n_b);
}

OJ_COUNT_CLONES int oj_pair_filter_passes(const struct oj_pair_filter *filter,
                                          int64_t row, int64_t feature)
{
    const struct oj_relation *relation = filter->relation;
    const struct oj_flat *a = filter->input, *b = filter->join_side;
    if (relation->exclude_self && a->fid[row] == b->fid[feature])
        return 0;
    if (relation->unordered_pairs > 0 && !(a->fid[row] < b->fid[feature]))
        return 0;
    if (relation->unordered_pairs < 0 && !(a->fid[row] > b->fid[feature]))
        return 0;
    if (a->on_class != NULL &&
        (a->on_class[row] < 0 || a->on_class[row] != b->on_class[feature]))
        return 0;
    if (a->exclude_class != NULL && a->exclude_class[row] >= 0 &&
        a->exclude_class[row] == b->exclude_class[feature])
        return 0;
    for (int i = 0; i < relation->n_spans; i++)
    {
        if (!oj_span_condition_holds(&relation->spans[i], &a->spans[i], row,
                                     &b->spans[i], feature))
            return 0;
    }
    if (relation->n_similar > 0 && !may_be_similar(filter, row, feature))
        return 0;
    for (int i = 0; i < relation->n_similar; i++)
    {
        if (!are_texts_similar(&relation->similar[i], &a->texts[i], row,
                               &b->texts[i], feature))
            return 0;
    }
    if (relation->vector.is_asked && !are_vectors_near(filter, row, feature))
        return 0;
    return !relation->exclude_same_geometry ||
           !oj_flat_same_geometry(a, row, b, feature);
}

double oj_pair_text_similarity(const struct oj_relation *relation,
                               int condition, const struct oj_flat *input,
                               int64_t row, const struct oj_flat *join_side,
                               int64_t feature)
{
    const struct oj_token_sets *a = &input->texts[condition];
    const struct oj_token_sets *b = &join_side->texts[condition];
    return oj_text_similarity(relation->similar[condition].measure,
                              oj_token_sets_count_common(a, row, b, feature),
                              a->size[row], b->size[feature]);
}
double oj_pair_similar_measure(const struct oj_relation *relation,
                               const struct oj_flat *input, int64_t row,
                               const struct oj_flat *join_side, int64_t feature)
{
    return oj_relation_ranks_by_similarity(relation)
               ? -oj_pair_text_similarity(relation, 0, input, row, join_side,
                                          feature)
               : oj_pair_vector_difference(relation, input, row, join_side,
                                           feature);
}
