#include "engine_backend.h"

#include "../../flatten/base/oj_array.h"
#include "../pairs/oj_pairs.h"
#include "../relation/cpu_family.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const struct oj_cpu_family *const families[] = {
    &oj_cpu_nearest_points, &oj_cpu_points_in_polygons,
    &oj_cpu_near_points,    &oj_cpu_distance,
    &oj_cpu_sphere,         &oj_cpu_predicate};

#define N_FAMILIES ((int)(sizeof families / sizeof *families))

#define ON_CPU "ran on the CPU, since "
#define IN_PART "ran in part on the CPU, since "
#define NOT_TAKEN "no CUDA kernel answers such a join"

/* The join side as the CPU and the module have it. */
struct engine_index
{
    const struct oj_backend *row;
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;

    /* Of auto. */
    int is_settled[2]; /* no more choice: for lines and polygons, for points */
    char choice[320];  /* why */

    int has_cpu;                     /* what is expected of the CPU is ready */
    struct oj_index *of[N_FAMILIES]; /* NULL: not needed yet */

    /* The rest while a device is to be used. */
    int uses_gpu;
    const struct oj_gpu_module *module;
    struct oj_gpu_index *on_gpu; /* NULL: not needed yet */
    int sums_refused; /* it has no sums of such a join, or no memory for them */
    int n_sum_words;  /* of a join feature in the last batch that was summed */
    int is_refused;   /* the module cannot hold these data: the CPU answers */
    char reason[320]; /* why the CPU answered, after ON_CPU; "": it did not */
    char slower[320]; /* why the GPU did not do it the best way; "": it did */

    /* The module as a screen of the predicates on the CPU. */
    int has_screen; /* -1: not asked yet */
    struct oj_screen screen;
    struct oj_screen_rule rule;
    struct oj_gpu_screen *screen_index; /* NULL: not needed yet */
    int screen_refused;      /* it cannot be made, or the device is lost */
    char screen_reason[320]; /* why a batch went without, after IN_PART */
};

/* Set when a join has used a device. */
static atomic_int is_started;

/* --- the CPU -------------------------------------------------------------- */

/* The first family that takes such a batch, or -1. */
static int choose(const struct engine_index *index, const struct oj_flat *input)
{
    for (int i = 0; i < N_FAMILIES; i++)
    {
        if (families[i]->takes(&index->relation, index->join_side, input))
            return i;
    }
    return -1;
}

/* The family of the batches that are expected: of points, as a rule, one to a
 * feature. */
static int choose_expected(const struct engine_index *index)
{
    static const int64_t none[1] = {0};
    struct oj_flat expected = {.part_kinds = index->options.input_kinds,
                               .part_offset = none};
    if (expected.part_kinds == 0 || expected.part_kinds == OJ_PART_POINT)
        return choose(index, NULL);
    return choose(index, &expected);
}

static oj_status index_for(struct engine_index *index, int family,
                           struct oj_stats *stats, struct oj_error *err)
{
    if (family < 0 || index->of[family] != NULL)
        return OJ_OK;
    return families[family]->index(index->join_side, index->tie_rank,
                                   &index->relation, &index->options,
                                   &index->of[family], stats, err);
}

static oj_status make_on_cpu(struct engine_index *index, struct oj_stats *stats,
                             struct oj_error *err)
{
    if (!index->has_cpu)
        OJ_TRY(index_for(index, choose_expected(index), stats, err));
    index->has_cpu = 1;
    return OJ_OK;
}

static void drop_cpu(struct engine_index *index)
{
    for (int i = 0; i < N_FAMILIES; i++)
    {
        if (index->of[i] != NULL)
            families[i]->free_index(index->of[i]);
        index->of[i] = NULL;
    }
    index->has_cpu = 0;
}

