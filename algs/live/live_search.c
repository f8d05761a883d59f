#include "live_search.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_parallel.h"
#include "../foundations/base/cpu_lane_loops.h"
#include "../foundations/base/cpu_morton_order.h"
#include "../foundations/base/oj_radix_sort.h"
#include "../foundations/kernels/oj_segment.h"
#include "../foundations/kernels/oj_square_limit.h"
#include "../pairs/selection/oj_answer_ranking.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Rows per task of a thread. */
#define ROWS_AT_ONCE 256

/* Capacity of the stack of open children: at most three remain for each of the
 * 40 levels of the tree (LIVE_MOST_DEPTH), and four at the deepest. */
#define MOST_OPEN 256

/* Estimated cost of an input row, as a multiple of the cost of indexing a
 * point: if n_rows * POINTS_PER_ROW exceeds the number of points, all points
 * are indexed. */
#define POINTS_PER_ROW 8
/* Up to this many rows per point, searching the pages is no slower than
 * indexing all points and searching this index. */
#define ROWS_PER_POINT 4

/* Maximum k for which the nearest distances are kept sorted during the
 * search. */
#define FEW_NEAREST 32

/* --- points by ids ---------------------------------------------------------
 */

void live_points_free(struct live_points *points)
{
    oj_free(points->id);
    oj_free(points->x);
    oj_free(points->y);
    memset(points, 0, sizeof *points);
}

static oj_status add_point(struct live_points *to, double x, double y,
                           int64_t id, struct oj_error *err)
{
    int64_t n = to->n;
    OJ_ROOM(to->id, n, n + 1, to->cap_id, err);
    OJ_ROOM(to->x, n, n + 1, to->cap_x, err);
    OJ_ROOM(to->y, n, n + 1, to->cap_y, err);
    to->id[n] = id;
    to->x[n] = x;
    to->y[n] = y;
    to->n++;
    return OJ_OK;
}

/* Returns a key that sorts negative ids before the others. */
static uint64_t key_of_id(int64_t id)
{
    return (uint64_t)id ^ (UINT64_C(1) << 63);
}

oj_status live_points_sort(struct live_points *points, struct oj_error *err)
{
    int64_t n = points->n;
    struct live_points sorted = {.n = n, .cap_id = n, .cap_x = n, .cap_y = n};
    struct oj_keyed *key = oj_malloc(2 * n, sizeof *key), *at;
    sorted.id = oj_malloc(n, sizeof *sorted.id);
    sorted.x = oj_malloc(n, sizeof *sorted.x);
    sorted.y = oj_malloc(n, sizeof *sorted.y);
    if (key == NULL || sorted.id == NULL || sorted.x == NULL ||
        sorted.y == NULL)
    {
        oj_free(key);
        live_points_free(&sorted);
        return oj_fail_nomem(err, n,
                             2 * sizeof *key + sizeof(struct live_point));
    }
    for (int64_t i = 0; i < n; i++)
        key[i] = (struct oj_keyed){key_of_id(points->id[i]), i};
    at = oj_radix_sort(key, key + n, n);
    for (int64_t i = 0; i < n; i++)
    {
        sorted.id[i] = points->id[at[i].value];
        sorted.x[i] = points->x[at[i].value];
        sorted.y[i] = points->y[at[i].value];
    }
    oj_free(key);
    live_points_free(points);
    *points = sorted;
    return OJ_OK;
}

oj_status live_search_list_points(const struct live_state *state,
                                  struct live_points *out, struct oj_error *err)
{
    struct live_points all = {0};
    oj_status status = OJ_OK;
    for (int64_t p = 0; p < state->n_pages && status == OJ_OK; p++)
    {
        const struct live_page *page = &state->page[p];
        const struct live_block *block = page->block;
        for (int i = 0; block != NULL && i < page->n && status == OJ_OK; i++)
        {
            if (block->x[i] == block->x[i])
                status = add_point(&all, block->x[i], block->y[i], block->id[i],
                                   err);
        }
    }
    if (status == OJ_OK)
        status = live_points_sort(&all, err);
    if (status != OJ_OK)
    {
        live_points_free(&all);
        return status;
    }
    *out = all;
    return OJ_OK;
}

