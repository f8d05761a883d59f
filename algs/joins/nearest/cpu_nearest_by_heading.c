/* Engine for nearest and dwithin with a condition on headings: of lines and
 * rings, only segments count whose direction fits the heading of the input
 * feature (oj_heading.h). The input is points.
 *
 * The segments of the join side are in bundles under a packed tree
 * (cpu_layer_segment_tree.h), which is searched for each point. Each child of a
 * node has a set of the directions of the segments below it, as 32 sectors:
 *
 *   directions[node * OJ_FANOUT + child]   bit i: a segment with a direction
 *                                          from i to i + 1 times 11.25 degrees
 *
 * Children without a sector of the row are skipped. The sets only select
 * candidates: each segment of a bundle in reach is tested itself, and measured
 * if it fits. The distance of a feature is that of its nearest segment that
 * fits; the ranking keeps the minimum.
 *
 * Rows without a heading accept all directions.
 *
 * Source: ours. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_packed_tree_walk.h"
#include "../../foundations/kernels/oj_heading.h"
#include "../../foundations/kernels/oj_segment.h"
#include "../../geometry/rings/cpu_layer_segment_tree.h"
#include "../../pairs/selection/oj_parallel_row_search.h"

#define N_SECTORS 32
#define DEGREES_OF_SECTOR (360.0 / N_SECTORS)
#define EVERY_SECTOR UINT32_MAX

/* Degrees by which ranges of sectors are widened: more than the rounding errors
 * of directions. */
#define SECTOR_SLACK 1e-6

/* Below this absolute value, components of a direction lose digits in products.
 */
#define LEAST_COMPONENT 1e-290

#define BUNDLES_PER_TASK 1024

struct heading_index
{
    struct oj_row_index shared;
    struct oj_segments segments; /* segments of the join side */
    uint32_t *directions;        /* [n_nodes * OJ_FANOUT] set of sectors of each
                                    child in segments.tree */
    double most; /* maximum over the join features' own maximum distances; -1 if
                    they have none */
    double *heading; /* [rows of the batch] headings in degrees, in search
                        order */
};

/* State of a thread. */
struct heading_worker
{
    struct oj_row_worker shared;
    struct oj_ranking in_reach; /* features of the current row of a
                                   dwithin join */
    /* For each sector, the slot of the segment that was nearest to the last row
     * with a heading in this sector, or -1. The last element is for rows
     * without a heading. */
    int64_t last_slot[N_SECTORS + 1];
};

/* --- sectors -------------------------------------------------------------- */

/* Returns the set of the sectors that the directions from first clockwise to
 * last, in degrees, are in. */
static uint32_t sectors_of_direction_range(double first, double last)
{
    int from = (int)floor((first - SECTOR_SLACK) / DEGREES_OF_SECTOR);
    int to = (int)floor((last + SECTOR_SLACK) / DEGREES_OF_SECTOR);
    uint32_t sectors;
    if (to - from >= N_SECTORS - 1)
        return EVERY_SECTOR;
    sectors = (UINT32_C(2) << (to - from)) - 1;
    return sectors << ((unsigned)from % N_SECTORS) |
           (uint32_t)((uint64_t)sectors << ((unsigned)from % N_SECTORS) >>
                      N_SECTORS);
}

static uint32_t sectors_of_heading(const struct oj_heading_range *range)
{
    uint32_t sectors;
    if (range->is_all)
        return EVERY_SECTOR;
    sectors = sectors_of_direction_range(range->degrees - range->tolerance,
                                         range->degrees + range->tolerance);
    if (range->both_ways)
        sectors |= sectors >> N_SECTORS / 2 | sectors << N_SECTORS / 2;
    return sectors;
}

static uint32_t sectors_of_segment(double dx, double dy)
{
    double degrees;
    if (dx == 0.0 && dy == 0.0)
        return 0;
    if (fabs(dx) < LEAST_COMPONENT && fabs(dy) < LEAST_COMPONENT)
        return EVERY_SECTOR;
    degrees = atan2(dx, dy) * (180.0 / 3.14159265358979323846);
    return sectors_of_direction_range(degrees, degrees);
}

