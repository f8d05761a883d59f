/* nearest and dwithin between features of all kinds, with every option of joins
 * by distance, equal a plain computation. Tested are the engine for these
 * joins, and every backend. Polygons may have holes outside of their shells,
 * and holes that cross, equal, touch or overlap the shells. The distance is
 * then 0 if the features have a common point by the even-odd rule over all
 * rings of a part. For points and polygons of one part, intersects agrees with
 * that.
 * Kind: property. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../join_trial.h"
#include "../plain_pairs.h"
#include "../run_tests.h"

#include "../../../algs/pairs/selection/oj_nearest_points.h"

static int64_t n_answers, n_of_engine, n_of_device, n_zero;

/* --- layers --------------------------------------------------------------- */

static void make_anything(struct join_trial *t, struct scene *s)
{
    *s = pick_scene();
    add_join_features(&t->input_buf, s, 1 + pick(25), plain_kinds(), 0);
    add_join_features(&t->join_buf, s, 1 + pick(25), plain_kinds(), 0);
}

/* Makes coordinates so small that their squares are denormal. Squared distances
 * then have few digits, and distances are right to eight or ten digits. Bounds
 * by boxes must not be more precise than the distances of segments. */
static void make_tiny(struct join_trial *t, struct scene *s)
{
    *s = (struct scene){0.0, 0.0, 0.0, 12, 1, 0.0};
    s->scale = ldexp(0.5 + unit() / 2, -522 - pick(3));
    add_join_features(&t->input_buf, s, 1 + pick(25), plain_kinds(), 0);
    add_join_features(&t->join_buf, s, 1 + pick(25), plain_kinds(), 0);
}

/* Adds points of a scene. In some rounds a third of them are in a few
 * places. */
static void add_points(struct oj_flat_buf *buf, const struct scene *s, int n)
{
    int n_places = one_in(3) ? 1 + pick(3) : 0;
    double places[6];
    for (int i = 0; i < 6; i++)
        places[i] = pick(s->extent);
    for (int i = 0; i < n; i++)
    {
        double x = near_step(s, pick(s->extent), 0);
        double y = near_step(s, pick(s->extent), 0);
        if (s->outlier > 0.0 && one_in(40))
            x += pick(2) ? s->outlier : -s->outlier;
        if (n_places > 0 && one_in(3))
        {
            x = places[2 * pick(n_places)];
            y = places[2 * pick(n_places) + 1];
        }
        if (one_in(40))
            must(oj_flat_buf_add_null(buf, i, &error));
        else
            add_point(buf, place_x(s, x), place_y(s, y));
    }
}

static void make_points(struct join_trial *t, struct scene *s)
{
    *s = pick_scene();
    add_points(&t->join_buf, s, 1 + pick(150));
    if (pick(2)) /* otherwise one layer is both sides */
        add_points(&t->input_buf, s, 1 + pick(150));
}

#define SIDE 12

static double lattice_step, lattice_origin;

static double lattice_coordinate(double steps)
{
    return lattice_origin + lattice_step * steps;
}

/* Adds a ring: a box, or with is_cut a box without a corner. Half of the rings
 * run in reverse. Each side is divided into n pieces, so that large rings have
 * cells. */
static void add_box_ring(struct oj_flat_buf *buf, const double *box, int is_cut,
                         int n)
{
    const double corner[][2] = {
        {box[0], box[1]}, {box[2], box[1]}, {box[2], box[3]}, {box[0], box[3]}};
    double xy[2 * 200];
    int n_corners = is_cut ? 3 : 4, step = pick(2) ? 1 : n_corners - 1, v = 0;
    int first = pick(n_corners);
    for (int i = 0; i <= n_corners; i++)
    {
        const double *c = corner[(first + i * step) % n_corners];
        for (int j = n; i > 0 && j > 1; j--, v++)
        {
            xy[2 * v] =
                xy[2 * v - 2] + (lattice_coordinate(c[0]) - xy[2 * v - 2]) / j;
            xy[2 * v + 1] =
                xy[2 * v - 1] + (lattice_coordinate(c[1]) - xy[2 * v - 1]) / j;
        }
        xy[2 * v] = lattice_coordinate(c[0]);
        xy[2 * v + 1] = lattice_coordinate(c[1]);
        v++;
    }
    add_ring(buf, v, xy);
}

static void pick_box(double *box)
{
    int width = 1 + pick(6), height = 1 + pick(6);
    box[0] = pick(SIDE - width);
    box[1] = pick(SIDE - height);
    box[2] = box[0] + width;
    box[3] = box[1] + height;
}

