/** A library's tree of boxes, for the search in tree_reference.c. */
#ifndef BOX_TREE_H
#define BOX_TREE_H

#include "../base/oj_boxes.h"

/** Features found by a query. Owner; zeroed memory is a valid empty one. */
struct oj_box_found
{
    int64_t n, capacity;
    int32_t *feature;
};

/** Adds feature to found. */
OJ_MUST_USE oj_status oj_box_found_add(struct oj_box_found *found,
                                       int64_t feature, struct oj_error *err);

struct oj_box_library
{
    /** The tree of those boxes that are not empty, of which there is one at
     *  least; boxes outlive it. */
    oj_status (*build)(const struct oj_boxes *boxes, void **tree,
                       struct oj_error *err);
    /** Adds to found the features whose box intersects window. */
    oj_status (*query)(void *tree, const struct oj_box *window,
                       struct oj_box_found *found, struct oj_error *err);
    void (*free)(void *tree); /**< accepts NULL */
};

extern const struct oj_box_library oj_spatialindex_tree;

#endif
