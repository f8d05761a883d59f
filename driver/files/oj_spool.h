/** Answers kept aside: one fixed-size record per input row, in a file without
 *  a name that goes away with the process. */
#ifndef OJ_SPOOL_H
#define OJ_SPOOL_H

#include "../../flatten/arrays/oj_pair_values.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A row of the input and the pair it keeps. */
struct oj_spool_record
{
    int64_t fid;
    int64_t n_pairs;
    double measure;
    int64_t join_row; /**< or its place in tiles; -1: nothing matched */
    double value[OJ_N_PAIR_VALUES];
};

struct oj_spool;

/** In TMPDIR, or /tmp. with_values: 0 when the records need no value. */
OJ_MUST_USE oj_status oj_spool_open(int with_values, struct oj_spool **out,
                                    struct oj_error *err);

OJ_MUST_USE oj_status oj_spool_write(struct oj_spool *spool,
                                     const struct oj_spool_record *record,
                                     struct oj_error *err);

/** Ends writing; the next read gives the first record. */
OJ_MUST_USE oj_status oj_spool_rewind(struct oj_spool *spool,
                                      struct oj_error *err);

/** Values that were not kept are as they were. *at_end is 1 when there is no
 * record any more. */
OJ_MUST_USE oj_status oj_spool_read(struct oj_spool *spool,
                                    struct oj_spool_record *record, int *at_end,
                                    struct oj_error *err);

int64_t oj_spool_count(const struct oj_spool *spool);

/** Accepts NULL. */
void oj_spool_close(struct oj_spool *spool);

#ifdef __cplusplus
}
#endif
#endif
