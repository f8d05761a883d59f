/* Nearest joins of layers whose features lie in few places, with all
 * conditions, equal a plain computation. If 30,000 features lie in one place or
 * in ten, few candidates are tested.
 * Kind: property, large. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../join_trial.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

/* --- few places, all conditions ------------------------------------------- */

#define MOST_PLACES 6

enum shape_of_place
{
    POINT,
    POINTS, /* two points; the second is elsewhere */
    LINE,
    SQUARE,
    OTHER_SQUARE /* another square with this centre */
};

static void add_shape(struct oj_flat_buf *buf, enum shape_of_place shape,
                      double x, double y)
{
    double xy[] = {x, y, x + 3.0, y + 1.0};
    switch (shape)
    {
        case POINT:
            add_point(buf, x, y);
            break;
        case POINTS:
            begin(buf);
            for (int i = 0; i < 2; i++)
            {
                add_part(buf, OJ_PART_POINT);
                add_ring(buf, 1, xy + 2 * i);
            }
            end(buf);
            break;
        case LINE:
            add_line(buf, x, y, x + 2.0, y);
            break;
        case SQUARE:
            add_square(buf, x - 1.0, y - 1.0, x + 1.0, y + 1.0);
            break;
        case OTHER_SQUARE:
            add_square(buf, x - 2.0, y - 2.0, x + 2.0, y + 2.0);
            break;
    }
}

/* Adds n features in few places. A few features are far away, or have no
 * geometry. */
static void add_places(struct oj_flat_buf *buf, const double *place,
                       int n_places, int n, int most_shapes)
{
    for (int i = 0; i < n; i++)
    {
        const double *at = place + 2 * pick(n_places);
        if (one_in(60))
            add_point(buf, 1e6 * pick(3), -1e6);
        else if (one_in(60))
            must(oj_flat_buf_add_null(buf, buf->n_features, &error));
        else
            add_shape(buf, (enum shape_of_place)pick(most_shapes), at[0],
                      at[1]);
    }
}

static int32_t *pick_classes(int64_t n)
{
    int32_t *column = oj_malloc(n + 1, sizeof *column);
    int n_classes = pick(2) ? 2 : 1 + pick(40), has_none = one_in(3);
    ck_assert_ptr_nonnull(column);
    for (int64_t i = 0; i < n; i++)
        column[i] = has_none && one_in(5) ? -1 : pick(n_classes);
    return column;
}

static void pick_classes_of_sides(struct join_trial *t)
{
    struct oj_flat *side[] = {&t->join, &t->input};
    int is_self = t->join.x == t->input.x, on = one_in(2), exclude = one_in(2);
    memset(&t->columns, 0, sizeof t->columns);
    for (int i = 0; i < 2; i++)
    {
        int of = is_self ? 0 : i;
        if (on && of == i)
            t->columns.on_class[i] = pick_classes(side[i]->n_features);
        if (exclude && of == i)
            t->columns.exclude_class[i] = pick_classes(side[i]->n_features);
        side[i]->on_class = t->columns.on_class[of];
        side[i]->exclude_class = t->columns.exclude_class[of];
    }
}

static void ask_nearest(struct oj_relation *r, int has_fids)
{
    static const double reaches[] = {0.0, 2.5, 40.0, INFINITY, INFINITY};
    *r = oj_relation_default();
    r->op = one_in(6) ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    r->max_distance = reaches[pick(5)];
    if (r->op == OJ_OP_DWITHIN)
        r->max_distance = fmin(r->max_distance, 40.0);
    else
    {
        r->k = pick(3) ? 1 + pick(6) : 1 + pick(60);
        r->ties = one_in(5) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    }
    r->distance_to = one_in(4) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
    r->exclude_self = has_fids && one_in(3);
    r->unordered_pairs = has_fids && one_in(3) ? (pick(2) ? 1 : -1) : 0;
    r->exclude_same_geometry = one_in(4);
    if (one_in(4))
        r->min_distance = fmin(r->max_distance, 0.5 * pick(5));
}

static void free_columns(struct join_trial *t)
{
    for (int i = 0; i < 2; i++)
    {
        oj_free(t->columns.on_class[i]);
        oj_free(t->columns.exclude_class[i]);
    }
    memset(&t->columns, 0, sizeof t->columns);
}

