#include "oj_pair_stage.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../geometry/relate/oj_self_overlap.h"
#include "../../joins/sphere/ellipsoid_pair_distance.h"
#include "../../joins/sphere/sphere_pair_closest_points.h"
#include "../../references/geos/geos_pairs.h"
#include "../selection/oj_feature_area_length.h"
#include "../selection/oj_nearest_points.h"
#include "../selection/oj_pair_filter.h"
#include "oj_along_line.h"
#include "oj_cover_area.h"
#include "oj_pair_matrix.h"
#include "oj_pick.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(OJ_PAIR_SIMILARITY + OJ_MOST_TEXTS == OJ_N_PAIR_VALUES,
               "one value for each condition on texts");

/* Entries per task of a thread. */
#define ENTRIES_PER_TASK OJ_ALONG_BLOCK

/* State of a thread. */
struct pair_stage_worker
{
    struct oj_geos_pairs *geos; /* NULL: not opened yet */
    int has_input;              /* geos has the current batch */
    struct oj_nearest_work nearest;
    struct oj_flat_buf common; /* intersection of the current pair */
    struct oj_flat_buf shapes; /* intersections of this worker's pairs in the
                                  current answer */
    struct oj_pair_matrix_work matrix;
    struct oj_cover_work cover;
    int64_t n_undecided_pairs, n_undecided_rows, first_undecided;
    int64_t n_without_m;
    char text[256];

    /* The current pair. */
    struct oj_pair_stage *stage;
    int64_t row, entry;
    int32_t feature; /* -1: the entry has no join feature */

    int has_places; /* the values along lines of the current task are set */
};

struct oj_pair_stage
{
    struct oj_pair_request request;
    struct oj_pair_side join_side;
    struct oj_sphere_side sphere; /* join side on the globe; used if nearest
                                     points on the globe are requested */
    struct oj_geodesic *geodesic; /* used if nearest points are requested on an
                                     ellipsoid */
    struct oj_sphere_side sphere_input; /* input of the current run; used if
                                           nearest points are requested on an
                                           ellipsoid */
    struct oj_along_side along; /* used if values along lines are requested */
    unsigned along_wants;       /* enum oj_along_want */
    struct oj_pair_matrix_side matrices; /* used if matrices are requested */
    int n_workers;
    struct pair_stage_worker *worker;
    int64_t *area_score; /* [join features], or NULL */
    int64_t *score;      /* per entry */
    int64_t *shape_at;   /* per entry: worker + n_workers * index in the
                            worker's shapes, or -1 */

    /* Values of the kept entries, if pairs are dropped. */
    int64_t *shape_of_kept;
    double *value_of_kept[OJ_N_PAIR_VALUES];
    int64_t cap_shape_of_kept, cap_value_of_kept[OJ_N_PAIR_VALUES];
    int64_t cap_area_score, cap_score, cap_shape_at;
    int64_t n_undecided_pairs; /* pairs without an overlap */
    int64_t n_undecided_rows;  /* input rows without a covered part */
    int64_t n_without_m;       /* pairs without a measure from M values */
    char text[256];            /* GEOS's message for the first undecided
                                  entry */

    /* The current answer. */
    struct oj_pair_side input;
    const struct oj_matches *entries;
    struct oj_pair_values *values;
    oj_status (*visit)(struct pair_stage_worker *worker, struct oj_error *err);
};

static int wants_overlap(const struct oj_pair_request *r)
{
    return r->want[OJ_PAIR_OVERLAP_AREA] || r->want[OJ_PAIR_OVERLAP_LENGTH] ||
           r->want[OJ_PAIR_OVERLAP_PERCENT] || r->want[OJ_PAIR_JOIN_AREA] ||
           r->want[OJ_PAIR_OVERLAP_SIZE] || r->want[OJ_PAIR_OVERLAP_IOU] ||
           r->want[OJ_PAIR_INPUT_AREA] || r->want_shapes;
}

static int wants_cover(const struct oj_pair_request *r)
{
    return r->want[OJ_PAIR_COVERED_AREA] || r->want[OJ_PAIR_COVERED_LENGTH] ||
           r->want[OJ_PAIR_COVERED_PERCENT];
}

static int wants_nearest_points(const struct oj_pair_request *r)
{
    return r->want[OJ_PAIR_FROM_X] || r->want[OJ_PAIR_NEAREST_X] ||
           r->want[OJ_PAIR_BEARING];
}

static int wants_along(const struct oj_pair_request *r)
{
    int wants = 0;
    for (int i = OJ_PAIR_ALONG; i <= OJ_PAIR_LINE_BEARING; i++)
        wants |= r->want[i];
    return wants;
}

static int wants_matrix(const struct oj_pair_request *r)
{
    return r->want[OJ_PAIR_MATRIX] || r->want[OJ_PAIR_RELATION];
}

int oj_pair_request_is_needed(const struct oj_pair_request *request)
{
    int is_needed = request->pick != OJ_PICK_ALL || request->want_shapes;
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        is_needed |= request->want[i];
    return is_needed;
}

/* ---- open and close ----------------------------------------------------- */

oj_status oj_pair_stage_open(const struct oj_pair_request *request,
                             struct oj_pair_stage **out, struct oj_error *err)
{
    struct oj_pair_stage *stage;
    OJ_NEW_ZEROED(stage, 1, err);
    stage->request = *request;
    stage->n_workers =
        request->n_threads > 0 ? request->n_threads : oj_cpu_count();
    stage->worker = oj_calloc(stage->n_workers, sizeof *stage->worker);
    if (stage->worker == NULL)
    {
        oj_free(stage);
        return oj_fail_nomem(err, 1, sizeof *stage->worker);
    }
    for (int i = 0; i < stage->n_workers; i++)
        stage->worker[i].stage = stage;
    *out = stage;
    return OJ_OK;
}

/* Returns 1 if distances are along great circles or along the geodesics of an
 * ellipsoid. */
static int is_on_globe(const struct oj_pair_stage *stage)
{
    return oj_relation_is_on_globe(&stage->request.relation);
}

static const struct oj_ellipsoid *
ellipsoid_of_stage(const struct oj_pair_stage *stage)
{
    return oj_relation_ellipsoid(&stage->request.relation);
}

/* Opens GEOS with the join side and the current batch, if not open yet. */
static oj_status open_geos_for_worker(struct pair_stage_worker *worker,
                                      struct oj_error *err)
{
    const struct oj_pair_stage *stage = worker->stage;
    if (worker->geos == NULL)
        OJ_TRY(oj_geos_pairs_open(NULL, stage->join_side.whole, 0,
                                  &worker->geos, err));
    if (!worker->has_input)
        oj_geos_pairs_set_input(worker->geos, stage->input.whole);
    worker->has_input = 1;
    return OJ_OK;
}

/* Computes the area of each join feature as its pick score. Where parts
 * overlap, the area counts once: it is that of their union. */
