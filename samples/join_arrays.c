/* The C library by example: the nearest of two lots for each of five pickups,
 * from plain arrays, without any OGR.
 *
 *   cc join_arrays.c $(pkg-config --cflags --libs ogrjoin) -o join_arrays
 *
 *   y
 *  50  +---------+                      pickups, by row:
 *      | lot 10  |                        0  inside lot 10
 *      |  +---+  |   +------+             1  in its courtyard, which is a hole
 *  20  |  | 1 |  | 3 | lot  |             2  ten feet to its left
 *      |  +---+  |   |  20  |             3  between the two lots
 *   0  +---------+   +------+             4  far from everything
 *      0        50  80    110   x
 */
#include <ogrjoin.h>

#include <stdio.h>

int main(void)
{
    /* Rings one after the other; the first vertex of each is repeated. */
    static const double lot_x[] = {0,  50, 50, 0,   0,   20, 20, 30,
                                   30, 20, 80, 110, 110, 80, 80};
    static const double lot_y[] = {0,  0,  50, 50, 0,  20, 30, 30,
                                   20, 20, 0,  0,  30, 30, 0};
    static const int64_t vertex_offset[] = {0, 5, 10, 15}; /* of each ring */
    static const int64_t ring_offset[] = {0, 2, 3};        /* of each part */
    static const int64_t part_offset[] = {0, 1, 2};        /* of each lot */
    static const uint8_t part_kind[] = {OJ_PART_POLYGON, OJ_PART_POLYGON};
    static const int64_t fid[] = {10, 20};
    const struct oj_flat lots = {.n_features = 2,
                                 .n_parts = 2,
                                 .n_rings = 3,
                                 .n_vertices = 15,
                                 .part_kinds = OJ_PART_POLYGON,
                                 .fid = fid,
                                 .part_offset = part_offset,
                                 .part_kind = part_kind,
                                 .ring_offset = ring_offset,
                                 .vertex_offset = vertex_offset,
                                 .x = lot_x,
                                 .y = lot_y};

    /* Layers of points need no offsets. */
    static const double pickup_x[] = {10, 25, -10, 60, 5000};
    static const double pickup_y[] = {10, 25, 25, 20, 5000};
    const struct oj_flat pickups = {.n_features = 5,
                                    .n_parts = 5,
                                    .n_rings = 5,
                                    .n_vertices = 5,
                                    .part_kinds = OJ_PART_POINT,
                                    .x = pickup_x,
                                    .y = pickup_y};

    struct oj_relation relation = oj_relation_default(); /* nearest */
    struct oj_matches matches = {0};
    struct oj_join *join = NULL;
    struct oj_error err = {OJ_OK, ""};
    oj_status status;

    relation.max_distance = 100;
    status = oj_flat_check(&lots, &err);
    if (status == OJ_OK)
        status = oj_join_open(&lots, &relation, NULL, NULL, &join, &err);
    if (status == OJ_OK) /* any number of batches may follow */
        status = oj_join_batch(join, &pickups, &matches, &err);
    if (status == OJ_OK)
        for (int64_t row = 0; row < matches.n_rows; row++)
        {
            if (matches.join_row[row] < 0)
                printf("pickup %d: nothing within 100 ft\n", (int)row);
            else
                printf("pickup %d: lot %d, %g ft\n", (int)row,
                       (int)fid[matches.join_row[row]], matches.measure[row]);
        }
    else
        fprintf(stderr, "%s: %s\n", oj_status_name(status), err.message);

    oj_matches_free(&matches);
    oj_join_close(join);
    return status == OJ_OK ? 0 : 1;
}
