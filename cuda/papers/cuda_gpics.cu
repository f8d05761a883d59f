/** Paper: Lewis, Tu 2022, "G-PICS: A Framework for GPU-Based Spatial Indexing
 *  and Query Processing", section IV (queries); trees: cuda_gpics_tree.cuh.
 *
 *  The four queries of the paper as joins with a layer of points (see
 *  algs/papers/gpics.c, the version for CPU threads), in two ways:
 *
 *  registered  step I registers each row at the leaves that its search box
 *              intersects, and sorts these registrations by leaf; in step II a
 *              block loads the points of one leaf into shared memory, and its
 *              threads compare them with one registered row each
 *  single      a thread walks the tree for one row, the traditional way
 *
 *   rows of a leaf    | 128 | 128 | 37 |          a block each
 *   points of a leaf  | 256 | 256 | 90 |          in shared memory, in turn
 *
 *  A k nearest join searches within a radius in which k points are expected,
 *  and doubles the radius for the rows that have found fewer. A sort chooses
 *  the k nearest of the points found.
 *
 *  Differences: the paper's threads append rows to the list of a leaf by atomic
 *  operations; here they are counted, written and sorted. The paper's buffers
 *  of output pages are one array of pairs, which is made anew if it is too
 *  small.
 *
 *  The backends are "cuda_gpics_quadtree", "cuda_gpics_kdtree",
 *  "cuda_gpics_quadtree_single" and "cuda_gpics_kdtree_single". */
#include "cuda_gpics_tree.cuh"

#include "../../algs/foundations/kernels/oj_square_limit.h"
#include "../../flatten/base/oj_alloc.h"
#include "../foundations/device/cuda_offset_search.cuh"
#include "../foundations/index/cuda_row_shares.cuh"

enum
{
    BLOCK = 128,
    TILE = 256 /* points of a leaf in shared memory */
};

struct cuda_gpics_index
{
    struct oj_cuda_index base;
    struct oj_cuda_gpics_tree tree;
    struct oj_cuda_columns columns;
    double spacing; /* radius of a circle in which one point of the layer is
                       expected */
};

/* Rows of a batch in device memory. */
struct cuda_gpics_rows
{
    int64_t n;
    /* Points: [n] each. Other features: their vertices; those of row i are
     * first[i] to first[i + 1] - 1. */
    const double *x, *y;
    const int64_t *first; /* [n + 1]; NULL if rows are points */
    const struct oj_box *box;
    struct oj_cuda_columns columns;
};

/* A search for the pairs of some rows. Passed by value. */
struct cuda_gpics_search
{
    struct oj_cuda_gpics_tree tree;
    struct cuda_gpics_rows rows;
    struct oj_pair_rule rule;
    int by_distance, is_nearest;
    int64_t k;
    double most, least2; /* maximum distance; square of the minimum distance */
    double spacing;
    double *reach; /* [rows] search radius */
    int64_t n_open;
    const int32_t *open; /* [n_open] rows that are still searched for */

    /* Registrations of the open rows, sorted by leaf. */
    const int32_t *row_at;   /* rows registered at leaves, leaf by leaf */
    const int64_t *first_at; /* [nodes + 1] first registration of each leaf */
    const int64_t *block_at; /* [nodes + 1] first block of each leaf */

    struct oj_cuda_found found;
    unsigned long long *n_compared;
};

/* The box or circle in which a row searches. */
struct cuda_gpics_query
{
    struct oj_box box;
    double x, y, least2, most2;
};

/* --- queries -------------------------------------------------------------- */

static __device__ struct oj_box box_of_row(const struct cuda_gpics_search &s,
                                           int64_t row)
{
    struct oj_box box;
    if (s.rows.first != NULL)
        return s.rows.box[row];
    box = oj_box_empty();
    oj_box_add_point(&box, s.rows.x[row], s.rows.y[row]);
    return box;
}

static __device__ struct cuda_gpics_query
query_of_row(const struct cuda_gpics_search &s, int64_t row)
{
    double reach = s.reach[row];
    struct cuda_gpics_query q;
    q.box = box_of_row(s, row);
    q.x = q.box.x0;
    q.y = q.box.y0;
    q.least2 = s.least2;
    q.most2 = 0.0;
    if (!s.by_distance || oj_box_is_empty(&q.box))
        return q;
    q.most2 = reach < (double)INFINITY ? oj_square_limit_most(reach)
                                       : (double)DBL_MAX;
    q.box = oj_box_widened(&q.box, reach);
    return q;
}

