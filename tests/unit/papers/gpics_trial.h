/** Random joins of points that the methods of G-PICS answer. Include once,
 * after references.h. */
#ifndef GPICS_TRIAL_H
#define GPICS_TRIAL_H

#include "../join_trial.h"

enum
{
    MOST_POINTS = 3000
};

/* Stores a random place in *x and *y. kind 0: on a lattice. 1: often in a
 * cluster. 2: on a line. 3: sometimes far away. 4: often at one point.
 */
static inline void pick_place(int kind, double *x, double *y)
{
    *x = kind == 0 ? pick(40) : between(0.0, 40.0);
    *y = kind == 0 ? pick(40) : between(0.0, 40.0);
    if (kind == 1 && pick(3) > 0)
    {
        *x = 7.0 + unit() * 0x1p-20;
        *y = 9.0 + unit() * 0x1p-20;
    }
    if (kind == 2)
        *y = 3.0;
    if (kind == 3 && one_in(50))
        *x = any_size(20, 60);
    if (kind == 4 && one_in(2))
        *x = *y = 5.0; /* coincident points, which no split can separate */
}

static inline void add_points(struct oj_flat_buf *buf, int n, int kind)
{
    for (int i = 0; i < n; i++)
    {
        double x, y;
        pick_place(kind, &x, &y);
        if (one_in(30))
            add_features_without_geometry(buf, 1);
        else
            add_point(buf, x, y);
    }
}

static inline int pick_size(int most)
{
    return one_in(12) ? pick(3) : one_in(3) ? pick(most) : pick(most / 10);
}

/* Makes a join that the methods of G-PICS support. kind is that of the places
 * of the points (pick_place()). */
static inline void make_trial(struct join_trial *t, int kind)
{
    static const double reaches[] = {0.0, 0.5, 1.0, 3.0, 50.0, INFINITY};
    static const enum oj_op equal[] = {OJ_OP_EQUALS, OJ_OP_INTERSECTS,
                                       OJ_OP_WITHIN, OJ_OP_COVERS};
    struct oj_relation *r = &t->relation;
    int what = pick(5), n_input = pick_size(600);
    memset(t, 0, sizeof *t);
    *r = oj_relation_default();
    add_points(&t->join_buf, pick_size(MOST_POINTS), kind);
    for (int i = 0; what == 4 && i < n_input / 4; i++)
    {
        double x, y, width = pick(6);
        pick_place(kind, &x, &y);
        add_square(&t->input_buf, x, y, x + width, y + pick(6));
    }
    if (what < 4)
        add_points(&t->input_buf, n_input, one_in(4) ? pick(5) : kind);
    trial_view(t);
    t->join.fid = t->fid = pick_fids(t->join.n_features);
    r->max_distance = what == 2 ? reaches[pick(5)] : INFINITY;
    if (what < 2)
    {
        r->k = one_in(3) ? 1 : 1 + pick(one_in(5) ? 400 : 12);
        r->ties = one_in(3) ? OJ_TIES_ALL : OJ_TIES_FIRST;
        r->max_distance = reaches[pick(6)];
        r->min_distance = one_in(5) ? 1.0 : 0.0;
    }
    r->op = what < 2    ? OJ_OP_NEAREST
            : what == 2 ? OJ_OP_DWITHIN
            : what == 3 ? equal[pick(4)]
                        : OJ_OP_BBOX;
    if (one_in(4) && t->join.fid != NULL)
        t->relation.exclude_self = 1;
    if (one_in(6) && t->join.fid != NULL)
        t->relation.unordered_pairs = pick(2) ? 1 : -1;
    t->relation.exclude_same_geometry = one_in(6);
}

static inline struct oj_options pick_options(void)
{
    static const int64_t sizes[] = {0, 1, 2, 7, 64, 500};
    return (struct oj_options){.n_threads = 1 + pick(3),
                               .quadrant_size = sizes[pick(6)]};
}

#endif
