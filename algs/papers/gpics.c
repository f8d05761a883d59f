/** Paper: Lewis, Tu 2022, "G-PICS: A Framework for GPU-Based Spatial Indexing
 * and Query Processing", section IV (queries); trees and updates: gpics_tree.h.
 *
 *  Method: the points of the join side are in the leaves of a quadtree or a k-d
 *  tree. The four queries of the paper are joins with such a layer:
 *
 *   point search      points that are equal (equals, intersects, ..)
 *   range search      -op bbox: points in the box of a row
 *   within distance   dwithin
 *   k nearest         nearest: searches within a distance at which k points are
 *                     expected, and doubles it until there are k
 *
 *  There are two ways to answer them (section IV.A):
 *
 *  registered  step I registers each row at the leaves that its search box
 *              intersects; step II loads the points of each leaf once and
 *              compares them with all rows that are registered there
 *  single      each row reads the leaves that its search box intersects, the
 *              traditional way, with which the paper compares the two steps
 *
 *  Differences: the paper's threads append rows to the list of a leaf by atomic
 *  operations. Here each thread has its own list of registrations, and all of
 *  them are then sorted by leaf. The paper's buffers of output pages are
 *  replaced by the answer of each thread; for k nearest by one array of the
 *  points that rows have found: step II first counts them, then fills it.
 *
 *  The backends "gpics_quadtree", "gpics_kdtree", "gpics_quadtree_single" and
 *  "gpics_kdtree_single". */
#include "gpics.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_parallel.h"
#include "../foundations/kernels/oj_square_limit.h"
#include "../pairs/selection/oj_parallel_row_search.h"
#include "gpics_tree.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Variants of the engine. */
enum
{
    REGISTERED_QUADTREE = 0,
    REGISTERED_KDTREE,
    SINGLE_QUADTREE,
    SINGLE_KDTREE
};

/* Number of rows, or of leaves, in a task of a thread. */
#define ROWS_AT_ONCE 64

/* A point that a row has found. */
struct gpics_hit
{
    double d2; /* squared distance; NaN if the join has no measure */
    int32_t feature;
};

/* A row that is registered at a leaf. */
struct gpics_registration
{
    int32_t leaf, row;
};

struct gpics_worker
{
    struct oj_row_worker shared;
    int64_t n_hits, cap_hits;
    struct gpics_hit *hit; /* hits of one row; only for the method "single" */
    int64_t n_registrations, cap_registrations;
    struct gpics_registration *registration;
    int64_t cap_x, cap_y, cap_feature;
    double *x, *y; /* points of a leaf, copied from its pages */
    int32_t *feature;
};

struct gpics_index
{
    struct oj_row_index shared;
    struct gpics_tree tree;
    double spacing; /* radius of a circle in which one point of the layer is
                       expected */

    /* The following members are for the current batch of the method
     * "registered". */
    int64_t n_open;
    int32_t *open; /* [n_open] rows that need a further round */
    double *reach; /* [rows] search radius of each row */
    int64_t n_leaves;
    int32_t *leaf;        /* [n_leaves] leaves with registered rows */
    int64_t *leaf_offset; /* [nodes + 1] index in `registered` of the first row
                             of each leaf */
    int32_t *registered;  /* rows registered at leaves, leaf by leaf */

    /* Nearest alone: rows may need several rounds. */
    _Atomic int32_t *n_found;    /* [rows] points that a row has found in this
                                    round */
    _Atomic int64_t *next_found; /* [rows] index in `found` for the next point
                                    of a row, at last the end of its points; -1:
                                    the row needs another round */
    int64_t n_all_found, cap_found;
    int32_t *found; /* [n_all_found] features that answered rows have found, row
                       by row */
};

/* --- queries -------------------------------------------------------------- */

struct gpics_query
{
    struct oj_box box; /* leaves whose cells intersect it are searched */
    int by_distance;   /* 1: points at squared distances least2 to most2 from
                          (x, y) are found; 0: all points in the box */
    double x, y, least2, most2;
};

/* Returns the radius of a circle in which one point is expected, if n points
 * are spread over a rectangle. */
