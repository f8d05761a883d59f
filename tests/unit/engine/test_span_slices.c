/* The index of time slices. Its pairs equal those that other engines find
 * without conditions on spans, filtered by the definitions of Allen's
 * relations; for nearest, the first k of these. Tests many equal begins, open
 * and long spans, spans that contain each other, rows and features without a
 * span, sets of relations, and small batches after a large one.
 * Kind: property, degenerate. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../join_trial.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#define N_ROUNDS 24

/* Maximum distance up to which all pairs are found, in units of the
 * coordinates. */
#define REACH 9.0

static int64_t n_pairs_seen, n_of_slices;

static void add_feature(struct oj_flat_buf *buf, unsigned kind, int64_t fid)
{
    double x = pick(40), y = pick(40);
    double w = 1 + pick(3), h = 1 + pick(3), *xs, *ys;
    if (one_in(50))
        must(oj_flat_buf_add_null(buf, fid, &error));
    else if (kind == OJ_PART_POINT)
        must(oj_flat_buf_add_point(buf, fid, x, y, &error));
    else if (kind == OJ_PART_POLYGON)
        must(oj_flat_buf_add_box(buf, fid, x, y, x + w, y + h, &error));
    else
    {
        must(oj_flat_buf_begin_feature(buf, fid, &error));
        must(oj_flat_buf_begin_part(buf, OJ_PART_LINE, &error));
        must(oj_flat_buf_begin_ring(buf, &error));
        must(oj_flat_buf_add_vertices(buf, 2, &xs, &ys, &error));
        xs[0] = x;
        ys[0] = y;
        xs[1] = x + w;
        ys[1] = y + h;
        must(oj_flat_buf_end_feature(buf, &error));
    }
}

static void add_side(struct oj_flat_buf *buf, unsigned kind, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        add_feature(buf, kind, one_in(2) ? i : 5 * n - i);
}

/* Makes random spans. how 0: instants. 1: windows around a few instants. 2:
 * mostly short spans. */
static void pick_times(int64_t n, int how, struct oj_spans *out, int64_t **from,
                       int64_t **until)
{
    int64_t most = one_in(3) ? 30 : 4000;
    *from = oj_malloc(n + 1, sizeof **from);
    *until = oj_malloc(n + 1, sizeof **until);
    ck_assert(*from != NULL && *until != NULL);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = pick((int)most), *f = &(*from)[i], *u = &(*until)[i];
        *f = how == 1 ? at - 5 : at;
        *u = how == 0 ? at : how == 1 ? at + 5 : at + pick(8);
        if (how == 2 && one_in(60))
            *u = one_in(2) ? INT64_MAX : *f + most / 2;
        if (how == 2 && one_in(60))
            *f = INT64_MIN;
        if (one_in(25))
        {
            *f = INT64_MAX;
            *u = how == 0 ? INT64_MAX : INT64_MIN;
        }
    }
    *out = (struct oj_spans){*from, how == 0 ? *from : *until};
}

/* Compares row a of `got` with row a of `all`, the answer without conditions on
 * spans, from which pairs that break the condition are left out. */
static void check_row(const struct join_trial *t, const struct oj_matches *all,
                      const struct oj_matches *got, int64_t a)
{
    const struct oj_relation *r = &t->relation;
    int64_t n = 0, at = oj_matches_first(got, a), end = oj_matches_end(got, a);
    double last = NAN;
    for (int64_t i = oj_matches_first(all, a); i < oj_matches_end(all, a); i++)
    {
        int32_t b = all->join_row[i];
        if (!plain_spans_hold(&r->spans[0], &t->input.spans[0], a,
                              &t->join.spans[0], b))
            continue;
        if (r->op == OJ_OP_NEAREST && n >= r->k &&
            !(r->ties == OJ_TIES_ALL && all->measure[i] == last))
            break;
        expect(at < end && got->join_row[at] == b &&
                   bits_of(got->measure[at]) == bits_of(all->measure[i]),
               "seed %llu, %s: row %d, pair %d is not %d",
               (unsigned long long)seed, oj_op_get(r->op)->name, (int)a, (int)n,
               (int)b);
        last = all->measure[i];
        at++;
        n++;
    }
    expect(at == end, "seed %llu, %s: row %d has %d pairs more",
           (unsigned long long)seed, oj_op_get(r->op)->name, (int)a,
           (int)(end - at));
    n_pairs_seen += n;
}

static void check_batch(struct oj_join *join, const struct join_trial *t)
{
    struct join_trial plain = *t;
    MATCHES all = {0}, got = {0};
    plain.relation.n_spans = 0;
    plain.relation.k = OJ_EVERY_PAIR;
    plain.relation.ties = OJ_TIES_FIRST;
    trial_answer(&plain, "cpu", 2, &all);
    must(oj_join_batch(join, &t->input, &got, &error));
    for (int64_t a = 0; a < t->input.n_features; a++)
        check_row(t, &all, &got, a);
    n_of_slices +=
        strcmp(oj_join_method(join, &t->input), "slices of time") == 0;
}

