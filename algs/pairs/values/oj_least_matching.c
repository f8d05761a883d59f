#include "oj_least_matching.h"

#include "../../../flatten/base/oj_alloc.h"

#include <math.h>

__extension__ typedef __int128 s128;

/* Number of bits to which the greatest number at each position of the weights
 * is scaled. */
#define WEIGHT_BITS 90

/* Logarithm to base 2 of the extra cost of a row without an edge. That cost
 * exceeds any sum of weights: each weight is below 2^(WEIGHT_BITS + 1), and a
 * graph has at most 2^20 edges (OJ_MATCHING_MOST_EDGES). */
#define UNMATCHED_BITS (WEIGHT_BITS + 22)

/* A sum of weights, or a difference of sums. */
struct cost
{
    s128 at[OJ_MATCHING_WEIGHTS];
};

/* State of a column in the shortest-path search. */
struct reached
{
    struct cost distance;
    int64_t edge;   /* last edge of the shortest path to the column so far */
    int32_t row;    /* row of `edge` */
    int32_t place;  /* position in the heap; -1: not in the heap */
    int64_t search; /* start row of the search that reached the column last; -1:
                       none */
    int is_done;
};

struct matching
{
    const struct oj_matching_graph *graph;
    const int *cancel;
    struct cost *cost;             /* [edges] */
    struct cost *row_potential;    /* [rows] */
    struct cost *column_potential; /* [columns] never above 0; 0 for free
                                      columns */
    int64_t *edge;                 /* [rows] edge of the row in the matching, or
                                      -1 */
    int32_t *owner;                /* [columns] row of the column in the
                                      matching, or -1 */

    /* The search. */
    struct reached *reached; /* [columns] */
    int32_t *heap;           /* [n_heap] columns; the minimum distance is
                                first */
    int64_t n_heap;
    int32_t *done; /* [n_done] columns whose distance is final */
    int64_t n_done;
    int32_t last_row; /* row that loses its edge on the best path found so far
                         that ends at a row */
    struct cost last; /* length of the best path found so far */

    /* State of the choice among equal matchings. Nodes are rows; node n_rows
     * represents all free columns. */
    int64_t *seen;       /* [rows + 1] 1 + the row whose search reached this
                            node last */
    int32_t *parent;     /* [rows + 1] the node that would take the column of
                            this node */
    int64_t *taken_edge; /* [rows + 1] the edge by which the parent would take
                            the column of this node; -1: the parent stays or
                            becomes free */
    int32_t *queue;      /* [rows + 1] nodes in the order in which they were
                            reached */
};

/* ---- costs --------------------------------------------------------------- */

static int compare_costs(const struct cost *a, const struct cost *b)
{
    for (int i = 0; i < OJ_MATCHING_WEIGHTS; i++)
    {
        if (a->at[i] != b->at[i])
            return a->at[i] < b->at[i] ? -1 : 1;
    }
    return 0;
}

static struct cost add_costs(struct cost a, const struct cost *b)
{
    for (int i = 0; i < OJ_MATCHING_WEIGHTS; i++)
        a.at[i] += b->at[i];
    return a;
}

static struct cost subtract_costs(struct cost a, const struct cost *b)
{
    for (int i = 0; i < OJ_MATCHING_WEIGHTS; i++)
        a.at[i] -= b->at[i];
    return a;
}

static int is_cost_zero(const struct cost *a)
{
    const struct cost zero = {{0}};
    return compare_costs(a, &zero) == 0;
}

static struct cost cost_of_unmatched_row(void)
{
    struct cost cost = {{0}};
    cost.at[0] = (s128)1 << UNMATCHED_BITS;
    return cost;
}

/* ---- costs of edges ------------------------------------------------------ */

/* Returns an exponent e such that all finite numbers at this position of the
 * weights are below 2^e in absolute value. */
static int greatest_exponent(const struct oj_matching_graph *graph, int64_t n,
                             int place)
{
    double greatest = 0.0;
    int exponent = 0;
    for (int64_t e = 0; e < n; e++)
    {
        const double size = fabs(graph->weight[e][place]);
        if (size > greatest && !isinf(size))
            greatest = size;
    }
    (void)frexp(greatest, &exponent);
    return exponent;
}

/* Sets the integer costs of all edges at one position of the weights. The
 * numbers at this position are scaled by a power of two to at most
 * 2^WEIGHT_BITS and rounded (infinity: 2^WEIGHT_BITS); then the least of them
 * is subtracted from all. */
