/* Joins of rows in host memory with a kept index on one device or several.
 *
 *   rows      all of them go to every device
 *   answer    each device finds the pairs of its rows; then, of nearest rows,
 *             those that other devices ask it about
 *   merge     on the host, row by row
 */
#include "cuda_live.cuh"

#include "../../flatten/base/oj_alloc.h"

#include <new>
#include <stdlib.h>

/* Maximum number of rows that are joined at a time; the number is halved if
 * memory is missing. */
#define MOST_ROWS ((int64_t)1 << 22)

/* --- answers on the devices ----------------------------------------------- */

static struct oj_cuda_work *
work_of_part_join(struct oj_cuda_live_part_join *join)
{
    return (struct oj_cuda_work *)(void *)join->work;
}

oj_status oj_cuda_live_begin_join(struct oj_gpu_live *live, int number,
                                  struct oj_cuda_live_part_join *join,
                                  struct oj_error *err)
{
    struct oj_cuda_device *device = &live->part[number].device;
    OJ_TRY(oj_cuda_live_make_device_current(&live->part[number], err));
    new (join->work) oj_cuda_work(device, device->stream,
                                  "joining with a kept index", &join->err);
    join->has_work = 1;
    return OJ_OK;
}

void oj_cuda_live_end_join(struct oj_gpu_live *live,
                           struct oj_cuda_live_part_join *join)
{
    oj_cuda_threads_run_one_on_module(
        [=]()
        {
            struct oj_error unwanted;
            for (int i = 0; i < live->n_parts; i++)
            {
                if (join[i].has_work && oj_cuda_live_make_device_current(
                                            &live->part[i], &unwanted) == OJ_OK)
                    work_of_part_join(&join[i])->~oj_cuda_work();
                for (int k = 0; k < live->n_parts; k++)
                {
                    oj_free(join[i].asked[k].row);
                    oj_free(join[i].asked[k].bound);
                }
            }
        });
}

/* Runs body(i, work) for each device; if one fails, all fail. */
template <typename Body>
static oj_status run_on_parts(struct oj_gpu_live *live,
                              struct oj_cuda_live_part_join *join, Body body,
                              struct oj_error *err)
{
    return oj_cuda_run_on_peers_on_module(
        &live->peers, live->n_parts,
        [&](int i, struct oj_error *why)
        {
            OJ_TRY(oj_cuda_live_make_device_current(&live->part[i], why));
            oj_status of_part = body(i, work_of_part_join(&join[i]));
            return of_part == OJ_OK
                       ? OJ_OK
                       : oj_fail(why, of_part, "%s", join[i].err.message);
        },
        err);
}

/* Answers the rows that device `number` answers first. If asks is 1, also
 * copies the boxes at the top of its tree to the host, for the other devices.
 */
static oj_status answer_own_rows(struct oj_gpu_live *live, int number,
                                 const struct oj_relation *relation, int asks,
                                 struct oj_cuda_live_part_join *join,
                                 struct oj_cuda_work *work)
{
    const struct oj_cuda_live_part *part = &live->part[number];
    struct oj_cuda_live_answer *answer = &join->answer[0];
    const struct oj_box *top;
    int64_t n;
    answer->rows = join->rows;
    if (live->n_parts > 1)
    {
        OJ_TRY(oj_cuda_live_choose_rows(part, work, &live->regions, number,
                                        relation, &join->rows, &n,
                                        &answer->row));
        OJ_TRY(oj_cuda_live_gather_rows(work, &join->rows, n, answer->row,
                                        &answer->rows));
    }
    if (asks)
    {
        join->n_top = oj_cuda_live_top_boxes(part, &top);
        if (join->n_top > 0)
            OJ_TRY(oj_cuda_copy_out(work->device, work->stream, join->top, top,
                                    join->n_top * (int64_t)sizeof *top,
                                    work->err));
    }
    OJ_TRY(oj_cuda_live_find_pairs(part, work, relation, &answer->rows,
                                   &answer->found));
    join->n_answers = 1;
    return work->wait();
}