/* Calls visit(leaf) for the leaves whose points a query is compared with. */
template <typename Visit>
static __device__ void visit_leaves_of_query(const struct cuda_gpics_search &s,
                                             const struct cuda_gpics_query &q,
                                             Visit visit)
{
    if (oj_box_is_empty(&q.box))
        return;
    oj_cuda_gpics_visit_leaves(
        s.tree, q.box,
        [&](int32_t leaf)
        {
            const struct oj_box &cell = s.tree.node[leaf].cell;
            double dx = oj_larger(oj_larger(cell.x0 - q.x, q.x - cell.x1), 0.0);
            double dy = oj_larger(oj_larger(cell.y0 - q.y, q.y - cell.y1), 0.0);
            /* rounding is monotone: no point of the cell is nearer */
            if (!s.by_distance || !(dx * dx + dy * dy > q.most2))
                visit(leaf);
        });
}

/* Returns 1 if a point forms a pair with the row. Sets *d2 to its squared
 * distance, or to NaN if the join has no distance. */
static __device__ __forceinline__ int
is_partner_of_row(const struct cuda_gpics_search &s,
                  const struct cuda_gpics_query &q, int32_t row, double x,
                  double y, int32_t feature, double *d2)
{
    int is_same = 0;
    *d2 = (double)NAN;
    if (s.by_distance)
    {
        double dx = q.x - x, dy = q.y - y;
        *d2 = dx * dx + dy * dy;
        if (!(*d2 <= q.most2 && *d2 >= q.least2))
            return 0;
    }
    else if (!(q.box.x0 <= x && x <= q.box.x1 && q.box.y0 <= y &&
               y <= q.box.y1))
        return 0;
    if (s.rule.excludes_same)
        is_same = q.x == x && q.y == y &&
                  (s.rows.first == NULL ||
                   s.rows.first[(int64_t)row + 1] - s.rows.first[row] == 1);
    return oj_pair_rule_passes(&s.rule, row, feature, is_same);
}

/* --- radius of a search --------------------------------------------------- */

OJ_FN double radius_expecting_one_point(double width, double height, double n)
{
    return sqrt(width / n) * sqrt(height / 3.141592653589793);
}

static __device__ double least_distance(const struct oj_box &box, double x,
                                        double y)
{
    double dx = oj_larger(oj_larger(box.x0 - x, x - box.x1), 0.0);
    double dy = oj_larger(oj_larger(box.y0 - y, y - box.y1), 0.0);
    return sqrt(dx * dx + dy * dy);
}

/* Returns an upper bound of the distance from (x, y) to any point of a box. */
static __device__ double greatest_distance(const struct oj_box &box, double x,
                                           double y)
{
    double dx = oj_larger(x - box.x0, box.x1 - x);
    double dy = oj_larger(y - box.y0, box.y1 - y);
    double square = dx * dx + dy * dy;
    if (!(square > DBL_MIN / DBL_EPSILON) || !(square < (double)INFINITY))
        return (dx + dy) * (1.0 + 8.0 * DBL_EPSILON);
    return sqrt(square) * (1.0 + 8.0 * DBL_EPSILON);
}

/* Returns the radius of a row's first search: the maximum distance or, for
 * nearest joins, a distance within which k points are expected. */
static __device__ double choose_first_reach(const struct cuda_gpics_search &s,
                                            int64_t row)
{
    struct oj_box box = box_of_row(s, row);
    double spacing = 0.0, reach;
    int32_t leaf;
    if (!s.is_nearest || oj_box_is_empty(&box))
        return s.most;
    leaf = oj_cuda_gpics_leaf_at(s.tree, box.x0, box.y0);
    if (leaf != OJ_GPICS_NONE)
    {
        const struct oj_cuda_gpics_node &node = s.tree.node[leaf];
        spacing = radius_expecting_one_point(node.cell.x1 - node.cell.x0,
                                             node.cell.y1 - node.cell.y0,
                                             (double)node.n);
    }
    if (!(spacing > 0.0))
        spacing = s.spacing;
    reach = spacing * sqrt((double)s.k) +
            least_distance(s.tree.frame, box.x0, box.y0);
    return reach < s.most ? reach : s.most;
}

