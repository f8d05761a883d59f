#include "cuda_peers.h"

#include "cuda_copy.h"

/* How long the thread of a device polls for the other devices before it
 * sleeps. */
static const double most_polling_s = 5e-3;

/* Arrays with fewer bytes are copied from the host by each device itself. */
static const int64_t least_bytes = 1 << 20;

void oj_cuda_peer_barrier_init(struct oj_cuda_peer_barrier *peers)
{
    pthread_mutex_init(&peers->lock, NULL);
    pthread_cond_init(&peers->changed, NULL);
}

void oj_cuda_peer_barrier_destroy(struct oj_cuda_peer_barrier *peers)
{
    pthread_cond_destroy(&peers->changed);
    pthread_mutex_destroy(&peers->lock);
}

void oj_cuda_peer_barrier_begin(struct oj_cuda_peer_barrier *peers, int n)
{
    peers->n = n;
    peers->n_waiting = 0;
    peers->has_failed = 0;
    peers->why.status = OJ_OK;
    peers->begun_by = pthread_self();
}

void oj_cuda_peer_barrier_fail(struct oj_cuda_peer_barrier *peers,
                               const struct oj_error *why)
{
    pthread_mutex_lock(&peers->lock);
    if (peers->why.status == OJ_OK)
        peers->why = *why;
    __atomic_store_n(&peers->has_failed, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&peers->changed);
    pthread_mutex_unlock(&peers->lock);
}

oj_status
oj_cuda_peer_barrier_check_threads(const struct oj_cuda_peer_barrier *peers,
                                   struct oj_error *err)
{
    if (peers->n > 1 && pthread_equal(peers->begun_by, pthread_self()) != 0)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "cannot start a thread for each GPU; use fewer of "
                       "them (-gpu)");
    return OJ_OK;
}

oj_status oj_cuda_peer_barrier_wait_for_all(struct oj_cuda_peer_barrier *peers,
                                            struct oj_error *err)
{
    oj_status status;
    pthread_mutex_lock(&peers->lock);
    unsigned turn = peers->turn;
    if (++peers->n_waiting == peers->n)
    {
        peers->n_waiting = 0;
        __atomic_store_n(&peers->turn, turn + 1, __ATOMIC_RELAXED);
        pthread_cond_broadcast(&peers->changed);
    }
    pthread_mutex_unlock(&peers->lock);
    oj_cuda_threads_poll_until(
        most_polling_s,
        [=]()
        {
            return __atomic_load_n(&peers->turn, __ATOMIC_RELAXED) != turn ||
                   __atomic_load_n(&peers->has_failed, __ATOMIC_RELAXED);
        });
    pthread_mutex_lock(&peers->lock);
    while (peers->turn == turn && peers->why.status == OJ_OK)
        pthread_cond_wait(&peers->changed, &peers->lock);
    status = peers->why.status;
    if (status != OJ_OK)
        status = oj_fail(err, status, "%s", peers->why.message);
    pthread_mutex_unlock(&peers->lock);
    return status;
}

/* Copies the parts of array that the other devices hold, from their memory.
 * Device i holds bytes first[i] .. first[i + 1] - 1. */
static oj_status copy_parts_of_peers(const struct oj_cuda_device *device,
                                     cudaStream_t stream, char *array,
                                     const int64_t *first, struct oj_error *err)
{
    const struct oj_cuda_peer_barrier *peers = device->peers;
    for (int i = 0; i < peers->n; i++)
    {
        int64_t bytes = first[i + 1] - first[i];
        if (i != device->number && bytes > 0)
            OJ_CUDA_TRY(cudaMemcpyPeerAsync(array + first[i], device->ordinal,
                                            peers->of[i].array + first[i],
                                            peers->of[i].ordinal, (size_t)bytes,
                                            stream),
                        "copying arrays", err);
    }
    OJ_CUDA_TRY(cudaStreamSynchronize(stream), "copying arrays", err);
    return OJ_OK;
}

oj_status oj_cuda_peers_exchange(const struct oj_cuda_device *device,
                                 cudaStream_t stream, void *array,
                                 const int64_t *first, struct oj_error *err)
{
    struct oj_cuda_peer_barrier *peers = device->peers;
    OJ_CUDA_TRY(cudaStreamSynchronize(stream), "copying arrays", err);
    peers->of[device->number] = {(const char *)array, device->ordinal};
    OJ_TRY(oj_cuda_peer_barrier_wait_for_all(peers, err));
    OJ_TRY(copy_parts_of_peers(device, stream, (char *)array, first, err));
    return oj_cuda_peer_barrier_wait_for_all(peers, err);
}

oj_status oj_cuda_copy_to_all_peers(const struct oj_cuda_device *device,
                                    cudaStream_t stream, void *to,
                                    const void *from, int64_t bytes,
                                    struct oj_error *err)
{
    const struct oj_cuda_peer_barrier *peers = device->peers;
    int64_t first[OJ_GPU_MAX_DEVICES + 1], at;
    if (peers == NULL || peers->n < 2 || bytes < least_bytes)
        return oj_cuda_copy_in(device, stream, to, from, bytes, err);
    for (int i = 0; i <= peers->n; i++)
        first[i] = bytes * i / peers->n;
    at = first[device->number];
    OJ_TRY(oj_cuda_copy_in(device, stream, (char *)to + at,
                           (const char *)from + at,
                           first[device->number + 1] - at, err));
    return oj_cuda_peers_exchange(device, stream, to, first, err);
}

/* readers_of[i] is the mask of the devices that already have access to the
 * memory pool of device i. The access is granted once per process, because that
 * takes longer the more memory the pool has. */
static pthread_mutex_t link_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t readers_of[OJ_GPU_MAX_DEVICES];

static void let_device_read_pool(const struct oj_cuda_device *device,
                                 int reader)
{
    struct cudaMemAccessDesc access = {};
    int can = 0;
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = reader;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    if (cudaDeviceCanAccessPeer(&can, reader, device->ordinal) == cudaSuccess &&
        can)
        (void)cudaMemPoolSetAccess(device->pool, &access, 1);
    (void)cudaGetLastError();
}

void oj_cuda_peers_allow_reading(const struct oj_cuda_device *device,
                                 const int *ordinal, int n)
{
    uint64_t *readers = &readers_of[device->ordinal];
    pthread_mutex_lock(&link_lock);
    for (int i = 0; i < n && device->pool != NULL; i++)
    {
        uint64_t bit = (uint64_t)1 << ordinal[i];
        if (ordinal[i] != device->ordinal && (*readers & bit) == 0)
            let_device_read_pool(device, ordinal[i]);
        *readers |= bit;
    }
    pthread_mutex_unlock(&link_lock);
}