static oj_status join_on_cpu(struct engine_index *index,
                             const struct oj_flat *input,
                             struct oj_matches *out, struct oj_stats *stats,
                             struct oj_error *err)
{
    int family = choose(index, input);
    OJ_TRY(make_on_cpu(index, stats, err));
    if (family < 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-op %s is not possible between these kinds of features",
                       oj_op_get(index->relation.op)->name);
    OJ_TRY(index_for(index, family, stats, err));
    return families[family]->join(index->of[family], input, out, stats, err);
}

/* --- devices -------------------------------------------------------------- */

/* The devices of n that work; the reason of the first where none does. */
static oj_status find_usable(const struct oj_gpu_module *module, int n,
                             uint64_t *gpus, struct oj_error *err)
{
    struct oj_gpu_device device, first = {0};
    *gpus = 0;
    for (int i = 0; i < n; i++)
    {
        OJ_TRY(module->describe(i, &device, err));
        if (device.why_not[0] == '\0')
            *gpus |= (uint64_t)1 << i;
        if (i == 0)
            first = device;
    }
    if (*gpus == 0)
        return oj_fail(err, OJ_ERR_NO_DEVICE, "no GPU can be used: %s",
                       first.why_not);
    return OJ_OK;
}

oj_status oj_cuda_find(const struct oj_options *options,
                       const struct oj_gpu_module **module, uint64_t *gpus,
                       struct oj_error *err)
{
    int n = 0;
    OJ_TRY(oj_gpu_load(module, err));
    OJ_TRY((*module)->count(&n, err));
    if (options->gpus == OJ_ALL_GPUS)
        return find_usable(*module, n, gpus, err);
    *gpus = options->gpus;
    for (int i = n; i < OJ_GPU_MAX_DEVICES; i++)
    {
        if ((options->gpus >> i & 1) != 0)
            return oj_fail(err, OJ_ERR_NO_DEVICE,
                           "there is no GPU %d (ogrjoin --devices lists them)",
                           i);
    }
    return OJ_OK;
}

/* Other kinds of features are the CPU's. */
static int may_be_points(const struct oj_options *options)
{
    return options->input_kinds == 0 ||
           (options->input_kinds & OJ_PART_POINT) != 0;
}

static int may_be_others(const struct oj_options *options)
{
    return (options->input_kinds & ~(unsigned)OJ_PART_POINT) != 0 ||
           options->input_kinds == 0;
}

/* Errors of the module that the CPU does not have. */
static int cannot_hold(oj_status status)
{
    return status == OJ_ERR_UNSUPPORTED || status == OJ_ERR_NOMEM;
}

/* The same, with those that tell of a device. */
static int is_of_device(oj_status status)
{
    return cannot_hold(status) || status == OJ_ERR_NO_DEVICE ||
           status == OJ_ERR_INTERNAL;
}

/* --- the screen ----------------------------------------------------------- */

/* 1 for joins of which the device decides nearly all pairs of lines and
 * polygons; of others it finds the candidates, and the CPU is as slow as it is
 * without. */
static int screen_decides(const struct engine_index *index)
{
    enum oj_op op = index->relation.op;
    return (op == OJ_OP_INTERSECTS || op == OJ_OP_DISJOINT ||
            op == OJ_OP_BBOX) &&
           !oj_flat_is_points(index->join_side);
}

static int is_screened(const struct engine_index *index,
                       const struct oj_flat *input)
{
    return index->has_screen > 0 && !index->screen_refused && input != NULL &&
           !oj_flat_is_points(input);
}

static int screen_takes(void *self, const struct oj_flat *input)
{
    return is_screened(self, input);
}

