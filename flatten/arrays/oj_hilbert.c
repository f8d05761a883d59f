#include "oj_hilbert.h"

/* Quadrant by quadrant, without branches: nobody could foresee them. */
static uint32_t code_of_cell(uint32_t x, uint32_t y)
{
    uint32_t code = 0;
    for (int k = 15; k >= 0; k--)
    {
        uint32_t right = x >> k & 1, up = y >> k & 1;
        uint32_t swap = up - 1, turn = swap & (0 - right), change;
        code = code << 2 | ((3 * right) ^ up);
        x ^= turn;
        y ^= turn;
        change = (x ^ y) & swap;
        x ^= change;
        y ^= change;
    }
    return code;
}

static uint32_t cell_of(double low, double high, double first, double size)
{
    double cell = 65535.0 * ((low + high) / 2.0 - first) / size;
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