static void add_polygon(struct oj_flat_buf *buf, int n_parts)
{
    begin(buf);
    for (int part = 0; part < n_parts; part++)
    {
        int n_rings = 1 + pick(4), is_cut = one_in(4);
        double box[4];
        add_part(buf, OJ_PART_POLYGON);
        pick_box(box);
        for (int ring = 0; ring < n_rings; ring++)
        {
            /* a copy of the previous ring, a part of it, or a ring anywhere */
            if (ring > 0 && one_in(3))
                box[pick(2)] += 1 - 2 * pick(2);
            else if (ring > 0 && pick(5))
                pick_box(box);
            if (!(box[0] < box[2] && box[1] < box[3]))
                pick_box(box);
            add_box_ring(buf, box, is_cut, one_in(4) ? 32 : 1);
            is_cut = one_in(6);
        }
    }
    end(buf);
}

/* Adds 36 copies of the polygon that add_polygon() makes from the random state
 * `state`. The index keeps only the first few of so many copies. */
static void add_copies(struct oj_flat_buf *buf, int n_parts, uint64_t state)
{
    for (int i = 0; i < 36; i++)
    {
        random_state = state;
        add_polygon(buf, n_parts);
    }
}

static void add_line_of(struct oj_flat_buf *buf)
{
    double xy[6];
    begin(buf);
    add_part(buf, OJ_PART_LINE);
    for (int i = 0; i < 6; i++)
        xy[i] = lattice_coordinate(0.5 * pick(2 * SIDE));
    add_ring(buf, 2 + pick(2), xy);
    end(buf);
}

static void add_layer(struct oj_flat_buf *buf, int n, unsigned kinds,
                      int most_parts)
{
    for (int i = 0; i < n; i++)
    {
        unsigned kind = pick_kind(kinds);
        if (kind == OJ_PART_POINT)
            add_point(buf, lattice_coordinate(0.25 * pick(4 * SIDE)),
                      lattice_coordinate(0.25 * pick(4 * SIDE)));
        else if (kind == OJ_PART_LINE)
            add_line_of(buf);
        else
        {
            int n_parts = 1 + pick(most_parts);
            uint64_t state = random_state;
            add_polygon(buf, n_parts);
            if (one_in(24))
                add_copies(buf, n_parts, state);
        }
    }
}

static int most_parts;

static void make_lattice(struct scene *s)
{
    most_parts = pick(3) ? 1 : 3;
    lattice_step = pick(3) ? 1.0 : ldexp(1.0, pick(40) - 20);
    lattice_origin = pick(3) ? 0.0 : lattice_step * 1048576.0;
    *s = (struct scene){0.0, 0.0, lattice_step, SIDE, 1, 0.0};
}

static void make_points_on_holes(struct join_trial *t, struct scene *s)
{
    make_lattice(s);
    add_layer(&t->input_buf, 1 + pick(150), OJ_PART_POINT, most_parts);
    add_layer(&t->join_buf, 1 + pick(pick(3) ? 4 : 40),
              pick(3) ? OJ_PART_POLYGON : 7, most_parts);
}

static void make_holes(struct join_trial *t, struct scene *s)
{
    make_lattice(s);
    add_layer(&t->input_buf, 1 + pick(12), pick(2) ? OJ_PART_POLYGON : 7,
              most_parts);
    add_layer(&t->join_buf, 1 + pick(12), OJ_PART_POLYGON, most_parts);
}

/* Makes points and up to some hundred features, many of them equally near. */
static void make_points_among_many(struct join_trial *t, struct scene *s)
{
    make_lattice(s);
    add_layer(&t->input_buf, 1 + pick(150), OJ_PART_POINT, most_parts);
    add_layer(&t->join_buf, 1 + pick(pick(3) ? 60 : 240),
              pick(3) ? 7 : OJ_PART_POINT, most_parts);
}

/* --- joins ---------------------------------------------------------------- */

static void pick_any_join(struct oj_relation *r, const struct scene *s, int i)
{
    (void)i;
    plain_pick_join(r, s, 7);
    r->distance_to = one_in(3) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
}

static void pick_join_of_points(struct oj_relation *r, const struct scene *s,
                                int i)
{
    (void)i;
    r->op = OJ_OP_DWITHIN;
    r->max_distance = s->scale * pick(one_in(3) ? s->extent : 5);
    if (one_in(4))
        r->min_distance = fmin(r->max_distance, s->scale * pick(3));
}

static void pick_join_by_contact(struct oj_relation *r, const struct scene *s,
                                 int i)
{
    r->op = i < 2 ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    if (i == 3)
    {
        r->k = 1 + pick(5);
        r->ties = OJ_TIES_ALL;
    }
    r->max_distance = i == 0 || i == 4 ? 0.0
                      : i == 1         ? 1.5 * s->scale
                                       : INFINITY;
}

