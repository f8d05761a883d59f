/** Stands for the CUDA Toolkit's header of this name when the sources of the
 *  module are compiled by the host's C++ compiler (see README.md).  Included
 *  before each source, as nvcc does: what nvcc defines is defined here.
 */
#ifndef OJ_HOST_CUDA_RUNTIME_H
#define OJ_HOST_CUDA_RUNTIME_H

/* All of the C++ library that is used: __noinline__ below is a word that its
 * headers write in another sense. */
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

/* What the module's sources may have and the host's warnings may not, to the
 * end of each: parameters that a kernel leaves out, loops that stay as they
 * are. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-parameter"
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 0
#define __CUDACC_VER_MINOR__ 0
/* Functions for both sides take the device's way on the host too: there is one
 * compilation for the two. */
#define __CUDA_ARCH__ 900
/* Where instructions are written as such. */
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
