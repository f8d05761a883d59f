#include "cuda_peers.h"

#include "cuda_copy.h"

/* Arrays with fewer bytes are copied from the host by each device itself. */
static const int64_t least_bytes = 1 << 20;

void oj_cuda_peers_init(struct oj_cuda_peers *peers)
{
    pthread_mutex_init(&peers->lock, NULL);
    pthread_cond_init(&peers->changed, NULL);
}

void oj_cuda_peers_destroy(struct oj_cuda_peers *peers)
{
    pthread_cond_destroy(&peers->changed);
    pthread_mutex_destroy(&peers->lock);
}

void oj_cuda_peers_begin(struct oj_cuda_peers *peers, int n)
{
    peers->n = n;
    peers->n_waiting = 0;
    peers->why.status = OJ_OK;
    peers->begun_by = pthread_self();
}

void oj_cuda_peers_fail(struct oj_cuda_peers *peers, const struct oj_error *why)
{
    pthread_mutex_lock(&peers->lock);
    if (peers->why.status == OJ_OK)
        peers->why = *why;
    pthread_cond_broadcast(&peers->changed);
    pthread_mutex_unlock(&peers->lock);
}

oj_status oj_cuda_peers_check(const struct oj_cuda_peers *peers,
                              struct oj_error *err)
{
    if (peers->n > 1 && pthread_equal(peers->begun_by, pthread_self()) != 0)
        return oj_fail(err, OJ_ERR_NOMEM, "cannot start a thread for each GPU");
    return OJ_OK;
}

oj_status oj_cuda_peers_wait_for_all(struct oj_cuda_peers *peers,
                                     struct oj_error *err)
{
    oj_status status;
    pthread_mutex_lock(&peers->lock);
    unsigned turn = peers->turn;
    if (++peers->n_waiting == peers->n)
    {
        peers->n_waiting = 0;
        peers->turn++;
        pthread_cond_broadcast(&peers->changed);
    }
    while (peers->turn == turn && peers->why.status == OJ_OK)
        pthread_cond_wait(&peers->changed, &peers->lock);
    status = peers->why.status;
    if (status != OJ_OK)
        status = oj_fail(err, status, "%s", peers->why.message);
    pthread_mutex_unlock(&peers->lock);
    return status;
}

/* Copies from the other devices the parts of an array that they have copied
 * from the host. */
static oj_status copy_from_peers(const struct oj_cuda_device *device,
                                 cudaStream_t stream, char *to, int64_t bytes,
                                 struct oj_error *err)
{
    const struct oj_cuda_peers *peers = device->peers;
    for (int i = 0; i < peers->n; i++)
    {
        int64_t from = bytes * i / peers->n, end = bytes * (i + 1) / peers->n;
        if (i != device->number)
            OJ_CUDA_TRY(cudaMemcpyPeerAsync(to + from, device->ordinal,
                                            peers->of[i].array + from,
                                            peers->of[i].ordinal,
                                            (size_t)(end - from), stream),
                        "copying arrays", err);
    }
    OJ_CUDA_TRY(cudaStreamSynchronize(stream), "copying arrays", err);
    return OJ_OK;
}

oj_status oj_cuda_copy_to_all(const struct oj_cuda_device *device,
                              cudaStream_t stream, void *to, const void *from,
                              int64_t bytes, struct oj_error *err)
{
    struct oj_cuda_peers *peers = device->peers;
    int i = device->number;
    int64_t first, end;
    if (peers == NULL || peers->n < 2 || bytes < least_bytes)
        return oj_cuda_copy_in(device, stream, to, from, bytes, err);
    first = bytes * i / peers->n;
    end = bytes * (i + 1) / peers->n;
    OJ_TRY(oj_cuda_copy_in(device, stream, (char *)to + first,
                           (const char *)from + first, end - first, err));
    OJ_CUDA_TRY(cudaStreamSynchronize(stream), "copying arrays", err);
    peers->of[i] = {(const char *)to, device->ordinal};
    OJ_TRY(oj_cuda_peers_wait_for_all(peers, err));
    OJ_TRY(copy_from_peers(device, stream, (char *)to, bytes, err));
    return oj_cuda_peers_wait_for_all(peers, err);
}

void oj_cuda_peers_link(const struct oj_cuda_device *device, const int *ordinal,
                        int n)
{
    for (int i = 0; i < n && device->pool != NULL; i++)
    {
        struct cudaMemAccessDesc access = {};
        int can = 0;
        access.location.type = cudaMemLocationTypeDevice;
        access.location.id = ordinal[i];
        access.flags = cudaMemAccessFlagsProtReadWrite;
        if (ordinal[i] != device->ordinal &&
            cudaDeviceCanAccessPeer(&can, ordinal[i], device->ordinal) ==
                cudaSuccess &&
            can)
            (void)cudaMemPoolSetAccess(device->pool, &access, 1);
        (void)cudaGetLastError();
    }
}