static double radius_of_a_point(double width, double height, double n)
{
    return sqrt(width / n) * sqrt(height / 3.141592653589793);
}

/* Returns the maximum distance of the join's pairs. */
static double max_distance_of_join(const struct gpics_index *self)
{
    return self->shared.args.relation.max_distance;
}

/* Returns the query of a row. reach is the search radius, for joins by
 * distance. */
static struct gpics_query query_of_row(const struct gpics_index *self,
                                       int64_t row, double reach)
{
    const struct oj_relation *relation = &self->shared.args.relation;
    struct gpics_query query = {0};
    query.by_distance = oj_relation_is_by_distance(relation);
    query.box = oj_box_of_feature(self->shared.input, row);
    if (!query.by_distance || oj_box_is_empty(&query.box))
        return query;
    query.x = query.box.x0;
    query.y = query.box.y0;
    query.least2 = oj_square_limit_least(relation->min_distance);
    query.most2 = reach < INFINITY ? oj_square_limit_most(reach) : DBL_MAX;
    query.box = oj_box_widened(&query.box, reach);
    return query;
}

/* Returns the radius of a circle around (x, y) in which one point is expected:
 * estimated from the leaf there, or from the layer if there is no leaf. */
static double point_spacing_at(const struct gpics_index *self, double x,
                               double y)
{
    const struct gpics_tree *tree = &self->tree;
    const struct oj_box *all = &tree->extent, *cell;
    int32_t leaf = gpics_tree_leaf_at(tree, x, y);
    double spacing = 0.0;
    if (leaf != GPICS_NONE)
    {
        cell = &tree->node[leaf].cell;
        spacing = radius_of_a_point((cell->x1 < all->x1 ? cell->x1 : all->x1) -
                                        oj_larger(cell->x0, all->x0),
                                    (cell->y1 < all->y1 ? cell->y1 : all->y1) -
                                        oj_larger(cell->y0, all->y0),
                                    (double)tree->node[leaf].n);
    }
    return spacing > 0.0 ? spacing : self->spacing;
}

/* Returns the radius of a row's first search: the maximum distance, or for
 * nearest a distance at which k points are expected. */
static double first_reach_of_row(const struct gpics_index *self, int64_t row)
{
    const struct oj_relation *relation = &self->shared.args.relation;
    struct oj_box box = oj_box_of_feature(self->shared.input, row);
    double reach;
    if (!oj_relation_is_nearest(relation) || oj_box_is_empty(&box))
        return max_distance_of_join(self);
    reach = point_spacing_at(self, box.x0, box.y0) * sqrt((double)relation->k) +
            oj_box_distance(&box, &self->tree.extent);
    return reach < max_distance_of_join(self) ? reach
                                              : max_distance_of_join(self);
}

/* Returns 1 if a row that has found n points within reach needs no larger
 * radius. */
static int is_row_answered(const struct gpics_index *self, int64_t row,
                           double reach, int64_t n)
{
    const struct oj_relation *relation = &self->shared.args.relation;
    struct oj_box box;
    if (!oj_relation_is_nearest(relation) || n >= relation->k ||
        reach >= max_distance_of_join(self))
        return 1;
    box = oj_box_of_feature(self->shared.input, row);
    return oj_box_is_empty(&box) ||
           oj_box_max_distance(&box, &self->tree.extent) <= reach;
}

static double enlarge_reach(const struct gpics_index *self, double reach)
{
    double next = 2.0 * reach + DBL_MIN;
    return next < max_distance_of_join(self) ? next
                                             : max_distance_of_join(self);
}

/* Returns 1 if a point is a hit of a row's query. Sets *d2 to the point's
 * squared distance, or to NaN if the join is not by distance. */
static inline int is_point_hit(const struct gpics_index *self,
                               const struct gpics_query *query, int64_t row,
                               double x, double y, int32_t feature, double *d2)
{
    const double dx = query->x - x, dy = query->y - y;
    *d2 = query->by_distance ? dx * dx + dy * dy : NAN;
    return (query->by_distance ? *d2 <= query->most2 && *d2 >= query->least2
                               : oj_box_contains_point(&query->box, x, y)) &&
           oj_pair_filter_accepts(&self->shared.filter, row, feature);
}

