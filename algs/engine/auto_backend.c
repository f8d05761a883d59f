#include "auto_backend.h"

#include "../../flatten/base/oj_array.h"
#include "../relation/cpu_family.h"
#include "auto_cost.h"
#include "cuda_backend.h"
#include "cuda_screen.h"

#include <stdio.h>

/* Lines and polygons of which nothing is known but how many there are have at
 * least so many vertices, as a rule. */
#define LEAST_VERTICES 4

struct auto_index
{
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    struct oj_index *on_cpu, *on_gpu;
    int uses_gpu;
    int is_settled[2]; /* no more choice: for lines and polygons, for points */
    char reason[320];
};

static double n_vertices(const struct oj_flat *flat)
{
    return (double)(oj_flat_is_points(flat) ? flat->n_features
                                            : flat->n_vertices);
}

/* What is known of the input side: of a batch, or of what is to come (NULL). */
static struct oj_auto_work work_of(const struct auto_index *index,
                                   const struct oj_flat *batch)
{
    const struct oj_options *options = &index->options;
    struct oj_auto_work work;
    double n = (double)options->n_expected;
    work.of_points = batch != NULL
                         ? oj_flat_is_points(batch)
                         : options->input_kinds == 0 ||
                               (options->input_kinds & OJ_PART_POINT) != 0;
    work.n_threads = options->n_threads;
    work.is_started = oj_cuda_is_started();
    work.n_rows = n;
    work.n_vertices = n * LEAST_VERTICES;
    work.n_join_vertices = n_vertices(index->join_side);
    if (batch != NULL && batch->n_features > 0)
    {
        double n_rows = (double)batch->n_features;
        work.n_rows = n > n_rows ? n : n_rows;
        work.n_vertices = n_vertices(batch) * (work.n_rows / n_rows);
    }
    return work;
}

/* What the CPU has to decide in any case. */
static int is_for_cpu(struct auto_index *index, int of_points)
{
    if (of_points || oj_cuda_screen_decides(&index->relation, index->join_side))
        return 0;
    snprintf(index->reason, sizeof index->reason,
             "lines and polygons: -op %s is decided on the CPU",
             oj_op_get(index->relation.op)->name);
    return 1;
}

/* 1 when so much is clearly faster on a device; says why in reason. */
static int gpu_pays(struct auto_index *index, const struct oj_flat *batch)
{
    struct oj_auto_work work = work_of(index, batch);
    struct oj_auto_cost cost = oj_auto_expect(&work);
    char vertices[40] = "";
    if (is_for_cpu(index, work.of_points))
        return 0;
    if (!work.of_points)
        snprintf(vertices, sizeof vertices, ", %.0f vertices",
                 work.n_vertices + work.n_join_vertices);
    snprintf(index->reason, sizeof index->reason,
             "%.0f rows%s: %.2g s expected on %d thread%s, %.2g s on a GPU",
             work.n_rows, vertices, cost.cpu_s, work.n_threads,
             work.n_threads == 1 ? "" : "s", cost.gpu_s);
    return oj_auto_gpu_pays(&cost);
}

static oj_status make_on_cpu(struct auto_index *index, struct oj_stats *stats,
                             struct oj_error *err)
{
    if (index->on_cpu != NULL)
        return OJ_OK;
    return oj_cpu_backend.index(&oj_cpu_backend, index->join_side,
                                index->tie_rank, &index->relation,
                                &index->options, &index->on_cpu, stats, err);
}

static void leave_gpu(struct auto_index *index, const char *why)
{
    snprintf(index->reason, sizeof index->reason, "no GPU: %.300s", why);
    if (index->on_gpu != NULL && index->on_cpu == NULL)
        index->on_cpu = oj_cuda_take_cpu(index->on_gpu);
    oj_cuda_backend.free_index(index->on_gpu);
    index->on_gpu = NULL;
    index->uses_gpu = 0;
    index->is_settled[0] = index->is_settled[1] = 1;
}

/* The backend cuda turns to the CPU where its devices cannot hold the data; who
 * has the choice says so. */
static void leave_if_refused(struct auto_index *index)
{
    const char *why = oj_cuda_refusal(index->on_gpu);
    if (why != NULL)
        leave_gpu(index, why);
}

/* Errors that the CPU does not have. */
static int is_of_device(oj_status status)
{
    return status == OJ_ERR_NO_DEVICE || status == OJ_ERR_NOMEM ||
           status == OJ_ERR_INTERNAL || status == OJ_ERR_UNSUPPORTED;
}

static oj_status try_gpu(struct auto_index *index, struct oj_stats *stats,
                         struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status = oj_cuda_possible(index->join_side, &index->relation,
                                        &index->options, &why);
    index->is_settled[0] = index->is_settled[1] = 1;
    if (status == OJ_OK)
        status = oj_cuda_backend.index(
            &oj_cuda_backend, index->join_side, index->tie_rank,
            &index->relation, &index->options, &index->on_gpu, stats, &why);
    index->uses_gpu = status == OJ_OK;
    if (status == OJ_OK)
    {
        leave_if_refused(index);
        return OJ_OK;
    }
    if (!is_of_device(status))
        return oj_fail(err, status, "%s", why.message);
    leave_gpu(index, why.message);
    return OJ_OK;
}

static void free_index(struct oj_index *wrapped)
{
    struct auto_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    oj_cpu_backend.free_index(index->on_cpu);
    oj_cuda_backend.free_index(index->on_gpu);
    oj_free(index);
}

