/** Rows of CSV as bytes, beside GDAL's driver: it fills up rows that have too
 *  few fields, drops fields that are too many, and makes NULL of coordinates
 *  that are no numbers.  Which columns make the geometry is GDAL's choice, from
 *  names and options; it is found by a probe, two rows whose fields hold their
 *  own numbers:
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

/** Indices from 0 on; -1: none. */
struct oj_csv_columns
{
    char separator; /**< '\0': rows may have any number of fields */
    int n;
    int x, y, wkt; /**< the geometry */
};

void oj_csv_columns_init(struct oj_csv_columns *columns);

/** Finds separator and n for the first line, in which GDAL finds n_fields
 *  fields: the separator with which the number of fields is nearest to that. */
void oj_csv_columns_find(struct oj_csv_columns *columns, const char *line,
                         int64_t n, int n_fields);

/** Bytes that the probe needs, with the final zero. */
int64_t oj_csv_columns_probe_size(const struct oj_csv_columns *columns);

/** Writes the rows of the probe, of the first 4096 columns. */
void oj_csv_columns_write_probe(const struct oj_csv_columns *columns,
                                char *text, size_t size);

/** Finds x, y and wkt in what GDAL has made of the probe. */
void oj_csv_columns_read_probe(struct oj_csv_columns *columns, OGRLayerH layer);

/** 1 when each quotation begins and ends with a field, as those do that a
 *  program has written.  In a row of several lines a stray quotation mark has
 *  taken the lines up to the next one instead. */
int oj_csv_row_quotes_fields(const struct oj_csv_columns *columns,
                             const char *bytes, int64_t n);

/** 1, and the reason in flaw, when a row has fewer or more fields than the
 *  first line, or a coordinate that is no number.  Separators behind the last
 *  field, and coordinates that are empty or NaN, are no flaw. */
int oj_csv_row_has_flaw(const struct oj_csv_columns *columns, const char *bytes,
                        int64_t n, char *flaw, size_t size);

/** 1 when the column of WKT holds a text. */
int oj_csv_row_has_wkt(const struct oj_csv_columns *columns, const char *bytes,
                       int64_t n);

#endif
