#include "cuda_gpics_tree.cuh"

#include "../foundations/index/cuda_row_shares.cuh"

/* Points in device memory, without the features that have none. */
struct gpics_points
{
    int64_t n;
    const double *x, *y;
    const int32_t *feature;
};

/* How a node is divided: the points of child c become those from first[c] to
 * first[c + 1] - 1. */
struct gpics_cut
{
    double sx, sy;
    int32_t first[5];
    int32_t n_children; /* 0: the node remains a leaf */
};

/* A tree that is being made, and the orders in which its points are sorted:
 * the order of a quadtree, or those by x and by y of a k-d tree. The points of
 * a node are a range in each of them. */
struct gpics_growth
{
    struct gpics_points points;
    int is_kdtree;
    int64_t most_points;
    int level;
    int64_t n_nodes, begin; /* number of nodes; number of the first node of
                               the last level */
    struct oj_cuda_gpics_node *node;
    const uint32_t *path; /* quadtree: [n] paths of the points, ascending */
    int32_t *order[2];    /* k-d tree: the points by x and by y, grouped by
                             node; quadtree: order[0] alone */
    int32_t *node_of;     /* k-d tree: [n] index of the node that owns this
                             place, in both orders */
};

/* --- points --------------------------------------------------------------- */

static oj_status copy_points_with_coordinates(struct oj_cuda_work *work,
                                              int64_t n, const double *x,
                                              const double *y,
                                              struct gpics_points *out)
{
    struct oj_cuda_work own(work);
    const double *from_x, *from_y;
    double *to_x, *to_y;
    int32_t *place, *feature, total;
    OJ_TRY(oj_cuda_upload_column(&own, x, n, &from_x));
    OJ_TRY(oj_cuda_upload_column(&own, y, n, &from_y));
    OJ_TRY(own.scan_of_computed_values(
        n,
        [=] __device__(ptrdiff_t i)
        { return i < n ? (int32_t)(from_x[i] == from_x[i]) : 0; },
        &place, &total));
    OJ_TRY(work->make(total, &to_x, &to_y));
    OJ_TRY(work->make(total, &feature));
    out->n = total;
    out->x = to_x;
    out->y = to_y;
    out->feature = feature;
    return own.each(n,
                    [=] __device__(int64_t i)
                    {
                        int32_t at = place[i];
                        if (from_x[i] != from_x[i])
                            return;
                        to_x[at] = from_x[i];
                        to_y[at] = from_y[i];
                        feature[at] = (int32_t)i;
                    });
}

static struct oj_box box_of_points(int64_t n, const double *x, const double *y)
{
    struct oj_box box = oj_box_empty();
    for (int64_t i = 0; i < n; i++)
        oj_box_add_point(&box, x[i], y[i]);
    return box;
}

/* --- division in the middle ----------------------------------------------- */

/* Returns a number v near the middle with low < v <= high; INFINITY if low
 * equals high. */
static __device__ double middle_of_range(double low, double high)
{
    double middle = 0.5 * low + 0.5 * high;
    if (middle > low)
        return middle;
    return low < high ? high : (double)INFINITY;
}

static __device__ struct oj_box cell_of_child(struct oj_box cell, double sx,
                                              double sy, int child)
{
    if (child & 2)
        cell.x0 = sx;
    else if (sx < (double)INFINITY)
        cell.x1 = sx;
    if (child & 1)
        cell.y0 = sy;
    else if (sy < (double)INFINITY)
        cell.y1 = sy;
    return cell;
}

/* Returns the numbers of the children from the root of a quadtree to a point,
 * two bits for each level. */
static __device__ uint32_t path_of_point(struct oj_box cell, double x, double y)
{
    uint32_t path = 0;
    for (int level = 0; level < OJ_GPICS_LEVELS; level++)
    {
        double sx = middle_of_range(cell.x0, cell.x1);
        double sy = middle_of_range(cell.y0, cell.y1);
        int child = 2 * (x >= sx) + (y >= sy);
        path = path << 2 | (uint32_t)child;
        cell = cell_of_child(cell, sx, sy, child);
    }
    return path;
}