/* --- index ---------------------------------------------------------------- */

static int supports_joins_by_heading(const struct oj_relation *relation,
                                     const struct oj_flat *join_side,
                                     const struct oj_flat *input)
{
    (void)join_side;
    return relation->heading.is_asked && oj_relation_is_by_distance(relation) &&
           !oj_relation_compares_shapes(relation) &&
           relation->metric == OJ_METRIC_PLANAR &&
           (input == NULL ||
            (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0);
}

static void free_heading_index(struct oj_index *wrapped)
{
    struct heading_index *self = (void *)wrapped;
    oj_segments_free(&self->segments);
    oj_free(self->directions);
}

static void set_directions_of_bundles(int64_t first, int64_t end, void *user)
{
    struct heading_index *self = user;
    for (int64_t i = first; i < end; i++)
    {
        const struct oj_bundle *b = &self->segments.bundle[i];
        for (int c = 0; c < OJ_BUNDLE; c++)
            self->directions[i] |=
                sectors_of_segment(b->bx[c] - b->ax[c], b->by[c] - b->ay[c]);
    }
}

/* Builds the sets of directions level by level. The nodes of level 0 come
 * first, so the sets of bundles begin the array. */
static oj_status fill_directions(struct heading_index *self,
                                 struct oj_error *err)
{
    const struct oj_tree *tree = &self->segments.tree;
    OJ_NEW_ZEROED(self->directions, tree->n_nodes * OJ_FANOUT, err);
    oj_parallel_slices(self->shared.n_threads, self->segments.n_bundles,
                       BUNDLES_PER_TASK, set_directions_of_bundles, self);
    for (int level = 1; level < tree->n_levels; level++)
    {
        int64_t below = tree->level_first[level - 1] * OJ_FANOUT;
        int64_t first = tree->level_first[level] * OJ_FANOUT;
        for (int64_t i = 0; i < first - below; i++)
            self->directions[first + i / OJ_FANOUT] |=
                self->directions[below + i];
    }
    return OJ_OK;
}

static double greatest_own_distance(const struct oj_flat *join_side)
{
    double most = -1.0;
    for (int64_t f = 0;
         join_side->max_distance != NULL && f < join_side->n_features; f++)
    {
        if (join_side->max_distance[f] > most)
            most = join_side->max_distance[f];
    }
    return most;
}

/* --- one row -------------------------------------------------------------- */

/* State of the search for an input row. */
struct heading_row_search
{
    struct heading_index *self;
    struct heading_worker *worker;
    struct oj_ranking *ranking;
    int64_t row;
    struct oj_heading_range range;
    uint32_t sectors;
    int sector; /* sector of the heading, or N_SECTORS without a heading */
    int32_t first_bundle, last_bundle; /* bundles of the row's -on class */
    double x, y;                       /* point of the row */
    double reach;                      /* farther segments are skipped */
    float reach2;                      /* reach in the form of
                                          oj_tree_reach2() */
};

static void narrow_search_to_ranking(struct heading_row_search *s)
{
    if (!(s->ranking->bound < s->reach))
        return;
    s->reach = s->ranking->bound;
    s->reach2 = oj_tree_reach2(&s->self->segments.tree, s->reach);
}

/* Measures a segment whose direction fits, and adds its feature to the ranking.
 */
static oj_status measure_segment(struct heading_row_search *s, int64_t slot,
                                 struct oj_error *err)
{
    const struct oj_row_index *shared = &s->self->shared;
    const struct oj_bundle *b = &s->self->segments.bundle[slot / OJ_BUNDLE];
    const int c = (int)(slot % OJ_BUNDLE);
    const int32_t feature = s->self->segments.feature[slot];
    const double limit =
        oj_pair_max_distance(&shared->args.relation, shared->input, s->row,
                             shared->args.join_side, feature);
    const double distance =
        oj_segment_distance(s->x, s->y, b->ax[c], b->ay[c], b->bx[c], b->by[c]);
    s->worker->shared.n_candidates++;
    if (!(distance <= limit && distance <= s->ranking->bound) ||
        !oj_pair_filter_accepts(&shared->filter, s->row, feature))
        return OJ_OK;
    if (distance < s->ranking->bound || s->ranking->n == 0)
        s->worker->last_slot[s->sector] = slot;
    OJ_TRY(oj_ranking_add(s->ranking, feature, distance, err));
    narrow_search_to_ranking(s);
    return OJ_OK;
}

/* Sets beyond[c] to 0 or less for the segments of a bundle whose boxes are in
 * reach, which is widened by more than the rounding error of
 * oj_segment_distance(). */
OJ_CLONES static void
compare_boxes_with_reach(const struct oj_bundle *restrict b, double x, double y,
                         double reach, double beyond[restrict OJ_BUNDLE])
{
    reach = reach * (1.0 + 0x1p-40) + OJ_LEAST_DISTANCE;
    OJ_EIGHT
    {
        double ax = b->ax[c], ay = b->ay[c], bx = b->bx[c], by = b->by[c];
        double x0 = ax < bx ? ax : bx, x1 = ax < bx ? bx : ax;
        double y0 = ay < by ? ay : by, y1 = ay < by ? by : ay;
        double left = x0 - x, right = x - x1, below = y0 - y, above = y - y1;
        double dx = left > right ? left : right;
        double dy = below > above ? below : above;
        double most = reach + 0x1p-44 * ((x1 - x0) + (y1 - y0));
        dx = dx > 0.0 ? dx : 0.0;
        dy = dy > 0.0 ? dy : 0.0;
        beyond[c] = dx * dx + dy * dy - most * most;
    }
}

static int does_segment_fit_heading(const struct heading_row_search *s,
                                    const struct oj_bundle *b, int c)
{
    return oj_heading_fits(&s->range, b->bx[c] - b->ax[c], b->by[c] - b->ay[c]);
}

static oj_status measure_bundle(struct heading_row_search *s, int32_t bundle,
                                struct oj_error *err)
{
    const struct oj_bundle *b = &s->self->segments.bundle[bundle];
    double beyond[OJ_BUNDLE];
    compare_boxes_with_reach(b, s->x, s->y, s->reach, beyond);
    OJ_TRY(oj_row_poll_cancel(&s->self->shared, &s->worker->shared, err));
    for (int c = 0; c < OJ_BUNDLE; c++)
    {
        if (beyond[c] <= 0.0 && does_segment_fit_heading(s, b, c))
            OJ_TRY(measure_segment(s, (int64_t)bundle * OJ_BUNDLE + c, err));
    }
    return OJ_OK;
}

/* Measures first the segment that answered the last row with a similar heading:
 * it is close, so its distance bounds the search if its direction fits. */
static oj_status measure_last_segment(struct heading_row_search *s,
                                      struct oj_error *err)
{
    const int64_t slot = s->worker->last_slot[s->sector];
    const struct oj_bundle *bundle = s->self->segments.bundle;
    return slot >= 0 && does_segment_fit_heading(s, &bundle[slot / OJ_BUNDLE],
                                                 (int)(slot % OJ_BUNDLE))
               ? measure_segment(s, slot, err)
               : OJ_OK;
}

OJ_CLONES static oj_status search_segment_tree(struct heading_row_search *s,
                                               struct oj_error *err)
{
    const struct heading_index *self = s->self;
    const struct oj_tree *tree = &self->segments.tree;
    const struct oj_box at = {s->x, s->y, s->x, s->y};
    struct oj_tree_descent descent;
    oj_tree_descent_begin(&descent, tree, &at);
    while (descent.depth > 0)
    {
        struct oj_tree_child v = descent.stack[--descent.depth];
        const uint32_t *directions;
        float reach2_of_child[OJ_FANOUT];
        int64_t node;
        if (v.d2 > s->reach2 ||
            !oj_tree_child_overlaps(v, s->first_bundle, s->last_bundle))
            continue;
        if (v.level < 0)
        {
            OJ_TRY(measure_bundle(s, v.child, err));
            continue;
        }
        node = tree->level_first[v.level] + v.child;
        directions = self->directions + node * OJ_FANOUT;
        OJ_EIGHT
        {
            reach2_of_child[c] =
                (directions[c] & s->sectors) != 0 || s->sectors == EVERY_SECTOR
                    ? s->reach2
                    : -1.0f;
        }
        oj_tree_descent_push(&descent, &tree->node[node], v, s->reach2,
                             reach2_of_child, 0);
    }
    return OJ_OK;
}

/* Stores the features of a row of dwithin, each with its minimum distance. */
static oj_status store_features_in_reach(const struct heading_row_search *s,
                                         struct oj_error *err)
{
    const struct oj_ranking *in_reach = s->ranking;
    for (int64_t i = 0; i < in_reach->n; i++)
        OJ_TRY(oj_row_add_pair(&s->self->shared, &s->worker->shared, s->row,
                               in_reach->list[i].feature,
                               in_reach->list[i].distance, err));
    return OJ_OK;
}

/* Sets the range of bundles that the row can have pairs in. Returns 0 if there
 * are none. */
static int set_bundle_range_of_class(struct heading_row_search *s)
{
    const struct oj_segments *segments = &s->self->segments;
    const struct oj_flat *input = s->self->shared.input;
    struct oj_segments_class run;
    s->first_bundle = 0;
    s->last_bundle = (int32_t)segments->n_bundles - 1;
    if (segments->of_class == NULL || input->on_class == NULL)
        return 1;
    run = oj_segments_find_on_class(segments, input->on_class[s->row]);
    s->first_bundle = (int32_t)(run.first / OJ_BUNDLE);
    s->last_bundle = (int32_t)((run.end - 1) / OJ_BUNDLE);
    return run.first < run.end;
}

/* Finds the features of the row at position `place` of the search order. Single
 * points and headings are read in this order, since reading them by row would
 * miss the cache. */
static oj_status search_row(struct heading_row_search *s, int64_t place,
                            struct oj_error *err)
{
    const struct oj_row_index *shared = &s->self->shared;
    const struct oj_relation *relation = &shared->args.relation;
    const struct oj_flat *input = shared->input;
    const int is_nearest = oj_relation_is_nearest(relation);
    int64_t v = 0, end = 1;
    if (!oj_feature_may_pair(input, s->row) || !set_bundle_range_of_class(s))
        return OJ_OK;
    s->range = oj_heading_range_of(&relation->heading, s->self->heading[place]);
    s->sectors = sectors_of_heading(&s->range);
    s->sector =
        s->range.is_all
            ? N_SECTORS
            : (int)((s->range.degrees + 360.0) / DEGREES_OF_SECTOR) % N_SECTORS;
    s->reach = shared->args.join_side->max_distance != NULL
                   ? s->self->most
                   : oj_pair_max_distance(relation, input, s->row,
                                          shared->args.join_side, 0);
    if (!(s->reach >= 0.0))
        return OJ_OK;
    s->reach2 = oj_tree_reach2(&s->self->segments.tree, s->reach);
    if (!oj_flat_is_points(input))
        oj_flat_vertex_range(input, s->row, &v, &end);
    for (; v < end; v++)
    {
        if (!oj_flat_is_points(input))
        {
            s->x = input->x[v];
            s->y = input->y[v];
        }
        if (is_nearest)
            OJ_TRY(measure_last_segment(s, err));
        OJ_TRY(search_segment_tree(s, err));
    }
    return OJ_OK;
}

static oj_status answer_row(struct oj_row_index *shared,
                            struct oj_row_worker *worker, int64_t i,
                            struct oj_error *err)
{
    struct heading_worker *own = (void *)worker;
    const struct oj_ordered_point *point = &shared->order.point[i];
    const int is_nearest = oj_relation_is_nearest(&shared->args.relation);
    struct heading_row_search s = {.self = (void *)shared,
                                   .worker = own,
                                   .ranking = is_nearest ? &worker->ranking
                                                         : &own->in_reach,
                                   .row = point->index,
                                   .x = point->x,
                                   .y = point->y};
    oj_ranking_start(s.ranking);
    OJ_TRY(search_row(&s, i, err));
    oj_ranking_finish(s.ranking);
    return is_nearest
               ? oj_answers_add_ranking(worker->answers, s.row, s.ranking, err)
               : store_features_in_reach(&s, err);
}

/* --- a batch -------------------------------------------------------------- */

/* Sets *x, *y to the first vertex of a row. Returns 0 if it has none. */
static int first_vertex_of_row(const void *side, int64_t row, double *x,
                               double *y)
{
    const struct oj_flat *input = side;
    int64_t v, end;
    oj_flat_vertex_range(input, row, &v, &end);
    if (v == end)
        return 0;
    *x = input->x[v];
    *y = input->y[v];
    return 1;
}

/* Returns a ranking that keeps all features of a row of a dwithin join, each
 * once, with its minimum distance. */
static struct oj_ranking
make_ranking_of_all_features(const struct oj_index_args *args)
{
    struct oj_ranking ranking =
        oj_ranking_make(&args->relation, args->tie_rank);
    ranking.k = INT64_MAX;
    ranking.keep_ties = 1;
    ranking.max_distance = ranking.bound = INFINITY;
    return ranking;
}

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct heading_index *self = (void *)shared;
    for (int t = 0; t < shared->n_threads; t++)
    {
        struct heading_worker *worker = (void *)oj_row_worker(shared, t);
        for (int i = 0; i <= N_SECTORS; i++)
            worker->last_slot[i] = -1;
        if (worker->in_reach.list == NULL)
            worker->in_reach = make_ranking_of_all_features(&shared->args);
    }
    OJ_TRY(oj_row_sort_input(
        shared, shared->input,
        oj_flat_is_points(shared->input) ? NULL : first_vertex_of_row, err));
    OJ_NEW(self->heading, shared->n_rows, err);
    for (int64_t i = 0; i < shared->n_rows; i++)
        self->heading[i] = shared->input->heading[shared->order.point[i].index];
    return OJ_OK;
}

