/** Random batches for kept indexes. Expected results come from a plain list of
 * the points, and from a new index of the list. Include once. */
#ifndef LIVE_TRIAL_H
#define LIVE_TRIAL_H

#include "../../../algs/ogrjoin.h"
#include "../assertions.h"
#include "../random_numbers.h"

#include <stdio.h>
#include <string.h>

static struct ogrjoin_error live_error;

static inline void must(int status)
{
    if (status != OGRJOIN_OK)
        ck_abort_msg("seed %llu: %s", (unsigned long long)seed,
                     live_error.message);
}

/* words: "op=intersects k=2". */
static inline struct ogrjoin_settings *settings_of(const char *words)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    char word[200], *at = strcpy(word, words), *name;
    while ((name = strtok_r(at, "= ", &at)) != NULL)
    {
        const char *value = strtok_r(at, " ", &at);
        if (ogrjoin_set_text(settings, name, value, &live_error) != OGRJOIN_OK)
            must(ogrjoin_set_number(settings, name, atof(value), &live_error));
    }
    return settings;
}

/* --- the plain list --------------------------------------------------------
 */

#define MOST_KEYS 30000

/* Point i of the list has the id of key i. is_there[i] is 0 if the point was
 * removed. */
struct plain_points
{
    int n_keys, n;
    double x[MOST_KEYS], y[MOST_KEYS];
    unsigned char is_there[MOST_KEYS];
};

static inline int64_t id_of_key(int key)
{
    uint64_t spread = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);
    return key % 3 == 0 ? (int64_t)spread : key - 50000;
}

static inline void plain_change(struct plain_points *p, int key, double x,
                                double y)
{
    int joins = fabs(x) <= 1e150 && fabs(y) <= 1e150;
    p->n += joins - p->is_there[key];
    p->is_there[key] = (unsigned char)joins;
    p->x[key] = x;
    p->y[key] = y;
}

/* --- batches ---------------------------------------------------------------
 */

enum batch_kind
{
    BATCH_ANYWHERE, /* jumps, and new points */
    BATCH_SMALL_STEPS,
    BATCH_ONE_PLACE,
    BATCH_FAR_AWAY,   /* out of the old extent */
    BATCH_ON_BORDERS, /* on borders of cells: a grid of powers of two */
    BATCH_ON_LINES,   /* few values of x, any y: x cannot be divided further */
    BATCH_ASIDE,      /* x changes, y does not */
    BATCH_REMOVALS,
    BATCH_MIXED, /* removals, insertions and moves; some ids occur repeatedly */
    BATCH_ALL_GONE,
    N_BATCH_KINDS
};

struct random_batch
{
    int64_t n;
    int key[2 * MOST_KEYS];
    int64_t id[2 * MOST_KEYS];
    double x[2 * MOST_KEYS], y[2 * MOST_KEYS];
};

static inline void batch_put(struct random_batch *b, int key, double x,
                             double y)
{
    b->key[b->n] = key;
    b->id[b->n] = id_of_key(key);
    b->x[b->n] = x;
    b->y[b->n++] = y;
}

static inline double on_border(void)
{
    return (double)pick(65) * 16.0 - 512.0;
}

static inline void put_random_change(struct random_batch *b,
                                     const struct plain_points *p,
                                     enum batch_kind kind, int key)
{
    static const double broken[] = {NAN, INFINITY, -INFINITY, 1e200};
    double x = between(-500, 500), y = between(-500, 500);
    switch (kind)
    {
        case BATCH_SMALL_STEPS:
            if (p->is_there[key])
            {
                x = p->x[key] + between(-0.5, 0.5);
                y = p->y[key] + between(-0.5, 0.5);
            }
            break;
        case BATCH_ONE_PLACE:
            x = 17.25;
            y = -3.5;
            break;
        case BATCH_FAR_AWAY:
            x += 1e6 + 1000.0 * pick(50);
            y = -1e5 * unit();
            break;
        case BATCH_ON_BORDERS:
            x = on_border();
            y = on_border();
            break;
        case BATCH_ON_LINES:
            x = 16.0 * pick(3);
            break;
        case BATCH_ASIDE:
            if (p->is_there[key])
                y = p->y[key];
            break;
        case BATCH_REMOVALS:
        case BATCH_ALL_GONE:
            x = y = NAN;
            break;
        case BATCH_MIXED:
            if (one_in(3))
                x = broken[pick(4)];
            else if (one_in(6))
                y = broken[pick(4)];
            if (one_in(4))
                x = y = NAN;
            break;
        default:
            break;
    }
    batch_put(b, key, x, y);
}

