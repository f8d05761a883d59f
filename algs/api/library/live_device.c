#include "live_device.h"

#include "../../../flatten/base/oj_alloc.h"

#include <stdio.h>
#include <string.h>

struct live_device
{
    const struct oj_gpu_module *module;
    struct oj_gpu_live *live;
    struct oj_live *host; /* copy of the points in host memory; borrowed */
    pthread_mutex_t lock; /* guards the members below, and is held while points
                             change */
    int64_t n_batches;    /* number of batches applied */
    int64_t n_copied;     /* n_batches at the time of the last copy to host
                             memory */
};

oj_status live_device_new(const struct ogrjoin_settings *settings,
                          struct oj_live *host, struct live_device **out,
                          struct oj_error *err)
{
    struct oj_options options = settings->options;
    struct live_device *device;
    oj_status status;
    if (settings->tree == OJ_LIVE_KDTREE)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "tree kdtree is not available with backend cuda: set "
                       "tree to quadtree or auto");
    OJ_NEW_ZEROED(device, 1, err);
    pthread_mutex_init(&device->lock, NULL);
    device->host = host;
    status = oj_gpu_load_and_choose_devices(&options, &device->module,
                                            &options.gpus, err);
    if (status == OJ_OK)
        status = device->module->live_new(&options, &device->live, err);
    if (status == OJ_OK)
        *out = device;
    else
        live_device_free(device);
    return status;
}

void live_device_free(struct live_device *device)
{
    if (device == NULL)
        return;
    if (device->live != NULL)
        device->module->live_free(device->live);
    pthread_mutex_destroy(&device->lock);
    oj_free(device);
}

oj_status live_device_apply(struct live_device *device, int64_t n,
                            const int64_t *id, const double *x, const double *y,
                            struct oj_error *err)
{
    oj_status status;
    pthread_mutex_lock(&device->lock);
    status = device->module->live_apply(device->live, n, id, x, y, err);
    if (status == OJ_OK)
        device->n_batches++;
    pthread_mutex_unlock(&device->lock);
    if (status == OJ_ERR_NOMEM)
        oj_gpu_add_advice(err, "smaller batches need less");
    return status;
}

/* --- copy of the points in host memory ------------------------------------ */

/* A batch that replaces all points of the copy. */
struct copy_batch
{
    int64_t n;
    int64_t *id;
    double *x, *y;
};

/* Makes the batch that turns the points `old` into the points `now`, both
 * sorted by id: it removes the ids that are only in `old`, and sets the places
 * of all points of `now`. So it has one change for each id. */
static oj_status make_batch_of_differences(const struct live_points *old,
                                           const struct live_points *now,
                                           struct copy_batch *out,
                                           struct oj_error *err)
{
    int64_t at = 0, most = old->n + now->n;
    OJ_NEW(out->id, most, err);
    OJ_NEW(out->x, most, err);
    OJ_NEW(out->y, most, err);
    for (int64_t i = 0; i < old->n; i++)
    {
        while (at < now->n && now->id[at] < old->id[i])
            at++;
        if (at < now->n && now->id[at] == old->id[i])
            continue;
        out->id[out->n] = old->id[i];
        out->x[out->n] = out->y[out->n] = NAN;
        out->n++;
    }
    if (now->n > 0)
    {
        size_t size = (size_t)now->n * sizeof *now->x;
        memcpy(out->id + out->n, now->id, size);
        memcpy(out->x + out->n, now->x, size);
        memcpy(out->y + out->n, now->y, size);
    }
    out->n += now->n;
    return OJ_OK;
}

/* Replaces all points of the copy in one batch, so that joins in progress keep
 * the previous state. now: sorted by ids */
static oj_status replace_points(struct oj_live *host,
                                const struct live_points *now,
                                struct oj_error *err)
{
    const struct live_state *state = oj_live_acquire_state(host);
    struct live_points old = {0};
    struct copy_batch batch = {0};
    oj_status status = live_search_list_points(state, &old, err);
    oj_live_release_state(host, state);
    if (status == OJ_OK)
        status = make_batch_of_differences(&old, now, &batch, err);
    live_points_free(&old);
    if (status == OJ_OK)
        status = oj_live_apply(host, batch.n, batch.id, batch.x, batch.y, err);
    oj_free(batch.id);
    oj_free(batch.x);
    oj_free(batch.y);
    return status;
}

