#include "cpu_scattered_list_offsets.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"

#include <string.h>

/* Logarithm to base 2 of the number of rows in a group: 2^14 rows have 256 KiB
 * of offsets, which fit a cache of 1 MiB together with an equally large scratch
 * for sorting. Groups are larger if there would be more than MOST_GROUPS. */
#define GROUP_BITS 14
#define MOST_GROUPS 1024

static void free_thread_buffers(struct oj_scattered_offsets *offsets)
{
    for (int t = 0; offsets->buffer != NULL && t < offsets->n_threads; t++)
    {
        oj_free(offsets->buffer[t].range);
        oj_free(offsets->buffer[t].n_waiting);
        oj_free(offsets->buffer[t].group);
    }
    oj_free(offsets->buffer);
    oj_free(offsets->n_passed);
    offsets->buffer = NULL;
    offsets->n_passed = NULL;
}

static oj_status allocate_thread_buffers(struct oj_scattered_offsets *offsets,
                                         struct oj_error *err)
{
    int64_t n_groups = offsets->n_groups;
    OJ_NEW_ZEROED(offsets->buffer, offsets->n_threads, err);
    OJ_NEW(offsets->n_passed, n_groups, err);
    for (int t = 0; t < offsets->n_threads; t++)
    {
        struct oj_list_range_buffer *buffer = &offsets->buffer[t];
        OJ_NEW(buffer->range, n_groups * OJ_LIST_RANGES_AT_ONCE, err);
        OJ_NEW(buffer->n_waiting, n_groups, err);
        OJ_NEW(buffer->group, (int64_t)1 << offsets->group_bits, err);
    }
    return OJ_OK;
}

oj_status oj_scattered_offsets_begin(struct oj_scattered_offsets *offsets,
                                     int64_t *offset, int64_t n_rows,
                                     int n_threads, struct oj_error *err)
{
    oj_status status;
    int bits = GROUP_BITS;
    while ((n_rows >> bits) >= MOST_GROUPS)
        bits++;
    offsets->offset = offset;
    if (offsets->buffer == NULL || offsets->n_rows != n_rows)
    {
        free_thread_buffers(offsets);
        offsets->n_rows = n_rows;
        offsets->group_bits = bits;
        offsets->n_groups = (n_rows >> bits) + 1;
        offsets->n_threads = n_threads;
        status = allocate_thread_buffers(offsets, err);
        if (status != OJ_OK)
        {
            free_thread_buffers(offsets);
            return status;
        }
    }
    for (int64_t g = 0; g < offsets->n_groups; g++)
        atomic_init(&offsets->n_passed[g], 0);
    for (int t = 0; t < n_threads; t++)
        memset(offsets->buffer[t].n_waiting, 0, (size_t)offsets->n_groups);
    return OJ_OK;
}

/* Returns the part of the offsets that belongs to the rows of a group. */
static int64_t *offsets_of_row_group(const struct oj_scattered_offsets *offsets,
                                     int64_t group)
{
    return offsets->offset + 2 * (group << offsets->group_bits);
}

void oj_scattered_offsets_flush_group(struct oj_scattered_offsets *offsets,
                                      struct oj_list_range_buffer *buffer,
                                      int64_t group)
{
    int64_t n = buffer->n_waiting[group];
    int64_t at = atomic_fetch_add(&offsets->n_passed[group], n);
    memcpy(offsets_of_row_group(offsets, group) + 2 * at,
           buffer->range + group * OJ_LIST_RANGES_AT_ONCE,
           (size_t)n * sizeof *buffer->range);
    buffer->n_waiting[group] = 0;
}

static void write_offsets_of_row_group(int64_t group, int thread, void *user)
{
    struct oj_scattered_offsets *offsets = user;
    struct oj_list_range *range = offsets->buffer[thread].group;
    int64_t *offset = offsets_of_row_group(offsets, group);
    int64_t n_rows = (int64_t)1 << offsets->group_bits;
    int64_t n_left = offsets->n_rows - (group << offsets->group_bits), n;
    n_rows = n_left < n_rows ? n_left : n_rows;
    for (int t = 0; t < offsets->n_threads; t++)
        oj_scattered_offsets_flush_group(offsets, &offsets->buffer[t], group);
    n = atomic_load(&offsets->n_passed[group]);
    memcpy(range, offset, (size_t)n * sizeof *range);
    if (n < n_rows)
        memset(offset, 0, (size_t)n_rows * sizeof *range);
    for (int64_t i = 0; i < n; i++)
    {
        offset[2 * range[i].row] = range[i].first;
        offset[2 * range[i].row + 1] = range[i].first + range[i].n;
    }
}

void oj_scattered_offsets_write_all(struct oj_scattered_offsets *offsets)
{
    oj_parallel_for(offsets->n_threads, offsets->n_groups,
                    write_offsets_of_row_group, offsets);
}

void oj_scattered_offsets_free(struct oj_scattered_offsets *offsets)
{
    free_thread_buffers(offsets);
    memset(offsets, 0, sizeof *offsets);
}