/* --- the way down ----------------------------------------------------------
 */

/* A child in reach, with a lower bound of its squared distance. */
struct open_child
{
    double d2;
    int32_t child;
};

struct descent
{
    struct oj_box box; /* box of the query */
    int n_open;
    struct open_child open[MOST_OPEN];
};

static double gap_between_intervals(double low, double high, double cell_low,
                                    double cell_high)
{
    double left = cell_low - high, right = low - cell_high;
    double d = left > right ? left : right;
    return d > 0.0 ? d : 0.0;
}

/* Returns a lower bound of the squared distance of two boxes. The factor keeps
 * it below the exact value in spite of rounding. */
static double box_distance2(const struct oj_box *a, const struct oj_box *b)
{
    double dx = gap_between_intervals(a->x0, a->x1, b->x0, b->x1);
    double dy = gap_between_intervals(a->y0, a->y1, b->y0, b->y1);
    return (dx * dx + dy * dy) * (1.0 - 8.0 * DBL_EPSILON);
}

static void begin_descent(struct descent *d, const struct live_state *state,
                          const struct oj_box *box)
{
    d->box = *box;
    d->n_open = state->root != LIVE_NO_CHILD;
    d->open[0] = (struct open_child){0.0, state->root};
}

/* Pushes the children of a node whose squared distance is at most bound2. The
 * nearest child is pushed last, and so popped first. */
static void push_near_children(struct descent *d,
                               const struct live_state *state,
                               const struct live_node *node, double bound2)
{
    int bottom = d->n_open, top = bottom;
    for (int c = 0; c < 4; c++)
    {
        struct open_child opened = {0.0, node->child[c]};
        int at = top;
        if (opened.child == LIVE_NO_CHILD)
            continue;
        /* d2 stays 0 for a chain, which is always searched: its pages have
         * boxes, the whole chain has none */
        if (opened.child >= 0)
            opened.d2 =
                box_distance2(&d->box, &state->node[opened.child].cover);
        else
        {
            const struct live_page *page =
                &state->page[live_page_of_child(opened.child)];
            if (page->next == LIVE_NONE)
                opened.d2 = box_distance2(&d->box, &page->box);
        }
        if (!(opened.d2 <= bound2))
            continue;
        for (; at > bottom && d->open[at - 1].d2 < opened.d2; at--)
            d->open[at] = d->open[at - 1];
        d->open[at] = opened;
        top++;
    }
    d->n_open = top;
}

/* Returns the next page whose squared distance is at most bound2, or
 * LIVE_NONE. */
static uint32_t next_nearest_page(struct descent *d,
                                  const struct live_state *state, double bound2)
{
    while (d->n_open > 0)
    {
        struct open_child o = d->open[--d->n_open];
        if (!(o.d2 <= bound2))
            continue;
        if (o.child < 0)
            return live_page_of_child(o.child);
        push_near_children(d, state, &state->node[o.child], bound2);
    }
    return LIVE_NONE;
}

/* --- squares of distances --------------------------------------------------
 */

/* Computes the squared distances of all slots of a page; NaN for holes. */
OJ_INLINE void page_distances2(const struct live_block *block, double x,
                               double y, double *restrict d2)
{
    for (int i = 0; i < LIVE_PAGE_POINTS; i += OJ_LANES)
    {
        OJ_EIGHT
        {
            double dx = x - block->x[i + c], dy = y - block->y[i + c];
            d2[i + c] = dx * dx + dy * dy;
        }
    }
}

/* --- the pairs of a point --------------------------------------------------
 */

struct found_point
{
    double d2;
    int64_t id;
};

