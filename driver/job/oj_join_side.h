/** The join side of a job: read, made into what is joined, and indexed. */
#ifndef OJ_JOIN_SIDE_H
#define OJ_JOIN_SIDE_H

#include "../../algs/ogrjoin.h"
#include "../../flatten/read/oj_layer_read.h"
#include "../source/oj_sides.h"

/** Zeroed memory is a valid empty one. It stays where it is once the engine is
 *  open, which borrows flat. */
struct oj_join_side
{
    struct oj_flat_buf buf; /**< as it was read */
    struct oj_side_work work;
    struct oj_flat flat; /**< what is joined: of buf or work */
    struct oj_table *table;
    struct oj_read_counts counts;
    struct oj_join *engine; /**< NULL when the join side lies in tiles */
    double read_s;

    /* Of a side that other jobs borrow: what its rows left with the sides of
     * the job that read it. */
    struct oj_side_findings findings;
    struct oj_class_numbers *on, *exclude; /**< held; NULL: not asked */
};

/** Keeps with side what the reading of it left with sides. */
void oj_join_side_keep(struct oj_join_side *side, const struct oj_sides *sides);

/** Gives it to the sides of another job, which asks the same of its join
 *  side. */
void oj_join_side_lend(const struct oj_join_side *side, struct oj_sides *sides);

/** Bytes of memory that it holds; of the engine what it tells, and where it
 *  tells nothing about 72 for each vertex and 4 for each feature. */
int64_t oj_join_side_bytes(const struct oj_join_side *side);

/** What the index of a join takes for each vertex, about (segments of 36 bytes,
 *  trees, rings), and what it holds beside the coordinates. */
#define OJ_INDEX_BYTES_PER_VERTEX 72

/** Adds to sum what an engine did between two looks at its stats; before NULL:
 *  since it was opened.  Bytes of an index are the most of all. */
void oj_stats_add(struct oj_stats *sum, const struct oj_stats *before,
                  const struct oj_stats *after);

/** Frees what it holds; it is a valid empty one afterwards. */
void oj_join_side_free(struct oj_join_side *side);

#endif
