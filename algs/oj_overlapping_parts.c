#include "oj_overlapping_parts.h"

#include "../flatten/oj_array.h"
#include "cpu_threads.h"
#include "kernels/oj_cross.h"
#include "oj_part_runs.h"
#include "oj_part_sectors.h"

#include <string.h>

#define RUNS_AT_ONCE 256

/* What of a part the ray from a point met. */
enum met
{
    MET = 1,
    MET_ODD = 2, /* edges */
    MET_ON = 4   /* the point is on an edge */
};

/* What a thread works with. */
struct worker
{
    struct oj_found_runs found;
    uint8_t *met; /* [parts of a feature] bits of enum met; 0 between points */
    int64_t cap_met;
    int64_t *part; /* that the ray met */
    int64_t n_parts, cap_parts;
};

struct search
{
    struct oj_part_runs runs;
    uint8_t *mark;         /* [n_features], the answer */
    struct worker *worker; /* [n_threads] */
};

/* --- edges that meet ------------------------------------------------------ */

static void edge_at(const struct oj_flat *flat, int64_t v, struct oj_corner *a,
                    struct oj_corner *b)
{
    *a = (struct oj_corner){flat->x[v], flat->y[v]};
    *b = (struct oj_corner){flat->x[v + 1], flat->y[v + 1]};
}

/* The vertices before and after a passage of a ring through p, on edge v. */
static void passage(const struct oj_flat *flat, int64_t ring, int64_t v,
                    const struct oj_corner *p, struct oj_corner *before,
                    struct oj_corner *after)
{
    int64_t first = flat->vertex_offset[ring];
    int64_t n = flat->vertex_offset[ring + 1] - first - 1; /* edges */
    int64_t i = v - first, j = i + 1;
    struct oj_corner q = {flat->x[first + i], flat->y[first + i]};
    for (int64_t k = 0; k < n && q.x == p->x && q.y == p->y; k++)
    {
        i = i > 0 ? i - 1 : n - 1;
        q = (struct oj_corner){flat->x[first + i], flat->y[first + i]};
    }
    *before = q;
    q = (struct oj_corner){flat->x[first + j], flat->y[first + j]};
    for (int64_t k = 0; k < n && q.x == p->x && q.y == p->y; k++)
    {
        j = j < n ? j + 1 : 1;
        q = (struct oj_corner){flat->x[first + j], flat->y[first + j]};
    }
    *after = q;
}

/* 1 when the two rings cross at p, where an edge of each passes, or leave it
 * in the same direction. */
static int rings_cross(const struct oj_flat *flat, const struct oj_corner *p,
                       const struct oj_part_run *a, int64_t va,
                       const struct oj_part_run *b, int64_t vb)
{
    struct oj_corner a0, a1, b0, b1;
    passage(flat, a->ring, va, p, &a0, &a1);
    passage(flat, b->ring, vb, p, &b0, &b1);
    return oj_compare_directions(p, &a0, &b0) == 0 ||
           oj_compare_directions(p, &a0, &b1) == 0 ||
           oj_compare_directions(p, &a1, &b0) == 0 ||
           oj_compare_directions(p, &a1, &b1) == 0 ||
           oj_is_between_directions(p, &a0, &b0, &a1) !=
               oj_is_between_directions(p, &a0, &b1, &a1);
}

/* 1 when two closed segments that touch have more than a point in common. */
static int overlap_along(const struct oj_corner *a, const struct oj_corner *b,
                         const struct oj_corner *c, const struct oj_corner *d)
{
    double x0 = fmax(fmin(a->x, b->x), fmin(c->x, d->x));
    double y0 = fmax(fmin(a->y, b->y), fmin(c->y, d->y));
    double x1 = fmin(fmax(a->x, b->x), fmax(c->x, d->x));
    double y1 = fmin(fmax(a->y, b->y), fmax(c->y, d->y));
    return oj_orientation(a->x, a->y, b->x, b->y, c->x, c->y) == 0 &&
           oj_orientation(a->x, a->y, b->x, b->y, d->x, d->y) == 0 &&
           (x0 < x1 || y0 < y1);
}

/* 1 when two edges of different parts cross, overlap, or touch where their
 * rings cross. */
static int edges_cross(const struct oj_flat *flat, const struct oj_part_run *ra,
                       int64_t va, const struct oj_part_run *rb, int64_t vb)
{
    struct oj_corner end[4];
    enum oj_contact contact;
    edge_at(flat, va, &end[0], &end[1]);
    edge_at(flat, vb, &end[2], &end[3]);
    if (!oj_segment_boxes_meet(end[0].x, end[0].y, end[1].x, end[1].y, end[2].x,
                               end[2].y, end[3].x, end[3].y) ||
        (end[0].x == end[1].x && end[0].y == end[1].y) ||
        (end[2].x == end[3].x && end[2].y == end[3].y))
        return 0; /* an edge of no length has neighbours that say more */
    contact = oj_segments_contact(end[0].x, end[0].y, end[1].x, end[1].y,
                                  end[2].x, end[2].y, end[3].x, end[3].y);
    if (contact != OJ_TOUCHING)
        return contact == OJ_CROSSING;
    if (overlap_along(&end[0], &end[1], &end[2], &end[3]))
        return 1;
    for (int i = 0; i < 4; i++)
    {
        const struct oj_corner *a = i < 2 ? &end[2] : &end[0], *b = a + 1;
        if (oj_on_segment(end[i].x, end[i].y, a->x, a->y, b->x, b->y))
            return rings_cross(flat, &end[i], ra, va, rb, vb);
    }
    return 1;
}

