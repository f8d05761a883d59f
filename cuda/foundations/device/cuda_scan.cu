#include "cuda_stream_work.cuh"

#include <cub/device/device_scan.cuh>

struct greater_word
{
    __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return a > b ? a : b;
    }
};

struct five_words
{
    uint32_t word[5];

    __device__ five_words operator+(const five_words &other) const
    {
        five_words sum;
        for (int i = 0; i < 5; i++)
            sum.word[i] = word[i] + other.word[i];
        return sum;
    }
};

template <typename T>
static oj_status scan_in_place(struct oj_cuda_work *work, T *counts, int64_t n)
{
    return work->run_with_scratch_memory(
        [&](void *temporary, size_t &bytes)
        {
            return cub::DeviceScan::ExclusiveSum(temporary, bytes, counts,
                                                 counts, n + 1, work->stream);
        });
}

oj_status oj_cuda_work::scan_words(uint32_t *counts, int64_t n)
{
    return scan_in_place(this, counts, n);
}

oj_status oj_cuda_work::scan_words(uint64_t *counts, int64_t n)
{
    return scan_in_place(this, counts, n);
}

oj_status oj_cuda_work::scan_groups_of_five(uint32_t (*counts)[5], int64_t n)
{
    return scan_in_place(this, (struct five_words *)counts, n);
}

oj_status oj_cuda_work::scan_running_maximum(uint32_t *value, int64_t n)
{
    return run_with_scratch_memory(
        [&](void *temporary, size_t &bytes)
        {
            return cub::DeviceScan::InclusiveScan(
                temporary, bytes, value, value, greater_word(), (int)n, stream);
        });
}