/* Sets *out to the rows about which a device asks device `number`, described by
 * `other`. */
static oj_status
find_rows_asked_of_part(const struct oj_cuda_live_regions *regions, int number,
                        const struct oj_cuda_live_part_join *other,
                        const struct oj_relation *relation,
                        const struct oj_cuda_live_answer *answer,
                        struct oj_cuda_work *work,
                        struct oj_cuda_live_asked *out)
{
    struct oj_cuda_work own(work);
    const int32_t *row;
    const double *bound;
    struct oj_box *top;
    int64_t n;
    if (other->n_top == 0)
        return OJ_OK;
    OJ_TRY(own.make(other->n_top, &top));
    OJ_TRY(oj_cuda_copy_in(work->device, work->stream, top, other->top,
                           other->n_top * (int64_t)sizeof *top, work->err));
    OJ_TRY(oj_cuda_live_list_reaching_rows(&own, regions, number, relation,
                                           answer, top, other->n_top, &n, &row,
                                           &bound));
    if (n == 0)
        return OJ_OK;
    out->row = (int32_t *)oj_malloc(n, sizeof *row);
    out->bound = (double *)oj_malloc(n, sizeof *bound);
    if (out->row == NULL || out->bound == NULL)
        return oj_fail_nomem(work->err, n, sizeof *bound);
    out->n = n;
    OJ_TRY(oj_cuda_copy_out(work->device, work->stream, out->row, row,
                            n * (int64_t)sizeof *row, work->err));
    return oj_cuda_copy_out(work->device, work->stream, out->bound, bound,
                            n * (int64_t)sizeof *bound, work->err);
}

struct asked_row
{
    int32_t row;
    double bound;
};

static int compare_asked_rows(const void *left, const void *right)
{
    const struct asked_row *a = (const struct asked_row *)left;
    const struct asked_row *b = (const struct asked_row *)right;
    return (a->row > b->row) - (a->row < b->row);
}

/* Makes *out [*n], the rows about which all other devices ask device `number`,
 * sorted by row. The caller frees *out. */
static oj_status
collect_rows_asked_of_device(const struct oj_gpu_live *live, int number,
                             const struct oj_cuda_live_part_join *join,
                             int64_t *n, struct asked_row **out,
                             struct oj_error *err)
{
    struct asked_row *all;
    int64_t n_all = 0, at = 0;
    *n = 0;
    *out = NULL;
    for (int i = 0; i < live->n_parts; i++)
        n_all += join[i].asked[number].n;
    if (n_all == 0)
        return OJ_OK;
    all = (struct asked_row *)oj_malloc(n_all, sizeof *all);
    if (all == NULL)
        return oj_fail_nomem(err, n_all, sizeof *all);
    for (int i = 0; i < live->n_parts; i++)
    {
        const struct oj_cuda_live_asked *asked = &join[i].asked[number];
        for (int64_t k = 0; k < asked->n; k++)
            all[at++] = {asked->row[k], asked->bound[k]};
    }
    qsort(all, (size_t)n_all, sizeof *all, compare_asked_rows);
    *n = n_all;
    *out = all;
    return OJ_OK;
}