struct row_search
{
    const struct live_query *query;
    int64_t row, row_id;
    double x, y, least2, bound2;
    int64_t k; /* number of nearest points wanted; 0: all points within the
                  bound */
    struct oj_ranking ranking;
    int64_t n, n_cut, cap;
    struct found_point *found;
    double nearest2[FEW_NEAREST];
    int n_nearest;
    int64_t n_sorted, cap_sorted;
    struct oj_keyed *sorted;
    /* output: pairs of all rows of a thread, concatenated */
    int64_t n_out, cap_id, cap_distance;
    int64_t *id;
    double *distance;
    char apart[64];
};

/* Returns 1 if the point at squared distance d2 passes the conditions of the
 * join, except the maximum distance. */
OJ_INLINE int may_be_pair(const struct row_search *s, double d2, double x,
                          double y, int64_t id)
{
    const struct oj_relation *r = s->query->relation;
    if (d2 < s->least2)
        return 0;
    if (r->exclude_self && id == s->row_id)
        return 0;
    if (r->unordered_pairs != 0 &&
        (r->unordered_pairs > 0 ? s->row_id >= id : s->row_id <= id))
        return 0;
    return !(r->exclude_same_geometry && x == s->x && y == s->y);
}

static int compare_squared_distances(const void *left, const void *right)
{
    const struct found_point *a = left, *b = right;
    return (a->d2 > b->d2) - (a->d2 < b->d2);
}

/* Returns the largest square whose root may equal that of kth2: points with
 * squares up to the result can tie with the k-th point. */
static double greatest_square_of_ties(double kth2)
{
    return kth2 * (1.0 + 0x1p-50);
}

static void drop_beyond_kth(struct row_search *s)
{
    int64_t n = 0;
    if (s->n == 0)
        return;
    qsort(s->found, (size_t)s->n, sizeof *s->found, compare_squared_distances);
    if (s->n >= s->k)
    {
        double ties2 = greatest_square_of_ties(s->found[s->k - 1].d2);
        s->bound2 = ties2 < s->bound2 ? ties2 : s->bound2;
    }
    while (n < s->n && s->found[n].d2 <= s->bound2)
        n++;
    s->n = s->n_cut = n;
}

static void add_to_k_nearest_squares(struct row_search *s, double d2)
{
    int at = s->n_nearest;
    if (at < s->k)
        s->n_nearest++;
    else if (!(d2 < s->nearest2[--at]))
        return;
    for (; at > 0 && s->nearest2[at - 1] > d2; at--)
        s->nearest2[at] = s->nearest2[at - 1];
    s->nearest2[at] = d2;
    if (s->n_nearest == s->k)
    {
        double ties2 = greatest_square_of_ties(s->nearest2[s->k - 1]);
        s->bound2 = ties2 < s->bound2 ? ties2 : s->bound2;
    }
}

static oj_status add_found_point(struct row_search *s, double d2, int64_t id,
                                 struct oj_error *err)
{
    OJ_ROOM(s->found, s->n, s->n + 1, s->cap, err);
    s->found[s->n++] = (struct found_point){d2, id};
    if (s->k == 0)
        return OJ_OK;
    if (s->k <= FEW_NEAREST)
        add_to_k_nearest_squares(s, d2);
    if ((s->n - 64) / 2 - s->n_cut >= s->k)
        drop_beyond_kth(s);
    return OJ_OK;
}

OJ_CLONES static oj_status search_page(struct row_search *s,
                                       const struct live_page *page,
                                       struct oj_error *err)
{
    const struct live_block *block = page->block;
    double d2[LIVE_PAGE_POINTS];
    page_distances2(block, s->x, s->y, d2);
    for (int i = 0; i < page->n; i++)
    {
        if (d2[i] <= s->bound2 &&
            may_be_pair(s, d2[i], block->x[i], block->y[i], block->id[i]))
            OJ_TRY(add_found_point(s, d2[i], block->id[i], err));
    }
    return OJ_OK;
}

