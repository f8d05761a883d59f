/* Example of the C library: the nearest of two lots for each of five pickups,
 * from plain arrays, without OGR.
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

static int join(struct ogrjoin_layer *lots, struct ogrjoin_layer *pickups,
                struct ogrjoin_pairs **pairs, struct ogrjoin_error *err)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    struct ogrjoin_index *index = NULL;
    int status = ogrjoin_set_text(settings, "op", "nearest", err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_set_number(settings, "max_distance", 100, err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_index_new(lots, settings, &index, err);
    if (status == OGRJOIN_OK) /* any number of input layers may be joined with
                                 one index */
        status = ogrjoin_join(index, pickups, pairs, err);
    ogrjoin_index_free(index);
    ogrjoin_settings_free(settings);
    return status;
}

int main(void)
{
    /* Rings in sequence; the first vertex of each is repeated at its end. */
    static const double lot_x[] = {0,  50, 50, 0,   0,   20, 20, 30,
                                   30, 20, 80, 110, 110, 80, 80};
    static const double lot_y[] = {0,  0,  50, 50, 0,  20, 30, 30,
                                   20, 20, 0,  0,  30, 30, 0};
    /* offsets of the rings' vertices */
    static const int64_t vertex_offset[] = {0, 5, 10, 15};
    /* offsets of the parts' rings */
    static const int64_t ring_offset[] = {0, 2, 3};
    /* offsets of the lots' parts */
    static const int64_t part_offset[] = {0, 1, 2};
    static const uint8_t part_kind[] = {OGRJOIN_POLYGON, OGRJOIN_POLYGON};
    static const int64_t id[] = {10, 20};
    const struct ogrjoin_arrays lot_arrays = {.size = sizeof lot_arrays,
                                              .n_features = 2,
                                              .n_parts = 2,
                                              .n_rings = 3,
                                              .n_vertices = 15,
                                              .part_offset = part_offset,
                                              .part_kind = part_kind,
                                              .ring_offset = ring_offset,
                                              .vertex_offset = vertex_offset,
                                              .x = lot_x,
                                              .y = lot_y,
                                              .id = id};

    /* Layers of points need no offsets. */
    static const double pickup_x[] = {10, 25, -10, 60, 5000};
    static const double pickup_y[] = {10, 25, 25, 20, 5000};
    const struct ogrjoin_arrays pickup_arrays = {.size = sizeof pickup_arrays,
                                                 .n_features = 5,
                                                 .n_vertices = 5,
                                                 .x = pickup_x,
                                                 .y = pickup_y};

    struct ogrjoin_layer *lots = NULL, *pickups = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    int status = ogrjoin_layer_from_arrays(&lot_arrays, &lots, &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_layer_from_arrays(&pickup_arrays, &pickups, &err);
    if (status == OGRJOIN_OK)
        status = join(lots, pickups, &pairs, &err);
    if (status == OGRJOIN_OK)
        for (int64_t i = 0; i < ogrjoin_pairs_count(pairs); i++)
            printf("pickup %d: lot %d, %g ft\n",
                   (int)ogrjoin_pairs_left(pairs)[i],
                   (int)id[ogrjoin_pairs_right(pairs)[i]],
                   ogrjoin_pairs_measure(pairs)[i]);
    else
        fprintf(stderr, "%s: %s\n", ogrjoin_status_name(status), err.message);

    ogrjoin_pairs_free(pairs);
    ogrjoin_layer_free(pickups);
    ogrjoin_layer_free(lots);
    return status == OGRJOIN_OK ? 0 : 1;
}
