#include "cuda_pace.h"

/* The fourth of a batch is not worth a piece of its own. */
static const int64_t first_rows = 256, least_rows = 64;

/* Of several workers that share a device, each has a piece under way.  Where
 * the walk of one row takes long, thousands take as long side by side: pieces
 * have to be so much longer than it that they grow. */
static const double piece_s = 0.5;

int64_t oj_cuda_pace_rows(const struct oj_cuda_pace *pace, int64_t left)
{
    double rows;
    if (pace->n_rows == 0)
        return left <= 4 * first_rows ? left : first_rows;
    if (pace->seconds * (double)left <= piece_s * (double)pace->n_rows)
        return left;
    rows = piece_s / pace->seconds * (double)pace->n_rows;
    if (rows > (double)least_rows)
        return (int64_t)rows;
    return left < least_rows ? left : least_rows;
}

void oj_cuda_pace_took(struct oj_cuda_pace *pace, int64_t n, double seconds)
{
    pace->n_rows = n;
    pace->seconds = seconds;
}