/* Memory may be enough for the next batch; other errors stay. */
static oj_status find_candidates(void *self, const struct oj_flat *input,
                                 int64_t most, struct oj_screen_pairs *out,
                                 struct oj_stats *stats, struct oj_error *err)
{
    struct engine_index *index = self;
    const struct oj_gpu_module *module = index->module;
    struct oj_error why = {OJ_OK, ""};
    oj_status status = OJ_OK;
    if (index->screen_index == NULL)
        status = module->screen_index(index->join_side, &index->rule,
                                      &index->options, &index->screen_index,
                                      stats, &why);
    index->screen_refused = status != OJ_OK && status != OJ_ERR_CANCELLED;
    if (status == OJ_ERR_NOMEM)
        oj_gpu_advise(&why, OJ_GPU_ADVICE_TILES);
    if (status == OJ_OK)
    {
        status = module->screen_find(index->screen_index, input, most, out,
                                     stats, &why);
        index->screen_refused =
            status == OJ_ERR_NO_DEVICE || status == OJ_ERR_INTERNAL;
        if (status == OJ_ERR_NOMEM)
            oj_gpu_advise(&why, OJ_GPU_ADVICE_BATCH);
    }
    if (status == OJ_OK)
        return OJ_OK;
    if (status != OJ_ERR_TOO_MANY_PAIRS && status != OJ_ERR_CANCELLED &&
        index->screen_reason[0] == '\0')
        snprintf(index->screen_reason, sizeof index->screen_reason,
                 IN_PART "%.280s", why.message);
    return oj_fail(err, status, "%s", why.message);
}

/* Where the module has something to say of such a join. What the CPU has made
 * so far does not know the screen. */
static void open_screen(struct engine_index *index)
{
    if (index->has_screen >= 0)
        return;
    index->has_screen = index->module->screen_index != NULL &&
                        !oj_flat_is_points(index->join_side) &&
                        oj_screen_rule_of(&index->relation, &index->rule);
    index->options.screen = NULL;
    if (!index->has_screen)
        return;
    drop_cpu(index);
    index->screen.self = index;
    index->screen.takes = screen_takes;
    index->screen.find = find_candidates;
    index->options.screen = &index->screen;
}

/* --- the module ----------------------------------------------------------- */

static int takes(const struct engine_index *index, const struct oj_flat *input)
{
    return !index->is_refused &&
           index->module->takes(&index->relation, index->join_side, input);
}

/* The CPU answers, in part or all, since why. */
static oj_status turn_to_cpu(struct engine_index *index, const char *why,
                             struct oj_stats *stats, struct oj_error *err)
{
    open_screen(index);
    if (index->reason[0] == '\0' && (index->is_refused || !index->has_screen))
        snprintf(index->reason, sizeof index->reason, ON_CPU "%.290s", why);
    return make_on_cpu(index, stats, err);
}

static void drop_on_gpu(struct engine_index *index)
{
    if (index->on_gpu != NULL)
        index->module->free_index(index->on_gpu);
    index->on_gpu = NULL;
}

/* No batch goes to the module any more. */
static void refuse(struct engine_index *index)
{
    index->is_refused = 1;
    drop_on_gpu(index);
}

/* After each success of the module: it may have turned to another method. */
static oj_status note_method(struct engine_index *index)
{
    const char *why = index->module->why_refused(index->on_gpu);
    if (why[0] != '\0' && index->slower[0] == '\0')
        snprintf(index->slower, sizeof index->slower,
                 "took a slower method on the GPU, since %.260s", why);
    return OJ_OK;
}

/* What the module cannot hold is only found when its index is made. */
static oj_status make_on_gpu(struct engine_index *index, struct oj_stats *stats,
                             struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    if (index->on_gpu != NULL)
        return OJ_OK;
    status = index->module->index(index->join_side, index->tie_rank,
                                  &index->relation, &index->options,
                                  &index->on_gpu, stats, &why);
    if (status == OJ_OK)
    {
        atomic_store(&is_started, 1);
        return note_method(index);
    }
    if (!cannot_hold(status))
        return oj_fail(err, status, "%s", why.message);
    if (status == OJ_ERR_NOMEM)
        oj_gpu_advise(&why, OJ_GPU_ADVICE_TILES);
    refuse(index);
    return turn_to_cpu(index, why.message, stats, err);
}

