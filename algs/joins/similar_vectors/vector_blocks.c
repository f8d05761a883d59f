#include "vector_blocks.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/oj_radix_sort.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum
{
    SPLIT_KEYS = 65535 /* number of steps into which a side of a box is divided,
                          so that sort keys have two bytes */
};

/* A vector while the tree is built: its row, and its coordinates in the
 * dimensions of greatest scatter, which come first. */
struct split_row
{
    float at[OJ_BOX_DIMENSIONS];
    int32_t row;
};

struct block_maker
{
    struct oj_vector_blocks *blocks;
    const struct oj_vectors *vectors;
    struct split_row *row, *row_room;   /* [n_rows] */
    struct oj_keyed *key, *key_room;    /* [n_rows] */
    struct oj_vector_node *node, *next; /* [n_blocks + 1] nodes of the current
                                           and of the next level */
};

/* ---- coordinates --------------------------------------------------------- */

/* Returns the divisor of a vector: its length for cosines, otherwise 1. */
static double length_if_cosine_else_1(const struct oj_vector_blocks *b,
                                      const double *vector)
{
    double sum = 0.0;
    if (b->norm != OJ_NORM_COSINE)
        return 1.0;
    for (int64_t i = 0; i < b->n_dimensions; i++)
        sum += vector[i] * vector[i];
    return sqrt(sum);
}

/* Writes the coordinate of the vector in place p of the order of dimensions to
 * out[p * step], for the first n_places places. Beyond n_dimensions it is 0. */
static void transform_vector(const struct oj_vector_blocks *b,
                             const double *vector, int64_t n_places,
                             int64_t step, float *out)
{
    double length = length_if_cosine_else_1(b, vector);
    int64_t n = b->n_dimensions < n_places ? b->n_dimensions : n_places;
    for (int64_t p = 0; p < n; p++)
        out[p * step] = oj_vector_coordinate(vector[b->dimension[p]] / length,
                                             b->centre[p], b->scale);
    for (int64_t p = n; p < n_places; p++)
        out[p * step] = 0.0f;
}

void oj_vector_blocks_write_coordinates(const struct oj_vector_blocks *blocks,
                                        const double *vector, float *out)
{
    transform_vector(blocks, vector, blocks->n_padded, 1, out);
}

/* ---- the frame ----------------------------------------------------------- */

static void add_to_spread(const struct oj_vector_blocks *b,
                          const double *vector, const double *first,
                          struct oj_vector_spread *spread)
{
    double length = length_if_cosine_else_1(b, vector),
           of_first = length_if_cosine_else_1(b, first);
    for (int64_t i = 0; i < b->n_dimensions; i++)
    {
        double x = vector[i] / length;
        spread[i].apart += fabs(x - first[i] / of_first);
        spread[i].low = x < spread[i].low ? x : spread[i].low;
        spread[i].high = x > spread[i].high ? x : spread[i].high;
    }
}

/* Sets the order of dimensions, their centres, and the scale. */
static oj_status order_and_centre_dimensions(const struct block_maker *m,
                                             int64_t n_rows,
                                             struct oj_error *err)
{
    struct oj_vector_blocks *b = m->blocks;
    struct oj_vector_spread *spread;
    const double *first = NULL;
    OJ_NEW(spread, b->n_dimensions, err);
    for (int32_t i = 0; i < (int32_t)b->n_dimensions; i++)
        spread[i] = (struct oj_vector_spread){0.0, INFINITY, -INFINITY, i};
    for (int64_t row = 0; row < n_rows; row++)
    {
        if (!oj_vector_is_there(m->vectors, row))
            continue;
        if (first == NULL)
            first = oj_vector_at(m->vectors, row);
        add_to_spread(b, oj_vector_at(m->vectors, row), first, spread);
    }
    b->scale =
        oj_vector_frame_make(spread, b->n_dimensions, b->dimension, b->centre);
    oj_free(spread);
    return OJ_OK;
}