static __device__ double double_reach(const struct cuda_gpics_search &s,
                                      double reach)
{
    double next = 2.0 * reach + DBL_MIN;
    return next < s.most ? next : s.most;
}

/* Returns 1 if a row with n points within reach needs no larger radius. */
static __device__ int is_answered(const struct cuda_gpics_search &s,
                                  int64_t row, double reach, int64_t n)
{
    struct oj_box box;
    if (!s.is_nearest || n >= s.k || reach >= s.most)
        return 1;
    box = box_of_row(s, row);
    return oj_box_is_empty(&box) ||
           greatest_distance(s.tree.frame, box.x0, box.y0) <= reach;
}

static oj_status set_first_reaches(struct oj_cuda_work *work,
                                   struct cuda_gpics_search *search)
{
    OJ_TRY(work->make(search->rows.n, &search->reach));
    const struct cuda_gpics_search s = *search;
    return work->each(s.rows.n, [=] __device__(int64_t row)
                      { s.reach[row] = choose_first_reach(s, row); });
}

/* --- single: a thread for each row ---------------------------------------- */

static __device__ int64_t count_pairs_of_row(const struct cuda_gpics_search &s,
                                             int32_t row)
{
    struct cuda_gpics_query q = query_of_row(s, row);
    int64_t n = 0;
    visit_leaves_of_query(
        s, q,
        [&](int32_t leaf)
        {
            int32_t first = s.tree.node[leaf].first;
            double d2 = 0.0;
            for (int32_t i = first; i < first + s.tree.node[leaf].n; i++)
                n += is_partner_of_row(s, q, row, s.tree.x[i], s.tree.y[i],
                                       s.tree.feature[i], &d2);
        });
    return n;
}

/* Doubles the radius of each open row until the pairs within it suffice
 * (is_answered()). */
static __global__ void
enlarge_reach_of_single_rows(const __grid_constant__ struct cuda_gpics_search s)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int32_t row;
    if (i >= s.n_open)
        return;
    row = s.open[i];
    while (!is_answered(s, row, s.reach[row], 0) &&
           !is_answered(s, row, s.reach[row], count_pairs_of_row(s, row)))
        s.reach[row] = double_reach(s, s.reach[row]);
}

static __global__ void
find_pairs_of_single_rows(const __grid_constant__ struct cuda_gpics_search s)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    unsigned long long n_compared = 0;
    int32_t row;
    if (i >= s.n_open)
        return;
    row = s.open[i];
    struct cuda_gpics_query q = query_of_row(s, row);
    visit_leaves_of_query(
        s, q,
        [&](int32_t leaf)
        {
            int32_t first = s.tree.node[leaf].first, n = s.tree.node[leaf].n;
            n_compared += (unsigned long long)n;
            for (int32_t at = first; at < first + n; at++)
            {
                unsigned long long to;
                int32_t feature = s.tree.feature[at];
                double d2 = 0.0;
                if (!is_partner_of_row(s, q, row, s.tree.x[at], s.tree.y[at],
                                       feature, &d2))
                    continue;
                to = atomicAdd(s.found.n, 1ull);
                if ((int64_t)to >= s.found.capacity)
                    continue;
                s.found.row[to] = row;
                s.found.feature[to] = feature;
                s.found.measure[to] = sqrt(d2);
            }
        });
    atomicAdd(s.n_compared, n_compared);
}

/* --- registered, step I: rows at leaves ----------------------------------- */

static __device__ int64_t count_leaves_of_row(const struct cuda_gpics_search &s,
                                              int32_t row)
{
    int64_t n = 0;
    visit_leaves_of_query(s, query_of_row(s, row), [&](int32_t) { n++; });
    return n;
}

static __device__ void
write_registrations_of_row(const struct cuda_gpics_search &s, int32_t row,
                           uint32_t *leaf, int32_t *row_at)
{
    int64_t n = 0;
    visit_leaves_of_query(s, query_of_row(s, row),
                          [&](int32_t at)
                          {
                              leaf[n] = (uint32_t)at;
                              row_at[n++] = row;
                          });
}

