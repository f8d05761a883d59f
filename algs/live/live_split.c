#include "live_split.h"

#include "../../flatten/base/oj_alloc.h"

#include <math.h>
#include <string.h>

/* --- rules -----------------------------------------------------------------
 */

/* Returns a number v with low < v <= high, near the middle; NaN if low equals
 * high. */
static double number_between(double low, double high)
{
    double middle = 0.5 * low + 0.5 * high;
    if (middle > low)
        return middle;
    return low < high ? high : NAN;
}

/* Cuts a cell in the middle. A cell on the rim is infinite: its sides then
 * count as those of the frame, extended by the points of the cell. Returns 0 if
 * a cut does not exist. */
static int cut_in_the_middle(struct live_node *node, const struct oj_box *frame,
                             int64_t n, const struct live_point *point)
{
    struct oj_box square = node->cell;
    if (!(oj_box_largest_coordinate(&square) < INFINITY))
    {
        struct oj_box of_points = *frame;
        for (int64_t i = 0; i < n; i++)
            oj_box_add_point(&of_points, point[i].x, point[i].y);
        square.x0 = oj_larger(square.x0, of_points.x0);
        square.y0 = oj_larger(square.y0, of_points.y0);
        square.x1 = square.x1 < of_points.x1 ? square.x1 : of_points.x1;
        square.y1 = square.y1 < of_points.y1 ? square.y1 : of_points.y1;
    }
    node->sx = number_between(square.x0, square.x1);
    node->sy[0] = node->sy[1] = number_between(square.y0, square.y1);
    return node->sx == node->sx && node->sy[0] == node->sy[0];
}

/* BINS: bins of a histogram. MOST_COUNTED: maximum number of points that it
 * counts. */
#define BINS 256
#define MOST_COUNTED 65536

/* Maximum number of histograms of a median: the first is of all numbers, each
 * further one is of the bin that holds the median. */
#define MOST_ZOOMS 9

/* The coordinates whose median is wanted: x or y of every step-th point, of all
 * points or of one side of sx. */
struct numbers
{
    const struct live_point *point;
    int64_t n, step;
    double sx;
    int is_y, right; /* right: 1: x >= sx; 0: x < sx; -1: all points */
};

static int is_point_counted(const struct numbers *of,
                            const struct live_point *p)
{
    return of->right < 0 || (p->x >= of->sx) == of->right;
}

static double coordinate_of_point(const struct numbers *of,
                                  const struct live_point *p)
{
    return of->is_y ? p->y : p->x;
}

static int64_t bin_of_number(double v, double low, double scale)
{
    double bin = (v - low) * scale;
    return bin < BINS - 1 ? (int64_t)bin : BINS - 1;
}

/* Estimates the median: at least one number is below the result, and at least
 * one is not. Returns NaN if all numbers are equal, or if there is at most
 * one. */
