/* The engine for nearest and dwithin on the sphere, with points as input, and
 *  on an ellipsoid, with points on one side at least.
 *
 *  The join side's features are entries of a tree of 3D boxes, which is
 *  searched depth-first, the nearest child first, for each input feature, among
 *  the entries of its run (oj_class_runs.h).
 *
 *  On the sphere squared chords are compared; only results are converted to
 *  metres.
 *
 *  On an ellipsoid chords are bounds of distances (oj_ellipsoid.h). In nearest
 *  joins a first walk finds the k-th chord, and a second walk measures by
 *  geodesics the entries that may be among the k nearest:
 *
 *   chord   0 ------- k-th chord ---- most distance of the k-th chord ----->
 *             k entries            |  entries that may be nearer  |  none
 *
 *  The second walk measures k entries and seldom more: at a k-th distance of 10
 *  km, other entries are measured only if their chords are within a millimetre
 *  of the k-th. (A single walk with the wider bound measures 10 times as many:
 *  its first bounds are far too great, and the range grows with their third
 *  power.) */
#include "../../../flatten/base/oj_alloc.h"
#include "../../pairs/selection/oj_equal_groups.h"
#include "ellipsoid_edge_distance.h"
#include "ellipsoid_pair_distance.h"

#include <string.h>

struct sphere_index
{
    struct oj_row_index shared;  /* distances in shared.args.relation are
                                    squared chords; on an ellipsoid they exclude
                                    nothing, and max_metres and min_metres
                                    decide */
    struct oj_sphere_side side;  /* the join side */
    struct oj_sphere_side input; /* input rows of the current batch */
    struct oj_tree3 tree;
    struct oj_equal_groups groups; /* the entries of tree */
    double *limit2; /* [features] own maximum distances as squared chords,
                       or NULL; not on an ellipsoid */

    /* On an ellipsoid only. */
    struct oj_geodesic *geodesic; /* NULL on the sphere */
    struct oj_ellipsoid ellipsoid;
    double max_metres, min_metres; /* distances of the relation */
    int has_edges; /* 1: the join side or the batch has lines or polygons */
};

/* --- index ---------------------------------------------------------------- */

static int supports_join_on_globe(const struct oj_relation *relation,
                                  const struct oj_flat *join_side,
                                  const struct oj_flat *input)
{
    return oj_relation_is_by_distance(relation) &&
           oj_relation_is_on_globe(relation) &&
           (input == NULL || oj_flat_has_points_only(input) ||
            (relation->metric == OJ_METRIC_ELLIPSOID &&
             oj_flat_has_points_only(join_side)));
}

static void free_sphere_index(struct oj_index *wrapped)
{
    struct sphere_index *self = (void *)wrapped;
    oj_equal_groups_free(&self->groups);
    oj_geodesic_close(self->geodesic);
    oj_free(self->limit2);
    oj_free(self->tree.node);
    oj_sphere_side_free(&self->side);
}

/* Sets *x, *y to the longitude and latitude of a feature's first vertex.
 * Returns 0 if the feature cannot have pairs. */
static int first_vertex_in_degrees(const void *user, int64_t feature, double *x,
                                   double *y)
{
    const struct oj_sphere_side *side = user;
    int64_t v, end;
    if (oj_sphere_box3_is_empty(&side->box[feature]) ||
        !oj_feature_may_pair(side->flat, feature))
        return 0;
    oj_flat_vertex_range(side->flat, feature, &v, &end);
    *x = remainder(side->flat->x[v], 360.0);
    *y = side->flat->y[v];
    return 1;
}

static oj_status build_tree(struct sphere_index *self, struct oj_order *order,
                            struct oj_error *err)
{
    OJ_TRY(oj_equal_groups_make(&self->groups, &self->shared.args, order, err));
    OJ_TRY(oj_sphere_tree3_reserve(&self->tree, self->groups.n, err));
    for (int64_t i = 0; i < self->groups.n; i++)
        self->tree.node[i] =
            self->side.box[oj_equal_groups_first_feature(&self->groups, i)];
    oj_sphere_tree3_fill(&self->tree);
    return OJ_OK;
}

static oj_status order_and_build_tree(struct sphere_index *self,
                                      struct oj_error *err)
{
    struct oj_order order = {0};
    oj_status status =
        oj_row_order(self->side.flat, &self->side, first_vertex_in_degrees,
                     self->shared.n_threads, &order, err);
    if (status == OJ_OK)
        status = build_tree(self, &order, err);
    oj_order_free(&order);
    return status;
}

