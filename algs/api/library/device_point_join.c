#include "device_point_join.h"

#include "../../../flatten/base/oj_alloc.h"
#include "api_pairs.h"

#include <stdio.h>
#include <string.h>

/* Data for ogrjoin_device_pairs_wait() and ogrjoin_device_pairs_free(). */
struct device_answer
{
    struct ogrjoin_index *index;
    struct oj_gpu_index *gpu;
    struct oj_gpu_pairs pairs;
    void *stream;
};

static oj_status check_device_points(const struct ogrjoin_device_points *points,
                                     const struct ogrjoin_device_pairs *out,
                                     struct oj_error *err)
{
    if (points->size < sizeof *points || out->size < sizeof *out)
        return oj_fail(err, OJ_ERR_ARG,
                       "the member size of points and of pairs must be set to "
                       "sizeof their struct in ogrjoin.h");
    if (points->n < 0 || points->n > INT32_MAX || points->stride < 1)
        return oj_fail(
            err, OJ_ERR_ARG,
            "n must be 0 to 2^31 - 1 and stride 1 or more, not %lld and %lld",
            (long long)points->n, (long long)points->stride);
    return OJ_OK;
}

/* Sets *ordinal to the device that owns the memory of the points, or to the
 * first device if there are no points. */
static oj_status
find_device_of_points(const struct oj_gpu_module *module,
                      const struct ogrjoin_device_points *points, int *ordinal,
                      struct oj_error *err)
{
    int other;
    *ordinal = 0;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(module->device_of(points->x, ordinal, err));
    OJ_TRY(module->device_of(points->y, &other, err));
    return other == *ordinal ? OJ_OK
                             : oj_fail(err, OJ_ERR_ARG,
                                       "x and y are in the memory of different "
                                       "devices: copy both to one device");
}

/* Builds joins->of[ordinal], the index on a device, if it is not built yet.
 * Precondition: the calling thread holds the lock. */
static oj_status get_or_build_device_index(const struct oj_gpu_module *module,
                                           struct device_joins *joins,
                                           const struct device_join_side *side,
                                           int ordinal, struct oj_error *err)
{
    struct oj_options options = *side->options;
    struct oj_stats stats = {0};
    if (joins->of[ordinal] != NULL)
        return OJ_OK;
    options.gpus = UINT64_C(1) << ordinal;
    return module->resident_index(side->flat, side->tie_rank, side->relation,
                                  &options, &joins->of[ordinal], &stats, err);
}

oj_status device_join(struct device_joins *joins,
                      const struct device_join_side *side,
                      struct ogrjoin_index *index,
                      const struct ogrjoin_device_points *points,
                      struct ogrjoin_device_pairs *out, struct oj_error *err)
{
    struct oj_gpu_points here = {points->n, points->x, points->y, points->id,
                                 points->stride};
    const struct oj_gpu_module *module;
    struct device_answer *answer;
    oj_status status;
    int ordinal;
    OJ_TRY(check_device_points(points, out, err));
    OJ_TRY(oj_gpu_load(&module, err));
    OJ_TRY(find_device_of_points(module, points, &ordinal, err));
    OJ_NEW_ZEROED(answer, 1, err);
    pthread_mutex_lock(&joins->lock);
    status = get_or_build_device_index(module, joins, side, ordinal, err);
    if (status == OJ_OK)
        status = module->resident_join(joins->of[ordinal], &here,
                                       points->stream, &answer->pairs, err);
    pthread_mutex_unlock(&joins->lock);
    status =
        api_check_max_pairs(status, side->options->max_batch_pairs, 0, 0, err);
    if (status != OJ_OK)
    {
        oj_free(answer);
        return status;
    }
    answer->index = index;
    answer->gpu = joins->of[ordinal];
    answer->stream = points->stream;
    out->device = ordinal;
    out->n_points = answer->pairs.n_points;
    out->n_pairs = answer->pairs.n_pairs;
    out->offset = answer->pairs.offset;
    out->right = answer->pairs.row;
    out->measure = answer->pairs.measure;
    out->owner = answer;
    return OJ_OK;
}

void device_joins_free(struct device_joins *joins)
{
    const struct oj_gpu_module *module;
    struct oj_error unwanted;
    for (int i = 0; i < OJ_GPU_MAX_DEVICES; i++)
    {
        if (joins->of[i] != NULL && oj_gpu_load(&module, &unwanted) == OJ_OK)
            module->free_index(joins->of[i]);
    }
    pthread_mutex_destroy(&joins->lock);
}

int ogrjoin_device_pairs_wait(const struct ogrjoin_device_pairs *pairs,
                              void *stream, struct ogrjoin_error *err)
{
    const struct device_answer *answer = pairs->owner;
    const struct oj_gpu_module *module;
    struct oj_error why = {OJ_OK, ""};
    oj_status status = oj_gpu_load(&module, &why);
    if (status == OJ_OK)
        status =
            module->order_streams(pairs->device, answer->stream, stream, &why);
    return api_error_export(status, &why, err);
}

void ogrjoin_device_pairs_free(struct ogrjoin_device_pairs *pairs)
{
    const struct oj_gpu_module *module;
    struct oj_error unwanted;
    struct device_answer *answer = pairs != NULL ? pairs->owner : NULL;
    if (answer == NULL)
        return;
    if (oj_gpu_load(&module, &unwanted) == OJ_OK)
        module->resident_free(answer->gpu, &answer->pairs);
    ogrjoin_index_free(answer->index);
    oj_free(answer);
    memset(pairs, 0, sizeof *pairs);
}
