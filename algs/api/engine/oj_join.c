#include "oj_join.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../../flatten/base/oj_timed_wait.h"
#include "../../foundations/aggregate/oj_aggregate.h"
#include "../../foundations/aggregate/oj_sum_request.h"
#include "../../foundations/base/oj_radix_sort.h"
#include "../../foundations/relation/oj_gpu.h"
#include "../../foundations/relation/oj_index.h"
#include "../../foundations/relation/oj_is_points_in_polygons.h"
#include "../../geometry/relate/oj_self_overlap.h"
#include "../../joins/similar_shapes/oj_densify.h"
#include "../../pairs/selection/oj_answer_ranking.h"
#include "../../pairs/selection/oj_class_features.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "oj_points_in_overlapping_parts.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chooses the engine that joins a batch, and the device.
 *
 *  On the CPU, the first engine of the backend's list that takes the batch
 *  joins it. Indexes are built when a batch needs them, except that of the
 *  engine that is expected to be used: it is built at once, so that errors of
 *  the join side are reported early.
 *
 *  OJ_DEVICE: the CUDA module joins a batch if it has kernels for it, otherwise
 *  the CPU. For lines and polygons on both sides, the module is a screen
 *  (oj_screen.h): it finds the pairs whose boxes pass and decides most of them;
 *  the CPU decides the rest. If the module cannot hold the data, because of
 *  coordinates or memory, the CPU joins.
 *
 *  OJ_DEVICE_IF_PAYS: the device is chosen at open if the number of input rows
 *  is known (n_expected of the options), otherwise by the size of the first
 *  batch. If a device fails, the CPU takes over. The result does not depend on
 *  the choice.
 *
 *  A join by similar texts with a maximum distance that no engine of the
 *  backend takes runs as a distance join with the texts as a condition; its
 *  pairs are then ranked by similarity.
 *
 *  If no device can be used, each thread joins with a copy; the original only
 *  holds the join side (oj_join_acquire()).
 *
 *  In this file err is never NULL: its text becomes the reason why another
 *  engine is used.
 */

#define REASON_SIZE 320

#define ON_CPU "ran on the CPU, since "
#define IN_PART "ran in part on the CPU, since "
#define NOT_TAKEN "no CUDA kernel answers such a join"

/* Queue entry of a thread that waits for the join; on the stack of that thread.
 */
struct join_turn
{
    struct join_turn *next;
};

struct oj_join
{
    const struct oj_backend *backend;
    struct oj_index_args args; /* its member join_side points to `join_side`
                                  below */
    struct oj_flat join_side;  /* the caller's layer, densified if the relation
                                  asks for it, with its member overlaps set */
    struct oj_dense dense[2];  /* buffers for the densified join side and
                                  batch */
    uint8_t *overlaps;         /* [features] 1: polygon parts of the feature
                                  overlap (oj_self_overlap.h); NULL: none do, or
                                  not needed */
    int has_overlaps;          /* 1: `overlaps` was computed, so features with
                                  overlapping parts are joined separately */
    struct oj_overlapping_points *overlapping; /* joins points with the features
                                                  marked in `overlaps`; NULL:
                                                  not needed yet */
    int has_small_classes; /* 1: all -on classes of the join side are small
                              (oj_class_features_are_small()) */
    int32_t *tie_rank; /* [features] rank of each join feature in the order that
                          decides ties; NULL: its ordinal */
    struct oj_stats stats;

    int is_ranked; /* 1: joins by args.relation, then ranks by `ranked` */
    struct oj_relation ranked; /* if is_ranked: the relation of the user, which
                                  ranks pairs by similarity */
    struct oj_matches found;   /* if is_ranked: pairs before the ranking */

    /* Guards the members below, which all copies of a join share. Also guards
     * indexes and stats, except while a thread uses the original itself. */
    pthread_mutex_t lock;
    pthread_cond_t join_released;
    int is_taken;             /* 1: a thread uses the join itself, not a copy */
    struct join_turn *line;   /* queue of threads that wait for the join
                                 itself */
    struct oj_join *original; /* if this is a copy: the join it was copied from;
                                 otherwise NULL */
    struct oj_join *idle;     /* free list of copies */
    struct oj_join *next;     /* next copy in the free list */

    int has_cpu;                          /* 1: the index for the expected kinds
                                             of input is built */
    struct oj_index *of[OJ_MOST_ENGINES]; /* [engines of the backend] index of
                                             each engine; NULL: not built */

    /* Members for OJ_DEVICE_IF_PAYS. is_settled 1: the choice of CPU or GPU
     * holds for all later batches; element 1 is for batches of points, element
     * 0 for all other batches. */
    int is_settled[2];
    char choice[REASON_SIZE]; /* reason of the choice */

    /* Members for joins on a device. */
    int uses_gpu;
    const struct oj_gpu_module *module;
    struct oj_gpu_index *on_gpu; /* the module's index; NULL: not built */
    int sums_refused; /* 1: do not try again to sum pairs on the device: it
                         failed for this join */
    int n_sum_words;  /* words per join feature of the last sum request */
    int is_refused;   /* 1: the module refused the join side, so the CPU
                         joins */
    char reason[REASON_SIZE]; /* why the CPU was used instead of the GPU, for
                                 messages; "": the GPU was used */
    char slower[REASON_SIZE]; /* why the GPU used a slower method, for messages;
                                 "": the GPU used none */

    /* Members for joins by predicate with a GPU screen (oj_screen.h). */
    int has_screen;                    /* 1: the module can be a screen for this
                                          join; 0: it cannot; -1: not determined
                                          yet */
    struct oj_screen_pairs candidates; /* candidates of the current batch */
    struct oj_screen_rule rule;
    struct oj_gpu_screen *screen_index; /* the screen's index; NULL: not
                                           built */
    int screen_refused; /* 1: do not use the screen again: it cannot be built,
                           or the device was lost */
    char screen_reason[REASON_SIZE]; /* why a batch was joined without the
                                        screen, for messages */
};

/* 1: some join of this process has used a device, so CUDA is started. */
static atomic_int is_started;

const char *oj_version(void)
{
    return OGRJOIN_VERSION;
}

/* --- tie order ------------------------------------------------------------ */

/* Computes the order that decides ties: by (FID, reading order); by reading
 * order alone if FIDs are missing or repeated. *out is NULL if this is the
 * order of the ordinals. */
static oj_status make_tie_rank(const struct oj_flat *flat, int32_t **out,
                               struct oj_error *err)
{
    int64_t n = flat->n_features;
    int64_t i = 1;
    struct oj_keyed *at, *sorted;
    int32_t *rank = NULL;
    oj_status status = OJ_OK;
    if (flat->fid == NULL)
        return OJ_OK;
    while (i < n && flat->fid[i] > flat->fid[i - 1])
        i++;
    if (i >= n)
        return OJ_OK;
    OJ_NEW(at, 2 * n, err);
    for (i = 0; i < n; i++)
    {
        /* flips the sign bit, so that negative FIDs are ordered before positive
         * ones */
        at[i].key = (uint64_t)flat->fid[i] ^ (UINT64_C(1) << 63);
        at[i].value = i;
    }
    sorted = oj_radix_sort(at, at + n, n);
    for (i = 1; i < n && sorted[i].key != sorted[i - 1].key; i++)
        ;
    if (i == n && (rank = oj_malloc(n, sizeof *rank)) == NULL)
        status = oj_fail_nomem(err, n, sizeof *rank);
    for (i = 0; rank != NULL && i < n; i++)
        rank[sorted[i].value] = (int32_t)i;
    oj_free(at);
    *out = rank;
    return status;
}

