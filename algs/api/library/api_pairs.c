#include "api_pairs.h"

#include "../../../flatten/arrays/oj_wkb.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_number.h"
#include "../../foundations/aggregate/oj_aggregate.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "../../pairs/values/oj_one_to_one.h"
#include "../rows/oj_row_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

oj_status api_check_max_pairs(oj_status status, int64_t most, int64_t n_before,
                              int64_t n, struct oj_error *err)
{
    if (most > 0 && (status == OJ_ERR_TOO_MANY_PAIRS ||
                     (status == OJ_OK && n > most - n_before)))
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the join has more than %lld pairs, the limit set by "
                       "max_pairs: raise it, or restrict the join",
                       (long long)most);
    return status;
}

/* --- opening a pair maker ------------------------------------------------- */

static int wants_overlap(const struct api_pair_settings *s)
{
    return s->overlap_area || s->overlap_length || s->overlap_percent ||
           s->share || s->intersection || s->pick == OJ_PICK_LARGEST_OVERLAP;
}

static oj_status check_settings(const struct api_pair_settings *s,
                                const struct oj_relation *relation,
                                const int64_t *score, struct oj_error *err)
{
    unsigned takes = oj_op_get(relation->op)->takes;
    if (s->one_to_one && s->pick != OJ_PICK_ALL)
        return oj_fail(err, OJ_ERR_ARG,
                       "pick has no effect with one_to_one, which itself "
                       "chooses the pairs: leave pick out");
    if (s->pick == OJ_PICK_MOST_SIMILAR &&
        !oj_relation_compares_attributes(relation))
        return oj_fail(err, OJ_ERR_ARG,
                       "pick most_similar needs the setting similar or vector");
    if (s->pick == OJ_PICK_NEAREST && (takes & OJ_TAKES_DISTANCE) == 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "pick nearest needs op nearest or dwithin");
    if (s->pick == OJ_PICK_SCORE && score == NULL)
        return oj_fail(
            err, OJ_ERR_ARG,
            "pick score needs a column of scores: give it with "
            "ogrjoin_layer_set_columns(), in Python with Index(score=)");
    if (oj_relation_is_on_globe(relation) && wants_overlap(s))
        return oj_fail(err, OJ_ERR_ARG,
                       "overlaps are measured in the plane: leave them out, or "
                       "set metric to planar");
    return OJ_OK;
}

static struct oj_pair_request
make_pair_request(const struct api_pair_settings *s,
                  const struct oj_relation *relation,
                  const struct oj_options *options)
{
    struct oj_pair_request request = {.pick = (enum oj_pick_rule)s->pick,
                                      .relation = *relation,
                                      .n_threads = options->n_threads,
                                      .cancel = options->cancel};
    unsigned char *want = request.want;
    want[OJ_PAIR_OVERLAP_AREA] = s->overlap_area || s->share;
    want[OJ_PAIR_OVERLAP_LENGTH] = s->overlap_length || s->share;
    want[OJ_PAIR_OVERLAP_PERCENT] = s->overlap_percent != 0;
    want[OJ_PAIR_JOIN_AREA] = want[OJ_PAIR_OVERLAP_SIZE] = s->share != 0;
    want[OJ_PAIR_NEAREST_X] = want[OJ_PAIR_NEAREST_Y] = s->nearest_point != 0;
    want[OJ_PAIR_FROM_X] = want[OJ_PAIR_FROM_Y] = s->from_point != 0;
    want[OJ_PAIR_BEARING] = s->bearing != 0;
    for (int i = 0; i < OJ_N_NAMED_PAIR_VALUES; i++)
        want[OJ_FIRST_NAMED_PAIR_VALUE + i] = s->named[i] != 0;
    request.want_shapes = s->intersection;
    request.along_is_m = s->along == OJ_ALONG_BY_M;
    for (int i = 0; i < relation->n_similar; i++)
        want[OJ_PAIR_SIMILARITY + i] = 1;
    want[OJ_PAIR_DIFFERENCE] = relation->vector.is_asked != 0;
    return request;
}