/* Returns 1 if the leaf's cell is farther away than the query's maximum
 * distance. */
static int is_cell_beyond_reach(const struct gpics_node *leaf,
                                const struct gpics_query *query)
{
    struct oj_box at = {query->x, query->y, query->x, query->y};
    double apart;
    if (!query->by_distance)
        return 0;
    apart = oj_box_distance(&at, &leaf->cell);
    return apart * apart * (1.0 - 4.0 * DBL_EPSILON) > query->most2;
}

/* --- single: each row reads its leaves ------------------------------------ */

/* Appends those of a page's points that are hits of a row to the thread's list.
 */
static oj_status list_hits_of_page(const struct gpics_index *self,
                                   struct gpics_worker *worker,
                                   const struct gpics_query *query, int64_t row,
                                   const struct gpics_page *page,
                                   struct oj_error *err)
{
    const int64_t n = page->n;
    double d2;
    OJ_ROOM(worker->hit, worker->n_hits, worker->n_hits + n, worker->cap_hits,
            err);
    worker->shared.n_candidates += n;
    for (int64_t i = 0; i < n; i++)
    {
        if (is_point_hit(self, query, row, page->x[i], page->y[i],
                         page->feature[i], &d2))
            worker->hit[worker->n_hits++] =
                (struct gpics_hit){d2, page->feature[i]};
    }
    return OJ_OK;
}

static oj_status search_leaves_of_row(const struct gpics_index *self,
                                      struct gpics_worker *worker, int64_t row,
                                      double reach, struct oj_error *err)
{
    const struct gpics_tree *tree = &self->tree;
    struct gpics_query query = query_of_row(self, row, reach);
    struct gpics_descent descent;
    int32_t leaf;
    if (oj_box_is_empty(&query.box))
        return OJ_OK;
    gpics_descent_begin(&descent, tree, &query.box);
    while ((leaf = gpics_descent_next_leaf(&descent)) != GPICS_NONE)
    {
        OJ_TRY(oj_check_cancel(self->shared.args.options.cancel, err));
        if (is_cell_beyond_reach(&tree->node[leaf], &query))
            continue;
        for (int32_t at = tree->node[leaf].page; at != GPICS_NONE;
             at = tree->page[at].previous)
            OJ_TRY(list_hits_of_page(self, worker, &query, row, &tree->page[at],
                                     err));
    }
    return OJ_OK;
}

static oj_status search_single_row(struct oj_row_index *shared,
                                   struct oj_row_worker *of_row, int64_t row,
                                   struct oj_error *err)
{
    struct gpics_index *self = (void *)shared;
    struct gpics_worker *worker = (void *)of_row;
    double reach = first_reach_of_row(self, row);
    if (!oj_feature_may_pair(shared->input, row))
        return OJ_OK;
    for (;;)
    {
        worker->n_hits = 0;
        OJ_TRY(search_leaves_of_row(self, worker, row, reach, err));
        if (is_row_answered(self, row, reach, worker->n_hits))
            break;
        reach = enlarge_reach(self, reach);
    }
    for (int64_t i = 0; i < worker->n_hits; i++)
        OJ_TRY(oj_row_add_pair(shared, of_row, row, worker->hit[i].feature,
                               sqrt(worker->hit[i].d2), err));
    return OJ_OK;
}

/* --- registered, step I: rows at leaves ----------------------------------- */

static oj_status register_row(int64_t i, int thread, void *user,
                              struct oj_error *err)
{
    struct gpics_index *self = user;
    struct gpics_worker *worker = (void *)oj_row_worker(&self->shared, thread);
    int32_t row = self->open[i], leaf;
    struct gpics_query query = query_of_row(self, row, self->reach[row]);
    struct gpics_descent descent;
    OJ_TRY(oj_check_cancel(self->shared.args.options.cancel, err));
    if (oj_box_is_empty(&query.box))
        return OJ_OK;
    gpics_descent_begin(&descent, &self->tree, &query.box);
    while ((leaf = gpics_descent_next_leaf(&descent)) != GPICS_NONE)
    {
        int64_t n = worker->n_registrations;
        if (is_cell_beyond_reach(&self->tree.node[leaf], &query))
            continue;
        OJ_ROOM(worker->registration, n, n + 1, worker->cap_registrations, err);
        worker->registration[worker->n_registrations++] =
            (struct gpics_registration){leaf, row};
    }
    return OJ_OK;
}

