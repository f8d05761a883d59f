#include "oj_matches.h"
#include "../base/oj_alloc.h"

#include <string.h>

/* Copies the first n_used entries of lent arrays to own arrays of n entries. */
static oj_status replace_lent_arrays(struct oj_matches *m, int64_t n_used,
                                     int64_t n, struct oj_error *err)
{
    int32_t *join_row = oj_malloc(n, sizeof *join_row);
    double *measure = oj_malloc(n, sizeof *measure);
    if (join_row == NULL || measure == NULL)
    {
        oj_free(join_row);
        oj_free(measure);
        return oj_fail_nomem(err, n, sizeof *join_row + sizeof *measure);
    }
    if (n_used > 0)
    {
        memcpy(join_row, m->join_row, (size_t)n_used * sizeof *join_row);
        memcpy(measure, m->measure, (size_t)n_used * sizeof *measure);
    }
    m->join_row = join_row;
    m->measure = measure;
    m->cap_join_row = m->cap_measure = n;
    m->is_lent = 0;
    return OJ_OK;
}

oj_status oj_matches_copy_lent_arrays(struct oj_matches *m,
                                      struct oj_error *err)
{
    return m->is_lent ? replace_lent_arrays(m, m->n_entries, m->n_entries, err)
                      : OJ_OK;
}

static void free_entries(struct oj_matches *m)
{
    if (!m->is_lent)
    {
        oj_free(m->join_row);
        oj_free(m->measure);
    }
    m->is_lent = 0;
}

void oj_matches_use_lent_arrays(struct oj_matches *m, int32_t *join_row,
                                double *measure, int64_t n)
{
    free_entries(m);
    m->join_row = join_row;
    m->measure = measure;
    m->cap_join_row = m->cap_measure = n;
    m->is_lent = 1;
}

oj_status oj_matches_grow(struct oj_matches *m, int64_t n_used,
                          int64_t n_entries, struct oj_error *err)
{
    if (m->is_lent && n_entries > m->cap_join_row)
        return replace_lent_arrays(m, n_used, n_entries, err);
    OJ_ROOM(m->join_row, n_used, n_entries, m->cap_join_row, err);
    return oj_reserve(&m->measure, n_used, n_entries, &m->cap_measure,
                      sizeof *m->measure, err);
}

/* Frees `offset` when the answer changes to one-to-one form, in which offset
 * must be NULL. Callers change the form at most once, so that keeping the
 * memory would not pay. */
oj_status oj_matches_reserve(struct oj_matches *m, int64_t n_rows,
                             int64_t n_entries, int lists, struct oj_error *err)
{
    if (lists)
    {
        OJ_ROOM(m->offset, 0, n_rows + 1, m->cap_offset, err);
    }
    OJ_TRY(oj_matches_grow(m, 0, n_entries, err));
    if (!lists)
    {
        oj_free(m->offset);
        m->offset = NULL;
        m->cap_offset = 0;
    }
    m->scattered = 0;
    m->n_tied = 0;
    m->n_rows = n_rows;
    m->n_entries = n_entries;
    m->n_pairs = m->n_matched = m->n_undecided = 0;
    return OJ_OK;
}

oj_status oj_matches_reserve_tied(struct oj_matches *m, int64_t n,
                                  struct oj_error *err)
{
    OJ_ROOM(m->tied_row, 0, n, m->cap_tied_row, err);
    OJ_ROOM(m->tied_offset, 0, n + 1, m->cap_tied_offset, err);
    m->n_tied = n;
    return OJ_OK;
}

oj_status oj_matches_reserve_scattered(struct oj_matches *m, int64_t n_rows,
                                       int64_t n_entries, struct oj_error *err)
{
    OJ_TRY(oj_matches_reserve(m, n_rows, n_entries, 1, err));
    OJ_ROOM(m->offset, 0, 2 * n_rows, m->cap_offset, err);
    m->scattered = 1;
    return OJ_OK;
}

void oj_matches_free(struct oj_matches *m)
{
    free_entries(m);
    oj_free(m->offset);
    oj_free(m->tied_row);
    oj_free(m->tied_offset);
    oj_free(m->undecided);
    oj_free(m->undecided_join);
    memset(m, 0, sizeof *m);
}
