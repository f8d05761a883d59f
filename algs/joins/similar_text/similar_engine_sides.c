#include "similar_engine_sides.h"

#include <math.h>
#include <string.h>

int oj_similar_supports_text_join(const struct oj_relation *relation,
                                  const struct oj_flat *join_side,
                                  const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_ranks_by_similarity(relation) &&
           !(relation->max_distance < INFINITY);
}

int oj_similar_supports_vector_join(const struct oj_relation *relation,
                                    const struct oj_flat *join_side,
                                    const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_is_similar(relation) && relation->n_similar == 0 &&
           !(relation->max_distance < INFINITY);
}

oj_status oj_similar_sides_make(struct oj_row_index *index,
                                struct oj_similar_sides *sides,
                                struct oj_error *err)
{
    struct oj_relation *rest = &sides->rest;
    struct oj_flat *side = sides->side;
    memset(sides, 0, sizeof *sides);
    *rest = index->args.relation;
    side[0] = *index->input;
    side[1] = *index->args.join_side;
    if (side[0].n_features == 0 || side[1].n_features == 0)
    {
        index->n_rows = 0; /* A side without features may lack the columns. */
        return OJ_OK;
    }
    if (rest->n_similar == 0)
        rest->vector.is_asked = 0;
    else
    {
        sides->input = side[0].texts[0];
        sides->join_side = side[1].texts[0];
        rest->n_similar--;
        memmove(rest->similar, rest->similar + 1,
                (size_t)rest->n_similar * sizeof *rest->similar);
        for (int i = 0; i < 2; i++)
        {
            side[i].texts++;
            side[i].n_texts--;
        }
    }
    return oj_pair_filter_make(rest, &side[0], &side[1], &index->filter, err);
}