/* Sorts the registrations of all threads by leaf: first counts them, then
 * fills. */
static oj_status list_rows_of_leaves(struct gpics_index *self,
                                     struct oj_error *err)
{
    int64_t n_nodes = self->tree.n_nodes, n = 0;
    int64_t *offset = self->leaf_offset;
    memset(offset, 0, (size_t)(n_nodes + 1) * sizeof *offset);
    for (int t = 0; t < self->shared.n_threads; t++)
    {
        const struct gpics_worker *worker =
            (void *)oj_row_worker(&self->shared, t);
        for (int64_t i = 0; i < worker->n_registrations; i++)
            offset[worker->registration[i].leaf + 1]++;
        n += worker->n_registrations;
    }
    self->n_leaves = 0;
    for (int64_t leaf = 0; leaf < n_nodes; leaf++)
    {
        if (offset[leaf + 1] > 0)
            self->leaf[self->n_leaves++] = (int32_t)leaf;
        offset[leaf + 1] += offset[leaf];
    }
    oj_free(self->registered);
    OJ_NEW(self->registered, n, err);
    for (int t = 0; t < self->shared.n_threads; t++)
    {
        const struct gpics_worker *worker =
            (void *)oj_row_worker(&self->shared, t);
        for (int64_t i = 0; i < worker->n_registrations; i++)
        {
            const struct gpics_registration *at = &worker->registration[i];
            self->registered[offset[at->leaf]++] = at->row;
        }
    }
    for (int64_t leaf = n_nodes; leaf > 0; leaf--)
        offset[leaf] = offset[leaf - 1];
    offset[0] = 0;
    return OJ_OK;
}

static oj_status register_unanswered_rows(struct gpics_index *self,
                                          struct oj_error *err)
{
    for (int t = 0; t < self->shared.n_threads; t++)
    {
        struct gpics_worker *worker = (void *)oj_row_worker(&self->shared, t);
        worker->n_registrations = 0;
    }
    OJ_TRY(oj_parallel_try(self->shared.n_threads, self->n_open, ROWS_AT_ONCE,
                           register_row, self, err));
    return list_rows_of_leaves(self, err);
}

/* --- registered, step II: leaf by leaf ------------------------------------ */

static oj_status load_points_of_leaf(const struct gpics_tree *tree,
                                     struct gpics_worker *worker, int32_t leaf,
                                     struct oj_error *err)
{
    int64_t n = tree->node[leaf].n, at = 0;
    OJ_ROOM(worker->x, 0, n, worker->cap_x, err);
    OJ_ROOM(worker->y, 0, n, worker->cap_y, err);
    OJ_ROOM(worker->feature, 0, n, worker->cap_feature, err);
    for (int32_t p = tree->node[leaf].page; p != GPICS_NONE;
         p = tree->page[p].previous)
    {
        const struct gpics_page *page = &tree->page[p];
        size_t n_page = (size_t)page->n;
        memcpy(worker->x + at, page->x, n_page * sizeof *page->x);
        memcpy(worker->y + at, page->y, n_page * sizeof *page->y);
        memcpy(worker->feature + at, page->feature,
               n_page * sizeof *page->feature);
        at += page->n;
    }
    return OJ_OK;
}

/* How a visit of a leaf treats the hits of a row. */
enum leaf_visit
{
    ADD_PAIRS,  /* joins other than nearest: adds the hits to the answer */
    COUNT_HITS, /* nearest: counts the hits */
    STORE_HITS  /* nearest: stores the hits of answered rows */
};