static oj_status search_pages_of_row(struct row_search *s, struct oj_error *err)
{
    const struct live_state *state = s->query->state;
    struct oj_box box = {s->x, s->y, s->x, s->y};
    struct descent d;
    uint32_t page;
    begin_descent(&d, state, &box);
    while ((page = next_nearest_page(&d, state, s->bound2)) != LIVE_NONE)
    {
        OJ_TRY(oj_check_cancel(s->query->cancel, err));
        for (; page != LIVE_NONE; page = state->page[page].next)
        {
            const struct live_page *of = &state->page[page];
            if (box_distance2(&box, &of->box) <= s->bound2)
                OJ_TRY(search_page(s, of, err));
        }
    }
    return OJ_OK;
}

/* Maximum number of points that are sorted by insertion. */
#define FEW_TO_SORT 24

/* Sorts s->found by ascending ids. */
static oj_status sort_found_by_id(struct row_search *s, struct oj_error *err)
{
    struct oj_keyed *sorted;
    if (s->n <= FEW_TO_SORT)
    {
        for (int64_t i = 1; i < s->n; i++)
        {
            struct found_point moving = s->found[i];
            int64_t at = i;
            for (; at > 0 && s->found[at - 1].id > moving.id; at--)
                s->found[at] = s->found[at - 1];
            s->found[at] = moving;
        }
        return OJ_OK;
    }
    OJ_ROOM(s->sorted, 0, 2 * s->n, s->cap_sorted, err);
    for (int64_t i = 0; i < s->n; i++)
    {
        double d2 = s->found[i].d2;
        s->sorted[i].key = key_of_id(s->found[i].id);
        memcpy(&s->sorted[i].value, &d2, sizeof d2);
    }
    sorted = oj_radix_sort(s->sorted, s->sorted + s->n, s->n);
    for (int64_t i = 0; i < s->n; i++)
    {
        s->found[i].id = (int64_t)key_of_id((int64_t)sorted[i].key);
        memcpy(&s->found[i].d2, &sorted[i].value, sizeof s->found[i].d2);
    }
    return OJ_OK;
}

static oj_status append_pair(struct row_search *s, int64_t id, double distance,
                             struct oj_error *err)
{
    OJ_ROOM(s->id, s->n_out, s->n_out + 1, s->cap_id, err);
    OJ_ROOM(s->distance, s->n_out, s->n_out + 1, s->cap_distance, err);
    s->id[s->n_out] = id;
    s->distance[s->n_out++] = distance;
    return OJ_OK;
}

/* Adds the pairs of the row: the k nearest by (distance, id), or all by id. */
static oj_status put_pairs_of_row(struct row_search *s, struct oj_error *err)
{
    const struct oj_ranking *ranking = &s->ranking;
    if (s->k > 0)
        drop_beyond_kth(s);
    OJ_TRY(sort_found_by_id(s, err));
    if (s->k == 0)
    {
        for (int64_t i = 0; i < s->n; i++)
            OJ_TRY(append_pair(s, s->found[i].id, sqrt(s->found[i].d2), err));
        return OJ_OK;
    }
    oj_ranking_start(&s->ranking);
    for (int64_t i = 0; i < s->n; i++)
        OJ_TRY(
            oj_ranking_add(&s->ranking, (int32_t)i, sqrt(s->found[i].d2), err));
    oj_ranking_finish(&s->ranking);
    for (int64_t i = 0; i < ranking->n; i++)
        OJ_TRY(append_pair(s, s->found[ranking->list[i].feature].id,
                           ranking->list[i].distance, err));
    return OJ_OK;
}

