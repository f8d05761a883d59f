#include "oj_part_runs.h"

#include "../flatten/oj_array.h"
#include "cpu_order.h"
#include "cpu_threads.h"

#include <stdlib.h>
#include <string.h>

#define FEATURES_AT_ONCE 64

#define STACK (OJ_TREE_LEVELS * OJ_FANOUT)

struct boxed_part
{
    double low, high; /* along the axis that is swept */
    struct oj_box box;
    int64_t part;
};

/* Of a feature, for a thread. */
struct boxed_parts
{
    struct boxed_part *item;
    int64_t capacity;
};

struct sweep
{
    struct oj_part_runs *runs;
    struct boxed_parts *of_thread; /* [n_threads] */
};

static int64_t count_polygons(const struct oj_flat *flat, int64_t feature)
{
    int64_t n = 0, part = flat->part_offset[feature];
    for (; part < flat->part_offset[feature + 1]; part++)
        n += flat->part_kind[part] == OJ_PART_POLYGON;
    return n;
}

struct oj_box oj_box_of_vertices(const struct oj_flat *flat, int64_t first,
                                 int64_t end)
{
    struct oj_box box = oj_box_empty();
    for (int64_t v = first; v < end; v++)
        oj_box_add_point(&box, flat->x[v], flat->y[v]);
    return box;
}

/* --- parts whose boxes meet ----------------------------------------------- */

static int by_low(const void *left, const void *right)
{
    const struct boxed_part *a = left, *b = right;
    return (a->low > b->low) - (a->low < b->low);
}

/* Sweeps along the axis on which the boxes are the shorter, as against all. */
static void choose_axis(struct boxed_part *boxed, int64_t n)
{
    struct oj_box all = oj_box_empty();
    double width = 0.0, height = 0.0;
    int is_along_y;
    for (int64_t i = 0; i < n; i++)
    {
        oj_box_add_box(&all, &boxed[i].box);
        width += boxed[i].box.x1 - boxed[i].box.x0;
        height += boxed[i].box.y1 - boxed[i].box.y0;
    }
    is_along_y = height * (all.x1 - all.x0) < width * (all.y1 - all.y0);
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_box *box = &boxed[i].box;
        boxed[i].low = is_along_y ? box->y0 : box->x0;
        boxed[i].high = is_along_y ? box->y1 : box->x1;
    }
}

/* Fills boxed with the polygon parts of a feature; n: of them. */
static oj_status box_parts(const struct oj_flat *flat, int64_t feature,
                           struct boxed_parts *boxed, int64_t *n,
                           struct oj_error *err)
{
    int64_t first = flat->part_offset[feature];
    int64_t end = flat->part_offset[feature + 1];
    *n = 0;
    OJ_TRY(oj_reserve(&boxed->item, 0, end - first, &boxed->capacity,
                      sizeof *boxed->item, err));
    for (int64_t part = first; part < end; part++)
    {
        struct boxed_part *item = &boxed->item[*n];
        if (flat->part_kind[part] != OJ_PART_POLYGON)
            continue;
        item->part = part;
        item->box = oj_box_of_vertices(
            flat, flat->vertex_offset[flat->ring_offset[part]],
            flat->vertex_offset[flat->ring_offset[part + 1]]);
        ++*n;
    }
    choose_axis(boxed->item, *n);
    qsort(boxed->item, (size_t)*n, sizeof *boxed->item, by_low);
    return OJ_OK;
}

static oj_status sweep_parts(int64_t at, int thread, void *user,
                             struct oj_error *err)
{
    struct sweep *sweep = user;
    struct oj_part_runs *s = sweep->runs;
    struct oj_several_parts *several = &s->several[at];
    const struct boxed_part *item;
    int64_t n;
    OJ_TRY(oj_check_cancel(s->cancel, err));
    OJ_TRY(box_parts(s->flat, several->feature, &sweep->of_thread[thread], &n,
                     err));
    item = sweep->of_thread[thread].item;
    several->box = oj_box_empty();
    several->largest = -1;
    for (int64_t i = 0; i < n; i++)
    {
        for (int64_t j = i + 1; j < n && item[j].low <= item[i].high; j++)
        {
            if (oj_box_intersects(&item[i].box, &item[j].box))
                s->meets[item[i].part] = s->meets[item[j].part] = 1;
        }
        if (!s->meets[item[i].part])
            continue;
        oj_box_add_box(&several->box, &item[i].box);
        if (several->largest < 0 ||
            oj_part_is_larger(s->flat, item[i].part, several->largest))
            several->largest = item[i].part;
    }
    return OJ_OK;
}

