/* Where the cells of a layer of rings lie, and how large they are. */
#include "../../flatten/base/oj_compare.h"
#include "cpu_ring_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cells for each ring. More cost memory, and with it time, to build and to look
 * up; fewer leave more rings to be told apart in each. */
#define CELLS_PER_RING 1.0
#define CELLS_PER_RING_OF_FEW 4.0
#define FEW_RINGS 4096
#define MOST_CELLS (1 << 26)
#define MOST_ALONG (1 << 22) /* along one axis: steps are 32-bit */

#define N_SAMPLES 1024

/* So few sampled rings far away do not count, 1 + n / FAR_OF at each end, if
 * the others lie within 1 / FAR_DEVIATIONS of the length. */
#define FAR_OF 64
#define FAR_DEVIATIONS 6.0

struct ring_sample
{
    struct oj_box all;
    double width, height;                         /* of a ring, on average */
    double low[2][N_SAMPLES], high[2][N_SAMPLES]; /* of rings, in x and y */
};

/* Shortens the extent of the sampled rings along an axis where a few lie so far
 * away that the others would share a cell.  Steps are clamped to the frame, so
 * none is lost. */
static void leave_out_far(int64_t n, double *low, double *high, double *first,
                          double *last)
{
    double length = *last - *first, sum = 0.0, sum_squares = 0.0, mean;
    int64_t n_far = 1 + n / FAR_OF;
    if (n < FAR_OF / 4)
        return;
    for (int64_t i = 0; i < n; i++)
    {
        double at = (low[i] - *first) / length;
        sum += at;
        sum_squares += at * at;
    }
    mean = sum / (double)n;
    /* of evenly spread rings the length is 3.5 standard deviations */
    if (!(sum_squares / (double)n - mean * mean <
          1.0 / (FAR_DEVIATIONS * FAR_DEVIATIONS)))
        return;
    qsort(low, (size_t)n, sizeof *low, oj_compare_doubles);
    qsort(high, (size_t)n, sizeof *high, oj_compare_doubles);
    if (high[n - 1 - n_far] - low[n_far] < length / FAR_DEVIATIONS)
    {
        *first = low[n_far];
        *last = high[n - 1 - n_far];
    }
}

/* Rings at even distances, what of them is in clip. */
static void take_sample(const struct oj_ring_cells *cells, const int32_t *ring,
                        int64_t n_rings, const struct oj_box *clip,
                        struct ring_sample *s)
{
    int64_t n = n_rings < N_SAMPLES ? n_rings : N_SAMPLES, n_taken = 0;
    s->all = oj_box_empty();
    s->width = s->height = 0.0;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = n == n_rings
                         ? i
                         : (int64_t)((double)n_rings / (double)n * (double)i);
        int64_t r = ring != NULL ? ring[at] : at;
        struct oj_box box;
        if (cells->ring[r].n_vertices < 1)
            continue;
        box = oj_ring_cells_box(cells, r);
        box.x0 = fmin(fmax(box.x0, clip->x0), clip->x1);
        box.y0 = fmin(fmax(box.y0, clip->y0), clip->y1);
        box.x1 = fmin(fmax(box.x1, clip->x0), clip->x1);
        box.y1 = fmin(fmax(box.y1, clip->y0), clip->y1);
        oj_box_add_box(&s->all, &box);
        s->width += (box.x1 - box.x0) / (double)n;
        s->height += (box.y1 - box.y0) / (double)n;
        s->low[0][n_taken] = box.x0;
        s->low[1][n_taken] = box.y0;
        s->high[0][n_taken] = box.x1;
        s->high[1][n_taken] = box.y1;
        n_taken++;
    }
    if (n_taken == 0)
        memset(&s->all, 0, sizeof s->all);
    leave_out_far(n_taken, s->low[0], s->high[0], &s->all.x0, &s->all.x1);
    leave_out_far(n_taken, s->low[1], s->high[1], &s->all.y0, &s->all.y1);
}

static double within(double v, double least, double most)
{
    return v > least ? v < most ? v : most : least;
}

/* Cells along an axis of this length; a length of 0 or beyond all numbers is
 * one cell. */
static int32_t count_along(double length, double cell, double most)
{
    if (!(length > 0.0) || !(length < INFINITY) || !(cell > 0.0))
        return 1;
    return (int32_t)within(ceil(length / cell), 1.0, most);
}

static double scale_of(double length, int32_t n)
{
    double scale = (double)n * OJ_CELL_STEPS / length;
    return length > 0.0 && scale > 0.0 && scale < INFINITY ? scale : 0.0;
}

/* Cells about as many as rings, of the shape of an average ring's box, but not
 * much smaller than that. */
void oj_ring_cells_choose_frame(const struct oj_ring_cells *cells,
                                const int32_t *ring, int64_t n_rings,
                                const struct oj_box *clip, int is_last,
                                struct oj_ring_layer *layer)
{
    struct ring_sample s;
    double most = is_last ? OJ_LAST_ALONG : MOST_ALONG;
    double n = (double)n_rings;
    double target = n < FEW_RINGS ? n * CELLS_PER_RING_OF_FEW + 64.0
                                  : fmax(n * CELLS_PER_RING, 4.0 * FEW_RINGS);
    double width, height, shape, side;
    take_sample(cells, ring, n_rings, clip, &s);
    width = s.all.x1 - s.all.x0;
    height = s.all.y1 - s.all.y0;
    shape = sqrt(s.width / s.height);
    shape = shape > 0.0 ? within(shape, 1.0 / 16.0, 16.0) : 1.0;
    target = fmin(target, MOST_CELLS);
    /* a rim without rings, for the points that are outside of all */
    layer->x0 = s.all.x0 - width / 64.0;
    layer->y0 = s.all.y0 - height / 64.0;
    width += width / 32.0;
    height += height / 32.0;
    side = sqrt(width / target) * sqrt(height);
    layer->nx = count_along(width, fmax(side * shape, s.width / 4.0), most);
    layer->ny = count_along(height, fmax(side / shape, s.height / 4.0),
                            within(2.0 * target / layer->nx, 1.0, most));
    layer->scale_x = scale_of(width, layer->nx);
    layer->scale_y = scale_of(height, layer->ny);
    layer->last_x = (double)layer->nx * OJ_CELL_STEPS - 1.0;
    layer->last_y = (double)layer->ny * OJ_CELL_STEPS - 1.0;
}
