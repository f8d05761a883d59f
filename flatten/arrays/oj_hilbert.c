#include "oj_hilbert.h"

/* Table that encodes three levels of quadrants at once. One level, with one bit
 * of x and one of y, adds the two bits 3 x ^ y to the code. If y is 0, x and y
 * are swapped on the levels below, and also inverted there if x is 1.
 *
 *   index  [inverted][swapped][3 bits of x][3 bits of y]
 *   entry  inverted and swapped for the levels below | 6 bits of the code */
static const uint8_t three_levels[256] = {
    64,  1,   142, 79,  16,  147, 84,  21,  195, 2,   141, 204, 81,  82,  215,
    22,  4,   135, 8,   139, 222, 221, 88,  25,  69,  70,  73,  74,  31,  156,
    219, 26,  250, 249, 246, 245, 32,  163, 100, 37,  59,  184, 55,  180, 97,
    98,  231, 38,  124, 61,  178, 115, 238, 237, 104, 41,  255, 62,  177, 240,
    47,  172, 235, 42,  0,   131, 68,  5,   186, 123, 60,  191, 65,  66,  199,
    6,   185, 248, 125, 126, 206, 205, 72,  9,   182, 119, 242, 241, 15,  140,
    203, 10,  181, 244, 51,  176, 80,  17,  158, 95,  96,  33,  174, 111, 211,
    18,  157, 220, 227, 34,  173, 236, 20,  151, 24,  155, 36,  167, 40,  171,
    85,  86,  89,  90,  101, 102, 105, 106, 170, 107, 44,  175, 112, 49,  190,
    127, 169, 232, 109, 110, 243, 50,  189, 252, 166, 103, 226, 225, 52,  183,
    56,  187, 165, 228, 35,  160, 117, 118, 121, 122, 154, 91,  28,  159, 202,
    201, 198, 197, 153, 216, 93,  94,  11,  136, 7,   132, 150, 87,  210, 209,
    76,  13,  130, 67,  149, 212, 19,  144, 207, 14,  129, 192, 234, 233, 230,
    229, 218, 217, 214, 213, 43,  168, 39,  164, 27,  152, 23,  148, 108, 45,
    162, 99,  92,  29,  146, 83,  239, 46,  161, 224, 223, 30,  145, 208, 48,
    179, 116, 53,  138, 75,  12,  143, 113, 114, 247, 54,  137, 200, 77,  78,
    254, 253, 120, 57,  134, 71,  194, 193, 63,  188, 251, 58,  133, 196, 3,
    128,
};

static uint32_t code_of_cell(uint32_t x, uint32_t y)
{
    uint32_t code = 0, entry = 0;
    /* The loop runs for 18 levels although coordinates have 16 bits: the top
     * two levels are 0 and have no effect. */
    for (int k = 15; k >= 0; k -= 3)
    {
        entry = three_levels[(entry & 192) | (x >> k & 7) << 3 | (y >> k & 7)];
        code = code << 6 | (entry & 63);
    }
    return code;
}

static uint32_t hilbert_cell_of(double low, double high, double first,
                                double size)
{
    double cell = 65535.0 * ((low + high) / 2.0 - first) / size;
    return cell > 0.0 ? cell < 65535.0 ? (uint32_t)cell : 65535 : 0;
}

uint32_t oj_hilbert_code(const double box[4], const double extent[4])
{
    return code_of_cell(
        hilbert_cell_of(box[0], box[2], extent[0], extent[2] - extent[0]),
        hilbert_cell_of(box[1], box[3], extent[1], extent[3] - extent[1]));
}

/* Sorts by a radix sort of 11 bits at a time. */
void oj_hilbert_sort(uint64_t *order[2], int64_t n)
{
    for (int shift = 32; shift < 64; shift += 11)
    {
        int64_t start[2048] = {0}, sum = 0;
        uint64_t *from = order[0];
        for (int64_t i = 0; i < n; i++)
            start[from[i] >> shift & 2047]++;
        if (n > 0 && start[from[0] >> shift & 2047] == n)
            continue; /* all numbers are equal in this digit */
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