static oj_status sweep_features(struct oj_part_runs *s, struct oj_error *err)
{
    struct sweep sweep = {s, NULL};
    oj_status status;
    s->meets = oj_calloc(s->flat->n_parts, sizeof *s->meets);
    if (s->meets == NULL)
        return oj_fail_nomem(err, s->flat->n_parts, sizeof *s->meets);
    sweep.of_thread = oj_calloc(s->n_threads, sizeof *sweep.of_thread);
    if (sweep.of_thread == NULL)
        return oj_fail_nomem(err, s->n_threads, sizeof *sweep.of_thread);
    status = oj_parallel_try(s->n_threads, s->n_several, FEATURES_AT_ONCE,
                             sweep_parts, &sweep, err);
    for (int t = 0; t < s->n_threads; t++)
        oj_free(sweep.of_thread[t].item);
    oj_free(sweep.of_thread);
    return status;
}

/* Features of several polygon parts; n_several stays 0 where there is none. */
static oj_status list_several(struct oj_part_runs *s, struct oj_error *err)
{
    const struct oj_flat *flat = s->flat;
    int64_t n = 0;
    for (int64_t f = 0; f < flat->n_features; f++)
        n += flat->part_offset[f + 1] - flat->part_offset[f] > 1;
    if (n == 0)
        return OJ_OK;
    OJ_NEW(s->several, n, err);
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        if (flat->part_offset[f + 1] - flat->part_offset[f] > 1 &&
            count_polygons(flat, f) > 1)
            s->several[s->n_several++].feature = f;
    }
    return OJ_OK;
}

/* --- their edges ---------------------------------------------------------- */

/* Lists the runs of a ring, or with run NULL counts them. */
static void list_ring(const struct oj_part_runs *s, int64_t several,
                      int64_t part, int64_t ring, struct oj_part_run *run,
                      int64_t *n_runs)
{
    int64_t v = s->flat->vertex_offset[ring];
    int64_t last = s->flat->vertex_offset[ring + 1] - 1;
    for (; v < last; v += OJ_RUN_EDGES)
    {
        if (run != NULL)
        {
            struct oj_part_run *r = &run[*n_runs];
            r->several = several;
            r->part = part;
            r->ring = ring;
            r->first_vertex = v;
            r->n_edges = last - v < OJ_RUN_EDGES ? last - v : OJ_RUN_EDGES;
            r->box = oj_box_of_vertices(s->flat, v, v + r->n_edges + 1);
        }
        ++*n_runs;
    }
}

static void list_edges(const struct oj_part_runs *s, struct oj_part_run *run,
                       int64_t *n_runs, struct oj_part_ring *ring,
                       int64_t *n_rings)
{
    const struct oj_flat *flat = s->flat;
    *n_runs = *n_rings = 0;
    for (int64_t i = 0; i < s->n_several; i++)
    {
        int64_t f = s->several[i].feature;
        for (int64_t p = flat->part_offset[f]; p < flat->part_offset[f + 1];
             p++)
        {
            if (!s->meets[p])
                continue;
            for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
                 r++)
            {
                list_ring(s, i, p, r, run, n_runs);
                if (ring != NULL)
                    ring[*n_rings] = (struct oj_part_ring){i, p, r};
                ++*n_rings;
            }
        }
    }
}

/* Kept finite in all differences, as the tree wants them. */
static double clamp(double v)
{
    const double largest = 8e307;
    return v > largest ? largest : v < -largest ? -largest : v;
}

static struct oj_box clamp_box(const struct oj_box *box)
{
    struct oj_box b = {clamp(box->x0), clamp(box->y0), clamp(box->x1),
                       clamp(box->y1)};
    return b;
}

struct visit
{
    int64_t node; /* of the level */
    int level;
};

struct ordering
{
    struct oj_part_run *run; /* as listed */
    double *x, *y;
    struct oj_box *box;
    struct oj_order order;
};