static void try_join(unsigned input_kind, unsigned join_kind, enum oj_op op)
{
    struct join_trial t = {0};
    const struct oj_options options = {.n_threads = 1 + pick(3)};
    struct oj_flat_slice part = {.texts = NULL};
    struct oj_join *join;
    int64_t *from[2], *until[2];
    int64_t n = 1100 + pick(2500);
    int of_join = pick(3), of_input = of_join == 0 ? 1 : pick(3);
    add_side(&t.join_buf, join_kind, n);
    add_side(&t.input_buf, input_kind, 300 + pick(2000));
    t.join = oj_flat_buf_view(&t.join_buf);
    t.input = oj_flat_buf_view(&t.input_buf);
    pick_times(t.join.n_features, of_join, &t.join.spans[0], &from[0],
               &until[0]);
    pick_times(t.input.n_features, of_input, &t.input.spans[0], &from[1],
               &until[1]);
    t.join.n_spans = t.input.n_spans = 1;
    t.relation = oj_relation_default();
    t.relation.op = op;
    t.relation.max_distance = REACH * (1 + pick(2)) / 2;
    t.relation.k = 1 + pick(3);
    t.relation.ties = one_in(3) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    t.relation.n_spans = 1;
    t.relation.spans[0].relations = OJ_SPANS_INTERSECT;
    if (one_in(4))
        t.relation.spans[0].relations = 1u << (OJ_SPAN_MEETS + pick(11));
    must(oj_join_open(&t.join, &t.relation, "cpu", &options, &join, &error));
    check_batch(join, &t);
    must(oj_flat_slice_make(&t.input, 7, 90, &part, &error));
    t.input = part.flat;
    check_batch(join, &t);
    oj_join_close(join);
    oj_flat_slice_free(&part);
    for (int i = 0; i < 2; i++)
    {
        oj_free(from[i]);
        oj_free(until[i]);
    }
    t.input = oj_flat_buf_view(&t.input_buf);
    trial_free(&t);
}

static const struct
{
    unsigned input, join;
    enum oj_op op;
} joins[] = {
    {OJ_PART_POINT, OJ_PART_POINT, OJ_OP_NEAREST},
    {OJ_PART_POINT, OJ_PART_LINE, OJ_OP_NEAREST},
    {OJ_PART_POINT, OJ_PART_POLYGON, OJ_OP_NEAREST},
    {OJ_PART_LINE, OJ_PART_POLYGON, OJ_OP_NEAREST},
    {OJ_PART_POINT, OJ_PART_POLYGON, OJ_OP_INTERSECTS},
    {OJ_PART_POLYGON, OJ_PART_POLYGON, OJ_OP_OVERLAPS},
    {OJ_PART_LINE, OJ_PART_POINT, OJ_OP_DWITHIN},
    {OJ_PART_POINT, OJ_PART_LINE, OJ_OP_DWITHIN},
    {OJ_PART_POINT, OJ_PART_POINT, OJ_OP_DWITHIN},
    {OJ_PART_POLYGON, OJ_PART_LINE, OJ_OP_BBOX},
};

#define N_JOINS ((int)(sizeof joins / sizeof *joins))

TEST_LOOP(as_filtered, 0, N_JOINS)
{
    n_pairs_seen = n_of_slices = 0;
    EACH_ROUND(N_ROUNDS)
    {
        random_state = 77 * (uint64_t)(_i + 1) + seed;
        try_join(joins[_i].input, joins[_i].join, joins[_i].op);
    }
    printf("%s: %lld pairs, %lld batches by slices\n",
           oj_op_get(joins[_i].op)->name, (long long)n_pairs_seen,
           (long long)n_of_slices);
    ck_assert_int_gt(n_pairs_seen, 20);
    ck_assert(joins[_i].op == OJ_OP_DWITHIN || n_of_slices > 0);
}

/* Features whose spans contain each other: relations exclude nearly all pairs.
 */
struct nested_side
{
    int64_t n;
    int n_places; /* with distances of 2; boxes reach 2 places further */
    int has_points;
    /* One feature of so many has such a span; 0: none has. */
    int open_end, open_begin, missing, instant;
    int64_t *from, *until; /* set by add_nested() */
};

static int is_one_of(int share)
{
    return share > 0 && one_in(share);
}

