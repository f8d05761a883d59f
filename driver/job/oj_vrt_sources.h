/** The files behind an OGR VRT file, where it is a view of plain files: CSV
 *  points are read that way as a rule. */
#ifndef OJ_VRT_SOURCES_H
#define OJ_VRT_SOURCES_H

#ifdef __cplusplus
extern "C" {
#endif

/** Appends to *files (a GDAL string list, owned by the caller) each data source
 *  that the VRT file of that name names, and all files beside it that differ
 *  in their extension.  0 where one of them is no local file, is in a format
 *  for which takes(driver's name) is 0, or is asked by a SELECT whose answer
 *  may depend on more. */
int oj_vrt_sources(const char *path, int (*takes)(const char *driver),
                   char ***files);

#ifdef __cplusplus
}
#endif
#endif