static oj_status search_row(struct row_search *s,
                            const struct oj_ordered_point *at,
                            struct oj_error *err)
{
    int64_t row = at->index;
    const struct oj_relation *r = s->query->relation;
    const struct oj_flat *input = s->query->input;
    double most = input->max_distance != NULL ? input->max_distance[row]
                                              : r->max_distance;
    s->row = row;
    s->row_id =
        (r->exclude_self || r->unordered_pairs != 0) && input->fid != NULL
            ? input->fid[row]
            : 0;
    s->x = at->x;
    s->y = at->y;
    s->n = s->n_cut = s->n_nearest = 0;
    if (!(most >= 0.0))
        return OJ_OK;
    s->bound2 = most < INFINITY ? oj_square_limit_most(most) : DBL_MAX;
    OJ_TRY(search_pages_of_row(s, err));
    return put_pairs_of_row(s, err);
}

/* --- the pairs of all rows -------------------------------------------------
 */

/* Position of a row's pairs. */
struct row_place
{
    int64_t first; /* first pair in the arrays of its worker */
    int32_t count; /* number of pairs */
    int32_t thread;
};

struct pair_search
{
    const struct live_query *query;
    struct oj_order order;
    struct row_search *worker; /* [n_threads] */
    struct row_place *place;   /* [n_rows] */
    atomic_llong n_pairs;
};

/* Rows ahead of the current one whose memory is prefetched. */
#define ROWS_AHEAD 8

/* Prefetches the element of `place` for the i-th row in search order. Rows are
 * searched in Morton order, so these elements are scattered. */
static void prefetch_row(const struct pair_search *p, int64_t i)
{
    if (i < p->order.n_points)
        __builtin_prefetch(&p->place[p->order.point[i].index], 1);
}

void live_pairs_free(struct live_pairs *pairs)
{
    oj_free(pairs->offset);
    oj_free(pairs->id);
    oj_free(pairs->distance);
    memset(pairs, 0, sizeof *pairs);
}

static oj_status search_ordered_row(int64_t i, int thread, void *user,
                                    struct oj_error *err)
{
    struct pair_search *p = user;
    struct row_search *s = &p->worker[thread];
    int64_t row = p->order.point[i].index, first = s->n_out;
    prefetch_row(p, i + ROWS_AHEAD);
    OJ_TRY(search_row(s, &p->order.point[i], err));
    if (s->n_out - first > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "row %lld has more than %d pairs: set a smaller "
                       "max_distance, or k",
                       (long long)row, INT32_MAX);
    p->place[row] =
        (struct row_place){first, (int32_t)(s->n_out - first), thread};
    if (p->query->max_pairs > 0 &&
        atomic_fetch_add(&p->n_pairs, s->n_out - first) + s->n_out - first >
            p->query->max_pairs)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the join has more than %lld pairs, the limit set by "
                       "max_pairs: raise it, or restrict the join",
                       (long long)p->query->max_pairs);
    return OJ_OK;
}

static oj_status collect_pairs(const struct pair_search *p,
                               struct live_pairs *out, struct oj_error *err)
{
    int64_t n_rows = p->query->input->n_features, n = 0;
    OJ_NEW(out->offset, n_rows + 1, err);
    for (int64_t row = 0; row < n_rows; row++)
    {
        out->offset[row] = n;
        n += p->place[row].count;
    }
    out->offset[n_rows] = out->n = n;
    out->n_rows = n_rows;
    OJ_NEW(out->id, n, err);
    OJ_NEW(out->distance, n, err);
    for (int64_t row = 0; row < n_rows; row++)
    {
        const struct row_place *place = &p->place[row];
        const struct row_search *s = &p->worker[place->thread];
        size_t count = (size_t)place->count;
        if (count == 0)
            continue;
        memcpy(out->id + out->offset[row], s->id + place->first,
               count * sizeof *s->id);
        memcpy(out->distance + out->offset[row], s->distance + place->first,
               count * sizeof *s->distance);
    }
    return OJ_OK;
}

static void start_worker(struct row_search *s, const struct live_query *query)
{
    const struct oj_relation *r = query->relation;
    s->query = query;
    s->k = r->op == OJ_OP_NEAREST ? r->k : 0;
    s->least2 = oj_square_limit_least(r->min_distance);
    s->ranking = oj_ranking_make(r, NULL);
    s->ranking.max_distance = INFINITY; /* each row has its own bound */
}

