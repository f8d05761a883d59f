#include "cpu_ring_cells.h"

#include "../base/cpu_vector.h"
#include "../base/oj_boxes.h"

/* The box of vertices in u and v, in lanes where there are many. */
OJ_INLINE struct oj_box box_of(const struct oj_ring_axes *axes, int is_turned,
                               const double *x, const double *y, int64_t n)
{
    double x0[OJ_LANES], y0[OJ_LANES], x1[OJ_LANES], y1[OJ_LANES];
    struct oj_box box = oj_box_empty();
    int64_t i = 0;
    if (n >= 2 * OJ_LANES)
    {
        OJ_EIGHT
        {
            x0[c] = y0[c] = INFINITY;
            x1[c] = y1[c] = -INFINITY;
        }
        for (; i + OJ_LANES <= n; i += OJ_LANES)
        {
            OJ_EIGHT
            {
                double px = x[i + c], py = y[i + c];
                double u = is_turned ? oj_ring_u(axes, px, py) : px;
                double v = is_turned ? oj_ring_v(axes, px, py) : py;
                x0[c] = u < x0[c] ? u : x0[c];
                y0[c] = v < y0[c] ? v : y0[c];
                x1[c] = u > x1[c] ? u : x1[c];
                y1[c] = v > y1[c] ? v : y1[c];
            }
        }
        for (int c = 0; c < OJ_LANES; c++)
        {
            box.x0 = x0[c] < box.x0 ? x0[c] : box.x0;
            box.y0 = y0[c] < box.y0 ? y0[c] : box.y0;
            box.x1 = x1[c] > box.x1 ? x1[c] : box.x1;
            box.y1 = y1[c] > box.y1 ? y1[c] : box.y1;
        }
    }
    for (; i < n; i++)
    {
        double u = is_turned ? oj_ring_u(axes, x[i], y[i]) : x[i];
        double v = is_turned ? oj_ring_v(axes, x[i], y[i]) : y[i];
        box.x0 = u < box.x0 ? u : box.x0;
        box.y0 = v < box.y0 ? v : box.y0;
        box.x1 = u > box.x1 ? u : box.x1;
        box.y1 = v > box.y1 ? v : box.y1;
    }
    return box;
}

/* The box of a ring in u and v.  In turned axes it is wider by more than the
 * rounding of u and v of any point in the ring. */
OJ_CLONES struct oj_box oj_ring_cells_box(const struct oj_ring_cells *cells,
                                          int64_t r)
{
    const struct oj_located_ring *ring = &cells->ring[r];
    const struct oj_ring_axes axes = cells->axes;
    const double *x = cells->flat->x + ring->first_vertex;
    const double *y = cells->flat->y + ring->first_vertex;
    struct oj_box box;
    double reach;
    if (!axes.is_turned && ring->grid >= 0)
    {
        const struct oj_edge_extent *e = &cells->grid[ring->grid].extent;
        box.x0 = e->x0, box.y0 = e->y0;
        box.x1 = e->x1, box.y1 = e->y1;
        return box;
    }
    if (!axes.is_turned)
        return box_of(&axes, 0, x, y, ring->n_vertices);
    box = box_of(&axes, 1, x, y, ring->n_vertices);
    reach = fmax(fabs(box.x0), fabs(box.x1)) + fmax(fabs(box.y0), fabs(box.y1));
    reach *= 1e-14;
    box.x0 -= reach;
    box.y0 -= reach;
    box.x1 += reach;
    box.y1 += reach;
    return box;
}

/* --- the axes ------------------------------------------------------------- */

#define N_DIRECTIONS                                                           \
    90 /* of a degree each: edges at right angles are alike                    \
        */
#define AXES_SAMPLES 256
#define AXES_VERTICES 24 /* rings of more say little about lots */
#define AXES_MEAN 48     /* nor do layers of more a ring */
#define AXES_SIZE 1e100  /* of coordinates, so that nothing overflows */

/* Product of width and height, summed over a sample of small rings. */
static double sum_areas(const struct oj_ring_cells *cells)
{
    double sum = 0.0;
    for (int64_t i = 0; i < AXES_SAMPLES; i++)
    {
        int64_t r = cells->n_rings * i / AXES_SAMPLES;
        struct oj_box box;
        if (cells->ring[r].n_vertices < 1 ||
            cells->ring[r].n_vertices > AXES_VERTICES)
            continue;
        box = oj_ring_cells_box(cells, r);
        sum += (box.x1 - box.x0) * (box.y1 - box.y0);
    }
    return sum;
}

/* The direction, in radians, in which most of the edges of a sample go, by
 * their length. NaN: none, or coordinates of no usual size. */
static double main_direction(const struct oj_ring_cells *cells)
{
    const double quarter = 1.5707963267948966;
    double length_in[N_DIRECTIONS] = {0.0}, sum_of[N_DIRECTIONS] = {0.0};
    int best = 0;
    for (int64_t i = 0; i < AXES_SAMPLES; i++)
    {
        int64_t r = cells->n_rings * i / AXES_SAMPLES;
        const struct oj_located_ring *ring = &cells->ring[r];
        const double *x = cells->flat->x + ring->first_vertex;
        const double *y = cells->flat->y + ring->first_vertex;
        if (ring->n_vertices > AXES_VERTICES)
            continue;
        for (int64_t v = 0; v + 1 < ring->n_vertices; v++)
        {
            double dx = x[v + 1] - x[v], dy = y[v + 1] - y[v];
            double length = fabs(dx) + fabs(dy), angle = atan2(dy, dx);
            int at;
            if (!(fabs(x[v]) + fabs(y[v]) < AXES_SIZE))
                return NAN;
            angle -= quarter * floor(angle / quarter);
            at = (int)(angle / quarter * N_DIRECTIONS);
            at = at < 0 ? 0 : at < N_DIRECTIONS ? at : N_DIRECTIONS - 1;
            length_in[at] += length;
            sum_of[at] += length * angle;
        }
    }
    for (int d = 1; d < N_DIRECTIONS; d++)
        best = length_in[d] > length_in[best] ? d : best;
    return sum_of[best] / length_in[best];
}

/* Turns the axes where that makes boxes smaller by more than it costs. */
void oj_ring_cells_choose_axes(struct oj_ring_cells *cells)
{
    struct oj_ring_axes turned = {1, 0.0, 0.0, 1.0, 0.0};
    double direction, plain;
    const struct oj_located_ring *middle = &cells->ring[cells->n_rings / 2];
    if (cells->flat->n_vertices > AXES_MEAN * cells->n_rings)
        return;
    direction = main_direction(cells);
    if (!(direction == direction) || middle->n_vertices < 1)
        return;
    plain = sum_areas(cells);
    turned.x0 = cells->flat->x[middle->first_vertex];
    turned.y0 = cells->flat->y[middle->first_vertex];
    turned.cos = cos(direction);
    turned.sin = sin(direction);
    if (!(fabs(turned.x0) + fabs(turned.y0) < AXES_SIZE))
        return;
    cells->axes = turned;
    if (!(sum_areas(cells) < 0.75 * plain))
        cells->axes.is_turned = 0;
}