/* ---- the tree ------------------------------------------------------------ */

static int64_t end_row_of_node(const struct oj_vector_blocks *b,
                               const struct oj_vector_node *node)
{
    int64_t end = node->end * OJ_WIDE;
    return end < b->n_rows ? end : b->n_rows;
}

static void compute_box_of_rows(const struct split_row *row, int64_t first,
                                int64_t end, struct oj_vector_box *out)
{
    memcpy(out->low, row[first].at, sizeof out->low);
    memcpy(out->high, row[first].at, sizeof out->high);
    for (int64_t i = first + 1; i < end; i++)
    {
        const float *at = row[i].at;
        OJ_EIGHT out->low[c] = at[c] < out->low[c] ? at[c] : out->low[c];
        OJ_EIGHT out->high[c] = at[c] > out->high[c] ? at[c] : out->high[c];
    }
}

/* Sorts the rows of a node along the longest side of its box. Boxes are
 * computed from the rows, so the sort affects speed only. */
static void sort_node(struct block_maker *m, const struct oj_vector_node *node,
                      const struct oj_vector_box *box)
{
    int64_t first = node->first * OJ_WIDE, n;
    struct oj_keyed *sorted;
    int longest = 0;
    float low, factor;
    n = end_row_of_node(m->blocks, node) - first;
    for (int c = 1; c < OJ_BOX_DIMENSIONS; c++)
    {
        if (box->high[c] - box->low[c] > box->high[longest] - box->low[longest])
            longest = c;
    }
    low = box->low[longest];
    factor = (float)SPLIT_KEYS / (box->high[longest] - low);
    if (!(factor < FLT_MAX)) /* the points are equal, or nearly */
        return;
    for (int64_t i = 0; i < n; i++)
    {
        float at = m->row[first + i].at[longest];
        m->key[first + i] = (struct oj_keyed){
            (uint64_t)(int64_t)((at - low) * factor), first + i};
    }
    sorted = oj_radix_sort(m->key + first, m->key_room + first, n);
    for (int64_t i = 0; i < n; i++)
        m->row_room[first + i] = m->row[sorted[i].value];
    memcpy(m->row + first, m->row_room + first, (size_t)n * sizeof *m->row);
}

static oj_status box_and_sort_node(int64_t i, int thread, void *user,
                                   struct oj_error *err)
{
    struct block_maker *m = user;
    const struct oj_vector_node *node = &m->node[i];
    struct oj_vector_box *box = &m->blocks->box[node->at];
    (void)thread;
    (void)err;
    compute_box_of_rows(m->row, node->first * OJ_WIDE,
                        end_row_of_node(m->blocks, node), box);
    if (node->end - node->first > 1)
        sort_node(m, node, box);
    return OJ_OK;
}

/* Builds the tree level by level. */
static oj_status make_tree(struct block_maker *m, int n_threads,
                           struct oj_error *err)
{
    int64_t n = 1;
    m->node[0] = (struct oj_vector_node){0, m->blocks->n_blocks, 0};
    while (n > 0)
    {
        struct oj_vector_node *level = m->node;
        int64_t n_next = 0;
        OJ_TRY(oj_parallel_try(n_threads, n, 1, box_and_sort_node, m, err));
        for (int64_t i = 0; i < n; i++)
        {
            if (level[i].end - level[i].first == 1)
                continue;
            oj_vector_children(&level[i], &m->next[n_next]);
            n_next += 2;
        }
        m->node = m->next;
        m->next = level;
        n = n_next;
    }
    return OJ_OK;
}

/* ---- blocks -------------------------------------------------------------- */