static double estimate_median(const struct numbers *of)
{
    double low = INFINITY, high = -INFINITY, first, last;
    int64_t n = 0, n_below = 0;
    for (int64_t i = 0; i < of->n; i += of->step)
    {
        const struct live_point *p = &of->point[i];
        double v = coordinate_of_point(of, p);
        if (!is_point_counted(of, p))
            continue;
        n++;
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    first = low;
    last = high;
    if (!(low < high))
        return NAN;
    for (int zoom = 0; zoom < MOST_ZOOMS && low < high; zoom++)
    {
        int64_t count[BINS] = {0}, bin = 0;
        double width = high - low, scale = BINS / width, edge;
        if (!(width < INFINITY) || !(scale < INFINITY))
            break;
        for (int64_t i = 0; i < of->n; i += of->step)
        {
            const struct live_point *p = &of->point[i];
            double v = coordinate_of_point(of, p);
            if (is_point_counted(of, p) && v >= low && v <= high)
                count[bin_of_number(v, low, scale)]++;
        }
        while (bin < BINS - 1 && 2 * (n_below + count[bin]) <= n)
            n_below += count[bin++];
        edge = low + width * ((double)bin / BINS);
        high = bin < BINS - 1 ? low + width * ((double)(bin + 1) / BINS) : high;
        low = edge;
        /* fine enough: the bin holds at most 1/16 of the numbers */
        if (16 * count[bin] <= n)
            break;
    }
    if (low > first)
        return low;
    return number_between(low, high < last ? high : last);
}

static int cut_at_medians(struct live_node *node, const struct oj_box *frame,
                          int64_t n, const struct live_point *point)
{
    struct numbers of = {.point = point, .n = n, .right = -1};
    double middle;
    (void)frame;
    of.step = n / MOST_COUNTED + 1;
    middle = estimate_median(&of);
    /* NaN: no median separates the points; with a cut at -INFINITY, all points
     * are right of it */
    node->sx = middle == middle ? middle : -INFINITY;
    of.is_y = 1;
    of.sx = node->sx;
    for (of.right = 0; of.right < 2; of.right++)
    {
        double y = estimate_median(&of);
        node->sy[of.right] = y == y ? y : -INFINITY;
        middle = y == y ? y : middle;
    }
    return middle == middle;
}

static const struct live_split_rule rules[] = {
    {"quadtree", "squares cut in the middle", 24, cut_in_the_middle},
    {"kdtree", "cut at medians", LIVE_MOST_DEPTH, cut_at_medians}};

const struct live_split_rule *live_split_rule_at(int i)
{
    int n = (int)(sizeof rules / sizeof *rules);
    return i >= 0 && i < n ? &rules[i] : NULL;
}

/* --- subtrees --------------------------------------------------------------
 */

/* Sorts points by child. offset [5]: first point of each child, and n. */
static void partition_points(const struct live_node *node, int64_t n,
                             struct live_point *point,
                             struct live_point *scratch, int64_t *offset)
{
    int64_t next[4] = {0, 0, 0, 0};
    int is_sorted = 0; /* 1: one child has all points */
    for (int64_t i = 0; i < n; i++)
        next[live_node_child(node, point[i].x, point[i].y)]++;
    offset[0] = 0;
    for (int c = 0; c < 4; c++)
    {
        offset[c + 1] = offset[c] + next[c];
        is_sorted |= next[c] == n;
        next[c] = offset[c];
    }
    if (is_sorted)
        return;
    for (int64_t i = 0; i < n; i++)
        scratch[next[live_node_child(node, point[i].x, point[i].y)]++] =
            point[i];
    memcpy(point, scratch, (size_t)n * sizeof *point);
}

static oj_status add_leaf(struct live_subtree *subtree,
                          const struct live_leaf *leaf, struct oj_error *err)
{
    OJ_ROOM(subtree->leaf, subtree->n_leaves, subtree->n_leaves + 1,
            subtree->cap_leaves, err);
    subtree->leaf[subtree->n_leaves++] = *leaf;
    return OJ_OK;
}

oj_status live_split_points(const struct live_split *split,
                            struct live_point *point,
                            struct live_point *scratch,
                            const struct live_leaf *whole,
                            struct live_subtree *subtree, struct oj_error *err)
{
    struct live_node node = {
        .cell = whole->cell,
        .child = {LIVE_NO_CHILD, LIVE_NO_CHILD, LIVE_NO_CHILD, LIVE_NO_CHILD},
        .parent = whole->parent,
        .depth = whole->depth};
    int64_t at = subtree->n_nodes, offset[5] = {0};
    if (whole->n <= split->leaf_points ||
        whole->depth >= split->rule->most_depth ||
        !split->rule->cut(&node, &split->frame, whole->n, point + whole->first))
        return add_leaf(subtree, whole, err);
    OJ_ROOM(subtree->node, at, at + 1, subtree->cap_nodes, err);
    subtree->node[at] = node;
    subtree->n_nodes++;
    if (whole->parent != LIVE_NONE)
        subtree->node[whole->parent / 4].child[whole->parent % 4] = (int32_t)at;
    partition_points(&node, whole->n, point + whole->first,
                     scratch + whole->first, offset);
    for (int c = 0; c < 4; c++)
    {
        struct live_leaf part = {
            whole->first + offset[c], offset[c + 1] - offset[c],
            live_node_child_cell(&node, c), 4 * (uint32_t)at + (uint32_t)c,
            whole->depth + 1};
        if (part.n > 0 || split->keeps_empty)
            OJ_TRY(
                live_split_points(split, point, scratch, &part, subtree, err));
    }
    return OJ_OK;
}

void live_subtree_free(struct live_subtree *subtree)
{
    oj_free(subtree->node);
    oj_free(subtree->leaf);
    memset(subtree, 0, sizeof *subtree);
}
