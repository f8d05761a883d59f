#include "cuda_backend.h"

#include "../../flatten/base/oj_array.h"
#include "../pairs/oj_pairs.h"
#include "../relation/cpu_family.h"
#include "cuda_screen.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The join side as the module has it and as the CPU has it; NULL: not needed
 * yet.  A batch goes to the module if one of its kernels takes it. */
struct cuda_index
{
    const struct oj_gpu_module *module;
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    struct oj_gpu_index *on_gpu;
    struct oj_index *on_cpu;
    struct oj_cuda_screen *screen; /* candidates for on_cpu, or NULL */
    int sums_refused; /* it has no sums of such a join, or no memory for them */
    int n_sum_words;  /* of a join feature in the last batch that was summed */
    int is_refused;   /* the module cannot hold these data: the CPU answers */
    char reason[320]; /* why the CPU answered; "": it did not */
    char slower[320]; /* why the GPU did not do it the best way; "": it did */
};

/* Set when a join has used a device. */
static atomic_int is_started;

#define ON_CPU "ran on the CPU, since "
#define NOT_TAKEN "no CUDA kernel answers such a join"

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

oj_status oj_cuda_possible(const struct oj_flat *join_side,
                           const struct oj_relation *relation,
                           const struct oj_options *options,
                           struct oj_error *err)
{
    const struct oj_gpu_module *module;
    uint64_t gpus;
    OJ_TRY(oj_gpu_load(&module, err));
    if (!(may_be_points(options) && module->takes(relation, join_side, NULL)) &&
        !(may_be_others(options) && module->screen_index != NULL &&
          oj_cuda_screen_decides(relation, join_side)))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, NOT_TAKEN);
    return oj_cuda_find(options, &module, &gpus, err);
}

int oj_cuda_is_started(void)
{
    return atomic_load(&is_started);
}

static int takes(const struct cuda_index *index, const struct oj_flat *input)
{
    return !index->is_refused &&
           index->module->takes(&index->relation, index->join_side, input);
}

static oj_status make_on_cpu(struct cuda_index *index, const char *why,
                             struct oj_stats *stats, struct oj_error *err)
{
    if (index->on_cpu == NULL && index->screen == NULL)
        index->screen = oj_cuda_screen_open(index->module, index->join_side,
                                            &index->relation, &index->options);
    if (index->reason[0] == '\0' &&
        (index->is_refused || index->screen == NULL))
        snprintf(index->reason, sizeof index->reason, ON_CPU "%.290s", why);
    if (index->on_cpu != NULL)
        return OJ_OK;
    index->options.screen = oj_cuda_screen_use(index->screen);
    return oj_cpu_backend.index(&oj_cpu_backend, index->join_side,
                                index->tie_rank, &index->relation,
                                &index->options, &index->on_cpu, stats, err);
}

/* Errors that the CPU does not have. */
static int cannot_hold(oj_status status)
{
    return status == OJ_ERR_UNSUPPORTED || status == OJ_ERR_NOMEM;
}

/* No batch goes to the module any more. */
static void refuse(struct cuda_index *index)
{
    index->is_refused = 1;
    if (index->on_gpu != NULL)
        index->module->free_index(index->on_gpu);
    index->on_gpu = NULL;
}

/* After each success of the module: it may have turned to another method. */
static oj_status note_method(struct cuda_index *index)
{
    const char *why = index->module->why_refused(index->on_gpu);
    if (why[0] != '\0' && index->slower[0] == '\0')
        snprintf(index->slower, sizeof index->slower,
                 "took a slower method on the GPU, since %.260s", why);
    return OJ_OK;
}

/* What the module cannot hold, for its coordinates or for want of memory, is
 * only found when its index is made; then the CPU answers. */
static oj_status make_on_gpu(struct cuda_index *index, struct oj_stats *stats,
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
    return make_on_cpu(index, why.message, stats, err);
}

static void free_index(struct oj_index *wrapped)
{
    struct cuda_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    if (index->on_gpu != NULL)
        index->module->free_index(index->on_gpu);
    oj_cpu_backend.free_index(index->on_cpu);
    oj_cuda_screen_close(index->screen);
    oj_free(index);
}

/* What points need is made ready at once, as the cpu backend does. */
static oj_status
make_index(const struct oj_backend *row, const struct oj_flat *join_side,
           const int32_t *tie_rank, const struct oj_relation *relation,
           const struct oj_options *options, struct oj_index **out,
           struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_gpu_module *module;
    struct cuda_index *index;
    struct oj_error why = {OJ_OK, ""};
    uint64_t gpus;
    oj_status status = oj_cuda_find(options, &module, &gpus, &why);
    (void)row;
    if (status != OJ_OK)
        return oj_fail(err, status, "the backend cuda cannot be used: %.900s",
                       why.message);
    index = oj_calloc(1, sizeof *index);
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->module = module;
    index->join_side = join_side;
    index->tie_rank = tie_rank;
    index->relation = *relation;
    index->options = *options;
    index->options.gpus = gpus;
    status = may_be_points(options) && takes(index, NULL)
                 ? make_on_gpu(index, stats, err)
                 : make_on_cpu(index, NOT_TAKEN, stats, err);
    if (status != OJ_OK)
    {
        free_index((void *)index);
        return status;
    }
    *out = (void *)index;
    return OJ_OK;
}

