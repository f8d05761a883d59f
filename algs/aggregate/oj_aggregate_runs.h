/** Sorted runs of values in a file: written one by one, read merged.
 *  Part of oj_aggregate_held.h. */
#ifndef OJ_AGGREGATE_RUNS_H
#define OJ_AGGREGATE_RUNS_H

#include "oj_aggregate_held_value.h"

struct oj_runs;

OJ_MUST_USE oj_status oj_runs_open(enum oj_held_order order,
                                   const struct oj_held_files *files,
                                   struct oj_runs **out, struct oj_error *err);

/** Begins a run. Its values follow by oj_runs_put(), in order. */
OJ_MUST_USE oj_status oj_runs_begin(struct oj_runs *runs, struct oj_error *err);
OJ_MUST_USE oj_status oj_runs_put(struct oj_runs *runs,
                                  const struct oj_held_value *value,
                                  struct oj_error *err);
OJ_MUST_USE oj_status oj_runs_end(struct oj_runs *runs, struct oj_error *err);

int64_t oj_runs_count(const struct oj_runs *runs);

/** Begins reading all runs as one. */
OJ_MUST_USE oj_status oj_runs_rewind(struct oj_runs *runs,
                                     struct oj_error *err);

/** NULL after the last value. */
const struct oj_held_value *oj_runs_peek(const struct oj_runs *runs);
OJ_MUST_USE oj_status oj_runs_skip(struct oj_runs *runs, struct oj_error *err);

/** Accepts NULL. */
void oj_runs_close(struct oj_runs *runs);

/** < 0, 0, > 0: the place of a before, like or after b. */
int oj_held_compare(enum oj_held_order order, const struct oj_held_value *a,
                    const struct oj_held_value *b);

#endif
