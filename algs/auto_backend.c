#include "auto_backend.h"

#include "../flatten/oj_array.h"
#include "cpu_family.h"
#include "cpu_threads.h"
#include "cuda_backend.h"

#include <stdio.h>

/* Rates, in seconds, measured with the nearest of 4.7 million vertices and 10
 * to 170 million points in ordinary memory: of one core, and of one H200, for
 * which cores stage the points.  Only sizes matter to the choice, so one set
 * does for all joins: a smaller device and a faster core both mean that the
 * choice is a little early or late, never that an answer differs. */
static const double cpu_row_s = 170e-9, cpu_vertex_s = 80e-9;
static const double gpu_row_s = 0.4e-9, gpu_vertex_s = 7e-9;
static const double stage_row_s = 4e-9; /* of one core */

/* Starting CUDA and taking memory, once in a process. */
static const double gpu_start_s = 0.5;

/* The estimates are rough: only a clear gain counts. */
static const double clear_gain = 1.5;

struct oj_index
{
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    struct oj_index *on_cpu, *on_gpu;
    int uses_gpu;
    int is_settled; /* no more choice */
    char reason[240];
};

static double n_vertices(const struct oj_flat *flat)
{
    return (double)(oj_flat_is_points(flat) ? flat->n_features
                                            : flat->n_vertices);
}

/* 1 when so many rows are clearly faster on a device; says why in reason. */
static int gpu_pays(struct oj_index *index, double n_rows)
{
    int n_threads = index->options.n_threads;
    double cpu_s, gpu_s, n = n_vertices(index->join_side);
    if (n_threads < 1)
        n_threads = oj_cpu_count();
    cpu_s = (n_rows * cpu_row_s + n * cpu_vertex_s) / n_threads;
    gpu_s = gpu_start_s + n_rows * (gpu_row_s + stage_row_s / n_threads) +
            n * gpu_vertex_s;
    snprintf(index->reason, sizeof index->reason,
             "%.3g rows: %.2g s expected on %d thread%s, %.2g s on a GPU",
             n_rows, cpu_s, n_threads, n_threads == 1 ? "" : "s", gpu_s);
    return cpu_s > clear_gain * gpu_s;
}

static oj_status make_on_cpu(struct oj_index *index, struct oj_stats *stats,
                             struct oj_error *err)
{
    if (index->on_cpu != NULL)
        return OJ_OK;
    return oj_cpu_backend.index(&oj_cpu_backend, index->join_side,
                                index->tie_rank, &index->relation,
                                &index->options, &index->on_cpu, stats, err);
}

static void leave_gpu(struct oj_index *index, const char *why)
{
    snprintf(index->reason, sizeof index->reason, "no GPU: %.220s", why);
    if (index->on_gpu != NULL && index->on_cpu == NULL)
        index->on_cpu = oj_cuda_take_cpu(index->on_gpu);
    oj_cuda_backend.free_index(index->on_gpu);
    index->on_gpu = NULL;
    index->uses_gpu = 0;
    index->is_settled = 1;
}

/* The backend cuda turns to the CPU where its devices cannot hold the data; who
 * has the choice says so. */
static void leave_if_refused(struct oj_index *index)
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

static oj_status try_gpu(struct oj_index *index, struct oj_stats *stats,
                         struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status = oj_cuda_possible(index->join_side, &index->relation,
                                        &index->options, &why);
    index->is_settled = 1;
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

static void free_index(struct oj_index *index)
{
    if (index == NULL)
        return;
    oj_cpu_backend.free_index(index->on_cpu);
    oj_cuda_backend.free_index(index->on_gpu);
    oj_free(index);
}

static oj_status settle(struct oj_index *index, struct oj_stats *stats,
                        struct oj_error *err)
{
    if (index->options.n_expected > 0)
    {
        index->is_settled = 1;
        if (gpu_pays(index, (double)index->options.n_expected))
            OJ_TRY(try_gpu(index, stats, err));
    }
    return index->uses_gpu ? OJ_OK : make_on_cpu(index, stats, err);
}

static oj_status
make_index(const struct oj_backend *row, const struct oj_flat *join_side,
           const int32_t *tie_rank, const struct oj_relation *relation,
           const struct oj_options *options, struct oj_index **out,
           struct oj_stats *stats, struct oj_error *err)
{
    struct oj_index *index = oj_calloc(1, sizeof *index);
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
        free_index(index);
        return status;
    }
    *out = index;
    return OJ_OK;
}

static oj_status join(struct oj_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    if (!index->is_settled && gpu_pays(index, (double)input->n_features))
        OJ_TRY(try_gpu(index, stats, err));
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

static oj_status count_pairs(struct oj_index *index,
                             const struct oj_flat *input, int64_t *count,
                             int64_t *n_pairs, struct oj_stats *stats,
                             struct oj_error *err)
{
    if (!index->is_settled && gpu_pays(index, (double)input->n_features))
        OJ_TRY(try_gpu(index, stats, err));
    if (index->uses_gpu)
    {
        struct oj_error why = {OJ_OK, ""};
        oj_status status = oj_cuda_backend.count_pairs(
            index->on_gpu, input, count, n_pairs, stats, &why);
        if (status != OJ_ERR_UNSUPPORTED && is_of_device(status))
            leave_gpu(index, why.message);
        else
            leave_if_refused(index);
        if (!is_of_device(status))
            return status == OJ_OK ? OJ_OK
                                   : oj_fail(err, status, "%s", why.message);
    }
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "pairs are counted on GPUs only");
}

const struct oj_backend *oj_auto_used(const struct oj_index *index)
{
    return index->uses_gpu ? &oj_cuda_backend : &oj_cpu_backend;
}

const char *oj_auto_reason(const struct oj_index *index)
{
    return index->reason;
}

const char *oj_auto_method(const struct oj_index *index,
                           const struct oj_flat *input)
{
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
};
