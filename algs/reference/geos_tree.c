/* GEOS's STRtree. */
#include "../../flatten/base/oj_array.h"
#include "../geos/geos_handle.h"
#include "box_tree.h"

#define NODE_CAPACITY 10 /* GEOS's own default */

struct tree
{
    struct oj_geos_handle handle;
    GEOSSTRtree *strtree;
    GEOSGeometry **diagonal; /* [boxes.n] envelopes; outlive the tree */
    const struct oj_boxes *boxes;
    /* of the query that is running */
    struct oj_box_found *found;
    oj_status found_status;
    struct oj_error *found_err;
};

/* A geometry with this envelope: the tree looks at nothing else. */
static GEOSGeometry *make_diagonal(struct tree *tree, const struct oj_box *box)
{
    GEOSCoordSequence *ends = GEOSCoordSeq_create_r(tree->handle.geos, 2, 2);
    if (ends == NULL)
        return NULL;
    if (GEOSCoordSeq_setXY_r(tree->handle.geos, ends, 0, box->x0, box->y0) ==
            0 ||
        GEOSCoordSeq_setXY_r(tree->handle.geos, ends, 1, box->x1, box->y1) == 0)
    {
        GEOSCoordSeq_destroy_r(tree->handle.geos, ends);
        return NULL;
    }
    return GEOSGeom_createLineString_r(tree->handle.geos, ends);
}

static void take_item(void *item, void *user)
{
    struct tree *tree = user;
    const struct oj_box *box = item;
    if (tree->found_status == OJ_OK)
        tree->found_status = oj_box_found_add(
            tree->found, box - tree->boxes->box, tree->found_err);
}

static oj_status query(void *opened, const struct oj_box *window,
                       struct oj_box_found *found, struct oj_error *err)
{
    struct tree *tree = opened;
    GEOSGeometry *diagonal = make_diagonal(tree, window);
    if (diagonal == NULL)
        return oj_geos_handle_fail(&tree->handle, err);
    tree->found = found;
    tree->found_err = err;
    tree->found_status = OJ_OK;
    GEOSSTRtree_query_r(tree->handle.geos, tree->strtree, diagonal, take_item,
                        tree);
    GEOSGeom_destroy_r(tree->handle.geos, diagonal);
    return tree->found_status;
}

static void free_tree(void *opened)
{
    struct tree *tree = opened;
    if (tree == NULL)
        return;
    if (tree->strtree != NULL)
        GEOSSTRtree_destroy_r(tree->handle.geos, tree->strtree);
    for (int64_t i = 0; tree->diagonal != NULL && i < tree->boxes->n; i++)
    {
        if (tree->diagonal[i] != NULL)
            GEOSGeom_destroy_r(tree->handle.geos, tree->diagonal[i]);
    }
    oj_geos_handle_close(&tree->handle);
    oj_free(tree->diagonal);
    oj_free(tree);
}

static oj_status fill_tree(struct tree *tree, struct oj_error *err)
{
    const struct oj_boxes *boxes = tree->boxes;
    struct oj_box_found found = {0, 0, NULL};
    oj_status status;
    OJ_TRY(oj_geos_handle_open(&tree->handle, err));
    tree->strtree = GEOSSTRtree_create_r(tree->handle.geos, NODE_CAPACITY);
    if (tree->strtree == NULL)
        return oj_geos_handle_fail(&tree->handle, err);
    tree->diagonal = oj_calloc(boxes->n, sizeof(GEOSGeometry *));
    if (tree->diagonal == NULL)
        return oj_fail_nomem(err, boxes->n, sizeof(GEOSGeometry *));
    for (int64_t i = 0; i < boxes->n; i++)
    {
        if (oj_box_is_empty(&boxes->box[i]))
            continue;
        tree->diagonal[i] = make_diagonal(tree, &boxes->box[i]);
        if (tree->diagonal[i] == NULL)
            return oj_geos_handle_fail(&tree->handle, err);
        GEOSSTRtree_insert_r(tree->handle.geos, tree->strtree,
                             tree->diagonal[i], &boxes->box[i]);
    }
    /* The first query builds the tree; any window will do. */
    oj_geos_handle_ask(&tree->handle);
    status = query(tree, &boxes->box[0], &found, err);
    oj_free(found.feature);
    if (status == OJ_OK && tree->handle.message[0] != '\0')
        status = oj_geos_handle_fail(&tree->handle, err);
    return status;
}

static oj_status build(const struct oj_boxes *boxes, void **out,
                       struct oj_error *err)
{
    struct tree *tree = oj_calloc(1, sizeof *tree);
    oj_status status;
    if (tree == NULL)
        return oj_fail_nomem(err, 1, sizeof *tree);
    tree->boxes = boxes;
    status = fill_tree(tree, err);
    if (status == OJ_OK)
        *out = tree;
    else
        free_tree(tree);
    return status;
}

const struct oj_box_library oj_geos_tree = {build, query, free_tree};