/* Makes the layers of a round. In some rounds both sides are one layer. */
static void make_places(struct join_trial *t)
{
    double place[2 * MOST_PLACES];
    double step = pick(2) ? 7.0 : 1e-3;
    int n_places = 1 + pick(MOST_PLACES), is_self = pick(2);
    int shapes = pick(2) ? POINT + 1 : OTHER_SQUARE + 1;
    for (int i = 0; i < 2 * n_places; i++)
        place[i] = step * pick(9);
    add_places(&t->join_buf, place, n_places, 40 + pick(260), shapes);
    if (!is_self)
        add_places(&t->input_buf, place, n_places, 40 + pick(60),
                   pick(2) ? POINT + 1 : shapes);
    t->join = oj_flat_buf_view(&t->join_buf);
    t->fid = pick_fids(t->join.n_features);
    t->join.fid = t->fid;
    t->input = is_self ? t->join : oj_flat_buf_view(&t->input_buf);
}

static int64_t n_pairs_of_rounds;

static void check_places(void)
{
    struct join_trial t = {.fid = NULL};
    double *matrix[2];
    make_places(&t);
    for (int to = 0; to < 2; to++)
        matrix[to] = plain_matrix(&t.input, &t.join, (enum oj_distance_to)to);
    for (int i = 0; i < 10; i++)
    {
        MATCHES m = {0};
        const struct oj_options options = {.n_threads = 1 + pick(2)};
        char how[64];
        ask_nearest(&t.relation, t.join.fid != NULL && t.input.fid != NULL);
        pick_classes_of_sides(&t);
        must(trial_open_and_join(&t, "cpu", &options, how, &m));
        check_answer(how, &t.relation, &t.input, &t.join,
                     matrix[t.relation.distance_to], &m);
        n_pairs_of_rounds += m.n_pairs;
        free_columns(&t);
        t.join.on_class = t.join.exclude_class = NULL;
        t.input.on_class = t.input.exclude_class = NULL;
    }
    oj_free(matrix[0]);
    oj_free(matrix[1]);
    trial_free(&t);
}

TEST(few_places)
{
    EACH_ROUND(120)
    {
        check_places();
    }
    expect(n_pairs_of_rounds > 0, "no pairs");
}

/* --- 30,000 features in one place ----------------------------------------- */

#define MANY 30000

struct crowd
{
    const char *name;
    int64_t k;
    /* number of classes, which features get in turn; 0: no classes */
    int n_on, n_exclude;
    int self, unordered, same;
    double min_distance;
};

static const struct crowd crowds[] = {
    {"k = 1", 1, 0, 0, 0, 0, 0, 0.0},
    {"k = 3", 3, 0, 0, 0, 0, 0, 0.0},
    {"k = 1, self", 1, 0, 0, 1, 0, 0, 0.0},
    {"k = 3, self", 3, 0, 0, 1, 0, 0, 0.0},
    {"k = 1, two classes", 1, 2, 0, 0, 0, 0, 0.0},
    {"k = 3, two classes", 3, 2, 0, 0, 0, 0, 0.0},
    {"k = 3, two classes, self", 3, 2, 0, 1, 0, 0, 0.0},
    {"k = 3, 900 classes", 3, 900, 0, 0, 0, 0, 0.0},
    {"k = 1, not of two classes", 1, 0, 2, 0, 0, 0, 0.0},
    {"k = 3, not of two classes", 3, 0, 2, 0, 0, 0, 0.0},
    {"k = 3, not of two classes, self", 3, 0, 2, 1, 0, 0, 0.0},
    {"k = 3, not of 900 classes", 3, 0, 900, 0, 0, 0, 0.0},
    {"k = 3, two classes, not of two", 3, 2, 3, 0, 0, 0, 0.0},
    {"k = 1, unordered", 1, 0, 0, 0, 1, 0, 0.0},
    {"k = 3, unordered", 3, 0, 0, 0, 1, 0, 0.0},
    {"k = 3, unordered, the other way", 3, 0, 0, 0, -1, 0, 0.0},
    {"k = 3, unordered, not of two classes", 3, 0, 2, 0, 1, 0, 0.0},
    {"k = 1, not the same", 1, 0, 0, 0, 0, 1, 0.0},
    {"k = 3, not the same", 3, 0, 0, 0, 0, 1, 0.0},
    {"k = 1, at a distance", 1, 0, 0, 0, 0, 0, 1.0},
    {"k = 3, at a distance", 3, 0, 0, 0, 0, 0, 1.0},
    {"k = 3, at a distance, not of two classes", 3, 0, 2, 0, 0, 0, 1.0},
};

