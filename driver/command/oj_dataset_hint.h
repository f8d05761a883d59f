/** What to write in place of the name of a dataset that GDAL cannot open. */
#ifndef OJ_DATASET_HINT_H
#define OJ_DATASET_HINT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Writes, cut to size bytes, what is wrong with a name that stands for
 *  something in another program or nearly so in GDAL: a packed file, QGIS's
 *  name of a layer, a stream without a format.  Returns 0 where the name is
 *  none of these.
 *  role: "input" or "join", as options for the two sides begin */
int oj_dataset_hint(const char *name, const char *role, char *text,
                    size_t size);

#ifdef __cplusplus
}
#endif
#endif
