/** Joins with a condition on spans that must have an instant in common: the
 *  join side in slices of time, each with an index of the engine that would
 *  answer the join without them.
 *
 *   join side by begin  |  slice 0  |  slice 1  |  slice 2  |  long spans  |
 *   a row's span                  #######           slices 0, 1 and the last
 *
 *  A feature is in one slice: by the begin of its span, or, if it is long,
 *  among the long ones, so that a few of them do not spoil all slices.  A row
 *  is joined with the slices in which spans can meet its own; its pairs are
 *  then merged as those of the points of a multipoint are.
 *
 *  How many slices there are follows the first batches: about as many as make a
 *  slice as long as a row's span.  Batches that are too small, or whose spans
 *  are too long, are joined with the whole join side; pairs are filtered there.
 *
 *  Source: ours.  It pays for itself where few features are in the window:
 *  nearest of 1 M points among 1 M, 30 minutes of a month (docs/time.md).
 */
#ifndef OJ_SPAN_SLICES_H
#define OJ_SPAN_SLICES_H

#include "../../foundations/relation/oj_index.h"

/** The engine. It asks the engines after itself in the list of the backend cpu.
 */
extern const struct oj_engine oj_span_slices;

#endif