static oj_status score_features_by_union_area(struct oj_pair_stage *stage,
                                              const struct oj_flat *flat,
                                              struct oj_error *err)
{
    struct pair_stage_worker *worker = &stage->worker[0];
    int64_t n = flat->n_features;
    uint8_t *overlaps = NULL;
    oj_status status = OJ_OK;
    OJ_ROOM(stage->area_score, 0, n + 1, stage->cap_area_score, err);
    OJ_TRY(open_geos_for_worker(worker, err));
    OJ_TRY(oj_self_overlap_find(flat, 1, stage->n_workers,
                                stage->request.cancel, &overlaps, err));
    for (int64_t i = 0; status == OJ_OK && i < n; i++)
    {
        double area = 0.0;
        if (overlaps != NULL && overlaps[i])
            status = oj_geos_pairs_area(worker->geos, 0, i, &area, err);
        else
            area = oj_flat_area(flat, i);
        stage->area_score[i] = oj_pick_score_of_double(area);
        if (stage->request.pick == OJ_PICK_SMALLEST_AREA)
            stage->area_score[i] = oj_pick_score_reversed(stage->area_score[i]);
    }
    oj_free(overlaps);
    return status;
}

static oj_status prepare_lines_and_matrices(struct oj_pair_stage *stage,
                                            const struct oj_pair_side *side,
                                            struct oj_error *err)
{
    if (wants_along(&stage->request) ||
        (stage->request.relation.heading.is_asked &&
         wants_nearest_points(&stage->request)))
    {
        const unsigned char *want = stage->request.want;
        stage->along_wants =
            (wants_along(&stage->request) ? OJ_ALONG_MEASURE : 0U) |
            (want[OJ_PAIR_ALONG_PERCENT] ? OJ_ALONG_PERCENT : 0U) |
            (want[OJ_PAIR_OFFSET] || want[OJ_PAIR_SIDE] ? OJ_ALONG_SIDE : 0U) |
            (want[OJ_PAIR_LINE_BEARING] ? OJ_ALONG_BEARING : 0U) |
            (want[OJ_PAIR_ALONG] && stage->request.along_is_m ? OJ_ALONG_M
                                                              : 0U);
        oj_along_side_free(&stage->along);
        OJ_TRY(oj_along_side_build(&stage->along, side->joined,
                                   is_on_globe(stage), stage->n_workers, err));
    }
    return wants_matrix(&stage->request)
               ? oj_pair_matrix_side_make(&stage->matrices, side->whole, err)
               : OJ_OK;
}

oj_status oj_pair_stage_set_join_side(struct oj_pair_stage *stage,
                                      const struct oj_pair_side *side,
                                      struct oj_error *err)
{
    stage->join_side = *side;
    for (int i = 0; i < stage->n_workers; i++)
    {
        oj_geos_pairs_close(stage->worker[i].geos);
        stage->worker[i].geos = NULL;
        stage->worker[i].has_input = 0;
    }
    OJ_TRY(prepare_lines_and_matrices(stage, side, err));
    if (is_on_globe(stage) && wants_nearest_points(&stage->request))
    {
        oj_sphere_side_free(&stage->sphere);
        if (ellipsoid_of_stage(stage) != NULL && stage->geodesic == NULL)
            OJ_TRY(oj_geodesic_open(ellipsoid_of_stage(stage), &stage->geodesic,
                                    err));
        OJ_TRY(oj_sphere_side_build(
            &stage->sphere, side->joined, ellipsoid_of_stage(stage),
            stage->geodesic, 1,
            stage->request.relation.distance_to == OJ_TO_INTERIOR,
            stage->n_workers, err));
    }
    if (stage->request.pick == OJ_PICK_SMALLEST_AREA ||
        stage->request.pick == OJ_PICK_LARGEST_AREA)
        return score_features_by_union_area(stage, side->whole, err);
    return OJ_OK;
}

double oj_pair_covered_fraction(const struct oj_flat *flat, int32_t feature,
                                const struct oj_pair_values *values,
                                int64_t entry)
{
    unsigned kinds = oj_flat_kinds(flat, feature);
    double whole, part;
    if ((kinds & OJ_PART_POLYGON) != 0)
    {
        whole = values->value[OJ_PAIR_JOIN_AREA][entry];
        part = values->value[OJ_PAIR_OVERLAP_AREA][entry];
    }
    else if ((kinds & OJ_PART_LINE) != 0)
    {
        whole = oj_flat_length(flat, feature);
        part = values->value[OJ_PAIR_OVERLAP_LENGTH][entry];
    }
    else
        return 1.0;
    if (isnan(part))
        return 0.0; /* GEOS could not compute the area; the stage counts such
                       pairs */
    if (!(part < whole))
        return 1.0;
    return part / whole;
}

void oj_pair_stage_close(struct oj_pair_stage *stage)
{
    if (stage == NULL)
        return;
    for (int i = 0; stage->worker != NULL && i < stage->n_workers; i++)
    {
        oj_geos_pairs_close(stage->worker[i].geos);
        oj_nearest_work_free(&stage->worker[i].nearest);
        oj_flat_buf_free(&stage->worker[i].common);
        oj_flat_buf_free(&stage->worker[i].shapes);
        oj_pair_matrix_work_free(&stage->worker[i].matrix);
        oj_cover_work_free(&stage->worker[i].cover);
    }
    oj_sphere_side_free(&stage->sphere);
    oj_sphere_side_free(&stage->sphere_input);
    oj_geodesic_close(stage->geodesic);
    oj_along_side_free(&stage->along);
    oj_pair_matrix_side_free(&stage->matrices);
    oj_free(stage->worker);
    oj_free(stage->area_score);
    oj_free(stage->score);
    oj_free(stage->shape_at);
    oj_free(stage->shape_of_kept);
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        oj_free(stage->value_of_kept[i]);
    oj_free(stage);
}

int64_t oj_pair_stage_count_undecided_pairs(const struct oj_pair_stage *stage)
{
    return stage->n_undecided_pairs;
}

int oj_pair_stage_describe_undecided(const struct oj_pair_stage *stage,
                                     char *text, size_t size)
{
    const int64_t n_pairs = stage->n_undecided_pairs;
    const int64_t n_rows = stage->n_undecided_rows;
    char pairs[64] = "", rows[64] = "";
    text[0] = '\0';
    if (n_pairs == 0 && n_rows == 0)
        return 0;
    if (n_pairs > 0)
        snprintf(pairs, sizeof pairs, "the overlap of %lld pair%s",
                 (long long)n_pairs, n_pairs == 1 ? "" : "s");
    if (n_rows > 0)
        snprintf(rows, sizeof rows, "the covered part of %lld row%s",
                 (long long)n_rows, n_rows == 1 ? "" : "s");
    snprintf(text, size,
             "%s%s%s %s unknown, because GEOS cannot compute the "
             "intersection (%s)",
             pairs, n_pairs > 0 && n_rows > 0 ? " and " : "", rows,
             n_pairs > 0 && n_rows > 0 ? "are" : "is", stage->text);
    return 1;
}

