/** Engine of the reference backends: a library's tree of boxes finds
 *  candidates, GEOS decides them, and a ranking selects the pairs. It takes
 *  all joins and kinds of features, and runs on one thread.
 *
 *  The tree is queried once per row, with the row's box, grown by the maximum
 *  distance if the join has one; GEOS decides every candidate that passes the
 *  pair filter (geos_pairs.h). For disjoint, and for patterns that can hold
 *  for disjoint features, every feature is a candidate; disjoint envelopes are
 *  decided without GEOS. In op bbox, the exact envelopes decide.
 *
 *  A nearest join may have no maximum distance, or one so large that most of
 *  the layer would be a candidate. It then begins with a smaller window and
 *  grows it until the k-th distance is within the window or the window
 *  contains every feature. Points are then visited in Morton order, and the
 *  first window of each depends on the last window of the one before. This
 *  affects time, never the result.
 *
 *  Collective queries: the rows of a quadrant share one query with the
 *  quadrant's grown box, and each row uses the candidates in its own window.
 *
 *  On the sphere and on an ellipsoid, which GEOS does not support, boxes and
 *  windows are those of a projection, and plain_sphere.h measures.
 *
 *  Hausdorff and Frechet distances are computed by GEOS, except directed ones,
 *  for which it has no function, and Frechet distances with too large a table:
 *  these are computed by plain_shape_distances.h.
 *
 *  A pair that GEOS cannot decide is listed as undecided; in a nearest join,
 *  so is the whole row if the pair could be among its nearest.
 *
 *  Source: Zhang, You, Gruenwald 2012, sections 3.1 and 4.2 ("collective
 *  query"); the growing windows are ours. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../foundations/base/oj_point_quadtree.h"
#include "../../foundations/relation/oj_index.h"
#include "../../pairs/selection/oj_answer_ranking.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"
#include "../geos/geos_handle.h"
#include "../geos/geos_pairs.h"
#include "plain_point_distance.h"
#include "plain_shape_distances.h"
#include "plain_sphere.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OJ_SPATIALINDEX
#include <spatialindex/capi/sidx_api.h>
#endif

/* --- trees of boxes ------------------------------------------------------- */

/* Features found by a query. Owner; zeroed memory is a valid empty value. */
struct box_found
{
    int64_t n, capacity;
    int32_t *feature;
};

static oj_status add_found_feature(struct box_found *found, int64_t feature,
                                   struct oj_error *err)
{
    OJ_ROOM(found->feature, found->n, found->n + 1, found->capacity, err);
    found->feature[found->n++] = (int32_t)feature;
    return OJ_OK;
}

/* The interface to a library's tree of boxes. */
struct box_library
{
    /* Builds a tree of all boxes that are not empty; there must be at least
     * one. `boxes` must outlive the tree. */
    oj_status (*build)(const struct oj_boxes *boxes, void **tree,
                       struct oj_error *err);
    /* Appends the features whose boxes intersect window to found. */
    oj_status (*query)(void *tree, const struct oj_box *window,
                       struct box_found *found, struct oj_error *err);
    void (*free)(void *tree); /* tree may be NULL */
    /* Replaces the box of a feature, which may be empty before or after. NULL
     * if the tree must be built anew instead. */
    oj_status (*move)(void *tree, int64_t feature, const struct oj_box *from,
                      const struct oj_box *to, struct oj_error *err);
};

/* --- GEOS's STRtree ------------------------------------------------------- */

#define NODE_CAPACITY 10 /* default of GEOS */

struct geos_tree
{
    struct oj_geos_handle handle;
    GEOSSTRtree *strtree;
    GEOSGeometry **diagonal; /* [boxes.n] a geometry for each box; must outlive
                                the tree */
    const struct oj_boxes *boxes;
    /* Members for the current query. */
    struct box_found *found;
    oj_status found_status;
    struct oj_error *found_err;
};

static oj_status fail_geos(const struct geos_tree *tree, struct oj_error *err)
{
    const char *text = tree->handle.message;
    return oj_fail(err, OJ_ERR_NOMEM,
                   "GEOS failed to search its tree: %s; use the backend cpu",
                   text[0] != '\0' ? text : "out of memory");
}

/* Returns a geometry with this envelope, which is all that the tree uses of
 * it. */
static GEOSGeometry *make_geos_diagonal_of_box(GEOSContextHandle_t geos,
                                               const struct oj_box *box)
{
    GEOSCoordSequence *ends = GEOSCoordSeq_create_r(geos, 2, 2);
    if (ends == NULL)
        return NULL;
    if (GEOSCoordSeq_setXY_r(geos, ends, 0, box->x0, box->y0) == 0 ||
        GEOSCoordSeq_setXY_r(geos, ends, 1, box->x1, box->y1) == 0)
    {
        GEOSCoordSeq_destroy_r(geos, ends);
        return NULL;
    }
    return GEOSGeom_createLineString_r(geos, ends);
}

static void append_item_of_geos_query(void *item, void *user)
{
    struct geos_tree *tree = user;
    const struct oj_box *box = item;
    if (tree->found_status == OJ_OK)
        tree->found_status = add_found_feature(
            tree->found, box - tree->boxes->box, tree->found_err);
}