static oj_status search_all_rows(struct pair_search *p, struct oj_error *err)
{
    const struct live_query *query = p->query;
    const struct oj_flat *input = query->input;
    int64_t n = input->n_features;
    OJ_NEW_ZEROED(p->worker, query->n_threads, err);
    OJ_NEW_ZEROED(p->place, n, err);
    for (int t = 0; t < query->n_threads; t++)
        start_worker(&p->worker[t], query);
    OJ_TRY(oj_order_build(&p->order, query->n_threads, n, input->x, input->y,
                          err));
    OJ_TRY(oj_order_sort(&p->order, query->n_threads, NULL, NULL, err));
    return oj_parallel_try(query->n_threads, p->order.n_points, ROWS_AT_ONCE,
                           search_ordered_row, p, err);
}

oj_status live_search_pairs(const struct live_query *query,
                            struct live_pairs *out, struct oj_error *err)
{
    struct pair_search p = {.query = query};
    struct live_pairs pairs = {0};
    oj_status status;
    atomic_init(&p.n_pairs, 0);
    status = search_all_rows(&p, err);
    if (status == OJ_OK)
        status = collect_pairs(&p, &pairs, err);
    for (int t = 0; p.worker != NULL && t < query->n_threads; t++)
    {
        struct row_search *s = &p.worker[t];
        oj_ranking_free(&s->ranking);
        oj_free(s->found);
        oj_free(s->sorted);
        oj_free(s->id);
        oj_free(s->distance);
    }
    oj_free(p.worker);
    oj_free(p.place);
    oj_order_free(&p.order);
    if (status == OJ_OK)
        *out = pairs;
    else
        live_pairs_free(&pairs);
    return status;
}

int live_search_supports_join(const struct oj_relation *relation,
                              const struct oj_flat *input)
{
    return (relation->op == OJ_OP_NEAREST || relation->op == OJ_OP_DWITHIN) &&
           relation->metric == OJ_METRIC_PLANAR &&
           !oj_relation_compares_shapes(relation) &&
           !oj_relation_compares_attributes(relation) &&
           relation->densify == 0.0 && oj_flat_is_points(input) &&
           input->on_class == NULL && input->exclude_class == NULL;
}

/* --- candidates ------------------------------------------------------------
 */

struct candidate_search
{
    const struct live_query *query;
    int64_t most;
    _Atomic uint64_t *is_taken; /* [slots of all pages / 64] bitmap; 1: the
                                   point of the slot was added */
    struct live_points *of;     /* [n_threads] points found by each thread */
    atomic_llong n;
};

int live_search_needs_near_points_only(const struct oj_relation *relation)
{
    if (relation->metric != OJ_METRIC_PLANAR ||
        oj_relation_compares_attributes(relation))
        return 0;
    if (relation->op == OJ_OP_NEAREST)
        return !oj_relation_compares_shapes(relation) &&
               relation->min_distance == 0.0 &&
               relation->unordered_pairs == 0 &&
               !relation->exclude_same_geometry;
    return relation->op == OJ_OP_DWITHIN || oj_relation_needs_contact(relation);
}

enum live_way live_search_choose_method(const struct live_state *state,
                                        const struct oj_relation *relation,
                                        const struct oj_flat *input,
                                        int wants_pairs)
{
    int64_t n = state->n_points, n_rows = input->n_features;
    if (live_search_supports_join(relation, input) && wants_pairs &&
        n_rows / ROWS_PER_POINT <= n)
        return LIVE_IN_PAGES;
    return live_search_needs_near_points_only(relation) &&
                   n_rows * POINTS_PER_ROW <= n
               ? LIVE_BY_CANDIDATES
               : LIVE_BY_ALL;
}

/* Adds the point of a slot of a block, unless the search for another input row
 * has added it already. */