/* Sets a join that the method by groups of points takes: dwithin, or nearest.
 * Some k are greater than the number that a group can sort at once. */
static void pick_join_of_groups(struct oj_relation *r, const struct scene *s,
                                int i)
{
    static const int most[] = {7, 7, 40, 150};
    r->op = one_in(4) ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    r->max_distance = s->scale * 0.5 * pick(2 * s->extent);
    r->distance_to = one_in(3) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
    r->exclude_same_geometry = one_in(3);
    if (r->op == OJ_OP_DWITHIN)
    {
        r->min_distance = one_in(3) ? fmin(r->max_distance, s->scale) : 0.0;
        return;
    }
    r->k = 1 + pick(most[i % 4]);
    r->ties = one_in(4) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    if (pick(2))
        r->max_distance = INFINITY;
}

static const struct
{
    void (*make)(struct join_trial *, struct scene *);
    void (*ask)(struct oj_relation *, const struct scene *, int i);
    /* engine that is also tested by itself, or NULL */
    const struct oj_engine *engine;
    /* n_joins: joins per round; one of `conditions` joins has a condition (0:
     * no join has) */
    int n_joins, conditions;
    int n_backends; /* number of backends: cpu, quadrant, cuda */
    int64_t n_rounds;
} kinds[] = {
    {make_anything, pick_any_join, &oj_cpu_distance, 8, 4, 2, 80},
    {make_tiny, pick_any_join, &oj_cpu_distance, 8, 4, 2, 20},
    {make_points, pick_join_of_points, &oj_cpu_near_points, 6, 4, 3, 150},
    {make_points_on_holes, pick_join_by_contact, NULL, 5, 0, 3, 150},
    {make_points_among_many, pick_join_of_groups, &oj_cpu_nearest_points, 8, 0,
     3, 100},
    {make_holes, pick_join_by_contact, NULL, 5, 0, 3, 150},
};

#define N_KINDS ((int)(sizeof kinds / sizeof *kinds))

/* Joins with one engine. Tie ranks are computed as in oj_join_open(). */
static void join_with_engine(const struct oj_engine *engine,
                             const struct join_trial *t, int n_threads,
                             struct oj_matches *out)
{
    struct oj_options options = {.n_threads = n_threads};
    struct oj_stats stats = {0};
    struct oj_index *index;
    int32_t *rank = oj_malloc(t->join.n_features + 1, sizeof *rank);
    ck_assert_ptr_nonnull(rank);
    for (int64_t b = 0; b < t->join.n_features; b++)
        rank[b] = plain_rank(&t->join, b);
    must(oj_index_make(engine,
                       &(struct oj_index_args){.join_side = &t->join,
                                               .tie_rank = rank,
                                               .relation = t->relation,
                                               .options = options},
                       &index, &stats, &error));
    must(engine->join(index, &t->input, out, &stats, &error));
    oj_index_free(engine, index);
    oj_free(rank);
}

/* Tests every backend that supports the join. Backends other than cpu are for
 * points. */
static void check_backends(const struct join_trial *t, int n_backends,
                           const double *matrix)
{
    static const char *const backends[] = {"cpu", "quadrant", "cuda"};
    MATCHES m = {0};
    for (int k = 0; k < n_backends; k++)
    {
        const struct oj_options options = {.n_threads = 2};
        oj_status status;
        if (k > 0 && !oj_flat_is_points(&t->input))
            continue;
        status = trial_open_and_join(t, backends[k], &options, NULL, &m);
        if (k > 0 &&
            (status == OJ_ERR_NO_DEVICE || status == OJ_ERR_UNSUPPORTED))
            continue;
        must(status);
        check_answer(backends[k], &t->relation, &t->input, &t->join, matrix,
                     &m);
        n_answers++;
        n_of_device += k == 2;
    }
}

/* For points and polygons of one part, intersects must equal dwithin 0. */
static void check_intersects(const struct oj_flat *input,
                             const struct oj_flat *join, const double *matrix)
{
    struct oj_relation relation = oj_relation_default();
    MATCHES m = {0};
    relation.op = OJ_OP_INTERSECTS;
    must(trial_open_and_join(&(struct join_trial){.join = *join,
                                                  .input = *input,
                                                  .relation = relation},
                             "cpu", NULL, NULL, &m));
    for (int64_t a = 0; a < input->n_features; a++)
    {
        int64_t i = oj_matches_first(&m, a);
        for (int64_t b = 0; b < join->n_features; b++)
        {
            int holds = i < oj_matches_end(&m, a) && m.join_row[i] == b;
            i += holds;
            expect(holds == (matrix[a * join->n_features + b] == 0.0),
                   "seed %llu: %d and %d intersect: %d",
                   (unsigned long long)seed, (int)a, (int)b, holds);
        }
    }
}

