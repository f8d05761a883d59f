#include "gpics_tree.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_compare.h"

#include <stdlib.h>
#include <string.h>

/* Number of buckets of the histogram that finds a median. */
#define BUCKETS 256

/* A point that is being distributed to leaves. */
struct gpics_item
{
    double x, y;
    int32_t feature;
};

/* A leaf without pages, and its points: the items from first to first + n - 1.
 */
struct gpics_part
{
    int64_t first, n;
    int32_t node;
};

/* Memory that is used during a build or an update. */
struct gpics_work
{
    int64_t n, cap_item, cap_scratch, cap_value;
    struct gpics_item *item, *scratch;
    double *value; /* coordinates in a bucket of the histogram */
    int64_t n_parts, cap_parts;
    struct gpics_part *part; /* [n_parts] leaves that still have to be divided
                                or filled */
};

static void free_work(struct gpics_work *work)
{
    oj_free(work->item);
    oj_free(work->scratch);
    oj_free(work->value);
    oj_free(work->part);
}

static oj_status add_part_to_cut(struct gpics_work *work, int32_t node,
                                 int64_t first, int64_t n, struct oj_error *err)
{
    OJ_ROOM(work->part, work->n_parts, work->n_parts + 1, work->cap_parts, err);
    work->part[work->n_parts++] = (struct gpics_part){first, n, node};
    return OJ_OK;
}

/* --- nodes and pages ------------------------------------------------------ */

static oj_status make_leaf_node(struct gpics_tree *tree, int32_t parent,
                                int level, const struct oj_box *cell,
                                int32_t *out, struct oj_error *err)
{
    int32_t at = tree->free_node;
    if (at != GPICS_NONE)
        tree->free_node = tree->node[at].parent;
    else
    {
        if (tree->n_nodes == INT32_MAX)
            return oj_fail(err, OJ_ERR_LIMIT,
                           "a tree of G-PICS has at most 2^31 - 1 nodes: use "
                           "the backend cpu");
        OJ_ROOM(tree->node, tree->n_nodes, tree->n_nodes + 1, tree->cap_nodes,
                err);
        at = (int32_t)tree->n_nodes++;
    }
    tree->node[at] = (struct gpics_node){
        .cell = *cell,
        .child = {GPICS_NONE, GPICS_NONE, GPICS_NONE, GPICS_NONE},
        .parent = parent,
        .page = GPICS_NONE,
        .level = (uint8_t)level};
    *out = at;
    return OJ_OK;
}

static void free_node(struct gpics_tree *tree, int32_t at)
{
    tree->node[at].state = GPICS_FREE;
    tree->node[at].parent = tree->free_node;
    tree->free_node = at;
}

static struct oj_box cell_of_child(const struct gpics_node *node, int child)
{
    struct oj_box cell = node->cell;
    if (child & 2)
        cell.x0 = node->sx;
    else if (node->sx < INFINITY)
        cell.x1 = node->sx;
    if (child & 1)
        cell.y0 = node->sy;
    else if (node->sy < INFINITY)
        cell.y1 = node->sy;
    return cell;
}

static int child_containing_point(const struct gpics_node *node, double x,
                                  double y)
{
    return 2 * (x >= node->sx) + (y >= node->sy);
}

static oj_status add_page(struct gpics_tree *tree, int32_t leaf,
                          struct oj_error *err)
{
    struct gpics_node *node = &tree->node[leaf];
    int32_t at = tree->free_page;
    if (at != GPICS_NONE)
        tree->free_page = tree->page[at].previous;
    else
    {
        if (tree->n_pages == INT32_MAX)
            return oj_fail(err, OJ_ERR_LIMIT,
                           "a tree of G-PICS has at most 2^31 - 1 pages: use "
                           "the backend cpu");
        OJ_ROOM(tree->page, tree->n_pages, tree->n_pages + 1, tree->cap_pages,
                err);
        at = (int32_t)tree->n_pages++;
    }
    tree->page[at].n = 0;
    tree->page[at].leaf = leaf;
    tree->page[at].previous = node->page;
    node->page = at;
    return OJ_OK;
}

static void free_last_page(struct gpics_tree *tree, struct gpics_node *leaf)
{
    int32_t at = leaf->page;
    leaf->page = tree->page[at].previous;
    tree->page[at].previous = tree->free_page;
    tree->free_page = at;
}

