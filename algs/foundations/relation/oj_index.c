#include "oj_index.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"

#include <string.h>

int oj_engine_supports_join(const struct oj_engine *engine,
                            const struct oj_relation *relation,
                            const struct oj_flat *join_side,
                            const struct oj_flat *input)
{
    if (relation->heading.is_asked && !engine->takes_headings)
        return 0;
    return engine->supports == NULL
               ? oj_relation_is_of_shapes(relation)
               : engine->supports(relation, join_side, input);
}

oj_status oj_index_make(const struct oj_engine *engine,
                        const struct oj_index_args *args, struct oj_index **out,
                        struct oj_stats *stats, struct oj_error *err)
{
    struct oj_index *index = oj_calloc(1, engine->index_size);
    struct oj_index_args own = *args;
    double start = oj_clock_seconds(), before = stats->index_s;
    oj_status status;
    if (index == NULL)
        return oj_fail_nomem(err, 1, engine->index_size);
    own.engine = engine;
    status = engine->build(index, &own, stats, err);
    /* build() may have added to index_s, too; its wall-clock time replaces
     * this. */
    stats->index_s = before + (oj_clock_seconds() - start);
    if (status == OJ_OK)
        *out = index;
    else
        oj_index_free(engine, index);
    return status;
}

void oj_index_free(const struct oj_engine *engine, struct oj_index *index)
{
    if (index == NULL)
        return;
    if (engine->free_batches != NULL)
        engine->free_batches(index);
    if (engine->free_side != NULL)
        engine->free_side(index);
    oj_free(index);
}

oj_status oj_index_copy(const struct oj_engine *engine,
                        const struct oj_index *from,
                        const struct oj_options *options, struct oj_index **out,
                        struct oj_error *err)
{
    struct oj_index *copy = oj_malloc(1, engine->index_size);
    if (copy == NULL)
        return oj_fail_nomem(err, 1, engine->index_size);
    memcpy((void *)copy, (const void *)from, engine->index_size);
    engine->set_options(copy, options);
    *out = copy;
    return OJ_OK;
}

void oj_index_copy_free(const struct oj_engine *engine, struct oj_index *copy)
{
    if (copy != NULL)
        engine->free_batches(copy);
    oj_free(copy);
}