static oj_status add_point_of_slot_once(struct candidate_search *c,
                                        struct live_points *to, uint64_t place,
                                        const struct live_block *block,
                                        int slot, struct oj_error *err)
{
    uint64_t bit = UINT64_C(1) << (place % 64);
    _Atomic uint64_t *word = &c->is_taken[place / 64];
    if (atomic_load_explicit(word, memory_order_relaxed) & bit ||
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed) & bit)
        return OJ_OK;
    atomic_fetch_add_explicit(&c->n, 1, memory_order_relaxed);
    return add_point(to, block->x[slot], block->y[slot], block->id[slot], err);
}

static oj_status add_points_in_box(struct candidate_search *c,
                                   const struct oj_box *box,
                                   struct live_points *to, struct oj_error *err)
{
    const struct live_state *state = c->query->state;
    struct descent d;
    uint32_t page;
    begin_descent(&d, state, box);
    while ((page = next_nearest_page(&d, state, 0.0)) != LIVE_NONE)
    {
        OJ_TRY(oj_check_cancel(c->query->cancel, err));
        if (atomic_load_explicit(&c->n, memory_order_relaxed) > c->most)
            return OJ_OK;
        for (; page != LIVE_NONE; page = state->page[page].next)
        {
            const struct live_page *of = &state->page[page];
            const struct live_block *block = of->block;
            if (!oj_box_intersects(box, &of->box))
                continue;
            for (int i = 0; i < of->n; i++)
            {
                if (oj_box_contains_point(box, block->x[i], block->y[i]))
                    OJ_TRY(add_point_of_slot_once(
                        c, to, (uint64_t)page * LIVE_PAGE_POINTS + (uint64_t)i,
                        block, i, err));
            }
        }
    }
    return OJ_OK;
}

/* --- upper bound of the k-th distance ------------------------------------- */

/* The k smallest distances of points from the farthest place of a box. The
 * greatest of them is an upper bound of the k-th distance of any feature in
 * the box. */
struct reach_search
{
    int64_t k, n;
    double *farthest; /* [k] a heap with the maximum first */
};

static void sift_down(struct reach_search *r)
{
    int64_t at = 0;
    for (;;)
    {
        int64_t child = 2 * at + 1;
        double v = r->farthest[at];
        if (child + 1 < r->n && r->farthest[child + 1] > r->farthest[child])
            child++;
        if (child >= r->n || !(r->farthest[child] > v))
            return;
        r->farthest[at] = r->farthest[child];
        r->farthest[child] = v;
        at = child;
    }
}

static void add_to_k_least_distances(struct reach_search *r, double v)
{
    int64_t at = r->n;
    if (at == r->k)
    {
        if (v < r->farthest[0])
        {
            r->farthest[0] = v;
            sift_down(r);
        }
        return;
    }
    r->n++;
    for (; at > 0 && r->farthest[(at - 1) / 2] < v; at = (at - 1) / 2)
        r->farthest[at] = r->farthest[(at - 1) / 2];
    r->farthest[at] = v;
}

/* Returns the bound as a square, rounded up so that next_nearest_page() can
 * compare with it. */
static double squared_bound_of_search(const struct reach_search *r)
{
    double v = r->n < r->k ? INFINITY : r->farthest[0];
    return v * v * (1.0 + 8.0 * DBL_EPSILON);
}

