#include "cpu_scattered_list_offsets.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"

#include <string.h>

/* Logarithm to base 2 of the rows of a group: its offsets and an equally large
 * scratch for sorting fit a cache of a megabyte. Groups are larger if there
 * would be more than MOST_GROUPS. */
#define GROUP_BITS 14
#define MOST_GROUPS 1024

static void free_thread_buffers(struct oj_list_places *places)
{
    for (int t = 0; places->notes != NULL && t < places->n_threads; t++)
    {
        oj_free(places->notes[t].place);
        oj_free(places->notes[t].n_waiting);
        oj_free(places->notes[t].group);
    }
    oj_free(places->notes);
    oj_free(places->n_passed);
    places->notes = NULL;
    places->n_passed = NULL;
}

static oj_status allocate_thread_buffers(struct oj_list_places *places,
                                         struct oj_error *err)
{
    int64_t n_groups = places->n_groups;
    OJ_NEW_ZEROED(places->notes, places->n_threads, err);
    OJ_NEW(places->n_passed, n_groups, err);
    for (int t = 0; t < places->n_threads; t++)
    {
        struct oj_list_notes *notes = &places->notes[t];
        OJ_NEW(notes->place, n_groups * OJ_PLACES_AT_ONCE, err);
        OJ_NEW(notes->n_waiting, n_groups, err);
        OJ_NEW(notes->group, (int64_t)1 << places->group_bits, err);
    }
    return OJ_OK;
}

oj_status oj_list_places_begin(struct oj_list_places *places, int64_t *offset,
                               int64_t n_rows, int n_threads,
                               struct oj_error *err)
{
    oj_status status;
    int bits = GROUP_BITS;
    while ((n_rows >> bits) >= MOST_GROUPS)
        bits++;
    places->offset = offset;
    if (places->notes == NULL || places->n_rows != n_rows)
    {
        free_thread_buffers(places);
        places->n_rows = n_rows;
        places->group_bits = bits;
        places->n_groups = (n_rows >> bits) + 1;
        places->n_threads = n_threads;
        status = allocate_thread_buffers(places, err);
        if (status != OJ_OK)
        {
            free_thread_buffers(places);
            return status;
        }
    }
    for (int64_t g = 0; g < places->n_groups; g++)
        atomic_init(&places->n_passed[g], 0);
    for (int t = 0; t < n_threads; t++)
        memset(places->notes[t].n_waiting, 0, (size_t)places->n_groups);
    return OJ_OK;
}

/* Returns the first offset of a group. */
static int64_t *offsets_of_row_group(const struct oj_list_places *places,
                                     int64_t group)
{
    return places->offset + 2 * (group << places->group_bits);
}

void oj_list_places_flush_group(struct oj_list_places *places,
                                struct oj_list_notes *notes, int64_t group)
{
    int64_t n = notes->n_waiting[group];
    int64_t at = atomic_fetch_add(&places->n_passed[group], n);
    memcpy(offsets_of_row_group(places, group) + 2 * at,
           notes->place + group * OJ_PLACES_AT_ONCE,
           (size_t)n * sizeof *notes->place);
    notes->n_waiting[group] = 0;
}

static void write_offsets_of_row_group(int64_t group, int thread, void *user)
{
    struct oj_list_places *places = user;
    struct oj_list_place *place = places->notes[thread].group;
    int64_t *offset = offsets_of_row_group(places, group);
    int64_t n_rows = (int64_t)1 << places->group_bits;
    int64_t n_left = places->n_rows - (group << places->group_bits), n;
    n_rows = n_left < n_rows ? n_left : n_rows;
    for (int t = 0; t < places->n_threads; t++)
        oj_list_places_flush_group(places, &places->notes[t], group);
    n = atomic_load(&places->n_passed[group]);
    memcpy(place, offset, (size_t)n * sizeof *place);
    if (n < n_rows)
        memset(offset, 0, (size_t)n_rows * sizeof *place);
    for (int64_t i = 0; i < n; i++)
    {
        offset[2 * place[i].row] = place[i].first;
        offset[2 * place[i].row + 1] = place[i].first + place[i].n;
    }
}

void oj_list_places_end(struct oj_list_places *places)
{
    oj_parallel_for(places->n_threads, places->n_groups,
                    write_offsets_of_row_group, places);
}

void oj_list_places_free(struct oj_list_places *places)
{
    free_thread_buffers(places);
    memset(places, 0, sizeof *places);
}