/* --- joins on the CPU ----------------------------------------------------- */

/* Returns the index, in the backend's list, of the first engine that supports
 * such a batch, or -1 if none does. */
static int choose_engine_of(const struct oj_backend *backend,
                            const struct oj_join *join,
                            const struct oj_flat *input)
{
    const struct oj_engine *engine;
    for (int i = 0; (engine = backend->engines[i]) != NULL; i++)
    {
        if ((join->has_small_classes || !engine->needs_small_classes) &&
            oj_engine_supports_join(engine, &join->args.relation,
                                    &join->join_side, input))
            return i;
    }
    return -1;
}

static int choose_engine(const struct oj_join *join,
                         const struct oj_flat *input)
{
    return choose_engine_of(join->backend, join, input);
}

/* Returns the index, in the backend's list, of the engine for the expected
 * input: points, unless options.input_kinds names other kinds. */
static int choose_expected_engine(const struct oj_join *join)
{
    static const int64_t none[1] = {0};
    struct oj_flat expected = {.part_kinds = join->args.options.input_kinds,
                               .part_offset = none};
    if (expected.part_kinds == 0 || expected.part_kinds == OJ_PART_POINT)
        return choose_engine(join, NULL);
    return choose_engine(join, &expected);
}

static oj_status ensure_engine_index(struct oj_join *join, int i,
                                     struct oj_error *err)
{
    struct oj_join *original = join->original;
    oj_status status;
    if (i < 0 || join->of[i] != NULL)
        return OJ_OK;
    if (original == NULL)
        return oj_index_make(join->backend->engines[i], &join->args,
                             &join->of[i], &join->stats, err);
    pthread_mutex_lock(&original->lock);
    status = ensure_engine_index(original, i, err);
    pthread_mutex_unlock(&original->lock);
    OJ_TRY(status);
    return oj_index_copy(join->backend->engines[i], original->of[i],
                         &join->args.options, &join->of[i], err);
}

static oj_status build_cpu_index_if_needed(struct oj_join *join,
                                           struct oj_error *err)
{
    if (!join->has_cpu)
        OJ_TRY(ensure_engine_index(join, choose_expected_engine(join), err));
    join->has_cpu = 1;
    return OJ_OK;
}

static void free_cpu_indexes(struct oj_join *join)
{
    for (int i = 0; i < OJ_MOST_ENGINES; i++)
    {
        if (join->of[i] != NULL && join->original != NULL)
            oj_index_copy_free(join->backend->engines[i], join->of[i]);
        else if (join->of[i] != NULL)
            oj_index_free(join->backend->engines[i], join->of[i]);
        join->of[i] = NULL;
    }
    join->has_cpu = 0;
}

/* --- the CUDA module as a screen ------------------------------------------ */

/* Returns 1 if the input may contain points. */
static int may_input_have_points(const struct oj_join *join)
{
    unsigned kinds = join->args.options.input_kinds;
    return kinds == 0 || (kinds & OJ_PART_POINT) != 0;
}

static int may_input_have_shapes(const struct oj_join *join)
{
    return join->args.options.input_kinds != OJ_PART_POINT;
}

/* Returns 1 for errors of the module that a join on the CPU would not have. */
static int is_memory_or_unsupported_error(oj_status status)
{
    return status == OJ_ERR_UNSUPPORTED || status == OJ_ERR_NOMEM;
}

static int gpu_screen_decides_most_pairs(const struct oj_join *join)
{
    return oj_screen_decides_most_pairs(&join->args.relation) &&
           !oj_flat_is_points(&join->join_side);
}

static int uses_gpu_screen_for_batch(const struct oj_join *join,
                                     const struct oj_flat *input)
{
    return join->has_screen > 0 && !join->screen_refused && input != NULL &&
           !oj_flat_is_points(input);
}

/* Finds candidates by the GPU screen. The screen is not used again if its index
 * cannot be built, the device was lost or the module reports an internal error;
 * after other errors, for example a lack of memory for a batch, the next batch
 * tries it again. */
static oj_status run_gpu_screen(struct oj_join *join,
                                const struct oj_flat *input, int64_t most,
                                struct oj_screen_pairs *out,
                                struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_gpu_module *module = join->module;
    oj_status status = OJ_OK;
    if (join->screen_index == NULL)
        status = module->screen_index(&join->join_side, &join->rule,
                                      &join->args.options, &join->screen_index,
                                      stats, err);
    if (status != OJ_OK)
    {
        join->screen_refused = status != OJ_ERR_CANCELLED;
        if (status == OJ_ERR_NOMEM)
            oj_gpu_add_advice(err, OJ_GPU_ADVICE_TILES);
        return status;
    }
    status =
        module->screen_find(join->screen_index, input, most, out, stats, err);
    join->screen_refused =
        status == OJ_ERR_NO_DEVICE || status == OJ_ERR_INTERNAL;
    if (status == OJ_ERR_NOMEM)
        oj_gpu_add_advice(err, OJ_GPU_ADVICE_BATCH);
    return status;
}

/* Sets join->candidates to those that the GPU screen finds for a batch. Sets
 * *are_found to 0 if the screen cannot find them, so that the engine must. */
static oj_status find_candidates_on_gpu(struct oj_join *join,
                                        const struct oj_engine *engine,
                                        const struct oj_flat *input,
                                        int *are_found, struct oj_error *err)
{
    int64_t most = oj_most_candidates_of_batch(oj_most_pairs_of_batch(
        join->args.options.max_batch_pairs, input->n_features));
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    *are_found = 0;
    if (engine->join_candidates == NULL ||
        !uses_gpu_screen_for_batch(join, input))
        return OJ_OK;
    status = run_gpu_screen(join, input, most, &join->candidates, &join->stats,
                            &why);
    if (status == OJ_ERR_TOO_MANY_PAIRS || status == OJ_ERR_CANCELLED)
        return oj_fail(err, status, "%s", why.message);
    if (status != OJ_OK && join->screen_reason[0] == '\0')
        snprintf(join->screen_reason, REASON_SIZE, IN_PART "%.280s",
                 why.message);
    *are_found = status == OJ_OK;
    return OJ_OK;
}

/* Fails because no engine of the backend takes the batch. If an engine of the
 * backend cpu does, the message advises another backend; otherwise it names the
 * condition or the op that is not possible with these features. */