/* --- one row -------------------------------------------------------------- */

/* State of the search for one input row. */
struct sphere_row_search
{
    struct sphere_index *self;
    struct oj_row_worker *worker;
    int64_t row, first_vertex, end_vertex;
    double limit2; /* entries whose squared chord is greater are skipped */
    /* On an ellipsoid only. */
    double metres;    /* maximum distance of the row */
    int by_geodesics; /* 1: entries are measured by geodesics; 0: by chords. A
                         nearest join searches twice: first by chords, whose
                         k-th then limits the search by geodesics */
    struct oj_rank_range ranks;
    struct oj_class_run run; /* the entries that can be in the answer */
};

static double squared_chord_limit_of_feature(const struct sphere_row_search *s,
                                             int32_t feature)
{
    const double *limit2 = s->self->limit2;
    if (limit2 != NULL && s->self->shared.input->max_distance == NULL &&
        limit2[feature] < s->limit2)
        return limit2[feature];
    return s->limit2;
}

/* Returns the squared chord from the row to a feature if it is at most limit2,
 * otherwise a greater number. */
static double measure_feature(const struct sphere_row_search *s,
                              int32_t feature, double limit2)
{
    const struct sphere_index *self = s->self;
    double least = INFINITY;
    for (int64_t v = s->first_vertex; v < s->end_vertex; v++)
    {
        double chord2 =
            oj_sphere_chord2_to_feature(&self->side, feature, self->input.at[v],
                                        limit2 < least ? limit2 : least);
        least = chord2 < least ? chord2 : least;
    }
    return least;
}

static void narrow_search_to_ranking(struct sphere_row_search *s)
{
    const struct oj_ranking *ranking = &s->worker->ranking;
    if (oj_relation_is_nearest(&s->self->shared.args.relation) &&
        ranking->bound < s->limit2)
        s->limit2 = ranking->bound;
}

/* Returns the run of those features of an entry (join features with equal
 * geometries, oj_equal_groups.h) that can be pairs of the row if they are near
 * enough. If the entry has several features, oj_equal_groups_add_pairs() tests
 * the other conditions later, one by one. If it has one, all conditions are
 * tested here, and only the length of the run counts: 1 or 0. */
static struct oj_equal_run
possible_features_of_entry(const struct sphere_row_search *s, int64_t entry)
{
    const struct sphere_index *self = s->self;
    const struct oj_row_index *shared = &self->shared;
    int32_t feature = oj_equal_groups_first_feature(&self->groups, entry);
    struct oj_equal_run run = {entry, entry + 1};
    int is_left_out;
    if (oj_equal_groups_count(&self->groups, entry) == 1)
        is_left_out = !oj_pair_filter_accepts(&shared->filter, s->row, feature);
    else
    {
        run = oj_equal_groups_find_run(&self->groups, shared, s->row, entry,
                                       s->ranks);
        is_left_out = run.first < run.end &&
                      shared->args.relation.exclude_same_geometry &&
                      oj_flat_same_geometry(shared->input, s->row,
                                            shared->args.join_side, feature);
    }
    if (is_left_out)
        run.end = run.first;
    return run;
}

/* Adds the features of an entry, which are equally far, to the ranking or the
 * answer. */
static oj_status
add_features_of_entry_as_pairs(const struct sphere_row_search *s, int64_t entry,
                               struct oj_equal_run run, double compared,
                               struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    const struct oj_equal_groups *groups = &self->groups;
    if (oj_equal_groups_count(groups, entry) == 1)
        return oj_row_add_pair(&self->shared, s->worker, s->row,
                               oj_equal_groups_first_feature(groups, entry),
                               compared, err);
    return oj_equal_groups_add_pairs(groups, &self->shared, s->worker, s->row,
                                     run, compared, &s->worker->n_candidates,
                                     err);
}

static oj_status measure_entry_and_add_to_ranking(struct sphere_row_search *s,
                                                  int64_t entry,
                                                  struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    int32_t feature = oj_equal_groups_first_feature(&self->groups, entry);
    double limit2 = squared_chord_limit_of_feature(s, feature), least;
    struct oj_equal_run run;
    OJ_TRY(oj_row_poll_cancel(&self->shared, s->worker, err));
    s->worker->n_candidates++;
    run = possible_features_of_entry(s, entry);
    if (run.first >= run.end)
        return OJ_OK;
    least = measure_feature(s, feature, limit2);
    if (!(least <= limit2) || least < self->shared.args.relation.min_distance)
        return OJ_OK;
    OJ_TRY(add_features_of_entry_as_pairs(s, entry, run, least, err));
    narrow_search_to_ranking(s);
    return OJ_OK;
}