int oj_pair_stage_describe_missing_m(const struct oj_pair_stage *stage,
                                     char *text, size_t size)
{
    const int64_t n = stage->n_without_m;
    text[0] = '\0';
    if (n == 0)
        return 0;
    snprintf(text, size,
             "%lld pair%s no measure, because %s line%s no M value there: give "
             "the lines M values, or measure the length (along length)",
             (long long)n, n == 1 ? " has" : "s have", n == 1 ? "its" : "their",
             n == 1 ? " has" : "s have");
    return 1;
}

/* Returns the row whose list holds the entry: the last row whose list begins at
 * or before it. offset: [n or more] begins of lists. */
static int64_t find_list_of_entry(const int64_t *offset, int64_t n,
                                  int64_t entry)
{
    int64_t low = 0, high = n;
    while (high - low > 1)
    {
        int64_t middle = low + (high - low) / 2;
        if (offset[middle] <= entry)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int64_t row_of_entry(const struct oj_matches *m, int64_t entry)
{
    if (m->offset != NULL)
        return find_list_of_entry(m->offset, m->n_rows, entry);
    return entry < m->n_rows ? entry
                             : m->tied_row[find_list_of_entry(
                                   m->tied_offset, m->n_tied, entry)];
}

/* Returns the row of an entry, which is at least the row of the entry before.
 */
static int64_t row_of_next_entry(const struct oj_matches *m, int64_t row,
                                 int64_t entry)
{
    if (m->offset == NULL)
        return row_of_entry(m, entry);
    while (m->offset[row + 1] <= entry)
        row++;
    return row;
}

static oj_status set_values_of_pair(struct pair_stage_worker *worker,
                                    struct oj_error *err);
static int are_along_values_set_in_blocks(const struct oj_pair_stage *stage);
static void set_along_values_of_task(struct pair_stage_worker *worker,
                                     int64_t end);
static int wants_along_values_only(const struct oj_pair_request *request);

static oj_status visit_pairs_of_task(int64_t task, int thread, void *user,
                                     struct oj_error *err)
{
    struct oj_pair_stage *stage = user;
    struct pair_stage_worker *worker = &stage->worker[thread];
    const struct oj_matches *m = stage->entries;
    int64_t entry = task * ENTRIES_PER_TASK;
    int64_t end = entry + ENTRIES_PER_TASK < m->n_entries
                      ? entry + ENTRIES_PER_TASK
                      : m->n_entries;
    worker->row = row_of_entry(m, entry);
    worker->entry = entry;
    worker->has_places = are_along_values_set_in_blocks(stage);
    if (worker->has_places)
    {
        set_along_values_of_task(worker, end);
        if (wants_along_values_only(&stage->request))
            return oj_check_cancel(stage->request.cancel, err);
    }
    for (; entry < end; entry++)
    {
        OJ_TRY(oj_check_cancel(stage->request.cancel, err));
        worker->row = row_of_next_entry(m, worker->row, entry);
        worker->entry = entry;
        worker->feature = m->join_row[entry];
        OJ_TRY(stage->visit(worker, err));
    }
    return OJ_OK;
}

static oj_status visit_pairs_in_parallel(
    struct oj_pair_stage *stage, const struct oj_matches *entries,
    oj_status (*visit)(struct pair_stage_worker *, struct oj_error *),
    struct oj_error *err)
{
    int64_t n = entries->n_entries;
    int64_t first =
        stage->text[0] == '\0' ? INT64_MAX : -1; /* -1: the text of a failure is
                                                    stored already */
    stage->entries = entries;
    stage->visit = visit;
    for (int i = 0; i < stage->n_workers; i++)
    {
        stage->worker[i].n_undecided_pairs = 0;
        stage->worker[i].n_undecided_rows = 0;
        stage->worker[i].n_without_m = 0;
        stage->worker[i].first_undecided = INT64_MAX;
    }
    OJ_TRY(oj_parallel_try(stage->n_workers,
                           (n + ENTRIES_PER_TASK - 1) / ENTRIES_PER_TASK, 1,
                           visit_pairs_of_task, stage, err));
    for (int i = 0; i < stage->n_workers; i++)
    {
        const struct pair_stage_worker *worker = &stage->worker[i];
        stage->n_undecided_pairs += worker->n_undecided_pairs;
        stage->n_undecided_rows += worker->n_undecided_rows;
        stage->n_without_m += worker->n_without_m;
        if (worker->first_undecided >= first)
            continue;
        first = worker->first_undecided;
        memcpy(stage->text, worker->text, sizeof stage->text);
    }
    return OJ_OK;
}

/* ---- overlaps ----------------------------------------------------------- */

/* Adds 1 to *n, a count of values that GEOS could not compute, for the current
 * entry. Keeps GEOS's message if no earlier entry has failed. */
static void count_undecided(struct pair_stage_worker *worker, int64_t *n)
{
    ++*n;
    if (worker->entry >= worker->first_undecided)
        return;
    worker->first_undecided = worker->entry;
    snprintf(worker->text, sizeof worker->text, "%s",
             oj_geos_pairs_message(worker->geos));
}

/* Appends the intersection of the current pair to shapes and sets *is_there to
 * 1. If GEOS fails, sets *is_there to 0 and counts the pair as undecided. */
static oj_status add_intersection(struct pair_stage_worker *worker,
                                  struct oj_flat_buf *shapes, int *is_there,
                                  struct oj_error *err)
{
    enum oj_geos_outcome outcome;
    OJ_TRY(open_geos_for_worker(worker, err));
    outcome = oj_geos_pairs_add_intersection(worker->geos, worker->row,
                                             worker->feature, shapes);
    *is_there = outcome == OJ_GEOS_YES;
    if (outcome == OJ_GEOS_YES)
        return OJ_OK;
    if (outcome == OJ_GEOS_OUT_OF_MEMORY)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for the intersection of a pair: free "
                       "memory, or use smaller batches");
    count_undecided(worker, &worker->n_undecided_pairs);
    return OJ_OK;
}

static unsigned kinds_of_row(const struct pair_stage_worker *worker)
{
    return oj_flat_kinds(worker->stage->input.whole, worker->row);
}

static unsigned kinds_of_feature(const struct pair_stage_worker *worker)
{
    return oj_flat_kinds(worker->stage->join_side.whole, worker->feature);
}

/* Computes the area and length of the intersection of a pair; NaN if GEOS
 * fails. */
static oj_status measure_intersection(struct pair_stage_worker *worker,
                                      double *area, double *length,
                                      struct oj_error *err)
{
    struct oj_flat common;
    int is_there;
    *area = *length = 0.0;
    if (kinds_of_row(worker) == OJ_PART_POINT ||
        kinds_of_feature(worker) == OJ_PART_POINT)
        return OJ_OK;
    *area = *length = (double)NAN;
    oj_flat_buf_clear(&worker->common);
    OJ_TRY(add_intersection(worker, &worker->common, &is_there, err));
    if (!is_there)
        return OJ_OK;
    common = oj_flat_buf_view(&worker->common);
    *area = oj_flat_area(&common, 0);
    *length = oj_flat_length(&common, 0);
    return OJ_OK;
}

static double overlap_percent(const struct pair_stage_worker *worker,
                              double area_of_row, double area, double length)
{
    double whole;
    if (area_of_row > 0.0)
        return area == area_of_row ? 100.0 : 100.0 * area / area_of_row;
    whole = oj_flat_length(worker->stage->input.whole, worker->row);
    return whole > 0.0 ? 100.0 * length / whole : (double)NAN;
}

static int wants_value(const struct pair_stage_worker *worker,
                       enum oj_pair_value which)
{
    return worker->stage->request.want[which];
}

static void set_value_if_wanted(const struct pair_stage_worker *worker,
                                enum oj_pair_value which, double value)
{
    if (wants_value(worker, which))
        worker->stage->values->value[which][worker->entry] = value;
}

/* Returns the size by which a mean weights the pair: the area of the
 * intersection if both features have an area, else its length if both have a
 * length, else 1. */
static double overlap_size(const struct pair_stage_worker *worker, double area,
                           double length)
{
    const struct oj_pair_stage *stage = worker->stage;
    int of_row, of_feature;
    if (isnan(area) || area > 0.0)
        return area;
    of_row = oj_flat_dimension(stage->input.whole, worker->row);
    of_feature = oj_flat_dimension(stage->join_side.whole, worker->feature);
    if (of_row == 2 && of_feature == 2)
        return area;
    return of_row == 0 || of_feature == 0 ? 1.0 : length;
}

/* Returns area(a and b) / area(a or b), computed from the areas of both
 * features and of their intersection; NaN if neither has an area. */
static double intersection_over_union(double common, double a, double b)
{
    const double all = a + b - common;
    return all > 0.0 ? common / all : (double)NAN;
}

/* Sets the values that depend on the areas of the two features. area and length
 * are those of the intersection. */
static oj_status set_values_of_areas(struct pair_stage_worker *worker,
                                     double area, double length,
                                     struct oj_error *err)
{
    double of_row = (double)NAN, of_feature = (double)NAN;
    int wants_percent =
        !isnan(area) && wants_value(worker, OJ_PAIR_OVERLAP_PERCENT);
    int wants_iou =
        worker->feature >= 0 && wants_value(worker, OJ_PAIR_OVERLAP_IOU);
    OJ_TRY(open_geos_for_worker(worker, err));
    if (wants_percent || wants_iou ||
        (worker->feature >= 0 && wants_value(worker, OJ_PAIR_INPUT_AREA)))
        OJ_TRY(oj_geos_pairs_area(worker->geos, 1, worker->row, &of_row, err));
    if (worker->feature >= 0 &&
        (wants_iou || wants_value(worker, OJ_PAIR_JOIN_AREA)))
        OJ_TRY(oj_geos_pairs_area(worker->geos, 0, worker->feature, &of_feature,
                                  err));
    set_value_if_wanted(
        worker, OJ_PAIR_OVERLAP_PERCENT,
        wants_percent ? overlap_percent(worker, of_row, area, length) : NAN);
    set_value_if_wanted(worker, OJ_PAIR_JOIN_AREA, of_feature);
    set_value_if_wanted(worker, OJ_PAIR_INPUT_AREA, of_row);
    set_value_if_wanted(worker, OJ_PAIR_OVERLAP_IOU,
                        wants_iou
                            ? intersection_over_union(area, of_row, of_feature)
                            : (double)NAN);
    return OJ_OK;
}

static oj_status set_overlap_values_of_pair(struct pair_stage_worker *worker,
                                            struct oj_error *err)
{
    struct oj_pair_stage *stage = worker->stage;
    double area = (double)NAN, length = (double)NAN;
    int64_t at = worker->shapes.n_features;
    int is_there = 0;
    if (stage->request.want_shapes)
        stage->shape_at[worker->entry] = -1;
    if (worker->feature >= 0 && stage->request.want_shapes)
        OJ_TRY(add_intersection(worker, &worker->shapes, &is_there, err));
    else if (worker->feature >= 0)
        OJ_TRY(measure_intersection(worker, &area, &length, err));
    if (is_there)
    {
        struct oj_flat shapes = oj_flat_buf_view(&worker->shapes);
        stage->shape_at[worker->entry] =
            worker - stage->worker + stage->n_workers * at;
        area = oj_flat_area(&shapes, at);
        length = oj_flat_length(&shapes, at);
    }
    set_value_if_wanted(worker, OJ_PAIR_OVERLAP_AREA, area);
    set_value_if_wanted(worker, OJ_PAIR_OVERLAP_LENGTH, length);
    set_value_if_wanted(worker, OJ_PAIR_OVERLAP_SIZE,
                        worker->feature >= 0 &&
                                wants_value(worker, OJ_PAIR_OVERLAP_SIZE)
                            ? overlap_size(worker, area, length)
                            : (double)NAN);
    return set_values_of_areas(worker, area, length, err);
}

static oj_status copy_intersection_shape(const struct oj_pair_stage *stage,
                                         int64_t entry, struct oj_flat_buf *to,
                                         struct oj_error *err)
{
    int64_t at = stage->shape_at[entry], part = 0, end = 0;
    struct oj_flat from = {0};
    OJ_TRY(oj_flat_buf_begin_feature(to, entry, err));
    if (at >= 0)
        from = oj_flat_buf_view(&stage->worker[at % stage->n_workers].shapes);
    if (from.part_offset != NULL) /* otherwise this worker has no intersection
                                     with parts */
    {
        part = from.part_offset[at / stage->n_workers];
        end = from.part_offset[at / stage->n_workers + 1];
    }
    for (; part < end; part++)
    {
        if (stage->request.shape_kinds == 0 ||
            (stage->request.shape_kinds & from.part_kind[part]) != 0)
            OJ_TRY(oj_flat_buf_copy_part(to, &from, part, err));
    }
    return oj_flat_buf_end_feature(to, err);
}

/* ---- area covered by all features of a row --------------------------------
 */

/* Sets a value of all pairs of the row. */
static void set_value_of_row(const struct pair_stage_worker *worker,
                             enum oj_pair_value which, double value)
{
    const struct oj_pair_stage *stage = worker->stage;
    const int64_t end = oj_matches_end(stage->entries, worker->row);
    for (int64_t i = worker->entry; wants_value(worker, which) && i < end; i++)
        stage->values->value[which][i] = value;
}

/* Sets *of_row to the area of the row by GEOS. The covered area of a wholly
 * covered row is computed by this function, too, so that its share is exactly
 * 100 %. whole: the area by oj_cover_area(), or NaN if it was not measured.
 * *of_row becomes `whole` if the two differ, since the row is then not
 * valid. */
static oj_status compute_area_of_row(struct pair_stage_worker *worker,
                                     double whole, double *of_row,
                                     struct oj_error *err)
{
    OJ_TRY(oj_geos_pairs_area(worker->geos, 1, worker->row, of_row, err));
    if (fabs(*of_row - whole) > 1e-9 * whole)
        *of_row = whole;
    return OJ_OK;
}

/* Returns the kinds of all parts of the features of the row. What the row has
 * in common with its features is computed by these, not by the kinds of the
 * whole side, so that it does not depend on features that are not in its pairs.
 */
static unsigned kinds_of_all_features(const struct pair_stage_worker *worker)
{
    const struct oj_matches *entries = worker->stage->entries;
    const struct oj_flat *side = worker->stage->join_side.whole;
    const int64_t end = oj_matches_end(entries, worker->row);
    unsigned kinds = 0;
    for (int64_t i = worker->entry; i < end; i++)
        kinds |= oj_flat_kinds(side, entries->join_row[i]);
    return kinds;
}

/* Measures the area of the row that its n features cover together, and the
 * whole area of the row, by oj_cover_area() instead of a union by GEOS. If the
 * features cover the whole row, *area becomes the area by
 * compute_area_of_row(). Sets *whole to NaN if the work would take too long. */
static oj_status measure_cover_area(struct pair_stage_worker *worker, int64_t n,
                                    double *area, double *whole,
                                    struct oj_error *err)
{
    const struct oj_pair_stage *stage = worker->stage;
    int is_measured;
    OJ_TRY(oj_cover_area(&worker->cover, stage->input.whole, worker->row,
                         stage->join_side.whole,
                         stage->entries->join_row + worker->entry, n, area,
                         whole, &is_measured, err));
    if (!is_measured)
        *whole = (double)NAN;
    if (!is_measured || *area < *whole)
        return OJ_OK;
    return compute_area_of_row(worker, *whole, area, err);
}

/* Measures the area and length of the row that its features cover together; NaN
 * if GEOS fails. The length is computed only if it is requested or the row has
 * no polygon; it is 0 if neither the row nor the features have lines. Sets
 * *whole to the area of the row by oj_cover_area(), or to NaN if that was not
 * measured. */
static oj_status measure_cover(struct pair_stage_worker *worker, double *area,
                               double *length, double *whole,
                               struct oj_error *err)
{
    const struct oj_matches *entries = worker->stage->entries;
    const int64_t n = oj_matches_end(entries, worker->row) - worker->entry;
    const int has_area = (kinds_of_row(worker) & OJ_PART_POLYGON) != 0;
    const int wants_length =
        wants_value(worker, OJ_PAIR_COVERED_LENGTH) || !has_area;
    const unsigned kinds = kinds_of_all_features(worker);
    const int is_area_alone =
        !wants_length || (kinds_of_row(worker) == OJ_PART_POLYGON &&
                          (kinds & OJ_PART_LINE) == 0);
    enum oj_geos_outcome outcome;
    double by_slabs = (double)NAN;
    OJ_TRY(open_geos_for_worker(worker, err));
    *length = 0.0;
    *whole = (double)NAN;
    if (has_area)
        OJ_TRY(measure_cover_area(worker,
                                  (kinds & OJ_PART_POLYGON) != 0 ? n : 0,
                                  &by_slabs, whole, err));
    *area = by_slabs;
    if (is_area_alone && !isnan(*whole))
        return OJ_OK;
    outcome = oj_geos_pairs_measure_cover(worker->geos, worker->row,
                                          entries->join_row + worker->entry, n,
                                          wants_length, area, length);
    if (outcome == OJ_GEOS_OUT_OF_MEMORY)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for the union of the features of a row: "
                       "free memory, or use smaller batches");
    if (outcome != OJ_GEOS_YES)
    {
        *area = *length = (double)NAN;
        count_undecided(worker, &worker->n_undecided_rows);
    }
    if (!isnan(*whole))
        *area = by_slabs;
    return OJ_OK;
}

