/** Of the features that GEOS refused to measure for a row, the one that counts:
 *  nearest by its box, than which it cannot be nearer, then by rank.
 */
#ifndef BOX_REFUSED_H
#define BOX_REFUSED_H

#include "../pairs/oj_ranking.h"

struct oj_box_refused
{
    double at_least; /**< distance of its box; INFINITY: none was refused */
    int32_t rank;
};

static inline struct oj_box_refused oj_box_refused_none(void)
{
    struct oj_box_refused none = {INFINITY, 0};
    return none;
}

static inline void oj_box_refused_add(struct oj_box_refused *refused,
                                      const int32_t *tie_rank, int32_t feature,
                                      double at_least)
{
    int32_t rank = tie_rank != NULL ? tie_rank[feature] : feature;
    if (at_least < refused->at_least ||
        (at_least == refused->at_least && rank < refused->rank))
    {
        refused->at_least = at_least;
        refused->rank = rank;
    }
}

/** Whether it might be in the answer that was ranked. */
static inline int oj_box_refused_matters(const struct oj_box_refused *refused,
                                         const struct oj_ranking *ranking)
{
    double kth = oj_ranking_kth_distance(ranking);
    if (!(refused->at_least <= ranking->max_distance) ||
        !(refused->at_least < INFINITY))
        return 0;
    if (ranking->n < ranking->k || refused->at_least < kth)
        return 1;
    return refused->at_least == kth &&
           (ranking->keep_ties ||
            refused->rank < ranking->list[ranking->k - 1].rank);
}

#endif