static void add_nested(struct oj_flat_buf *buf, struct nested_side *side)
{
    side->from = oj_malloc(side->n, sizeof *side->from);
    side->until = oj_malloc(side->n, sizeof *side->until);
    ck_assert(side->from != NULL && side->until != NULL);
    for (int64_t i = 0; i < side->n; i++)
    {
        double x = 2 * pick(side->n_places);
        int64_t at = pick(100000);
        if (side->has_points)
            must(oj_flat_buf_add_point(buf, i, x, 0, &error));
        else
            must(oj_flat_buf_add_box(buf, i, x, 0, x + 4, 4, &error));
        side->from[i] = at;
        side->until[i] = 300000 - at;
        if (one_in(100))
            side->until[i] += pick(3) - 1;
        if (is_one_of(side->open_end))
            side->until[i] = INT64_MAX;
        if (is_one_of(side->open_begin))
            side->from[i] = INT64_MIN;
        if (is_one_of(side->instant))
            side->until[i] = side->from[i] = one_in(2) ? at : 300000 - at;
        if (is_one_of(side->missing))
        {
            side->from[i] = INT64_MAX;
            side->until[i] = INT64_MIN;
        }
    }
}

/* A join of nested spans, with the relation still to be set. Half of the rows
 * have a span of the join side, so that all relations have pairs. */
struct nested_trial
{
    struct join_trial t;
    struct nested_side join, input;
};

static void make_nested_trial(struct nested_trial *trial)
{
    struct join_trial *t = &trial->t;
    struct nested_side *join = &trial->join, *input = &trial->input;
    add_nested(&t->join_buf, join);
    add_nested(&t->input_buf, input);
    for (int64_t i = 0; i < input->n; i += 2)
    {
        int64_t f = pick((int)join->n);
        input->from[i] = join->from[f];
        input->until[i] = join->until[f];
    }
    trial_view(t);
    t->join.spans[0] = (struct oj_spans){join->from, join->until};
    t->input.spans[0] = (struct oj_spans){input->from, input->until};
    t->join.n_spans = t->input.n_spans = 1;
    t->relation = oj_relation_default();
    t->relation.op = OJ_OP_INTERSECTS;
    t->relation.n_spans = 1;
}

static void free_nested_trial(struct nested_trial *trial)
{
    trial_free(&trial->t);
    oj_free(trial->join.from);
    oj_free(trial->join.until);
    oj_free(trial->input.from);
    oj_free(trial->input.until);
}

static int64_t index_bytes_of_first_rows(const struct join_trial *t,
                                         int64_t n_rows)
{
    const struct oj_options options = {.n_threads = 2};
    struct oj_flat_slice rows = {.texts = NULL};
    struct oj_join *join;
    MATCHES out = {0};
    int64_t bytes;
    must(oj_flat_slice_make(&t->input, 0, n_rows, &rows, &error));
    must(oj_join_open(&t->join, &t->relation, "cpu", &options, &join, &error));
    must(oj_join_batch(join, &rows.flat, &out, &error));
    bytes = oj_join_stats(join)->index_bytes;
    oj_join_close(join);
    oj_flat_slice_free(&rows);
    return bytes;
}

/* Joins and checks the pairs. Returns 1 if slices were used: the indexes then
 * differ in size from the index of the undivided join side, with which a batch
 * of a few rows is joined. */
static int check_nested_trial(const struct join_trial *t)
{
    const struct oj_options options = {.n_threads = 2};
    struct oj_join *join;
    int64_t bytes;
    must(oj_join_open(&t->join, &t->relation, "cpu", &options, &join, &error));
    check_batch(join, t);
    bytes = oj_join_stats(join)->index_bytes;
    oj_join_close(join);
    return bytes != index_bytes_of_first_rows(t, 100);
}

/* Spans without an end, one of a hundred, do not keep the others from being
 * divided by relation. */
TEST_LOOP(nested_spans, OJ_SPAN_MEETS, OJ_SPAN_AFTER)
{
    struct nested_trial trial = {
        .join = {.n = 17000, .n_places = 80, .open_end = 100},
        .input = {.n = 4200, .n_places = 80}};
    int uses_slices;
    random_state = 900 + (uint64_t)_i;
    make_nested_trial(&trial);
    trial.t.relation.spans[0].relations = 1u << _i;
    uses_slices = check_nested_trial(&trial.t);
    expect(uses_slices || _i == OJ_SPAN_DURING || _i == OJ_SPAN_CONTAINS,
           "relation %d is joined without slices", _i);
    free_nested_trial(&trial);
}

static void pick_shares(struct nested_side *side)
{
    int *const shares[] = {&side->open_end, &side->open_begin, &side->missing,
                           &side->instant};
    for (int i = 0; i < 4; i++)
        *shares[i] = one_in(3) ? 0 : 30 + pick(300);
}

static const enum oj_op ops_of_nested[] = {OJ_OP_INTERSECTS, OJ_OP_NEAREST,
                                           OJ_OP_ATTRIBUTES};