static oj_status answer_rows_of_other_devices(
    const struct oj_cuda_live_part *part, const struct oj_relation *relation,
    struct oj_cuda_live_part_join *join, int64_t n,
    const struct asked_row *asked, struct oj_cuda_work *work)
{
    struct oj_cuda_live_answer *answer = &join->answer[1];
    struct asked_row *here;
    int32_t *row;
    double *bound;
    OJ_TRY(work->make(n, &here));
    OJ_TRY(work->make(n, &row));
    OJ_TRY(work->make(n, &bound));
    OJ_TRY(oj_cuda_copy_in(work->device, work->stream, here, asked,
                           n * (int64_t)sizeof *asked, work->err));
    OJ_TRY(work->each(n,
                      [=] __device__(int64_t i)
                      {
                          row[i] = here[i].row;
                          bound[i] = here[i].bound;
                      }));
    answer->row = row;
    OJ_TRY(oj_cuda_live_gather_rows(work, &join->rows, n, row, &answer->rows));
    answer->rows.max_distance = bound;
    OJ_TRY(oj_cuda_live_find_pairs(part, work, relation, &answer->rows,
                                   &answer->found));
    join->n_answers = 2;
    return work->wait();
}

/* Asks the other devices about rows for which they may have nearer points, and
 * answers the rows about which they ask this device. */
static oj_status exchange_and_answer_rows(struct oj_gpu_live *live, int number,
                                          const struct oj_relation *relation,
                                          struct oj_cuda_live_part_join *join,
                                          struct oj_cuda_work *work)
{
    struct oj_cuda_live_part_join *mine = &join[number];
    struct asked_row *asked;
    oj_status status;
    int64_t n;
    OJ_TRY(oj_cuda_peer_barrier_wait_for_all(&live->peers, work->err));
    for (int k = 0; k < live->n_parts; k++)
    {
        if (k != number)
            OJ_TRY(find_rows_asked_of_part(&live->regions, k, &join[k],
                                           relation, &mine->answer[0], work,
                                           &mine->asked[k]));
    }
    OJ_TRY(oj_cuda_peer_barrier_wait_for_all(&live->peers, work->err));
    OJ_TRY(collect_rows_asked_of_device(live, number, join, &n, &asked,
                                        work->err));
    status = n == 0 ? OJ_OK
                    : answer_rows_of_other_devices(
                          &live->part[number], relation, mine, n, asked, work);
    oj_free(asked);
    return status;
}

oj_status oj_cuda_live_answer_rows(struct oj_gpu_live *live,
                                   const struct oj_relation *relation,
                                   struct oj_cuda_live_part_join *join,
                                   struct oj_error *err)
{
    int asks = live->n_parts > 1 && oj_relation_is_nearest(relation);
    return run_on_parts(
        live, join,
        [&](int i, struct oj_cuda_work *work)
        {
            OJ_TRY(answer_own_rows(live, i, relation, asks, &join[i], work));
            return asks
                       ? exchange_and_answer_rows(live, i, relation, join, work)
                       : OJ_OK;
        },
        err);
}

/* --- pairs in host memory ------------------------------------------------- */

/* The pairs of some rows of a chunk. Owner. */
struct part_pairs
{
    int64_t n_rows, n;
    int32_t *row; /* [n_rows] ascending; NULL: all rows */
    int64_t *offset, *id;
    double *distance; /* NULL: rows are boxes */
    int64_t at;       /* the next of n_rows to be merged */
};

enum
{
    MOST_LISTS = 2 * OJ_GPU_MAX_DEVICES
};

static void free_pairs(int n_lists, struct part_pairs *pairs)
{
    for (int i = 0; i < n_lists; i++)
    {
        oj_free(pairs[i].row);
        oj_free(pairs[i].offset);
        oj_free(pairs[i].id);
        oj_free(pairs[i].distance);
        pairs[i] = {};
    }
}

/* Makes *out [n], a copy of device memory. */
template <typename T>
static oj_status copy_array_to_host(struct oj_cuda_work *work, int64_t n,
                                    const T *from, T **out)
{
    if (from == NULL)
        return OJ_OK;
    *out = (T *)oj_malloc(n, sizeof **out);
    if (*out == NULL)
        return oj_fail_nomem(work->err, n, sizeof **out);
    return n == 0 ? OJ_OK
                  : oj_cuda_copy_out(work->device, work->stream, *out, from,
                                     n * (int64_t)sizeof **out, work->err);
}

