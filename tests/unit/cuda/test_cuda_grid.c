/* The backend cuda with coordinates on a coarse grid, so that borders of cells
 * coincide with features, and distances are equal. There are equal features,
 * lines without length, features far away, and layers of thousands of
 * features. All answers equal those of the backend cpu, bit for bit. Skipped
 * if no GPU can be used.
 * Kind: property, degenerate. OGRJOIN_TEST_ROUNDS=n runs more rounds. */
#include "../references.h"

#include "../join_trial.h"
#include "../run_device_tests.h"

/* --- layers --------------------------------------------------------------- */

struct grid
{
    double step, x0, y0;
    int width; /* steps */
};

static struct grid pick_grid(void)
{
    static const double steps[] = {1.0, 0.25, 0.1, 1.0 / 3.0, 1024.0, 1e-4};
    static const double corners[] = {0.0, -8.0, 1e6, -3e7, 1e-3};
    struct grid g;
    g.step = steps[pick(6)];
    g.x0 = corners[pick(5)];
    g.y0 = pick(2) ? g.x0 : corners[pick(5)];
    g.width = 1 << (2 + pick(6));
    return g;
}

static double x_of(const struct grid *g, int i)
{
    return g->x0 + g->step * i;
}

static double y_of(const struct grid *g, int i)
{
    return g->y0 + g->step * i;
}

/* Returns a grid index, mostly near i. */
static int pick_near_index(const struct grid *g, int i)
{
    return one_in(40) ? pick(g->width) : i + pick(5) - 2;
}

/* Adds a polygon around (i, j): a rectangle, a triangle, or a thin polygon.
 * Some have a hole that touches the shell or equals it. */
static void add_polygon(struct oj_flat_buf *buf, const struct grid *g, int i,
                        int j)
{
    int w = 1 + pick(3), h = 1 + pick(3);
    double x = x_of(g, i), y = y_of(g, j), x1 = x_of(g, i + w),
           y1 = y_of(g, j + h), hole = 1 + pick(2);
    double box[] = {x, y, x1, y, x1, y1, x, y1, x, y};
    double triangle[] = {x, y, x1, y, x, y1, x, y};
    double thin[] = {x, y, x1, y, x1, y + 1e-9 * g->step, x, y};
    double inner[] = {x, y, x1, y, x + (x1 - x) / hole, y + (y1 - y) / hole,
                      x, y};
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    if (one_in(8))
        add_ring(buf, 4, thin);
    else if (one_in(3))
        add_ring(buf, 4, triangle);
    else
        add_ring(buf, 5, box);
    if (one_in(6))
        add_ring(buf, 4, inner);
    if (one_in(10))
    {
        add_part(buf, OJ_PART_POLYGON);
        add_ring(buf, 5, box);
    }
    end(buf);
}

static void add_feature(struct oj_flat_buf *buf, const struct grid *g,
                        enum oj_part_kind kind)
{
    int i = one_in(5) ? g->width / 2 : pick(g->width);
    int j = one_in(5) ? g->width / 2 : pick(g->width);
    if (one_in(100))
        must(oj_flat_buf_add_null(buf, buf->n_features, &error));
    else if (kind == OJ_PART_POINT)
        add_point(buf, x_of(g, i), y_of(g, j));
    else if (kind == OJ_PART_LINE)
        add_line(buf, x_of(g, i), y_of(g, j), x_of(g, pick_near_index(g, i)),
                 y_of(g, pick_near_index(g, j)));
    else
        add_polygon(buf, g, i, j);
}

/* Adds an input point on a grid line, between two lines, just beside a line, or
 * far away. */
static void add_input_point(struct oj_flat_buf *buf, const struct grid *g)
{
    double x = x_of(g, pick(g->width + 4) - 2);
    double y = y_of(g, pick(g->width + 4) - 2);
    if (one_in(3))
        x += g->step / 2;
    if (one_in(3))
        y = nudge(y, 2);
    if (one_in(50))
        x += 1e3 * g->step * g->width;
    add_point(buf, x, y);
}

static enum oj_part_kind pick_grid_kind(void)
{
    static const enum oj_part_kind kinds[] = {OJ_PART_POINT, OJ_PART_LINE,
                                              OJ_PART_POLYGON};
    return kinds[pick(3)];
}

static struct grid make_layers(struct join_trial *t)
{
    static const int sizes[] = {3, 60, 400, 800};
    enum oj_part_kind kind = pick_grid_kind(), asking = pick_grid_kind();
    int n_join = one_in(10) ? 5000 : sizes[pick(3)], n_input = sizes[pick(4)];
    int mixed = one_in(8);
    struct grid grid = pick_grid();
    memset(t, 0, sizeof *t);
    for (int i = 0; i < n_join; i++)
        add_feature(&t->join_buf, &grid, mixed ? pick_grid_kind() : kind);
    for (int i = 0; i < n_input; i++)
    {
        if (one_in(4) || asking != OJ_PART_POINT)
            add_feature(&t->input_buf, &grid, asking);
        else
            add_input_point(&t->input_buf, &grid);
    }
    trial_view(t);
    if (one_in(5))
        t->input = t->join;
    return grid;
}

/* --- joins ---------------------------------------------------------------- */

static struct oj_relation pick_relation(const struct grid *grid)
{
    static const enum oj_op ops[] = {
        OJ_OP_NEAREST, OJ_OP_NEAREST,    OJ_OP_NEAREST, OJ_OP_DWITHIN,
        OJ_OP_DWITHIN, OJ_OP_INTERSECTS, OJ_OP_WITHIN,  OJ_OP_TOUCHES,
        OJ_OP_EQUALS,  OJ_OP_BBOX};
    static const double reaches[] = {0.0, 0.5, 1.0, 3.0};
    struct oj_relation r = oj_relation_default();
    r.op = ops[pick(10)];
    r.max_distance = grid->step * reaches[pick(4)];
    if (r.op == OJ_OP_NEAREST)
    {
        r.distance_to = pick(2) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
        if (one_in(3))
            r.max_distance = INFINITY;
        if (one_in(3))
            r.k = 1 + pick(one_in(3) ? 40 : 4);
        r.ties = one_in(5) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    }
    r.exclude_self = one_in(4);
    r.exclude_same_geometry = one_in(8);
    return r;
}

/* Compares the answers of both backends. Returns 0 if there are too many pairs:
 * backends need not agree about that, because each counts its own
 * candidates. */
static int compare(const struct join_trial *t)
{
    const struct oj_options options = {.n_threads = 2,
                                       .max_batch_pairs = 3000000};
    MATCHES truth = {0}, ours = {0};
    char method[64];
    oj_status status = trial_open_and_join(t, "cpu", &options, NULL, &truth);
    oj_status theirs = trial_open_and_join(t, "cuda", &options, method, &ours);
    int is_small =
        status != OJ_ERR_TOO_MANY_PAIRS && theirs != OJ_ERR_TOO_MANY_PAIRS;
    if (is_small)
    {
        must(theirs);
        must(status);
        same_matches(method, &ours, &truth);
    }
    return is_small;
}

TEST(grids)
{
    int64_t n_compared = 0;
    EACH_ROUND(60)
    {
        struct join_trial t;
        struct grid grid;
        grid = make_layers(&t);
        for (int i = 0; i < 4; i++)
        {
            t.relation = pick_relation(&grid);
            n_compared += compare(&t);
        }
        trial_free(&t);
    }
    printf("%lld joins\n", (long long)n_compared);
    ck_assert_int_gt(n_compared, 0);
}

int main(void)
{
    if (!device_tests_open("cuda_grid"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
