#include "cuda_pace.h"

/* The first piece costs some 0.1 ms more than its rows; the fourth of a batch
 * is not worth it. */
static const int64_t first_rows = 256, least_rows = 64;

/* Of several workers that share a device, each has a piece under way. */
static const double piece_s = 0.1;

int64_t oj_cuda_pace_rows(const struct oj_cuda_pace *pace, int64_t left)
{
    double rows;
    if (pace->row_s <= 0.0)
        return left <= 4 * first_rows ? left : first_rows;
    rows = piece_s / pace->row_s;
    if (rows >= (double)left)
        return left;
    if (rows > (double)least_rows)
        return (int64_t)rows;
    return left < least_rows ? left : least_rows;
}

void oj_cuda_pace_took(struct oj_cuda_pace *pace, int64_t n, double seconds)
{
    pace->row_s = seconds / (double)n;
}
