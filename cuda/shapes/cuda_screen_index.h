/** The join side of a screen on each of its devices, and what batches keep. */
#ifndef CUDA_SCREEN_INDEX_H
#define CUDA_SCREEN_INDEX_H

#include "cuda_screen_rows.h"

enum
{
    OJ_CUDA_MOST_LANES = 64
};

struct oj_gpu_screen
{
    struct oj_screen_rule rule;
    struct oj_options options;
    int n_places;
    struct oj_cuda_screen_place *place;                  /**< [n_places] */
    struct oj_cuda_screen_lane lane[OJ_CUDA_MOST_LANES]; /**< i is on place
                                                              i % n_places */
};

#endif
