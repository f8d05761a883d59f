#include "oj_chunk.h"

#include "../base/oj_array.h"

#include <string.h>

oj_status oj_chunk_new(int n_fields, void *owner, void (*free_owner)(void *),
                       struct oj_chunk **out, struct oj_error *err)
{
    size_t size =
        sizeof(struct oj_chunk) +
        (size_t)(OJ_CHUNK_FIELDS + n_fields) * sizeof(struct oj_column_view);
    struct oj_chunk *chunk = oj_calloc(1, size);
    if (chunk == NULL)
        return oj_fail_nomem(err, 1, size);
    chunk->n_users = 1;
    chunk->owner = owner;
    chunk->free_owner = free_owner;
    *out = chunk;
    return OJ_OK;
}

struct oj_slice oj_slice_cut(struct oj_slice *rest, int64_t max_rows)
{
    struct oj_slice slice = *rest;
    if (slice.n_rows > max_rows)
        slice.n_rows = max_rows;
    rest->first += slice.n_rows;
    rest->n_rows -= slice.n_rows;
    if (rest->n_rows == 0) /* its share goes with the last rows */
        memset(rest, 0, sizeof *rest);
    else
        __atomic_fetch_add(&slice.chunk->n_users, 1, __ATOMIC_RELAXED);
    return slice;
}

void oj_slice_free(struct oj_slice *slice)
{
    struct oj_chunk *chunk = slice->chunk;
    if (chunk != NULL &&
        __atomic_fetch_sub(&chunk->n_users, 1, __ATOMIC_ACQ_REL) == 1)
    {
        chunk->free_owner(chunk->owner);
        oj_free(chunk);
    }
    memset(slice, 0, sizeof *slice);
}