static void store_point_in_slot(struct gpics_tree *tree, int32_t at,
                                int32_t slot, double x, double y,
                                int32_t feature)
{
    struct gpics_page *page = &tree->page[at];
    page->x[slot] = x;
    page->y[slot] = y;
    page->feature[slot] = feature;
    tree->place[feature] = (int64_t)at * GPICS_PAGE_POINTS + slot;
}

static oj_status add_point(struct gpics_tree *tree, int32_t leaf, double x,
                           double y, int32_t feature, struct oj_error *err)
{
    struct gpics_node *node = &tree->node[leaf];
    if (node->page == GPICS_NONE ||
        tree->page[node->page].n == GPICS_PAGE_POINTS)
        OJ_TRY(add_page(tree, leaf, err));
    store_point_in_slot(tree, node->page, tree->page[node->page].n++, x, y,
                        feature);
    node->n++;
    return OJ_OK;
}

/* Removes a feature's point from its leaf, whose last point moves to the free
 * slot. Returns the leaf. */
static int32_t remove_point(struct gpics_tree *tree, int32_t feature)
{
    int32_t at = (int32_t)(tree->place[feature] / GPICS_PAGE_POINTS);
    int32_t slot = (int32_t)(tree->place[feature] % GPICS_PAGE_POINTS);
    int32_t leaf = tree->page[at].leaf;
    struct gpics_node *node = &tree->node[leaf];
    struct gpics_page *last = &tree->page[node->page];
    int32_t from = --last->n;
    store_point_in_slot(tree, at, slot, last->x[from], last->y[from],
                        last->feature[from]);
    tree->place[feature] = -1;
    node->n--;
    if (last->n == 0)
        free_last_page(tree, node);
    return leaf;
}

/* Moves the points of a leaf to the end of work->item. */
static oj_status move_points_of_leaf_to_items(struct gpics_tree *tree,
                                              int32_t leaf,
                                              struct gpics_work *work,
                                              struct oj_error *err)
{
    struct gpics_node *node = &tree->node[leaf];
    OJ_ROOM(work->item, work->n, work->n + node->n, work->cap_item, err);
    while (node->page != GPICS_NONE)
    {
        const struct gpics_page *page = &tree->page[node->page];
        for (int i = 0; i < page->n; i++)
            work->item[work->n++] =
                (struct gpics_item){page->x[i], page->y[i], page->feature[i]};
        free_last_page(tree, node);
    }
    node->n = 0;
    return OJ_OK;
}

/* --- division of nodes ------------------------------------------------------
 */

/* Returns a number v near the middle with low < v <= high; INFINITY if low
 * equals high. */
static double value_in_the_middle(double low, double high)
{
    double middle = 0.5 * low + 0.5 * high;
    if (middle > low)
        return middle;
    return low < high ? high : INFINITY;
}

/* Divides a cell in the middle. A cell that extends to infinity counts as
 * ending at the frame, or at its farthest point outside of the frame. Returns 0
 * if the cell is a single point. */
static int cut_in_the_middle(const struct gpics_tree *tree,
                             struct gpics_node *node,
                             const struct gpics_item *item, int64_t n)
{
    const struct oj_box *cell = &node->cell;
    struct oj_box all = tree->frame;
    for (int64_t i = 0; !(oj_box_largest_coordinate(cell) < INFINITY) && i < n;
         i++)
        oj_box_add_point(&all, item[i].x, item[i].y);
    node->sx = value_in_the_middle(oj_larger(cell->x0, all.x0),
                                   cell->x1 < all.x1 ? cell->x1 : all.x1);
    node->sy = value_in_the_middle(oj_larger(cell->y0, all.y0),
                                   cell->y1 < all.y1 ? cell->y1 : all.y1);
    return node->sx < INFINITY || node->sy < INFINITY;
}

static double coordinate_on_axis(const struct gpics_item *item, int is_y)
{
    return is_y ? item->y : item->x;
}

/* Finds the median of the x (or y) of n items by a histogram, and sorts only
 * the bucket that contains it. *median is greater than the minimum, so both
 * sides of the division have points. value is scratch for n numbers. Returns 0
 * if all n values are equal. */