static oj_status copy_points_to_host(struct live_device *device,
                                     struct oj_error *err)
{
    struct live_points now = {0};
    oj_status status = device->module->live_points(
        device->live, &now.n, &now.id, &now.x, &now.y, err);
    if (status == OJ_OK)
        status = live_points_sort(&now, err);
    if (status == OJ_OK)
        status = replace_points(device->host, &now, err);
    live_points_free(&now);
    return status;
}

oj_status live_device_update_host(struct live_device *device,
                                  struct oj_error *err)
{
    oj_status status = OJ_OK;
    pthread_mutex_lock(&device->lock);
    if (device->n_copied != device->n_batches)
        status = copy_points_to_host(device, err);
    if (status == OJ_OK)
        device->n_copied = device->n_batches;
    pthread_mutex_unlock(&device->lock);
    return status;
}

struct oj_live_counts live_device_count(struct live_device *device, char *tree,
                                        size_t size)
{
    struct oj_gpu_live_counts c;
    int64_t n_batches;
    pthread_mutex_lock(&device->lock);
    c = device->module->live_count(device->live);
    n_batches = device->n_batches;
    pthread_mutex_unlock(&device->lock);
    snprintf(tree, size, "quadtree: the only tree of a kept index on GPUs");
    return (struct oj_live_counts){.n = c.n,
                                   .n_batches = n_batches,
                                   .n_put = c.n_put,
                                   .n_moved = c.n_moved,
                                   .n_removed = c.n_removed,
                                   .n_unknown = c.n_unknown,
                                   .n_unjoinable = c.n_unjoinable,
                                   .n_superseded = c.n_superseded,
                                   .n_rebuilt = c.n_rebuilt,
                                   .n_pages = c.n_pages,
                                   .n_bytes = c.n_bytes};
}

/* --- joins on devices ----------------------------------------------------- */

/* Returns 1 if the boxes of the input features decide the pairs: for op bbox
 * (with exclude_same_geometry only for points), and for points in joins that
 * pair equal points. */
static int needs_feature_boxes_alone(const struct oj_relation *relation,
                                     const struct oj_flat *input)
{
    return oj_relation_is_bbox(relation)
               ? oj_flat_is_points(input) || !relation->exclude_same_geometry
               : oj_flat_is_points(input) &&
                     oj_relation_pairs_equal_points(relation);
}

int live_device_supports_join(const struct oj_relation *relation,
                              const struct oj_flat *input)
{
    if (oj_relation_is_by_distance(relation))
        return live_search_supports_join(relation, input) &&
               (!oj_relation_is_nearest(relation) ||
                relation->k <= OJ_GPU_LIVE_MOST_K);
    return relation->metric == OJ_METRIC_PLANAR &&
           !oj_relation_compares_attributes(relation) &&
           input->on_class == NULL && input->exclude_class == NULL &&
           input->max_distance == NULL &&
           needs_feature_boxes_alone(relation, input);
}

static oj_status make_boxes_of_features(const struct oj_flat *input,
                                        struct oj_box **out,
                                        struct oj_error *err)
{
    struct oj_box *box;
    OJ_NEW(box, input->n_features, err);
    for (int64_t i = 0; i < input->n_features; i++)
        box[i] = oj_box_of_feature(input, i);
    *out = box;
    return OJ_OK;
}

oj_status live_device_join(struct live_device *device,
                           const struct oj_relation *relation,
                           const struct oj_flat *input, int64_t max_pairs,
                           struct live_pairs *out, struct oj_error *err)
{
    struct oj_gpu_live_rows rows = {.n = input->n_features};
    struct oj_gpu_live_pairs pairs = {0};
    struct oj_box *box = NULL;
    oj_status status = OJ_OK;
    if (relation->exclude_self || relation->unordered_pairs != 0)
        rows.fid = input->fid;
    if (oj_relation_is_by_distance(relation))
    {
        rows.x = input->x;
        rows.y = input->y;
        rows.max_distance = input->max_distance;
    }
    else
        status = make_boxes_of_features(input, &box, err);
    rows.box = box;
    if (status == OJ_OK)
        status = device->module->live_join(device->live, relation, &rows,
                                           max_pairs, &pairs, err);
    oj_free(box);
    if (status == OJ_ERR_NOMEM)
        oj_gpu_add_advice(err, "fewer rows at once need less");
    if (status == OJ_OK)
        *out = (struct live_pairs){.n_rows = pairs.n_rows,
                                   .n = pairs.n,
                                   .offset = pairs.offset,
                                   .id = pairs.id,
                                   .distance = pairs.distance};
    return status;
}