static void set_costs_at_weight_position(struct matching *m, int64_t n,
                                         int place)
{
    const int exponent = greatest_exponent(m->graph, n, place);
    s128 least = (s128)1 << WEIGHT_BITS;
    for (int64_t e = 0; e < n; e++)
    {
        const double weight = m->graph->weight[e][place];
        s128 *cost = &m->cost[e].at[place];
        *cost = isinf(weight)
                    ? (s128)1 << WEIGHT_BITS
                    : (s128)nearbyint(ldexp(weight, WEIGHT_BITS - exponent));
        least = *cost < least ? *cost : least;
    }
    for (int64_t e = 0; e < n; e++)
        m->cost[e].at[place] -= least;
}

/* Returns the cost of an edge less the potentials of its ends; never below 0.
 */
static struct cost reduced_cost(const struct matching *m, int64_t row,
                                int64_t edge)
{
    const struct cost left =
        subtract_costs(m->cost[edge], &m->row_potential[row]);
    return subtract_costs(left, &m->column_potential[m->graph->column[edge]]);
}

/* ---- the heap ------------------------------------------------------------ */

static int is_nearer(const struct matching *m, int32_t a, int32_t b)
{
    return compare_costs(&m->reached[a].distance, &m->reached[b].distance) < 0;
}

static void set_heap_entry(struct matching *m, int64_t place, int32_t column)
{
    m->heap[place] = column;
    m->reached[column].place = (int32_t)place;
}