/* One relation or two, spans of every kind, and other joins. */
TEST_LOOP(random_nested_spans, 0, 3)
{
    int n_by_slices = 0;
    EACH_ROUND(4)
    {
        const int has_points = ops_of_nested[_i] == OJ_OP_NEAREST;
        const int n_places = has_points ? 40 : 80;
        struct nested_trial trial = {
            .join = {.n = 17000, .n_places = n_places},
            .input = {.n = 4200, .n_places = n_places}};
        struct oj_relation *relation = &trial.t.relation;
        random_state = 41 * (uint64_t)(_i + 1) + seed;
        trial.join.has_points = trial.input.has_points = has_points;
        pick_shares(&trial.join);
        pick_shares(&trial.input);
        make_nested_trial(&trial);
        relation->op = ops_of_nested[_i];
        relation->k = 1 + pick(3);
        relation->ties = one_in(2) ? OJ_TIES_ALL : OJ_TIES_FIRST;
        relation->max_distance = 2;
        relation->spans[0].relations = 1u << (OJ_SPAN_MEETS + pick(11));
        if (one_in(2))
            relation->spans[0].relations |= 1u << (OJ_SPAN_MEETS + pick(11));
        if (relation->op == OJ_OP_ATTRIBUTES)
        {
            int32_t **class_of = trial.t.columns.on_class;
            class_of[0] = pick_column(trial.join.n, 20);
            class_of[1] = pick_column(trial.input.n, 20);
            trial.t.join.on_class = class_of[0];
            trial.t.input.on_class = class_of[1];
        }
        n_by_slices += check_nested_trial(&trial.t);
        free_nested_trial(&trial);
    }
    ck_assert_int_gt(n_by_slices, 0);
}

static void extend_range(int64_t range[2], int64_t number)
{
    if (number < range[0])
        range[0] = number;
    if (number > range[1])
        range[1] = number;
}

/* Ranges of spans exclude a condition only if none of the spans fulfils it. */
TEST(relations_of_ranges)
{
    int n_excluded = 0;
    random_state = 12;
    for (int i = 0; i < 200000; i++)
    {
        const struct oj_span_condition condition = {
            one_in(20) ? OJ_SPANS_INTERSECT : 1u << (OJ_SPAN_MEETS + pick(11))};
        struct oj_span_ranges ranges = {{9, 0}, {9, 0}};
        int64_t row[2] = {pick(6), 0}, span[3][2];
        int may_hold;
        row[1] = row[0] + pick(4);
        for (int k = 0; k < 3; k++)
        {
            span[k][0] = pick(6);
            span[k][1] = span[k][0] + pick(4);
            extend_range(ranges.from, span[k][0]);
            extend_range(ranges.until, span[k][1]);
        }
        may_hold =
            oj_span_condition_may_hold(&condition, row[0], row[1], &ranges);
        n_excluded += !may_hold;
        for (int k = 0; k < 3; k++)
        {
            const struct oj_spans a = {&row[0], &row[1]};
            const struct oj_spans b = {&span[k][0], &span[k][1]};
            ck_assert(may_hold || !plain_spans_hold(&condition, &a, 0, &b, 0));
        }
    }
    ck_assert_int_gt(n_excluded, 50000);
}

/* A batch with too many pairs, and a cancelled join. */
TEST(bounds)
{
    struct join_trial t = {0};
    int cancel = 0;
    struct oj_options options = {
        .n_threads = 2, .max_batch_pairs = 50, .cancel = &cancel};
    int64_t *from[2], *until[2];
    MATCHES out = {0};
    random_state = 4;
    add_side(&t.join_buf, OJ_PART_POLYGON, 3000);
    add_side(&t.input_buf, OJ_PART_POINT, 2000);
    t.join = oj_flat_buf_view(&t.join_buf);
    t.input = oj_flat_buf_view(&t.input_buf);
    pick_times(3000, 0, &t.join.spans[0], &from[0], &until[0]);
    pick_times(2000, 1, &t.input.spans[0], &from[1], &until[1]);
    t.join.n_spans = t.input.n_spans = t.relation.n_spans = 1;
    t.relation = oj_relation_default();
    t.relation.op = OJ_OP_INTERSECTS;
    t.relation.n_spans = 1;
    t.relation.spans[0].relations = OJ_SPANS_INTERSECT;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", &options, NULL, &out),
                     OJ_ERR_TOO_MANY_PAIRS);
    options.max_batch_pairs = 0;
    cancel = 1;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", &options, NULL, &out),
                     OJ_ERR_CANCELLED);
    t.input.n_spans = 0;
    cancel = 0;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", &options, NULL, &out),
                     OJ_ERR_ARG);
    for (int i = 0; i < 2; i++)
    {
        oj_free(from[i]);
        oj_free(until[i]);
    }
    trial_free(&t);
}

int main(void)
{
    tests_open("slices of time");
    return tests_run();
}