/* --- one row on an ellipsoid ---------------------------------------------- */

static struct oj_ellipsoid_sides
ellipsoid_sides_of_index(const struct sphere_index *self)
{
    struct oj_ellipsoid_sides sides = {&self->ellipsoid, self->geodesic,
                                       &self->input, &self->side};
    return sides;
}

/* Returns an upper bound, in semi-major axes, of the distance that is measured
 * between points with this squared chord. */
static double most_distance_of_chord2(const struct sphere_index *self,
                                      double chord2)
{
    return oj_ellipsoid_most_distance(&self->ellipsoid, chord2) +
           (self->has_edges ? OJ_EDGE_FAR_ERROR : 0.0);
}

static double most_metres_of_feature(const struct sphere_row_search *s,
                                     int32_t feature)
{
    const double *own = s->self->side.flat->max_distance;
    if (own != NULL && s->self->shared.input->max_distance == NULL &&
        own[feature] < s->metres)
        return own[feature];
    return s->metres;
}

static double most_chord2_of_metres(const struct sphere_index *self,
                                    double metres)
{
    return oj_ellipsoid_most_chord2(metres / self->ellipsoid.semi_major);
}

/* Returns the maximum squared chord of pairs with a feature: that of the
 * search, or of the feature's own maximum distance if this is less. */
static double most_chord2_of_feature(const struct sphere_row_search *s,
                                     int32_t feature)
{
    double own2;
    if (s->self->side.flat->max_distance == NULL)
        return s->limit2;
    own2 = most_chord2_of_metres(s->self, most_metres_of_feature(s, feature));
    return own2 < s->limit2 ? own2 : s->limit2;
}

/* Returns 1 if bounds of the distance to a feature show that the distance is
 * within the limits of the join. */
static int is_distance_surely_within_limits(const struct sphere_row_search *s,
                                            int32_t feature,
                                            const struct oj_chord2_range *chord)
{
    const struct sphere_index *self = s->self;
    double most = most_metres_of_feature(s, feature);
    double unit = self->ellipsoid.semi_major;
    return (self->min_metres <= 0.0 ||
            oj_ellipsoid_least_distance(chord->least2) * unit >=
                self->min_metres) &&
           (most == INFINITY ||
            most_distance_of_chord2(self, chord->most2) * unit <= most);
}

/* First walk: adds the features of an entry to the ranking with the upper bound
 * of their chord, if they surely are within the limits of the join. */
static oj_status rank_chord_of_entry(struct sphere_row_search *s, int64_t entry,
                                     struct oj_equal_run run,
                                     const struct oj_chord2_range *chord,
                                     struct oj_error *err)
{
    int32_t feature = oj_equal_groups_first_feature(&s->self->groups, entry);
    if (!(chord->most2 < INFINITY) ||
        !is_distance_surely_within_limits(s, feature, chord))
        return OJ_OK;
    OJ_TRY(add_features_of_entry_as_pairs(s, entry, run, chord->most2, err));
    narrow_search_to_ranking(s);
    return OJ_OK;
}

/* Measures the features of an entry by geodesics and adds them to the ranking
 * or the answer if they are within the distances of the join. */
static oj_status measure_entry_by_geodesics(struct sphere_row_search *s,
                                            int64_t entry,
                                            struct oj_equal_run run,
                                            double most2, struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    const struct oj_ellipsoid_sides sides = ellipsoid_sides_of_index(self);
    int32_t feature = oj_equal_groups_first_feature(&self->groups, entry);
    double limit2, metres;
    if (most_distance_of_chord2(self, most2) * self->ellipsoid.semi_major <
        self->min_metres)
        return OJ_OK;
    metres = oj_ellipsoid_find_nearest_points(&sides, s->row, feature, most2)
                 .distance;
    if (!(metres <= most_metres_of_feature(s, feature)) ||
        metres < self->min_metres)
        return OJ_OK;
    OJ_TRY(add_features_of_entry_as_pairs(s, entry, run, metres, err));
    if (!oj_relation_is_nearest(&self->shared.args.relation))
        return OJ_OK;
    limit2 = most_chord2_of_metres(self, s->worker->ranking.bound);
    s->limit2 = limit2 < s->limit2 ? limit2 : s->limit2;
    return OJ_OK;
}