/* Sets the values of what the features of a row cover together. They are
 * computed at the first pair of the row, for all its pairs. */
static oj_status set_cover_values_of_pair(struct pair_stage_worker *worker,
                                          struct oj_error *err)
{
    const int64_t first = oj_matches_first(worker->stage->entries, worker->row);
    double area, length, whole, of_row, percent = (double)NAN;
    if (worker->feature < 0)
    {
        set_value_if_wanted(worker, OJ_PAIR_COVERED_AREA, (double)NAN);
        set_value_if_wanted(worker, OJ_PAIR_COVERED_LENGTH, (double)NAN);
        set_value_if_wanted(worker, OJ_PAIR_COVERED_PERCENT, (double)NAN);
    }
    if (worker->feature < 0 || worker->entry != first)
        return OJ_OK;
    OJ_TRY(measure_cover(worker, &area, &length, &whole, err));
    if (wants_value(worker, OJ_PAIR_COVERED_PERCENT) && !isnan(area))
    {
        OJ_TRY(compute_area_of_row(worker, whole, &of_row, err));
        percent = overlap_percent(worker, of_row, area, length);
    }
    set_value_of_row(worker, OJ_PAIR_COVERED_AREA, area);
    set_value_of_row(worker, OJ_PAIR_COVERED_LENGTH, length);
    set_value_of_row(worker, OJ_PAIR_COVERED_PERCENT, percent);
    return OJ_OK;
}

