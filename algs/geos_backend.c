/** The reference: GEOS's STRtree and GEOS's word on pairs, one thread.  Two
 *  rows: the features as they come, with plain predicates; and in Morton order
 *  with prepared geometries, which is what an honest comparison of speed has to
 *  use. */
#include "../flatten/oj_array.h"
#include "box_search.h"
#include "oj_clock.h"

#include <geos_c.h>

#include <stdio.h>
#include <string.h>

#define NODE_CAPACITY 10 /* GEOS's own default */

struct oj_index
{
    GEOSContextHandle_t geos;
    char message[256]; /* the last error text of GEOS */
    GEOSSTRtree *tree;
    GEOSGeometry **diagonal; /* [boxes.n] envelopes; outlive the tree */
    struct oj_boxes boxes;
    struct oj_box_search search;
    /* of the query that is running */
    struct oj_found *found;
    oj_status found_status;
    struct oj_error *found_err;
};

static void keep_message(const char *message, void *user)
{
    struct oj_index *index = user;
    snprintf(index->message, sizeof index->message, "%s", message);
}

static oj_status fail(const struct oj_index *index, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_NOMEM, "GEOS: %s",
                   index->message[0] ? index->message : "out of memory");
}

/* A geometry with this envelope: the tree looks at nothing else. */
static GEOSGeometry *make_diagonal(struct oj_index *index,
                                   const struct oj_box *box)
{
    GEOSCoordSequence *ends = GEOSCoordSeq_create_r(index->geos, 2, 2);
    if (ends == NULL)
        return NULL;
    if (GEOSCoordSeq_setXY_r(index->geos, ends, 0, box->x0, box->y0) == 0 ||
        GEOSCoordSeq_setXY_r(index->geos, ends, 1, box->x1, box->y1) == 0)
    {
        GEOSCoordSeq_destroy_r(index->geos, ends);
        return NULL;
    }
    return GEOSGeom_createLineString_r(index->geos, ends);
}

static void take_item(void *item, void *user)
{
    struct oj_index *index = user;
    const struct oj_box *box = item;
    if (index->found_status == OJ_OK)
        index->found_status = oj_found_add(index->found, box - index->boxes.box,
                                           index->found_err);
}

static oj_status query(void *tree, const struct oj_box *window,
                       struct oj_found *found, struct oj_error *err)
{
    struct oj_index *index = tree;
    GEOSGeometry *diagonal;
    found->n = 0;
    if (index->boxes.n_boxes == 0)
        return OJ_OK;
    diagonal = make_diagonal(index, window);
    if (diagonal == NULL)
        return fail(index, err);
    index->found = found;
    index->found_err = err;
    index->found_status = OJ_OK;
    GEOSSTRtree_query_r(index->geos, index->tree, diagonal, take_item, index);
    GEOSGeom_destroy_r(index->geos, diagonal);
    return index->found_status;
}

static oj_status build_tree(struct oj_index *index, struct oj_error *err)
{
    struct oj_found found = {0, 0, NULL};
    oj_status status;
    index->tree = GEOSSTRtree_create_r(index->geos, NODE_CAPACITY);
    if (index->tree == NULL)
        return fail(index, err);
    index->diagonal = oj_calloc(index->boxes.n, sizeof(GEOSGeometry *));
    if (index->diagonal == NULL)
        return oj_fail_nomem(err, index->boxes.n, sizeof(GEOSGeometry *));
    for (int64_t i = 0; i < index->boxes.n; i++)
    {
        if (oj_box_is_empty(&index->boxes.box[i]))
            continue;
        index->diagonal[i] = make_diagonal(index, &index->boxes.box[i]);
        if (index->diagonal[i] == NULL)
            return fail(index, err);
        GEOSSTRtree_insert_r(index->geos, index->tree, index->diagonal[i],
                             &index->boxes.box[i]);
    }
    /* The first query builds the tree; any window will do. */
    index->message[0] = '\0';
    status = query(index, &index->boxes.box[0], &found, err);
    oj_free(found.feature);
    if (status == OJ_OK && index->message[0] != '\0')
        status = fail(index, err);
    return status;
}

static void free_index(struct oj_index *index)
{
    if (index == NULL)
        return;
    if (index->geos != NULL)
    {
        if (index->tree != NULL)
            GEOSSTRtree_destroy_r(index->geos, index->tree);
        for (int64_t i = 0; index->diagonal != NULL && i < index->boxes.n; i++)
        {
            if (index->diagonal[i] != NULL)
                GEOSGeom_destroy_r(index->geos, index->diagonal[i]);
        }
        GEOS_finish_r(index->geos);
    }
    oj_free(index->diagonal);
    oj_box_search_close(&index->search);
    oj_boxes_free(&index->boxes);
    oj_free(index);
}

static oj_status build(struct oj_index *index, const struct oj_flat *join_side,
                       struct oj_error *err)
{
    struct oj_box_search *search = &index->search;
    index->geos = GEOS_init_r();
    if (index->geos == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "GEOS could not be started");
    GEOSContext_setErrorMessageHandler_r(index->geos, keep_message, index);
    OJ_TRY(oj_boxes_make(join_side, &index->boxes, err));
    if (index->boxes.n_boxes > 0)
        OJ_TRY(build_tree(index, err));
    search->tree.tree = index;
    search->tree.query = query;
    search->boxes = &index->boxes;
    return oj_box_search_prepare(search, err);
}

static oj_status
make_index(const struct oj_backend *self, const struct oj_flat *join_side,
           const int32_t *tie_rank, const struct oj_relation *relation,
           const struct oj_options *options, struct oj_index **out,
           struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct oj_index *index = oj_calloc(1, sizeof *index);
    oj_status status;
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    status = oj_box_search_open(&index->search, self, join_side, tie_rank,
                                relation, options, err);
    if (status == OJ_OK)
        status = build(index, join_side, err);
    if (status != OJ_OK)
    {
        free_index(index);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    *out = index;
    return OJ_OK;
}

static oj_status join(struct oj_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    return oj_box_search_join(&index->search, input, out, stats, err);
}

const struct oj_backend oj_geos_backend = {
    OJ_BACKEND_ABI,
    "geos",
    "reference: GEOS STRtree and GEOS predicates, one thread",
    1,
    OJ_VISIT_AS_GIVEN,
    make_index,
    join,
    free_index,
};

const struct oj_backend oj_geos_sorted_backend = {
    OJ_BACKEND_ABI,
    "geos_sorted",
    "the same with the input in Morton order and prepared geometries",
    1,
    OJ_VISIT_SORTED,
    make_index,
    join,
    free_index,
};
