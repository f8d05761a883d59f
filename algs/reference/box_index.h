/** What a library's tree of boxes needs to become a reference backend: the
 *  three functions of struct oj_backend, given the library.
 */
#ifndef BOX_INDEX_H
#define BOX_INDEX_H

#include "box_search.h"

OJ_MUST_USE oj_status oj_box_index_make(
    const struct oj_box_library *library, const struct oj_backend *self,
    const struct oj_flat *join_side, const int32_t *tie_rank,
    const struct oj_relation *relation, const struct oj_options *options,
    struct oj_index **out, struct oj_stats *stats, struct oj_error *err);

OJ_MUST_USE oj_status oj_box_index_join(struct oj_index *index,
                                        const struct oj_flat *input,
                                        struct oj_matches *out,
                                        struct oj_stats *stats,
                                        struct oj_error *err);

void oj_box_index_free(struct oj_index *index);

#endif
