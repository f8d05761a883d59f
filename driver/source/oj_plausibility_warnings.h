/** Warns of likely mistakes before the long work: layers that are disjoint,
 *  swapped axes, distances in the wrong unit. Uses extents that drivers return
 *  without reading the layer; for formats without them (CSV), the first rows.
 */
#ifndef OJ_PLAUSIBILITY_WARNINGS_H
#define OJ_PLAUSIBILITY_WARNINGS_H

#include "../command/oj_parsed_command.h"
#include "oj_crs.h"
#include "oj_source.h"

/** Prints the warnings. Precondition: both sides are open and their CRS known.
 *  Reads at most 1000 rows of a layer; none of a stream, and none of a filtered
 *  layer, whose first rows may be expensive to find. */
void oj_plausibility_warn(const struct oj_command *command,
                          const struct oj_source *input,
                          const struct oj_source *join,
                          const struct oj_crs *crs, double max_distance);

#endif