static int find_median(const struct gpics_item *item, int64_t n, int is_y,
                       double *value, double *median)
{
    int64_t count[BUCKETS] = {0}, below = 0, n_values = 0, bucket = 0;
    double low = INFINITY, high = -INFINITY, scale, next = INFINITY;
    for (int64_t i = 0; i < n; i++)
    {
        double v = coordinate_on_axis(&item[i], is_y);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    if (!(low < high))
        return 0;
    scale = (BUCKETS - 1) / (high - low);
    scale = scale < INFINITY ? scale : 0.0;
    for (int64_t i = 0; i < n; i++)
        count[(int64_t)((coordinate_on_axis(&item[i], is_y) - low) * scale)]++;
    while (below + count[bucket] <= n / 2)
        below += count[bucket++];
    for (int64_t i = 0; i < n; i++)
    {
        double v = coordinate_on_axis(&item[i], is_y);
        if ((int64_t)((v - low) * scale) == bucket)
            value[n_values++] = v;
        next = v > low && v < next ? v : next;
    }
    qsort(value, (size_t)n_values, sizeof *value, oj_compare_doubles);
    *median = value[n / 2 - below] > low ? value[n / 2 - below] : next;
    return 1;
}

/* Divides at the median of x or y, which alternate by level. If all points are
 * equal on this axis, takes the other axis. Returns 0 if all points are
 * equal. */
static int cut_at_median(struct gpics_node *node, const struct gpics_item *item,
                         int64_t n, double *value)
{
    double median;
    for (int i = 0; i < 2; i++)
    {
        int is_y = (node->level + i) % 2;
        if (!find_median(item, n, is_y, value, &median))
            continue;
        node->sx = is_y ? INFINITY : median;
        node->sy = is_y ? median : INFINITY;
        return 1;
    }
    return 0;
}

static int most_levels_of_tree(const struct gpics_tree *tree)
{
    return tree->kind == GPICS_KDTREE ? GPICS_MOST_LEVELS : GPICS_LEVELS;
}

static int must_node_be_cut(const struct gpics_tree *tree, int32_t node,
                            int64_t n)
{
    return n > tree->most_points &&
           tree->node[node].level < most_levels_of_tree(tree);
}

/* Sorts the points of a part by child: those of child c become the items from
 * first[c] to first[c + 1] - 1. first has five elements. */
static void sort_points_by_child(const struct gpics_node *node,
                                 struct gpics_work *work,
                                 const struct gpics_part *part, int64_t *first)
{
    struct gpics_item *item = work->item + part->first;
    int64_t next[4] = {0, 0, 0, 0};
    for (int64_t i = 0; i < part->n; i++)
        next[child_containing_point(node, item[i].x, item[i].y)]++;
    first[0] = part->first;
    for (int c = 0; c < 4; c++)
    {
        first[c + 1] = first[c] + next[c];
        next[c] = first[c] - part->first;
    }
    for (int64_t i = 0; i < part->n; i++)
        work->scratch[next[child_containing_point(node, item[i].x,
                                                  item[i].y)]++] = item[i];
    memcpy(item, work->scratch, (size_t)part->n * sizeof *item);
}

/* Divides a leaf without pages and gives its points to its children. If it must
 * not be divided, puts the points into pages instead. */
static oj_status cut_or_fill_leaf(struct gpics_tree *tree,
                                  struct gpics_work *work,
                                  const struct gpics_part *part,
                                  struct oj_error *err)
{
    struct gpics_item *item = work->item + part->first;
    int64_t first[5];
    if (!must_node_be_cut(tree, part->node, part->n) ||
        !(tree->kind == GPICS_KDTREE
              ? cut_at_median(&tree->node[part->node], item, part->n,
                              work->value)
              : cut_in_the_middle(tree, &tree->node[part->node], item,
                                  part->n)))
    {
        for (int64_t i = 0; i < part->n; i++)
            OJ_TRY(add_point(tree, part->node, item[i].x, item[i].y,
                             item[i].feature, err));
        return OJ_OK;
    }
    tree->node[part->node].state = GPICS_LINK;
    sort_points_by_child(&tree->node[part->node], work, part, first);
    for (int c = 0; c < 4; c++)
    {
        struct oj_box cell = cell_of_child(&tree->node[part->node], c);
        int32_t child;
        if (first[c + 1] == first[c])
            continue;
        OJ_TRY(make_leaf_node(tree, part->node,
                              tree->node[part->node].level + 1, &cell, &child,
                              err));
        tree->node[part->node].child[c] = child;
        OJ_TRY(add_part_to_cut(work, child, first[c], first[c + 1] - first[c],
                               err));
    }
    return OJ_OK;
}

/* Distributes the items of all parts to leaves, level by level. */
static oj_status distribute_parts_to_leaves(struct gpics_tree *tree,
                                            struct gpics_work *work,
                                            struct oj_error *err)
{
    OJ_ROOM(work->scratch, 0, work->n, work->cap_scratch, err);
    if (tree->kind == GPICS_KDTREE)
        OJ_ROOM(work->value, 0, work->n, work->cap_value, err);
    for (int64_t i = 0; i < work->n_parts; i++)
    {
        struct gpics_part part = work->part[i];
        OJ_TRY(oj_check_cancel(tree->cancel, err));
        OJ_TRY(cut_or_fill_leaf(tree, work, &part, err));
    }
    return OJ_OK;
}

/* --- construction --------------------------------------------------------- */

static const struct oj_box everywhere = {-INFINITY, -INFINITY, INFINITY,
                                         INFINITY};

static oj_status build_root(struct gpics_tree *tree, struct gpics_work *work,
                            const double *x, const double *y,
                            struct oj_error *err)
{
    OJ_NEW(tree->place, tree->n_features, err);
    OJ_ROOM(work->item, 0, tree->n_features, work->cap_item, err);
    for (int64_t f = 0; f < tree->n_features; f++)
    {
        tree->place[f] = -1;
        if (x[f] == x[f])
            work->item[work->n++] = (struct gpics_item){x[f], y[f], (int32_t)f};
    }
    tree->n_points = work->n;
    tree->frame = tree->extent = oj_box_of_points(x, y, tree->n_features);
    if (work->n == 0)
        return OJ_OK;
    OJ_TRY(make_leaf_node(tree, GPICS_NONE, 0, &everywhere, &tree->root, err));
    OJ_TRY(add_part_to_cut(work, tree->root, 0, work->n, err));
    return distribute_parts_to_leaves(tree, work, err);
}

oj_status gpics_tree_build(struct gpics_tree *tree, int64_t n, const double *x,
                           const double *y, struct oj_error *err)
{
    struct gpics_work work = {0};
    oj_status status;
    tree->n_features = n;
    tree->root = tree->free_node = tree->free_page = GPICS_NONE;
    status = build_root(tree, &work, x, y, err);
    free_work(&work);
    return status;
}

int64_t gpics_tree_bytes(const struct gpics_tree *tree)
{
    return tree->cap_nodes * (int64_t)sizeof *tree->node +
           tree->cap_pages * (int64_t)sizeof *tree->page +
           tree->n_features * (int64_t)sizeof *tree->place;
}

void gpics_tree_free(struct gpics_tree *tree)
{
    oj_free(tree->place);
    oj_free(tree->node);
    oj_free(tree->page);
}

/* --- updates -------------------------------------------------------------- */

/* Lists that an update makes. */
struct gpics_update
{
    const double *x, *y;
    int64_t n_moved, n_left, n_full;
    int64_t cap_moved, cap_left, cap_full;
    int32_t *moved; /* features that leave their leaf, or that had no point
                       before */
    int32_t *left;  /* leaves that lost a point; a leaf may be repeated */
    int32_t *full;  /* leaves with more than most_points points */
};

static oj_status append_number(int32_t **list, int64_t *n, int64_t *cap,
                               int32_t number, struct oj_error *err)
{
    OJ_ROOM(*list, *n, *n + 1, *cap, err);
    (*list)[(*n)++] = number;
    return OJ_OK;
}

static int is_in_cell(const struct oj_box *cell, double x, double y)
{
    return x >= cell->x0 && x < cell->x1 && y >= cell->y0 && y < cell->y1;
}

/* Overwrites the points that stay in their leaf, and lists the others (the
 * paper's movement check). */
static oj_status check_movements(struct gpics_tree *tree,
                                 struct gpics_update *update, int64_t n,
                                 const int32_t *feature, struct oj_error *err)
{
    for (int64_t i = 0; i < n; i++)
    {
        int32_t f = feature[i];
        int64_t place = tree->place[f];
        double x = update->x[f], y = update->y[f];
        int32_t at = (int32_t)(place / GPICS_PAGE_POINTS);
        if (x == x)
            oj_box_add_point(&tree->extent, x, y);
        if (place >= 0 &&
            is_in_cell(&tree->node[tree->page[at].leaf].cell, x, y))
            store_point_in_slot(tree, at, (int32_t)(place % GPICS_PAGE_POINTS),
                                x, y, f);
        else if (place >= 0 || x == x)
            OJ_TRY(append_number(&update->moved, &update->n_moved,
                                 &update->cap_moved, f, err));
    }
    return OJ_OK;
}

static oj_status remove_moved_points(struct gpics_tree *tree,
                                     struct gpics_update *update,
                                     struct oj_error *err)
{
    for (int64_t i = 0; i < update->n_moved; i++)
    {
        int32_t f = update->moved[i];
        if (tree->place[f] < 0)
            continue;
        tree->n_points--;
        OJ_TRY(append_number(&update->left, &update->n_left, &update->cap_left,
                             remove_point(tree, f), err));
    }
    return OJ_OK;
}

/* Finds the leaf whose cell contains (x, y). If there is none, *at is
 * GPICS_NONE, and the leaf would be child *child of *parent (the root, if
 * *parent is GPICS_NONE). */
static void find_leaf(const struct gpics_tree *tree, double x, double y,
                      int32_t *at, int32_t *parent, int *child)
{
    *parent = GPICS_NONE;
    *child = 0;
    *at = tree->root;
    while (*at != GPICS_NONE && tree->node[*at].state == GPICS_LINK)
    {
        *parent = *at;
        *child = child_containing_point(&tree->node[*at], x, y);
        *at = tree->node[*at].child[*child];
    }
}

int32_t gpics_tree_leaf_at(const struct gpics_tree *tree, double x, double y)
{
    int32_t at, parent;
    int child;
    find_leaf(tree, x, y, &at, &parent, &child);
    return at;
}

/* Sets *out to the leaf whose cell contains (x, y). Makes the leaf if there is
 * none (the paper's leaf finding). */
static oj_status find_or_make_leaf(struct gpics_tree *tree, double x, double y,
                                   int32_t *out, struct oj_error *err)
{
    int32_t parent, at;
    int child;
    find_leaf(tree, x, y, &at, &parent, &child);
    if (at == GPICS_NONE && parent == GPICS_NONE)
    {
        OJ_TRY(make_leaf_node(tree, GPICS_NONE, 0, &everywhere, &at, err));
        tree->root = at;
    }
    else if (at == GPICS_NONE)
    {
        struct oj_box cell = cell_of_child(&tree->node[parent], child);
        OJ_TRY(make_leaf_node(tree, parent, tree->node[parent].level + 1, &cell,
                              &at, err));
        tree->node[parent].child[child] = at;
    }
    *out = at;
    return OJ_OK;
}

static oj_status put_moved_points(struct gpics_tree *tree,
                                  struct gpics_update *update,
                                  struct oj_error *err)
{
    for (int64_t i = 0; i < update->n_moved; i++)
    {
        int32_t f = update->moved[i], leaf;
        if (update->x[f] != update->x[f])
            continue;
        OJ_TRY(find_or_make_leaf(tree, update->x[f], update->y[f], &leaf, err));
        OJ_TRY(add_point(tree, leaf, update->x[f], update->y[f], f, err));
        tree->n_points++;
        if (!must_node_be_cut(tree, leaf, tree->node[leaf].n) ||
            tree->node[leaf].is_full)
            continue;
        tree->node[leaf].is_full = 1;
        OJ_TRY(append_number(&update->full, &update->n_full, &update->cap_full,
                             leaf, err));
    }
    return OJ_OK;
}

static oj_status cut_full_leaves(struct gpics_tree *tree,
                                 const struct gpics_update *update,
                                 struct oj_error *err)
{
    struct gpics_work work = {0};
    oj_status status = OJ_OK;
    for (int64_t i = 0; i < update->n_full && status == OJ_OK; i++)
    {
        int64_t first = work.n;
        tree->node[update->full[i]].is_full = 0;
        status =
            move_points_of_leaf_to_items(tree, update->full[i], &work, err);
        if (status == OJ_OK)
            status = add_part_to_cut(&work, update->full[i], first,
                                     work.n - first, err);
    }
    if (status == OJ_OK && work.n > 0)
        status = distribute_parts_to_leaves(tree, &work, err);
    free_work(&work);
    return status;
}

/* Replaces node `at` by node `by` in its parent, or as the root. */
static void replace_child(struct gpics_tree *tree, int32_t at, int32_t by)
{
    int32_t parent = tree->node[at].parent;
    for (int c = 0; parent != GPICS_NONE && c < 4; c++)
    {
        if (tree->node[parent].child[c] == at)
            tree->node[parent].child[c] = by;
    }
    if (parent == GPICS_NONE)
        tree->root = by;
}

/* Returns 1 if all children are leaves that together have at most most_points
 * points.
 */
static int may_be_merged(const struct gpics_tree *tree, int32_t at)
{
    int64_t n = 0;
    for (int c = 0; c < 4; c++)
    {
        int32_t child = tree->node[at].child[c];
        if (child == GPICS_NONE)
            continue;
        if (tree->node[child].state == GPICS_LINK)
            return 0;
        n += tree->node[child].n;
    }
    return n <= tree->most_points;
}

/* Turns a node whose children are leaves into a leaf. */
static oj_status merge_children(struct gpics_tree *tree, int32_t at,
                                struct gpics_work *work, struct oj_error *err)
{
    work->n = 0;
    for (int c = 0; c < 4; c++)
    {
        int32_t child = tree->node[at].child[c];
        if (child == GPICS_NONE)
            continue;
        OJ_TRY(move_points_of_leaf_to_items(tree, child, work, err));
        tree->node[at].child[c] = GPICS_NONE;
        free_node(tree, child);
    }
    tree->node[at].state = GPICS_LEAF;
    for (int64_t i = 0; i < work->n; i++)
        OJ_TRY(add_point(tree, at, work->item[i].x, work->item[i].y,
                         work->item[i].feature, err));
    return OJ_OK;
}

/* Frees empty leaves, and merges leaves of one parent that have few points. */
static oj_status merge_sparse_leaves(struct gpics_tree *tree,
                                     const struct gpics_update *update,
                                     struct gpics_work *work,
                                     struct oj_error *err)
{
    for (int64_t i = 0; i < update->n_left; i++)
    {
        int32_t at = update->left[i];
        while (at != GPICS_NONE && tree->node[at].state != GPICS_FREE)
        {
            int32_t parent = tree->node[at].parent;
            if (tree->node[at].state == GPICS_LINK)
            {
                if (!may_be_merged(tree, at))
                    break;
                OJ_TRY(merge_children(tree, at, work, err));
            }
            if (tree->node[at].n == 0)
            {
                replace_child(tree, at, GPICS_NONE);
                free_node(tree, at);
            }
            at = parent;
        }
    }
    return OJ_OK;
}

static oj_status update_tree(struct gpics_tree *tree,
                             struct gpics_update *update, int64_t n,
                             const int32_t *feature, struct oj_error *err)
{
    struct gpics_work work = {0};
    oj_status status;
    OJ_TRY(check_movements(tree, update, n, feature, err));
    OJ_TRY(remove_moved_points(tree, update, err));
    OJ_TRY(put_moved_points(tree, update, err));
    OJ_TRY(cut_full_leaves(tree, update, err));
    status = merge_sparse_leaves(tree, update, &work, err);
    free_work(&work);
    return status;
}

oj_status gpics_tree_move(struct gpics_tree *tree, int64_t n,
                          const int32_t *feature, const double *x,
                          const double *y, struct oj_error *err)
{
    struct gpics_update update = {.x = x, .y = y};
    oj_status status = update_tree(tree, &update, n, feature, err);
    oj_free(update.moved);
    oj_free(update.left);
    oj_free(update.full);
    return status;
}

/* --- search for the leaves that a box intersects ----------------------------
 */

void gpics_descent_begin(struct gpics_descent *descent,
                         const struct gpics_tree *tree,
                         const struct oj_box *box)
{
    descent->tree = tree;
    descent->box = *box;
    descent->n = tree->root != GPICS_NONE;
    descent->open[0] = tree->root;
}

int32_t gpics_descent_next_leaf(struct gpics_descent *descent)
{
    const struct oj_box *box = &descent->box;
    while (descent->n > 0)
    {
        int32_t at = descent->open[--descent->n];
        const struct gpics_node *node = &descent->tree->node[at];
        if (node->state == GPICS_LEAF)
            return at;
        for (int c = 0; c < 4; c++)
        {
            int meets_x = c & 2 ? box->x1 >= node->sx : box->x0 < node->sx;
            int meets_y = c & 1 ? box->y1 >= node->sy : box->y0 < node->sy;
            if (node->child[c] != GPICS_NONE && meets_x && meets_y)
                descent->open[descent->n++] = node->child[c];
        }
    }
    return GPICS_NONE;
}
