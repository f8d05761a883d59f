/* Joins for which one pair of a row is enough: any pair, or the first in tie
 * order. Each listed pair is a pair of the join, and each row that has pairs
 * has one listed. Many features at one place take time in proportion to their
 * number, not to the number of pairs.
 * Kind: property, large. */
#include "../references.h"

#include "../join_trial.h"
#include "../run_tests.h"

#define N_ROUNDS 120

static struct
{
    int64_t n_rows, n_left_out;
} counts;

/* Adds n copies of features of `from`, which has at least one. */
static void add_copies(struct oj_flat_buf *buf, const struct oj_flat *from,
                       int n)
{
    for (int i = 0; i < n; i++)
        must(oj_flat_buf_copy(buf, from, pick((int)from->n_features), i,
                              &error));
}

static struct oj_relation pick_relation(const struct scene *s)
{
    static const char *const masks[] = {"T********", "FF*FF****", "T*F**F***"};
    struct oj_relation r = oj_relation_default();
    do
        r.op = (enum oj_op)pick(OJ_OP_SIMILAR);
    while (r.op == OJ_OP_NEAREST);
    snprintf(r.mask, sizeof r.mask, "%s", masks[pick(3)]);
    r.max_distance = s->scale * pick(1 + s->extent / 2);
    if (one_in(4))
        r.min_distance = s->scale * pick(3);
    return r;
}

/* Makes layers in which many features are equal. */
static void make_trial(struct join_trial *t)
{
    LAYER some = {0}, others = {0};
    struct oj_flat from;
    const struct scene s = pick_scene();
    memset(t, 0, sizeof *t);
    t->relation = pick_relation(&s);
    add_join_features(&some, &s, 1 + pick(one_in(2) ? 3 : 40),
                      one_in(2) ? OJ_PART_POLYGON : 1u + (unsigned)pick(7),
                      one_in(6));
    from = oj_flat_buf_view(&some);
    add_copies(&t->join_buf, &from, 1 + pick(150));
    t->join = oj_flat_buf_view(&t->join_buf);
    if (one_in(2))
        add_input_points(&others, &s, &t->join, 1 + pick(40), pick(2));
    else
        add_join_features(&others, &s, 1 + pick(40), 1u + (unsigned)pick(7), 0);
    from = oj_flat_buf_view(&others);
    add_copies(&t->input_buf, &from, 1 + pick(20));
    trial_view(t);
    if (one_in(4)) /* points with points */
    {
        oj_flat_buf_clear(&t->join_buf);
        oj_flat_buf_clear(&t->input_buf);
        for (int i = 0; i < 300; i++)
            add_point(one_in(3) ? &t->input_buf : &t->join_buf,
                      s.scale * pick(4), s.scale * pick(2));
        trial_view(t);
    }
    t->join.fid = t->fid = pick_fids(t->join.n_features);
    pick_columns(&t->columns, &t->join, &t->input, &t->relation,
                 s.scale * (1 + s.extent / 20), 5);
    if (t->columns.max_distance != NULL) /* as every caller sets it */
        t->relation.max_distance = INFINITY;
    if (one_in(6))
        pick_spans(&t->columns, &t->join, &t->input, &t->relation);
}

static int is_in_row(const struct oj_matches *m, int64_t row, int32_t feature)
{
    for (int64_t i = oj_matches_first(m, row); i < oj_matches_end(m, row); i++)
    {
        if (m->join_row[i] == feature)
            return 1;
    }
    return 0;
}

/* Compares the answer of a join of which one pair is enough with all pairs. */
static void check_enough(const struct join_trial *t,
                         const struct oj_matches *all,
                         const struct oj_matches *some)
{
    const int enough = t->relation.enough_pairs;
    expect(all->n_rows == some->n_rows && all->n_matched == some->n_matched,
           "%s, %d: %lld rows of %lld with a pair, expected %lld",
           oj_op_get(t->relation.op)->name, enough, (long long)some->n_matched,
           (long long)some->n_rows, (long long)all->n_matched);
    for (int64_t row = 0; row < all->n_rows; row++)
    {
        const int64_t first = oj_matches_first(all, row);
        const int64_t n = oj_matches_end(all, row) - first;
        const int64_t at = oj_matches_first(some, row);
        const int64_t n_some = oj_matches_end(some, row) - at;
        counts.n_rows++;
        counts.n_left_out += n - n_some;
        expect((n > 0) == (n_some > 0), "row %lld: %lld pairs, expected %lld",
               (long long)row, (long long)n_some, (long long)n);
        for (int64_t i = 0; i < n_some; i++)
            expect(is_in_row(all, row, some->join_row[at + i]),
                   "row %lld: %d is no pair", (long long)row,
                   some->join_row[at + i]);
        expect(n == 0 || enough == OJ_ENOUGH_ANY ||
                   some->join_row[at] == all->join_row[first],
               "row %lld: %d is not the first pair", (long long)row,
               n == 0 ? -1 : some->join_row[at]);
    }
}

