/* Two engines for distances between features of any kinds; cpu_pair_distance.h
 * measures the pairs. The engine BY_TREE makes the features of the join side
 * entries of one tree, and searches it for every input feature, the nearest
 * child first. The engine BY_CLASS, which answers if all classes of -on are
 * small, lists the join features class by class, and measures every input
 * feature, in the order of the rows, to all join features of its class.
 *
 * The tree:
 *
 *  entry          0   1     2  ...   features by run (oj_class_runs.h), then in
 *                                    Morton order of their centres
 *  feature      [ 7   3 5   9  ...   ordinals
 *  x, y         [ .   . .   .  ...   coordinates, if all features are points
 *
 * Features of equal geometry are one entry (oj_equal_groups.h). In the engine
 * BY_CLASS, entries are the positions in struct oj_class_features. On
 * SpatialBench's query 7 (6 million points, as many keys), the join by classes
 * takes a seventh of the time of cpu_nearest_for_points.c, which searches the
 * segments of each class and would otherwise answer.
 *
 * If pairs are ranked by texts or vectors (-op similar within a distance), the
 * features in reach are visited in any order; a feature that can no longer be
 * among the k most similar is not measured.
 *
 * Features that cannot have pairs are left out: those without parts, or for
 * which oj_feature_may_pair() returns 0 (for example a class below 0, or an own
 * maximum distance that is negative or NaN). */
#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/cpu_packed_tree_walk.h"
#include "../../foundations/kernels/oj_segment.h"
#include "../../pairs/selection/oj_class_features.h"
#include "../../pairs/selection/oj_equal_groups.h"
#include "../../pairs/selection/oj_similarity_bound.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"
#include "cpu_pair_distance.h"

#include <string.h>

/* Values of `variant` in struct oj_engine. */
enum
{
    BY_TREE = 0,
    BY_CLASS
};

struct distance_index
{
    struct oj_row_index shared;
    struct oj_features features; /* the join side */
    struct oj_tree tree;
    struct oj_equal_groups groups;    /* entries of the tree */
    struct oj_class_features classes; /* entries of the engine BY_CLASS, which
                                         has neither tree nor groups */
    double *x, *y;                    /* [entries] coordinates; NULL unless all
                                         features are points */

    /* [n_nodes * OJ_FANOUT] for each child, the greatest own maximum distance
     * of the features below it, squared, in the coordinates of the tree
     * (oj_tree_reach2()). NULL if features have no maximum distances of their
     * own. */
    float *reach2;

    /* [n_nodes * OJ_FANOUT] for each child, the lowest and the highest tie rank
     * below it. last_rank is NULL unless a pair needs a join FID above the
     * input FID. */
    int32_t *first_rank, *last_rank;

    /* The current batch. */
    struct oj_features input;
};

/* State of a thread. */
struct distance_worker
{
    struct oj_row_worker shared;
    struct oj_pair_scratch scratch;
    struct oj_similarity_bound similarity; /* used if texts rank the pairs */
};

/* --- index ---------------------------------------------------------------- */

static int supports_planar_distance_join(const struct oj_relation *relation,
                                         const struct oj_flat *join_side,
                                         const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return (oj_relation_is_by_distance(relation) ||
            (oj_relation_is_similar(relation) &&
             relation->max_distance < INFINITY)) &&
           relation->metric == OJ_METRIC_PLANAR;
}

/* Mean number of vertices of a join feature up to which the engine BY_CLASS
 * measures points to all segments of their class. Where features have more,
 * cpu_nearest_for_points.c answers, which searches the segments of a class. */
#define FEW_VERTICES 16

static int has_few_vertices(const struct oj_flat *flat)
{
    return oj_flat_is_points(flat) ||
           flat->n_vertices <= FEW_VERTICES * flat->n_features;
}

