/** Stands for the CUDA Toolkit's header of this name when the host's C++
 *  compiler compiles the module's sources (see README.md). It is included
 *  before each source, as by nvcc, and defines the macros that nvcc defines. */
#ifndef OJ_HOST_CUDA_RUNTIME_H
#define OJ_HOST_CUDA_RUNTIME_H

/* All C++ headers that are used come first. They use the word __noinline__,
 * which is a macro below, in another sense. */
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <queue>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include <math.h>
#include <stdint.h>

/* Disables warnings for constructs that the module may use: kernels with unused
 * parameters, loops that are not unrolled. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-parameter"
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 0
#define __CUDACC_VER_MINOR__ 0
/* Functions for host and device use their device version on the host, too,
 * because they are compiled only once. */
#define __CUDA_ARCH__ 900
/* Selects emulation instead of inline assembly. */
#define OJ_CUDA_HOST 1

#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)

#include "host_api.h"
#include "host_device_code.h"
#include "host_launch.h"

#endif
