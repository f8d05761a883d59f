/** How near each feature is known to be: its own segments that are farther
 *  than that are needed by nobody, however many features are asked for.
 *
 *  The bound of cpu_patch.h is the k-th least distance, and there is none while
 *  fewer than k features are in reach.  A search that collects very much then
 *  notes the least distance of each feature in a small table, and leaves out
 *  what lies behind it.  The table has room for so many features; those that
 *  find none are not bounded by themselves.
 */
#ifndef CPU_OWN_BOUNDS_H
#define CPU_OWN_BOUNDS_H

#include <math.h>
#include <stdint.h>

#define OJ_OWN_SLOTS 4096 /* a power of two */
#define OJ_OWN_MOST 3072  /* features that are noted */

struct oj_own_slot
{
    double d2; /* least squared distance from the centre of a place */
    int32_t feature;
    uint32_t stamp; /* not that of the table: empty */
};

/** Zeroed memory is a valid empty table. */
struct oj_own_bounds
{
    int is_used; /**< 1: the search at work looks at it */
    int32_t n;
    uint32_t stamp;
    struct oj_own_slot slot[OJ_OWN_SLOTS];
};

/** Empties the table, which a search begins to use. */
static inline void oj_own_start(struct oj_own_bounds *own)
{
    if (++own->stamp == 0)
    {
        for (int i = 0; i < OJ_OWN_SLOTS; i++)
            own->slot[i].stamp = 0;
        own->stamp = 1;
    }
    own->n = 0;
    own->is_used = 1;
}

/** The slot of feature, or the empty one where it would be. */
static inline struct oj_own_slot *oj_own_slot(struct oj_own_bounds *own,
                                              int32_t feature)
{
    uint32_t at = (uint32_t)feature * 0x9E3779B1u >> 20;
    while (own->slot[at].stamp == own->stamp &&
           own->slot[at].feature != feature)
        at = (at + 1) % OJ_OWN_SLOTS;
    return &own->slot[at];
}

/** Notes that feature has a segment at d2. Returns 0 when a nearer one is known
 *  already. */
static inline int oj_own_lower(struct oj_own_bounds *own, int32_t feature,
                               double d2)
{
    struct oj_own_slot *slot = oj_own_slot(own, feature);
    if (slot->stamp == own->stamp)
    {
        int is_lower = d2 < slot->d2;
        slot->d2 = is_lower ? d2 : slot->d2;
        return is_lower;
    }
    if (own->n == OJ_OWN_MOST)
        return 1;
    own->n++;
    slot->stamp = own->stamp;
    slot->feature = feature;
    slot->d2 = d2;
    return 1;
}

/** The least squared distance of feature, or INFINITY. */
static inline double oj_own_least2(struct oj_own_bounds *own, int32_t feature)
{
    const struct oj_own_slot *slot = oj_own_slot(own, feature);
    return slot->stamp == own->stamp ? slot->d2 : INFINITY;
}

#endif