static oj_status fill_block(int64_t block, int thread, void *user,
                            struct oj_error *err)
{
    struct block_maker *m = user;
    struct oj_vector_blocks *b = m->blocks;
    float *value = b->value + block * b->n_padded * OJ_WIDE;
    (void)thread;
    (void)err;
    for (int64_t c = 0; c < OJ_WIDE; c++)
    {
        int64_t i = block * OJ_WIDE + c, last = b->n_rows - 1;
        int32_t row = m->row[i < last ? i : last].row; /* empty slots repeat the
                                                          last row */
        b->row[i] = i < b->n_rows ? row : -1;
        transform_vector(b, oj_vector_at(m->vectors, row), b->n_padded, OJ_WIDE,
                         value + c);
    }
    return OJ_OK;
}

static oj_status make_blocks(struct block_maker *m, int64_t n_rows,
                             int n_threads, struct oj_error *err)
{
    struct oj_vector_blocks *b = m->blocks;
    int64_t n = 0;
    OJ_NEW(b->dimension, b->n_dimensions, err);
    OJ_NEW(b->centre, b->n_dimensions, err);
    OJ_TRY(order_and_centre_dimensions(m, n_rows, err));
    OJ_NEW(b->value, b->n_blocks * b->n_padded * OJ_WIDE, err);
    OJ_NEW(b->row, b->n_blocks * OJ_WIDE, err);
    OJ_NEW(b->box, 2 * b->n_blocks - 1, err);
    OJ_NEW(m->row, b->n_rows, err);
    OJ_NEW(m->row_room, b->n_rows, err);
    OJ_NEW(m->key, b->n_rows, err);
    OJ_NEW(m->key_room, b->n_rows, err);
    OJ_NEW(m->node, b->n_blocks + 1, err);
    OJ_NEW(m->next, b->n_blocks + 1, err);
    for (int64_t row = 0; row < n_rows; row++)
    {
        if (!oj_vector_is_there(m->vectors, row))
            continue;
        transform_vector(b, oj_vector_at(m->vectors, row), OJ_BOX_DIMENSIONS, 1,
                         m->row[n].at);
        m->row[n++].row = (int32_t)row;
    }
    OJ_TRY(make_tree(m, n_threads, err));
    return oj_parallel_try(n_threads, b->n_blocks, 16, fill_block, m, err);
}

oj_status oj_vector_blocks_make(const struct oj_vectors *vectors,
                                int64_t n_rows, enum oj_vector_norm norm,
                                int n_threads, struct oj_vector_blocks *out,
                                struct oj_error *err)
{
    struct oj_vector_blocks blocks = {.norm = norm,
                                      .n_dimensions = vectors->n_dimensions};
    struct block_maker m = {.blocks = &blocks, .vectors = vectors};
    oj_status status = OJ_OK;
    blocks.n_padded =
        (vectors->n_dimensions + OJ_LANES - 1) / OJ_LANES * OJ_LANES;
    for (int64_t row = 0; row < n_rows; row++)
        blocks.n_rows += oj_vector_is_there(vectors, row);
    blocks.n_blocks = (blocks.n_rows + OJ_WIDE - 1) / OJ_WIDE;
    if (blocks.n_rows > 0)
        status = make_blocks(&m, n_rows, n_threads, err);
    oj_free(m.row);
    oj_free(m.row_room);
    oj_free(m.key);
    oj_free(m.key_room);
    oj_free(m.node);
    oj_free(m.next);
    if (status == OJ_OK)
        *out = blocks;
    else
        oj_vector_blocks_free(&blocks);
    return status;
}

int64_t oj_vector_blocks_bytes(const struct oj_vector_blocks *b)
{
    return b->n_blocks *
           (OJ_WIDE * (4 * b->n_padded + 4) + 2 * (int64_t)sizeof *b->box);
}

void oj_vector_blocks_free(struct oj_vector_blocks *blocks)
{
    const struct oj_vector_blocks empty = {0};
    oj_free(blocks->dimension);
    oj_free(blocks->centre);
    oj_free(blocks->value);
    oj_free(blocks->row);
    oj_free(blocks->box);
    *blocks = empty;
}
