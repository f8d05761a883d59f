/** The panel beside the map: title, legend with shares, pickups by hour. */
#ifndef MAP_PANEL_H
#define MAP_PANEL_H

#include "canvas.h"
#include "city.h"

#include <stdint.h>

struct panel_counts
{
    int64_t n_pickups, n_lots;
    int64_t n_matched;   /**< pickups with a lot in reach */
    int64_t n_inside;    /**< of them, inside their lot */
    double sum_distance; /**< of the matched, ft */
    int64_t by_use[CITY_N_USES];
    int64_t by_hour[24][CITY_N_USES];
};

struct panel_place
{
    double x0, y0, x1, y1; /**< pixels */
};

/** The colour of a land use, and of pickups without a lot. */
struct paint panel_paint(enum city_use use);
struct paint panel_unmatched_paint(void);

void panel_draw(struct canvas *canvas, const struct panel_place *place,
                const struct panel_counts *counts);

/** A bar of a round length from (x, y) on; feet: a pixel's side. */
void panel_scale_bar(struct canvas *canvas, double x, double y, double feet);

#endif