static oj_status find_reach_of_box(const struct live_query *query,
                                   const struct oj_box *box, int64_t self,
                                   double *reach, struct oj_error *err)
{
    const struct live_state *state = query->state;
    int64_t most = query->relation->k;
    struct reach_search r = {.k = most < state->n_points ? most
                                                         : state->n_points};
    oj_status status = OJ_OK;
    struct descent d;
    uint32_t page;
    *reach = INFINITY;
    if (r.k < most || r.k == 0)
        return OJ_OK;
    OJ_NEW(r.farthest, r.k, err);
    begin_descent(&d, state, box);
    while (status == OJ_OK &&
           (page = next_nearest_page(&d, state, squared_bound_of_search(&r))) !=
               LIVE_NONE)
    {
        status = oj_check_cancel(query->cancel, err);
        for (; page != LIVE_NONE; page = state->page[page].next)
        {
            const struct live_page *of = &state->page[page];
            const struct live_block *block = of->block;
            for (int i = 0; i < of->n; i++)
            {
                struct oj_box point = {block->x[i], block->y[i], block->x[i],
                                       block->y[i]};
                if (point.x0 == point.x0 &&
                    !(query->relation->exclude_self && block->id[i] == self))
                    add_to_k_least_distances(&r,
                                             oj_box_max_distance(box, &point));
            }
        }
    }
    if (r.n == r.k)
        *reach = r.farthest[0];
    oj_free(r.farthest);
    return status;
}

static oj_status add_candidates_of_row(int64_t row, int thread, void *user,
                                       struct oj_error *err)
{
    struct candidate_search *c = user;
    const struct oj_relation *r = c->query->relation;
    const struct oj_flat *input = c->query->input;
    struct oj_box box = oj_box_of_feature(input, row);
    double reach = 0.0;
    if (oj_box_is_empty(&box) ||
        atomic_load_explicit(&c->n, memory_order_relaxed) > c->most)
        return OJ_OK;
    if (r->op == OJ_OP_NEAREST)
        OJ_TRY(find_reach_of_box(c->query, &box,
                                 input->fid != NULL ? input->fid[row] : 0,
                                 &reach, err));
    if (r->op == OJ_OP_NEAREST || r->op == OJ_OP_DWITHIN)
    {
        double most = input->max_distance != NULL ? input->max_distance[row]
                                                  : r->max_distance;
        if (!(most >= 0.0))
            return OJ_OK;
        reach = r->op == OJ_OP_DWITHIN || most < reach ? most : reach;
        box = oj_box_widened(&box, reach);
    }
    return add_points_in_box(c, &box, &c->of[thread], err);
}

static oj_status unite_candidates_of_threads(struct candidate_search *c,
                                             struct live_points *out,
                                             struct oj_error *err)
{
    *out = c->of[0];
    memset(&c->of[0], 0, sizeof c->of[0]);
    for (int t = 1; t < c->query->n_threads; t++)
    {
        const struct live_points *of = &c->of[t];
        for (int64_t i = 0; i < of->n; i++)
            OJ_TRY(add_point(out, of->x[i], of->y[i], of->id[i], err));
    }
    return live_points_sort(out, err);
}

oj_status live_search_candidates(const struct live_query *query, int64_t most,
                                 struct live_points *out, int *are_all,
                                 struct oj_error *err)
{
    struct candidate_search c = {.query = query, .most = most};
    int64_t n_words = query->state->n_pages * LIVE_PAGE_POINTS / 64 + 1;
    struct live_points points = {0};
    oj_status status = OJ_OK;
    atomic_init(&c.n, 0);
    *are_all = 0;
    c.is_taken = oj_calloc(n_words, sizeof *c.is_taken);
    c.of = oj_calloc(query->n_threads, sizeof *c.of);
    if (c.is_taken == NULL || c.of == NULL)
        status = oj_fail_nomem(err, n_words, sizeof *c.is_taken);
    if (status == OJ_OK)
        status = oj_parallel_try(query->n_threads, query->input->n_features,
                                 ROWS_AT_ONCE, add_candidates_of_row, &c, err);
    *are_all = status == OJ_OK && c.n > most;
    if (status == OJ_OK && !*are_all)
        status = unite_candidates_of_threads(&c, &points, err);
    for (int t = 0; c.of != NULL && t < query->n_threads; t++)
        live_points_free(&c.of[t]);
    oj_free(c.of);
    oj_free((void *)c.is_taken);
    if (status == OJ_OK)
        *out = points;
    else
        live_points_free(&points);
    return status;
}
