/* Checks that this machine generates exactly the city of every other machine,
 * by the checksums of seed 1. */
#include "nycgen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t sum_of_shapes(const struct nyc_shapes *shapes)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < shapes->n_vertices; i++)
        sum += nyc_sum_vertex((uint64_t)i, shapes->xy[2 * i],
                              shapes->xy[2 * i + 1]);
    for (int32_t i = 0; i <= shapes->n; i++)
        sum += nyc_mix((uint64_t)i << 33 ^ shapes->offset[i]);
    return sum;
}

static int check_sum_differs(const char *what, uint64_t sum, uint64_t expected)
{
    printf("%s %016" PRIx64 " expected %016" PRIx64 "\n", what, sum, expected);
    return sum != expected;
}

int main(void)
{
    const struct nyc_city city = nyc_city(1);
    struct nyc_shapes shapes;
    int32_t *blocks;
    const int32_t n_blocks = nyc_land_blocks(&city, &blocks);
    uint64_t sum = 0;
    int n_wrong = 0;
    if (n_blocks < 0)
        return 1;
    if (nyc_make_lots(&city, blocks, n_blocks, 735488, &shapes) != 0)
        return 1;
    n_wrong +=
        check_sum_differs("lots", sum_of_shapes(&shapes), 0x5de47abc37facadau);
    nyc_free_shapes(&shapes);
    if (nyc_make_streets(&city, blocks, n_blocks, &shapes) != 0)
        return 1;
    n_wrong += check_sum_differs("streets", sum_of_shapes(&shapes),
                                 0x9870b315d1b91639u);
    nyc_free_shapes(&shapes);
    for (uint64_t i = 0; i < 10000000; i++)
    {
        int32_t x, y;
        nyc_point(&city, blocks, n_blocks, i, &x, &y);
        sum += nyc_sum_vertex(i, x, y);
    }
    n_wrong += check_sum_differs("points", sum, 0x81f558cb77c688cfu);
    free(blocks);
    return n_wrong != 0;
}