static inline oj_status visit_row_at_leaf(struct gpics_index *self,
                                          struct gpics_worker *worker,
                                          enum leaf_visit visit, int32_t row,
                                          int64_t n, struct oj_error *err)
{
    const struct gpics_query query = query_of_row(self, row, self->reach[row]);
    int32_t n_hits = 0;
    double d2;
    if (visit == ADD_PAIRS)
        OJ_TRY(oj_answers_reserve(worker->shared.answers, n, err));
    for (int64_t i = 0; i < n; i++)
    {
        const int32_t feature = worker->feature[i];
        if (!is_point_hit(self, &query, row, worker->x[i], worker->y[i],
                          feature, &d2))
            continue;
        if (visit == ADD_PAIRS)
            oj_answers_append_pair(worker->shared.answers, row, feature,
                                   sqrt(d2));
        else if (visit == COUNT_HITS)
            n_hits++;
        else
            self->found[atomic_fetch_add(&self->next_found[row], 1)] = feature;
    }
    if (visit == COUNT_HITS)
        atomic_fetch_add(&self->n_found[row], n_hits);
    return OJ_OK;
}

static oj_status visit_leaf(struct gpics_index *self, int thread, int32_t leaf,
                            enum leaf_visit visit, struct oj_error *err)
{
    struct gpics_worker *worker = (void *)oj_row_worker(&self->shared, thread);
    const int64_t n = self->tree.node[leaf].n;
    OJ_TRY(load_points_of_leaf(&self->tree, worker, leaf, err));
    for (int64_t at = self->leaf_offset[leaf]; at < self->leaf_offset[leaf + 1];
         at++)
    {
        const int32_t row = self->registered[at];
        OJ_TRY(oj_check_cancel(self->shared.args.options.cancel, err));
        if (visit == STORE_HITS && self->next_found[row] < 0)
            continue;
        if (visit != STORE_HITS)
            worker->shared.n_candidates += n;
        OJ_TRY(visit_row_at_leaf(self, worker, visit, row, n, err));
    }
    return OJ_OK;
}

static oj_status add_pairs_of_leaf(int64_t i, int thread, void *user,
                                   struct oj_error *err)
{
    struct gpics_index *self = user;
    return visit_leaf(self, thread, self->leaf[i], ADD_PAIRS, err);
}

static oj_status count_hits_of_leaf(int64_t i, int thread, void *user,
                                    struct oj_error *err)
{
    struct gpics_index *self = user;
    return visit_leaf(self, thread, self->leaf[i], COUNT_HITS, err);
}

static oj_status store_hits_of_leaf(int64_t i, int thread, void *user,
                                    struct oj_error *err)
{
    struct gpics_index *self = user;
    return visit_leaf(self, thread, self->leaf[i], STORE_HITS, err);
}

/* Visits all leaves with registered rows, on all threads. */
static oj_status visit_leaves(struct gpics_index *self,
                              oj_status (*visit)(int64_t, int, void *,
                                                 struct oj_error *),
                              struct oj_error *err)
{
    return oj_parallel_try(self->shared.n_threads, self->n_leaves, 1, visit,
                           self, err);
}

/* Stores the hits of the rows that are answered in self->found, row by row. The
 * other rows stay open, with a larger radius for the next round. */
static oj_status store_hits_of_answered_rows(struct gpics_index *self,
                                             struct oj_error *err)
{
    const int64_t n_before = self->n_all_found;
    int64_t n_open = 0;
    for (int64_t i = 0; i < self->n_open; i++)
    {
        const int32_t row = self->open[i];
        if (is_row_answered(self, row, self->reach[row], self->n_found[row]))
        {
            self->next_found[row] = self->n_all_found;
            self->n_all_found += self->n_found[row];
        }
        else
            self->next_found[row] = -1;
    }
    OJ_ROOM(self->found, n_before, self->n_all_found, self->cap_found, err);
    OJ_TRY(visit_leaves(self, store_hits_of_leaf, err));
    for (int64_t i = 0; i < self->n_open; i++)
    {
        const int32_t row = self->open[i];
        if (self->next_found[row] >= 0)
            continue;
        self->reach[row] = enlarge_reach(self, self->reach[row]);
        self->n_found[row] = 0;
        self->open[n_open++] = row;
    }
    self->n_open = n_open;
    return OJ_OK;
}

