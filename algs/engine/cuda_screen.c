#include "cuda_screen.h"

#include "../../flatten/base/oj_array.h"

#include <stdio.h>
#include <string.h>

struct oj_cuda_screen
{
    struct oj_screen screen;
    const struct oj_gpu_module *module;
    const struct oj_flat *join_side;
    struct oj_screen_rule rule;
    struct oj_options options;
    struct oj_gpu_screen *index; /* NULL: not needed yet */
    int is_refused;              /* it cannot be made, or the device is lost */
    char reason[320];            /* begins with IN_PART; "": none */
};

#define IN_PART "ran in part on the CPU, since "

static oj_status make_index(struct oj_cuda_screen *s, struct oj_stats *stats,
                            struct oj_error *err)
{
    if (s->index != NULL)
        return OJ_OK;
    return s->module->screen_index(s->join_side, &s->rule, &s->options,
                                   &s->index, stats, err);
}

static int takes(void *self, const struct oj_flat *input)
{
    const struct oj_cuda_screen *s = self;
    return oj_cuda_screen_takes(s, input);
}

/* Memory may be enough for the next batch; other errors stay. */
static oj_status find(void *self, const struct oj_flat *input, int64_t most,
                      struct oj_screen_pairs *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct oj_cuda_screen *s = self;
    struct oj_error why = {OJ_OK, ""};
    oj_status status = make_index(s, stats, &why);
    s->is_refused = status != OJ_OK && status != OJ_ERR_CANCELLED;
    if (status == OJ_ERR_NOMEM)
        oj_gpu_advise(&why, OJ_GPU_ADVICE_TILES);
    if (status == OJ_OK)
    {
        status =
            s->module->screen_find(s->index, input, most, out, stats, &why);
        s->is_refused = status == OJ_ERR_NO_DEVICE || status == OJ_ERR_INTERNAL;
        if (status == OJ_ERR_NOMEM)
            oj_gpu_advise(&why, OJ_GPU_ADVICE_BATCH);
    }
    if (status == OJ_OK)
        return OJ_OK;
    if (status != OJ_ERR_TOO_MANY_PAIRS && status != OJ_ERR_CANCELLED &&
        s->reason[0] == '\0')
        snprintf(s->reason, sizeof s->reason, IN_PART "%.280s", why.message);
    return oj_fail(err, status, "%s", why.message);
}

struct oj_cuda_screen *oj_cuda_screen_open(const struct oj_gpu_module *module,
                                           const struct oj_flat *join_side,
                                           const struct oj_relation *relation,
                                           const struct oj_options *options)
{
    struct oj_screen_rule rule;
    struct oj_cuda_screen *s;
    if (module->screen_index == NULL || oj_flat_is_points(join_side) ||
        !oj_screen_rule_of(relation, &rule))
        return NULL;
    s = oj_calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->screen.self = s;
    s->screen.takes = takes;
    s->screen.find = find;
    s->module = module;
    s->join_side = join_side;
    s->options = *options;
    s->rule = rule;
    return s;
}

const struct oj_screen *oj_cuda_screen_use(struct oj_cuda_screen *screen)
{
    return screen != NULL ? &screen->screen : NULL;
}

int oj_cuda_screen_takes(const struct oj_cuda_screen *screen,
                         const struct oj_flat *input)
{
    return screen != NULL && !screen->is_refused && input != NULL &&
           !oj_flat_is_points(input);
}

const char *oj_cuda_screen_name(const struct oj_cuda_screen *screen)
{
    if (screen->rule.is_enough)
        return "boxes on the GPU";
    return screen->rule.asks_meeting
               ? "boxes and edges on the GPU, what they leave open on the CPU"
               : "boxes on the GPU, the features on the CPU";
}

const char *oj_cuda_screen_refusal(const struct oj_cuda_screen *screen)
{
    if (screen == NULL || !screen->is_refused)
        return NULL;
    return screen->reason + (screen->reason[0] != '\0' ? strlen(IN_PART) : 0);
}

int oj_cuda_screen_is_used(const struct oj_cuda_screen *screen)
{
    return screen != NULL && screen->index != NULL;
}

int oj_cuda_screen_decides(const struct oj_relation *relation,
                           const struct oj_flat *join_side)
{
    return (relation->op == OJ_OP_INTERSECTS ||
            relation->op == OJ_OP_DISJOINT || relation->op == OJ_OP_BBOX) &&
           !oj_flat_is_points(join_side);
}

const char *oj_cuda_screen_reason(const struct oj_cuda_screen *screen)
{
    return screen != NULL ? screen->reason : "";
}

void oj_cuda_screen_close(struct oj_cuda_screen *screen)
{
    if (screen == NULL)
        return;
    if (screen->index != NULL)
        screen->module->screen_free(screen->index);
    oj_free(screen);
}
