/** The record of a segment or point of the join side in device memory. */
#ifndef OJ_SEGMENT_RECORD_H
#define OJ_SEGMENT_RECORD_H

#include "../../../algs/foundations/kernels/oj_box.h"

/** A segment or edge from (ax, ay) to (bx, by), in the layer's direction. Its
 *  size and alignment, 32 bytes, are those of a memory sector of the GPU. */
struct __attribute__((aligned(32))) oj_cuda_segment
{
    double ax, ay, bx, by;
};

struct __attribute__((aligned(16))) oj_point_place
{
    double x, y;
};

OJ_FN struct oj_box oj_cuda_segment_box(const struct oj_cuda_segment *s)
{
    struct oj_box box;
    box.x0 = s->ax < s->bx ? s->ax : s->bx;
    box.y0 = s->ay < s->by ? s->ay : s->by;
    box.x1 = s->ax < s->bx ? s->bx : s->ax;
    box.y1 = s->ay < s->by ? s->by : s->ay;
    return box;
}

#endif