/* What points need is made ready at once, as on the CPU. */
static oj_status open_gpu(struct engine_index *index, struct oj_stats *stats,
                          struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    uint64_t gpus;
    oj_status status =
        oj_cuda_find(&index->options, &index->module, &gpus, &why);
    if (status != OJ_OK)
        return oj_fail(err, status, "the backend cuda cannot be used: %.900s",
                       why.message);
    index->options.gpus = gpus;
    OJ_TRY(may_be_points(&index->options) && takes(index, NULL)
               ? make_on_gpu(index, stats, err)
               : turn_to_cpu(index, NOT_TAKEN, stats, err));
    index->uses_gpu = 1;
    return OJ_OK;
}

static void close_gpu(struct engine_index *index)
{
    drop_on_gpu(index);
    if (index->has_screen > 0)
        drop_cpu(index);
    if (index->screen_index != NULL)
        index->module->screen_free(index->screen_index);
    index->screen_index = NULL;
    index->options.screen = NULL;
    index->has_screen = index->uses_gpu = 0;
}

/* Columns that one side lacks are the caller's mistake here as everywhere. */
static oj_status check_columns(const struct engine_index *index,
                               const struct oj_flat *input,
                               struct oj_error *err)
{
    struct oj_pair_filter filter;
    return oj_pair_filter_make(&index->relation, input, index->join_side,
                               &filter, err);
}

static oj_status join_with_gpu(struct engine_index *index,
                               const struct oj_flat *input,
                               struct oj_matches *out, struct oj_stats *stats,
                               struct oj_error *err)
{
    struct oj_error why = {OJ_ERR_UNSUPPORTED, NOT_TAKEN};
    if (takes(index, input))
    {
        OJ_TRY(check_columns(index, input, err));
        OJ_TRY(make_on_gpu(index, stats, err));
    }
    if (takes(index, input))
    {
        oj_status status =
            index->module->join(index->on_gpu, input, out, stats, &why);
        if (!cannot_hold(status))
            return status == OJ_OK ? note_method(index)
                                   : oj_fail(err, status, "%s", why.message);
        if (status == OJ_ERR_NOMEM)
            oj_gpu_advise(&why, OJ_GPU_ADVICE_BATCH);
        refuse(index);
    }
    OJ_TRY(turn_to_cpu(index, why.message, stats, err));
    OJ_TRY(join_on_cpu(index, input, out, stats, err));
    if (index->screen_index != NULL)
        atomic_store(&is_started, 1);
    return OJ_OK;
}

/* --- the choice of auto --------------------------------------------------- */

/* Lines and polygons of which nothing is known but how many there are have at
 * least so many vertices, as a rule. */
#define LEAST_VERTICES 4

/* Rates, in seconds, of one core, and of one H200 for which cores stage what
 * lies in ordinary memory (BENCHMARKS.md).  Only sizes matter to the choice, so
 * one set does for all joins of a kind: a smaller device and a faster core both
 * mean that the choice is a little early or late, never that an answer differs.
 *
 * Points: the nearest of 4.7 million vertices and 10 to 170 million points. */
static const double cpu_row_s = 170e-9, cpu_vertex_s = 80e-9;
static const double gpu_row_s = 0.4e-9, gpu_vertex_s = 7e-9;
static const double stage_row_s = 4e-9; /* of one core */

/* Lines and polygons: those of 1.2 to 9.4 million vertices on both sides that
 * intersect: 190 to 320 ns a vertex on one core, 350 to 650 on each of 16. */
static const double cpu_shape_vertex_s = 300e-9;
static const double gpu_shape_vertex_s = 3e-9;
static const double stage_shape_vertex_s = 18e-9; /* of one core */

/* Starting CUDA and taking memory, once in a process. */
static const double gpu_start_s = 0.5;

/* The estimates are rough: only a clear gain counts. */
static const double clear_gain = 1.5;

static double n_vertices(const struct oj_flat *flat)
{
    return (double)(oj_flat_is_points(flat) ? flat->n_features
                                            : flat->n_vertices);
}