/* Columns that one side lacks are the caller's mistake here as everywhere. */
static oj_status check_columns(const struct cuda_index *index,
                               const struct oj_flat *input,
                               struct oj_error *err)
{
    struct oj_pair_filter filter;
    return oj_pair_filter_make(&index->relation, input, index->join_side,
                               &filter, err);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct cuda_index *index = (void *)wrapped;
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
    OJ_TRY(make_on_cpu(index, why.message, stats, err));
    OJ_TRY(oj_cpu_backend.join(index->on_cpu, input, out, stats, err));
    if (oj_cuda_screen_is_used(index->screen))
        atomic_store(&is_started, 1);
    return OJ_OK;
}

/* Counts and sums come back once for each batch: where they are many more than
 * rows, the pairs are less to fetch. */
#define WORDS_PER_ROW 4

static int is_worth_it(const struct cuda_index *index,
                       const struct oj_flat *input, int n_words)
{
    return index->join_side->n_features / WORDS_PER_ROW * n_words <=
           input->n_features;
}

/* 1 when the module is to be asked for words of each join feature in place of
 * the pairs: its index is there then. */
static oj_status without_pairs(struct cuda_index *index,
                               const struct oj_flat *input, int n_words,
                               int *yes, struct oj_stats *stats,
                               struct oj_error *err)
{
    *yes = 0;
    if (!takes(index, input) || !is_worth_it(index, input, n_words))
        return OJ_OK;
    OJ_TRY(check_columns(index, input, err));
    OJ_TRY(make_on_gpu(index, stats, err));
    *yes = takes(index, input);
    return OJ_OK;
}

static oj_status count_pairs(struct oj_index *wrapped,
                             const struct oj_flat *input, int64_t *count,
                             int64_t *n_pairs, struct oj_stats *stats,
                             struct oj_error *err)
{
    struct cuda_index *index = (void *)wrapped;
    int yes;
    OJ_TRY(without_pairs(index, input, 1, &yes, stats, err));
    if (yes)
    {
        oj_status status = index->module->count_pairs(
            index->on_gpu, input, count, n_pairs, stats, err);
        if (status == OJ_OK)
            return note_method(index);
        if (!cannot_hold(status))
            return status;
    }
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the pairs of such a batch are not counted on a GPU");
}

static int sums(const struct oj_index *wrapped, const struct oj_flat *input)
{
    const struct cuda_index *index = (const void *)wrapped;
    return !index->sums_refused && takes(index, input) &&
           is_worth_it(index, input, index->n_sum_words);
}

static oj_status sum_pairs(struct oj_index *wrapped,
                           const struct oj_flat *input,
                           const struct oj_sum_request *request, int64_t *words,
                           int64_t *n_pairs, struct oj_stats *stats,
                           struct oj_error *err)
{
    struct cuda_index *index = (void *)wrapped;
    int yes;
    index->n_sum_words = request->n_words;
    OJ_TRY(without_pairs(index, input, request->n_words, &yes, stats, err));
    if (yes)
    {
        oj_status status = index->module->sum_pairs(
            index->on_gpu, input, request, words, n_pairs, stats, err);
        if (status == OJ_OK)
            return note_method(index);
        if (!cannot_hold(status))
            return status;
        index->sums_refused = 1;
    }
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the pairs of such a batch are not summed on a GPU");
}

const char *oj_cuda_method(const struct oj_index *wrapped,
                           const struct oj_flat *input)
{
    const struct cuda_index *index = (const void *)wrapped;
    const char *family;
    if (takes(index, input))
        return index->module->method(index->on_gpu, &index->relation,
                                     index->join_side, input);
    family = oj_cpu_family_name(&index->relation, index->join_side, input);
    if (strcmp(family, oj_cpu_predicate.name) == 0 &&
        oj_cuda_screen_takes(index->screen, input))
        return oj_cuda_screen_name(index->screen);
    return family;
}

const char *oj_cuda_reason(const struct oj_index *wrapped)
{
    const struct cuda_index *index = (const void *)wrapped;
    if (index->reason[0] == '\0' && index->on_gpu != NULL)
        return index->slower;
    if (index->reason[0] == '\0')
        return oj_cuda_screen_reason(index->screen);
    return index->reason;
}

const char *oj_cuda_refusal(const struct oj_index *wrapped)
{
    const struct cuda_index *index = (const void *)wrapped;
    if (index->is_refused)
        return index->reason + strlen(ON_CPU);
    return index->on_gpu == NULL ? oj_cuda_screen_refusal(index->screen) : NULL;
}

struct oj_index *oj_cuda_take_cpu(struct oj_index *wrapped)
{
    struct cuda_index *index = (void *)wrapped;
    struct oj_index *on_cpu = index->screen == NULL ? index->on_cpu : NULL;
    if (on_cpu != NULL)
        index->on_cpu = NULL;
    return on_cpu;
}

const struct oj_backend oj_cuda_backend = {
    OJ_BACKEND_ABI,
    "cuda",
    "our engine on NVIDIA GPUs, with the answers of cpu: nearest and dwithin "
    "of points, points in polygons, equal points, points in envelopes; lines "
    "and polygons with one another: envelopes, intersects, disjoint, and the "
    "candidates of the other predicates, which the CPU decides; other joins "
    "run on the CPU",
    0,
    0,
    make_index,
    join,
    free_index,
    count_pairs,
    sums,
    sum_pairs,
};