static oj_status query_geos_tree(void *opened, const struct oj_box *window,
                                 struct box_found *found, struct oj_error *err)
{
    struct geos_tree *tree = opened;
    GEOSGeometry *diagonal =
        make_geos_diagonal_of_box(tree->handle.geos, window);
    if (diagonal == NULL)
        return fail_geos(tree, err);
    tree->found = found;
    tree->found_err = err;
    tree->found_status = OJ_OK;
    GEOSSTRtree_query_r(tree->handle.geos, tree->strtree, diagonal,
                        append_item_of_geos_query, tree);
    GEOSGeom_destroy_r(tree->handle.geos, diagonal);
    return tree->found_status;
}

static void free_geos_tree(void *opened)
{
    struct geos_tree *tree = opened;
    if (tree == NULL)
        return;
    if (tree->strtree != NULL)
        GEOSSTRtree_destroy_r(tree->handle.geos, tree->strtree);
    for (int64_t i = 0; tree->diagonal != NULL && i < tree->boxes->n; i++)
        GEOSGeom_destroy_r(tree->handle.geos, tree->diagonal[i]);
    oj_geos_handle_close(&tree->handle);
    oj_free(tree->diagonal);
    oj_free(tree);
}

static oj_status fill_geos_tree(struct geos_tree *tree, struct oj_error *err)
{
    const struct oj_boxes *boxes = tree->boxes;
    struct box_found found = {0, 0, NULL};
    GEOSContextHandle_t geos;
    oj_status status;
    OJ_TRY(oj_geos_handle_open(&tree->handle, err));
    geos = tree->handle.geos;
    tree->strtree = GEOSSTRtree_create_r(geos, NODE_CAPACITY);
    if (tree->strtree == NULL)
        return fail_geos(tree, err);
    OJ_NEW_ZEROED(tree->diagonal, boxes->n, err);
    for (int64_t i = 0; i < boxes->n; i++)
    {
        if (oj_box_is_empty(&boxes->box[i]))
            continue;
        tree->diagonal[i] = make_geos_diagonal_of_box(geos, &boxes->box[i]);
        if (tree->diagonal[i] == NULL)
            return fail_geos(tree, err);
        GEOSSTRtree_insert_r(geos, tree->strtree, tree->diagonal[i],
                             &boxes->box[i]);
    }
    /* Makes a query now, because GEOS builds the tree at the first one. */
    tree->handle.message[0] = '\0';
    status = query_geos_tree(tree, &boxes->box[0], &found, err);
    oj_free(found.feature);
    if (status == OJ_OK && tree->handle.message[0] != '\0')
        status = fail_geos(tree, err);
    return status;
}

static oj_status build_geos_tree(const struct oj_boxes *boxes, void **out,
                                 struct oj_error *err)
{
    struct geos_tree *tree;
    oj_status status;
    OJ_NEW_ZEROED(tree, 1, err);
    tree->boxes = boxes;
    status = fill_geos_tree(tree, err);
    if (status == OJ_OK)
        *out = tree;
    else
        free_geos_tree(tree);
    return status;
}

static const struct box_library geos_library = {
    build_geos_tree, query_geos_tree, free_geos_tree, NULL};

/* --- libspatialindex ------------------------------------------------------
 *
 *  The serial baseline of the paper: an R-tree in memory, bulk-loaded. Source:
 *  Zhang, You, Gruenwald 2012, section 4.1.
 */

/* libogrjoin, the library for other programs, is built without this backend. */
#ifdef OJ_SPATIALINDEX

/* State of the bulk load. The callback that delivers boxes has no user pointer,
 * so the state is in a variable per thread. */
struct stream
{
    const struct oj_boxes *boxes;
    int64_t next;
    double low[2], high[2];
};
static _Thread_local struct stream *loading;

/* Fails with libspatialindex's message. Mentions the current folder, because
 * for more than a million boxes the bulk loader sorts in files that it creates
 * there. */
static oj_status fail_spatialindex(struct oj_error *err)
{
    char *text = Error_GetLastErrorMsg();
    oj_status status = OJ_ERR_INTERNAL;
    const char *hint = "";
    if (text == NULL || strstr(text, OJ_TEXT_NO_MEMORY) != NULL)
        status = OJ_ERR_NOMEM;
    else if (strstr(text, OJ_TEXT_NO_LOADER_FILE) != NULL)
    {
        status = OJ_ERR_IO;
        hint = " (it needs to write to the current folder)";
    }
    status = oj_fail(err, status,
                     "libspatialindex failed: %s%s; use the backend cpu",
                     text != NULL ? text : "out of memory", hint);
    free(text);
    return status;
}

/* Callback of the bulk load: delivers the next box and returns 0; -1 at the
 * end. */
static int next_box_for_spatialindex_load(int64_t *id, double **low,
                                          double **high, uint32_t *dimension,
                                          const uint8_t **data, size_t *length)
{
    struct stream *stream = loading;
    const struct oj_box *box;
    while (stream->next < stream->boxes->n &&
           oj_box_is_empty(&stream->boxes->box[stream->next]))
        stream->next++;
    if (stream->next >= stream->boxes->n)
        return -1;
    box = &stream->boxes->box[stream->next];
    stream->low[0] = box->x0;
    stream->low[1] = box->y0;
    stream->high[0] = box->x1;
    stream->high[1] = box->y1;
    *id = stream->next++;
    *low = stream->low;
    *high = stream->high;
    *dimension = 2;
    *data = NULL;
    *length = 0;
    return 0;
}