static oj_status fail_without_engine(const struct oj_join *join,
                                     const struct oj_flat *input,
                                     struct oj_error *err)
{
    const struct oj_relation *relation = &join->args.relation;
    const char *op = oj_op_get(relation->op)->name;
    const int is_on_ellipsoid = relation->metric == OJ_METRIC_ELLIPSOID;
    if (choose_engine_of(oj_backend_find("cpu"), join, input) >= 0)
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "the backend %s does not support op %s%s%s%s: use the backend "
            "auto",
            join->backend->name, op,
            is_on_ellipsoid                        ? " with metric ellipsoid"
            : relation->metric == OJ_METRIC_SPHERE ? " with metric sphere"
                                                   : "",
            relation->heading.is_asked ? " with a heading" : "",
            oj_relation_is_of_shapes(relation) ? " between such features" : "");
    if (relation->heading.is_asked)
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "a heading needs points as input: join the centroids of lines and "
            "polygons (centroid_of input), or leave the heading out");
    if (is_on_ellipsoid)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "metric ellipsoid measures between points or "
                       "multipoints and features of any type: one of the sides "
                       "must be of points (centroid_of makes them)");
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "op %s is not possible between these kinds of features: use "
                   "another op",
                   op);
}

static oj_status join_on_cpu(struct oj_join *join, const struct oj_flat *input,
                             struct oj_matches *out, struct oj_error *err)
{
    const struct oj_engine *engine;
    int i = choose_engine(join, input), are_found;
    OJ_TRY(build_cpu_index_if_needed(join, err));
    if (i < 0)
        return fail_without_engine(join, input, err);
    OJ_TRY(ensure_engine_index(join, i, err));
    engine = join->backend->engines[i];
    OJ_TRY(find_candidates_on_gpu(join, engine, input, &are_found, err));
    return are_found
               ? engine->join_candidates(join->of[i], input, &join->candidates,
                                         out, &join->stats, err)
               : engine->join(join->of[i], input, out, &join->stats, err);
}

/* Enables the GPU screen if the module supports it for this join. Frees the
 * existing CPU indexes, because with a screen they are built differently. */
static void install_gpu_screen(struct oj_join *join)
{
    if (join->has_screen >= 0)
        return;
    join->has_screen = join->module->screen_index != NULL &&
                       join->args.relation.n_spans == 0 &&
                       !oj_flat_is_points(&join->join_side) &&
                       oj_screen_rule_of(&join->args.relation, &join->rule);
    if (!join->has_screen)
        return;
    free_cpu_indexes(join);
    join->args.gets_candidates = 1;
}

/* --- the CUDA module ------------------------------------------------------ */

/* Returns 1 if pairs are ranked by texts or vectors among features within a
 * distance, which no kernel does. */
static int ranks_similar_within_distance(const struct oj_relation *relation)
{
    return oj_relation_is_similar(relation) &&
           relation->max_distance < INFINITY;
}

/* Returns 1 if the join has conditions that no kernel tests. */
static int has_conditions_for_cpu_only(const struct oj_relation *relation)
{
    return relation->n_spans > 0 || relation->heading.is_asked;
}

static int gpu_module_supports_join(const struct oj_join *join,
                                    const struct oj_flat *input)
{
    return !join->is_refused &&
           !ranks_similar_within_distance(&join->args.relation) &&
           !has_conditions_for_cpu_only(&join->args.relation) &&
           join->module->supports(&join->args.relation, &join->join_side,
                                  input);
}

/* Prepares the CPU to join this batch, or a part of it: enables the screen,
 * records the reason `why`, and builds the CPU index. */
static oj_status prepare_cpu(struct oj_join *join, const char *why,
                             struct oj_error *err)
{
    install_gpu_screen(join);
    if (join->reason[0] == '\0' && (join->is_refused || !join->has_screen))
        snprintf(join->reason, REASON_SIZE, ON_CPU "%.290s", why);
    return build_cpu_index_if_needed(join, err);
}

static void free_gpu_index(struct oj_join *join)
{
    if (join->on_gpu != NULL)
        join->module->free_index(join->on_gpu);
    join->on_gpu = NULL;
}

/* Refuses the GPU for all further batches: frees its index and prepares the
 * CPU. advice is appended to the reason if memory ran out. */
static oj_status prepare_cpu_for_all_batches(struct oj_join *join,
                                             oj_status status,
                                             const char *advice,
                                             struct oj_error *err)
{
    if (status == OJ_ERR_NOMEM)
        oj_gpu_add_advice(err, advice);
    join->is_refused = 1;
    free_gpu_index(join);
    return prepare_cpu(join, err->message, err);
}

/* Notes why the GPU uses a slower method. Called after each success of the
 * module, because its method may have changed. */
static void record_slower_gpu_method(struct oj_join *join)
{
    const char *why = join->module->why_refused(join->on_gpu);
    if (why[0] != '\0' && join->slower[0] == '\0')
        snprintf(join->slower, REASON_SIZE,
                 "took a slower method on the GPU, since %.260s", why);
}

/* Builds the GPU index. Only this shows whether the module can hold the data;
 * if it cannot, all batches turn to the CPU and OJ_OK is returned. */
static oj_status build_gpu_index_if_needed(struct oj_join *join,
                                           struct oj_error *err)
{
    oj_status status;
    if (join->on_gpu != NULL)
        return OJ_OK;
    status = join->module->index(&join->join_side, join->tie_rank,
                                 &join->args.relation, &join->args.options,
                                 &join->on_gpu, &join->stats, err);
    if (is_memory_or_unsupported_error(status))
        return prepare_cpu_for_all_batches(join, status, OJ_GPU_ADVICE_TILES,
                                           err);
    if (status == OJ_OK)
    {
        atomic_store(&is_started, 1);
        record_slower_gpu_method(join);
    }
    return status;
}

/* Builds the GPU index if the module supports the batch; *is_taken is 0 if it
 * does not, or if building failed. A missing column of one side is an error, as
 * on the CPU. */
static oj_status prepare_gpu_for_batch(struct oj_join *join,
                                       const struct oj_flat *input,
                                       int *is_taken, struct oj_error *err)
{
    struct oj_pair_filter filter;
    *is_taken = gpu_module_supports_join(join, input);
    if (!*is_taken)
        return OJ_OK;
    OJ_TRY(oj_pair_filter_make(&join->args.relation, input, &join->join_side,
                               &filter, err));
    OJ_TRY(build_gpu_index_if_needed(join, err));
    *is_taken = gpu_module_supports_join(join, input);
    return OJ_OK;
}

/* Returns 1 if the module's kernels accept features of any kinds. */
static int gpu_join_ignores_geometry_kind(const struct oj_join *join)
{
    const struct oj_relation *relation = &join->args.relation;
    return oj_relation_is_similar(relation) ||
           oj_relation_compares_shapes(relation);
}

/* Opens the devices. If the module takes points, builds its index at once, so
 * that errors of the join side are reported early. */