static oj_status sort_by_path(struct oj_cuda_work *work,
                              const struct oj_box &frame,
                              struct gpics_growth *g)
{
    const struct gpics_points points = g->points;
    const struct oj_box all = frame;
    uint32_t *path;
    OJ_TRY(work->order_by<uint32_t>(
        points.n, 2 * OJ_GPICS_LEVELS,
        [=] __device__(int64_t i)
        { return path_of_point(all, points.x[i], points.y[i]); },
        &g->order[0]));
    const int32_t *order = g->order[0];
    OJ_TRY(work->make(points.n, &path));
    g->path = path;
    return work->each(points.n,
                      [=] __device__(int64_t i)
                      {
                          int32_t at = order[i];
                          path[i] =
                              path_of_point(all, points.x[at], points.y[at]);
                      });
}

static __device__ void cut_in_the_middle(const struct gpics_growth &g,
                                         const struct oj_cuda_gpics_node &node,
                                         struct gpics_cut *cut)
{
    int shift = 2 * (OJ_GPICS_LEVELS - 1 - g.level);
    cut->sx = middle_of_range(node.cell.x0, node.cell.x1);
    cut->sy = middle_of_range(node.cell.y0, node.cell.y1);
    if (!(cut->sx < (double)INFINITY) && !(cut->sy < (double)INFINITY))
        return;
    for (int c = 0; c < 4; c++)
    {
        int32_t low = node.first, high = node.first + node.n;
        while (low < high)
        {
            int32_t middle = low + (high - low) / 2;
            if ((int)(g.path[middle] >> shift & 3u) < c)
                low = middle + 1;
            else
                high = middle;
        }
        cut->first[c] = low;
    }
    cut->first[4] = node.first + node.n;
    for (int c = 0; c < 4; c++)
        cut->n_children += cut->first[c + 1] > cut->first[c];
}

/* --- division at the median ----------------------------------------------- */

/* Returns an integer key that sorts like the coordinate; -0 becomes 0. */
static __device__ uint64_t key_of_coordinate(double v)
{
    uint64_t bits = (uint64_t)__double_as_longlong(v + 0.0);
    return bits >> 63 != 0 ? ~bits : bits | (uint64_t)1 << 63;
}

/* Makes the orders of the points along x and along y, and puts all points into
 * the root (node_of 0). */
static oj_status sort_points_along_axes(struct oj_cuda_work *work,
                                        struct gpics_growth *g)
{
    const double *const axis[2] = {g->points.x, g->points.y};
    for (int i = 0; i < 2; i++)
    {
        const double *v = axis[i];
        OJ_TRY(work->order_by<uint64_t>(
            g->points.n, 64,
            [=] __device__(int64_t j) { return key_of_coordinate(v[j]); },
            &g->order[i]));
    }
    OJ_TRY(work->make(g->points.n, &g->node_of));
    return work->clear(g->node_of, g->points.n);
}

/* Returns the first place in first .. end - 1 of an order whose coordinate is
 * at least `from` or, with is_greater, greater than `from`; `end` if there is
 * none. */