oj_status api_pair_maker_open(struct api_pair_maker *maker,
                              const struct api_pair_settings *settings,
                              const struct oj_relation *relation,
                              const struct oj_options *options,
                              const struct oj_flat *join_side,
                              const int64_t *score, const int32_t *tie_rank,
                              struct oj_error *err)
{
    struct oj_pair_request request =
        make_pair_request(settings, relation, options);
    struct oj_pair_side side = {join_side, join_side, score, tie_rank};
    oj_status status;
    OJ_TRY(check_settings(settings, relation, score, err));
    maker->settings = *settings;
    maker->relation = *relation;
    maker->n_threads = options->n_threads;
    maker->cancel = options->cancel;
    maker->join_side = *join_side;
    if (!oj_pair_request_is_needed(&request))
        return OJ_OK;
    if (request.along_is_m)
        OJ_TRY(oj_row_along_check_m("", "the right side",
                                    oj_flat_m_presence(join_side), err));
    side.joined = side.whole = &maker->join_side;
    OJ_TRY(oj_pair_stage_open(&request, &maker->stage, err));
    status = oj_pair_stage_set_join_side(maker->stage, &side, err);
    if (status != OJ_OK)
    {
        oj_pair_stage_close(maker->stage);
        maker->stage = NULL;
        return status;
    }
    pthread_mutex_init(&maker->lock, NULL);
    return OJ_OK;
}

void api_pair_maker_close(struct api_pair_maker *maker)
{
    if (maker->stage != NULL)
        pthread_mutex_destroy(&maker->lock);
    oj_pair_stage_close(maker->stage);
    maker->stage = NULL;
}

/* --- choice of pairs one to one ------------------------------------------- */

oj_status api_convert_choice_to_matches(const struct oj_one_to_one *choice,
                                        int64_t n_rows, struct oj_matches *out,
                                        struct oj_error *err)
{
    int64_t n;
    const struct oj_one_pair *pair = oj_one_to_one_pairs(choice, &n);
    OJ_TRY(oj_matches_reserve(out, n_rows, n_rows, 0, err));
    for (int64_t row = 0; row < n_rows; row++)
    {
        out->join_row[row] = -1;
        out->measure[row] = NAN;
    }
    for (int64_t i = 0; i < n; i++)
    {
        out->join_row[pair[i].label] = (int32_t)pair[i].join;
        out->measure[pair[i].label] = pair[i].measure;
    }
    out->n_pairs = out->n_matched = n;
    return OJ_OK;
}

static oj_status choose_one_to_one(const struct api_pair_maker *maker,
                                   const struct oj_flat *input,
                                   const struct oj_matches *matches,
                                   struct ogrjoin_pairs *pairs,
                                   struct oj_matches *out, struct oj_error *err)
{
    struct oj_one_to_one *choice;
    struct oj_pair_ranks ranks = {0};
    int64_t n_large_pairs;
    oj_status status;
    OJ_TRY(
        oj_one_to_one_open(maker->join_side.n_features,
                           (enum oj_one_to_one_rule)maker->settings.one_to_one,
                           API_MOST_ONE_TO_ONE_BYTES, NULL, &choice, err));
    status = oj_pair_ranks_make(&maker->relation, input, &maker->join_side,
                                matches, maker->n_threads, &ranks, err);
    if (status == OJ_OK)
        status =
            oj_one_to_one_add_matches(choice, matches, &ranks, NULL, NULL, err);
    if (status == OJ_OK)
        status = oj_one_to_one_choose_pairs(choice, maker->cancel, err);
    if (status == OJ_OK)
        status =
            api_convert_choice_to_matches(choice, matches->n_rows, out, err);
    oj_one_to_one_large_groups(choice, &pairs->n_large_groups, &n_large_pairs);
    oj_pair_ranks_free(&ranks);
    oj_one_to_one_close(choice);
    return status;
}

/* --- arrays of pairs ------------------------------------------------------ */

/* Returns the number of pairs to allocate. If the pairs of more rows will
 * follow, extrapolates from the rows so far: too high a number does no harm,
 * because memory that is never touched costs nothing. */
static int64_t estimate_pairs_of_all_rows(const struct ogrjoin_pairs *pairs,
                                          int64_t n_rows, int64_t n_pairs)
{
    double share, all;
    if (n_rows == 0 || n_rows >= pairs->n_expected)
        return n_pairs;
    share = (double)n_pairs / (double)n_rows;
    all = share * (double)pairs->n_expected * 1.02;
    return all < (double)(INT64_MAX / 16) ? (int64_t)all + 1 : n_pairs;
}

static oj_status reserve_pair_arrays(struct ogrjoin_pairs *pairs,
                                     int64_t n_rows, int64_t n_pairs,
                                     struct oj_error *err)
{
    int64_t n = pairs->n;
    if (pairs->has_measure || !pairs->is_lists)
        OJ_ROOM(pairs->measure, n, n_pairs, pairs->cap_measure, err);
    if (pairs->is_lists)
    {
        OJ_ROOM(pairs->offset, pairs->n_rows + 1, n_rows + 1, pairs->cap_offset,
                err);
        OJ_ROOM(pairs->right32, n, n_pairs, pairs->cap_right32, err);
        return OJ_OK;
    }
    OJ_ROOM(pairs->left, n, n_pairs, pairs->cap_left, err);
    OJ_ROOM(pairs->right, n, n_pairs, pairs->cap_right, err);
    return OJ_OK;
}