/* Copies the pairs of an answer to host memory. If memory is missing there,
 * returns OJ_ERR_NOMEM, and the caller joins fewer rows at a time. */
static oj_status copy_answer_to_host(struct oj_cuda_work *work,
                                     const struct oj_cuda_live_answer *answer,
                                     struct part_pairs *out)
{
    const struct oj_cuda_live_found *found = &answer->found;
    out->n_rows = answer->rows.n;
    out->n = found->n;
    OJ_TRY(copy_array_to_host(work, out->n_rows, answer->row, &out->row));
    OJ_TRY(copy_array_to_host(work, out->n_rows + 1,
                              (const int64_t *)found->offset, &out->offset));
    OJ_TRY(
        copy_array_to_host(work, out->n, (const int64_t *)found->id, &out->id));
    return copy_array_to_host(work, out->n, (const double *)found->distance,
                              &out->distance);
}

/* Returns rows first .. first + n - 1. */
static struct oj_gpu_live_rows
view_rows_from_first(const struct oj_gpu_live_rows *rows, int64_t first,
                     int64_t n)
{
    struct oj_gpu_live_rows of = *rows;
    of.n = n;
    if (rows->box != NULL)
    {
        of.box += first;
        of.x = of.y = NULL;
    }
    else
    {
        of.x += first;
        of.y += first;
    }
    if (rows->fid != NULL)
        of.fid += first;
    if (rows->max_distance != NULL)
        of.max_distance += first;
    return of;
}

static oj_status upload_rows_of_chunk(const struct oj_gpu_live_rows *rows,
                                      struct oj_cuda_staging *staging,
                                      struct oj_cuda_work *work,
                                      struct oj_cuda_live_rows *out)
{
    int64_t n = out->n = rows->n;
    OJ_TRY(oj_cuda_live_upload_array(work, staging, rows->box, n, &out->box));
    OJ_TRY(oj_cuda_live_upload_array(work, staging, rows->x, n, &out->x));
    OJ_TRY(oj_cuda_live_upload_array(work, staging, rows->y, n, &out->y));
    OJ_TRY(oj_cuda_live_upload_array(work, staging, rows->fid, n, &out->fid));
    return oj_cuda_live_upload_array(work, staging, rows->max_distance, n,
                                     &out->max_distance);
}

static oj_status upload_rows_to_all_devices(struct oj_gpu_live *live,
                                            struct oj_cuda_live_part_join *join,
                                            const struct oj_gpu_live_rows *rows,
                                            struct oj_error *err)
{
    struct oj_cuda_staging arrays = {};
    int64_t bytes = rows->n * (int64_t)sizeof(double);
    oj_cuda_copy_stage_add(&arrays, rows->box,
                           rows->n * (int64_t)sizeof *rows->box);
    oj_cuda_copy_stage_add(&arrays, rows->x, bytes);
    oj_cuda_copy_stage_add(&arrays, rows->y, bytes);
    oj_cuda_copy_stage_add(&arrays, rows->fid, bytes);
    oj_cuda_copy_stage_add(&arrays, rows->max_distance, bytes);
    return oj_cuda_live_run_while_staging(
        live, &arrays,
        [&](int i, struct oj_cuda_staging *staging, struct oj_error *why)
        {
            OJ_TRY(oj_cuda_live_begin_join(live, i, &join[i], why));
            oj_status put = upload_rows_of_chunk(
                rows, staging, work_of_part_join(&join[i]), &join[i].rows);
            return put == OJ_OK ? OJ_OK
                                : oj_fail(why, put, "%s", join[i].err.message);
        },
        err);
}

/* --- merging -------------------------------------------------------------- */

/* The pairs found so far, and those of the current chunk. */
struct all_pairs
{
    const struct oj_relation *relation;
    int n_lists;
    struct part_pairs list[MOST_LISTS]; /* of the chunk */
    int64_t max_pairs;
    struct oj_gpu_live_pairs *out;
};