static __device__ int32_t first_coordinate_from(const double *v,
                                                const int32_t *order,
                                                int32_t first, int32_t end,
                                                double from, int is_greater)
{
    while (first < end)
    {
        int32_t middle = first + (end - first) / 2;
        double at = v[order[middle]];
        if (at < from || (is_greater && at == from))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Divides a node at the median of the axis of its level or, if all its points
 * are equal along that axis, of the other axis. Both sides get points. */
static __device__ void cut_at_median(const struct gpics_growth &g,
                                     const struct oj_cuda_gpics_node &node,
                                     struct gpics_cut *cut)
{
    int32_t end = node.first + node.n;
    for (int i = 0; i < 2; i++)
    {
        int is_y = (g.level + i) % 2;
        const double *v = is_y ? g.points.y : g.points.x;
        const int32_t *order = g.order[is_y];
        double low = v[order[node.first]];
        double median = v[order[node.first + node.n / 2]];
        int32_t at = first_coordinate_from(v, order, node.first, end, median,
                                           !(median > low));
        if (at == end)
            continue;
        median = v[order[at]];
        cut->sx = is_y ? (double)INFINITY : median;
        cut->sy = is_y ? median : (double)INFINITY;
        cut->first[0] = node.first;
        cut->first[1] = cut->first[2] = at;
        cut->first[3] = cut->first[4] = end;
        if (is_y)
            cut->first[2] = end;
        cut->n_children = 2;
        return;
    }
}

/* Returns 1 if the node of the point at this place of an order is divided and
 * the point goes to its second child. */
static __device__ int is_in_upper_half(const struct gpics_growth &g,
                                       const int32_t *order, int64_t place)
{
    const struct oj_cuda_gpics_node &node = g.node[g.node_of[place]];
    int32_t at = order[place];
    return !node.is_leaf &&
           (g.points.x[at] >= node.sx || g.points.y[at] >= node.sy);
}

/* Divides the orders of a k-d tree like its nodes of the last level but one;
 * each remains sorted within a node. */
static oj_status divide_orders(struct oj_cuda_work *work,
                               struct gpics_growth *growth)
{
    const struct gpics_growth g = *growth;
    for (int i = 0; i < 2; i++)
    {
        struct oj_cuda_work own(work);
        const int32_t *order = g.order[i];
        int32_t *before, *sorted;
        OJ_TRY(own.make(g.points.n + 1, &before));
        OJ_TRY(work->make(g.points.n, &sorted));
        OJ_TRY(own.each(
            g.points.n + 1, [=] __device__(int64_t p)
            { before[p] = p < g.points.n && is_in_upper_half(g, order, p); }));
        OJ_TRY(own.scan(before, g.points.n));
        OJ_TRY(own.each(g.points.n,
                        [=] __device__(int64_t p)
                        {
                            const struct oj_cuda_gpics_node &node =
                                g.node[g.node_of[p]];
                            int32_t upper = before[p] - before[node.first];
                            int32_t n_upper = before[node.first + node.n] -
                                              before[node.first];
                            int32_t to =
                                is_in_upper_half(g, order, p)
                                    ? node.first + node.n - n_upper + upper
                                    : (int32_t)p - upper;
                            sorted[to] = order[p];
                        }));
        work->drop(growth->order[i]);
        growth->order[i] = sorted;
    }
    return OJ_OK;
}

/* Sets the node of each place in the orders, after nodes were divided. */
static oj_status set_nodes_of_places(struct oj_cuda_work *work,
                                     const struct gpics_growth *growth)
{
    const struct gpics_growth g = *growth;
    return work->each(g.points.n,
                      [=] __device__(int64_t p)
                      {
                          int32_t at = g.node_of[p], of = at;
                          for (int c = 0; c < 4; c++)
                          {
                              int32_t child = g.node[at].child[c];
                              if (child != OJ_GPICS_NONE &&
                                  p >= g.node[child].first)
                                  of = child;
                          }
                          g.node_of[p] = of;
                      });
}

/* --- levels --------------------------------------------------------------- */

static __device__ struct oj_cuda_gpics_node make_leaf(const struct oj_box &cell,
                                                      int32_t first, int32_t n)
{
    struct oj_cuda_gpics_node leaf;
    leaf.cell = cell;
    leaf.sx = leaf.sy = (double)INFINITY;
    leaf.first = first;
    leaf.n = n;
    leaf.is_leaf = 1;
    for (int c = 0; c < 4; c++)
        leaf.child[c] = OJ_GPICS_NONE;
    return leaf;
}

static oj_status make_root(struct oj_cuda_work *work,
                           const struct oj_box &frame, struct gpics_growth *g)
{
    const struct oj_box all = frame;
    int32_t n = (int32_t)g->points.n;
    OJ_TRY(work->make(1, &g->node));
    struct oj_cuda_gpics_node *root = g->node;
    g->n_nodes = 1;
    return work->each(1, [=] __device__(int64_t i)
                      { root[i] = make_leaf(all, 0, n); });
}

/* Adds room for n more nodes. */
static oj_status add_room_for_nodes(struct oj_cuda_work *work, int64_t n,
                                    struct gpics_growth *g)
{
    struct oj_cuda_gpics_node *node;
    if (g->n_nodes + n > INT32_MAX)
        return oj_fail(
            work->err, OJ_ERR_UNSUPPORTED,
            "a tree of G-PICS has at most 2^31 - 1 nodes: use the backend cpu");
    OJ_TRY(work->make(g->n_nodes + n, &node));
    OJ_TRY(work->check(
        cudaMemcpyAsync(node, g->node, (size_t)g->n_nodes * sizeof *node,
                        cudaMemcpyDeviceToDevice, work->stream)));
    work->drop(g->node);
    g->node = node;
    return OJ_OK;
}

/* Makes the children of the nodes of the last level; *n_children is their
 * number. */
static oj_status divide_last_level(struct oj_cuda_work *work,
                                   struct gpics_growth *growth,
                                   int64_t *n_children)
{
    struct oj_cuda_work own(work);
    int64_t n = growth->n_nodes - growth->begin, begin = growth->begin;
    int64_t base = growth->n_nodes;
    struct gpics_cut *cut;
    int64_t *offset;
    OJ_TRY(own.make(n, &cut));
    const struct gpics_growth before = *growth;
    OJ_TRY(own.each(n,
                    [=] __device__(int64_t i)
                    {
                        const struct oj_cuda_gpics_node &node =
                            before.node[begin + i];
                        struct gpics_cut own_cut;
                        own_cut.n_children = 0;
                        if (node.n > before.most_points)
                        {
                            if (before.is_kdtree)
                                cut_at_median(before, node, &own_cut);
                            else
                                cut_in_the_middle(before, node, &own_cut);
                        }
                        cut[i] = own_cut;
                    }));
    OJ_TRY(own.scan_of_computed_values(
        n,
        [=] __device__(ptrdiff_t i)
        { return i < n ? (int64_t)cut[i].n_children : 0; },
        &offset, n_children));
    if (*n_children == 0)
        return OJ_OK;
    OJ_TRY(add_room_for_nodes(work, *n_children, growth));
    struct oj_cuda_gpics_node *all = growth->node;
    OJ_TRY(own.each(n,
                    [=] __device__(int64_t i)
                    {
                        struct oj_cuda_gpics_node *node = &all[begin + i];
                        const struct gpics_cut &at = cut[i];
                        int64_t child = base + offset[i];
                        if (at.n_children == 0)
                            return;
                        node->sx = at.sx;
                        node->sy = at.sy;
                        node->is_leaf = 0;
                        for (int c = 0; c < 4; c++)
                        {
                            int32_t n_points = at.first[c + 1] - at.first[c];
                            if (n_points == 0)
                                continue;
                            all[child] = make_leaf(
                                cell_of_child(node->cell, at.sx, at.sy, c),
                                at.first[c], n_points);
                            node->child[c] = (int32_t)child++;
                        }
                    }));
    growth->begin = base;
    growth->n_nodes = base + *n_children;
    growth->level++;
    return OJ_OK;
}

static oj_status grow_tree(struct oj_cuda_work *work,
                           const struct oj_box &frame, struct gpics_growth *g)
{
    int most_levels = g->is_kdtree ? 2 * OJ_GPICS_LEVELS : OJ_GPICS_LEVELS;
    OJ_TRY(make_root(work, frame, g));
    OJ_TRY(g->is_kdtree ? sort_points_along_axes(work, g)
                        : sort_by_path(work, frame, g));
    while (g->level < most_levels)
    {
        int64_t n_children = 0;
        OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
        OJ_TRY(divide_last_level(work, g, &n_children));
        if (n_children == 0)
            break;
        if (g->is_kdtree)
        {
            OJ_TRY(divide_orders(work, g));
            OJ_TRY(set_nodes_of_places(work, g));
        }
    }
    return OJ_OK;
}

oj_status oj_cuda_gpics_tree_build(struct oj_cuda_work *work, int64_t n,
                                   const double *x, const double *y,
                                   int is_kdtree, int64_t most_points,
                                   struct oj_cuda_gpics_tree *out)
{
    struct oj_cuda_work own(work);
    struct oj_cuda_gpics_tree tree = {};
    struct gpics_growth g = {};
    if (n > INT32_MAX)
        return oj_fail(work->err, OJ_ERR_UNSUPPORTED,
                       "a tree of G-PICS has at most 2^31 - 1 points: use the "
                       "backend cpu");
    tree.frame = box_of_points(n, x, y);
    g.is_kdtree = is_kdtree;
    g.most_points = most_points;
    if (n > 0)
        OJ_TRY(copy_points_with_coordinates(&own, n, x, y, &g.points));
    if (g.points.n > 0)
    {
        OJ_TRY(grow_tree(&own, tree.frame, &g));
        OJ_TRY(work->gather(g.points.n, g.points.x, g.order[0], &tree.x));
        OJ_TRY(work->gather(g.points.n, g.points.y, g.order[0], &tree.y));
        OJ_TRY(work->gather(g.points.n, g.points.feature, g.order[0],
                            &tree.feature));
        own.move_array_to(g.node, work);
    }
    tree.n_points = g.points.n;
    tree.n_nodes = g.n_nodes;
    tree.node = g.node;
    *out = tree;
    /* waits, because copies from the host may still be running */
    return own.wait();
}