/* Allocates room for the pairs of matches behind the existing pairs. */
static oj_status make_room_for_matches(struct ogrjoin_pairs *pairs,
                                       const struct oj_matches *matches,
                                       struct oj_error *err)
{
    struct oj_error too_much = {OJ_OK, ""};
    int64_t n_rows = pairs->n_rows + matches->n_rows;
    int64_t n_pairs = pairs->n + matches->n_pairs;
    int64_t more = estimate_pairs_of_all_rows(pairs, n_rows, n_pairs);
    int64_t rows = n_rows > pairs->n_expected ? n_rows : pairs->n_expected;
    if (n_pairs == 0)
        n_pairs = 1; /* allocates the arrays even if there are no pairs */
    if (more > n_pairs &&
        reserve_pair_arrays(pairs, rows, more, &too_much) == OJ_OK)
        return OJ_OK;
    return reserve_pair_arrays(pairs, n_rows, n_pairs, err);
}

/* Returns -1 for similarities, which matches hold negated; otherwise 1. */
static double sign_of_measure(const struct api_pair_maker *maker)
{
    return oj_relation_ranks_by_similarity(&maker->relation) ? -1 : 1;
}

/* Returns 1 if the arrays of matches have the layout of the public lists, so
 * that they need not be copied. */
static int are_matches_dense_lists(const struct oj_matches *matches)
{
    return matches->offset != NULL && !matches->scattered &&
           matches->n_pairs > 0 && matches->offset[0] == 0 &&
           matches->offset[matches->n_rows] == matches->n_pairs;
}

static void move_lists_from_matches(struct oj_matches *matches,
                                    struct ogrjoin_pairs *pairs)
{
    oj_free(pairs->offset);
    oj_free(pairs->right32);
    pairs->offset = matches->offset;
    pairs->right32 = matches->join_row;
    matches->offset = NULL;
    matches->join_row = NULL;
    matches->cap_offset = matches->cap_join_row = 0;
    if (!pairs->has_measure)
        return;
    oj_free(pairs->measure);
    pairs->measure = matches->measure;
    matches->measure = NULL;
    matches->cap_measure = 0;
}

static void copy_matches_to_lists(const struct oj_matches *matches,
                                  struct ogrjoin_pairs *pairs)
{
    int64_t *offset = pairs->offset + pairs->n_rows;
    int64_t n = pairs->n;
    offset[0] = n;
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t p = oj_matches_first(matches, row); p < end; p++, n++)
        {
            pairs->right32[n] = matches->join_row[p];
            if (pairs->measure != NULL)
                pairs->measure[n] = matches->measure[p];
        }
        offset[row + 1] = n;
    }
}

static void copy_dense_matches_to_lists(const struct oj_matches *matches,
                                        int is_in_place,
                                        struct ogrjoin_pairs *pairs)
{
    int64_t *offset = pairs->offset + pairs->n_rows;
    int64_t n = matches->n_pairs;
    for (int64_t row = 0; row <= matches->n_rows; row++)
        offset[row] = pairs->n + matches->offset[row];
    if (is_in_place)
        return;
    memcpy(pairs->right32 + pairs->n, matches->join_row,
           (size_t)n * sizeof *matches->join_row);
    if (pairs->measure != NULL)
        memcpy(pairs->measure + pairs->n, matches->measure,
               (size_t)n * sizeof *matches->measure);
}

/* Returns 1 if the join has written its pairs directly into the arrays of
 * *pairs (api_pairs_lend_arrays_to_matches()). */
static int are_matches_in_place(const struct ogrjoin_pairs *pairs,
                                const struct oj_matches *matches)
{
    return matches->is_lent && matches->join_row == pairs->right32 + pairs->n;
}

void api_pairs_lend_arrays_to_matches(struct ogrjoin_pairs *pairs,
                                      struct oj_matches *matches)
{
    int64_t cap = pairs->cap_right32 < pairs->cap_measure ? pairs->cap_right32
                                                          : pairs->cap_measure;
    if (pairs->is_lists && pairs->n < cap)
        oj_matches_use_lent_arrays(matches, pairs->right32 + pairs->n,
                                   pairs->measure + pairs->n, cap - pairs->n);
    else if (matches->is_lent)
        oj_matches_use_lent_arrays(matches, NULL, NULL, 0);
}