static oj_status order_runs(struct oj_part_runs *s, struct ordering *o,
                            struct oj_error *err)
{
    int64_t n = s->n_runs;
    o->run = oj_malloc(n, sizeof *o->run);
    s->run = oj_malloc(n, sizeof *s->run);
    s->ring = oj_malloc(s->n_rings, sizeof *s->ring);
    o->x = oj_malloc(n, sizeof *o->x);
    o->y = oj_malloc(n, sizeof *o->y);
    o->box = oj_malloc(n, sizeof *o->box);
    if (o->run == NULL || s->run == NULL || s->ring == NULL || o->x == NULL ||
        o->y == NULL || o->box == NULL)
        return oj_fail_nomem(err, n, 2 * sizeof *s->run);
    list_edges(s, o->run, &s->n_runs, s->ring, &s->n_rings);
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_box *box = &o->run[i].box;
        o->x[i] = 0.5 * box->x0 + 0.5 * box->x1;
        o->y[i] = 0.5 * box->y0 + 0.5 * box->y1;
    }
    OJ_TRY(oj_order_build(&o->order, s->n_threads, n, o->x, o->y, err));
    OJ_TRY(oj_order_sort(&o->order, s->n_threads, NULL, NULL, err));
    for (int64_t i = 0; i < n; i++)
    {
        s->run[i] = o->run[o->order.point[i].index];
        o->box[i] = clamp_box(&s->run[i].box);
    }
    return oj_tree_build(&s->tree, s->n_threads, n, o->box, err);
}

static oj_status build_tree(struct oj_part_runs *s, struct oj_error *err)
{
    struct ordering o;
    oj_status status;
    list_edges(s, NULL, &s->n_runs, NULL, &s->n_rings);
    if (s->n_runs > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "parts of one feature whose boxes meet have too many "
                       "vertices");
    if (s->n_runs == 0)
        return OJ_OK;
    memset(&o, 0, sizeof o);
    status = order_runs(s, &o, err);
    oj_order_free(&o.order);
    oj_free(o.run);
    oj_free(o.x);
    oj_free(o.y);
    oj_free(o.box);
    return status;
}

oj_status oj_part_runs_find(const struct oj_part_runs *runs,
                            const struct oj_box *box,
                            struct oj_found_runs *found, struct oj_error *err)
{
    const struct oj_tree *tree = &runs->tree;
    struct oj_box asked = clamp_box(box);
    float x0 = oj_tree_down(asked.x0, tree->origin_x, tree->scale);
    float y0 = oj_tree_down(asked.y0, tree->origin_y, tree->scale);
    float x1 = oj_tree_up(asked.x1, tree->origin_x, tree->scale);
    float y1 = oj_tree_up(asked.y1, tree->origin_y, tree->scale);
    struct visit stack[STACK];
    int depth = 0;
    found->n = 0;
    stack[depth++] = (struct visit){0, tree->n_levels - 1};
    while (depth > 0)
    {
        const struct visit v = stack[--depth];
        const struct oj_tree_node *node =
            &tree->node[tree->level_first[v.level] + v.node];
        OJ_TRY(oj_reserve(&found->run, found->n, found->n + OJ_FANOUT,
                          &found->capacity, sizeof *found->run, err));
        for (int c = 0; c < OJ_FANOUT; c++)
        {
            int64_t below = v.node * OJ_FANOUT + c;
            if (!((node->x0[c] <= x1) & (node->y0[c] <= y1) &
                  (node->x1[c] >= x0) & (node->y1[c] >= y0)))
                continue;
            if (v.level == 0)
                found->run[found->n++] = (int32_t)below;
            else
                stack[depth++] = (struct visit){below, v.level - 1};
        }
    }
    return OJ_OK;
}

oj_status oj_part_runs_make(struct oj_part_runs *runs, struct oj_error *err)
{
    OJ_TRY(list_several(runs, err));
    if (runs->n_several == 0)
        return OJ_OK;
    OJ_TRY(sweep_features(runs, err));
    return build_tree(runs, err);
}

void oj_part_runs_free(struct oj_part_runs *runs)
{
    oj_tree_free(&runs->tree);
    oj_free(runs->meets);
    oj_free(runs->several);
    oj_free(runs->run);
    oj_free(runs->ring);
    memset(runs, 0, sizeof *runs);
}
