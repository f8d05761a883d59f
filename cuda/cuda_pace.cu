#include "cuda_pace.h"

/* The fourth of a batch is not worth a piece of its own. */
static const int64_t first_rows = 256, least_rows = 64;

/* Of several workers that share a device, each has a piece under way. */
static const double piece_s = 0.1;

/* Of a piece, however few its rows are: waiting for others, and for the slowest
 * of its rows, beside which a device has room for thousands. */
static const double start_s = 0.005;

int64_t oj_cuda_pace_rows(const struct oj_cuda_pace *pace, int64_t left)
{
    double rows;
    if (!pace->is_known)
        return left <= 4 * first_rows ? left : first_rows;
    if (pace->row_s * (double)left <= piece_s)
        return left;
    rows = piece_s / pace->row_s;
    if (rows > (double)least_rows)
        return (int64_t)rows;
    return left < least_rows ? left : least_rows;
}

void oj_cuda_pace_took(struct oj_cuda_pace *pace, int64_t n, double seconds)
{
    pace->is_known = 1;
    pace->row_s = seconds > start_s ? (seconds - start_s) / (double)n : 0.0;
}
