/** What decides the join side of a job, as lists of texts: two jobs whose keys
 *  are equal can share one.
 *
 *  identity   the dataset, its layer or SELECT, filter and fields; the CRS it
 *             is brought into; what -invalid, -centroid_of, -on, -exclude and
 *             the fields of distances make of it; the relation; the engine and
 *             its options; GDAL's configuration
 *  state      of its files (oj_join_files.h)
 *
 *  Of the input side only what the join side depends on is there: the CRS, the
 *  kinds of its features, and which of its fields in -on and -exclude are
 *  numbers.
 */
#ifndef OJ_JOIN_KEY_H
#define OJ_JOIN_KEY_H

#include "../source/oj_sides.h"
#include "oj_join_cache.h"
#include "oj_join_files.h"

/** What a join side is made of, of a job that is open and has asked for all
 *  fields that it needs. */
struct oj_join_recipe
{
    const struct oj_command *command;
    const struct oj_source *join;
    const struct oj_sides *sides;
    const struct oj_relation *relation;
    const struct oj_join_files *files; /**< of the join side */
    struct oj_options options;         /**< of the engine */
};

/** 0 when the join side may be another one each time although its files stay
 *  as they are (a SELECT that asks for the time or for other files), or is not
 *  worth it: the boxes of -window, what -memory bounds. */
int oj_join_key_is_possible(const struct oj_command *command,
                            const struct oj_source *join);

/** Freed by oj_join_key_free(). */
struct oj_join_key oj_join_key_make(const struct oj_join_recipe *recipe);

#endif