/* Allocates the arrays of lists. is_in_place 1: the join has filled all of them
 * already, except the offsets. */
static oj_status make_room_for_lists(struct ogrjoin_pairs *pairs,
                                     int is_in_place,
                                     const struct oj_matches *matches,
                                     struct oj_error *err)
{
    if (!is_in_place)
        return make_room_for_matches(pairs, matches, err);
    return oj_reserve(&pairs->offset, pairs->n_rows + 1,
                      pairs->n_rows + matches->n_rows + 1, &pairs->cap_offset,
                      sizeof *pairs->offset, err);
}

/* Appends the pairs as lists. is_all: 1: matches are for all rows, so that
 * their arrays can be moved. */
static oj_status append_lists(const struct api_pair_maker *maker, int is_all,
                              struct oj_matches *matches,
                              struct ogrjoin_pairs *pairs, struct oj_error *err)
{
    int is_dense = are_matches_dense_lists(matches);
    int is_in_place = is_dense && are_matches_in_place(pairs, matches);
    int64_t n = matches->n_pairs;
    if (!is_in_place)
        OJ_TRY(oj_matches_copy_lent_arrays(matches, err));
    if (is_all && is_dense && !is_in_place)
        move_lists_from_matches(matches, pairs);
    else
    {
        OJ_TRY(make_room_for_lists(pairs, is_in_place, matches, err));
        if (is_dense)
            copy_dense_matches_to_lists(matches, is_in_place, pairs);
        else
            copy_matches_to_lists(matches, pairs);
    }
    if (pairs->measure != NULL && sign_of_measure(maker) < 0)
    {
        for (int64_t i = 0; i < n; i++)
            pairs->measure[pairs->n + i] *= -1.0;
    }
    return OJ_OK;
}

static oj_status append_columns(const struct api_pair_maker *maker,
                                const struct oj_matches *matches,
                                struct ogrjoin_pairs *pairs,
                                struct oj_error *err)
{
    double sign = sign_of_measure(maker);
    int64_t n = pairs->n;
    OJ_TRY(make_room_for_matches(pairs, matches, err));
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t p = oj_matches_first(matches, row); p < end; p++, n++)
        {
            pairs->left[n] = pairs->first + pairs->n_rows + row;
            pairs->right[n] = matches->join_row[p];
            pairs->measure[n] = sign * matches->measure[p];
        }
    }
    return OJ_OK;
}

/* Stores the computed values, in the order of the pairs. */
static oj_status fill_pair_values(const struct api_pair_maker *maker,
                                  const struct oj_matches *matches,
                                  const struct oj_pair_values *values,
                                  struct ogrjoin_pairs *pairs,
                                  struct oj_error *err)
{
    const double *from[OJ_N_PAIR_VALUES];
    double *to[OJ_N_PAIR_VALUES];
    int64_t n = 0;
    int n_values = 0;
    if (maker->settings.share)
        OJ_NEW(pairs->share, matches->n_pairs, err);
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
    {
        if (values->value[i] == NULL)
            continue;
        OJ_NEW(pairs->value[i], matches->n_pairs, err);
        from[n_values] = values->value[i];
        to[n_values++] = pairs->value[i];
    }
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t p = oj_matches_first(matches, row); p < end; p++, n++)
        {
            for (int i = 0; i < n_values; i++)
                to[i][n] = from[i][p];
            if (pairs->share != NULL)
                pairs->share[n] = oj_pair_covered_fraction(
                    &maker->join_side, matches->join_row[p], values, p);
        }
    }
    return OJ_OK;
}

/* Writes the intersections of all pairs as WKB, without gaps. */
static oj_status write_intersections_as_wkb(const struct oj_matches *matches,
                                            const struct oj_pair_values *values,
                                            struct ogrjoin_pairs *pairs,
                                            struct oj_error *err)
{
    struct oj_flat flat = oj_flat_buf_view(&values->shapes);
    int64_t n = 0;
    OJ_NEW_ZEROED(pairs->shape_offset, matches->n_pairs + 1, err);
    for (int writes = 0; writes < 2; writes++, n = 0)
    {
        if (writes)
            OJ_NEW(pairs->shape, pairs->shape_offset[matches->n_pairs], err);
        for (int64_t row = 0; row < matches->n_rows; row++)
        {
            int64_t end = oj_matches_end(matches, row);
            for (int64_t p = oj_matches_first(matches, row); p < end; p++, n++)
            {
                int64_t at = pairs->shape_offset[n];
                int64_t size = oj_wkb_size(&flat, p, 0);
                pairs->shape_offset[n + 1] = at + size;
                if (writes && size > 0)
                    oj_wkb_write(&flat, p, 0, pairs->shape + at);
            }
        }
    }
    return OJ_OK;
}