static oj_status open_gpu(struct oj_join *join, struct oj_error *err)
{
    struct oj_options *options = &join->args.options;
    struct oj_error why = {OJ_OK, ""};
    oj_status status = oj_gpu_load_and_choose_devices(options, &join->module,
                                                      &options->gpus, &why);
    if (status != OJ_OK)
        return oj_fail(err, status, "the backend cuda cannot be used: %.900s",
                       why.message);
    OJ_TRY(
        (may_input_have_points(join) || gpu_join_ignores_geometry_kind(join)) &&
                gpu_module_supports_join(join, NULL)
            ? build_gpu_index_if_needed(join, err)
            : prepare_cpu(join, NOT_TAKEN, err));
    join->uses_gpu = 1;
    return OJ_OK;
}

static void close_gpu(struct oj_join *join)
{
    free_gpu_index(join);
    if (join->has_screen > 0)
        free_cpu_indexes(join);
    if (join->screen_index != NULL)
        join->module->screen_free(join->screen_index);
    join->screen_index = NULL;
    oj_screen_pairs_free(&join->candidates);
    join->args.gets_candidates = join->has_screen = join->uses_gpu = 0;
}

static oj_status join_with_gpu(struct oj_join *join,
                               const struct oj_flat *input,
                               struct oj_matches *out, struct oj_error *err)
{
    int is_taken;
    OJ_TRY(prepare_gpu_for_batch(join, input, &is_taken, err));
    if (is_taken)
    {
        oj_status status =
            join->module->join(join->on_gpu, input, out, &join->stats, err);
        if (status == OJ_OK)
            record_slower_gpu_method(join);
        if (!is_memory_or_unsupported_error(status))
            return status;
        OJ_TRY(prepare_cpu_for_all_batches(join, status, OJ_GPU_ADVICE_BATCH,
                                           err));
    }
    else
        OJ_TRY(prepare_cpu(join, NOT_TAKEN, err));
    OJ_TRY(join_on_cpu(join, input, out, err));
    if (join->screen_index != NULL)
        atomic_store(&is_started, 1);
    return OJ_OK;
}

/* --- choice between CPU and GPU ------------------------------------------- */

/* Assumed minimum number of vertices of a line or polygon, if only the number
 * of rows is known. */
#define LEAST_VERTICES 4

/* Seconds per row and per vertex on the GPU. Fitted to joins of 0.3 to 100
 * million rows with 2 and 16 threads and one H200 (BENCHMARKS.md). The rates of
 * the CPU are in the engines (struct oj_engine_cost). On other hardware the
 * choice is less accurate, but the result does not change. */
static const double gpu_row_s = 5e-9, gpu_vertex_s = 7e-9;

/* Joins of lines and polygons that intersect: seconds per vertex of either
 * side. */
static const double cpu_shape_vertex_s = 140e-9;
static const double gpu_shape_vertex_s = 3e-9;
/* seconds per vertex, on one core, to prepare data for the GPU */
static const double stage_shape_vertex_s = 30e-9;

/* The speed of n threads is estimated as n to this power. */
static const double thread_gain = 0.8;

/* Time to start CUDA and allocate memory, once per process. */
static const double gpu_start_s = 0.25;

/* The GPU is chosen only if its estimate is better by this factor, because
 * estimates are rough. */
static const double clear_gain = 1.15;

static double count_vertices(const struct oj_flat *flat)
{
    return (double)(oj_flat_is_points(flat) ? flat->n_features
                                            : flat->n_vertices);
}

static const struct oj_engine_cost *
engine_cost_of_batch(const struct oj_join *join, const struct oj_flat *batch)
{
    int i = batch != NULL ? choose_engine(join, batch)
                          : choose_expected_engine(join);
    return i >= 0 ? join->backend->engines[i]->points_cost : NULL;
}

/* Returns the estimated time, in seconds, to join `rows` points on one core. */
static double estimate_cpu_seconds(const struct oj_join *join,
                                   const struct oj_engine_cost *cost,
                                   double rows)
{
    int64_t k = join->args.relation.k;
    if (cost == NULL)
        return 0.0;
    return count_vertices(&join->join_side) * cost->vertex_s +
           rows * (cost->row_s + (k > 1 ? (double)k * cost->place_s : 0.0));
}

/* Returns 1 if the GPU is expected to be clearly faster for this batch; batch
 * NULL: for the expected input. Writes the reason to join->choice. */
static int decide_if_gpu_is_clearly_faster(struct oj_join *join,
                                           const struct oj_flat *batch)
{
    const struct oj_options *options = &join->args.options;
    int of_points =
        batch != NULL ? oj_flat_is_points(batch) : may_input_have_points(join);
    double threads = options->n_threads;
    double cores = pow(threads, thread_gain);
    double rows = (double)options->n_expected, vertices = rows * LEAST_VERTICES;
    double all = count_vertices(&join->join_side);
    const struct oj_engine_cost *cost = engine_cost_of_batch(join, batch);
    int by_attributes = cost != NULL && cost->expect != NULL;
    double cpu_s, gpu_s, start = atomic_load(&is_started) ? 0.0 : gpu_start_s;
    char text[40] = "";
    if (!by_attributes && !of_points && !gpu_screen_decides_most_pairs(join))
    {
        snprintf(join->choice, REASON_SIZE,
                 "lines and polygons: -op %s is decided on the CPU",
                 oj_op_get(join->args.relation.op)->name);
        return 0;
    }
    if (batch != NULL && batch->n_features > 0)
    {
        double n = (double)batch->n_features;
        rows = rows > n ? rows : n;
        vertices = count_vertices(batch) * (rows / n);
    }
    if (by_attributes)
    {
        cost->expect(&join->args.relation, &join->join_side, rows, &cpu_s,
                     &gpu_s);
        cpu_s /= cores;
    }
    else if (of_points)
    {
        cpu_s = estimate_cpu_seconds(join, cost, rows) / cores;
        gpu_s = rows * gpu_row_s + all * gpu_vertex_s;
    }
    else
    {
        all += vertices;
        cpu_s = all * cpu_shape_vertex_s / cores;
        gpu_s = all * (gpu_shape_vertex_s + stage_shape_vertex_s / threads);
        snprintf(text, sizeof text, ", %.0f vertices", all);
    }
    gpu_s += start;
    snprintf(join->choice, REASON_SIZE,
             "%.0f rows%s: %.2g s expected on %d thread%s, %.2g s on a GPU",
             rows, text, cpu_s, options->n_threads,
             options->n_threads == 1 ? "" : "s", gpu_s);
    return cpu_s > clear_gain * gpu_s;
}

/* Returns OJ_OK if the join can run on a device: the module, a driver and a
 * device exist, and the module has a kernel for points or the expected input.
 * The first such call in a process starts CUDA, which takes tenths of a
 * second. */
static oj_status check_gpu_can_join(const struct oj_join *join,
                                    struct oj_error *err)
{
    const struct oj_gpu_module *module;
    uint64_t gpus;
    OJ_TRY(oj_gpu_load(&module, err));
    if (has_conditions_for_cpu_only(&join->args.relation))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, NOT_TAKEN);
    if (!((may_input_have_points(join) ||
           gpu_join_ignores_geometry_kind(join)) &&
          !ranks_similar_within_distance(&join->args.relation) &&
          module->supports(&join->args.relation, &join->join_side, NULL)) &&
        !(may_input_have_shapes(join) && module->screen_index != NULL &&
          gpu_screen_decides_most_pairs(join)))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, NOT_TAKEN);
    return oj_gpu_load_and_choose_devices(&join->args.options, &module, &gpus,
                                          err);
}