/* 1 when the join is clearly faster on a device, by what is known of the input
 * side: of a batch, or of what is to come (NULL); says why in choice. */
static int gpu_pays(struct engine_index *index, const struct oj_flat *batch)
{
    const struct oj_options *options = &index->options;
    int of_points =
        batch != NULL ? oj_flat_is_points(batch) : may_be_points(options);
    double threads = options->n_threads;
    double rows = (double)options->n_expected, vertices = rows * LEAST_VERTICES;
    double all = n_vertices(index->join_side);
    double cpu_s, gpu_s = atomic_load(&is_started) ? 0.0 : gpu_start_s;
    char text[40] = "";
    if (!of_points && !screen_decides(index))
    {
        snprintf(index->choice, sizeof index->choice,
                 "lines and polygons: -op %s is decided on the CPU",
                 oj_op_get(index->relation.op)->name);
        return 0;
    }
    if (batch != NULL && batch->n_features > 0)
    {
        double n = (double)batch->n_features;
        rows = rows > n ? rows : n;
        vertices = n_vertices(batch) * (rows / n);
    }
    if (of_points)
    {
        cpu_s = (rows * cpu_row_s + all * cpu_vertex_s) / threads;
        gpu_s +=
            rows * (gpu_row_s + stage_row_s / threads) + all * gpu_vertex_s;
    }
    else
    {
        all += vertices;
        cpu_s = all * cpu_shape_vertex_s / threads;
        gpu_s += all * (gpu_shape_vertex_s + stage_shape_vertex_s / threads);
        snprintf(text, sizeof text, ", %.0f vertices", all);
    }
    snprintf(index->choice, sizeof index->choice,
             "%.0f rows%s: %.2g s expected on %d thread%s, %.2g s on a GPU",
             rows, text, cpu_s, options->n_threads,
             options->n_threads == 1 ? "" : "s", gpu_s);
    return cpu_s > clear_gain * gpu_s;
}

/* OK when such a join could run on the devices: module, driver and devices are
 * there, and a kernel that answers it for points, or for what else options say
 * will come.  The first call of a process that finds a kernel starts CUDA,
 * which takes tenths of a second. */
static oj_status check_possible(const struct engine_index *index,
                                struct oj_error *err)
{
    const struct oj_gpu_module *module;
    uint64_t gpus;
    OJ_TRY(oj_gpu_load(&module, err));
    if (!(may_be_points(&index->options) &&
          module->takes(&index->relation, index->join_side, NULL)) &&
        !(may_be_others(&index->options) && module->screen_index != NULL &&
          screen_decides(index)))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, NOT_TAKEN);
    return oj_cuda_find(&index->options, &module, &gpus, err);
}

static void leave_gpu(struct engine_index *index, const char *why)
{
    snprintf(index->choice, sizeof index->choice, "no GPU: %.300s", why);
    close_gpu(index);
    index->is_settled[0] = index->is_settled[1] = 1;
}

/* Devices that cannot hold the data leave all to the CPU; who has the choice
 * says so. */
static void leave_if_refused(struct engine_index *index)
{
    if (index->row != &oj_auto_backend)
        return;
    if (index->is_refused)
        leave_gpu(index, index->reason + strlen(ON_CPU));
    else if (index->on_gpu == NULL && index->screen_refused)
        leave_gpu(index, index->screen_reason[0] != '\0'
                             ? index->screen_reason + strlen(IN_PART)
                             : "");
}

/* OJ_OK: the CPU goes on; else an error of the caller's. */
static oj_status leave_after(struct engine_index *index, oj_status status,
                             const struct oj_error *why, struct oj_error *err)
{
    if (index->row != &oj_auto_backend || !is_of_device(status))
        return oj_fail(err, status, "%s", why->message);
    leave_gpu(index, why->message);
    return OJ_OK;
}

