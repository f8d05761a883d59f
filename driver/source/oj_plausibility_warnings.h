/** What can be seen to be wrong before the long work: layers that do not meet,
 *  axes that were swapped, distances in the wrong unit.  What the drivers know
 *  without reading the layers is looked at, and where they know nothing, as of
 *  CSV, the first rows. */
#ifndef OJ_PLAUSIBILITY_WARNINGS_H
#define OJ_PLAUSIBILITY_WARNINGS_H

#include "../command/oj_parsed_command.h"
#include "oj_crs.h"
#include "oj_source.h"

/** Prints a warning for each of them. Both sides are open, their CRS known;
 * of a layer at most 1000 rows are read, and none of what can be read but once
 * or may have to be searched for them. */
void oj_plausibility_warn(const struct oj_command *command,
                          const struct oj_source *input,
                          const struct oj_source *join,
                          const struct oj_crs *crs, double max_distance);

#endif