static void move_up_in_heap(struct matching *m, int64_t place, int32_t column)
{
    while (place > 0 && is_nearer(m, column, m->heap[(place - 1) / 2]))
    {
        set_heap_entry(m, place, m->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    set_heap_entry(m, place, column);
}

/* Removes the column of minimum distance from the heap and returns it; its
 * distance is now final. */
static int32_t remove_nearest_column(struct matching *m)
{
    const int32_t nearest = m->heap[0];
    const int32_t column = m->heap[--m->n_heap];
    int64_t place = 0, child;
    while ((child = 2 * place + 1) < m->n_heap)
    {
        if (child + 1 < m->n_heap &&
            is_nearer(m, m->heap[child + 1], m->heap[child]))
            child++;
        if (!is_nearer(m, m->heap[child], column))
            break;
        set_heap_entry(m, place, m->heap[child]);
        place = child;
    }
    if (m->n_heap > 0)
        set_heap_entry(m, place, column);
    m->reached[nearest].is_done = 1;
    m->done[m->n_done++] = nearest;
    return nearest;
}

/* ---- shortest augmenting paths ------------------------------------------- */

/* Relaxes the edges of a row whose distance from the start of the search is
 * `from`. */
static void relax_edges_of_row(struct matching *m, int64_t search, int32_t row,
                               const struct cost *from)
{
    const struct oj_matching_graph *graph = m->graph;
    struct cost end = cost_of_unmatched_row();
    end = subtract_costs(add_costs(end, from), &m->row_potential[row]);
    if (m->last_row < 0 || compare_costs(&end, &m->last) < 0)
    {
        m->last_row = row;
        m->last = end;
    }
    for (int64_t e = graph->offset[row]; e < graph->offset[row + 1]; e++)
    {
        const int32_t column = graph->column[e];
        struct reached *to = &m->reached[column];
        const struct cost distance = add_costs(reduced_cost(m, row, e), from);
        const int is_new = to->search != search;
        if (!is_new &&
            (to->is_done || compare_costs(&distance, &to->distance) >= 0))
            continue;
        if (is_new)
            to->place = (int32_t)m->n_heap++;
        to->search = search;
        to->is_done = 0;
        to->distance = distance;
        to->edge = e;
        to->row = row;
        move_up_in_heap(m, to->place, column);
    }
}

/* Searches the shortest augmenting path from a row without an edge. Returns the
 * free column at its end, or -1 if the best path ends at m->last_row, which
 * then loses its edge. */
static int32_t search_free_column(struct matching *m, int32_t start)
{
    const struct cost zero = {{0}};
    m->n_heap = m->n_done = 0;
    m->last_row = -1;
    relax_edges_of_row(m, start, start, &zero);
    while (m->n_heap > 0 &&
           compare_costs(&m->reached[m->heap[0]].distance, &m->last) < 0)
    {
        const int32_t column = remove_nearest_column(m);
        if (m->owner[column] < 0)
        {
            m->last = m->reached[column].distance;
            return column;
        }
        relax_edges_of_row(m, start, m->owner[column],
                           &m->reached[column].distance);
    }
    return -1;
}

/* Updates the potentials so that every edge keeps a reduced cost of at least 0
 * and the edges of the path have 0. */
static void update_potentials(struct matching *m, int32_t start)
{
    m->row_potential[start] = add_costs(m->row_potential[start], &m->last);
    for (int64_t i = 0; i < m->n_done; i++)
    {
        const int32_t column = m->done[i], row = m->owner[column];
        const struct cost change =
            subtract_costs(m->last, &m->reached[column].distance);
        m->column_potential[column] =
            subtract_costs(m->column_potential[column], &change);
        if (row >= 0)
            m->row_potential[row] = add_costs(m->row_potential[row], &change);
    }
}

/* Flips the path that ends at `column`: each of its rows gets the edge by which
 * the path leaves it. */
static void augment_path(struct matching *m, int32_t start, int32_t column)
{
    int32_t row;
    do
    {
        const int64_t before = m->edge[m->reached[column].row];
        row = m->reached[column].row;
        m->edge[row] = m->reached[column].edge;
        m->owner[column] = row;
        column = before >= 0 ? m->graph->column[before] : -1;
    } while (row != start);
}

static void match_row(struct matching *m, int32_t row)
{
    int32_t column = search_free_column(m, row);
    update_potentials(m, row);
    if (column < 0 && m->last_row != row)
    {
        column = m->graph->column[m->edge[m->last_row]];
        m->edge[m->last_row] = -1;
    }
    if (column >= 0)
        augment_path(m, row, column);
}

/* ---- the first of equal matchings ----------------------------------------
 *
 * A matching has minimum cost if and only if its edges have reduced cost 0, it
 * covers all columns with a potential below 0, and may_be_unmatched() allows
 * each row without an edge. Two such matchings differ by cycles in which each
 * row takes the column of the next one. One extra node of these cycles
 * represents both the free columns and the state without an edge: it may take
 * over any column whose potential is 0, and may stand in for any row without an
 * edge. */

/* Returns 1 if a matching of minimum cost can leave the row without an edge. */
static int may_be_unmatched(const struct matching *m, int64_t row)
{
    const struct cost cost = cost_of_unmatched_row();
    return compare_costs(&m->row_potential[row], &cost) == 0;
}

/* Adds a node whose column `parent` can take. Rows before `row` must keep their
 * columns and are not added. */
static void reach_node(struct matching *m, int64_t row, int32_t node,
                       int32_t parent, int64_t edge, int64_t *n_queue)
{
    if (node <= row || m->seen[node] == row + 1)
        return;
    m->seen[node] = row + 1;
    m->parent[node] = parent;
    m->taken_edge[node] = edge;
    m->queue[(*n_queue)++] = node;
}

/* Returns the row that owns the column, or the node of the free columns. */
static int32_t node_of_column(const struct matching *m, int32_t column)
{
    return m->owner[column] >= 0 ? m->owner[column] : (int32_t)m->graph->n_rows;
}

/* Adds the nodes whose columns row `node` can take. Returns the edge of `node`
 * to `old`, the column that `row` gives up, since this edge closes a cycle; -1
 * if there is no such edge. */
static int64_t reach_from_row(struct matching *m, int64_t row, int32_t node,
                              int32_t old, int64_t *n_queue)
{
    const struct oj_matching_graph *graph = m->graph;
    for (int64_t e = graph->offset[node]; e < graph->offset[node + 1]; e++)
    {
        const struct cost left = reduced_cost(m, node, e);
        if (!is_cost_zero(&left))
            continue;
        if (graph->column[e] == old)
            return e;
        reach_node(m, row, node_of_column(m, graph->column[e]), node, e,
                   n_queue);
    }
    if (may_be_unmatched(m, node))
        reach_node(m, row, (int32_t)graph->n_rows, node, -1, n_queue);
    return -1;
}

/* Adds the nodes whose columns can become free, and the later rows without an
 * edge, since another row can be without one instead. */
static void reach_from_free_columns(struct matching *m, int64_t row,
                                    int64_t *n_queue)
{
    const int32_t free = (int32_t)m->graph->n_rows;
    for (int32_t c = 0; c < m->graph->n_columns; c++)
    {
        if (is_cost_zero(&m->column_potential[c]))
            reach_node(m, row, node_of_column(m, c), free, -1, n_queue);
    }
    for (int32_t other = (int32_t)row + 1; other < free; other++)
    {
        if (m->edge[other] < 0)
            reach_node(m, row, other, free, -1, n_queue);
    }
}

/* Applies a cycle: `node` gets `edge`, its parent gets the column of `node`,
 * and so on back to the row whose search reached them. Columns that become free
 * have no owner. */
static void move_along_cycle(struct matching *m, int32_t node, int64_t edge)
{
    const int32_t free = (int32_t)m->graph->n_rows;
    const int64_t row = m->seen[node] - 1;
    for (int is_last = 0; !is_last;)
    {
        const int32_t next = m->parent[node];
        is_last = node == row;
        if (next == free && m->edge[node] >= 0)
            m->owner[m->graph->column[m->edge[node]]] = -1;
        if (node != free)
            m->edge[node] = edge;
        if (node != free && edge >= 0)
            m->owner[m->graph->column[edge]] = node;
        edge = m->taken_edge[node];
        node = next;
    }
}

/* Tries to give the row `edge`, which it prefers to its present one, in another
 * matching of equal cost; rows before it keep their edges. Returns 1 on
 * success. */
static int try_preferred_edge(struct matching *m, int32_t row, int64_t edge)
{
    const int32_t free = (int32_t)m->graph->n_rows;
    const int32_t old = m->edge[row] >= 0 ? m->graph->column[m->edge[row]] : -1;
    const struct cost left = reduced_cost(m, row, edge);
    int64_t n_queue = 0;
    if (!is_cost_zero(&left))
        return 0;
    m->seen[row] = row + 1;
    m->parent[row] = -1;
    reach_node(m, row, node_of_column(m, m->graph->column[edge]), row, edge,
               &n_queue);
    for (int64_t i = 0; i < n_queue; i++)
    {
        const int32_t node = m->queue[i];
        int64_t closing = -1;
        int is_closed;
        if (node != free)
        {
            closing = reach_from_row(m, row, node, old, &n_queue);
            is_closed = closing >= 0;
        }
        else
        {
            is_closed = old < 0 || is_cost_zero(&m->column_potential[old]);
            if (!is_closed)
                reach_from_free_columns(m, row, &n_queue);
        }
        if (!is_closed)
            continue;
        if (node == free && old >= 0)
            m->owner[old] = -1;
        move_along_cycle(m, node, closing);
        return 1;
    }
    return 0;
}

/* ---- the matching -------------------------------------------------------- */

static oj_status allocate_matching(struct matching *m, int64_t n_edges,
                                   struct oj_error *err)
{
    const int64_t n_rows = m->graph->n_rows, n_columns = m->graph->n_columns;
    OJ_NEW(m->cost, n_edges + 1, err);
    OJ_NEW_ZEROED(m->row_potential, n_rows + 1, err);
    OJ_NEW_ZEROED(m->column_potential, n_columns + 1, err);
    OJ_NEW(m->owner, n_columns + 1, err);
    OJ_NEW(m->reached, n_columns + 1, err);
    OJ_NEW(m->heap, n_columns + 1, err);
    OJ_NEW(m->done, n_columns + 1, err);
    OJ_NEW_ZEROED(m->seen, n_rows + 1, err);
    OJ_NEW(m->parent, n_rows + 1, err);
    OJ_NEW(m->taken_edge, n_rows + 1, err);
    OJ_NEW(m->queue, n_rows + 1, err);
    for (int64_t row = 0; row < n_rows; row++)
        m->edge[row] = -1;
    for (int64_t column = 0; column < n_columns; column++)
    {
        m->owner[column] = -1;
        m->reached[column].search = -1;
    }
    return OJ_OK;
}

static void free_matching(struct matching *m)
{
    oj_free(m->cost);
    oj_free(m->row_potential);
    oj_free(m->column_potential);
    oj_free(m->owner);
    oj_free(m->reached);
    oj_free(m->heap);
    oj_free(m->done);
    oj_free(m->seen);
    oj_free(m->parent);
    oj_free(m->taken_edge);
    oj_free(m->queue);
}

static oj_status match_all_rows(struct matching *m, struct oj_error *err)
{
    const struct oj_matching_graph *graph = m->graph;
    const int32_t n = (int32_t)graph->n_rows;
    for (int place = 0; place < OJ_MATCHING_WEIGHTS; place++)
        set_costs_at_weight_position(m, graph->offset[n], place);
    for (int32_t row = 0; row < n; row++)
    {
        OJ_TRY(oj_check_cancel(m->cancel, err));
        match_row(m, row);
    }
    for (int32_t row = 0; row < n; row++)
    {
        OJ_TRY(oj_check_cancel(m->cancel, err));
        for (int64_t e = graph->offset[row];
             e < graph->offset[row + 1] && e != m->edge[row] &&
             !try_preferred_edge(m, row, e);
             e++)
        {
        }
    }
    return OJ_OK;
}

oj_status oj_least_matching_find(const struct oj_matching_graph *graph,
                                 const int *cancel, int64_t *chosen,
                                 struct oj_error *err)
{
    const int64_t n_edges = graph->offset[graph->n_rows];
    struct matching m = {.graph = graph, .cancel = cancel, .edge = chosen};
    oj_status status;
    if (n_edges > OJ_MATCHING_MOST_EDGES)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a group of %lld connected pairs is too large for "
                       "one_to_one best, which matches at most %lld: use "
                       "one_to_one greedy",
                       (long long)n_edges, (long long)OJ_MATCHING_MOST_EDGES);
    status = allocate_matching(&m, n_edges, err);
    if (status == OJ_OK)
        status = match_all_rows(&m, err);
    free_matching(&m);
    return status;
}