/* Makes the registrations (an input row in a leaf that it meets) of the open
 * rows: leaf [*n_registrations] ascending, and row. */
static oj_status make_sorted_registrations(
    struct oj_cuda_work *work, const struct cuda_gpics_search &search,
    uint32_t **leaf, int32_t **row, int64_t *n_registrations)
{
    const struct cuda_gpics_search s = search;
    int64_t *offset, n = 0;
    int bits = 1;
    OJ_TRY(work->scan_of_computed_values(
        s.n_open,
        [=] __device__(ptrdiff_t i)
        { return i < s.n_open ? count_leaves_of_row(s, s.open[i]) : 0; },
        &offset, &n));
    if (n > INT32_MAX)
        return oj_fail(work->err, OJ_ERR_NOMEM,
                       "rows that meet %lld leaves are too many to be sorted "
                       "at once; use smaller batches",
                       (long long)n);
    OJ_TRY(work->make(n, leaf));
    OJ_TRY(work->make(n, row));
    uint32_t *leaf_of = *leaf;
    int32_t *row_of = *row;
    OJ_TRY(work->each(s.n_open,
                      [=] __device__(int64_t i)
                      {
                          write_registrations_of_row(s, s.open[i],
                                                     leaf_of + offset[i],
                                                     row_of + offset[i]);
                      }));
    while (s.tree.n_nodes >> bits != 0)
        bits++;
    *n_registrations = n;
    return n == 0 ? OJ_OK : work->sort(n, bits, leaf, row);
}

/* Registers the open rows; *n_blocks is the number of blocks of step II. */
static oj_status register_open_rows(struct oj_cuda_work *work,
                                    struct cuda_gpics_search *s,
                                    int64_t *n_blocks)
{
    int64_t n = 0, n_nodes = s->tree.n_nodes, *first, *block;
    uint32_t *leaf;
    int32_t *row;
    OJ_TRY(make_sorted_registrations(work, *s, &leaf, &row, &n));
    OJ_TRY(work->make(n_nodes + 1, &first));
    OJ_TRY(oj_cuda_find_pair_offsets(work, leaf, n, n_nodes, 0, first));
    OJ_TRY(work->scan_of_computed_values(
        n_nodes,
        [=] __device__(ptrdiff_t i) {
            return i < n_nodes ? (first[i + 1] - first[i] + BLOCK - 1) / BLOCK
                               : 0;
        },
        &block, n_blocks));
    s->row_at = row;
    s->first_at = first;
    s->block_at = block;
    return OJ_OK;
}

/* --- registered, step II: leaf by leaf ------------------------------------ */

/* Compares the points of a leaf with up to BLOCK of its registered rows: one
 * block per group of rows. */
static __global__ void
find_pairs_of_leaves(const __grid_constant__ struct cuda_gpics_search s)
{
    __shared__ double x[TILE];
    __shared__ double y[TILE];
    __shared__ int32_t feature[TILE];
    int64_t leaf = oj_cuda_list_of_entry(s.block_at, (int64_t)0, s.tree.n_nodes,
                                         (int64_t)blockIdx.x);
    int64_t at = s.first_at[leaf] +
                 ((int64_t)blockIdx.x - s.block_at[leaf]) * BLOCK + threadIdx.x;
    int has_row = at < s.first_at[leaf + 1];
    int32_t row = has_row ? s.row_at[at] : 0;
    int32_t first = s.tree.node[leaf].first, n = s.tree.node[leaf].n;
    struct cuda_gpics_query q = query_of_row(s, row);
    if (has_row)
        atomicAdd(s.n_compared, (unsigned long long)n);
    for (int32_t tile = 0; tile < n; tile += TILE)
    {
        int n_tile = n - tile < TILE ? n - tile : (int)TILE;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < n_tile; i += BLOCK)
        {
            x[i] = s.tree.x[first + tile + i];
            y[i] = s.tree.y[first + tile + i];
            feature[i] = s.tree.feature[first + tile + i];
        }
        __syncthreads();
        for (int i = 0; i < n_tile; i++)
        {
            double d2 = 0.0;
            int is_one = has_row && is_partner_of_row(s, q, row, x[i], y[i],
                                                      feature[i], &d2);
            oj_cuda_append_found_pairs(s.found, is_one, row, feature[i],
                                       sqrt(d2));
        }
    }
}

