/* The backends of G-PICS and of the kept index have the answers of the backend
 * cpu, bit for bit. Tests random points with ties and clusters, and all
 * supported conditions, also after points of the join side have moved.
 * libspatialindex is tested after moves, too. After each move the trees are
 * consistent. A lack of memory gives an error.
 * Kind: property, degenerate, memory. OGRJOIN_TEST_ROUNDS=n runs more rounds.
 */
#include "../references.h"

#include "../run_tests.h"
#include "gpics_trial.h"

#include "../../../algs/papers/gpics_tree.h"

#include <sys/resource.h>

static const char *const backends[] = {
    "gpics_quadtree",      "gpics_kdtree",  "gpics_quadtree_single",
    "gpics_kdtree_single", "live_quadtree", "live_kdtree",
    "spatialindex"};

enum
{
    N_BACKENDS = sizeof backends / sizeof *backends,
    N_EXACT = N_BACKENDS - 1 /* the last backend rounds distances like GEOS */
};

/* Returns 1 if a backend may refuse the join. The kept index may: it uses its
 * own ids if FIDs have gaps. */
static int may_refuse(const struct join_trial *t, const char *backend)
{
    return strncmp(backend, "live", 4) == 0 &&
           (t->relation.exclude_self || t->relation.unordered_pairs != 0);
}

TEST(as_cpu)
{
    int64_t n_joins = 0, n_refused = 0, n_pairs = 0;
    EACH_ROUND(200)
    {
        struct oj_options options = pick_options();
        struct join_trial t;
        MATCHES truth = {0};
        make_trial(&t, pick(5));
        trial_truth(&t, &truth);
        n_pairs += truth.n_pairs;
        for (int b = 0; b < N_EXACT; b++)
        {
            MATCHES ours = {0};
            oj_status status =
                trial_open_and_join(&t, backends[b], &options, NULL, &ours);
            n_joins++;
            if (status == OJ_ERR_UNSUPPORTED && may_refuse(&t, backends[b]))
            {
                n_refused++;
                continue;
            }
            must(status);
            same_matches(backends[b], &ours, &truth);
            if (one_in(5))
                trial_check_batches(&t, backends[b], &options, 1 + pick(100), 5,
                                    &truth);
        }
        trial_free(&t);
    }
    printf("%lld joins, %lld of them refused, %lld pairs\n", (long long)n_joins,
           (long long)n_refused, (long long)n_pairs);
    ck_assert_int_lt(n_refused * 5, n_joins);
    ck_assert_int_gt(n_pairs, n_joins);
}

/* --- moves ---------------------------------------------------------------- */

/* a layer whose points move */
struct moving
{
    double *x[2], *y[2]; /* coordinates before and after the last move */
    int now;
    int32_t *feature;
    int64_t n;
    struct oj_flat flat;
};

static void start_moving(struct moving *m, const struct oj_flat *from)
{
    int64_t n = from->n_features;
    memset(m, 0, sizeof *m);
    for (int i = 0; i < 2; i++)
    {
        m->x[i] = oj_malloc(n + 1, sizeof *m->x[i]);
        m->y[i] = oj_malloc(n + 1, sizeof *m->y[i]);
        for (int64_t f = 0; f < n; f++)
        {
            m->x[i][f] = from->x[f];
            m->y[i][f] = from->y[f];
        }
    }
    m->feature = oj_malloc(n + 1, sizeof *m->feature);
    m->flat = *from;
}

/* Moves some points. kind is that of the places of the points (pick_place()).
 */
static void move_some(struct moving *m, int kind)
{
    int64_t n = m->flat.n_features;
    int one_of = 1 + pick(one_in(3) ? 2 : 40), how = pick(6);
    double at_x, at_y;
    pick_place(kind, &at_x, &at_y);
    m->now = 1 - m->now;
    m->n = 0;
    for (int64_t f = 0; f < n; f++)
    {
        double x = m->x[1 - m->now][f], y = m->y[1 - m->now][f];
        if (one_in(one_of))
        {
            if (how == 0 || x != x)
                pick_place(kind, &x, &y);
            else if (how == 1) /* small moves */
            {
                x += between(-0.1, 0.1);
                y += between(-0.1, 0.1);
            }
            else if (how == 2) /* all move to one place */
            {
                x = at_x;
                y = at_y;
            }
            else if (how == 3) /* all move out of the extent */
                x += 100.0;
            else if (how == 4) /* removed */
                x = y = (double)NAN;
            else
                pick_place(pick(5), &x, &y);
            m->feature[m->n++] = (int32_t)f;
        }
        m->x[m->now][f] = x;
        m->y[m->now][f] = y;
    }
    m->flat.x = m->x[m->now];
    m->flat.y = m->y[m->now];
}

static void end_moving(struct moving *m)
{
    for (int i = 0; i < 2; i++)
    {
        oj_free(m->x[i]);
        oj_free(m->y[i]);
    }
    oj_free(m->feature);
}