/* Computes the values of pairs. Threads share the stage that computes them, so
 * the lock is held. */
static oj_status compute_pair_values_locked(struct api_pair_maker *maker,
                                            const struct oj_flat *input,
                                            const struct oj_matches *matches,
                                            struct oj_pair_values *values,
                                            struct ogrjoin_pairs *pairs,
                                            struct oj_error *err)
{
    struct oj_pair_side side = {input, input, NULL, NULL};
    int64_t before;
    oj_status status;
    pthread_mutex_lock(&maker->lock);
    before = oj_pair_stage_count_undecided_pairs(maker->stage);
    status = oj_pair_stage_run(maker->stage, &side, matches, values, err);
    pairs->n_undecided +=
        oj_pair_stage_count_undecided_pairs(maker->stage) - before;
    pthread_mutex_unlock(&maker->lock);
    return status;
}

/* Adds pairs with their values. Values are computed first, because the arrays
 * of matches may be moved. */
static oj_status add_values_and_pairs(struct api_pair_maker *maker,
                                      const struct oj_flat *input, int is_all,
                                      struct oj_matches *matches,
                                      struct ogrjoin_pairs *pairs,
                                      struct oj_error *err)
{
    struct oj_pair_values values = {0};
    struct oj_matches *of = matches; /* the pairs to add: all, or those
                                        picked */
    oj_status status = OJ_OK;
    if (maker->stage != NULL)
    {
        status = compute_pair_values_locked(maker, input, matches, &values,
                                            pairs, err);
        if (values.is_picked)
            of = &values.picked;
        if (status == OJ_OK)
            status = fill_pair_values(maker, of, &values, pairs, err);
    }
    if (status == OJ_OK && maker->settings.intersection)
        status = write_intersections_as_wkb(of, &values, pairs, err);
    if (status == OJ_OK)
        status = pairs->is_lists ? append_lists(maker, is_all, of, pairs, err)
                                 : append_columns(maker, of, pairs, err);
    if (status == OJ_OK)
    {
        pairs->n += of->n_pairs;
        pairs->n_rows += of->n_rows;
    }
    oj_pair_values_free(&values);
    return status;
}

oj_status api_pairs_add(struct api_pair_maker *maker,
                        const struct oj_flat *input, int is_all,
                        struct oj_matches *matches, struct ogrjoin_pairs *pairs,
                        struct oj_error *err)
{
    struct oj_matches chosen = {0};
    oj_status status;
    pairs->n_undecided += matches->n_undecided;
    pairs->has_measure = oj_op_get(maker->relation.op)->measure != NULL;
    pairs->n_similar = maker->relation.n_similar;
    if (!maker->settings.one_to_one)
        return add_values_and_pairs(maker, input, is_all, matches, pairs, err);
    status = choose_one_to_one(maker, input, matches, pairs, &chosen, err);
    if (status == OJ_OK)
        status =
            add_values_and_pairs(maker, input, is_all, &chosen, pairs, err);
    oj_matches_free(&chosen);
    return status;
}

void ogrjoin_pairs_free(struct ogrjoin_pairs *pairs)
{
    if (pairs == NULL)
        return;
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        oj_free(pairs->value[i]);
    oj_free(pairs->left);
    oj_free(pairs->right);
    oj_free(pairs->offset);
    oj_free(pairs->right32);
    oj_free(pairs->measure);
    oj_free(pairs->share);
    oj_free(pairs->shape_offset);
    oj_free(pairs->shape);
    oj_free(pairs->change);
    ogrjoin_layer_free(pairs->join_side);
    oj_free(pairs);
}

int64_t ogrjoin_pairs_count(const struct ogrjoin_pairs *pairs)
{
    return pairs->n;
}

int64_t ogrjoin_pairs_undecided(const struct ogrjoin_pairs *pairs)
{
    return pairs->n_undecided;
}

int64_t ogrjoin_pairs_large_groups(const struct ogrjoin_pairs *pairs)
{
    return pairs->n_large_groups;
}

const int64_t *ogrjoin_pairs_left(const struct ogrjoin_pairs *pairs)
{
    return pairs->left;
}

const int64_t *ogrjoin_pairs_right(const struct ogrjoin_pairs *pairs)
{
    return pairs->right;
}

