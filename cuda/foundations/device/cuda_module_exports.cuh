/** The functions that the module exports. struct oj_gpu_module documents them.
 *
 *    oj_cuda_index_*, device_of, order_streams   cuda/foundations/index
 *    oj_cuda_screen_*                            cuda/joins/shapes
 *    oj_cuda_quadrant_*                          cuda/papers */
#ifndef CUDA_MODULE_EXPORTS_CUH
#define CUDA_MODULE_EXPORTS_CUH

#include "../../../algs/foundations/relation/oj_gpu.h"

#include <type_traits>

/* Function type of a member (a pointer to a function) of oj_gpu_module. */
#define MEMBER(name) std::remove_pointer<decltype(oj_gpu_module::name)>::type

MEMBER(index) oj_cuda_index_make;
MEMBER(papers_index) oj_cuda_index_make_of_papers;
MEMBER(join) oj_cuda_index_join;
MEMBER(sum_pairs) oj_cuda_index_sum_pairs;
MEMBER(free_index) oj_cuda_index_free;
MEMBER(why_refused) oj_cuda_index_why_refused;

MEMBER(resident_index) oj_cuda_index_make_resident;
MEMBER(resident_join) oj_cuda_index_join_resident;
MEMBER(resident_free) oj_cuda_index_free_resident;
MEMBER(device_of) oj_cuda_resident_device_of_array;
MEMBER(order_streams) oj_cuda_resident_make_stream_wait;

MEMBER(screen_index) oj_cuda_screen_index;
MEMBER(screen_find) oj_cuda_screen_find;
MEMBER(screen_free) oj_cuda_screen_free;

MEMBER(quadrant_index) oj_cuda_quadrant_index;
MEMBER(quadrant_join) oj_cuda_quadrant_join;
MEMBER(quadrant_free) oj_cuda_quadrant_free;

MEMBER(live_new) oj_cuda_live_new;
MEMBER(live_apply) oj_cuda_live_apply;
MEMBER(live_join) oj_cuda_live_join;
MEMBER(live_points) oj_cuda_live_points;
MEMBER(live_count) oj_cuda_live_count;
MEMBER(live_free) oj_cuda_live_free;

#undef MEMBER

#endif