static oj_status list_all_rows_as_unanswered(struct gpics_index *self,
                                             struct oj_error *err)
{
    const struct oj_flat *input = self->shared.input;
    int64_t n = input->n_features;
    OJ_NEW(self->open, n, err);
    OJ_NEW(self->reach, n, err);
    OJ_NEW_ZEROED(self->n_found, n, err);
    OJ_NEW_ZEROED(self->next_found, n, err);
    OJ_NEW(self->leaf, self->tree.n_nodes, err);
    OJ_NEW(self->leaf_offset, self->tree.n_nodes + 1, err);
    for (int64_t row = 0; row < n; row++)
    {
        self->reach[row] = first_reach_of_row(self, row);
        if (oj_feature_may_pair(input, row))
            self->open[self->n_open++] = (int32_t)row;
    }
    return OJ_OK;
}

static oj_status answer_registered_rows(struct gpics_index *self,
                                        struct oj_stats *stats,
                                        struct oj_error *err)
{
    OJ_TRY(list_all_rows_as_unanswered(self, err));
    while (self->n_open > 0)
    {
        double start = oj_clock_seconds(), registered;
        OJ_TRY(register_unanswered_rows(self, err));
        registered = oj_clock_seconds();
        if (oj_relation_is_nearest(&self->shared.args.relation))
        {
            OJ_TRY(visit_leaves(self, count_hits_of_leaf, err));
            OJ_TRY(store_hits_of_answered_rows(self, err));
        }
        else
        {
            OJ_TRY(visit_leaves(self, add_pairs_of_leaf, err));
            self->n_open = 0;
        }
        stats->filter_s += registered - start;
        stats->refine_s += oj_clock_seconds() - registered;
    }
    return OJ_OK;
}

/* Ranks the points that a row of a nearest join has found. Hits of other joins
 * are in the answer already. */
static oj_status put_hits_of_row(struct oj_row_index *shared,
                                 struct oj_row_worker *worker, int64_t row,
                                 struct oj_error *err)
{
    const struct gpics_index *self = (void *)shared;
    const struct oj_flat *side = shared->args.join_side;
    const int64_t end = self->next_found[row];
    for (int64_t i = end - self->n_found[row]; i < end; i++)
    {
        const int32_t feature = self->found[i];
        const double dx = shared->input->x[row] - side->x[feature];
        const double dy = shared->input->y[row] - side->y[feature];
        OJ_TRY(oj_row_add_pair(shared, worker, row, feature,
                               sqrt(dx * dx + dy * dy), err));
    }
    return OJ_OK;
}

static void end_batch_of_registered_rows(struct oj_row_index *shared)
{
    struct gpics_index *self = (void *)shared;
    oj_free(self->open);
    oj_free(self->reach);
    oj_free((void *)self->n_found);
    oj_free((void *)self->next_found);
    oj_free(self->leaf);
    oj_free(self->leaf_offset);
    oj_free(self->registered);
    oj_free(self->found);
    self->open = self->leaf = self->registered = self->found = NULL;
    self->n_found = NULL;
    self->next_found = NULL;
    self->reach = NULL;
    self->leaf_offset = NULL;
    self->n_open = self->n_leaves = self->n_all_found = self->cap_found = 0;
}

static oj_status join_registered(struct oj_index *wrapped,
                                 const struct oj_flat *input,
                                 struct oj_matches *out, struct oj_stats *stats,
                                 struct oj_error *err)
{
    struct gpics_index *self = (void *)wrapped;
    oj_status status;
    OJ_TRY(oj_row_batch_open(&self->shared, input, err));
    status = answer_registered_rows(self, stats, err);
    if (status == OJ_OK)
        return oj_row_batch_join(&self->shared, out, stats, err);
    end_batch_of_registered_rows(&self->shared);
    return status;
}

/* --- engines -------------------------------------------------------------- */

static void free_worker(struct oj_row_worker *of_row)
{
    struct gpics_worker *worker = (void *)of_row;
    oj_free(worker->hit);
    oj_free(worker->registration);
    oj_free(worker->x);
    oj_free(worker->y);
    oj_free(worker->feature);
}

static const struct oj_row_method single = {.worker_size =
                                                sizeof(struct gpics_worker),
                                            .search = search_single_row,
                                            .free_worker = free_worker};