static oj_status build_spatialindex(const struct oj_boxes *boxes, void **out,
                                    struct oj_error *err)
{
    struct stream stream = {boxes, 0, {0.0, 0.0}, {0.0, 0.0}};
    IndexPropertyH properties = IndexProperty_Create();
    IndexH tree = NULL;
    if (properties == NULL)
        return fail_spatialindex(err);
    /* The index is an R*-tree in memory, with the default capacities (100 for
     * leaves and for inner nodes). */
    if (IndexProperty_SetIndexType(properties, RT_RTree) == RT_None &&
        IndexProperty_SetDimension(properties, 2) == RT_None &&
        IndexProperty_SetIndexVariant(properties, RT_Star) == RT_None &&
        IndexProperty_SetIndexStorage(properties, RT_Memory) == RT_None)
    {
        loading = &stream;
        tree =
            Index_CreateWithStream(properties, next_box_for_spatialindex_load);
        loading = NULL;
    }
    IndexProperty_Destroy(properties);
    if (tree == NULL)
        return fail_spatialindex(err);
    *out = tree;
    return OJ_OK;
}

static oj_status query_spatialindex(void *tree, const struct oj_box *window,
                                    struct box_found *found,
                                    struct oj_error *err)
{
    double low[2] = {window->x0, window->y0};
    double high[2] = {window->x1, window->y1};
    int64_t *ids = NULL;
    uint64_t n = 0;
    oj_status status = OJ_OK;
    if (Index_Intersects_id(tree, low, high, 2, &ids, &n) != RT_None)
        return fail_spatialindex(err);
    for (uint64_t i = 0; i < n && status == OJ_OK; i++)
        status = add_found_feature(found, ids[i], err);
    Index_Free(ids);
    return status;
}

static void free_spatialindex(void *tree)
{
    if (tree != NULL)
        Index_Destroy(tree);
}

static oj_status move_in_spatialindex(void *tree, int64_t feature,
                                      const struct oj_box *from,
                                      const struct oj_box *to,
                                      struct oj_error *err)
{
    double from_low[2] = {from->x0, from->y0};
    double from_high[2] = {from->x1, from->y1};
    double to_low[2] = {to->x0, to->y0}, to_high[2] = {to->x1, to->y1};
    if (!oj_box_is_empty(from) &&
        Index_DeleteData(tree, feature, from_low, from_high, 2) != RT_None)
        return fail_spatialindex(err);
    if (!oj_box_is_empty(to) &&
        Index_InsertData(tree, feature, to_low, to_high, 2, NULL, 0) != RT_None)
        return fail_spatialindex(err);
    return OJ_OK;
}

static const struct box_library spatialindex_library = {
    build_spatialindex, query_spatialindex, free_spatialindex,
    move_in_spatialindex};

#endif

/* --- a batch -------------------------------------------------------------- */

/* Order in which the rows of a batch are processed. */
enum visit_order
{
    VISIT_AS_GIVEN,
    VISIT_SORTED,     /* Morton order, with prepared geometries */
    VISIT_COLLECTIVE, /* quadrant by quadrant, with one query for each */
    VISIT_GLOBE /* Morton order, on the sphere or an ellipsoid, without GEOS */
};

struct box_index
{
    const struct box_library *library;
    enum visit_order visit;
    void *tree; /* NULL if all boxes are empty */
    struct oj_boxes boxes;
    struct oj_index_args args;
    struct oj_geos_pairs *pairs;   /* NULL on the globe */
    struct oj_plain_sphere sphere; /* only used on the globe */
    int is_nearest, has_distance;  /* properties of the relation */
    int takes_apart;               /* 1: disjoint features can be pairs, so that
                                      all features are candidates */
    int is_wide;  /* 1: a nearest join starts with a small window and enlarges
                     it */
    double reach; /* radius of the first window if is_wide */
    double most;  /* maximum over the join features' own maximum distances; -1
                     if they have none */
};

/* Among the features whose distance from the current row GEOS failed to
 * compute, the one that could be nearest: smallest lower bound, then smallest
 * tie rank. */
struct refused
{
    double at_least; /* lower bound of its distance; INFINITY if GEOS failed for
                        no feature */
    int32_t rank;
};

/* State of a batch. */
struct box_batch
{
    struct box_index *index;
    const struct oj_flat *input;
    struct oj_plain_sphere sphere;
    struct oj_pair_filter filter;
    int of_points;           /* 1: all rows are points or multipoints */
    struct oj_box *box;      /* [rows] boxes, not widened; on the globe in
                                the projection plane; empty for rows without
                                parts */
    struct oj_points middle; /* centres of the rows' boxes, in the order of
                                processing */
    struct box_found found;
    struct oj_ranking ranking;
    struct oj_pair_budget budget;
    struct oj_answers answers;
    struct refused refused; /* state of the current row */
    int64_t n_candidates, n_undecided;
    double filter_s;
    struct oj_stats *stats;
    struct oj_error *err;
};

static oj_status check_cancelled(const struct box_batch *run)
{
    return oj_check_cancel(run->index->args.options.cancel, run->err);
}

/* Finds the features whose boxes intersect window; with takes_apart, all
 * features that have a box. */