TEST(pairs_of_all)
{
    memset(&counts, 0, sizeof counts);
    EACH_ROUND(N_ROUNDS)
    {
        struct join_trial t;
        MATCHES all = {0};
        random_state = 7000 + seed;
        make_trial(&t);
        trial_answer(&t, "cpu", 1, &all);
        for (int enough = OJ_ENOUGH_FIRST; enough <= OJ_ENOUGH_ANY; enough++)
        {
            MATCHES some = {0};
            t.relation.enough_pairs = enough;
            trial_answer(&t, "cpu", 1 + pick(3), &some);
            check_enough(&t, &all, &some);
        }
        trial_free(&t);
    }
    printf("%lld rows, %lld pairs left out\n", (long long)counts.n_rows,
           (long long)counts.n_left_out);
    ck_assert_int_gt(counts.n_left_out, counts.n_rows);
}

/* --- many features at one place ------------------------------------------- */

enum place_kind
{
    POINTS,
    SQUARES,
    FRAMES, /* squares with a hole */
    N_PLACE_KINDS
};

static void add_at_place(struct oj_flat_buf *buf, enum place_kind kind, int n)
{
    static const double shell[] = {0, 0, 9, 0, 9, 9, 0, 9, 0, 0};
    static const double hole[] = {5, 5, 6, 5, 6, 6, 5, 6, 5, 5};
    for (int i = 0; i < n; i++)
    {
        if (kind == POINTS)
        {
            add_point(buf, 3, 4);
            continue;
        }
        must(oj_flat_buf_begin_feature(buf, i, &error));
        add_part(buf, OJ_PART_POLYGON);
        add_ring(buf, 5, shell);
        if (kind == FRAMES)
            add_ring(buf, 5, hole);
        end(buf);
    }
}

/* All features of a layer are equal: 10^10 pairs, of which each row lists one.
 * A list of all pairs would take minutes, and too much memory. */
TEST(many_at_one_place)
{
    enum
    {
        MANY = 100000
    };
    for (int i = 0; i < N_PLACE_KINDS * N_PLACE_KINDS; i++)
    {
        struct join_trial t = {.relation = oj_relation_default()};
        int64_t *fid = oj_malloc(MANY, sizeof *fid);
        ck_assert_ptr_nonnull(fid);
        add_at_place(&t.join_buf, (enum place_kind)(i / N_PLACE_KINDS), MANY);
        add_at_place(&t.input_buf, (enum place_kind)(i % N_PLACE_KINDS), MANY);
        trial_view(&t);
        for (int64_t f = 0; f < MANY; f++)
            fid[f] = (f + 1234) % MANY;
        t.join.fid = fid;
        for (int k = 0; k < 6; k++)
        {
            static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_BBOX,
                                             OJ_OP_DWITHIN};
            MATCHES out = {0};
            t.relation.op = ops[k / 2];
            t.relation.max_distance = 1.0;
            t.relation.enough_pairs =
                k % 2 == 0 ? OJ_ENOUGH_ANY : OJ_ENOUGH_FIRST;
            if (t.relation.op == OJ_OP_DWITHIN && k % 2 == 1 &&
                i > 0) /* only points are joined by their first pair */
                continue;
            trial_answer(&t, "cpu", 2, &out);
            ck_assert_int_eq(out.n_matched, MANY);
            ck_assert_int_eq(out.n_pairs, MANY);
            ck_assert(k % 2 == 0 || out.join_row[77] == MANY - 1234);
        }
        oj_free(fid);
        trial_free(&t);
    }
}

int main(void)
{
    tests_open("enough pairs");
    return tests_run();
}