const int64_t *ogrjoin_pairs_offset(const struct ogrjoin_pairs *pairs)
{
    return pairs->offset;
}

const int32_t *ogrjoin_pairs_right32(const struct ogrjoin_pairs *pairs)
{
    return pairs->right32;
}

int64_t ogrjoin_pairs_rows(const struct ogrjoin_pairs *pairs)
{
    return pairs->n_rows;
}

const double *ogrjoin_pairs_measure(const struct ogrjoin_pairs *pairs)
{
    return pairs->measure;
}

static const char *const value_names[OJ_N_PAIR_VALUES] = {
    [OJ_PAIR_OVERLAP_AREA] = "overlap_area",
    [OJ_PAIR_OVERLAP_LENGTH] = "overlap_length",
    [OJ_PAIR_OVERLAP_PERCENT] = "overlap_percent",
    [OJ_PAIR_FROM_X] = "from_x",
    [OJ_PAIR_FROM_Y] = "from_y",
    [OJ_PAIR_NEAREST_X] = "nearest_x",
    [OJ_PAIR_NEAREST_Y] = "nearest_y",
    [OJ_PAIR_BEARING] = "bearing",
    [OJ_PAIR_DIFFERENCE] = "difference",
    [OJ_PAIR_ALONG] = "line_along",
    [OJ_PAIR_ALONG_PERCENT] = "line_along_percent",
    [OJ_PAIR_OFFSET] = "line_offset",
    [OJ_PAIR_SIDE] = "line_side",
    [OJ_PAIR_SEGMENT] = "line_segment",
    [OJ_PAIR_LINE_BEARING] = "line_bearing",
    [OJ_PAIR_MATRIX] = "matrix",
    [OJ_PAIR_RELATION] = "relation",
    [OJ_PAIR_SIMILARITY] = "similarity"};

const char *api_pairs_value_name(enum oj_pair_value which)
{
    return value_names[which];
}

/* Returns the number of the value of pairs with this name, or -1 if there is
 * none. */
static int find_value_by_name(const char *name)
{
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
    {
        if (value_names[i] != NULL && strcmp(value_names[i], name) == 0)
            return i;
    }
    return -1;
}

const char *ogrjoin_pairs_word(const char *name, double value)
{
    int which = find_value_by_name(name);
    return which >= 0 ? oj_pair_value_text((enum oj_pair_value)which, value)
                      : NULL;
}

const double *ogrjoin_pairs_value(const struct ogrjoin_pairs *pairs,
                                  const char *name)
{
    int which = find_value_by_name(name), condition = 0;
    if (which >= 0)
        return pairs->value[which];
    if (strcmp(name, "change") == 0)
        return pairs->change;
    /* similarity_2 belongs to the second condition on texts, and so on */
    if (sscanf(name, "similarity_%d", &condition) == 1 && condition >= 2 &&
        condition <= pairs->n_similar)
        return pairs->value[OJ_PAIR_SIMILARITY + condition - 1];
    return NULL;
}

const uint8_t *ogrjoin_pairs_intersection(const struct ogrjoin_pairs *pairs,
                                          const int64_t **offset)
{
    *offset = pairs->shape_offset;
    return pairs->shape;
}

/* --- aggregates ----------------------------------------------------------- */

static oj_status make_byte_views(const struct ogrjoin_values *values, int64_t n,
                                 struct oj_aggregate_bytes **out,
                                 struct oj_error *err)
{
    OJ_NEW(*out, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        (*out)[i].bytes = values->bytes + values->offset[i];
        (*out)[i].n = values->offset[i + 1] - values->offset[i];
    }
    return OJ_OK;
}

static oj_status
add_pairs_to_aggregates(const struct ogrjoin_pairs *pairs,
                        const struct oj_aggregate_column *column,
                        struct oj_aggregates *to, struct oj_error *err)
{
    struct oj_aggregate_pairs all = {.n = pairs->n, .columns = column};
    int64_t *row = NULL, *place = NULL;
    int32_t *at = NULL;
    oj_status status = OJ_ERR_NOMEM;
    row = oj_malloc(pairs->n, sizeof *row);
    at = pairs->is_lists ? pairs->right32 : oj_malloc(pairs->n, sizeof *at);
    place = oj_malloc(pairs->n_join, sizeof *place);
    if (row == NULL || at == NULL || place == NULL)
        (void)oj_fail_nomem(err, pairs->n + pairs->n_join, sizeof *row);
    else
    {
        for (int64_t i = 0; !pairs->is_lists && i < pairs->n; i++)
        {
            row[i] = pairs->left[i] - pairs->first;
            at[i] = (int32_t)pairs->right[i];
        }
        for (int64_t r = 0; pairs->is_lists && r < pairs->n_rows; r++)
        {
            for (int64_t i = pairs->offset[r]; i < pairs->offset[r + 1]; i++)
                row[i] = r;
        }
        for (int64_t i = 0; i < pairs->n_join; i++)
            place[i] = i;
        all.row = row;
        all.at = at;
        all.place = place;
        all.fid = pairs->join_id != NULL ? pairs->join_id : place;
        all.share = pairs->share;
        status = oj_aggregates_add(to, &all, err);
    }
    oj_free(row);
    if (!pairs->is_lists)
        oj_free(at);
    oj_free(place);
    return status;
}