static oj_status find_features_in_window(struct box_batch *run,
                                         const struct oj_box *window)
{
    const struct box_index *index = run->index;
    const struct oj_boxes *boxes = &index->boxes;
    double start = index->args.options.timings ? oj_clock_seconds() : 0.0;
    run->found.n = 0;
    for (int64_t i = 0; index->takes_apart && i < boxes->n; i++)
    {
        if (!oj_box_is_empty(&boxes->box[i]))
            OJ_TRY(add_found_feature(&run->found, i, run->err));
    }
    if (!index->takes_apart)
        OJ_TRY(
            index->library->query(index->tree, window, &run->found, run->err));
    if (index->args.options.timings)
        run->filter_s += oj_clock_seconds() - start;
    return OJ_OK;
}

/* Returns the maximum distance of a row's pairs, or a negative number if it can
 * have no pairs. */
static double distance_bound_of_row(const struct box_batch *run, int64_t row)
{
    const struct box_index *index = run->index;
    if (!index->has_distance)
        return index->takes_apart ? INFINITY : 0.0;
    if (index->args.join_side->max_distance != NULL)
        return index->most;
    return oj_pair_max_distance(&index->args.relation, run->input, row,
                                index->args.join_side, 0);
}

/* Returns the radius of a window that finds all features within a distance: the
 * distance itself, or on the globe the chord. */
static double window_radius_of_distance(const struct box_batch *run,
                                        double distance)
{
    return run->index->visit != VISIT_GLOBE || distance < 0.0
               ? distance
               : oj_plain_sphere_chord(&run->index->sphere, distance);
}

static int envelopes_meet(const struct box_batch *run, int64_t row,
                          int64_t feature)
{
    struct oj_box box = oj_box_of_feature(run->index->args.join_side, feature);
    return oj_box_intersects(&run->box[row], &box);
}

/* GEOS holds the whole table of a Frechet distance in memory and recurses once
 * per step of the path. Above these sizes GEOS is not used. */
#define MOST_FRECHET_CELLS 4000000.0
#define MOST_FRECHET_STEPS 10000

static int is_frechet_too_large(const struct oj_flat *a, int64_t feature_a,
                                const struct oj_flat *b, int64_t feature_b)
{
    int64_t first_a, end_a, first_b, end_b;
    oj_flat_vertex_range(a, feature_a, &first_a, &end_a);
    oj_flat_vertex_range(b, feature_b, &first_b, &end_b);
    return (double)(end_a - first_a) * (double)(end_b - first_b) >
               MOST_FRECHET_CELLS ||
           end_a - first_a + end_b - first_b > MOST_FRECHET_STEPS;
}

static enum oj_geos_outcome plain_frechet(struct box_batch *run, int64_t row,
                                          int64_t feature, double *distance)
{
    const struct box_index *index = run->index;
    int on_globe = index->visit == VISIT_GLOBE;
    return oj_plain_shapes_frechet(
               run->input, row, on_globe ? &run->sphere : NULL,
               index->args.join_side, feature, on_globe ? &index->sphere : NULL,
               distance, run->err) == OJ_OK
               ? OJ_GEOS_YES
               : OJ_GEOS_OUT_OF_MEMORY;
}

static enum oj_geos_outcome measure_on_globe(struct box_batch *run, int64_t row,
                                             int64_t feature, double *distance)
{
    const struct box_index *index = run->index;
    const struct oj_plain_sphere *input = &run->sphere, *side = &index->sphere;
    enum oj_distance_kind kind = index->args.relation.distance;
    int of_segments = kind != OJ_DISTANCE_HAUSDORFF_POINTS;
    if (kind == OJ_DISTANCE_FRECHET)
        return plain_frechet(run, row, feature, distance);
    *distance = 0.0;
    if (kind == OJ_DISTANCE_LEAST)
        *distance = oj_plain_sphere_metres(input, row, side, feature,
                                           index->args.relation.distance_to ==
                                               OJ_TO_INTERIOR);
    else if (kind != OJ_DISTANCE_DIRECTED_FROM_JOIN)
        *distance = oj_plain_sphere_directed_hausdorff(input, row, side,
                                                       feature, of_segments);
    if (kind != OJ_DISTANCE_DIRECTED_HAUSDORFF && kind != OJ_DISTANCE_LEAST)
        *distance =
            fmax(*distance, oj_plain_sphere_directed_hausdorff(
                                side, feature, input, row, of_segments));
    return OJ_GEOS_YES;
}

static enum oj_geos_outcome measure_shape_distance(struct box_batch *run,
                                                   int64_t row, int64_t feature,
                                                   double *distance)
{
    const struct box_index *index = run->index;
    const struct oj_flat *input = run->input, *side = index->args.join_side;
    switch (index->args.relation.distance)
    {
        case OJ_DISTANCE_DIRECTED_HAUSDORFF:
            *distance = oj_plain_shapes_directed_hausdorff(input, row, side,
                                                           feature, 1);
            return OJ_GEOS_YES;
        case OJ_DISTANCE_DIRECTED_FROM_JOIN:
            *distance = oj_plain_shapes_directed_hausdorff(side, feature, input,
                                                           row, 1);
            return OJ_GEOS_YES;
        case OJ_DISTANCE_FRECHET:
            if (is_frechet_too_large(input, row, side, feature))
                return plain_frechet(run, row, feature, distance);
            break;
        default:
            break;
    }
    return oj_geos_pairs_shape_distance(index->pairs, row, feature, distance);
}

/* Sets *distance to the distance between a row of points and the nearest
 * segment of the feature whose direction fits the row's heading. */