/* ---- nearest points ----------------------------------------------------- */

/* Sets *range to the directions that fit the row's heading, and returns it;
 * NULL if the row has no heading or the join has no condition on headings. */
static const struct oj_heading_range *
find_heading_range_of_row(const struct pair_stage_worker *worker,
                          struct oj_heading_range *range)
{
    const struct oj_pair_stage *stage = worker->stage;
    const struct oj_heading_condition *condition =
        &stage->request.relation.heading;
    if (!condition->is_asked)
        return NULL;
    *range = oj_heading_range_of(condition,
                                 stage->input.joined->heading[worker->row]);
    return range->is_all ? NULL : range;
}

/* Finds the point of the row that is nearest to a segment with a fitting
 * direction, and the nearest point of that segment. */
static void find_points_by_heading(const struct pair_stage_worker *worker,
                                   const struct oj_heading_range *range,
                                   struct oj_nearest_points *points)
{
    const struct oj_pair_stage *stage = worker->stage;
    const struct oj_flat *input = stage->input.joined;
    int64_t v, end;
    oj_flat_vertex_range(input, worker->row, &v, &end);
    for (; v < end; v++)
    {
        struct oj_nearest_points here = {INFINITY, input->x[v], input->y[v],
                                         NAN, NAN};
        here.distance =
            oj_along_nearest_point(&stage->along, worker->feature, here.ax,
                                   here.ay, range, &here.bx, &here.by);
        if (here.distance < points->distance)
            *points = here;
    }
}

static struct oj_nearest_points
find_points_on_ellipsoid(const struct pair_stage_worker *worker)
{
    const struct oj_pair_stage *stage = worker->stage;
    const struct oj_ellipsoid_sides sides = {
        ellipsoid_of_stage(stage), stage->geodesic, &stage->sphere_input,
        &stage->sphere};
    struct oj_chord2_range range = oj_ellipsoid_chord_range(
        &sides, worker->row, worker->feature, (double)INFINITY);
    return oj_ellipsoid_find_nearest_points(&sides, worker->row,
                                            worker->feature, range.most2);
}