/* Of lines and polygons the first batch says more. */
static oj_status settle(struct auto_index *index, struct oj_stats *stats,
                        struct oj_error *err)
{
    if (index->options.n_expected > 0)
    {
        index->is_settled[1] = 1;
        if (gpu_pays(index, NULL))
            OJ_TRY(try_gpu(index, stats, err));
    }
    return index->uses_gpu ? OJ_OK : make_on_cpu(index, stats, err);
}

/* Where the number of rows is not known, each batch is asked anew. */
static oj_status settle_by_batch(struct auto_index *index,
                                 const struct oj_flat *input,
                                 struct oj_stats *stats, struct oj_error *err)
{
    int *is_settled = &index->is_settled[oj_flat_is_points(input)];
    if (*is_settled)
        return OJ_OK;
    *is_settled = index->options.n_expected > 0;
    return gpu_pays(index, input) ? try_gpu(index, stats, err) : OJ_OK;
}

static oj_status
make_index(const struct oj_backend *row, const struct oj_flat *join_side,
           const int32_t *tie_rank, const struct oj_relation *relation,
           const struct oj_options *options, struct oj_index **out,
           struct oj_stats *stats, struct oj_error *err)
{
    struct auto_index *index = oj_calloc(1, sizeof *index);
    oj_status status;
    (void)row;
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->join_side = join_side;
    index->tie_rank = tie_rank;
    index->relation = *relation;
    index->options = *options;
    status = settle(index, stats, err);
    if (status != OJ_OK)
    {
        free_index((void *)index);
        return status;
    }
    *out = (void *)index;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct auto_index *index = (void *)wrapped;
    OJ_TRY(settle_by_batch(index, input, stats, err));
    if (index->uses_gpu)
    {
        struct oj_error why = {OJ_OK, ""};
        oj_status status =
            oj_cuda_backend.join(index->on_gpu, input, out, stats, &why);
        if (status == OJ_OK)
        {
            leave_if_refused(index);
            return OJ_OK;
        }
        if (!is_of_device(status))
            return oj_fail(err, status, "%s", why.message);
        leave_gpu(index, why.message);
    }
    OJ_TRY(make_on_cpu(index, stats, err));
    return oj_cpu_backend.join(index->on_cpu, input, out, stats, err);
}

/* What the backend cuda said when it was asked for counts or sums: OJ_OK, an
 * error of the caller's, or the pairs are the way. */
static oj_status judge_unmade(struct auto_index *index, oj_status status,
                              const char *why, struct oj_error *err)
{
    if (status != OJ_ERR_UNSUPPORTED && is_of_device(status))
        leave_gpu(index, why);
    else
        leave_if_refused(index);
    if (is_of_device(status))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "the GPU cannot: %.200s", why);
    return status == OJ_OK ? OJ_OK : oj_fail(err, status, "%s", why);
}

static oj_status count_pairs(struct oj_index *wrapped,
                             const struct oj_flat *input, int64_t *count,
                             int64_t *n_pairs, struct oj_stats *stats,
                             struct oj_error *err)
{
    struct auto_index *index = (void *)wrapped;
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    OJ_TRY(settle_by_batch(index, input, stats, err));
    if (!index->uses_gpu)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "pairs are counted on GPUs only");
    status = oj_cuda_backend.count_pairs(index->on_gpu, input, count, n_pairs,
                                         stats, &why);
    return judge_unmade(index, status, why.message, err);
}

static int sums(const struct oj_index *wrapped, const struct oj_flat *input)
{
    const struct auto_index *index = (const void *)wrapped;
    return index->uses_gpu && oj_cuda_backend.sums(index->on_gpu, input);
}

static oj_status sum_pairs(struct oj_index *wrapped,
                           const struct oj_flat *input,
                           const struct oj_sum_request *request, int64_t *words,
                           int64_t *n_pairs, struct oj_stats *stats,
                           struct oj_error *err)
{
    struct auto_index *index = (void *)wrapped;
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    if (!index->uses_gpu)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "pairs are summed on GPUs only");
    status = oj_cuda_backend.sum_pairs(index->on_gpu, input, request, words,
                                       n_pairs, stats, &why);
    return judge_unmade(index, status, why.message, err);
}

const struct oj_backend *oj_auto_used(const struct oj_index *wrapped)
{
    const struct auto_index *index = (const void *)wrapped;
    return index->uses_gpu ? &oj_cuda_backend : &oj_cpu_backend;
}

const char *oj_auto_reason(const struct oj_index *wrapped)
{
    const struct auto_index *index = (const void *)wrapped;
    const char *of_gpu = index->uses_gpu ? oj_cuda_reason(index->on_gpu) : "";
    return of_gpu[0] != '\0' ? of_gpu : index->reason;
}

const char *oj_auto_method(const struct oj_index *wrapped,
                           const struct oj_flat *input)
{
    const struct auto_index *index = (const void *)wrapped;
    if (index->uses_gpu)
        return oj_cuda_method(index->on_gpu, input);
    return oj_cpu_family_name(&index->relation, index->join_side, input);
}

const struct oj_backend oj_auto_backend = {
    OJ_BACKEND_ABI,
    "auto",
    "cpu, or cuda where it pays",
    0,
    0,
    make_index,
    join,
    free_index,
    count_pairs,
    sums,
    sum_pairs,
};