static enum oj_geos_outcome measure_by_heading(const struct box_batch *run,
                                               int64_t row, int64_t feature,
                                               double *distance)
{
    const struct oj_index_args *args = &run->index->args;
    int64_t v, end;
    oj_flat_vertex_range(run->input, row, &v, &end);
    *distance = INFINITY;
    for (; v < end; v++)
        *distance =
            fmin(*distance, oj_flat_distance_by_heading(
                                args->join_side, feature, run->input->x[v],
                                run->input->y[v], &args->relation.heading,
                                run->input->heading[row]));
    return OJ_GEOS_YES;
}

/* Returns OJ_GEOS_YES if the pair is in the result, OJ_GEOS_NO if not, or how
 * GEOS failed. Sets *distance to the distance if the join measures it,
 * otherwise to NAN. */
static enum oj_geos_outcome decide_and_measure_pair(struct box_batch *run,
                                                    int64_t row,
                                                    int64_t feature,
                                                    double *distance)
{
    const struct box_index *index = run->index;
    const struct oj_relation *relation = &index->args.relation;
    enum oj_geos_outcome outcome;
    *distance = NAN;
    if (oj_relation_is_bbox(relation))
        return envelopes_meet(run, row, feature) ? OJ_GEOS_YES : OJ_GEOS_NO;
    if (relation->op == OJ_OP_DISJOINT && !envelopes_meet(run, row, feature))
        return OJ_GEOS_YES;
    if (!index->has_distance)
        return oj_geos_pairs_decide(index->pairs, row, feature);
    if (index->visit == VISIT_GLOBE)
        outcome = measure_on_globe(run, row, feature, distance);
    else if (relation->heading.is_asked)
        outcome = measure_by_heading(run, row, feature, distance);
    else if (oj_relation_compares_shapes(relation))
        outcome = measure_shape_distance(run, row, feature, distance);
    else
        outcome = oj_geos_pairs_distance(index->pairs, row, feature, distance);
    if (outcome != OJ_GEOS_YES)
        return outcome;
    /* An infinite distance is an overflow. */
    return *distance >= relation->min_distance && *distance < INFINITY &&
                   *distance <= oj_pair_max_distance(relation, run->input, row,
                                                     index->args.join_side,
                                                     feature)
               ? OJ_GEOS_YES
               : OJ_GEOS_NO;
}

static oj_status record_pair_refused_by_geos(struct box_batch *run, int64_t row,
                                             int32_t feature, double at_least)
{
    int32_t rank = oj_tie_rank(run->index->args.tie_rank, feature);
    char *text = run->stats->undecided_text;
    if (text[0] == '\0')
        snprintf(text, sizeof run->stats->undecided_text, "%s",
                 oj_geos_pairs_message(run->index->pairs));
    if (!run->index->is_nearest)
    {
        run->n_undecided++;
        return oj_answers_add_undecided(&run->answers, row, feature, run->err);
    }
    if (at_least < run->refused.at_least ||
        (at_least == run->refused.at_least && rank < run->refused.rank))
        run->refused = (struct refused){at_least, rank};
    return OJ_OK;
}

static oj_status decide_candidate(struct box_batch *run, int64_t row,
                                  int32_t feature, double at_least)
{
    double distance;
    switch (decide_and_measure_pair(run, row, feature, &distance))
    {
        case OJ_GEOS_NO:
            return OJ_OK;
        case OJ_GEOS_YES:
            if (run->index->is_nearest)
                return oj_ranking_add(&run->ranking, feature, distance,
                                      run->err);
            OJ_TRY(oj_answers_reserve(&run->answers, 1, run->err));
            oj_answers_append_pair(&run->answers, (int32_t)row, feature,
                                   distance);
            return OJ_OK;
        case OJ_GEOS_CANNOT_SAY:
            return record_pair_refused_by_geos(run, row, feature, at_least);
        default:
            return oj_fail(
                run->err, OJ_ERR_NOMEM,
                "out of memory in GEOS: free memory, or use the backend cpu");
    }
}

/* Decides the features that were found and whose boxes intersect the row's
 * window. Most nearest joins also skip features whose boxes are beyond the
 * ranking's bound. Joins within a distance do not, to remain the method of the
 * paper. */
static oj_status decide_features_found_in_window(struct box_batch *run,
                                                 int64_t row,
                                                 const struct oj_box *window)
{
    const struct box_index *index = run->index;
    struct oj_box around = oj_box_widened(&run->box[row], 0.0);
    int is_plain = !index->is_nearest || index->visit == VISIT_GLOBE ||
                   (run->of_points && !index->is_wide);
    run->ranking.max_distance = distance_bound_of_row(run, row);
    oj_ranking_start(&run->ranking);
    run->refused.at_least = INFINITY;
    for (int64_t i = 0; i < run->found.n; i++)
    {
        int32_t feature = run->found.feature[i];
        const struct oj_box *box = &index->boxes.box[feature];
        double at_least;
        if (!oj_box_intersects(window, box))
            continue;
        at_least = oj_box_distance(&around, box);
        if ((at_least > run->ranking.bound && !is_plain) ||
            !oj_pair_filter_accepts(&run->filter, row, feature))
            continue;
        OJ_TRY(check_cancelled(run));
        run->n_candidates++;
        OJ_TRY(decide_candidate(run, row, feature, at_least));
    }
    oj_ranking_finish(&run->ranking);
    return OJ_OK;
}

/* Returns 1 if the feature whose distance GEOS could not compute might be among
 * the nearest of the row. */