static oj_status try_gpu(struct engine_index *index, struct oj_stats *stats,
                         struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status = check_possible(index, &why);
    index->is_settled[0] = index->is_settled[1] = 1;
    if (status == OJ_OK)
        status = open_gpu(index, stats, &why);
    if (status != OJ_OK)
        return leave_after(index, status, &why, err);
    leave_if_refused(index);
    return OJ_OK;
}

/* Of lines and polygons the first batch says more. */
static oj_status settle(struct engine_index *index, struct oj_stats *stats,
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
static oj_status settle_by_batch(struct engine_index *index,
                                 const struct oj_flat *input,
                                 struct oj_stats *stats, struct oj_error *err)
{
    int *is_settled = &index->is_settled[oj_flat_is_points(input)];
    if (*is_settled)
        return OJ_OK;
    *is_settled = index->options.n_expected > 0;
    return gpu_pays(index, input) ? try_gpu(index, stats, err) : OJ_OK;
}

/* --- the backends --------------------------------------------------------- */

static void free_index(struct oj_index *wrapped)
{
    struct engine_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    drop_cpu(index);
    close_gpu(index);
    oj_free(index);
}

static oj_status
make_index(const struct oj_backend *row, const struct oj_flat *join_side,
           const int32_t *tie_rank, const struct oj_relation *relation,
           const struct oj_options *options, struct oj_index **out,
           struct oj_stats *stats, struct oj_error *err)
{
    struct engine_index *index = oj_calloc(1, sizeof *index);
    oj_status status;
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->row = row;
    index->join_side = join_side;
    index->tie_rank = tie_rank;
    index->relation = *relation;
    index->options = *options;
    index->has_screen = -1;
    index->is_settled[0] = index->is_settled[1] = row != &oj_auto_backend;
    if (row == &oj_cuda_backend)
        status = open_gpu(index, stats, err);
    else if (row == &oj_auto_backend)
        status = settle(index, stats, err);
    else
        status = make_on_cpu(index, stats, err);
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
    struct engine_index *index = (void *)wrapped;
    OJ_TRY(settle_by_batch(index, input, stats, err));
    if (index->uses_gpu)
    {
        struct oj_error why = {OJ_OK, ""};
        oj_status status = join_with_gpu(index, input, out, stats, &why);
        if (status == OJ_OK)
        {
            leave_if_refused(index);
            return OJ_OK;
        }
        OJ_TRY(leave_after(index, status, &why, err));
    }
    return join_on_cpu(index, input, out, stats, err);
}

/* Counts and sums come back once for each batch: where they are many more than
 * rows, the pairs are less to fetch. */
#define WORDS_PER_ROW 4

static int is_worth_it(const struct engine_index *index,
                       const struct oj_flat *input, int n_words)
{
    return index->join_side->n_features / WORDS_PER_ROW * n_words <=
           input->n_features;
}

/* Words of each join feature in place of the pairs: sums, or without a request
 * counts. */
static oj_status ask_module(struct engine_index *index,
                            const struct oj_flat *input,
                            const struct oj_sum_request *request,
                            int64_t *words, int64_t *n_pairs,
                            struct oj_stats *stats, struct oj_error *err)
{
    int is_taken = takes(index, input) &&
                   is_worth_it(index, input, request ? request->n_words : 1);
    if (is_taken)
    {
        OJ_TRY(check_columns(index, input, err));
        OJ_TRY(make_on_gpu(index, stats, err));
    }
    if (is_taken && takes(index, input))
    {
        const struct oj_gpu_module *module = index->module;
        oj_status status =
            request != NULL ? module->sum_pairs(index->on_gpu, input, request,
                                                words, n_pairs, stats, err)
                            : module->count_pairs(index->on_gpu, input, words,
                                                  n_pairs, stats, err);
        if (status == OJ_OK)
            return note_method(index);
        if (!cannot_hold(status))
            return status;
        index->sums_refused |= request != NULL;
    }
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the pairs of such a batch are not %s on a GPU",
                   request != NULL ? "summed" : "counted");
}