static oj_status reserve_pairs_within_limit(struct oj_gpu_live_pairs *out,
                                            int64_t n, int64_t max_pairs,
                                            struct oj_error *err)
{
    if (max_pairs > 0 && out->n + n > max_pairs)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the join has more than %lld pairs, the limit set by "
                       "max_pairs: raise it, or restrict the join",
                       (long long)max_pairs);
    OJ_ROOM(out->id, out->n, out->n + n, out->cap_id, err);
    OJ_ROOM(out->distance, out->n, out->n + n, out->cap_distance, err);
    return OJ_OK;
}

static int is_pair_in_front(const struct part_pairs *a, int64_t at_a,
                            const struct part_pairs *b, int64_t at_b,
                            int by_distance)
{
    if (by_distance && a->distance[at_a] != b->distance[at_b])
        return a->distance[at_a] < b->distance[at_b];
    return a->id[at_a] < b->id[at_b];
}

/* Returns 1 if the pairs of a row of a nearest join, which begin at first, are
 * complete without a further pair at this distance. */
static int is_nearest_row_complete(const struct oj_relation *relation,
                                   const struct oj_gpu_live_pairs *out,
                                   int64_t first, double distance)
{
    int64_t n = out->n - first;
    return n >= relation->k &&
           (relation->ties != OJ_TIES_ALL ||
            distance != out->distance[first + relation->k - 1]);
}

/* Merges the pairs of a row of the chunk, sorted in each list, into the result.
 */
static void merge_row(struct all_pairs *all, int64_t row)
{
    struct oj_gpu_live_pairs *out = all->out;
    int is_nearest = oj_relation_is_nearest(all->relation), n_lists = 0;
    int64_t at[MOST_LISTS], end[MOST_LISTS], first = out->n;
    const struct part_pairs *list[MOST_LISTS];
    for (int i = 0; i < all->n_lists; i++)
    {
        struct part_pairs *of = &all->list[i];
        if (of->at == of->n_rows || (of->row != NULL && of->row[of->at] != row))
            continue;
        at[n_lists] = of->offset[of->at];
        end[n_lists] = of->offset[++of->at];
        list[n_lists++] = of;
    }
    for (;;)
    {
        int next = -1;
        for (int i = 0; i < n_lists; i++)
        {
            if (at[i] < end[i] &&
                (next < 0 || is_pair_in_front(list[i], at[i], list[next],
                                              at[next], is_nearest)))
                next = i;
        }
        if (next < 0 || (is_nearest && is_nearest_row_complete(
                                           all->relation, out, first,
                                           list[next]->distance[at[next]])))
            return;
        out->id[out->n] = list[next]->id[at[next]];
        out->distance[out->n++] =
            list[next]->distance != NULL ? list[next]->distance[at[next]] : NAN;
        at[next]++;
    }
}

static oj_status merge_chunk(struct all_pairs *all, int64_t first,
                             int64_t n_rows, struct oj_error *err)
{
    int64_t n = 0;
    for (int i = 0; i < all->n_lists; i++)
        n += all->list[i].n;
    /* with several lists, the limit is checked after the merge, which drops
     * pairs that are not among the k nearest */
    OJ_TRY(reserve_pairs_within_limit(
        all->out, n, all->n_lists == 1 ? all->max_pairs : 0, err));
    for (int64_t row = 0; row < n_rows; row++)
    {
        merge_row(all, row);
        all->out->offset[first + row + 1] = all->out->n;
    }
    return reserve_pairs_within_limit(all->out, 0, all->max_pairs, err);
}

/* --- a join --------------------------------------------------------------- */