static void end_batch(struct oj_row_index *shared)
{
    struct heading_index *self = (void *)shared;
    oj_free(self->heading);
    self->heading = NULL;
}

static void free_worker(struct oj_row_worker *worker)
{
    oj_ranking_free(&((struct heading_worker *)(void *)worker)->in_reach);
}

static const struct oj_row_method by_heading = {
    .worker_size = sizeof(struct heading_worker),
    .start = start_batch,
    .answer = answer_row,
    .end = end_batch,
    .free_worker = free_worker};

static oj_status build_heading_index(struct oj_index *wrapped,
                                     const struct oj_index_args *args,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    struct heading_index *self = oj_row_index_begin(wrapped, &by_heading, args);
    const struct oj_equal_features equal = oj_equal_features_make(
        &args->relation, args->join_side, args->tie_rank);
    OJ_TRY(oj_segments_build(&self->segments, args->join_side, &equal,
                             args->options.n_threads, err));
    OJ_TRY(fill_directions(self, err));
    self->most = greatest_own_distance(args->join_side);
    stats->index_bytes += oj_segments_bytes(&self->segments) +
                          self->segments.tree.n_nodes * OJ_FANOUT *
                              (int64_t)sizeof *self->directions;
    return OJ_OK;
}

const struct oj_engine oj_cpu_nearest_by_heading = {
    .name = "segments whose direction fits a heading",
    .supports = supports_joins_by_heading,
    .index_size = sizeof(struct heading_index),
    .build = build_heading_index,
    .join = oj_row_join,
    .free_side = free_heading_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options,
    .takes_headings = 1};