/* A batch of any size. */
static inline void make_random_batch(struct random_batch *b,
                                     const struct plain_points *p,
                                     enum batch_kind kind)
{
    int n = one_in(4) ? 1 + pick(3) : 1 + pick(p->n_keys);
    b->n = 0;
    if (kind == BATCH_ALL_GONE || kind == BATCH_FAR_AWAY)
    {
        for (int key = 0; key < p->n_keys; key++)
        {
            if (p->is_there[key] || kind == BATCH_ALL_GONE)
                put_random_change(b, p, kind, key);
        }
        return;
    }
    for (int i = 0; i < n; i++)
        put_random_change(b, p, kind, pick(p->n_keys));
}

static inline void plain_apply(struct plain_points *p,
                               const struct random_batch *b)
{
    for (int64_t i = 0; i < b->n; i++)
        plain_change(p, b->key[i], b->x[i], b->y[i]);
}

/* --- layers ----------------------------------------------------------------
 */

/* the points of the list as a layer, sorted by keys */
struct plain_layer
{
    int64_t n;
    int64_t id[MOST_KEYS];
    double x[MOST_KEYS], y[MOST_KEYS];
    struct ogrjoin_layer *layer;
};

static inline void plain_layer_make(const struct plain_points *p,
                                    struct plain_layer *out)
{
    struct ogrjoin_arrays a = {.size = sizeof a};
    out->n = 0;
    for (int key = 0; key < p->n_keys; key++)
    {
        if (!p->is_there[key])
            continue;
        out->id[out->n] = id_of_key(key);
        out->x[out->n] = p->x[key];
        out->y[out->n++] = p->y[key];
    }
    a.n_features = a.n_vertices = out->n;
    a.id = out->id;
    a.x = out->x;
    a.y = out->y;
    must(ogrjoin_layer_from_arrays(&a, &out->layer, &live_error));
}

#define MOST_INPUTS 400

/* Input features: only points, or triangles, boxes, lines and points. Some are
 * at places of the list. */
struct input_layer
{
    int64_t n, n_vertices;
    int64_t id[MOST_INPUTS], part_offset[MOST_INPUTS + 1],
        ring_offset[MOST_INPUTS + 1], vertex_offset[MOST_INPUTS + 1];
    uint8_t kind[MOST_INPUTS];
    double x[5 * MOST_INPUTS], y[5 * MOST_INPUTS];
    struct ogrjoin_layer *layer;
};

static inline void pick_place(const struct plain_points *p, double *x,
                              double *y)
{
    int key = pick(p->n_keys);
    *x = between(-510, 510);
    *y = between(-510, 510);
    if (p->is_there[key] && !one_in(3))
    {
        *x = p->x[key];
        *y = p->y[key];
    }
    else if (one_in(4))
    {
        *x = on_border();
        *y = on_border();
    }
}

static inline void add_vertex(struct input_layer *in, double x, double y)
{
    in->x[in->n_vertices] = x;
    in->y[in->n_vertices++] = y;
}

/* Adds a box, a triangle, a line or a point near a place. */
static inline void add_shape(struct input_layer *in, double x, double y)
{
    static const uint8_t kinds[] = {OGRJOIN_POLYGON, OGRJOIN_POLYGON,
                                    OGRJOIN_LINE, OGRJOIN_POINT};
    double w = one_in(3) ? between(0, 200) : between(0, 8);
    double h = one_in(3) ? between(0, 200) : between(0, 8);
    int shape = pick(4);
    in->kind[in->n] = kinds[shape];
    add_vertex(in, x, y);
    if (shape < 3)
        add_vertex(in, x + w, y + (shape == 2 ? h : 0.0));
    if (shape == 0)
        add_vertex(in, x + w, y + h);
    if (shape < 2)
    {
        add_vertex(in, x, y + h);
        add_vertex(in, x, y);
    }
}

