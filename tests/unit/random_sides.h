/** A side of a join by distance, with every column that such a join may ask
 * for. Include once, after random_layers.h. */
#ifndef RANDOM_SIDES_H
#define RANDOM_SIDES_H

#include "../../flatten/base/oj_array.h"
#include "random_numbers.h"
#include "references.h"

#include <check.h>

struct random_side
{
    struct oj_flat_buf buf;
    struct oj_flat view;
    int64_t *fid;
    double *max_distance;
    int32_t *on_class, *exclude_class;
};

static inline void *column(int64_t n, size_t size)
{
    void *memory = oj_malloc(n, size);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static inline void side_free(struct random_side *side)
{
    oj_flat_buf_free(&side->buf);
    oj_free(side->fid);
    oj_free(side->max_distance);
    oj_free(side->on_class);
    oj_free(side->exclude_class);
}

/* Each of the two kinds of classes counts once in n times. */
static inline void pick_classes(struct random_side *a, struct random_side *b,
                                int n)
{
    a->view.on_class = b->view.on_class = NULL;
    a->view.exclude_class = b->view.exclude_class = NULL;
    if (one_in(n))
    {
        a->view.on_class = a->on_class;
        b->view.on_class = b->on_class;
    }
    if (one_in(n))
    {
        a->view.exclude_class = a->exclude_class;
        b->view.exclude_class = b->exclude_class;
    }
}

#endif