/* --- pairs of the open rows ----------------------------------------------- */

/* How a backend searches. */
struct cuda_gpics_way
{
    int is_registered;
    struct oj_stats *stats;
};

/* Finds the pairs of the open rows within their radius. */
static oj_status find_pairs_of_open_rows(struct oj_cuda_work *work,
                                         const struct cuda_gpics_way *way,
                                         struct oj_cuda_share *share,
                                         struct cuda_gpics_search *s,
                                         int64_t *n_pairs)
{
    double start = oj_clock_seconds(), registered, begun = 0.0;
    struct oj_cuda_work own(work);
    unsigned long long n_compared = 0;
    int64_t n_blocks = 0;
    OJ_TRY(own.make(1, &s->n_compared));
    if (way->is_registered)
        OJ_TRY(register_open_rows(&own, s, &n_blocks));
    else if (s->is_nearest)
        OJ_TRY(own.run<BLOCK>(s->n_open, enlarge_reach_of_single_rows, *s));
    OJ_TRY(own.wait());
    registered = oj_clock_seconds();
    OJ_TRY(oj_cuda_found_run_until_fits(
        work, &s->found, 16 * s->n_open + (1 << 16), share,
        [&]()
        {
            begun = oj_clock_seconds(); /* restarts the clock if the search is
                                           repeated with a larger array */
            OJ_TRY(own.clear(s->n_compared, 1));
            return way->is_registered
                       ? own.launch_blocks<BLOCK>((unsigned)n_blocks,
                                                  find_pairs_of_leaves, *s)
                       : own.run<BLOCK>(s->n_open, find_pairs_of_single_rows,
                                        *s);
        },
        n_pairs));
    OJ_TRY(own.read(s->n_compared, &n_compared));
    way->stats->n_candidates += (int64_t)n_compared;
    way->stats->filter_s += registered - start;
    way->stats->refine_s += oj_clock_seconds() - begun;
    return OJ_OK;
}

/* --- k nearest ------------------------------------------------------------ */

/* Moves the n pairs of *more, whose arrays belong to *from, behind the n_kept
 * pairs of *kept. */
static oj_status append_pairs(struct oj_cuda_work *from,
                              const struct oj_cuda_found *more, int64_t n,
                              struct oj_cuda_work *work,
                              struct oj_cuda_found *kept, int64_t *n_kept)
{
    struct oj_cuda_found all = {};
    const struct oj_cuda_found old = *kept, added = *more;
    int64_t n_old = *n_kept;
    if (n == 0)
        return OJ_OK;
    if (n_old == 0)
    {
        from->move_array_to(added.row, work);
        from->move_array_to(added.feature, work);
        from->move_array_to(added.measure, work);
        all = added;
    }
    else
    {
        OJ_TRY(work->make(n_old + n, &all.row, &all.feature));
        OJ_TRY(work->make(n_old + n, &all.measure));
        const struct oj_cuda_found to = all;
        OJ_TRY(work->each(n_old + n,
                          [=] __device__(int64_t i)
                          {
                              const struct oj_cuda_found &of =
                                  i < n_old ? old : added;
                              int64_t at = i < n_old ? i : i - n_old;
                              to.row[i] = of.row[at];
                              to.feature[i] = of.feature[at];
                              to.measure[i] = of.measure[at];
                          }));
        work->drop(old.row);
        work->drop(old.feature);
        work->drop(old.measure);
    }
    *kept = all;
    *n_kept = n_old + n;
    return OJ_OK;
}

/* Appends the k nearest of the n found pairs of each answered row to *kept, and
 * counts them in *n_kept. Of ties at the k-th distance, appends all if
 * takes_ties, else the first by rank. The other open rows remain open, with a
 * larger radius. */