static void check_after_move(const struct join_trial *t, struct oj_join *join,
                             const struct moving *m, const char *backend)
{
    struct join_trial moved = *t;
    MATCHES ours = {0}, truth = {0};
    moved.join = m->flat;
    trial_truth(&moved, &truth);
    must(oj_join_move_points(join, &m->flat, m->n, m->feature, &error));
    must(oj_join_batch(join, &t->input, &ours, &error));
    same_matches(backend, &ours, &truth);
}

TEST(moves)
{
    int64_t n_moves = 0;
    EACH_ROUND(100)
    {
        struct oj_options options = pick_options();
        struct join_trial t;
        int kind = pick(5), b = pick(N_BACKENDS);
        struct oj_join *join = NULL;
        struct moving m;
        oj_status status;
        make_trial(&t, kind);
        /* libspatialindex needs at least one point, and GEOS rounds squared
         * distances */
        if (b == N_EXACT && (t.join.n_features < 10 || kind == 3))
            b = 0;
        status = oj_join_open(&t.join, &t.relation, backends[b], &options,
                              &join, &error);
        if (status == OJ_ERR_UNSUPPORTED && may_refuse(&t, backends[b]))
        {
            trial_free(&t);
            continue;
        }
        must(status);
        start_moving(&m, &t.join);
        for (int i = 0; i < 6; i++)
        {
            move_some(&m, kind);
            check_after_move(&t, join, &m, backends[b]);
            n_moves += m.n;
        }
        oj_join_close(join);
        end_moving(&m);
        trial_free(&t);
    }
    printf("%lld points moved\n", (long long)n_moves);
    ck_assert_int_gt(n_moves, 1000);
}

/* Backends that cannot move points refuse a move, and remain usable. */
TEST(no_moves)
{
    static const char *const others[] = {"cpu", "geos", "zlists", "quadrant"};
    struct join_trial t = {.relation = oj_relation_default()};
    const struct oj_options options = {.n_threads = 1};
    int32_t first = 0;
    random_state = 3;
    add_points(&t.join_buf, 50, 1);
    add_points(&t.input_buf, 50, 1);
    trial_view(&t);
    for (int i = 0; i < 4; i++)
    {
        struct oj_join *join = trial_open(&t, others[i], &options);
        MATCHES before = {0}, after = {0};
        must(oj_join_batch(join, &t.input, &before, &error));
        ck_assert_int_eq(oj_join_move_points(join, &t.input, 1, &first, &error),
                         OJ_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(error.message, others[i]));
        must(oj_join_batch(join, &t.input, &after, &error));
        same_matches(others[i], &after, &before);
        oj_join_close(join);
    }
    trial_free(&t);
}

TEST(refused)
{
    struct join_trial t = {.relation = oj_relation_default()};
    const struct oj_options options = {.n_threads = 1};
    MATCHES out = {0};
    random_state = 1;
    add_points(&t.input_buf, 20, 1);
    add_square(&t.join_buf, 0, 0, 1, 1);
    trial_view(&t);
    for (int b = 0; b < N_EXACT; b++)
    {
        ck_assert_int_eq(
            trial_open_and_join(&t, backends[b], &options, NULL, &out),
            OJ_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(error.message, backends[b]));
    }
    trial_free(&t);
}

/* --- trees ---------------------------------------------------------------- */

struct tree_check
{
    const struct gpics_tree *tree;
    const struct moving *m;
    int64_t n_points, n_leaves;
};

static void check_leaf(struct tree_check *c, int32_t at)
{
    const struct gpics_node *node = &c->tree->node[at];
    int64_t n = 0;
    expect(node->n > 0, "seed %llu: a leaf without points",
           (unsigned long long)seed);
    for (int32_t p = node->page; p != GPICS_NONE; p = c->tree->page[p].previous)
    {
        const struct gpics_page *page = &c->tree->page[p];
        expect(page->leaf == at && page->n > 0 &&
                   (p == node->page || page->n == GPICS_PAGE_POINTS),
               "seed %llu: a page", (unsigned long long)seed);
        for (int i = 0; i < page->n; i++)
        {
            int32_t f = page->feature[i];
            expect(
                page->x[i] >= node->cell.x0 && page->x[i] < node->cell.x1 &&
                    page->y[i] >= node->cell.y0 && page->y[i] < node->cell.y1,
                "seed %llu: a point out of its cell", (unsigned long long)seed);
            expect(page->x[i] == c->m->flat.x[f] &&
                       page->y[i] == c->m->flat.y[f] &&
                       c->tree->place[f] == (int64_t)p * GPICS_PAGE_POINTS + i,
                   "seed %llu: feature %d elsewhere", (unsigned long long)seed,
                   (int)f);
        }
        n += page->n;
    }
    expect(n == node->n, "seed %llu: %d points in a leaf of %d",
           (unsigned long long)seed, (int)n, (int)node->n);
    c->n_points += n;
    c->n_leaves++;
}

