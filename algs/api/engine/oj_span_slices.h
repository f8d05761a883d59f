/** Engine for joins with a condition under which spans must overlap: divides
 * the join side into slices of time. Each slice has an index of the engine that
 * would join without slices.
 *
 *   join side by begin  |  slice 0  |  slice 1  |  slice 2  |  long spans  |
 *   a row's span                  #######           slices 0, 1 and the last
 *
 *  A feature is in one slice, by the begin of its span. Features with long
 *  spans have slices of their own, because a few of them would extend all
 *  slices. A row is joined with each slice that has spans that can overlap its
 *  own; then its pairs are merged and ranked.
 *
 *  The number of slices is chosen for each batch, such that a slice is about as
 *  long as the span of a row. Small batches and batches with long spans are
 *  joined with the undivided join side, by an engine that tests the condition
 *  for each pair.
 *
 *  Other relations than intersects leave out slices by the ranges of begins and
 *  ends of their spans, too. Thus long spans have slices if rows have many
 *  candidates, of which the relation refuses most: of spans that contain each
 *  other few overlap or are equal. Long spans without an end have slices apart
 *  from those of other long spans, whose ends then lie close together.
 *
 *  Source: ours. Benchmark that pays for it: nearest of 1 M points among 1 M
 *  within 30 minutes, times spread over a month (docs/time.md); for long spans,
 *  20,000 at one place that contain each other: -during :equals takes a tenth
 *  of the time.
 */
#ifndef OJ_SPAN_SLICES_H
#define OJ_SPAN_SLICES_H

#include "../../foundations/relation/oj_index.h"

/** The engine. It joins by the engines that follow it in the list of the
 * backend cpu. */
extern const struct oj_engine oj_span_slices;

#endif