static int may_refused_pair_be_in_answer(const struct box_batch *run)
{
    const struct refused *refused = &run->refused;
    const struct oj_ranking *ranking = &run->ranking;
    double kth = oj_ranking_kth_distance(ranking);
    if (!(refused->at_least <= ranking->max_distance) ||
        !(refused->at_least < INFINITY))
        return 0;
    if (ranking->n < ranking->k || refused->at_least < kth)
        return 1;
    return refused->at_least == kth &&
           (ranking->keep_ties ||
            refused->rank < ranking->list[ranking->k - 1].rank);
}

static oj_status store_ranking(struct box_batch *run, int64_t row)
{
    if (may_refused_pair_be_in_answer(run))
    {
        run->n_undecided++;
        OJ_TRY(oj_answers_add_undecided(&run->answers, row, -1, run->err));
    }
    return oj_answers_add_ranking(&run->answers, row, &run->ranking, run->err);
}

/* Joins the rows first .. end - 1, in processing order, with a single query for
 * all of them. */
static oj_status join_group_of_rows_by_one_query(struct box_batch *run,
                                                 int64_t first, int64_t end)
{
    struct oj_box all = oj_box_empty();
    for (int64_t i = first; i < end; i++)
    {
        int64_t row = run->middle.row[i];
        double reach =
            window_radius_of_distance(run, distance_bound_of_row(run, row));
        struct oj_box window = oj_box_widened(&run->box[row], reach);
        if (reach >= 0.0)
            oj_box_add_box(&all, &window);
    }
    if (oj_box_is_empty(&all))
        return OJ_OK;
    OJ_TRY(find_features_in_window(run, &all));
    for (int64_t i = first; i < end; i++)
    {
        int64_t row = run->middle.row[i];
        double reach =
            window_radius_of_distance(run, distance_bound_of_row(run, row));
        struct oj_box window = oj_box_widened(&run->box[row], reach);
        OJ_TRY(check_cancelled(run));
        if (reach < 0.0)
            continue;
        OJ_TRY(decide_features_found_in_window(run, row, &window));
        if (run->index->is_nearest)
            OJ_TRY(store_ranking(run, row));
    }
    return OJ_OK;
}

/* Finds the nearest features of a row by windows of growing size, until the
 * k-th distance is within the window or the window contains all possible pairs.
 */
static oj_status join_row_by_growing_windows(struct box_batch *run, int64_t row)
{
    struct box_index *index = run->index;
    const struct oj_box *box = &run->box[row], *all = &index->boxes.all;
    double most =
               window_radius_of_distance(run, distance_bound_of_row(run, row)),
           kth = INFINITY;
    double reach = fmin(index->reach + oj_box_distance(box, all), most);
    int is_settled = most < 0.0;
    if (is_settled)
        return OJ_OK;
    while (!is_settled)
    {
        struct oj_box window = oj_box_widened(box, reach);
        OJ_TRY(check_cancelled(run));
        OJ_TRY(find_features_in_window(run, &window));
        OJ_TRY(decide_features_found_in_window(run, row, &window));
        kth = oj_ranking_kth_distance(&run->ranking);
        if (kth < INFINITY)
            kth = window_radius_of_distance(run, kth);
        is_settled =
            reach >= most || kth <= reach || oj_box_covers(&window, all);
        reach = fmin(kth < INFINITY ? kth : fmax(4.0 * reach, DBL_MIN), most);
    }
    /* The next row starts with about 1.5 times the window that this row needed.
     */
    if (run->of_points && kth < INFINITY)
        index->reach = fmax(0.5 * index->reach + 0.5 * (1.5 * kth),
                            index->boxes.spacing / 1024.0);
    return store_ranking(run, row);
}

/* Lists the rows with parts and the centres of their boxes. */
static oj_status list_rows_with_box_centers(struct box_batch *run)
{
    const struct oj_flat *input = run->input;
    struct oj_points *list = &run->middle;
    OJ_NEW(run->box, input->n_features, run->err);
    OJ_NEW(list->x, input->n_features, run->err);
    OJ_NEW(list->y, input->n_features, run->err);
    OJ_NEW(list->row, input->n_features, run->err);
    for (int64_t row = 0; row < input->n_features; row++)
    {
        struct oj_box box = run->index->visit == VISIT_GLOBE
                                ? oj_plain_sphere_box(&run->sphere, row)
                                : oj_box_of_feature(input, row);
        run->box[row] = box;
        if (oj_box_is_empty(&box))
            continue;
        list->x[list->n] = 0.5 * box.x0 + 0.5 * box.x1;
        list->y[list->n] = 0.5 * box.y0 + 0.5 * box.y1;
        list->row[list->n++] = (int32_t)row;
    }
    return OJ_OK;
}

/* Joins all rows of the batch, quadrant by quadrant or row by row. */
static oj_status join_rows(struct box_batch *run)
{
    const struct box_index *index = run->index;
    struct oj_quadrants quadrants;
    oj_status status = OJ_OK;
    if (index->is_wide || index->visit != VISIT_COLLECTIVE ||
        (index->is_nearest && !run->of_points))
    {
        for (int64_t i = 0; i < run->middle.n; i++)
            OJ_TRY(index->is_wide
                       ? join_row_by_growing_windows(run, run->middle.row[i])
                       : join_group_of_rows_by_one_query(run, i, i + 1));
        return OJ_OK;
    }
    OJ_TRY(oj_quadtree_make(&run->middle, index->args.options.quadrant_size,
                            &quadrants, run->err));
    for (int64_t q = 0; q < quadrants.n && status == OJ_OK; q++)
        status = join_group_of_rows_by_one_query(
            run, quadrants.quadrant[q].first, quadrants.quadrant[q].end);
    oj_quadtree_free(&quadrants);
    return status;
}

