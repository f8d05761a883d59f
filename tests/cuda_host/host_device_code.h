/** Functions that device code may use beside C++: thread indexes, vectors,
 *  atomics, and synchronisation. */
#ifndef OJ_HOST_DEVICE_CODE_H
#define OJ_HOST_DEVICE_CODE_H

/* --- vectors -------------------------------------------------------------- */

struct uint3
{
    unsigned x, y, z;
};
struct alignas(8) uint2
{
    unsigned x, y;
};
struct alignas(16) uint4
{
    unsigned x, y, z, w;
};
struct alignas(16) float4
{
    float x, y, z, w;
};
struct alignas(16) double2
{
    double x, y;
};
struct dim3
{
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
        : x(x), y(y), z(z)
    {
    }
};

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

/* --- thread indexes ------------------------------------------------------- */

namespace oj_host
{
/** The device thread that this host thread currently runs. */
struct thread_place
{
    uint3 thread, block;
    dim3 block_size, grid_size;
    uint64_t serial;       /**< number of the block, unique in the process */
    unsigned char *shared; /**< shared memory of the block [SHARED_BYTES] */
};

extern __thread struct thread_place *now;

/** Prints a message and aborts: the module has a bug. */
[[noreturn]] void die(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/** Operations for which threads of a warp wait for each other. */
enum warp_meeting : uint8_t
{
    MEET_SYNC,
    MEET_BALLOT,
    MEET_ANY,
    MEET_ALL,
    MEET_MATCH,
    MEET_SHUFFLE,
    MEET_SHUFFLE_UP,
    MEET_SHUFFLE_XOR
};

/** Waits until all lanes of mask have called this function. Returns the result
 *  of the operation `what`. value is this lane's contribution. lane and width
 *  are arguments of a shuffle: a lane, a distance or a mask, as the shuffle
 *  takes it, and the width of groups. file and line are those of the call, for
 *  messages. */
uint64_t wait_for_lanes(enum warp_meeting what, unsigned mask, uint64_t value,
                        unsigned lane, unsigned width, const char *file,
                        int line);

/** Waits for all threads of the block. Returns how many of them have a value
 *  other than 0. file and line are those of the call, for messages. */
int wait_for_block(int value, const char *file, int line);

enum
{
    SHARED_BYTES = 1 << 20, /**< shared variables of all kernels together */
    /** bytes before each variable; they hold the serial number of the block
     *  that has initialised it */
    SHARED_HEAD = 64
};

/** Reserves a variable of size bytes in the shared memory of every block.
 *  Returns its offset. */
size_t shared_place(size_t size);

/** Returns the variable at offset place. When a block uses it first, fills it
 *  with a pattern, because shared memory is not initialised on a device. */
template <typename T> inline T &shared_memory(size_t place)
{
    unsigned char *head = now->shared + place;
    uint64_t serial;
    memcpy(&serial, head, sizeof serial);
    if (serial != now->serial)
    {
        memcpy(head, &now->serial, sizeof serial);
        memset(head + SHARED_HEAD, 0xA5, sizeof(T));
    }
    return *(T *)(head + SHARED_HEAD);
}

template <typename T>
inline T shuffle(enum warp_meeting what, unsigned mask, T value, unsigned lane,
                 unsigned width, const char *file, int line)
{
    static_assert(std::is_arithmetic<T>::value && sizeof(T) <= 8,
                  "CUDA has no such shuffle");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = wait_for_lanes(what, mask, bits, lane, width, file, line);
    memcpy(&value, &bits, sizeof value);
    return value;
}
} // namespace oj_host

#define threadIdx (::oj_host::now->thread)
#define blockIdx (::oj_host::now->block)
#define blockDim (::oj_host::now->block_size)
#define gridDim (::oj_host::now->grid_size)

/* --- synchronisation ------------------------------------------------------ */

#define OJ_HOST_HERE                                                           \
    const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void __syncthreads(OJ_HOST_HERE)
{
    (void)oj_host::wait_for_block(0, file, line);
}
static inline int __syncthreads_count(int value, OJ_HOST_HERE)
{
    return oj_host::wait_for_block(value, file, line);
}
static inline void __syncwarp(unsigned mask = ~0u, OJ_HOST_HERE)
{
    (void)oj_host::wait_for_lanes(oj_host::MEET_SYNC, mask, 0, 0, 32, file,
                                  line);
}
static inline unsigned __ballot_sync(unsigned mask, int value, OJ_HOST_HERE)
{
    return (unsigned)oj_host::wait_for_lanes(oj_host::MEET_BALLOT, mask,
                                             value != 0, 0, 32, file, line);
}
static inline int __any_sync(unsigned mask, int value, OJ_HOST_HERE)
{
    return (int)oj_host::wait_for_lanes(oj_host::MEET_ANY, mask, value != 0, 0,
                                        32, file, line);
}
static inline int __all_sync(unsigned mask, int value, OJ_HOST_HERE)
{
    return (int)oj_host::wait_for_lanes(oj_host::MEET_ALL, mask, value != 0, 0,
                                        32, file, line);
}
template <typename T>
static inline unsigned __match_any_sync(unsigned mask, T value, OJ_HOST_HERE)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return (unsigned)oj_host::wait_for_lanes(oj_host::MEET_MATCH, mask, bits, 0,
                                             32, file, line);
}
template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
                            OJ_HOST_HERE)
{
    return oj_host::shuffle(oj_host::MEET_SHUFFLE, mask, value, (unsigned)lane,
                            (unsigned)width, file, line);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned step,
                               int width = 32, OJ_HOST_HERE)
{
    return oj_host::shuffle(oj_host::MEET_SHUFFLE_UP, mask, value, step,
                            (unsigned)width, file, line);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits,
                                int width = 32, OJ_HOST_HERE)
{
    return oj_host::shuffle(oj_host::MEET_SHUFFLE_XOR, mask, value,
                            (unsigned)bits, (unsigned)width, file, line);
}