/* The edges of a run whose boxes meet box. */
static int list_near(const struct oj_flat *flat, const struct oj_part_run *run,
                     const struct oj_box *box, int64_t near[OJ_RUN_EDGES])
{
    int n = 0;
    for (int64_t v = run->first_vertex; v < run->first_vertex + run->n_edges;
         v++)
    {
        const double *x = flat->x + v, *y = flat->y + v;
        near[n] = v;
        n += !((x[0] < box->x0) & (x[1] < box->x0)) &
             !((x[0] > box->x1) & (x[1] > box->x1)) &
             !((y[0] < box->y0) & (y[1] < box->y0)) &
             !((y[0] > box->y1) & (y[1] > box->y1));
    }
    return n;
}

static int runs_cross(const struct oj_flat *flat, const struct oj_part_run *a,
                      const struct oj_part_run *b)
{
    int64_t of_a[OJ_RUN_EDGES], of_b[OJ_RUN_EDGES];
    const struct oj_box both = {
        fmax(a->box.x0, b->box.x0), fmax(a->box.y0, b->box.y0),
        fmin(a->box.x1, b->box.x1), fmin(a->box.y1, b->box.y1)};
    int n_a = list_near(flat, a, &both, of_a);
    int n_b = n_a > 0 ? list_near(flat, b, &both, of_b) : 0;
    for (int i = 0; i < n_a; i++)
    {
        for (int j = 0; j < n_b; j++)
        {
            if (edges_cross(flat, a, of_a[i], b, of_b[j]))
                return 1;
        }
    }
    return 0;
}

static int is_marked(const struct search *s, int64_t several)
{
    return __atomic_load_n(&s->mark[s->runs.several[several].feature],
                           __ATOMIC_RELAXED);
}

static void mark(struct search *s, int64_t several)
{
    __atomic_store_n(&s->mark[s->runs.several[several].feature], 1,
                     __ATOMIC_RELAXED);
}

/* The runs of larger parts that meet run i: a coast of many edges is not asked
 * for its islands, but they are for the coast. */
static oj_status meet_others(int64_t i, int thread, void *user,
                             struct oj_error *err)
{
    struct search *s = user;
    struct worker *w = &s->worker[thread];
    const struct oj_part_run *a = &s->runs.run[i];
    if (is_marked(s, a->several) ||
        a->part == s->runs.several[a->several].largest)
        return OJ_OK;
    OJ_TRY(oj_check_cancel(s->runs.cancel, err));
    OJ_TRY(oj_part_runs_find(&s->runs, &a->box, &w->found, err));
    for (int64_t k = 0; k < w->found.n; k++)
    {
        const struct oj_part_run *b = &s->runs.run[w->found.run[k]];
        if (b->several != a->several || b->part == a->part ||
            !oj_box_intersects(&a->box, &b->box) ||
            !oj_part_is_larger(s->runs.flat, b->part, a->part))
            continue;
        if (runs_cross(s->runs.flat, a, b))
        {
            mark(s, a->several);
            return OJ_OK;
        }
    }
    return OJ_OK;
}

/* --- parts in parts ------------------------------------------------------- */

/* Takes the edges of a run for the ray from p. */
static oj_status meet_run(const struct search *s, const struct oj_part_run *run,
                          const struct oj_corner *p, int64_t first_part,
                          struct worker *w, struct oj_error *err)
{
    uint8_t *met = &w->met[run->part - first_part];
    for (int64_t i = 0; i < run->n_edges; i++)
    {
        struct oj_corner a, b;
        int edge;
        edge_at(s->runs.flat, run->first_vertex + i, &a, &b);
        edge = oj_ring_edge(p->x, p->y, a.x, a.y, b.x, b.y);
        if (edge == OJ_ON_BOUNDARY)
            *met |= MET_ON;
        else if (edge)
            *met ^= MET_ODD;
    }
    if (*met & MET)
        return OJ_OK;
    OJ_TRY(oj_reserve(&w->part, w->n_parts, w->n_parts + 1, &w->cap_parts,
                      sizeof *w->part, err));
    w->part[w->n_parts++] = run->part;
    *met |= MET;
    return OJ_OK;
}