static oj_status join_batch_by_tree(struct box_batch *run,
                                    struct oj_matches *out)
{
    const struct box_index *index = run->index;
    double start = oj_clock_seconds(), listed;
    if (index->visit == VISIT_GLOBE)
        OJ_TRY(oj_plain_sphere_make(
            &run->sphere, run->input,
            oj_relation_ellipsoid(&index->args.relation), run->err));
    else
        oj_geos_pairs_set_input(index->pairs, run->input);
    OJ_TRY(list_rows_with_box_centers(run));
    if (index->visit != VISIT_AS_GIVEN || (run->of_points && index->is_wide))
        OJ_TRY(oj_points_sort(&run->middle, run->err));
    listed = oj_clock_seconds();
    if (index->boxes.n_boxes > 0)
        OJ_TRY(join_rows(run));
    OJ_TRY(oj_answers_to_matches(&run->answers, 1, run->input->n_features,
                                 &index->args.relation, index->args.tie_rank,
                                 out, run->err));
    run->stats->sort_s += listed - start;
    run->stats->filter_s += run->filter_s;
    run->stats->refine_s += oj_clock_seconds() - listed - run->filter_s;
    run->stats->n_candidates += run->n_candidates;
    run->stats->n_undecided_pairs += run->n_undecided;
    return OJ_OK;
}

static oj_status join_by_tree(struct oj_index *wrapped,
                              const struct oj_flat *input,
                              struct oj_matches *out, struct oj_stats *stats,
                              struct oj_error *err)
{
    struct box_index *index = (void *)wrapped;
    struct box_batch run = {
        .index = index, .input = input, .stats = stats, .err = err};
    oj_status status;
    run.of_points = oj_flat_is_points(input) ||
                    (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0;
    if (index->visit == VISIT_GLOBE && !run.of_points &&
        !oj_relation_compares_shapes(&index->args.relation) &&
        (index->args.relation.metric != OJ_METRIC_ELLIPSOID ||
         (index->args.join_side->part_kinds & ~(unsigned)OJ_PART_POINT) != 0))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "metric %s needs points as %s: join the centroids of "
                       "lines and polygons (centroid_of)",
                       index->args.engine->name,
                       index->args.relation.metric == OJ_METRIC_ELLIPSOID
                           ? "one of the sides"
                           : "the input side");
    OJ_TRY(oj_pair_filter_make(&index->args.relation, input,
                               index->args.join_side, &run.filter, err));
    run.ranking = oj_ranking_make(&index->args.relation, index->args.tie_rank);
    oj_pair_budget_start(&run.budget, index->args.options.max_batch_pairs,
                         input->n_features, 1);
    oj_answers_start(&run.answers, &run.budget);
    status = join_batch_by_tree(&run, out);
    oj_plain_sphere_free(&run.sphere);
    oj_points_free(&run.middle);
    oj_ranking_free(&run.ranking);
    oj_answers_free(&run.answers);
    oj_free(run.found.feature);
    oj_free(run.box);
    return status;
}

/* --- the join side -------------------------------------------------------- */

static void free_tree_index(struct oj_index *wrapped)
{
    struct box_index *index = (void *)wrapped;
    if (index->library == NULL)
        return;
    index->library->free(index->tree);
    oj_geos_pairs_close(index->pairs);
    oj_plain_sphere_free(&index->sphere);
    oj_boxes_free(&index->boxes);
}

/* Computes the boxes of features on the globe, in the projection plane. */
static oj_status make_globe_boxes(struct box_index *index, struct oj_error *err)
{
    struct oj_boxes *boxes = &index->boxes;
    int64_t n = index->args.join_side->n_features;
    OJ_TRY(oj_plain_sphere_make(&index->sphere, index->args.join_side,
                                oj_relation_ellipsoid(&index->args.relation),
                                err));
    OJ_NEW(boxes->box, n, err);
    boxes->n = n;
    boxes->all = oj_box_empty();
    for (int64_t i = 0; i < n; i++)
    {
        boxes->box[i] = oj_plain_sphere_box(&index->sphere, i);
        if (oj_box_is_empty(&boxes->box[i]))
            continue;
        boxes->n_boxes++;
        oj_box_add_box(&boxes->all, &boxes->box[i]);
    }
    boxes->spacing = 2.0 / sqrt((double)boxes->n_boxes + 1.0);
    return OJ_OK;
}