/* --- matrices ------------------------------------------------------------- */

/** Returns the value of a half-precision number, given by its 16 bits. */
static inline float oj_host_half(uint64_t half)
{
    int exponent = (int)(half >> 10 & 31), rest = (int)(half & 1023);
    float x = exponent == 0 ? ldexpf((float)rest, -24)
                            : ldexpf((float)(1024 + rest), exponent - 25);
    return (half & 0x8000) != 0 ? -x : x;
}

/** Emulates the instruction mma.m16n8k16 on halves: adds a * b to c. Each lane,
 *  4 g + t, passes the elements of the matrices that the instruction assigns to
 *  it. */
static inline void oj_host_multiply(float c[4], unsigned a0, unsigned a1,
                                    unsigned a2, unsigned a3, unsigned b0,
                                    unsigned b1, OJ_HOST_HERE)
{
    unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    uint64_t rows[2] = {a0 | (uint64_t)a1 << 32, a2 | (uint64_t)a3 << 32};
    uint64_t columns = b0 | (uint64_t)b1 << 32;
    for (unsigned of = 0; of < 4; of++)
    {
        uint64_t row[2], column[2];
        for (unsigned i = 0; i < 2; i++)
        {
            row[i] =
                __shfl_sync(~0u, rows[i], (int)(4 * g + of), 32, file, line);
            column[i] = __shfl_sync(~0u, columns, (int)(4 * (2 * t + i) + of),
                                    32, file, line);
        }
        for (unsigned e = 0; e < 4; e++)
        {
            for (unsigned k = 0; k < 4; k++)
            {
                uint64_t a = row[k / 2] >> (e / 2 * 32 + k % 2 * 16);
                uint64_t b = column[e % 2] >> (k * 16);
                c[e] += oj_host_half(a & 0xffff) * oj_host_half(b & 0xffff);
            }
        }
    }
}

/* --- memory --------------------------------------------------------------- */

static inline void __threadfence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Defines the atomic functions of a type. Only the types of CUDA's atomics have
 * them. */
#define OJ_HOST_ATOMICS(T)                                                     \
    static inline T atomicAdd(T *at, T value)                                  \
    {                                                                          \
        return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);                \
    }                                                                          \
    static inline T atomicOr(T *at, T value)                                   \
    {                                                                          \
        return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);                 \
    }                                                                          \
    static inline T atomicXor(T *at, T value)                                  \
    {                                                                          \
        return __atomic_fetch_xor(at, value, __ATOMIC_RELAXED);                \
    }                                                                          \
    static inline T atomicExch(T *at, T value)                                 \
    {                                                                          \
        return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);               \
    }                                                                          \
    static inline T atomicCAS(T *at, T old, T value)                           \
    {                                                                          \
        __atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_SEQ_CST,  \
                                    __ATOMIC_SEQ_CST);                         \
        return old;                                                            \
    }                                                                          \
    static inline T atomicMin(T *at, T value)                                  \
    {                                                                          \
        T old = __atomic_load_n(at, __ATOMIC_RELAXED);                         \
        while (value < old && !__atomic_compare_exchange_n(                    \
                                  at, &old, value, false, __ATOMIC_RELAXED,    \
                                  __ATOMIC_RELAXED))                           \
            ;                                                                  \
        return old;                                                            \
    }                                                                          \
    static inline T atomicMax(T *at, T value)                                  \
    {                                                                          \
        T old = __atomic_load_n(at, __ATOMIC_RELAXED);                         \
        while (value > old && !__atomic_compare_exchange_n(                    \
                                  at, &old, value, false, __ATOMIC_RELAXED,    \
                                  __ATOMIC_RELAXED))                           \
            ;                                                                  \
        return old;                                                            \
    }
OJ_HOST_ATOMICS(int)
OJ_HOST_ATOMICS(unsigned)
OJ_HOST_ATOMICS(unsigned long long)
#undef OJ_HOST_ATOMICS

static inline double atomicAdd(double *at, double value)
{
    double old, sum;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do
        sum = old + value;
    while (!__atomic_compare_exchange(at, &old, &sum, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
    return old;
}

/* Loads and stores of more than one word must be aligned to their size. */
template <typename T> static inline T __ldg(const T *at)
{
    T value;
    if ((uintptr_t)at % alignof(T) != 0)
        oj_host::die("a load of %zu bytes at %p is not aligned", sizeof(T),
                     (const void *)at);
    memcpy((void *)&value, (const void *)at, sizeof value);
    return value;
}
template <typename T> static inline T __ldcs(const T *at)
{
    return __ldg(at);
}
template <typename T> static inline T __ldcg(const T *at)
{
    return __ldg(at);
}
template <typename T> static inline void __stcs(T *at, T value)
{
    if ((uintptr_t)at % alignof(T) != 0)
        oj_host::die("a store of %zu bytes at %p is not aligned", sizeof(T),
                     (void *)at);
    memcpy((void *)at, (const void *)&value, sizeof value);
}
template <typename T> static inline void __stcg(T *at, T value)
{
    __stcs(at, value);
}

/* --- numbers -------------------------------------------------------------- */

static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __fdividef(float a, float b)
{
    return a / b;
}
static inline float __saturatef(float v)
{
    return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; /* 0 if v is NaN */
}
static inline float rsqrtf(float v)
{
    return 1.0f / sqrtf(v);
}
static inline long long __double_as_longlong(double v)
{
    long long bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
static inline double __longlong_as_double(long long bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static inline unsigned __float_as_uint(float v)
{
    unsigned bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

#endif