static oj_status write_aggregate_result(const struct oj_aggregate_value *value,
                                        int64_t row, int64_t *cap_bytes,
                                        struct ogrjoin_results *out,
                                        struct oj_error *err)
{
    int64_t first = out->offset != NULL ? out->offset[row] : 0;
    out->is_null[row] = (uint8_t)(value->is_null != 0);
    if (out->integer != NULL)
        out->integer[row] = value->is_null ? 0 : value->integer;
    if (out->real != NULL)
        out->real[row] = value->is_null ? NAN : value->real;
    if (out->offset == NULL)
        return OJ_OK;
    out->offset[row + 1] = first + (value->is_null ? 0 : value->n_bytes);
    OJ_ROOM(out->bytes, first, out->offset[row + 1], *cap_bytes, err);
    if (!value->is_null && value->n_bytes > 0)
        memcpy(out->bytes + first, value->bytes, (size_t)value->n_bytes);
    return OJ_OK;
}

static oj_status fill_aggregate_results(struct oj_aggregates *from, int64_t n,
                                        enum oj_aggregate_type type,
                                        struct ogrjoin_results *out,
                                        struct oj_error *err)
{
    int64_t cap_bytes = 0;
    out->n = n;
    OJ_NEW(out->is_null, n, err);
    if (type == OJ_AGG_INTEGER)
        OJ_NEW(out->integer, n, err);
    else if (type == OJ_AGG_REAL)
        OJ_NEW(out->real, n, err);
    else
    {
        OJ_NEW(out->offset, n + 1, err);
        OJ_ROOM(out->bytes, 0, 1, cap_bytes, err);
        out->offset[0] = 0;
    }
    for (int64_t row = 0; row < n; row++)
    {
        struct oj_aggregate_value value;
        OJ_TRY(oj_aggregates_result(from, row, 0, &value, err));
        OJ_TRY(write_aggregate_result(&value, row, &cap_bytes, out, err));
    }
    return OJ_OK;
}

static oj_status
check_aggregate_values(const struct ogrjoin_pairs *pairs,
                       const struct oj_aggregate_function *function,
                       const struct ogrjoin_values *values,
                       enum oj_aggregate_type *type, struct oj_error *err)
{
    if (values->size < sizeof *values)
        return oj_fail(err, OJ_ERR_ARG,
                       "the member size of the values must be set to "
                       "sizeof(struct ogrjoin_values)");
    if ((function->kind == OJ_AGG_WEIGHTED_SUM ||
         function->kind == OJ_AGG_WEIGHTED_MEAN) &&
        pairs->share == NULL)
        return oj_fail(
            err, OJ_ERR_ARG,
            "%s needs the setting share: set it to 1 before the join",
            function->name);
    *type = values->real != NULL      ? OJ_AGG_REAL
            : values->integer != NULL ? OJ_AGG_INTEGER
                                      : OJ_AGG_BYTES;
    if (*type == OJ_AGG_BYTES && values->offset == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s needs a column of values: set real, integer or "
                       "offset of struct ogrjoin_values",
                       function->name);
    if (*type != OJ_AGG_BYTES && function->takes == OJ_AGG_TAKES_WRITTEN)
        return oj_fail(
            err, OJ_ERR_ARG,
            "%s takes a column of texts, not of numbers: convert it to text",
            function->name);
    if (*type == OJ_AGG_BYTES && function->takes == OJ_AGG_TAKES_NUMBERS)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s takes a column of numbers, not of texts: set real "
                       "or integer of struct ogrjoin_values",
                       function->name);
    return OJ_OK;
}

/* Sets *percent to the percentage of a percentile function. For q1 and q3 it is
 * fixed; percentile() takes it from the argument `text`. */