static int is_gpu_use_optional(const struct oj_join *join)
{
    return join->backend->device_use == OJ_DEVICE_IF_PAYS;
}

static void close_optional_gpu(struct oj_join *join, const char *why)
{
    snprintf(join->choice, REASON_SIZE, "no GPU: %.300s", why);
    close_gpu(join);
    join->is_settled[0] = join->is_settled[1] = 1;
}

/* If the GPU is optional and has refused the data, switches to the CPU for all
 * further batches. */
static void close_optional_gpu_if_refused(struct oj_join *join)
{
    if (!is_gpu_use_optional(join))
        return;
    if (join->is_refused)
        close_optional_gpu(join, join->reason + strlen(ON_CPU));
    else if (join->on_gpu == NULL && join->screen_refused)
        close_optional_gpu(join, join->screen_reason[0] != '\0'
                                     ? join->screen_reason + strlen(IN_PART)
                                     : "");
}

/* Returns 1 if the CPU can join in place of the GPU after this error. */
static int can_go_on_without_gpu(const struct oj_join *join, oj_status status)
{
    return is_gpu_use_optional(join) &&
           (is_memory_or_unsupported_error(status) ||
            status == OJ_ERR_NO_DEVICE || status == OJ_ERR_INTERNAL);
}

static oj_status open_gpu_or_fall_back(struct oj_join *join,
                                       struct oj_error *err)
{
    oj_status status = check_gpu_can_join(join, err);
    join->is_settled[0] = join->is_settled[1] = 1;
    if (status == OJ_OK)
        status = open_gpu(join, err);
    if (status == OJ_OK)
        close_optional_gpu_if_refused(join);
    else if (can_go_on_without_gpu(join, status))
        close_optional_gpu(join, err->message);
    else
        return status;
    return OJ_OK;
}

/* Chooses CPU or GPU when the join side was read. For lines and polygons, the
 * first batch may change this choice. */
static oj_status choose_processor_at_open(struct oj_join *join,
                                          struct oj_error *err)
{
    join->is_settled[0] = join->is_settled[1] = !is_gpu_use_optional(join);
    if (join->backend->device_use == OJ_DEVICE)
        return open_gpu(join, err);
    if (is_gpu_use_optional(join) && join->args.options.n_expected > 0)
    {
        join->is_settled[1] = 1;
        if (decide_if_gpu_is_clearly_faster(join, NULL))
            OJ_TRY(open_gpu_or_fall_back(join, err));
    }
    return join->uses_gpu ? OJ_OK : build_cpu_index_if_needed(join, err);
}

/* Chooses CPU or GPU by the size of the first batch or, if the number of rows
 * is not known, by the size of each batch. */
static oj_status open_gpu_if_faster_for_batch(struct oj_join *join,
                                              const struct oj_flat *input,
                                              struct oj_error *err)
{
    int *is_settled = &join->is_settled[oj_flat_is_points(input)];
    if (*is_settled)
        return OJ_OK;
    *is_settled = join->args.options.n_expected > 0;
    return decide_if_gpu_is_clearly_faster(join, input)
               ? open_gpu_or_fall_back(join, err)
               : OJ_OK;
}

/* --- opening and closing a join ------------------------------------------- */

static int may_use_device(const struct oj_join *join)
{
    const struct oj_gpu_module *module;
    return join->backend->device_use == OJ_DEVICE ||
           (is_gpu_use_optional(join) && oj_gpu_load(&module, NULL) == OJ_OK);
}

/* Returns 1 if the join is by the even-odd rule over all rings of a feature,
 * which is wrong for features with overlapping parts: they must be found and
 * joined separately. */
static int must_find_overlapping_parts(const struct oj_join *join)
{
    return join->args.relation.n_spans == 0 &&
           oj_is_points_in_polygons(&join->args.relation, &join->join_side,
                                    NULL) &&
           may_use_device(join);
}

static oj_status mark_overlapping_parts(struct oj_join *join,
                                        struct oj_error *err)
{
    const struct oj_options *options = &join->args.options;
    double start = oj_clock_seconds();
    int asks_where = oj_point_locations_of_op(join->args.relation.op) !=
                     (1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY);
    if (must_find_overlapping_parts(join))
        OJ_TRY(oj_self_overlap_find(&join->join_side, asks_where,
                                    options->n_threads, options->cancel,
                                    &join->overlaps, err));
    join->join_side.overlaps = join->overlaps;
    join->has_overlaps = 1;
    join->stats.index_s += oj_clock_seconds() - start;
    return OJ_OK;
}

/* Densifies a side if the relation asks for it; otherwise *out is *flat. */
static oj_status densify_side_if_asked(struct oj_join *join,
                                       const struct oj_flat *flat,
                                       struct oj_dense *dense,
                                       struct oj_flat *out,
                                       struct oj_error *err)
{
    const struct oj_relation *relation = &join->args.relation;
    if (relation->densify > 0.0)
        return oj_densify(flat, relation->densify,
                          relation->metric == OJ_METRIC_SPHERE, dense, out,
                          err);
    *out = *flat;
    return OJ_OK;
}

/* Prepares the join side (densified, overlapping parts marked, tie ranks) and
 * builds the index that the backend needs for the expected input. */
static oj_status prepare_and_index_join_side(struct oj_join *join,
                                             const struct oj_flat *join_side,
                                             struct oj_error *err)
{
    OJ_TRY(densify_side_if_asked(join, join_side, &join->dense[0],
                                 &join->join_side, err));
    join->join_side.overlaps = NULL;
    OJ_TRY(oj_class_features_are_small(&join->join_side,
                                       &join->has_small_classes, err));
    if (may_input_have_points(join))
        OJ_TRY(mark_overlapping_parts(join, err));
    OJ_TRY(make_tie_rank(join_side, &join->tie_rank, err));
    join->args.join_side = &join->join_side;
    join->args.tie_rank = join->tie_rank;
    return choose_processor_at_open(join, err);
}

static void
split_similar_into_dwithin_and_rank(struct oj_join *join,
                                    const struct oj_relation *relation)
{
    struct oj_relation *asked = &join->args.relation;
    *asked = *relation;
    if (!ranks_similar_within_distance(relation) ||
        choose_engine(join, NULL) >= 0)
        return;
    join->is_ranked = 1;
    join->ranked = *relation;
    oj_relation_make_dwithin(asked);
    asked->any_order = 0;
}

/* If any pair of a row is enough, joins by the nearest feature: a search for
 * one feature ends early, whereas the features within a distance, or at an
 * equal distance, may be many. */
static void change_to_nearest_if_any_pair_suffices(struct oj_relation *asked)
{
    if (asked->enough_pairs != OJ_ENOUGH_ANY)
        return;
    if (oj_relation_is_by_distance(asked))
        oj_relation_make_nearest(asked);
    else if ((oj_op_get(asked->op)->takes & OJ_TAKES_K) != 0)
    {
        asked->k = 1;
        asked->ties = OJ_TIES_FIRST;
    }
}

