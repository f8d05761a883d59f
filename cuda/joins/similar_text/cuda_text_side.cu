#include "cuda_text_side.cuh"

#include "../../../flatten/text/oj_token_sets.h"

/* Sets n_tokens to the greatest token number + 1. The last token of each set is
 * its greatest. */
static oj_status count_different_tokens(struct oj_cuda_work *work,
                                        struct oj_cuda_text_side *of)
{
    struct oj_cuda_work own(work);
    const struct oj_cuda_text_side side = *of;
    uint32_t *most;
    OJ_TRY(own.allocate_zeros(1, &most));
    OJ_TRY(own.each(side.n,
                    [=] __device__(int64_t i)
                    {
                        int n = side.count_known_tokens((int32_t)i);
                        uint32_t last =
                            n > 0 ? side.tokens_of_row((int32_t)i)[n - 1] + 1
                                  : 0u;
                        if (last > *(volatile uint32_t *)most)
                            atomicMax(most, last);
                    }));
    return own.read(most, &of->n_tokens);
}

oj_status oj_cuda_text_side_make(struct oj_cuda_work *work,
                                 const struct oj_flat *flat, int64_t first,
                                 int64_t n, const struct oj_relation *relation,
                                 struct oj_cuda_text_side *out)
{
    const struct oj_token_sets sets =
        oj_token_sets_slice(&flat->texts[0], first, n);
    int64_t n_tokens = sets.offset[n] - sets.offset[0];
    int32_t *order;
    struct oj_cuda_text_side side = {};
    side.n = n;
    side.first_token = sets.offset[0];
    OJ_TRY(oj_cuda_upload_column(work, sets.offset, n + 1, &side.offset));
    OJ_TRY(oj_cuda_upload_column(work, sets.token + sets.offset[0], n_tokens,
                                 &side.token));
    OJ_TRY(oj_cuda_upload_column(work, sets.size, n, &side.size));
    OJ_TRY(
        oj_cuda_upload_columns(work, flat, first, n, relation, &side.columns));
    OJ_TRY(count_different_tokens(work, &side));
    const int32_t *size = side.size;
    OJ_TRY(work->order_by<uint32_t>(
        n, 21, [=] __device__(int64_t i) { return (uint32_t)size[i]; },
        &order));
    side.order = order;
    *out = side;
    return OJ_OK;
}

int oj_cuda_text_side_supports_join(const struct oj_relation *relation,
                                    const struct oj_flat *join_side,
                                    const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_is_similar(relation) && relation->n_similar == 1 &&
           !relation->vector.is_asked && !relation->exclude_same_geometry;
}

oj_status oj_cuda_text_index_build(struct oj_cuda_index *index,
                                   struct oj_cuda_work *work)
{
    const struct oj_flat *flat = index->layer->flat;
    if (flat->n_texts < 1)
        return oj_fail(
            work->err, OJ_ERR_ARG,
            "the join side has no texts: name its columns in similar");
    return oj_cuda_text_side_make(work, flat, 0, flat->n_features,
                                  &index->relation,
                                  &((struct oj_cuda_text_index *)index)->side);
}