#define N_CROWDS ((int)(sizeof crowds / sizeof *crowds))

static int is_pair(const struct crowd *c, const struct oj_flat *f, int64_t row,
                   int64_t feature, const struct oj_flat *points)
{
    int together = points->x[row] == points->x[feature];
    return (!c->self || f->fid[row] != f->fid[feature]) &&
           (c->unordered <= 0 || f->fid[row] < f->fid[feature]) &&
           (c->unordered >= 0 || f->fid[row] > f->fid[feature]) &&
           (c->n_on == 0 || f->on_class[row] == f->on_class[feature]) &&
           (c->n_exclude == 0 ||
            f->exclude_class[row] != f->exclude_class[feature]) &&
           (!together || (!c->same && c->min_distance == 0.0));
}

/* Checks a row whose pairs are all in its own place: they must be the first k
 * by FID.
 */
static void check_row_of_crowd(const struct crowd *c, const struct oj_flat *f,
                               const int32_t *by_fid, int64_t row,
                               const struct oj_matches *m)
{
    int64_t at = oj_matches_first(m, row), end = oj_matches_end(m, row);
    for (int64_t i = 0, n = 0; i < f->n_features && n < c->k; i++)
    {
        int32_t feature = by_fid[i];
        if (f->x[feature] != f->x[row] || !is_pair(c, f, row, feature, f))
            continue;
        expect(at < end && m->join_row[at] == feature && m->measure[at] == 0.0,
               "%s: row %d has not feature %d", c->name, (int)row,
               (int)feature);
        at++;
        n++;
    }
    for (; at < end; at++)
        expect(m->measure[at] > 0.0 && is_pair(c, f, row, m->join_row[at], f),
               "%s: row %d: feature %d", c->name, (int)row,
               (int)m->join_row[at]);
}

static int32_t *classes_in_turn(int n_classes)
{
    int32_t *column = oj_malloc(MANY, sizeof *column);
    ck_assert_ptr_nonnull(column);
    for (int i = 0; i < MANY; i++)
        column[i] = (int32_t)((int64_t)i * 7919 % MANY % n_classes);
    return column;
}

/* Crowds in one place and in ten, with ascending and shuffled FIDs. The number
 * of tested candidates per row is at most a small multiple of k. */
TEST_LOOP(crowded_places, 0, 4)
{
    int n_places = _i % 2 ? 10 : 1, shuffled = _i / 2;
    LAYER points = {0};
    int32_t *by_fid = oj_malloc(MANY, sizeof *by_fid);
    struct oj_flat f;
    ck_assert_ptr_nonnull(by_fid);
    for (int i = 0; i < MANY; i++)
        add_point(&points, 3.0 + 5.0 * (i % n_places), 4.0);
    for (int i = 0; i < MANY; i++)
    {
        int64_t fid = shuffled ? (int64_t)i * 7919 % MANY : i;
        points.fid[i] = fid;
        by_fid[fid] = i;
    }
    for (int i = 0; i < N_CROWDS; i++)
    {
        const struct crowd *c = &crowds[i];
        const struct oj_options options = {.n_threads = 1};
        struct join_trial t = {.relation = oj_relation_default()};
        struct oj_join *join;
        MATCHES m = {0};
        int64_t n_candidates;
        f = oj_flat_buf_view(&points);
        if (c->n_on > 0)
            f.on_class = t.columns.on_class[0] = classes_in_turn(c->n_on);
        if (c->n_exclude > 0)
            f.exclude_class = t.columns.exclude_class[0] =
                classes_in_turn(c->n_exclude);
        t.join = t.input = f;
        t.relation.k = c->k;
        t.relation.exclude_self = c->self;
        t.relation.unordered_pairs = c->unordered;
        t.relation.exclude_same_geometry = c->same;
        t.relation.min_distance = c->min_distance;
        join = trial_open(&t, "cpu", &options);
        must(oj_join_batch(join, &t.input, &m, &error));
        n_candidates = oj_join_stats(join)->n_candidates;
        oj_join_close(join);
        for (int64_t row = 0; row < MANY; row += 997)
            check_row_of_crowd(c, &f, by_fid, row, &m);
        expect(n_candidates <= (int64_t)MANY * n_places * (40 + 10 * c->k),
               "%s, %d places: %lld features looked at", c->name, n_places,
               (long long)n_candidates);
        free_columns(&t);
    }
    oj_free(by_fid);
}

int main(void)
{
    tests_open("nearest features on few places");
    return tests_run();
}