static oj_status find_closest_points(struct pair_stage_worker *worker,
                                     struct oj_nearest_points *points,
                                     struct oj_error *err)
{
    const struct oj_pair_stage *stage = worker->stage;
    struct oj_heading_range space;
    const struct oj_heading_range *range =
        find_heading_range_of_row(worker, &space);
    if (range != NULL)
    {
        find_points_by_heading(worker, range, points);
        return OJ_OK;
    }
    if (ellipsoid_of_stage(stage) != NULL)
    {
        *points = find_points_on_ellipsoid(worker);
        return OJ_OK;
    }
    if (is_on_globe(stage))
    {
        *points = oj_sphere_find_closest_points(
            stage->input.joined, worker->row, &stage->sphere, worker->feature);
        return OJ_OK;
    }
    return oj_nearest_points_find(stage->input.joined, worker->row,
                                  stage->join_side.joined, worker->feature,
                                  stage->request.relation.heading.is_asked
                                      ? OJ_TO_BOUNDARY
                                      : stage->request.relation.distance_to,
                                  &worker->nearest, points, err);
}

static double bearing_between(const struct oj_pair_stage *stage,
                              const struct oj_nearest_points *p)
{
    if (ellipsoid_of_stage(stage) != NULL)
        return oj_geodesic_bearing(stage->geodesic, p->ax, p->ay, p->bx, p->by);
    return is_on_globe(stage) ? oj_sphere_bearing(p->ax, p->ay, p->bx, p->by)
                              : oj_planar_bearing(p->ax, p->ay, p->bx, p->by);
}

static oj_status set_closest_point_values(struct pair_stage_worker *worker,
                                          struct oj_error *err)
{
    struct oj_nearest_points p = {INFINITY, NAN, NAN, NAN, NAN};
    if (worker->feature >= 0)
        OJ_TRY(find_closest_points(worker, &p, err));
    set_value_if_wanted(worker, OJ_PAIR_FROM_X, p.ax);
    set_value_if_wanted(worker, OJ_PAIR_FROM_Y, p.ay);
    set_value_if_wanted(worker, OJ_PAIR_NEAREST_X, p.bx);
    set_value_if_wanted(worker, OJ_PAIR_NEAREST_Y, p.by);
    set_value_if_wanted(worker, OJ_PAIR_BEARING,
                        bearing_between(worker->stage, &p));
    return OJ_OK;
}

/* Finds the point of the input feature that is nearest to the join feature, or
 * to its rings if it is a polygon. */
static oj_status find_point_beside_line(struct pair_stage_worker *worker,
                                        struct oj_nearest_points *p,
                                        struct oj_error *err)
{
    const struct oj_pair_stage *stage = worker->stage;
    const struct oj_flat *input = stage->input.joined;
    const struct oj_flat *side = stage->join_side.joined;
    if (oj_flat_is_one_point(input, worker->row))
    {
        int64_t v, end;
        oj_flat_vertex_range(input, worker->row, &v, &end);
        if (v < end)
            *p = (struct oj_nearest_points){INFINITY, input->x[v], input->y[v],
                                            NAN, NAN};
        return OJ_OK;
    }
    if (is_on_globe(stage))
    {
        if (!oj_flat_is_points(side))
            *p = oj_sphere_find_closest_points(
                input, worker->row, &stage->along.sphere, worker->feature);
        return OJ_OK;
    }
    OJ_TRY(find_closest_points(worker, p, err));
    if (p->distance > 0.0 || stage->request.relation.heading.is_asked ||
        (oj_flat_kinds(side, worker->feature) & OJ_PART_POLYGON) == 0)
        return OJ_OK;
    return oj_nearest_points_find(input, worker->row, side, worker->feature,
                                  OJ_TO_BOUNDARY, &worker->nearest, p, err);
}

/* Returns 1 if the two features cross. The computed crossing point is rounded,
 * but counts as lying on both. */
static int do_features_cross(const struct pair_stage_worker *worker,
                             const struct oj_nearest_points *p)
{
    return p->distance <= 0.0 &&
           (oj_flat_kinds(worker->stage->join_side.joined, worker->feature) &
            OJ_PART_POINT) == 0;
}

/* Returns an upper bound of the distance from the join feature's line: the
 * measure of a pair of a point and a line in the plane, otherwise INFINITY. In
 * a join whose measure is no distance, oj_along_measure_point() ignores a
 * measure that is too small or NaN. */
static double max_distance_to_line(const struct pair_stage_worker *worker)
{
    const struct oj_pair_stage *stage = worker->stage;
    const struct oj_flat *side = stage->join_side.joined;
    return !is_on_globe(stage) && side->part_kinds == OJ_PART_LINE &&
                   oj_flat_is_points(stage->input.joined)
               ? stage->entries->measure[worker->entry]
               : (double)INFINITY;
}

/* Returns 1 if the places of a task's pairs are found together. */
static int are_along_values_set_in_blocks(const struct oj_pair_stage *stage)
{
    return stage->along_wants != 0 && stage->visit == set_values_of_pair &&
           !is_on_globe(stage) && !stage->request.relation.heading.is_asked &&
           oj_flat_is_points(stage->input.joined);
}

/* Returns pointers to entry `entry` of those columns of places on lines that
 * are requested; NULL for the other columns. The column OJ_PAIR_ALONG holds the
 * M value with OJ_ALONG_M, otherwise the length from the start of the line. */
static struct oj_along_arrays
arrays_of_along_values(const struct oj_pair_stage *stage, int64_t entry)
{
    const int is_m = (stage->along_wants & OJ_ALONG_M) != 0;
    double *at[OJ_N_PAIR_VALUES] = {NULL};
    for (int i = OJ_PAIR_ALONG; i <= OJ_PAIR_LINE_BEARING; i++)
    {
        if (stage->request.want[i])
            at[i] = stage->values->value[i] + entry;
    }
    return (struct oj_along_arrays){.along = is_m ? NULL : at[OJ_PAIR_ALONG],
                                    .m = is_m ? at[OJ_PAIR_ALONG] : NULL,
                                    .percent = at[OJ_PAIR_ALONG_PERCENT],
                                    .offset = at[OJ_PAIR_OFFSET],
                                    .side = at[OJ_PAIR_SIDE],
                                    .segment = at[OJ_PAIR_SEGMENT],
                                    .bearing = at[OJ_PAIR_LINE_BEARING]};
}

/* Sets the values along lines of the entries from the current one to end - 1.
 */
static void set_along_values_of_task(struct pair_stage_worker *worker,
                                     int64_t end)
{
    const struct oj_pair_stage *stage = worker->stage;
    const struct oj_flat *input = stage->input.joined;
    const struct oj_matches *m = stage->entries;
    const int64_t first = worker->entry, n = end - first;
    double x[ENTRIES_PER_TASK], y[ENTRIES_PER_TASK], along[ENTRIES_PER_TASK];
    const int is_row_per_entry = m->offset == NULL && end <= m->n_rows;
    const double *px = is_row_per_entry ? input->x + first : x;
    const double *py = is_row_per_entry ? input->y + first : y;
    int64_t row = worker->row;
    struct oj_along_arrays out = arrays_of_along_values(stage, first);
    for (int64_t i = first; !is_row_per_entry && i < end; i++)
    {
        row = row_of_next_entry(m, row, i);
        x[i - first] = input->x[row];
        y[i - first] = input->y[row];
    }
    if (out.m != NULL)
        out.along = along;
    oj_along_measure_block(&stage->along, n, m->join_row + first, px, py,
                           stage->join_side.joined->part_kinds == OJ_PART_LINE
                               ? m->measure + first
                               : NULL,
                           &out);
    for (int64_t i = 0; out.m != NULL && i < n; i++)
        worker->n_without_m += !isnan(along[i]) && isnan(out.m[i]);
}