oj_status oj_join_open(const struct oj_flat *join_side,
                       const struct oj_relation *relation, const char *backend,
                       const struct oj_options *options, struct oj_join **out,
                       struct oj_error *err)
{
    struct oj_join *join;
    struct oj_options *own;
    const struct oj_backend *found;
    oj_status status;
    OJ_TRY(oj_relation_check(relation, err));
    OJ_TRY(oj_backend_read("", "backend",
                           backend != NULL ? backend : oj_auto_backend.name,
                           &found, err));
    if (join_side->n_features > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the join layer has %lld features, but at most %d are "
                       "possible: filter it before the join",
                       (long long)join_side->n_features, INT32_MAX);
    OJ_NEW_ZEROED(join, 1, err);
    join->backend = found;
    join->has_screen = -1;
    if (!oj_timed_wait_init(&join->join_released))
    {
        oj_free(join);
        return oj_fail(err, OJ_ERR_NOMEM,
                       "the system could not create a lock: it is out of "
                       "memory or resources; end other programs");
    }
    pthread_mutex_init(&join->lock, NULL);
    split_similar_into_dwithin_and_rank(join, relation);
    if (!join->is_ranked)
        change_to_nearest_if_any_pair_suffices(&join->args.relation);
    own = &join->args.options;
    if (options != NULL)
        *own = *options;
    if (own->n_threads < 1)
        own->n_threads = oj_cpu_count();
    if (own->quadrant_size < 1)
        own->quadrant_size = 256;
    status = prepare_and_index_join_side(join, join_side, err);
    if (status != OJ_OK)
    {
        oj_join_close(join);
        return status;
    }
    *out = join;
    return OJ_OK;
}

void oj_join_free_unused_copies(struct oj_join *join, int n_kept)
{
    struct oj_join **end = &join->idle, *copy, *next;
    pthread_mutex_lock(&join->lock);
    for (; n_kept > 0 && *end != NULL; n_kept--)
        end = &(*end)->next;
    copy = *end;
    *end = NULL;
    pthread_mutex_unlock(&join->lock);
    for (; copy != NULL; copy = next)
    {
        next = copy->next;
        free_cpu_indexes(copy);
        oj_matches_free(&copy->found);
        oj_densify_free(&copy->dense[1]);
        oj_free(copy);
    }
}

void oj_join_close(struct oj_join *join)
{
    if (join == NULL)
        return;
    oj_join_free_unused_copies(join, 0);
    pthread_mutex_destroy(&join->lock);
    pthread_cond_destroy(&join->join_released);
    free_cpu_indexes(join);
    close_gpu(join);
    oj_overlapping_points_free(join->overlapping);
    oj_free(join->overlaps);
    oj_free(join->tie_rank);
    oj_matches_free(&join->found);
    oj_densify_free(&join->dense[0]);
    oj_densify_free(&join->dense[1]);
    oj_free(join);
}

/* --- use by several threads ----------------------------------------------- */

int oj_join_may_sample(const struct oj_join *join)
{
    return !join->backend->is_reference && !may_use_device(join) &&
           oj_relation_allows_many_pairs(&join->args.relation);
}

/* Returns 1 if batches leave what build() made unchanged, so that several
 * threads can join with copies of the join; each copy owns only the memory of
 * its batches (free_batches). Not with a device. */
static int can_share_indexes_in_copies(const struct oj_join *join)
{
    const struct oj_engine *engine;
    if (may_use_device(join))
        return 0;
    for (int i = 0; (engine = join->backend->engines[i]) != NULL; i++)
    {
        if (engine->free_batches == NULL)
            return 0;
    }
    return 1;
}

static void set_options_of_copy(struct oj_join *copy, const int *cancel,
                                int64_t max_batch_pairs)
{
    copy->args.options.cancel = cancel;
    copy->args.options.max_batch_pairs = max_batch_pairs;
    for (int i = 0; i < OJ_MOST_ENGINES; i++)
    {
        if (copy->of[i] != NULL)
            copy->backend->engines[i]->set_options(copy->of[i],
                                                   &copy->args.options);
    }
}

/* Copies the join for another thread. Precondition: the calling thread holds
 * the lock. */
static oj_status copy_join_for_concurrent_batch(struct oj_join *join,
                                                const int *cancel,
                                                int64_t max_batch_pairs,
                                                struct oj_join **out,
                                                struct oj_error *err)
{
    struct oj_join *copy = join->idle;
    if (copy != NULL)
        join->idle = copy->next;
    else
    {
        OJ_NEW(copy, 1, err);
        *copy = *join;
        memset(copy->of, 0, sizeof copy->of);
        memset(&copy->stats, 0, sizeof copy->stats);
        memset(&copy->found, 0, sizeof copy->found);
        memset(&copy->dense[1], 0, sizeof copy->dense[1]);
        copy->original = join;
    }
    set_options_of_copy(
        copy, cancel != NULL ? cancel : join->args.options.cancel,
        max_batch_pairs > 0 ? max_batch_pairs
                            : join->args.options.max_batch_pairs);
    *out = copy;
    return OJ_OK;
}

static void leave_queue_of_waiting_threads(struct oj_join *join,
                                           const struct join_turn *turn)
{
    struct join_turn **at = &join->line;
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
}

/* Waits until it is this thread's turn and no thread uses the join itself.
 * Precondition: the calling thread holds the lock. */
static oj_status wait_until_join_is_free(struct oj_join *join,
                                         const int *cancel,
                                         struct oj_error *err)
{
    struct join_turn turn = {NULL}, **last = &join->line;
    oj_status status = OJ_OK;
    if (!join->is_taken && join->line == NULL)
        return OJ_OK;
    while (*last != NULL)
        last = &(*last)->next;
    *last = &turn;
    while (status == OJ_OK && (join->is_taken || join->line != &turn))
    {
        oj_timed_wait_until_poll(&join->join_released, &join->lock);
        status = oj_check_cancel(cancel, NULL);
    }
    leave_queue_of_waiting_threads(join, &turn);
    /* the next waiting thread may now be first in the queue */
    pthread_cond_broadcast(&join->join_released);
    return status == OJ_OK ? OJ_OK
                           : oj_fail(err, status,
                                     "interrupted while waiting until another "
                                     "thread has ended its join");
}

int oj_join_is_on_cpu(struct oj_join *join)
{
    int is_on_cpu;
    pthread_mutex_lock(&join->lock);
    (void)wait_until_join_is_free(join, NULL, NULL);
    is_on_cpu = can_share_indexes_in_copies(join);
    pthread_mutex_unlock(&join->lock);
    return is_on_cpu;
}

oj_status oj_join_acquire_bounded(struct oj_join *join, const int *cancel,
                                  int64_t max_batch_pairs, struct oj_join **out,
                                  struct oj_error *err)
{
    oj_status status;
    pthread_mutex_lock(&join->lock);
    status = wait_until_join_is_free(join, cancel, err);
    if (status == OJ_OK && can_share_indexes_in_copies(join))
        status = copy_join_for_concurrent_batch(join, cancel, max_batch_pairs,
                                                out, err);
    else if (status == OJ_OK)
    {
        join->is_taken = 1;
        *out = join;
    }
    pthread_mutex_unlock(&join->lock);
    return status;
}