static int has_only_points(const struct oj_flat *input)
{
    return input == NULL || (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0;
}

static int supports_distance_join_by_class(const struct oj_relation *relation,
                                           const struct oj_flat *join_side,
                                           const struct oj_flat *input)
{
    return join_side->on_class != NULL &&
           oj_relation_is_by_distance(relation) &&
           relation->metric == OJ_METRIC_PLANAR &&
           (has_few_vertices(join_side) || !has_only_points(input));
}

static void free_distance_index(struct oj_index *wrapped)
{
    struct distance_index *self = (void *)wrapped;
    oj_tree_free(&self->tree);
    oj_equal_groups_free(&self->groups);
    oj_class_features_free(&self->classes);
    oj_free(self->x);
    oj_free(self->y);
    oj_free(self->reach2);
    oj_free(self->first_rank);
    oj_free(self->last_rank);
    oj_distance_features_free(&self->features);
}

static int centre_of_feature(const void *side, int64_t feature, double *x,
                             double *y)
{
    const struct oj_features *features = side;
    struct oj_box box = oj_distance_features_box(features, feature);
    *x = 0.5 * box.x0 + 0.5 * box.x1;
    *y = 0.5 * box.y0 + 0.5 * box.y1;
    return !oj_box_is_empty(&box) &&
           oj_feature_may_pair(features->flat, feature);
}

/* --- tree ----------------------------------------------------------------- */

static oj_status fill_entries_and_build_tree(struct distance_index *self,
                                             struct oj_error *err)
{
    int64_t n = self->groups.n;
    struct oj_box *box;
    oj_status status;
    if (oj_flat_is_points(self->features.flat))
    {
        OJ_NEW(self->x, n, err);
        OJ_NEW(self->y, n, err);
    }
    OJ_NEW(box, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        box[i] = oj_distance_features_box(
            &self->features, oj_equal_groups_first_feature(&self->groups, i));
        if (self->x != NULL)
        {
            self->x[i] = box[i].x0;
            self->y[i] = box[i].y0;
        }
    }
    status = oj_tree_build(&self->tree, self->shared.n_threads, n, box, err);
    oj_free(box);
    return status;
}

/* Sets first_rank, last_rank and reach2 of entry i. An unused slot beyond the
 * last entry gets limits that no search meets. */
static void fill_limits_of_entry(struct distance_index *self, int64_t i)
{
    const double *max_distance = self->features.flat->max_distance;
    const struct oj_equal_groups *groups = &self->groups;
    int is_there = i < groups->n;
    int64_t first = is_there && groups->first != NULL ? groups->first[i] : i;
    int64_t n = is_there ? oj_equal_groups_count(groups, i) : 0;
    int32_t lowest = INT32_MAX, highest = -1;
    for (int64_t at = first; at < first + n; at++)
    {
        int32_t rank =
            oj_tie_rank(self->shared.args.tie_rank, groups->feature[at]);
        lowest = rank < lowest ? rank : lowest;
        highest = rank > highest ? rank : highest;
    }
    self->first_rank[i] = lowest;
    if (self->last_rank != NULL)
        self->last_rank[i] = highest;
    if (self->reach2 != NULL)
        self->reach2[i] =
            is_there ? oj_tree_reach2(&self->tree,
                                      max_distance[groups->feature[first]])
                     : 0.0f;
}

static void add_limits_of_child(struct distance_index *self, int64_t at,
                                int64_t from)
{
    if (self->first_rank[from] < self->first_rank[at])
        self->first_rank[at] = self->first_rank[from];
    if (self->last_rank != NULL && self->last_rank[from] > self->last_rank[at])
        self->last_rank[at] = self->last_rank[from];
    if (self->reach2 != NULL && self->reach2[from] > self->reach2[at])
        self->reach2[at] = self->reach2[from];
}

/* Computes reach2, first_rank and last_rank from the entries up to the root. */
static oj_status fill_limits_of_tree(struct distance_index *self,
                                     struct oj_error *err)
{
    const struct oj_tree *tree = &self->tree;
    int64_t n = tree->n_nodes * OJ_FANOUT;
    OJ_NEW(self->first_rank, n, err);
    if (self->groups.fids.n > 0 &&
        self->shared.args.relation.unordered_pairs > 0)
        OJ_NEW(self->last_rank, n, err);
    if (self->features.flat->max_distance != NULL)
        OJ_NEW(self->reach2, n, err);
    for (int64_t i = 0; i < n; i++)
        fill_limits_of_entry(self, i);
    for (int level = 1; level < tree->n_levels; level++)
    {
        int64_t below = tree->level_first[level - 1] * OJ_FANOUT;
        int64_t first = tree->level_first[level] * OJ_FANOUT;
        for (int64_t i = 0; i < first - below; i++)
            add_limits_of_child(self, first + i / OJ_FANOUT, below + i);
    }
    return OJ_OK;
}

static oj_status build_tree(struct distance_index *self, struct oj_error *err)
{
    struct oj_order order = {0};
    oj_status status =
        oj_row_order(self->features.flat, &self->features, centre_of_feature,
                     self->shared.n_threads, &order, err);
    if (status == OJ_OK)
        status = oj_equal_groups_make(&self->groups, &self->shared.args, &order,
                                      err);
    oj_order_free(&order);
    if (status == OJ_OK)
        status = fill_entries_and_build_tree(self, err);
    return status == OJ_OK ? fill_limits_of_tree(self, err) : status;
}

/* --- classes -------------------------------------------------------------- */

static int may_feature_pair(const void *side, int64_t feature)
{
    double x, y;
    return centre_of_feature(side, feature, &x, &y);
}

static oj_status list_features_by_class(struct distance_index *self,
                                        struct oj_error *err)
{
    const struct oj_flat *flat = self->features.flat;
    struct oj_class_features *classes = &self->classes;
    int64_t n;
    OJ_TRY(oj_class_features_make(classes, flat, self->shared.args.tie_rank,
                                  may_feature_pair, &self->features, err));
    if (!oj_flat_is_points(flat))
        return OJ_OK;
    n = classes->first[classes->n_classes];
    OJ_NEW(self->x, n, err);
    OJ_NEW(self->y, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        self->x[i] = flat->x[classes->feature[i]];
        self->y[i] = flat->y[classes->feature[i]];
    }
    return OJ_OK;
}

static int64_t bytes_of_entries(const struct distance_index *self)
{
    int64_t a_child = (int64_t)sizeof *self->first_rank;
    int64_t n = self->groups.n;
    if (self->classes.first != NULL)
        n = self->classes.first[self->classes.n_classes];
    if (self->reach2 != NULL)
        a_child += (int64_t)sizeof *self->reach2;
    if (self->last_rank != NULL)
        a_child += (int64_t)sizeof *self->last_rank;
    return oj_tree_bytes(&self->tree) + oj_equal_groups_bytes(&self->groups) +
           oj_class_features_bytes(&self->classes) +
           self->tree.n_nodes * OJ_FANOUT * a_child +
           (self->x != NULL ? n * 2 * (int64_t)sizeof *self->x : 0);
}

/* side: "input" or "join", for messages. */
static oj_status build_features(const struct oj_row_index *index,
                                const char *side, const struct oj_flat *flat,
                                struct oj_features *out, struct oj_error *err)
{
    struct oj_error reason;
    oj_status status = oj_distance_features_build(
        out, flat, index->args.relation.distance_to == OJ_TO_INTERIOR,
        index->n_threads, &reason);
    if (status == OJ_ERR_LIMIT)
        return oj_fail(err, status, "the %s layer: %.900s", side,
                       reason.message);
    return status == OJ_OK ? OJ_OK : oj_fail(err, status, "%s", reason.message);
}

/* --- one row -------------------------------------------------------------- */

/* State of the search for an input row. */
struct distance_row_search
{
    struct distance_index *self;
    struct distance_worker *worker;
    int64_t row;
    double x, y;  /* coordinates of the row if it is a single point */
    float reach2; /* children whose squared distance is greater, in coordinates
                     of the tree, are skipped */
    /* Tie ranks of the features that can still be in the answer. They are
     * limited by the order of FIDs that the join requires and, in a join of the
     * one nearest feature, by a feature found at distance 0, which only a
     * feature of a lower rank can replace. */
    struct oj_rank_range ranks;
    struct oj_class_run run; /* the entries that can be in the answer */
};

/* Returns the maximum distance at which a feature can still be in the answer,
 * or a negative number if it can be at no distance. */
static double max_distance_for_feature(const struct distance_row_search *s,
                                       int64_t feature)
{
    const struct oj_row_index *index = &s->self->shared;
    double bound = s->worker->shared.ranking.bound;
    double limit = oj_pair_max_distance(&index->args.relation, index->input,
                                        s->row, index->args.join_side, feature);
    if (!oj_relation_is_nearest(&index->args.relation))
        return limit;
    return limit < bound ? limit : bound;
}

static double measure_row_to_feature(const struct distance_row_search *s,
                                     int64_t entry, int64_t feature,
                                     double limit)
{
    const struct distance_index *self = s->self;
    struct oj_pair_scratch *scratch = &s->worker->scratch;
    if (self->x != NULL && oj_flat_is_points(self->shared.input))
    {
        scratch->n_refined++;
        return oj_point_distance(s->x, s->y, self->x[entry], self->y[entry]);
    }
    return oj_pair_distance(&self->input, s->row, &self->features, feature,
                            self->shared.args.relation.distance_to ==
                                OJ_TO_INTERIOR,
                            limit, scratch);
}

/* Reduces the reach and the tie ranks of the search to what the ranking can
 * still accept. */
static void narrow_search_to_ranking(struct distance_row_search *s)
{
    const struct distance_index *self = s->self;
    const struct oj_relation *relation = &self->shared.args.relation;
    const struct oj_ranking *ranking = &s->worker->shared.ranking;
    if (!oj_relation_is_nearest(relation) || self->classes.first != NULL)
        return;
    s->reach2 = oj_tree_reach2(&self->tree, ranking->bound);
    if (ranking->bound == 0.0 && relation->k == 1 &&
        relation->ties == OJ_TIES_FIRST && ranking->n > 0 &&
        ranking->list[0].rank < s->ranks.end)
        s->ranks.end = ranking->list[0].rank;
}

static oj_status
measure_feature_and_add_to_ranking(struct distance_row_search *s, int64_t entry,
                                   int32_t feature, struct oj_error *err)
{
    const struct distance_index *self = s->self;
    const struct oj_relation *relation = &self->shared.args.relation;
    const struct oj_pair_filter *filter = &self->shared.filter;
    double limit = max_distance_for_feature(s, feature), distance;
    if (!(limit >= 0.0))
        return OJ_OK;
    if (self->x == NULL && !oj_pair_filter_accepts(filter, s->row, feature))
        return OJ_OK;
    distance = measure_row_to_feature(s, entry, feature, limit);
    /* An infinite distance is an overflow, which makes no pair even if the
     * limit is infinite. */
    if (!(distance <= limit && distance < INFINITY) ||
        distance < relation->min_distance)
        return OJ_OK;
    if (self->x != NULL && !oj_pair_filter_accepts(filter, s->row, feature))
        return OJ_OK;
    OJ_TRY(oj_row_add_pair(&self->shared, &s->worker->shared, s->row, feature,
                           distance, err));
    narrow_search_to_ranking(s);
    return OJ_OK;
}

/* --- one row, among the features of its class ----------------------------- */

/* The first entry of a row's class is prefetched while the row ROWS_AHEAD rows
 * before it is joined; the number of this entry (classes.first) is prefetched
 * another ROWS_AHEAD rows earlier. */
#define ROWS_AHEAD 8

static void prefetch_classes_of_later_row(const struct distance_index *self,
                                          int64_t row)
{
    const struct oj_flat *input = self->shared.input;
    const struct oj_class_features *classes = &self->classes;
    int64_t first, end;
    if (row + 2 * ROWS_AHEAD >= input->n_features)
        return;
    first = input->on_class[row + 2 * ROWS_AHEAD];
    if (first >= 0 && first < classes->n_classes)
        __builtin_prefetch(&classes->first[first]);
    oj_class_features_find(classes, input->on_class[row + ROWS_AHEAD], &first,
                           &end);
    if (first >= end)
        return;
    __builtin_prefetch(&classes->feature[first]);
    if (self->x == NULL)
        return;
    __builtin_prefetch(&self->x[first]);
    __builtin_prefetch(&self->y[first]);
}

static oj_status search_class_of_row(struct oj_row_index *shared,
                                     struct oj_row_worker *of_row, int64_t row,
                                     struct oj_error *err)
{
    struct distance_index *self = (void *)shared;
    struct distance_worker *worker = (void *)of_row;
    struct distance_row_search s = {.self = self, .worker = worker, .row = row};
    struct oj_box box;
    int64_t first, end;
    prefetch_classes_of_later_row(self, row);
    oj_class_features_find(&self->classes, shared->input->on_class[row], &first,
                           &end);
    if (first >= end)
        return OJ_OK;
    box = oj_distance_features_box(&self->input, row);
    if (oj_box_is_empty(&box) || !oj_feature_may_pair(shared->input, row))
        return OJ_OK;
    s.x = box.x0;
    s.y = box.y0;
    worker->scratch.cancel = shared->args.options.cancel;
    worker->scratch.listed = worker->scratch.n_refined = 0;
    for (int64_t i = first; i < end; i++)
        OJ_TRY(measure_feature_and_add_to_ranking(
            &s, i, self->classes.feature[i], err));
    of_row->n_candidates += worker->scratch.n_refined;
    return OJ_OK;
}

/* --- one row, with the tree ----------------------------------------------- */

/* Measures the distance to one feature of an entry of several equal geometries,
 * and adds all features of the entry that make a pair at this distance to the
 * ranking. */
static oj_status
measure_group_of_equal_geometries(struct distance_row_search *s, int64_t entry,
                                  struct oj_error *err)
{
    const struct distance_index *self = s->self;
    const struct oj_relation *relation = &self->shared.args.relation;
    const struct oj_equal_groups *groups = &self->groups;
    struct oj_equal_run run = oj_equal_groups_find_run(groups, &self->shared,
                                                       s->row, entry, s->ranks);
    int32_t feature;
    double limit, distance;
    if (run.first >= run.end)
        return OJ_OK;
    feature = groups->feature[run.first];
    limit = max_distance_for_feature(s, feature);
    if (!(limit >= 0.0) ||
        (relation->exclude_same_geometry &&
         oj_flat_same_geometry(self->shared.input, s->row, self->features.flat,
                               feature)))
        return OJ_OK;
    distance = measure_row_to_feature(s, entry, feature, limit);
    if (!(distance <= limit && distance < INFINITY) ||
        distance < relation->min_distance)
        return OJ_OK;
    OJ_TRY(oj_equal_groups_add_pairs(groups, &self->shared, &s->worker->shared,
                                     s->row, run, distance,
                                     &s->worker->scratch.n_refined, err));
    narrow_search_to_ranking(s);
    return OJ_OK;
}

static oj_status measure_entry_and_add_to_ranking(struct distance_row_search *s,
                                                  int64_t entry,
                                                  struct oj_error *err)
{
    const struct oj_equal_groups *groups = &s->self->groups;
    OJ_TRY(oj_row_poll_cancel(&s->self->shared, &s->worker->shared, err));
    return oj_equal_groups_count(groups, entry) > 1
               ? measure_group_of_equal_geometries(s, entry, err)
               : measure_feature_and_add_to_ranking(
                     s, entry, oj_equal_groups_first_feature(groups, entry),
                     err);
}

/* Starts a descent at the lowest node above all entries of the row's class, or
 * at the root if there are no classes. If no entry has the row's class, the
 * descent is empty. */
OJ_INLINE void begin_descent(const struct distance_row_search *s,
                             const struct oj_box *box,
                             struct oj_tree_descent *descent)
{
    oj_tree_descent_begin(descent, &s->self->tree, box);
    if (s->run.last < s->run.first)
        descent->depth = 0;
    else if (s->self->groups.classes.first != NULL)
        descent->stack[0] = oj_tree_common_ancestor(s->run.first, s->run.last);
}

/* Returns 1 if no tie rank below a child can be in the answer. The root is no
 * child of a node, has no slot in first_rank, and must not be passed. */
OJ_INLINE int has_no_rank_below(const struct distance_row_search *s,
                                const struct oj_tree_child *v)
{
    const struct distance_index *self = s->self;
    int64_t at = self->tree.level_first[v->level + 1] * OJ_FANOUT + v->child;
    return self->first_rank[at] >= s->ranks.end ||
           (self->last_rank != NULL && self->last_rank[at] < s->ranks.from);
}

OJ_INLINE oj_status search_tree_by_distance(struct distance_row_search *s,
                                            const struct oj_box *box,
                                            struct oj_error *err)
{
    const struct distance_index *self = s->self;
    struct oj_tree_descent descent;
    int root = self->tree.n_levels - 1;
    begin_descent(s, box, &descent);
    while (descent.depth > 0)
    {
        struct oj_tree_child v = descent.stack[--descent.depth];
        int64_t at;
        if (v.d2 > s->reach2 ||
            !oj_class_run_meets_node(&s->run, v.child, 3 * (v.level + 1)))
            continue;
        if ((s->ranks.end < INT32_MAX || s->ranks.from > 0) && v.level < root &&
            has_no_rank_below(s, &v))
            continue;
        if (v.level < 0)
        {
            OJ_TRY(measure_entry_and_add_to_ranking(s, v.child, err));
            continue;
        }
        at = self->tree.level_first[v.level] + v.child;
        oj_tree_descent_push(
            &descent, &self->tree.node[at], v, s->reach2,
            self->reach2 != NULL ? self->reach2 + at * OJ_FANOUT : NULL, 1);
    }
    return OJ_OK;
}

/* --- one row, ranked by texts or vectors ---------------------------------- */

/* Returns 1 if the distance from the row to the entry is finite and at most the
 * maximum distance. */
static int is_entry_in_reach(const struct distance_row_search *s, int64_t entry)
{
    int32_t feature = oj_equal_groups_first_feature(&s->self->groups, entry);
    double limit = max_distance_for_feature(s, feature);
    double distance = limit >= 0.0
                          ? measure_row_to_feature(s, entry, feature, limit)
                          : INFINITY;
    return distance <= limit && distance < INFINITY;
}

/* Adds the features of an entry to the ranking, with their similarity, if the
 * entry is in reach and the other conditions hold. The distance of two points
 * costs less than the other conditions and is tested before them; distances of
 * shapes are tested after them. */
OJ_INLINE oj_status rank_entry_by_similarity(struct distance_row_search *s,
                                             int64_t entry,
                                             struct oj_error *err)
{
    const struct distance_index *self = s->self;
    const struct oj_row_index *shared = &self->shared;
    struct oj_row_worker *worker = &s->worker->shared;
    int has_texts = shared->args.relation.n_similar > 0;
    int is_point = self->x != NULL && oj_flat_is_points(shared->input);
    int is_in_reach = 0;
    struct oj_equal_run run = oj_equal_groups_find_run(&self->groups, shared,
                                                       s->row, entry, s->ranks);
    for (int64_t i = run.first; i < run.end; i++)
    {
        int32_t feature = self->groups.feature[i];
        OJ_TRY(oj_row_poll_cancel(shared, worker, err));
        if (has_texts && !oj_similarity_bound_allows(&s->worker->similarity,
                                                     &worker->ranking, feature))
            continue;
        if (!is_point &&
            !oj_pair_filter_accepts(&shared->filter, s->row, feature))
            continue;
        if (!is_in_reach && !is_entry_in_reach(s, entry))
            return OJ_OK;
        is_in_reach = 1;
        if (is_point &&
            !oj_pair_filter_accepts(&shared->filter, s->row, feature))
            continue;
        OJ_TRY(oj_row_add_pair(
            shared, worker, s->row, feature,
            oj_pair_similar_measure(&shared->args.relation, shared->input,
                                    s->row, shared->args.join_side, feature),
            err));
    }
    return OJ_OK;
}

/* Ranks the features of all entries within the maximum distance by their
 * similarity. */
OJ_INLINE oj_status rank_entries_in_reach(struct distance_row_search *s,
                                          const struct oj_box *box,
                                          struct oj_error *err)
{
    const struct distance_index *self = s->self;
    struct oj_tree_descent descent;
    begin_descent(s, box, &descent);
    if (descent.depth > 0 && self->shared.args.relation.n_similar > 0)
        oj_similarity_bound_start(
            &s->worker->similarity, &self->shared.args.relation,
            self->shared.input, s->row, self->shared.args.join_side);
    while (descent.depth > 0)
    {
        struct oj_tree_child v = descent.stack[--descent.depth];
        const struct oj_tree_node *node =
            &self->tree.node[self->tree.level_first[v.level] + v.child];
        float d2[OJ_FANOUT];
        if (!oj_class_run_meets_node(&s->run, v.child, 3 * (v.level + 1)))
            continue;
        if (v.level > 0)
        {
            oj_tree_descent_push(&descent, node, v, s->reach2, NULL, 1);
            continue;
        }
        oj_tree_node_distances2(node, descent.q, d2);
        for (int c = 0; c < OJ_FANOUT; c++)
        {
            int64_t entry = (int64_t)v.child * OJ_FANOUT + c;
            if (d2[c] <= s->reach2 &&
                oj_class_run_meets_node(&s->run, entry, 0))
                OJ_TRY(rank_entry_by_similarity(s, entry, err));
        }
    }
    return OJ_OK;
}

static double max_distance_of_row(const struct oj_row_index *index, int64_t row)
{
    if (index->input->max_distance != NULL)
        return index->input->max_distance[row];
    /* The maximum distances of join features are applied by the tree (reach2)
     * or, in op similar, by is_entry_in_reach(). */
    if (index->args.join_side->max_distance != NULL)
        return INFINITY;
    return index->args.relation.max_distance;
}

OJ_CLONES static oj_status search_row(struct oj_row_index *shared,
                                      struct oj_row_worker *of_row, int64_t row,
                                      struct oj_error *err)
{
    struct distance_index *self = (void *)shared;
    struct distance_worker *worker = (void *)of_row;
    struct oj_box box = oj_distance_features_box(&self->input, row);
    struct distance_row_search s = {
        .self = self, .worker = worker, .row = row, .x = box.x0, .y = box.y0};
    oj_status status;
    worker->scratch.cancel = shared->args.options.cancel;
    worker->scratch.listed = worker->scratch.n_refined = 0;
    s.reach2 = oj_tree_reach2(&self->tree, max_distance_of_row(shared, row));
    s.ranks = oj_equal_groups_ranks_of_row(&self->groups, shared, row);
    s.run = oj_class_runs_find(&self->groups.classes, shared->input, row);
    status = oj_relation_is_similar(&shared->args.relation)
                 ? rank_entries_in_reach(&s, &box, err)
                 : search_tree_by_distance(&s, &box, err);
    of_row->n_candidates += worker->scratch.n_refined;
    return status;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct distance_index *self = (void *)shared;
    OJ_TRY(build_features(shared, "input", shared->input, &self->input, err));
    return oj_row_sort_input(shared, &self->input, centre_of_feature, err);
}

static void end_batch(struct oj_row_index *shared)
{
    oj_distance_features_free(
        &((struct distance_index *)(void *)shared)->input);
}

static const struct oj_row_method plane = {.worker_size =
                                               sizeof(struct distance_worker),
                                           .start = start_batch,
                                           .row_of = oj_row_at_position,
                                           .search = search_row,
                                           .end = end_batch};

static oj_status start_batch_by_class(struct oj_row_index *shared,
                                      struct oj_error *err)
{
    return build_features(shared, "input", shared->input,
                          &((struct distance_index *)(void *)shared)->input,
                          err);
}

static const struct oj_row_method by_class = {
    .worker_size = sizeof(struct distance_worker),
    .start = start_batch_by_class,
    .search = search_class_of_row,
    .end = end_batch};

static oj_status build_distance_index(struct oj_index *wrapped,
                                      const struct oj_index_args *args,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    int is_by_class = args->engine->variant == BY_CLASS;
    struct distance_index *self =
        oj_row_index_begin(wrapped, is_by_class ? &by_class : &plane, args);
    OJ_TRY(build_features(&self->shared, "join", args->join_side,
                          &self->features, err));
    OJ_TRY(is_by_class ? list_features_by_class(self, err)
                       : build_tree(self, err));
    stats->index_bytes +=
        oj_distance_features_bytes(&self->features) + bytes_of_entries(self);
    return OJ_OK;
}

static const struct oj_engine_cost points_cost = {
    .vertex_s = 30e-9, .row_s = 900e-9, .place_s = 500e-9};

const struct oj_engine oj_cpu_distance = {
    .name = "distances between features",
    .supports = supports_planar_distance_join,
    .index_size = sizeof(struct distance_index),
    .build = build_distance_index,
    .join = oj_row_join,
    .free_side = free_distance_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options,
    .points_cost = &points_cost,
    .variant = BY_TREE};

static const struct oj_engine_cost cost_by_class = {
    .vertex_s = 20e-9, .row_s = 60e-9, .place_s = 30e-9};

const struct oj_engine oj_cpu_distance_of_class = {
    .name = "distances to the features of a class",
    .supports = supports_distance_join_by_class,
    .index_size = sizeof(struct distance_index),
    .build = build_distance_index,
    .join = oj_row_join,
    .free_side = free_distance_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options,
    .points_cost = &cost_by_class,
    .needs_small_classes = 1,
    .variant = BY_CLASS};
