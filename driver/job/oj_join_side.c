#include "oj_join_side.h"

#include <string.h>

void oj_join_side_keep(struct oj_join_side *side, const struct oj_sides *sides)
{
    side->findings = sides->reshape[1].found;
    side->on = oj_classes_hold_numbers(sides->on);
    side->exclude = oj_classes_hold_numbers(sides->exclude);
}

void oj_join_side_lend(const struct oj_join_side *side, struct oj_sides *sides)
{
    sides->reshape[1].found = side->findings;
    oj_classes_use_numbers(sides->on, side->on);
    oj_classes_use_numbers(sides->exclude, side->exclude);
}

static int64_t flat_bytes(const struct oj_flat_buf *buf)
{
    return buf->cap_features * (int64_t)sizeof *buf->fid +
           buf->cap_part_offset * (int64_t)sizeof *buf->part_offset +
           buf->cap_parts * (int64_t)sizeof *buf->part_kind +
           buf->cap_ring_offset * (int64_t)sizeof *buf->ring_offset +
           buf->cap_vertex_offset * (int64_t)sizeof *buf->vertex_offset +
           buf->cap_x * (int64_t)sizeof *buf->x +
           buf->cap_y * (int64_t)sizeof *buf->y;
}

static int64_t work_bytes(const struct oj_side_work *work)
{
    return flat_bytes(&work->shapes) +
           work->cap_max_distance * (int64_t)sizeof *work->max_distance +
           work->cap_on_class * (int64_t)sizeof *work->on_class +
           work->cap_exclude_class * (int64_t)sizeof *work->exclude_class;
}

static int64_t engine_bytes(const struct oj_join_side *side)
{
    const struct oj_flat *flat = &side->flat;
    int64_t n, index;
    if (side->engine == NULL)
        return 0;
    n = oj_join_tie_rank(side->engine) != NULL ? flat->n_features : 0;
    index = oj_join_stats(side->engine)->index_bytes;
    if (index == 0)
    {
        index = OJ_INDEX_BYTES_PER_VERTEX *
                (oj_flat_is_points(flat) ? flat->n_features : flat->n_vertices);
        n = flat->n_features;
    }
    return index + n * (int64_t)sizeof(int32_t);
}

int64_t oj_join_side_bytes(const struct oj_join_side *side)
{
    return flat_bytes(&side->buf) + work_bytes(&side->work) +
           engine_bytes(side) + oj_class_numbers_bytes(side->on) +
           oj_class_numbers_bytes(side->exclude) +
           (side->table != NULL ? oj_table_bytes(side->table) : 0);
}

void oj_stats_add(struct oj_stats *sum, const struct oj_stats *before,
                  const struct oj_stats *after)
{
    static const struct oj_stats none = {0};
    if (before == NULL)
        before = &none;
    sum->index_s += after->index_s - before->index_s;
    sum->sort_s += after->sort_s - before->sort_s;
    sum->filter_s += after->filter_s - before->filter_s;
    sum->refine_s += after->refine_s - before->refine_s;
    sum->n_candidates += after->n_candidates - before->n_candidates;
    if (after->index_bytes > sum->index_bytes)
        sum->index_bytes = after->index_bytes;
    if (sum->n_undecided_pairs == 0 &&
        after->n_undecided_pairs > before->n_undecided_pairs)
        memcpy(sum->undecided_text, after->undecided_text,
               sizeof sum->undecided_text);
    sum->n_undecided_pairs +=
        after->n_undecided_pairs - before->n_undecided_pairs;
}

void oj_join_side_free(struct oj_join_side *side)
{
    const struct oj_join_side empty = {0};
    oj_join_close(side->engine);
    oj_table_free(side->table);
    oj_flat_buf_free(&side->buf);
    oj_side_work_free(&side->work);
    oj_class_numbers_free(side->on);
    oj_class_numbers_free(side->exclude);
    *side = empty;
}