static inline void input_layer_make(const struct plain_points *p, int n,
                                    int is_points, struct input_layer *in)
{
    struct ogrjoin_arrays a = {.size = sizeof a};
    in->n_vertices = 0;
    for (in->n = 0; in->n < n; in->n++)
    {
        double x, y;
        int64_t i = in->n;
        pick_place(p, &x, &y);
        in->id[i] = id_of_key(pick(p->n_keys));
        in->part_offset[i] = in->ring_offset[i] = i;
        in->vertex_offset[i] = in->n_vertices;
        if (is_points)
            add_vertex(in, one_in(20) ? NAN : x, y);
        else
            add_shape(in, x, y);
    }
    in->part_offset[n] = in->ring_offset[n] = n;
    in->vertex_offset[n] = in->n_vertices;
    a.n_features = n;
    a.n_vertices = in->n_vertices;
    a.x = in->x;
    a.y = in->y;
    a.id = in->id;
    if (!is_points)
    {
        a.n_parts = a.n_rings = n;
        a.part_offset = in->part_offset;
        a.ring_offset = in->ring_offset;
        a.vertex_offset = in->vertex_offset;
        a.part_kind = in->kind;
    }
    must(ogrjoin_layer_from_arrays(&a, &in->layer, &live_error));
}

/* --- answers ---------------------------------------------------------------
 */

/* Asserts equal pairs. id[f] is the id of feature f of the new index; the right
 * sides of `pairs` are such ids. */
static inline void expect_equal_pairs(const struct ogrjoin_pairs *pairs,
                                      const struct ogrjoin_pairs *fresh,
                                      const int64_t *id, const char *words)
{
    int64_t n = ogrjoin_pairs_count(fresh);
    expect(ogrjoin_pairs_count(pairs) == n,
           "seed %llu, %s: %lld pairs, not %lld", (unsigned long long)seed,
           words, (long long)ogrjoin_pairs_count(pairs), (long long)n);
    for (int64_t i = 0; i < n; i++)
    {
        uint64_t a = bits_of(ogrjoin_pairs_measure(pairs)[i]);
        uint64_t b = bits_of(ogrjoin_pairs_measure(fresh)[i]);
        expect(ogrjoin_pairs_left(pairs)[i] == ogrjoin_pairs_left(fresh)[i] &&
                   ogrjoin_pairs_right(pairs)[i] ==
                       id[ogrjoin_pairs_right(fresh)[i]] &&
                   a == b,
               "seed %llu, %s: pair %lld: %lld with %lld at %.17g, not %lld "
               "with %lld at %.17g",
               (unsigned long long)seed, words, (long long)i,
               (long long)ogrjoin_pairs_left(pairs)[i],
               (long long)ogrjoin_pairs_right(pairs)[i],
               ogrjoin_pairs_measure(pairs)[i],
               (long long)ogrjoin_pairs_left(fresh)[i],
               (long long)id[ogrjoin_pairs_right(fresh)[i]],
               ogrjoin_pairs_measure(fresh)[i]);
    }
}

/* Joins with the kept index and with a new one, and asserts equal pairs.
 * Returns their number. */
static inline int64_t expect_fresh_answer(struct ogrjoin_live *live,
                                          const struct plain_layer *points,
                                          const struct input_layer *input,
                                          const char *words)
{
    struct ogrjoin_settings *settings = settings_of(words);
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *pairs = NULL, *fresh = NULL;
    int64_t n;
    must(ogrjoin_index_new(points->layer, settings, &index, &live_error));
    must(ogrjoin_join(index, input->layer, &fresh, &live_error));
    must(ogrjoin_live_join(live, settings, input->layer, &pairs, &live_error));
    expect_equal_pairs(pairs, fresh, points->id, words);
    n = ogrjoin_pairs_count(fresh);
    ogrjoin_pairs_free(pairs);
    ogrjoin_pairs_free(fresh);
    ogrjoin_index_free(index);
    ogrjoin_settings_free(settings);
    return n;
}

#endif