static const struct oj_row_method registered = {
    .worker_size = sizeof(struct gpics_worker),
    .search = put_hits_of_row,
    .end = end_batch_of_registered_rows,
    .free_worker = free_worker};

/* Returns 1 for the paper's four queries. */
int oj_gpics_supports_join(const struct oj_relation *relation,
                           const struct oj_flat *join_side,
                           const struct oj_flat *input)
{
    int of_points = input == NULL || oj_flat_is_points(input);
    if (!oj_flat_is_points(join_side) || join_side->max_distance != NULL ||
        oj_relation_compares_attributes(relation) ||
        relation->metric != OJ_METRIC_PLANAR ||
        (input != NULL && input->max_distance != NULL))
        return 0;
    if (oj_relation_is_bbox(relation))
        return 1;
    return of_points && (oj_relation_pairs_equal_points(relation) ||
                         (oj_relation_is_by_distance(relation) &&
                          !oj_relation_compares_shapes(relation)));
}

static void estimate_spacing_of_layer(struct gpics_index *self)
{
    const struct gpics_tree *tree = &self->tree;
    double width = tree->extent.x1 - tree->extent.x0;
    double height = tree->extent.y1 - tree->extent.y0;
    double n = (double)tree->n_points;
    if (tree->n_points == 0)
        return;
    self->spacing = radius_of_a_point(width, height, n);
    /* without area, all points are on a horizontal or vertical line */
    if (!(self->spacing > 0.0))
        self->spacing = oj_larger(width, height) / n;
}

static oj_status build_gpics_tree(struct oj_index *wrapped,
                                  const struct oj_index_args *args,
                                  struct oj_stats *stats, struct oj_error *err)
{
    int variant = args->engine->variant;
    struct gpics_index *self = oj_row_index_begin(
        wrapped, variant >= SINGLE_QUADTREE ? &single : &registered, args);
    const struct oj_flat *side = args->join_side;
    self->tree.kind = variant == REGISTERED_KDTREE || variant == SINGLE_KDTREE
                          ? GPICS_KDTREE
                          : GPICS_QUADTREE;
    self->tree.most_points = args->options.quadrant_size;
    self->tree.cancel = args->options.cancel;
    OJ_TRY(
        gpics_tree_build(&self->tree, side->n_features, side->x, side->y, err));
    estimate_spacing_of_layer(self);
    stats->index_bytes += gpics_tree_bytes(&self->tree);
    return OJ_OK;
}

static oj_status move_points(struct oj_index *wrapped, int64_t n,
                             const int32_t *feature, struct oj_error *err)
{
    struct gpics_index *self = (void *)wrapped;
    const struct oj_flat *side = self->shared.args.join_side;
    return gpics_tree_move(&self->tree, n, feature, side->x, side->y, err);
}

static void free_gpics_index(struct oj_index *wrapped)
{
    gpics_tree_free(&((struct gpics_index *)(void *)wrapped)->tree);
}

#define GPICS_ENGINE(method_name, variant_number, join_function)               \
    {                                                                          \
        .name = method_name, .supports = oj_gpics_supports_join,               \
        .index_size = sizeof(struct gpics_index), .build = build_gpics_tree,   \
        .join = join_function, .move = move_points,                            \
        .free_side = free_gpics_index, .free_batches = oj_row_batches_free,    \
        .set_options = oj_row_set_options, .variant = variant_number           \
    }

const struct oj_engine oj_gpics_quadtree_engine =
    GPICS_ENGINE("quadtree, rows registered at leaves", REGISTERED_QUADTREE,
                 join_registered);
const struct oj_engine oj_gpics_kdtree_engine = GPICS_ENGINE(
    "k-d tree, rows registered at leaves", REGISTERED_KDTREE, join_registered);
const struct oj_engine oj_gpics_quadtree_single_engine =
    GPICS_ENGINE("quadtree, each row alone", SINGLE_QUADTREE, oj_row_join);
const struct oj_engine oj_gpics_kdtree_single_engine =
    GPICS_ENGINE("k-d tree, each row alone", SINGLE_KDTREE, oj_row_join);