static oj_status read_percent(const struct oj_aggregate_function *function,
                              const char *text, double *percent,
                              struct oj_error *err)
{
    *percent = function->percent;
    if (function->kind != OJ_AGG_PERCENTILE || !isnan(*percent))
        return OJ_OK;
    if (text != NULL && strpbrk(text, "xX") == NULL) /* not 0x10 */
        *percent = oj_text_number(text, (int64_t)strlen(text));
    if (*percent >= 0.0 && *percent <= 100.0)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "percentile needs a number from 0 to 100 in the argument "
                   "separator, as \"90\", not %s%.40s%s",
                   text != NULL ? "\"" : "", text != NULL ? text : "NULL",
                   text != NULL ? "\"" : "");
}

static oj_status aggregate_pairs(const struct ogrjoin_pairs *pairs,
                                 const char *name, const char *separator,
                                 const struct ogrjoin_values *values,
                                 struct ogrjoin_results *out,
                                 struct oj_error *err)
{
    const struct oj_aggregate_function *function;
    /* values, and weights for weighted_mean */
    enum oj_aggregate_type types[] = {OJ_AGG_INTEGER, OJ_AGG_REAL};
    static const uint8_t is_of_pairs[] = {0, 1};
    struct oj_aggregate what = {
        .kind = OJ_AGG_COUNT, .separator = separator, .weight = 1};
    struct oj_aggregate_plan plan = {.aggregates = &what,
                                     .n_aggregates = 1,
                                     .types = types,
                                     .is_of_pairs = is_of_pairs};
    struct oj_aggregate_column columns[2] = {{NULL, NULL, NULL, NULL},
                                             {NULL, NULL, NULL, NULL}};
    struct oj_aggregate_bytes *bytes = NULL;
    struct oj_aggregates *all = NULL;
    oj_status status = OJ_OK;
    if (pairs->are_ids)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "pairs with a kept index have ids instead of rows of a "
                       "join side, so %s cannot be computed: aggregate the "
                       "values by these ids yourself",
                       name);
    OJ_TRY(oj_aggregate_find("", name, &function, err));
    what.kind = function->kind;
    if (what.kind == OJ_AGG_COVERED)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "%s is only possible for rows: use the setting agg with "
                       "ogrjoin_rows_join()",
                       function->name);
    OJ_TRY(read_percent(function, separator, &what.percent, err));
    if (values != NULL)
    {
        OJ_TRY(check_aggregate_values(pairs, function, values, &types[0], err));
        plan.n_columns = 1 + (what.kind == OJ_AGG_WEIGHTED_MEAN);
        columns[0].real = values->real;
        columns[0].integer = values->integer;
        columns[0].is_null = values->is_null;
        columns[1].real = pairs->value[OJ_PAIR_OVERLAP_SIZE];
        if (what.kind == OJ_AGG_COUNT)
            what.kind = OJ_AGG_COUNT_VALUES;
        if (types[0] == OJ_AGG_BYTES)
            status = make_byte_views(values, pairs->n_join, &bytes, err);
        columns[0].bytes = bytes;
    }
    else if (what.kind != OJ_AGG_COUNT)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s needs a column of values: give struct "
                       "ogrjoin_values in place of NULL",
                       function->name);
    if (status == OJ_OK)
        status = oj_aggregates_open(&plan, &all, err);
    if (status == OJ_OK)
        status = oj_aggregates_reset(all, pairs->n_rows, err);
    if (status == OJ_OK)
        status = add_pairs_to_aggregates(pairs, columns, all, err);
    if (status == OJ_OK)
        status = oj_aggregates_rewind(all, err);
    if (status == OJ_OK)
        status = fill_aggregate_results(all, pairs->n_rows,
                                        oj_aggregate_type(what.kind, types[0]),
                                        out, err);
    oj_aggregates_close(all);
    oj_free(bytes);
    return status;
}

int ogrjoin_pairs_aggregate(const struct ogrjoin_pairs *pairs,
                            const char *function, const char *separator,
                            const struct ogrjoin_values *values,
                            struct ogrjoin_results *out,
                            struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    struct ogrjoin_results results = {.size = sizeof results};
    oj_status status =
        aggregate_pairs(pairs, function, separator, values, &results, &why);
    if (status == OJ_OK)
        *out = results;
    else
        ogrjoin_results_free(&results);
    return api_error_export(status, &why, err);
}

void ogrjoin_results_free(struct ogrjoin_results *results)
{
    if (results == NULL)
        return;
    oj_free(results->integer);
    oj_free(results->real);
    oj_free(results->offset);
    oj_free(results->bytes);
    oj_free(results->is_null);
    memset(results, 0, sizeof *results);
}