/* Checks the subtree below a node. Returns its number of points. */
static int64_t check_node(struct tree_check *c, int32_t at, int32_t parent,
                          int level)
{
    const struct gpics_node *node = &c->tree->node[at];
    int64_t n = 0;
    int of_leaves = 1;
    expect(node->parent == parent && node->level == level &&
               level <= GPICS_MOST_LEVELS && node->state != GPICS_FREE,
           "seed %llu: a node", (unsigned long long)seed);
    if (node->state == GPICS_LEAF)
    {
        check_leaf(c, at);
        return node->n;
    }
    for (int i = 0; i < 4; i++)
    {
        int32_t child = node->child[i];
        if (child == GPICS_NONE)
            continue;
        of_leaves &= c->tree->node[child].state == GPICS_LEAF;
        n += check_node(c, child, at, level + 1);
    }
    expect(!of_leaves || n > c->tree->most_points,
           "seed %llu: leaves of %d points were not merged",
           (unsigned long long)seed, (int)n);
    return n;
}

static void check_tree(const struct gpics_tree *tree, const struct moving *m)
{
    struct tree_check c = {tree, m, 0, 0};
    int64_t n = 0;
    if (tree->root != GPICS_NONE)
        check_node(&c, tree->root, GPICS_NONE, 0);
    for (int64_t f = 0; f < m->flat.n_features; f++)
        n += m->flat.x[f] == m->flat.x[f];
    expect(n == c.n_points && n == tree->n_points,
           "seed %llu: %d points, not %d", (unsigned long long)seed,
           (int)c.n_points, (int)n);
}

TEST(structure)
{
    EACH_ROUND(100)
    {
        struct gpics_tree tree = {.kind = (enum gpics_kind)pick(2),
                                  .most_points = 1 + pick(60)};
        LAYER points = {0};
        struct moving m;
        struct oj_flat flat;
        int kind = pick(5);
        add_points(&points, pick_size(MOST_POINTS), kind);
        flat = oj_flat_buf_view(&points);
        start_moving(&m, &flat);
        must(gpics_tree_build(&tree, flat.n_features, flat.x, flat.y, &error));
        check_tree(&tree, &m);
        for (int i = 0; i < 10; i++)
        {
            move_some(&m, kind);
            must(gpics_tree_move(&tree, m.n, m.feature, m.flat.x, m.flat.y,
                                 &error));
            check_tree(&tree, &m);
        }
        gpics_tree_free(&tree);
        end_moving(&m);
    }
}

/* --- memory --------------------------------------------------------------- */

/* The n-th allocation of a move fails. The join returns an error and can be
 * closed. */
TEST_LOOP(moves_without_memory, 0, N_EXACT)
{
    struct join_trial t = {.relation = oj_relation_default()};
    const struct oj_options options = {.n_threads = 1, .quadrant_size = 8};
    oj_status status = OJ_ERR_NOMEM;
    struct moving m;
    random_state = 7;
    add_points(&t.join_buf, 700, 1);
    add_points(&t.input_buf, 10, 1);
    trial_view(&t);
    start_moving(&m, &t.join);
    do
        move_some(&m, 0);
    while (m.n < 300);
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        struct oj_join *join = trial_open(&t, backends[_i], &options);
        oj_alloc_fail_at(n);
        status = oj_join_move_points(join, &m.flat, m.n, m.feature, &error);
        oj_alloc_fail_at(0);
        expect(status == OJ_OK || status == OJ_ERR_NOMEM, "%s: %s",
               backends[_i], error.message);
        oj_join_close(join);
        expect(status != OJ_OK || n > 3, "%s: allocates nothing", backends[_i]);
    }
    end_moving(&m);
    trial_free(&t);
}

/* Returns the greatest memory of this process so far, in KiB. */
static int64_t peak_kib(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* 20,000,000 candidates are coincident points, of which the answer keeps 1000.
 * Each candidate is in memory at most once, as a number of 4 bytes. */
TEST_LOOP(memory_of_coincident_points, 0, 2)
{
    struct join_trial t = {.relation = oj_relation_default()};
    const struct oj_options options = {.n_threads = 2};
    const int64_t before = peak_kib();
    MATCHES out = {0};
    for (int i = 0; i < 20000; i++)
        add_point(&t.join_buf, 1, 1);
    for (int i = 0; i < 1000; i++)
        add_point(&t.input_buf, 1, 1);
    trial_view(&t);
    must(trial_open_and_join(&t, backends[_i], &options, NULL, &out));
    ck_assert_int_eq(out.n_pairs, 1000);
    expect(peak_kib() - before < 200 * 1024, "%s takes %lld KiB", backends[_i],
           (long long)(peak_kib() - before));
    trial_free(&t);
}

int main(void)
{
    tests_open("gpics");
    return tests_run();
}
