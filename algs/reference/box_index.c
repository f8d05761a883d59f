#include "box_index.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "box_rows.h"

#include <math.h>

struct box_index
{
    struct oj_boxes boxes;
    struct oj_box_search search;
};

void oj_box_index_free(struct oj_index *wrapped)
{
    struct box_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    index->search.library->free(index->search.tree);
    oj_geos_parts_free(index->search.parts);
    oj_geos_pairs_close(index->search.pairs);
    oj_boxes_free(&index->boxes);
    oj_free(index);
}

/* The tree, and what GEOS is asked with. */
static oj_status build(struct box_index *index, struct oj_error *err)
{
    struct oj_box_search *search = &index->search;
    const struct oj_relation *relation = &search->relation;
    OJ_TRY(oj_boxes_make(search->join_side, &index->boxes, err));
    search->boxes = &index->boxes;
    if (index->boxes.n_boxes > 0)
        OJ_TRY(search->library->build(&index->boxes, &search->tree, err));
    if (relation->op == OJ_OP_NEAREST)
        OJ_TRY(oj_geos_parts_make(search->join_side, relation->distance_to,
                                  &search->parts, err));
    OJ_TRY(oj_geos_pairs_open(relation, search->join_side,
                              search->visit == OJ_VISIT_SORTED, &search->pairs,
                              err));
    oj_geos_pairs_keep_join_side(search->pairs);
    search->is_wide = oj_boxes_window_is_wide(
        search->boxes, relation->max_distance, relation->k);
    search->reach = search->is_wide
                        ? search->boxes->spacing * sqrt((double)relation->k)
                        : relation->max_distance;
    return OJ_OK;
}

oj_status oj_box_index_make(
    const struct oj_box_library *library, const struct oj_backend *self,
    const struct oj_flat *join_side, const int32_t *tie_rank,
    const struct oj_relation *relation, const struct oj_options *options,
    struct oj_index **out, struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct box_index *index;
    oj_status status;
    if (relation->metric != OJ_METRIC_PLANAR)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend \"%s\" asks GEOS, which measures in the "
                       "plane only, not on the sphere",
                       self->name);
    index = oj_calloc(1, sizeof *index);
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->search.library = library;
    index->search.join_side = join_side;
    index->search.tie_rank = tie_rank;
    index->search.relation = *relation;
    index->search.options = *options;
    index->search.visit = (enum oj_visit_order)self->method;
    status = build(index, err);
    if (status != OJ_OK)
    {
        oj_box_index_free((void *)index);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    *out = (void *)index;
    return OJ_OK;
}

oj_status oj_box_index_join(struct oj_index *wrapped,
                            const struct oj_flat *input, struct oj_matches *out,
                            struct oj_stats *stats, struct oj_error *err)
{
    struct box_index *index = (void *)wrapped;
    struct oj_box_search *search = &index->search;
    struct oj_pair_filter filter;
    OJ_TRY(oj_pair_filter_make(&search->relation, input, search->join_side,
                               &filter, err));
    if (oj_box_search_takes(search, input, &filter))
        return oj_box_search_join(search, input, out, stats, err);
    return oj_box_rows_join(search, input, &filter, out, stats, err);
}