static oj_status measure_entry_on_ellipsoid(struct sphere_row_search *s,
                                            int64_t entry, struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    int32_t feature = oj_equal_groups_first_feature(&self->groups, entry);
    struct oj_equal_run run;
    struct oj_chord2_range chord;
    double limit2 = most_chord2_of_feature(s, feature);
    OJ_TRY(oj_row_poll_cancel(&self->shared, s->worker, err));
    s->worker->n_candidates += s->by_geodesics;
    run = possible_features_of_entry(s, entry);
    if (run.first >= run.end)
        return OJ_OK;
    if (self->has_edges)
    {
        const struct oj_ellipsoid_sides sides = ellipsoid_sides_of_index(self);
        chord = oj_ellipsoid_chord_range(&sides, s->row, feature, limit2);
    }
    else
        chord.least2 = chord.most2 = measure_feature(s, feature, limit2);
    if (!(chord.least2 <= limit2))
        return OJ_OK;
    return s->by_geodesics
               ? measure_entry_by_geodesics(s, entry, run, chord.most2, err)
               : rank_chord_of_entry(s, entry, run, &chord, err);
}

/* Ends the first walk. Limits the search by the k-th chord, since an entry
 * beyond the greatest distance of this chord is not among the k nearest. Then
 * empties the ranking, which holds distances in the second walk. */
static void limit_search_by_kth_chord(struct sphere_row_search *s)
{
    const struct sphere_index *self = s->self;
    struct oj_ranking *ranking = &s->worker->ranking;
    double kth2, limit2 = most_chord2_of_metres(self, s->metres);
    oj_ranking_finish(ranking);
    kth2 = oj_ranking_kth_distance(ranking);
    s->limit2 =
        kth2 < INFINITY
            ? oj_ellipsoid_most_chord2(most_distance_of_chord2(self, kth2))
            : limit2;
    s->limit2 = limit2 < s->limit2 ? limit2 : s->limit2;
    s->by_geodesics = 1;
    ranking->keep_ties = self->shared.args.relation.ties == OJ_TIES_ALL;
    oj_ranking_start(ranking);
}

/* --- the search ----------------------------------------------------------- */

static oj_status search_tree_of_entries(struct sphere_row_search *s,
                                        struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    const struct oj_tree3 *tree = &self->tree;
    const struct oj_box3 *box = &self->input.box[s->row];
    struct oj_box_child stack[OJ_BOX_STACK];
    int depth = tree->levels.n_levels > 0;
    stack[0] = (struct oj_box_child){0.0, 0, tree->levels.n_levels - 1};
    if (s->run.last < s->run.first)
        return OJ_OK;
    if (self->groups.classes.first != NULL)
        stack[0] = oj_box_levels_common_ancestor(s->run.first, s->run.last);
    while (depth > 0)
    {
        struct oj_box_child at = stack[--depth];
        if (at.d2 > s->limit2 ||
            !oj_class_run_meets_node(&s->run, at.node, 3 * at.level))
            continue;
        if (at.level > 0)
            depth =
                oj_sphere_tree3_push(tree, at, box, s->limit2, stack, depth);
        else if (self->geodesic != NULL)
            OJ_TRY(measure_entry_on_ellipsoid(s, at.node, err));
        else
            OJ_TRY(measure_entry_and_add_to_ranking(s, at.node, err));
    }
    return OJ_OK;
}

static oj_status search_row(struct oj_row_index *shared,
                            struct oj_row_worker *worker, int64_t row,
                            struct oj_error *err)
{
    const struct oj_flat *flat = shared->input;
    struct sphere_index *self = (void *)shared;
    struct sphere_row_search s = {
        .self = self,
        .worker = worker,
        .row = row,
        .limit2 = shared->args.relation.max_distance,
        .ranks = oj_equal_groups_ranks_of_row(&self->groups, shared, row),
        .run = oj_class_runs_find(&self->groups.classes, flat, row)};
    /* Rows consist of points, so every vertex is a point part. */
    oj_flat_vertex_range(flat, row, &s.first_vertex, &s.end_vertex);
    if (flat->max_distance != NULL)
        s.limit2 = oj_sphere_chord2_of_metres(flat->max_distance[row]);
    else if (self->limit2 != NULL)
        s.limit2 = 5.0; /* no limit: squared chords are at most 4 */
    return search_tree_of_entries(&s, err);
}

