#include "cuda_sizes.h"

#include <unistd.h>

/* Memory of the caller that is pinned: few large chunks keep both directions of
 * the bus busy.  Ordinary memory: as many threads as copy faster together; with
 * 170 million rows on 16 cores chunks of 64, 128, 256 and 512 thousand rows
 * took 209, 121, 80 and 69 ms, and with 1 million rows chunks of 16, 32, 128
 * and 256 thousand 4.0, 2.7, 1.8 and 1.9 ms. */
static const int64_t pinned_workers = 4, pinned_rows = 2 << 20;
static const int64_t most_staging_workers = 16, staged_rows = 512 << 10;
static const int64_t least_rows = 4096, few_rows = 128 << 10;

/* Of the memory that is free, slots and what families need for them get at
 * most this part; and at most so many bytes.  Pairs that wait may have half of
 * the rest. */
static const double slots_share = 0.5, spare_share = 0.25;
static const int64_t most_slot_bytes = (int64_t)4 << 30;

int64_t oj_cuda_room_on(const struct oj_cuda_device *device)
{
    size_t free_bytes = 0, total_bytes = 0;
    uint64_t reserved = 0, used = 0;
    int64_t room;
    (void)cudaSetDevice(device->ordinal);
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        (void)cudaGetLastError();
    if (device->pool != NULL &&
        cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrReservedMemCurrent,
                                &reserved) == cudaSuccess &&
        cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrUsedMemCurrent,
                                &used) == cudaSuccess &&
        reserved > used)
        free_bytes += (size_t)(reserved - used);
    room = (int64_t)free_bytes;
    if (device->limit > 0)
        room = oj_least(room, device->limit - device->used);
    return room;
}

static int64_t least_room(const struct oj_gpu_index *index)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < index->n_places; i++)
    {
        int64_t room = oj_cuda_room_on(&index->place[i].device);
        /* Slots of earlier batches are used again. */
        for (int s = 0; s < OJ_CUDA_MOST_SLOTS; s++)
        {
            if (index->slot[s].device == &index->place[i].device)
                room += index->slot[s].n_rows * OJ_CUDA_SLOT_ROW_BYTES;
        }
        least = oj_least(least, room);
    }
    return least;
}

static int64_t count_workers(const struct oj_gpu_index *index, int direct)
{
    int64_t n_threads = index->options.n_threads;
    int64_t n_places = index->n_places;
    if (direct)
        return oj_least(n_places * pinned_workers, OJ_CUDA_MOST_SLOTS);
    if (n_threads < 1)
        n_threads = oj_most(sysconf(_SC_NPROCESSORS_ONLN), 1);
    n_threads = oj_least(n_threads, most_staging_workers * n_places);
    return oj_least(oj_most(n_threads, 2 * n_places), OJ_CUDA_MOST_SLOTS);
}

/* Small batches, too, are cut, so that copies and kernels overlap. */
static int64_t rows_wanted(const struct oj_gpu_index *index, int64_t n_rows,
                           int64_t n_workers, int direct)
{
    int64_t n = direct ? pinned_rows : staged_rows;
    int64_t even = n_rows / (4 * n_workers) / least_rows * least_rows;
    if (index->options.gpu_batch > 0)
        return oj_least(index->options.gpu_batch, n_rows);
    return oj_least(oj_most(oj_least(n, even), few_rows), n_rows);
}

struct oj_cuda_sizes oj_cuda_choose_sizes(const struct oj_gpu_index *index,
                                          int family, int64_t n_rows,
                                          int direct)
{
    const struct oj_cuda_family *of = oj_cuda_family_at(family);
    int64_t n_places = index->n_places;
    int64_t n_workers = count_workers(index, direct);
    int64_t n = rows_wanted(index, n_rows, n_workers, direct);
    int64_t on_each = (n_workers + n_places - 1) / n_places;
    int64_t all = least_room(index);
    int64_t room = (int64_t)((double)all * slots_share);
    struct oj_cuda_sizes sizes;
    room = oj_least(room, most_slot_bytes);
    while (on_each > 1 || n > least_rows)
    {
        int64_t bytes = n * OJ_CUDA_SLOT_ROW_BYTES +
                        of->batch_bytes(index->place[0].of[family], n);
        if (bytes * on_each <= room)
            break;
        if (on_each > 2 || n <= least_rows)
            on_each--;
        else
            n = oj_most(n / 2, least_rows);
    }
    n_workers = oj_least(n_workers, on_each * n_places);
    sizes.chunk_rows = n;
    sizes.spare_bytes = (int64_t)((double)all * spare_share);
    sizes.n_workers = (int)oj_least(n_workers, (n_rows + n - 1) / n);
    return sizes;
}
