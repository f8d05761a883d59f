/** Checks rows of CSV before GDAL reads them. GDAL's driver completes rows that
 *  have too few fields, drops fields that are too many, and makes NULL of
 *  coordinates that are no numbers. Which columns form the geometry is GDAL's
 *  decision, from names and options; it is found by a probe, two rows in which
 *  each field holds the number of its column:
 *
 *   vehicle,lon,lat
 *   0,1,2                                       POINT (1 2): x is 1, y is 2
 *   "POINT (0 0)","POINT (1 0)","POINT (2 0)"   POINT (k 0): WKT is in k
 */
#ifndef OJ_CSV_ROW_H
#define OJ_CSV_ROW_H

#include <ogr_api.h>

#include <stddef.h>
#include <stdint.h>

/** Indices of the columns, from 0 on. -1 means that there is no such column. */
struct oj_csv_columns
{
    char separator; /**< '\0' if rows may have any number of fields */
    int n;
    int x, y, wkt; /**< columns of the geometry */
};

void oj_csv_columns_init(struct oj_csv_columns *columns);

/** Sets separator and n from the first line. n_fields is the number of fields
 *  that GDAL finds in this line. Chooses the separator whose number of fields
 *  is nearest to n_fields. */
void oj_csv_columns_find(struct oj_csv_columns *columns, const char *line,
                         int64_t n, int n_fields);

/** Returns the number of bytes that the probe needs, with the final zero. */
int64_t oj_csv_columns_probe_size(const struct oj_csv_columns *columns);

/** Writes the two rows of the probe; columns beyond the first 4096 are left
 *  out. */
void oj_csv_columns_write_probe(const struct oj_csv_columns *columns,
                                char *text, size_t size);

/** Finds x, y and wkt from the layer that GDAL made of the probe. */
void oj_csv_columns_read_probe(struct oj_csv_columns *columns, OGRLayerH layer);

/** Returns 1 if quotations begin and end only at the borders of fields, as
 *  programs write them. Returns 0 if a stray quotation mark has swallowed the
 *  following lines up to the next mark. */
int oj_csv_row_quotes_fields(const struct oj_csv_columns *columns,
                             const char *bytes, int64_t n);

/** Returns 1, and the reason in flaw, if a row has fewer or more fields than
 *  the first line, or a coordinate that is no number. Separators behind the
 *  last field, and coordinates that are empty or NaN, are accepted. */
int oj_csv_row_has_flaw(const struct oj_csv_columns *columns, const char *bytes,
                        int64_t n, char *flaw, size_t size);

/** Returns 1 if the row has a text in the column of WKT. */
int oj_csv_row_has_wkt(const struct oj_csv_columns *columns, const char *bytes,
                       int64_t n);

#endif