static oj_status keep_pairs_of_answered_rows(
    struct oj_cuda_work *work, const int32_t *rank, int takes_ties, int64_t n,
    struct cuda_gpics_search *search, struct oj_cuda_work *keep,
    struct oj_cuda_found *kept, int64_t *n_kept)
{
    const struct cuda_gpics_search s = *search;
    struct oj_cuda_found chosen = {};
    const int32_t *place = NULL;
    const uint32_t *row_of = NULL;
    int64_t *offset, *chosen_before, *open_before, n_chosen = 0, n_open = 0;
    uint8_t *is_done;
    int32_t *open;
    if (n > 0)
        OJ_TRY(oj_cuda_sort_pairs(work, s.rows.n, rank,
                                  OJ_CUDA_BY_MEASURE_THEN_RANK, s.found, n,
                                  &place, &row_of));
    OJ_TRY(work->make(s.rows.n + 1, &offset));
    OJ_TRY(oj_cuda_find_pair_offsets(work, row_of, n, s.rows.n, 0, offset));
    OJ_TRY(work->allocate_zeros(s.rows.n, &is_done));
    OJ_TRY(work->scan_of_computed_values(
        s.n_open,
        [=] __device__(ptrdiff_t i)
        {
            int32_t row;
            if (i == s.n_open)
                return (int64_t)0;
            row = s.open[i];
            is_done[row] = (uint8_t)is_answered(s, row, s.reach[row],
                                                offset[row + 1] - offset[row]);
            return (int64_t)!is_done[row];
        },
        &open_before, &n_open));
    OJ_TRY(work->scan_of_computed_values(
        n,
        [=] __device__(ptrdiff_t i)
        {
            int64_t first, last;
            if (i == n || !is_done[row_of[i]])
                return (int64_t)0;
            first = offset[row_of[i]];
            last = first + s.k - 1;
            return (int64_t)(i <= last ||
                             (takes_ties && s.found.measure[place[i]] ==
                                                s.found.measure[place[last]]));
        },
        &chosen_before, &n_chosen));
    OJ_TRY(work->make(n_chosen, &chosen.row, &chosen.feature));
    OJ_TRY(work->make(n_chosen, &chosen.measure));
    const struct oj_cuda_found to = chosen;
    OJ_TRY(work->each(n,
                      [=] __device__(int64_t i)
                      {
                          int64_t at = chosen_before[i];
                          if (chosen_before[i + 1] == at)
                              return;
                          to.row[at] = s.found.row[place[i]];
                          to.feature[at] = s.found.feature[place[i]];
                          to.measure[at] = s.found.measure[place[i]];
                      }));
    OJ_TRY(keep->make(n_open, &open));
    OJ_TRY(work->each(s.n_open,
                      [=] __device__(int64_t i)
                      {
                          int32_t row = s.open[i];
                          if (is_done[row])
                              return;
                          s.reach[row] = double_reach(s, s.reach[row]);
                          open[open_before[i]] = row;
                      }));
    keep->drop(s.open);
    search->open = open;
    search->n_open = n_open;
    return append_pairs(work, &chosen, n_chosen, keep, kept, n_kept);
}

static oj_status find_nearest(struct oj_cuda_work *work,
                              const struct cuda_gpics_way *way,
                              const struct oj_cuda_index *index,
                              struct cuda_gpics_search *s,
                              struct oj_cuda_share *share)
{
    int takes_ties = index->relation.ties == OJ_TIES_ALL;
    struct oj_cuda_found kept = {};
    int64_t n_kept = 0;
    while (s->n_open > 0)
    {
        struct oj_cuda_work own(work);
        int64_t n = 0;
        double start;
        OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
        OJ_TRY(find_pairs_of_open_rows(&own, way, NULL, s, &n));
        start = oj_clock_seconds();
        OJ_TRY(keep_pairs_of_answered_rows(&own, index->rank, takes_ties, n, s,
                                           work, &kept, &n_kept));
        OJ_TRY(own.wait());
        way->stats->refine_s += oj_clock_seconds() - start;
        OJ_TRY(oj_cuda_share_check_pair_limit(share, n_kept, work->err));
    }
    oj_cuda_share_move_pairs(work, 1, &kept, n_kept, share);
    return OJ_OK;
}

/* --- rows of a batch ------------------------------------------------------ */

/* Copies the vertices of features that are not points to the device, and
 * computes the boxes of the features. */
