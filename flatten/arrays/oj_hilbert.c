#include "oj_hilbert.h"

#include <math.h>

/* Quadrant by quadrant. */
static uint32_t code_of_cell(uint32_t x, uint32_t y)
{
    uint32_t code = 0;
    for (uint32_t s = 1u << 15; s > 0; s >>= 1)
    {
        uint32_t right = (x & s) != 0, up = (y & s) != 0, swap;
        code = code << 2 | ((3 * right) ^ up);
        if (up)
            continue;
        if (right) /* the quadrant is turned over */
        {
            x = ~x;
            y = ~y;
        }
        swap = x;
        x = y;
        y = swap;
    }
    return code;
}

static uint32_t cell_of(double low, double high, double first, double size)
{
    double cell = floor(65535.0 * ((low + high) / 2.0 - first) / size);
    return cell > 0.0 ? cell < 65535.0 ? (uint32_t)cell : 65535 : 0;
}

uint32_t oj_hilbert_code(const double box[4], const double extent[4])
{
    return code_of_cell(
        cell_of(box[0], box[2], extent[0], extent[2] - extent[0]),
        cell_of(box[1], box[3], extent[1], extent[3] - extent[1]));
}

/* 11 bits at a time. */
void oj_hilbert_sort(uint64_t *order[2], int64_t n)
{
    for (int shift = 32; shift < 64; shift += 11)
    {
        int64_t start[2048] = {0}, sum = 0;
        uint64_t *from = order[0];
        for (int64_t i = 0; i < n; i++)
            start[from[i] >> shift & 2047]++;
        if (n > 0 && start[from[0] >> shift & 2047] == n)
            continue; /* all are equal */
        for (int d = 0; d < 2048; d++)
        {
            int64_t n_digit = start[d];
            start[d] = sum;
            sum += n_digit;
        }
        for (int64_t i = 0; i < n; i++)
            order[1][start[from[i] >> shift & 2047]++] = from[i];
        order[0] = order[1];
        order[1] = from;
    }
}