static void check_nearest_points(const struct oj_flat *a,
                                 const struct oj_flat *b, const double *matrix)
{
    struct oj_nearest_work work = {0};
    struct oj_nearest_points p;
    for (int64_t i = 0; i < a->n_features; i++)
    {
        for (int64_t j = 0; j < b->n_features; j++)
        {
            must(oj_nearest_points_find(a, i, b, j, OJ_TO_INTERIOR, &work, &p,
                                        &error));
            expect((p.distance == 0.0) == (matrix[i * b->n_features + j] == 0),
                   "seed %llu: nearest points of %d and %d are %g apart, not "
                   "%g",
                   (unsigned long long)seed, (int)i, (int)j, p.distance,
                   matrix[i * b->n_features + j]);
        }
    }
    oj_nearest_work_free(&work);
}

/* Tests some joins of two random layers. */
static void check_layers(int kind)
{
    struct join_trial t = {0};
    struct scene scene;
    struct oj_flat plain[2];
    double *matrix[2] = {NULL, NULL}; /* distances, by enum oj_distance_to */
    int64_t *fid;
    MATCHES m = {0};
    kinds[kind].make(&t, &scene);
    trial_view(&t);
    if (t.input.n_features == 0)
        t.input = t.join;
    t.fid = pick_fids(t.join.n_features);
    fid = pick_fids(t.input.n_features);
    if (kinds[kind].conditions > 0)
    {
        t.join.fid = t.fid;
        t.input.fid = t.input.x == t.join.x ? t.fid : fid;
    }
    plain[0] = t.join;
    plain[1] = t.input;
    for (int i = 0; i < kinds[kind].n_joins; i++)
    {
        double **d;
        t.relation = oj_relation_default();
        kinds[kind].ask(&t.relation, &scene, i);
        t.join = plain[0];
        t.input = plain[1];
        if (kinds[kind].conditions > 0)
            pick_columns(&t.columns, &t.join, &t.input, &t.relation,
                         scene.scale, kinds[kind].conditions);
        if (kinds[kind].conditions > 0 && one_in(4))
            pick_texts(&t.columns, &t.join, &t.input, &t.relation);
        if (kinds[kind].conditions > 0 && one_in(3))
            pick_spans(&t.columns, &t.join, &t.input, &t.relation);
        d = &matrix[t.relation.distance_to];
        if (*d == NULL)
            *d = plain_matrix(&t.input, &t.join, t.relation.distance_to);
        if (kinds[kind].engine != NULL &&
            kinds[kind].engine->supports(&t.relation, &t.join, &t.input))
        {
            n_of_engine++;
            join_with_engine(kinds[kind].engine, &t, 1 + pick(3), &m);
            check_answer("engine", &t.relation, &t.input, &t.join, *d, &m);
        }
        check_backends(&t, kinds[kind].n_backends, *d);
        columns_free(&t.columns);
        memset(&t.columns, 0, sizeof t.columns);
    }
    for (int64_t i = 0; i < t.input.n_features * t.join.n_features; i++)
        n_zero += matrix[OJ_TO_INTERIOR] && matrix[OJ_TO_INTERIOR][i] == 0.0;
    if (kinds[kind].conditions == 0)
        check_nearest_points(&t.input, &t.join, matrix[OJ_TO_INTERIOR]);
    if (kinds[kind].conditions == 0 && most_parts == 1 &&
        oj_flat_is_points(&t.input) && t.join.part_kinds == OJ_PART_POLYGON)
        check_intersects(&t.input, &t.join, matrix[OJ_TO_INTERIOR]);
    oj_free(matrix[0]);
    oj_free(matrix[1]);
    oj_free(fid);
    trial_free(&t);
}

TEST_LOOP(as_the_plain_way, 0, N_KINDS)
{
    n_answers = n_of_engine = n_of_device = n_zero = 0;
    EACH_ROUND(kinds[_i].n_rounds)
    {
        check_layers(_i);
    }
    printf("%lld answers, %lld of them of a device, %lld pairs at distance 0\n",
           (long long)n_answers, (long long)n_of_device, (long long)n_zero);
    ck_assert_int_gt(n_zero, 0);
    ck_assert(kinds[_i].engine == NULL ||
              2 * n_of_engine > rounds(kinds[_i].n_rounds) * kinds[_i].n_joins);
}

int main(void)
{
    setenv("CK_FORK", "no", 1); /* a device does not work after a fork */
    tests_open("plain way");
    return tests_run();
}
