/* Tests the emulated device. Kernels compute the right answers. Code whose
 * behaviour is undefined on a real device ends the process with a message that
 * names the place. Kind: unit. */
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

enum
{
    N = 64,
    BLOCK = 128,
    N_BLOCKS = 100
};

/* --- errors that end the process ------------------------------------------ */

static __global__ void never(int *out)
{
    if (threadIdx.x < 5)
        __syncwarp(0x3f);
    out[threadIdx.x] = 1;
}

static __global__ void elsewhere(int *out)
{
    if (threadIdx.x < 5)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

static __global__ void not_there(int *out)
{
    out[threadIdx.x] =
        __shfl_sync(0x0fu, (int)threadIdx.x, (int)threadIdx.x + 1);
}

static __global__ void behind(int *out)
{
    out[N + threadIdx.x] = 1;
}

static __global__ void not_aligned(uint4 *out, const char *at)
{
    out[0] = __ldg((const uint4 *)(at + 8));
}

static int *memory(int n)
{
    int *out = NULL;
    if (cudaMalloc((void **)&out, (size_t)n * sizeof *out) != cudaSuccess)
        exit(2);
    return out;
}

static void meet_never(void)
{
    never<<<1, 6>>>(memory(N));
}

static void meet_elsewhere(void)
{
    elsewhere<<<1, 6>>>(memory(N));
}

static void ask_who_is_not_there(void)
{
    not_there<<<1, 4>>>(memory(N));
}

static void write_behind(void)
{
    int *out = memory(N);
    behind<<<1, 1>>>(out);
    (void)cudaFree(out);
}

static void load_not_aligned(void)
{
    int *out = memory(N);
    not_aligned<<<1, 1>>>((uint4 *)out, (const char *)out);
}

static void copy_too_much(void)
{
    static int host[N + 1];
    (void)cudaMemcpy(host, memory(N), sizeof host, cudaMemcpyDeviceToHost);
}

static void copy_the_wrong_way(void)
{
    static int host[N];
    (void)cudaMemcpy(host, memory(N), sizeof host, cudaMemcpyHostToDevice);
}

static void free_twice(void)
{
    int *out = memory(N);
    (void)cudaFree(out);
    (void)cudaFree(out);
}

/* --- correct code --------------------------------------------------------- */

static __global__ void add_up(unsigned *out)
{
    __shared__ unsigned all;
    unsigned v = threadIdx.x, lanes = __match_any_sync(~0u, threadIdx.x % 4);
    if (threadIdx.x == 0)
        all = 0;
    if (__syncthreads_count(threadIdx.x % 3 == 0) != (BLOCK + 2) / 3)
        return;
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(~0u, v, step);
    if (threadIdx.x % 32 == 0 && lanes == 0x11111111u)
        atomicAdd(&all, v);
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = all + blockIdx.x;
}

static void sums(void)
{
    static unsigned host[N_BLOCKS];
    unsigned *out = (unsigned *)memory(N_BLOCKS);
    add_up<<<N_BLOCKS, BLOCK>>>(out);
    if (cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost) !=
            cudaSuccess ||
        cudaFree(out) != cudaSuccess)
        exit(3);
    for (unsigned i = 0; i < N_BLOCKS; i++)
    {
        if (host[i] != BLOCK * (BLOCK - 1) / 2 + i)
            exit(4);
    }
}

/* Tests errors that are returned and can be cleared. */
static void returned_errors(void)
{
    int *out = memory(N);
    void *more;
    never<<<0, 6>>>(out);
    if (cudaGetLastError() != cudaErrorInvalidConfiguration ||
        cudaGetLastError() != cudaSuccess ||
        cudaMalloc(&more, (size_t)1 << 50) != cudaErrorMemoryAllocation ||
        cudaFree(out) != cudaSuccess)
        exit(5);
}

/* --- trials --------------------------------------------------------------- */

struct emulator_trial
{
    const char *name;
    void (*body)(void);
    const char *words; /* expected in the message; NULL: success is expected */
};

static const struct emulator_trial trials[] = {
    {"meet never", meet_never, "is stuck"},
    {"meet elsewhere", meet_elsewhere, "is stuck"},
    {"ask who is not there", ask_who_is_not_there, "asks lane 4"},
    {"write behind", write_behind, ""},
    {"load not aligned", load_not_aligned, "a load of 16 bytes"},
    {"copy too much", copy_too_much, "260 bytes"},
    {"copy the wrong way", copy_the_wrong_way, "the wrong direction"},
    {"free twice", free_twice, "not allocated"},
    {"sums", sums, NULL},
    {"errors", returned_errors, NULL},
};

/* Runs a trial in a child process. Returns 1 if it ends as expected. */
static int passes(const struct emulator_trial *t)
{
    static char text[1 << 16];
    size_t n = 0;
    ssize_t more;
    int ends[2], status;
    pid_t child;
    fflush(stdout);
    if (pipe(ends) != 0 || (child = fork()) < 0)
        return 0;
    if (child == 0)
    {
        dup2(ends[1], STDERR_FILENO);
        t->body();
        (void)cudaDeviceSynchronize();
        _exit(0);
    }
    close(ends[1]);
    while (n + 1 < sizeof text &&
           (more = read(ends[0], text + n, sizeof text - n - 1)) > 0)
        n += (size_t)more;
    text[n] = '\0';
    close(ends[0]);
    if (waitpid(child, &status, 0) != child)
        return 0;
    if (t->words == NULL)
        return status == 0;
    return status != 0 && strstr(text, t->words) != NULL;
}

int main(void)
{
    int n_failed = 0, n = 0;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++, n++)
    {
        if (passes(&trials[i]))
            continue;
        printf("failed: %s\n", trials[i].name);
        n_failed++;
    }
    printf("%d trials, %d failed\n", n, n_failed);
    return n_failed != 0;
}