static oj_status join_chunk_on_all_parts(struct oj_gpu_live *live,
                                         struct oj_cuda_live_part_join *join,
                                         const struct oj_gpu_live_rows *rows,
                                         int64_t first, int64_t n,
                                         struct all_pairs *all,
                                         struct oj_error *err)
{
    int n_of[OJ_GPU_MAX_DEVICES];
    const struct oj_gpu_live_rows chunk = view_rows_from_first(rows, first, n);
    OJ_TRY(upload_rows_to_all_devices(live, join, &chunk, err));
    OJ_TRY(oj_cuda_live_answer_rows(live, all->relation, join, err));
    for (int i = 0; i < live->n_parts; i++)
    {
        n_of[i] = all->n_lists;
        all->n_lists += join[i].n_answers;
    }
    OJ_TRY(run_on_parts(
        live, join,
        [&](int i, struct oj_cuda_work *work)
        {
            for (int k = 0; k < join[i].n_answers; k++)
                OJ_TRY(copy_answer_to_host(work, &join[i].answer[k],
                                           &all->list[n_of[i] + k]));
            return OJ_OK;
        },
        err));
    return merge_chunk(all, first, n, err);
}

static oj_status join_chunk(struct oj_gpu_live *live,
                            const struct oj_gpu_live_rows *rows, int64_t first,
                            int64_t n, struct all_pairs *all,
                            struct oj_error *err)
{
    struct oj_cuda_live_part_join *join =
        (struct oj_cuda_live_part_join *)oj_calloc(live->n_parts, sizeof *join);
    oj_status status;
    if (join == NULL)
        return oj_fail_nomem(err, live->n_parts, sizeof *join);
    all->n_lists = 0;
    status = join_chunk_on_all_parts(live, join, rows, first, n, all, err);
    oj_cuda_live_end_join(live, join);
    oj_free(join);
    free_pairs(all->n_lists, all->list);
    return status;
}

static oj_status join_rows(struct oj_gpu_live *live,
                           const struct oj_relation *relation,
                           const struct oj_gpu_live_rows *rows,
                           int64_t max_pairs, struct oj_gpu_live_pairs *out,
                           struct oj_error *err)
{
    struct all_pairs all = {};
    int64_t most = MOST_ROWS, n;
    all.relation = relation;
    all.max_pairs = max_pairs;
    all.out = out;
    out->offset = (int64_t *)oj_malloc(rows->n + 1, sizeof *out->offset);
    if (out->offset == NULL)
        return oj_fail_nomem(err, rows->n + 1, sizeof *out->offset);
    out->n_rows = rows->n;
    out->offset[0] = 0;
    OJ_TRY(reserve_pairs_within_limit(out, 1, 0, err));
    for (int64_t first = 0; first < rows->n; first += n)
    {
        oj_status status;
        n = oj_min_int64(most, rows->n - first);
        status = join_chunk(live, rows, first, n, &all, err);
        if (status == OJ_ERR_NOMEM && n > 1)
        {
            most = (n + 1) / 2;
            n = 0;
            continue;
        }
        OJ_TRY(status);
    }
    return OJ_OK;
}

oj_status oj_cuda_live_join(struct oj_gpu_live *live,
                            const struct oj_relation *relation,
                            const struct oj_gpu_live_rows *rows,
                            int64_t max_pairs, struct oj_gpu_live_pairs *out,
                            struct oj_error *err)
{
    struct oj_gpu_live_pairs pairs = {};
    oj_status status;
    if (oj_relation_is_nearest(relation) && relation->k > OJ_GPU_LIVE_MOST_K)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "a kept index on a GPU finds at most the %d nearest: "
                       "set a smaller k, or use backend cpu",
                       OJ_GPU_LIVE_MOST_K);
    pthread_mutex_lock(&live->lock);
    status = join_rows(live, relation, rows, max_pairs, &pairs, err);
    pthread_mutex_unlock(&live->lock);
    if (status == OJ_OK)
    {
        *out = pairs;
        return OJ_OK;
    }
    oj_free(pairs.offset);
    oj_free(pairs.id);
    oj_free(pairs.distance);
    return status;
}