/* Builds the tree; opens GEOS, or prepares the globe. */
static oj_status build_tree(struct box_index *index, struct oj_error *err)
{
    const struct oj_relation *relation = &index->args.relation;
    const double *own = index->args.join_side->max_distance;
    double reach = relation->max_distance;
    if (index->visit == VISIT_GLOBE)
        OJ_TRY(make_globe_boxes(index, err));
    else
    {
        OJ_TRY(oj_boxes_make(index->args.join_side, &index->boxes, err));
        OJ_TRY(oj_geos_pairs_open(relation, index->args.join_side,
                                  index->visit == VISIT_SORTED, &index->pairs,
                                  err));
    }
    if (index->boxes.n_boxes > 0)
        OJ_TRY(index->library->build(&index->boxes, &index->tree, err));
    if (index->visit == VISIT_GLOBE && reach < INFINITY)
        reach = oj_plain_sphere_chord(&index->sphere, reach);
    index->is_nearest = oj_relation_is_nearest(relation);
    index->has_distance =
        index->visit == VISIT_GLOBE ||
        (oj_op_get(relation->op)->takes & OJ_TAKES_DISTANCE) != 0;
    index->takes_apart =
        !index->has_distance && !oj_relation_needs_contact(relation);
    index->is_wide = index->is_nearest &&
                     oj_boxes_window_is_wide(&index->boxes, reach, relation->k);
    index->most = -1.0;
    for (int64_t i = 0; own != NULL && i < index->boxes.n; i++)
        index->most = oj_larger(own[i], index->most);
    index->reach = index->boxes.spacing * sqrt((double)relation->k);
    return OJ_OK;
}

#ifdef OJ_SPATIALINDEX
/* Moves points one by one, since libspatialindex has no bulk update. */
static oj_status move_points_in_tree(struct oj_index *wrapped, int64_t n,
                                     const int32_t *feature,
                                     struct oj_error *err)
{
    struct box_index *index = (void *)wrapped;
    struct oj_boxes *boxes = &index->boxes;
    if (index->tree == NULL)
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "all features of the layer are empty, so points cannot be "
            "moved: build the index again");
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_box *box = &boxes->box[feature[i]], from = *box;
        struct oj_box to = oj_box_of_feature(index->args.join_side, feature[i]);
        OJ_TRY(oj_check_cancel(index->args.options.cancel, err));
        if (!oj_box_is_empty(&to))
            to = oj_box_widened(&to, 0.0);
        OJ_TRY(index->library->move(index->tree, feature[i], &from, &to, err));
        boxes->n_boxes += oj_box_is_empty(&from) - oj_box_is_empty(&to);
        oj_box_add_box(&boxes->all, &to);
        oj_geos_pairs_evict_feature(index->pairs, feature[i]);
        *box = to;
    }
    return OJ_OK;
}
#endif

static const struct tree_method
{
    const struct box_library *library;
    enum visit_order visit;
} methods[] = {
    {&geos_library, VISIT_AS_GIVEN},
    {&geos_library, VISIT_SORTED},
    {&geos_library, VISIT_GLOBE},
#ifdef OJ_SPATIALINDEX
    {&spatialindex_library, VISIT_AS_GIVEN},
    {&spatialindex_library, VISIT_COLLECTIVE},
#endif
};

/* Refuses a relation whose metric is not that of the method. The references on
 * the globe have the names of their metrics. */
static oj_status check_metric(const struct tree_method *method,
                              const struct oj_index_args *args,
                              struct oj_error *err)
{
    const struct oj_relation *relation = &args->relation;
    const char *name = args->engine->name;
    const char *reference =
        relation->metric == OJ_METRIC_ELLIPSOID ? "ellipsoid" : "sphere";
    if (method->visit != VISIT_GLOBE)
        return oj_relation_is_on_globe(relation)
                   ? oj_fail(err, OJ_ERR_UNSUPPORTED,
                             "the backend \"%s\" asks GEOS, which measures in "
                             "the plane only: on the %s use the backend %s",
                             name, reference, reference)
                   : OJ_OK;
    if (!oj_relation_is_on_globe(relation) || strcmp(reference, name) != 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend \"%s\" needs metric %s: set that metric, "
                       "or use the backend cpu",
                       name, name);
    return OJ_OK;
}

static oj_status build_tree_index(struct oj_index *wrapped,
                                  const struct oj_index_args *args,
                                  struct oj_stats *stats, struct oj_error *err)
{
    const struct tree_method *method = &methods[args->engine->variant];
    struct box_index *index = (void *)wrapped;
    (void)stats;
    OJ_TRY(check_metric(method, args, err));
    index->library = method->library;
    index->visit = method->visit;
    index->args = *args;
    return build_tree(index, err);
}

static int supports_join_by_tree(const struct oj_relation *relation,
                                 const struct oj_flat *join_side,
                                 const struct oj_flat *input)
{
    (void)join_side;
    return oj_relation_is_of_shapes(relation) &&
           (!relation->heading.is_asked || input == NULL ||
            (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0);
}

#define TREE_ENGINE(method_name, method, move_function)                        \
    {                                                                          \
        .name = method_name, .index_size = sizeof(struct box_index),           \
        .build = build_tree_index, .join = join_by_tree,                       \
        .move = move_function, .free_side = free_tree_index,                   \
        .variant = method, .supports = supports_join_by_tree,                  \
        .takes_headings = 1                                                    \
    }

const struct oj_engine oj_geos_engine = TREE_ENGINE("geos", 0, NULL);
const struct oj_engine oj_geos_sorted_engine =
    TREE_ENGINE("geos_sorted", 1, NULL);
const struct oj_engine oj_sphere_engine = TREE_ENGINE("sphere", 2, NULL);
const struct oj_engine oj_ellipsoid_engine = TREE_ENGINE("ellipsoid", 2, NULL);
#ifdef OJ_SPATIALINDEX
const struct oj_engine oj_spatialindex_engine =
    TREE_ENGINE("spatialindex", 3, move_points_in_tree);
const struct oj_engine oj_spatialindex_collective_engine =
    TREE_ENGINE("spatialindex_collective", 4, move_points_in_tree);
#endif
