#include "quadrant_pass.h"
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../base/cpu_threads.h"
#include "flat_distance.h"

#include <string.h>

/* Pairs held at a time: 32 MB. */
#define SLICE_PAIRS ((int64_t)1 << 23)

/* The quadrants first <= q < end of a pass, and their pairs. */
struct slice
{
    struct oj_quadrant_pass *pass;
    int64_t first, end;
    int64_t *offset;  /* [quadrants] where a quadrant's features start */
    int64_t *n_found; /* [quadrants] counted entries, then features found */
    int32_t *feature;
    int64_t capacity;
};

/* The quadrant's box with its points' share of rounding added. */
static struct oj_box window_of(const struct slice *slice, int64_t q)
{
    return oj_box_around(&slice->pass->quadrants->quadrant[q].box, 0.0);
}

static void count_task(int64_t q, int thread, void *user)
{
    struct slice *slice = user;
    struct oj_box window = window_of(slice, q);
    (void)thread;
    slice->n_found[q] = oj_quadrant_grid_count(slice->pass->grid, &window);
}

static void fill_task(int64_t task, int thread, void *user)
{
    struct slice *slice = user;
    int64_t q = slice->first + task;
    struct oj_box window = window_of(slice, q);
    (void)thread;
    slice->n_found[q] = oj_quadrant_grid_gather(
        slice->pass->grid, &window, slice->feature + slice->offset[q]);
}

/* Keeps of n features those that may be among the k nearest of some point in
 * window: the k-th least of the largest distances bounds every point's k-th. */
static oj_status prune(struct oj_quadrant_worker *worker,
                       const struct oj_boxes *boxes,
                       const struct oj_box *window, int32_t *feature,
                       int64_t *n, struct oj_error *err)
{
    struct oj_ranking *nearest = &worker->nearest;
    int64_t n_kept = 0;
    oj_ranking_start(nearest);
    for (int64_t i = 0; i < *n; i++)
        OJ_TRY(oj_ranking_add(nearest, feature[i],
                              oj_box_farthest(window, &boxes->box[feature[i]]),
                              err));
    oj_ranking_finish(nearest);
    if (nearest->n < nearest->k)
        return OJ_OK;
    for (int64_t i = 0; i < *n; i++)
    {
        if (oj_box_distance(window, &boxes->box[feature[i]]) <=
            nearest->list[nearest->k - 1].distance)
            feature[n_kept++] = feature[i];
    }
    *n = n_kept;
    return OJ_OK;
}

/* Ranks n features for point p, passing over those whose box is out of reach
 * of this point of the quadrant. */
static oj_status rank_point(const struct oj_quadrant_pass *pass,
                            struct oj_quadrant_worker *worker, int64_t p,
                            const int32_t *feature, int64_t n,
                            struct oj_error *err)
{
    double x = pass->points->x[p], y = pass->points->y[p];
    struct oj_box at = {x, y, x, y}, around = oj_box_around(&at, 0.0);
    struct oj_box window = oj_box_around(&at, pass->grid->reach);
    struct oj_ranking *ranking = &worker->ranking;
    oj_ranking_start(ranking);
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_box *box = &pass->boxes->box[feature[i]];
        double distance;
        if (!oj_box_intersects(&window, box) ||
            (pass->is_growing &&
             oj_box_distance(&around, box) > ranking->bound))
            continue;
        worker->n_candidates++;
        distance = oj_flat_distance(pass->flat, feature[i],
                                    pass->relation->distance_to, x, y);
        OJ_TRY(oj_ranking_add(ranking, feature[i], distance, err));
    }
    oj_ranking_finish(ranking);
    return OJ_OK;
}

static int is_settled(const struct oj_quadrant_pass *pass,
                      const struct oj_ranking *ranking)
{
    double reach = pass->grid->reach;
    /* without cells every feature was a candidate */
    if (!pass->grid->has_cells || reach >= ranking->max_distance)
        return 1;
    return ranking->n >= ranking->k &&
           ranking->list[ranking->k - 1].distance <= reach;
}

static oj_status refine_task(int64_t task, int thread, void *user,
                             struct oj_error *err)
{
    struct slice *slice = user;
    struct oj_quadrant_pass *pass = slice->pass;
    struct oj_quadrant_worker *worker = &pass->worker[thread];
    int64_t q = slice->first + task;
    const struct oj_quadrant *quadrant = &pass->quadrants->quadrant[q];
    int32_t *feature = slice->feature + slice->offset[q];
    int64_t n = slice->n_found[q];
    if (pass->is_growing)
    {
        struct oj_box window = window_of(slice, q);
        OJ_TRY(prune(worker, pass->boxes, &window, feature, &n, err));
    }
    for (int64_t p = quadrant->first; p < quadrant->end; p++)
    {
        OJ_TRY(oj_check_cancel(pass->cancel, err));
        OJ_TRY(rank_point(pass, worker, p, feature, n, err));
        pass->is_open[p] = !is_settled(pass, &worker->ranking);
        if (!pass->is_open[p])
            OJ_TRY(oj_answers_add(&worker->answers, pass->points->row[p],
                                  &worker->ranking, err));
    }
    return OJ_OK;
}

/* Takes quadrants from slice->first on until their pairs would be too many,
 * and places their pairs. */
static oj_status take_quadrants(struct slice *slice, struct oj_error *err)
{
    int64_t q = slice->first, n = 0;
    while (q < slice->pass->quadrants->n &&
           (q == slice->first || slice->n_found[q] <= SLICE_PAIRS - n))
    {
        slice->offset[q] = n;
        n += slice->n_found[q++];
    }
    slice->end = q;
    /* never none, so that feature is an array even for no pairs */
    return oj_reserve(&slice->feature, 0, n + 1, &slice->capacity,
                      sizeof *slice->feature, err);
}

static oj_status run_slices(struct slice *slice, struct oj_error *err)
{
    struct oj_quadrant_pass *pass = slice->pass;
    double start = oj_clock_seconds(), filled;
    oj_status status;
    oj_parallel_for(pass->n_threads, pass->quadrants->n, count_task, slice);
    pass->filter_s += oj_clock_seconds() - start;
    for (slice->first = 0; slice->first < pass->quadrants->n;
         slice->first = slice->end)
    {
        start = oj_clock_seconds();
        OJ_TRY(take_quadrants(slice, err));
        oj_parallel_for(pass->n_threads, slice->end - slice->first, fill_task,
                        slice);
        filled = oj_clock_seconds();
        status = oj_parallel_try(pass->n_threads, slice->end - slice->first, 1,
                                 refine_task, slice, err);
        pass->filter_s += filled - start;
        pass->refine_s += oj_clock_seconds() - filled;
        if (status != OJ_OK)
            return status;
    }
    return OJ_OK;
}

oj_status oj_quadrant_pass_run(struct oj_quadrant_pass *pass,
                               struct oj_error *err)
{
    struct slice slice;
    oj_status status;
    memset(&slice, 0, sizeof slice);
    slice.pass = pass;
    OJ_NEW(slice.offset, pass->quadrants->n, err);
    slice.n_found = oj_malloc(pass->quadrants->n, sizeof *slice.n_found);
    if (slice.n_found == NULL)
        status = oj_fail_nomem(err, pass->quadrants->n, sizeof *slice.n_found);
    else
        status = run_slices(&slice, err);
    oj_free(slice.offset);
    oj_free(slice.n_found);
    oj_free(slice.feature);
    return status;
}
