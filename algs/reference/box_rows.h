/** The search of box_search.h for features of any kinds and for every join:
 *  row by row, each feature as a whole.
 *
 *  All joins but nearest: one query of the tree with the row's box, grown by
 *  the greatest distance where the join has one; GEOS decides every candidate
 *  that the pair filter lets pass (geos_pairs.h).  disjoint, and patterns that
 *  hold for features apart: every feature is a candidate; GEOS is not asked
 *  whether features are disjoint whose envelopes are.  bbox: the exact
 *  envelopes decide.  nearest: windows that grow, as for points.
 *
 *  A pair that GEOS cannot decide is listed as undecided; of the nearest join
 *  the row, where that pair could be in its answer.
 */
#ifndef BOX_ROWS_H
#define BOX_ROWS_H

#include "../pairs/oj_pairs.h"
#include "box_search.h"

/** Joins a batch; filter is that of the batch. */
OJ_MUST_USE oj_status oj_box_rows_join(struct oj_box_search *search,
                                       const struct oj_flat *input,
                                       const struct oj_pair_filter *filter,
                                       struct oj_matches *out,
                                       struct oj_stats *stats,
                                       struct oj_error *err);

#endif
