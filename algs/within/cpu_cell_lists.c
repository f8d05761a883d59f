/* Which features hold a cell: one list for all cells of the same ones. */
#include "cpu_known_cells.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_radix.h"

#include <string.h>

/* Of all lists together: past this, many features overlap in many ways. */
#define MOST_ENTRIES (INT64_C(1) << 24)

/* The sweep over the cells. */
struct sweep
{
    struct oj_known_cells *known;
    int32_t *now; /* [n_now] the features that hold the cell, ascending */
    int64_t n_now, cap_now;
    uint64_t hash; /* of now */
    int64_t n_lists, cap_offset, cap_feature;
    int32_t *table; /* [mask + 1] lists by hash, -1: free */
    uint64_t mask;
};

/* A hash of one number; those of a list are summed, so that one more or less
 * costs one step. */
static uint64_t mix(int32_t feature)
{
    uint64_t z = (uint64_t)feature + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The feature holds the next cells if it did not before, and the other way
 * round. */
static oj_status turn_feature(struct sweep *s, int32_t feature,
                              struct oj_error *err)
{
    int64_t low = 0, high = s->n_now;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (s->now[middle] < feature)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < s->n_now && s->now[low] == feature)
    {
        s->n_now--;
        memmove(s->now + low, s->now + low + 1,
                (size_t)(s->n_now - low) * sizeof *s->now);
        s->hash -= mix(feature);
        return OJ_OK;
    }
    OJ_TRY(oj_reserve(&s->now, s->n_now, s->n_now + 1, &s->cap_now,
                      sizeof *s->now, err));
    memmove(s->now + low + 1, s->now + low,
            (size_t)(s->n_now - low) * sizeof *s->now);
    s->now[low] = feature;
    s->n_now++;
    s->hash += mix(feature);
    return OJ_OK;
}

static oj_status add_list(struct sweep *s, struct oj_error *err)
{
    struct oj_known_cells *k = s->known;
    int64_t first = s->n_lists > 0 ? k->offset[s->n_lists] : 0;
    OJ_TRY(oj_reserve(&k->offset, s->n_lists > 0 ? s->n_lists + 1 : 0,
                      s->n_lists + 2, &s->cap_offset, sizeof *k->offset, err));
    OJ_TRY(oj_reserve(&k->feature, first, first + s->n_now, &s->cap_feature,
                      sizeof *k->feature, err));
    k->offset[s->n_lists++] = first;
    k->offset[s->n_lists] = first + s->n_now;
    if (s->n_now > 0)
        memcpy(k->feature + first, s->now, (size_t)s->n_now * sizeof *s->now);
    return OJ_OK;
}

/* The list of the features that hold the cell now, made when it is new. */
static oj_status find_list(struct sweep *s, int32_t *out, struct oj_error *err)
{
    const struct oj_known_cells *k = s->known;
    uint64_t i = (s->hash ^ s->hash >> 32) & s->mask;
    for (; s->table[i] >= 0; i = (i + 1) & s->mask)
    {
        int64_t first = k->offset[s->table[i]];
        if (k->offset[s->table[i] + 1] - first == s->n_now &&
            (s->n_now == 0 || memcmp(k->feature + first, s->now,
                                     (size_t)s->n_now * sizeof *s->now) == 0))
        {
            *out = s->table[i];
            return OJ_OK;
        }
    }
    s->table[i] = (int32_t)s->n_lists;
    *out = (int32_t)s->n_lists;
    return add_list(s, err);
}

static oj_status sweep(struct sweep *s, const struct oj_keyed *turn,
                       int64_t n_turns, int *fits, struct oj_error *err)
{
    struct oj_known_cells *k = s->known;
    int64_t n_cells = (int64_t)k->nx * k->ny, cell = 0;
    int32_t list;
    OJ_TRY(find_list(s, &list, err)); /* the empty one */
    for (int64_t i = 0; cell < n_cells;)
    {
        int64_t next = n_cells;
        for (; i < n_turns && (int64_t)turn[i].key <= cell; i++)
            OJ_TRY(turn_feature(s, (int32_t)turn[i].value, err));
        OJ_TRY(find_list(s, &list, err));
        if (k->offset[s->n_lists] > MOST_ENTRIES)
        {
            *fits = 0;
            return OJ_OK;
        }
        if (i < n_turns && (int64_t)turn[i].key < n_cells)
            next = (int64_t)turn[i].key;
        while (cell < next)
            k->cell[cell++].list = list;
    }
    k->cell[n_cells].list = 0;
    *fits = 1;
    return OJ_OK;
}

oj_status oj_known_cells_list(struct oj_known_cells *known,
                              const struct oj_keyed *turn, int64_t n_turns,
                              int *fits, struct oj_error *err)
{
    struct sweep s = {.known = known, .mask = 63};
    oj_status status;
    /* a list begins where features turn, or at the first cell */
    while (s.mask < 2 * (uint64_t)n_turns + 2)
        s.mask = 2 * s.mask + 1;
    OJ_NEW(s.table, (int64_t)s.mask + 1, err);
    memset(s.table, -1, (size_t)(s.mask + 1) * sizeof *s.table);
    status = sweep(&s, turn, n_turns, fits, err);
    known->lists.n = s.n_lists;
    known->lists.offset = known->offset;
    known->lists.feature = known->feature;
    oj_free(s.table);
    oj_free(s.now);
    return status;
}