static oj_status set_along_values_of_pair(struct pair_stage_worker *worker,
                                          struct oj_error *err)
{
    const struct oj_pair_stage *stage = worker->stage;
    const struct oj_along_arrays out =
        arrays_of_along_values(stage, worker->entry);
    struct oj_nearest_points p = {INFINITY, NAN, NAN, NAN, NAN};
    struct oj_along place = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    struct oj_heading_range range;
    if (worker->has_places)
        return OJ_OK;
    if (worker->feature >= 0)
    {
        OJ_TRY(find_point_beside_line(worker, &p, err));
        place = oj_along_measure_point(
            &stage->along, worker->feature, p.ax, p.ay,
            max_distance_to_line(worker),
            find_heading_range_of_row(worker, &range), stage->along_wants);
    }
    if (!isnan(place.along) && do_features_cross(worker, &p))
        place.offset = place.side = 0.0;
    worker->n_without_m +=
        out.m != NULL && !isnan(place.along) && isnan(place.m);
    oj_along_store(&out, 0, &place);
    return OJ_OK;
}

/* ---- matrices ------------------------------------------------------------ */

static oj_status set_matrix_values_of_pair(struct pair_stage_worker *worker,
                                           struct oj_error *err)
{
    struct oj_pair_stage *stage = worker->stage;
    struct oj_matrix matrix;
    double code = (double)NAN, relation = (double)NAN;
    if (worker->feature >= 0 && kinds_of_row(worker) != 0 &&
        kinds_of_feature(worker) != 0)
    {
        OJ_TRY(oj_pair_matrix_compute(
            &stage->matrices, stage->input.whole, worker->row, worker->feature,
            stage->request.cancel, &worker->matrix, &matrix, err));
        code = oj_pair_matrix_code(matrix.at);
        relation = oj_pair_matrix_relation(&matrix);
    }
    set_value_if_wanted(worker, OJ_PAIR_MATRIX, code);
    set_value_if_wanted(worker, OJ_PAIR_RELATION, relation);
    return OJ_OK;
}

/* ---- similarities ---------------------------------------------------------
 */

static double similarity_of_pair(const struct pair_stage_worker *worker,
                                 int condition)
{
    const struct oj_pair_stage *stage = worker->stage;
    return oj_pair_text_similarity(&stage->request.relation, condition,
                                   stage->input.joined, worker->row,
                                   stage->join_side.joined, worker->feature);
}

static double difference_of_pair(const struct pair_stage_worker *worker)
{
    const struct oj_pair_stage *stage = worker->stage;
    return oj_pair_vector_difference(&stage->request.relation,
                                     stage->input.joined, worker->row,
                                     stage->join_side.joined, worker->feature);
}

static void set_similarity_values_of_pair(struct pair_stage_worker *worker)
{
    for (int i = 0; i < worker->stage->request.relation.n_similar; i++)
    {
        enum oj_pair_value which = (enum oj_pair_value)(OJ_PAIR_SIMILARITY + i);
        if (wants_value(worker, which))
            set_value_if_wanted(worker, which,
                                worker->feature >= 0
                                    ? similarity_of_pair(worker, i)
                                    : (double)NAN);
    }
    if (wants_value(worker, OJ_PAIR_DIFFERENCE))
        set_value_if_wanted(worker, OJ_PAIR_DIFFERENCE,
                            worker->feature >= 0 ? difference_of_pair(worker)
                                                 : (double)NAN);
}

static oj_status set_values_of_pair(struct pair_stage_worker *worker,
                                    struct oj_error *err)
{
    const struct oj_pair_request *request = &worker->stage->request;
    if (wants_overlap(request))
        OJ_TRY(set_overlap_values_of_pair(worker, err));
    if (wants_cover(request))
        OJ_TRY(set_cover_values_of_pair(worker, err));
    if (wants_nearest_points(request))
        OJ_TRY(set_closest_point_values(worker, err));
    if (worker->stage->along_wants != 0)
        OJ_TRY(set_along_values_of_pair(worker, err));
    if (wants_matrix(request))
        OJ_TRY(set_matrix_values_of_pair(worker, err));
    set_similarity_values_of_pair(worker);
    return OJ_OK;
}

/* Returns 1 if values along lines are all that a pair needs. */
static int wants_along_values_only(const struct oj_pair_request *request)
{
    return !wants_overlap(request) && !wants_cover(request) &&
           !wants_nearest_points(request) && !wants_matrix(request) &&
           request->relation.n_similar == 0 &&
           !request->want[OJ_PAIR_DIFFERENCE];
}

/* ---- dropped pairs ------------------------------------------------------- */

/* Returns 1 if the intersection of an entry has a part of the requested kinds.
 */
static int has_wanted_part(const struct oj_pair_stage *stage, int64_t entry)
{
    const int64_t at = stage->shape_at[entry];
    struct oj_flat from;
    if (at < 0)
        return 0;
    from = oj_flat_buf_view(&stage->worker[at % stage->n_workers].shapes);
    if (from.part_offset == NULL)
        return 0;
    for (int64_t part = from.part_offset[at / stage->n_workers];
         part < from.part_offset[at / stage->n_workers + 1]; part++)
    {
        if ((stage->request.shape_kinds & from.part_kind[part]) != 0)
            return 1;
    }
    return 0;
}

/* Appends an entry and its values to those kept so far. */
static void copy_kept_entry(struct oj_pair_stage *stage,
                            const struct oj_matches *entries, int64_t entry)
{
    struct oj_pair_values *values = stage->values;
    const int64_t n = values->n_entries++;
    values->kept.join_row[n] = entries->join_row[entry];
    values->kept.measure[n] = entries->measure[entry];
    stage->shape_of_kept[n] = stage->shape_at[entry];
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
    {
        if (stage->request.want[i])
            stage->value_of_kept[i][n] = values->value[i][entry];
    }
}

/* Drops the pairs whose intersection has no part of the wanted kinds. The
 * entries of a row may lie anywhere, so the values of kept ones are copied to
 * new arrays, which then replace the old ones. */