oj_status oj_join_acquire(struct oj_join *join, const int *cancel,
                          struct oj_join **out, struct oj_error *err)
{
    return oj_join_acquire_bounded(join, cancel, 0, out, err);
}

/* A copy may have enlarged indexes that it shares: adds these bytes to the
 * stats of the original. */
void oj_join_release(struct oj_join *taken)
{
    struct oj_join *join = taken->original != NULL ? taken->original : taken;
    pthread_mutex_lock(&join->lock);
    if (taken == join)
        join->is_taken = 0;
    else
    {
        join->stats.index_bytes += taken->stats.index_bytes;
        taken->stats.index_bytes = 0;
        taken->next = join->idle;
        join->idle = taken;
    }
    pthread_cond_broadcast(&join->join_released);
    pthread_mutex_unlock(&join->lock);
}

int64_t oj_join_index_bytes(struct oj_join *taken)
{
    struct oj_join *join = taken->original;
    int64_t n_bytes = taken->stats.index_bytes;
    if (join == NULL)
        return n_bytes;
    pthread_mutex_lock(&join->lock);
    n_bytes += join->stats.index_bytes;
    pthread_mutex_unlock(&join->lock);
    return n_bytes;
}

/* --- joining a batch ------------------------------------------------------ */

/* Checks that dwithin has a maximum distance, for the join or for the features
 * of one side (not of both). A side without features may lack the array. */
static oj_status check_max_distances_are_given(const struct oj_join *join,
                                               const struct oj_flat *input,
                                               struct oj_error *err)
{
    const struct oj_relation *relation = &join->args.relation;
    if (input->max_distance != NULL && join->join_side.max_distance != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "both sides have a column of maximum distances: leave "
                       "out one of the two");
    if (oj_relation_is_dwithin(relation) &&
        !(relation->max_distance < INFINITY) && input->max_distance == NULL &&
        join->join_side.max_distance == NULL && input->n_features > 0 &&
        join->join_side.n_features > 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "op dwithin needs a finite maximum distance: set "
                       "max_distance, for example to 100");
    return OJ_OK;
}

/* Called for the first batch of points, if no points were expected: frees the
 * indexes that contain features with overlapping parts. They are built again
 * without these features when a batch needs them. */
static oj_status exclude_overlapping_from_indexes(struct oj_join *join,
                                                  struct oj_error *err)
{
    OJ_TRY(mark_overlapping_parts(join, err));
    if (join->overlaps == NULL)
        return OJ_OK;
    free_cpu_indexes(join);
    free_gpu_index(join);
    return OJ_OK;
}

static oj_status check_batch_and_exclude_overlapping(
    struct oj_join *join, const struct oj_flat *input, struct oj_error *err)
{
    if (input->n_features > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a batch has %lld features, but at most %d are "
                       "possible: use smaller batches",
                       (long long)input->n_features, INT32_MAX);
    OJ_TRY(check_max_distances_are_given(join, input, err));
    return !join->has_overlaps && oj_flat_is_points(input)
               ? exclude_overlapping_from_indexes(join, err)
               : OJ_OK;
}

/* Returns 1 if points of the batch must also be joined with the features that
 * the engine leaves out because their parts overlap, or if such features were
 * not looked for yet. */
static int needs_points_in_overlapping_parts(const struct oj_join *join,
                                             const struct oj_flat *input)
{
    return (join->overlaps != NULL || !join->has_overlaps) &&
           oj_is_points_in_polygons(&join->args.relation, &join->join_side,
                                    input);
}

static oj_status join_on_gpu_or_cpu(struct oj_join *join,
                                    const struct oj_flat *input,
                                    struct oj_matches *out,
                                    struct oj_error *err)
{
    OJ_TRY(open_gpu_if_faster_for_batch(join, input, err));
    if (join->uses_gpu)
    {
        oj_status status = join_with_gpu(join, input, out, err);
        if (status == OJ_OK)
            close_optional_gpu_if_refused(join);
        if (!can_go_on_without_gpu(join, status))
            return status;
        close_optional_gpu(join, err->message);
    }
    return join_on_cpu(join, input, out, err);
}

static oj_status rank_found_pairs_by_similarity(const struct oj_join *join,
                                                const struct oj_flat *input,
                                                struct oj_answers *answers,
                                                struct oj_matches *out,
                                                struct oj_error *err)
{
    const struct oj_matches *found = &join->found;
    OJ_TRY(oj_answers_reserve(answers, found->n_entries, err));
    for (int64_t row = 0; row < found->n_rows; row++)
    {
        for (int64_t i = found->offset[row]; i < found->offset[row + 1]; i++)
            oj_answers_append_pair(
                answers, (int32_t)row, found->join_row[i],
                oj_pair_similar_measure(&join->ranked, input, row,
                                        &join->join_side, found->join_row[i]));
    }
    for (int64_t i = 0; i < found->n_undecided; i++)
        OJ_TRY(oj_answers_add_undecided(answers, found->undecided[i],
                                        found->undecided_join[i], err));
    return oj_answers_to_matches(answers, 1, found->n_rows, &join->ranked,
                                 join->tie_rank, out, err);
}

oj_status oj_join_batch(struct oj_join *join, const struct oj_flat *given,
                        struct oj_matches *out, struct oj_error *err)
{
    struct oj_flat dense;
    const struct oj_flat *input = &dense;
    /* engines poll the flag while they search, but not if no row is within
     * reach of a feature */
    OJ_TRY(oj_check_cancel(join->args.options.cancel, err));
    OJ_TRY(densify_side_if_asked(join, given, &join->dense[1], &dense, err));
    OJ_TRY(check_batch_and_exclude_overlapping(join, input, err));
    if (join->is_ranked)
    {
        struct oj_answers answers = {0};
        oj_status status = join_on_gpu_or_cpu(join, input, &join->found, err);
        if (status == OJ_OK)
            status =
                rank_found_pairs_by_similarity(join, input, &answers, out, err);
        oj_answers_free(&answers);
        return status;
    }
    OJ_TRY(join_on_gpu_or_cpu(join, input, out, err));
    if (!needs_points_in_overlapping_parts(join, input))
        return OJ_OK;
    if (join->overlapping == NULL)
        OJ_TRY(oj_overlapping_points_make(&join->args, &join->overlapping,
                                          &join->stats, err));
    return oj_overlapping_points_add_pairs(join->overlapping, input, out,
                                           &join->stats, err);
}

/* --- points that move ----------------------------------------------------- */

oj_status oj_join_move_points(struct oj_join *join,
                              const struct oj_flat *join_side, int64_t n,
                              const int32_t *feature, struct oj_error *err)
{
    int i = choose_expected_engine(join);
    const struct oj_engine *engine = i >= 0 ? join->backend->engines[i] : NULL;
    if (engine == NULL || engine->move == NULL || join->of[i] == NULL ||
        !oj_flat_is_points(&join->join_side))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend %s cannot move features in its index: open "
                       "a new join after features have moved",
                       join->backend->name);
    join->join_side.x = join_side->x;
    join->join_side.y = join_side->y;
    return engine->move(join->of[i], n, feature, err);
}