static oj_status search_row_on_ellipsoid(struct oj_row_index *shared,
                                         struct oj_row_worker *worker,
                                         int64_t row, struct oj_error *err)
{
    const struct oj_flat *flat = shared->input;
    struct sphere_index *self = (void *)shared;
    struct sphere_row_search s = {
        .self = self,
        .worker = worker,
        .row = row,
        .metres = self->max_metres,
        .by_geodesics = !oj_relation_is_nearest(&shared->args.relation),
        .ranks = oj_equal_groups_ranks_of_row(&self->groups, shared, row),
        .run = oj_class_runs_find(&self->groups.classes, flat, row)};
    oj_flat_vertex_range(flat, row, &s.first_vertex, &s.end_vertex);
    if (flat->max_distance != NULL)
        s.metres = flat->max_distance[row];
    else if (self->side.flat->max_distance != NULL)
        s.metres = INFINITY;
    s.limit2 = most_chord2_of_metres(self, s.metres);
    if (!s.by_geodesics)
    {
        worker->ranking.keep_ties = 0; /* only the k-th chord is needed */
        OJ_TRY(search_tree_of_entries(&s, err));
        limit_search_by_kth_chord(&s);
    }
    return search_tree_of_entries(&s, err);
}

/* --- a batch -------------------------------------------------------------- */

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct sphere_index *self = (void *)shared;
    const struct oj_relation *relation = &shared->args.relation;
    int is_of_points = oj_flat_has_points_only(shared->input);
    self->has_edges =
        !is_of_points || !oj_flat_has_points_only(shared->args.join_side);
    OJ_TRY(oj_sphere_side_build(
        &self->input, shared->input, oj_relation_ellipsoid(relation),
        self->geodesic, !is_of_points, relation->distance_to == OJ_TO_INTERIOR,
        shared->n_threads, err));
    return oj_row_sort_input(shared, &self->input, first_vertex_in_degrees,
                             err);
}

static void end_batch(struct oj_row_index *shared)
{
    oj_sphere_side_free(&((struct sphere_index *)(void *)shared)->input);
}

static const struct oj_row_method sphere = {
    .worker_size = sizeof(struct oj_row_worker),
    .start = start_batch,
    .row_of = oj_row_at_position,
    .search = search_row,
    .end = end_batch,
    .measure_of = oj_sphere_metres_of_chord2};

static const struct oj_row_method ellipsoid = {
    .worker_size = sizeof(struct oj_row_worker),
    .start = start_batch,
    .row_of = oj_row_at_position,
    .search = search_row_on_ellipsoid,
    .end = end_batch};

/* Moves the distances of the relation to the index, since the ranking compares
 * chords first, then metres. */
static oj_status prepare_ellipsoid(struct sphere_index *self,
                                   struct oj_error *err)
{
    struct oj_relation *relation = &self->shared.args.relation;
    self->ellipsoid = relation->ellipsoid;
    self->max_metres = relation->max_distance;
    self->min_metres = relation->min_distance;
    relation->max_distance = INFINITY;
    relation->min_distance = 0.0;
    return oj_geodesic_open(&self->ellipsoid, &self->geodesic, err);
}

static oj_status build_sphere_index(struct oj_index *wrapped,
                                    const struct oj_index_args *args,
                                    struct oj_stats *stats,
                                    struct oj_error *err)
{
    const struct oj_ellipsoid *of = oj_relation_ellipsoid(&args->relation);
    struct sphere_index *self =
        oj_row_index_begin(wrapped, of != NULL ? &ellipsoid : &sphere, args);
    const struct oj_flat *flat = args->join_side;
    if (of != NULL)
        OJ_TRY(prepare_ellipsoid(self, err));
    else
        oj_sphere_relation_to_chords(&self->shared.args.relation);
    OJ_TRY(oj_sphere_side_build(&self->side, flat, of, self->geodesic, 1,
                                args->relation.distance_to == OJ_TO_INTERIOR,
                                args->options.n_threads, err));
    if (flat->max_distance != NULL && of == NULL)
    {
        OJ_NEW(self->limit2, flat->n_features, err);
        for (int64_t f = 0; f < flat->n_features; f++)
            self->limit2[f] = oj_sphere_chord2_of_metres(flat->max_distance[f]);
    }
    OJ_TRY(order_and_build_tree(self, err));
    stats->index_bytes += oj_sphere_side_bytes(&self->side) +
                          oj_equal_groups_bytes(&self->groups);
    return OJ_OK;
}

const struct oj_engine oj_cpu_sphere = {.name = "distances on the globe",
                                        .supports = supports_join_on_globe,
                                        .index_size =
                                            sizeof(struct sphere_index),
                                        .build = build_sphere_index,
                                        .join = oj_row_join,
                                        .free_side = free_sphere_index,
                                        .free_batches = oj_row_batches_free,
                                        .set_options = oj_row_set_options};