static oj_status drop_pairs_without_part(struct oj_pair_stage *stage,
                                         const struct oj_matches *entries,
                                         struct oj_error *err)
{
    struct oj_pair_values *values = stage->values;
    struct oj_matches *kept = &values->kept;
    OJ_TRY(
        oj_matches_reserve(kept, entries->n_rows, entries->n_entries, 1, err));
    OJ_ROOM(stage->shape_of_kept, 0, entries->n_entries + 1,
            stage->cap_shape_of_kept, err);
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
    {
        if (stage->request.want[i])
            OJ_TRY(
                oj_reserve(&stage->value_of_kept[i], 0, entries->n_entries + 1,
                           &stage->cap_value_of_kept[i], sizeof(double), err));
    }
    values->n_entries = 0;
    for (int64_t row = 0; row < entries->n_rows; row++)
    {
        int64_t end = oj_matches_end(entries, row);
        kept->offset[row] = values->n_entries;
        for (int64_t i = oj_matches_first(entries, row); i < end; i++)
        {
            if (has_wanted_part(stage, i))
                copy_kept_entry(stage, entries, i);
        }
        kept->n_matched += values->n_entries > kept->offset[row];
    }
    kept->offset[entries->n_rows] = values->n_entries;
    kept->n_entries = kept->n_pairs = values->n_entries;
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
    {
        if (stage->request.want[i])
            memcpy(values->value[i], stage->value_of_kept[i],
                   (size_t)values->n_entries * sizeof(double));
    }
    memcpy(stage->shape_at, stage->shape_of_kept,
           (size_t)values->n_entries * sizeof *stage->shape_at);
    values->is_kept = 1;
    return OJ_OK;
}

static oj_status fill_pair_values(struct oj_pair_stage *stage,
                                  const struct oj_matches *entries,
                                  struct oj_error *err)
{
    struct oj_pair_values *values = stage->values;
    int n_wanted = stage->request.want_shapes;
    values->n_entries = entries->n_entries;
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
    {
        n_wanted += stage->request.want[i];
        if (stage->request.want[i])
            OJ_TRY(oj_reserve(&values->value[i], 0, entries->n_entries + 1,
                              &values->capacity[i], sizeof(double), err));
    }
    oj_flat_buf_clear(&values->shapes);
    for (int i = 0; i < stage->n_workers; i++)
        oj_flat_buf_clear(&stage->worker[i].shapes);
    if (stage->request.want_shapes)
        OJ_ROOM(stage->shape_at, 0, entries->n_entries + 1, stage->cap_shape_at,
                err);
    if (n_wanted > 0)
        OJ_TRY(
            visit_pairs_in_parallel(stage, entries, set_values_of_pair, err));
    if (stage->request.want_shapes && stage->request.drops_pairs)
        OJ_TRY(drop_pairs_without_part(stage, entries, err));
    for (int64_t i = 0; stage->request.want_shapes && i < values->n_entries;
         i++)
        OJ_TRY(copy_intersection_shape(stage, i, &values->shapes, err));
    return OJ_OK;
}

/* ---- picking ------------------------------------------------------------ */

/* Sets the score by which a row picks this entry; rows with one pair need none.
 */
static oj_status set_pick_score_of_pair(struct pair_stage_worker *worker,
                                        struct oj_error *err)
{
    struct oj_pair_stage *stage = worker->stage;
    const struct oj_matches *m = stage->entries;
    struct oj_nearest_points p = {INFINITY, NAN, NAN, NAN, NAN};
    double area, length, score;
    stage->score[worker->entry] = 0;
    if (worker->feature < 0 ||
        oj_matches_end(m, worker->row) - oj_matches_first(m, worker->row) == 1)
        return OJ_OK;
    if (stage->request.pick == OJ_PICK_NEAREST)
    {
        OJ_TRY(find_closest_points(worker, &p, err));
        score = -p.distance;
    }
    else if (stage->request.pick == OJ_PICK_MOST_SIMILAR)
        score = stage->request.relation.n_similar > 0
                    ? similarity_of_pair(worker, 0)
                    : -difference_of_pair(worker);
    else
    {
        unsigned both = kinds_of_row(worker) & kinds_of_feature(worker);
        OJ_TRY(measure_intersection(worker, &area, &length, err));
        score = (both & OJ_PART_POLYGON) != 0 ? area : length;
    }
    stage->score[worker->entry] = oj_pick_score_of_double(score);
    return OJ_OK;
}

/* Returns 1 for joins whose pairs always intersect, so that all distances are
 * 0. */
static int does_join_imply_distance_zero(const struct oj_relation *relation)
{
    return oj_relation_needs_contact(relation) &&
           !oj_relation_is_bbox(relation);
}

/* Computes scores per entry, if the rule needs them. */
static oj_status compute_pick_scores_if_needed(struct oj_pair_stage *stage,
                                               const struct oj_matches *matches,
                                               struct oj_pick_scores *scores,
                                               struct oj_error *err)
{
    const struct oj_pair_request *request = &stage->request;
    const struct oj_op_info *op = oj_op_get(request->relation.op);
    if ((matches->offset == NULL && matches->n_tied == 0) ||
        (request->pick != OJ_PICK_LARGEST_OVERLAP &&
         request->pick != OJ_PICK_MOST_SIMILAR &&
         (request->pick != OJ_PICK_NEAREST ||
          does_join_imply_distance_zero(&request->relation))))
        return OJ_OK;
    OJ_ROOM(stage->score, 0, matches->n_entries + 1, stage->cap_score, err);
    scores->of_entry = stage->score;
    if (request->pick != OJ_PICK_NEAREST ||
        (op->takes & OJ_TAKES_DISTANCE) == 0)
        return visit_pairs_in_parallel(stage, matches, set_pick_score_of_pair,
                                       err);
    for (int64_t i = 0; i < matches->n_entries; i++)
        stage->score[i] = oj_pick_score_of_double(-matches->measure[i]);
    return OJ_OK;
}

static oj_status pick_one_per_row(struct oj_pair_stage *stage,
                                  const struct oj_matches *matches,
                                  struct oj_pair_values *values,
                                  struct oj_error *err)
{
    struct oj_pick_scores scores = {0};
    values->is_picked = stage->request.pick != OJ_PICK_ALL;
    if (!values->is_picked)
        return OJ_OK;
    scores.in_tie_order =
        !oj_relation_sorts_by_measure(&stage->request.relation);
    scores.tie_rank = stage->join_side.tie_rank;
    scores.of_feature = stage->request.pick == OJ_PICK_SCORE
                            ? stage->join_side.score
                            : stage->area_score;
    OJ_TRY(compute_pick_scores_if_needed(stage, matches, &scores, err));
    return oj_pick(matches, &scores, &values->picked, err);
}

oj_status oj_pair_stage_run(struct oj_pair_stage *stage,
                            const struct oj_pair_side *input,
                            const struct oj_matches *matches,
                            struct oj_pair_values *values, struct oj_error *err)
{
    stage->input = *input;
    stage->values = values;
    values->is_kept = 0;
    for (int i = 0; i < stage->n_workers; i++)
    {
        stage->worker[i].has_input = 0;
        oj_pair_matrix_forget_batch(&stage->worker[i].matrix);
    }
    if (stage->geodesic != NULL)
    {
        oj_sphere_side_free(&stage->sphere_input);
        OJ_TRY(oj_sphere_side_build(
            &stage->sphere_input, input->joined, ellipsoid_of_stage(stage),
            stage->geodesic, !oj_flat_has_points_only(input->joined),
            stage->request.relation.distance_to == OJ_TO_INTERIOR,
            stage->n_workers, err));
    }
    OJ_TRY(pick_one_per_row(stage, matches, values, err));
    return fill_pair_values(stage, oj_pair_values_matches(values, matches),
                            err);
}