/* --- counts and sums instead of pairs ------------------------------------- */

/* Maximum number of sums per row of a batch. With more, copying the sums from
 * the device costs more than copying the pairs. */
#define WORDS_PER_ROW 4

static int are_sums_smaller_than_batch(const struct oj_join *join,
                                       const struct oj_flat *input, int n_words)
{
    return join->join_side.n_features / WORDS_PER_ROW * n_words <=
           input->n_features;
}

static oj_status fail_to_sum_pairs(const struct oj_join *join, int is_sum,
                                   struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the backend %s cannot %s the pairs of this batch without "
                   "a list of them: oj_join_batch() makes the list",
                   join->backend->name, is_sum ? "sum" : "count");
}

/* Adds the pairs of each join feature to words: their number (one word), or
 * sums of columns over them. Fails with OJ_ERR_UNSUPPORTED if the GPU cannot do
 * this for the batch. */
static oj_status sum_pairs_by_module(struct oj_join *join,
                                     const struct oj_flat *input,
                                     const struct oj_sum_request *request,
                                     int64_t *words, int64_t *n_pairs,
                                     struct oj_error *err)
{
    const struct oj_gpu_module *module = join->module;
    int is_taken = 0, is_sum = request->n_words > 1;
    oj_status status;
    if (are_sums_smaller_than_batch(join, input, request->n_words))
        OJ_TRY(prepare_gpu_for_batch(join, input, &is_taken, err));
    if (!is_taken)
        return fail_to_sum_pairs(join, is_sum, err);
    status = module->sum_pairs(join->on_gpu, input, request, words, n_pairs,
                               &join->stats, err);
    if (status == OJ_OK)
        record_slower_gpu_method(join);
    if (!is_memory_or_unsupported_error(status))
        return status;
    join->sums_refused |= is_sum;
    return fail_to_sum_pairs(join, is_sum, err);
}

/* Returns the index of the engine that counts the pairs of such a batch without
 * listing them, or -1 if there is none. */
static int choose_counting_engine(const struct oj_join *join,
                                  const struct oj_flat *input)
{
    const int i = choose_engine(join, input);
    return i >= 0 && join->backend->engines[i]->count_pairs != NULL ? i : -1;
}

static oj_status sum_pairs_on_gpu(struct oj_join *join,
                                  const struct oj_flat *input,
                                  const struct oj_sum_request *request,
                                  int64_t *words, int64_t *n_pairs,
                                  struct oj_error *err)
{
    int is_sum = request->n_words > 1;
    oj_status status;
    if (!join->uses_gpu || join->is_ranked ||
        needs_points_in_overlapping_parts(join, input))
        return fail_to_sum_pairs(join, is_sum, err);
    status = sum_pairs_by_module(join, input, request, words, n_pairs, err);
    if (status == OJ_OK)
        join->stats.n_pairs_not_stored += *n_pairs;
    if (status != OJ_ERR_UNSUPPORTED && can_go_on_without_gpu(join, status))
    {
        close_optional_gpu(join, err->message);
        return fail_to_sum_pairs(join, is_sum, err);
    }
    close_optional_gpu_if_refused(join);
    return status;
}

int oj_join_should_sum_pairs(const struct oj_join *join,
                             const struct oj_flat *input)
{
    return join->uses_gpu && !join->is_ranked &&
           !needs_points_in_overlapping_parts(join, input) &&
           !join->sums_refused && gpu_module_supports_join(join, input) &&
           are_sums_smaller_than_batch(join, input, join->n_sum_words);
}

oj_status oj_join_sum_pairs(struct oj_join *join, const struct oj_flat *input,
                            const struct oj_aggregate_column *columns,
                            struct oj_aggregates *aggregates, int64_t *n_pairs,
                            struct oj_error *err)
{
    struct oj_sum_request request = {.n_words = 1};
    int64_t *words = oj_aggregates_counts(aggregates);
    const int counting = choose_counting_engine(join, input);
    OJ_TRY(check_batch_and_exclude_overlapping(join, input, err));
    if (words != NULL && !needs_points_in_overlapping_parts(join, input))
        OJ_TRY(open_gpu_if_faster_for_batch(join, input, err));
    if (words != NULL && counting >= 0)
    {
        OJ_TRY(ensure_engine_index(join, counting, err));
        return join->backend->engines[counting]->count_pairs(
            join->of[counting], input, words, n_pairs, err);
    }
    if (words != NULL)
        return sum_pairs_on_gpu(join, input, &request, words, n_pairs, err);
    if (!oj_join_should_sum_pairs(join, input))
        return fail_to_sum_pairs(join, 1, err);
    OJ_TRY(oj_aggregates_plan_sums(aggregates, columns, input->n_features,
                                   join->args.options.n_threads, &request,
                                   &words, err));
    join->n_sum_words = request.n_words;
    OJ_TRY(sum_pairs_on_gpu(join, input, &request, words, n_pairs, err));
    return oj_aggregates_add_sums(aggregates, &request, err);
}

/* --- information about a join --------------------------------------------- */

const struct oj_stats *oj_join_stats(const struct oj_join *join)
{
    return &join->stats;
}

const struct oj_backend *oj_join_backend(const struct oj_join *join)
{
    return is_gpu_use_optional(join)
               ? oj_backend_find(join->uses_gpu ? "cuda" : "cpu")
               : join->backend;
}

const char *oj_join_reason_for_backend(const struct oj_join *join)
{
    if (!join->uses_gpu)
        return join->choice;
    if (join->reason[0] != '\0')
        return join->reason;
    if (join->on_gpu != NULL && join->slower[0] != '\0')
        return join->slower;
    if (join->on_gpu == NULL && join->screen_reason[0] != '\0')
        return join->screen_reason;
    return join->choice;
}

const char *oj_join_method(const struct oj_join *join,
                           const struct oj_flat *input)
{
    const struct oj_engine *engine;
    int i;
    if (join->backend->is_reference)
        return join->backend->description;
    if (join->uses_gpu && gpu_module_supports_join(join, input))
        return join->module->method(join->on_gpu, &join->args.relation,
                                    &join->join_side, input);
    i = choose_engine(join, input);
    if (i < 0)
        return "none";
    engine = join->backend->engines[i];
    if (!join->uses_gpu || engine->join_candidates == NULL ||
        !uses_gpu_screen_for_batch(join, input))
        return engine->name;
    if (join->rule.is_enough)
        return "boxes on the GPU";
    return join->rule.asks_meeting
               ? "boxes and edges on the GPU, what they leave open on the CPU"
               : "boxes on the GPU, the features on the CPU";
}

int oj_join_threads(const struct oj_join *join)
{
    return join->backend->is_parallel ? join->args.options.n_threads : 1;
}

const int32_t *oj_join_tie_rank(const struct oj_join *join)
{
    return join->tie_rank;
}