static oj_status upload_shapes(struct oj_cuda_work *work,
                               const struct oj_flat *input, int64_t first,
                               int64_t n, int64_t *first_vertex,
                               struct cuda_gpics_rows *out)
{
    int64_t base, end;
    struct oj_box *box;
    oj_flat_vertex_range(input, first, &base, &end);
    for (int64_t i = 0; i < n; i++)
    {
        oj_flat_vertex_range(input, first + i, &first_vertex[i], &end);
        first_vertex[i] -= base;
    }
    first_vertex[n] = end - base;
    OJ_TRY(oj_cuda_upload_column(work, first_vertex, n + 1, &out->first));
    OJ_TRY(oj_cuda_upload_column(work, input->x + base, end - base, &out->x));
    OJ_TRY(oj_cuda_upload_column(work, input->y + base, end - base, &out->y));
    OJ_TRY(work->make(n, &box));
    out->box = box;
    const struct cuda_gpics_rows rows = *out;
    return work->each(n,
                      [=] __device__(int64_t i)
                      {
                          struct oj_box around = oj_box_empty();
                          for (int64_t v = rows.first[i]; v < rows.first[i + 1];
                               v++)
                              oj_box_add_point(&around, rows.x[v], rows.y[v]);
                          box[i] = around;
                      });
}

static oj_status upload_rows(struct oj_cuda_work *work,
                             const struct oj_flat *input, int64_t first,
                             int64_t n, const struct oj_relation *relation,
                             struct cuda_gpics_rows *out)
{
    int64_t *first_vertex;
    oj_status status;
    out->n = n;
    OJ_TRY(
        oj_cuda_upload_columns(work, input, first, n, relation, &out->columns));
    if (oj_flat_is_points(input))
    {
        OJ_TRY(oj_cuda_upload_column(work, input->x + first, n, &out->x));
        return oj_cuda_upload_column(work, input->y + first, n, &out->y);
    }
    first_vertex = (int64_t *)oj_malloc(n + 1, sizeof *first_vertex);
    if (first_vertex == NULL)
        return oj_fail_nomem(work->err, n + 1, sizeof *first_vertex);
    status = upload_shapes(work, input, first, n, first_vertex, out);
    /* waits, because the copy may still be running */
    (void)cudaStreamSynchronize(work->stream);
    oj_free(first_vertex);
    return status;
}

/* Makes s->open: all rows of this device's share. */
static oj_status open_all_rows_of_share(struct oj_cuda_work *work,
                                        const struct oj_cuda_share *share,
                                        struct cuda_gpics_search *s)
{
    int64_t first = s->rows.n * share->number / share->n;
    int64_t end = s->rows.n * (share->number + 1) / share->n;
    int32_t *open;
    OJ_TRY(work->make(end - first, &open));
    s->open = open;
    s->n_open = end - first;
    return work->each(s->n_open, [=] __device__(int64_t i)
                      { open[i] = (int32_t)(first + i); });
}

static oj_status join_rows(const struct oj_cuda_index *index,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, int is_registered,
                           struct oj_cuda_share *share, struct oj_stats *stats,
                           struct oj_error *err)
{
    const struct cuda_gpics_index *self =
        (const struct cuda_gpics_index *)index;
    const struct oj_relation *relation = &index->relation;
    const struct cuda_gpics_way way = {is_registered, stats};
    struct oj_cuda_work work(index->device, index->device->stream,
                             "walking trees of G-PICS", err);
    struct cuda_gpics_search s = {};
    int64_t n_pairs = 0;
    OJ_TRY(upload_rows(&work, input, first, n, relation, &s.rows));
    s.tree = self->tree;
    s.rule = oj_cuda_make_pair_rule(relation, &s.rows.columns, &self->columns);
    s.by_distance = oj_relation_is_by_distance(relation);
    s.is_nearest = oj_relation_is_nearest(relation);
    s.k = relation->k;
    s.most = relation->max_distance;
    s.least2 = oj_square_limit_least(relation->min_distance);
    s.spacing = self->spacing;
    OJ_TRY(open_all_rows_of_share(&work, share, &s));
    OJ_TRY(set_first_reaches(&work, &s));
    if (s.is_nearest)
        return find_nearest(&work, &way, index, &s, share);
    OJ_TRY(find_pairs_of_open_rows(&work, &way, share, &s, &n_pairs));
    oj_cuda_share_move_pairs(&work, 0, &s.found, n_pairs, share);
    return OJ_OK;
}

