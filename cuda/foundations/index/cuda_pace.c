#include "cuda_pace.h"

/* rows of the first piece; minimum rows of a piece that is split off a batch */
static const int64_t first_rows = 256, least_rows = 64;

/* Target time of a piece. Several workers share a device, and each has one
 * piece running. A single row can take long, while thousands of rows in
 * parallel take no longer than one; so pieces grow until they take much longer
 * than one row. */
static const double piece_s = 0.5;

int64_t oj_cuda_pace_next_rows(const struct oj_cuda_pace *pace, int64_t left)
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

void oj_cuda_pace_record(struct oj_cuda_pace *pace, int64_t n, double seconds)
{
    pace->n_rows = n;
    pace->seconds = seconds;
}
