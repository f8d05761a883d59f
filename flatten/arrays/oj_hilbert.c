#include "oj_hilbert.h"

#include "../base/oj_array.h"

#include <math.h>
#include <string.h>

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

/* Two passes of 16 bits. */
oj_status oj_hilbert_sort(uint64_t *numbers, int64_t n, struct oj_error *err)
{
    uint64_t *from = numbers, *to = oj_malloc(n, sizeof *to), *swap;
    int64_t *start = oj_malloc(65536, sizeof *start);
    if (to == NULL || start == NULL)
    {
        oj_free(to);
        oj_free(start);
        return oj_fail_nomem(err, n, sizeof *to);
    }
    for (int shift = 32; shift < 64; shift += 16)
    {
        int64_t n_before = 0;
        memset(start, 0, 65536 * sizeof *start);
        for (int64_t i = 0; i < n; i++)
            start[from[i] >> shift & 65535]++;
        for (int d = 0; d < 65536; d++)
        {
            int64_t n_digit = start[d];
            start[d] = n_before;
            n_before += n_digit;
        }
        for (int64_t i = 0; i < n; i++)
            to[start[from[i] >> shift & 65535]++] = from[i];
        swap = from;
        from = to;
        to = swap;
    }
    oj_free(to); /* twice swapped: not numbers */
    oj_free(start);
    return OJ_OK;
}