/* --- the families --------------------------------------------------------- */

/* Returns 1 for the joins that oj_gpics_supports_join() in algs/papers/gpics.c
 * takes.
 */
static int supports_gpics_join(const struct oj_relation *relation,
                               const struct oj_flat *join_side,
                               const struct oj_flat *input)
{
    int of_points = input == NULL || oj_flat_is_points(input);
    if (!oj_flat_is_points(join_side) || join_side->max_distance != NULL ||
        oj_relation_compares_attributes(relation) ||
        relation->metric != OJ_METRIC_PLANAR ||
        (input != NULL && input->max_distance != NULL))
        return 0;
    return oj_relation_is_bbox(relation) ||
           (of_points && (oj_relation_pairs_equal_points(relation) ||
                          (oj_relation_is_by_distance(relation) &&
                           relation->distance == OJ_DISTANCE_LEAST)));
}

static oj_status build_tree(struct oj_cuda_index *index,
                            struct oj_cuda_work *work, int is_kdtree)
{
    struct cuda_gpics_index *self = (struct cuda_gpics_index *)index;
    const struct oj_flat *flat = index->layer->flat;
    double width, height, n;
    OJ_TRY(oj_cuda_upload_columns(work, flat, 0, flat->n_features,
                                  &index->relation, &self->columns));
    OJ_TRY(oj_cuda_gpics_tree_build(work, flat->n_features, flat->x, flat->y,
                                    is_kdtree, index->layer->quadrant_size,
                                    &self->tree));
    if (self->tree.n_points == 0)
        return OJ_OK;
    width = self->tree.frame.x1 - self->tree.frame.x0;
    height = self->tree.frame.y1 - self->tree.frame.y0;
    n = (double)self->tree.n_points;
    self->spacing = radius_expecting_one_point(width, height, n);
    /* without area, all points are on a horizontal or vertical line */
    if (!(self->spacing > 0.0))
        self->spacing = oj_larger(width, height) / n;
    return OJ_OK;
}

static oj_status build_quadtree(struct oj_cuda_index *index,
                                struct oj_cuda_work *work)
{
    return build_tree(index, work, 0);
}

static oj_status build_kdtree(struct oj_cuda_index *index,
                              struct oj_cuda_work *work)
{
    return build_tree(index, work, 1);
}

static oj_status join_registered_rows(const struct oj_cuda_index *index,
                                      const struct oj_flat *input,
                                      int64_t first, int64_t n,
                                      struct oj_cuda_share *share,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    return join_rows(index, input, first, n, 1, share, stats, err);
}

static oj_status join_single_rows(const struct oj_cuda_index *index,
                                  const struct oj_flat *input, int64_t first,
                                  int64_t n, struct oj_cuda_share *share,
                                  struct oj_stats *stats, struct oj_error *err)
{
    return join_rows(index, input, first, n, 0, share, stats, err);
}

const struct oj_cuda_family oj_cuda_gpics_quadtree = {
    "quadtree, rows registered at leaves",
    supports_gpics_join,
    sizeof(struct cuda_gpics_index),
    build_quadtree,
    1,
    join_registered_rows,
};

const struct oj_cuda_family oj_cuda_gpics_kdtree = {
    "k-d tree, rows registered at leaves",
    supports_gpics_join,
    sizeof(struct cuda_gpics_index),
    build_kdtree,
    1,
    join_registered_rows,
};

const struct oj_cuda_family oj_cuda_gpics_quadtree_single = {
    "quadtree, a thread for each row",
    supports_gpics_join,
    sizeof(struct cuda_gpics_index),
    build_quadtree,
    1,
    join_single_rows,
};

const struct oj_cuda_family oj_cuda_gpics_kdtree_single = {
    "k-d tree, a thread for each row",
    supports_gpics_join,
    sizeof(struct cuda_gpics_index),
    build_kdtree,
    1,
    join_single_rows,
};