/* 1 when a ring, which begins on one of the part's, goes on inside of it. */
static int leaves_into(const struct oj_flat *flat, int64_t ring, int64_t part)
{
    int64_t first = flat->vertex_offset[ring];
    const struct oj_corner p = {flat->x[first], flat->y[first]};
    for (int64_t v = first + 1; v < flat->vertex_offset[ring + 1]; v++)
    {
        const struct oj_corner to = {flat->x[v], flat->y[v]};
        if (to.x != p.x || to.y != p.y)
            return oj_is_inside_after(flat, part, &p, &to);
    }
    return 0;
}

/* Room for a byte of each part of the feature, all 0. */
static oj_status clear_met(struct worker *w, int64_t n, struct oj_error *err)
{
    int64_t had = w->cap_met;
    OJ_TRY(oj_reserve(&w->met, had, n, &w->cap_met, sizeof *w->met, err));
    if (w->cap_met > had)
        memset(w->met + had, 0, (size_t)(w->cap_met - had));
    w->n_parts = 0;
    return OJ_OK;
}

/* Whether a ring begins inside of another part.  No ring crosses another
 * part's here, or that was found already: each is inside with all of its edges
 * or with none. */
static oj_status place_ring(int64_t i, int thread, void *user,
                            struct oj_error *err)
{
    struct search *s = user;
    struct worker *w = &s->worker[thread];
    const struct oj_part_ring *ring = &s->runs.ring[i];
    const struct oj_several_parts *several = &s->runs.several[ring->several];
    const struct oj_flat *flat = s->runs.flat;
    int64_t vertex = flat->vertex_offset[ring->ring];
    const struct oj_corner p = {flat->x[vertex], flat->y[vertex]};
    struct oj_box ray = {p.x, p.y, several->box.x1, p.y};
    int64_t first = flat->part_offset[several->feature];
    int is_inside = 0;
    if (is_marked(s, ring->several))
        return OJ_OK;
    OJ_TRY(oj_check_cancel(s->runs.cancel, err));
    OJ_TRY(clear_met(w, flat->part_offset[several->feature + 1] - first, err));
    OJ_TRY(oj_part_runs_find(&s->runs, &ray, &w->found, err));
    for (int64_t k = 0; k < w->found.n; k++)
    {
        const struct oj_part_run *run = &s->runs.run[w->found.run[k]];
        if (run->several == ring->several && run->part != ring->part)
            OJ_TRY(meet_run(s, run, &p, first, w, err));
    }
    for (int64_t k = 0; k < w->n_parts; k++)
    {
        uint8_t *met = &w->met[w->part[k] - first];
        if (!is_inside)
            is_inside = (*met & MET_ON) != 0
                            ? leaves_into(flat, ring->ring, w->part[k])
                            : (*met & MET_ODD) != 0;
        *met = 0;
    }
    if (is_inside)
        mark(s, ring->several);
    return OJ_OK;
}

/* --- the whole ------------------------------------------------------------ */

static oj_status run_search(struct search *s, struct oj_error *err)
{
    int n_threads = s->runs.n_threads;
    OJ_TRY(oj_part_runs_make(&s->runs, err));
    if (s->runs.n_runs == 0)
        return OJ_OK;
    s->mark = oj_calloc(s->runs.flat->n_features, sizeof *s->mark);
    s->worker = oj_calloc(n_threads, sizeof *s->worker);
    if (s->mark == NULL || s->worker == NULL)
        return oj_fail_nomem(err, s->runs.flat->n_features, sizeof *s->mark);
    OJ_TRY(oj_parallel_try(n_threads, s->runs.n_runs, RUNS_AT_ONCE, meet_others,
                           s, err));
    return oj_parallel_try(n_threads, s->runs.n_rings, RUNS_AT_ONCE, place_ring,
                           s, err);
}

static void free_search(struct search *s)
{
    for (int t = 0; s->worker != NULL && t < s->runs.n_threads; t++)
    {
        oj_free(s->worker[t].found.run);
        oj_free(s->worker[t].met);
        oj_free(s->worker[t].part);
    }
    oj_free(s->worker);
    oj_free(s->mark);
    oj_part_runs_free(&s->runs);
}

oj_status oj_overlapping_parts(const struct oj_flat *flat, int n_threads,
                               const int *cancel, uint8_t **out,
                               struct oj_error *err)
{
    struct search s;
    uint8_t *found = NULL;
    oj_status status = OJ_OK;
    memset(&s, 0, sizeof s);
    s.runs.flat = flat;
    s.runs.n_threads = n_threads;
    s.runs.cancel = cancel;
    if (!oj_flat_is_points(flat) && (flat->part_kinds & OJ_PART_POLYGON) != 0)
        status = run_search(&s, err);
    if (status == OJ_OK && s.mark != NULL &&
        memchr(s.mark, 1, (size_t)flat->n_features) != NULL)
    {
        found = s.mark;
        s.mark = NULL;
    }
    free_search(&s);
    if (status == OJ_OK)
        *out = found;
    return status;
}