static oj_status sum_pairs(struct oj_index *wrapped,
                           const struct oj_flat *input,
                           const struct oj_sum_request *request, int64_t *words,
                           int64_t *n_pairs, struct oj_stats *stats,
                           struct oj_error *err)
{
    struct engine_index *index = (void *)wrapped;
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    if (request != NULL)
        index->n_sum_words = request->n_words;
    else
        OJ_TRY(settle_by_batch(index, input, stats, err));
    if (!index->uses_gpu)
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "pairs are %s on GPUs only",
                       request != NULL ? "summed" : "counted");
    status = ask_module(index, input, request, words, n_pairs, stats, &why);
    if (index->row == &oj_cuda_backend || !is_of_device(status))
    {
        leave_if_refused(index);
        return status == OJ_OK ? OJ_OK
                               : oj_fail(err, status, "%s", why.message);
    }
    if (status == OJ_ERR_UNSUPPORTED)
        leave_if_refused(index);
    else
        leave_gpu(index, why.message);
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "the GPU cannot: %.200s",
                   why.message);
}

static int sums(const struct oj_index *wrapped, const struct oj_flat *input)
{
    const struct engine_index *index = (const void *)wrapped;
    return index->uses_gpu && !index->sums_refused && takes(index, input) &&
           is_worth_it(index, input, index->n_sum_words);
}

const struct oj_backend *oj_engine_used(const struct oj_index *wrapped)
{
    const struct engine_index *index = (const void *)wrapped;
    return index->uses_gpu ? &oj_cuda_backend : &oj_cpu_backend;
}

const char *oj_engine_reason(const struct oj_index *wrapped)
{
    const struct engine_index *index = (const void *)wrapped;
    if (!index->uses_gpu)
        return index->choice;
    if (index->reason[0] != '\0')
        return index->reason;
    if (index->on_gpu != NULL && index->slower[0] != '\0')
        return index->slower;
    if (index->on_gpu == NULL && index->screen_reason[0] != '\0')
        return index->screen_reason;
    return index->choice;
}

const char *oj_engine_method(const struct oj_index *wrapped,
                             const struct oj_flat *input)
{
    const struct engine_index *index = (const void *)wrapped;
    int family;
    if (index->uses_gpu && takes(index, input))
        return index->module->method(index->on_gpu, &index->relation,
                                     index->join_side, input);
    family = choose(index, input);
    if (family < 0)
        return "none";
    if (!index->uses_gpu || families[family] != &oj_cpu_predicate ||
        !is_screened(index, input))
        return families[family]->name;
    if (index->rule.is_enough)
        return "boxes on the GPU";
    return index->rule.asks_meeting
               ? "boxes and edges on the GPU, what they leave open on the CPU"
               : "boxes on the GPU, the features on the CPU";
}

const struct oj_backend oj_cpu_backend = {
    .abi = OJ_BACKEND_ABI,
    .name = "cpu",
    .description = "our engine on all CPU cores: packed trees, cells with a "
                   "known state, exact kernels",
    .index = make_index,
    .join = join,
    .free_index = free_index,
};

const struct oj_backend oj_cuda_backend = {
    .abi = OJ_BACKEND_ABI,
    .name = "cuda",
    .description =
        "our engine on NVIDIA GPUs, with the answers of cpu: nearest and "
        "dwithin of points, points in polygons, equal points, points in "
        "envelopes; lines and polygons with one another: envelopes, "
        "intersects, disjoint, and the candidates of the other predicates, "
        "which the CPU decides; other joins run on the CPU",
    .index = make_index,
    .join = join,
    .free_index = free_index,
    .sums = sums,
    .sum_pairs = sum_pairs,
};

const struct oj_backend oj_auto_backend = {
    .abi = OJ_BACKEND_ABI,
    .name = "auto",
    .description = "cpu, or cuda where it pays",
    .index = make_index,
    .join = join,
    .free_index = free_index,
    .sums = sums,
    .sum_pairs = sum_pairs,
};
