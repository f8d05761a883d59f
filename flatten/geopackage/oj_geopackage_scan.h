/** A range of the rows of a GeoPackage's table, in the order of their numbers
 *  -> chunks, by one connection.
 *
 *  A function of ours in the statement's condition takes the values of a row,
 *  which costs less than a step and a call for each value: it is true only when
 *  a chunk is full, so that SQLite comes back with one row per chunk.
 *
 *    SELECT 1 FROM "t" m WHERE m."fid" >= ?2
 *                          AND ogrjoin_take(?1, m."fid", m."geom", m."a", ...)
 *
 *  Values are asked of SQLite as GDAL asks for them, whatever a row has stored
 *  in a column of another type.
 *
 *  geometry  "GP" | version | flags | int32, srs | envelope | WKB
 *
 *  Source: OGC 12-128, section 2.1.3.
 */
#ifndef OJ_GEOPACKAGE_SCAN_H
#define OJ_GEOPACKAGE_SCAN_H

#include "../arrays/oj_chunk.h"

#include <ogr_api.h>

struct sqlite3;

/** What is taken of each row of a layer; read by any number of scans. */
struct oj_geopackage_plan
{
    char *sql;        /**< of the statement */
    int has_geometry; /**< value 1; value 0 is the FID */
    int n_columns;
    struct oj_geopackage_column *column; /**< [n_columns] of the next values */
    int n_fields;
    char *format;       /**< [n_fields] of the chunk; 0: nobody looks at it */
    int64_t batch_rows; /**< most rows of a chunk */
};

/** *fits is 0, without error, when a field has a type that is not known, or
 *  there are more of them than a function takes. Zeroed before.
 *  fields, skipped  as in oj_geopackage_read_open() */
OJ_MUST_USE oj_status oj_geopackage_plan_init(struct oj_geopackage_plan *plan,
                                              OGRLayerH layer,
                                              const int *fields,
                                              const unsigned char *skipped,
                                              int n_fields, int64_t batch_rows,
                                              int *fits, struct oj_error *err);

/** Accepts a zeroed one. */
void oj_geopackage_plan_free(struct oj_geopackage_plan *plan);

struct oj_geopackage_scan;

/** *out is NULL, without error, where SQLite refuses the statement, or the
 *  layer is no table whose rows are found by their FIDs. plan and db outlive
 *  the scan. */
OJ_MUST_USE oj_status oj_geopackage_scan_open(
    const struct oj_geopackage_plan *plan, struct sqlite3 *db,
    const char *table, struct oj_geopackage_scan **out, struct oj_error *err);

/** Accepts NULL. */
void oj_geopackage_scan_close(struct oj_geopackage_scan *scan);

/** Goes to the first row with a FID of first to last; INT64_MIN and INT64_MAX
 *  are no bounds. */
void oj_geopackage_scan_range(struct oj_geopackage_scan *scan, int64_t first,
                              int64_t last);

enum oj_geopackage_state
{
    OJ_GEOPACKAGE_MORE,
    OJ_GEOPACKAGE_END, /**< of the range */
    OJ_GEOPACKAGE_LEFT /**< what GDAL would complain of: a broken geometry, a
                            text that is no proper date, a page that cannot be
                            read, rows out of order; this row and all later
                            ones are left to it */
};

/** The rows around a range, which prove that two ranges, read apart, have all
 *  rows of the two together even where the file is broken. */
struct oj_geopackage_ends
{
    int has_begin, has_beyond;
    int64_t begin;  /**< FID of the first row from the range's start on */
    int64_t beyond; /**< that of the first row after it; known at its end */
};

/** Up to batch_rows rows; *chunk is NULL when there are none before *state. A
 *  nonzero *stop, of another thread, ends it early. */
OJ_MUST_USE oj_status oj_geopackage_scan_next(struct oj_geopackage_scan *scan,
                                              const int *stop,
                                              struct oj_chunk **chunk,
                                              enum oj_geopackage_state *state,
                                              struct oj_geopackage_ends *ends,
                                              struct oj_error *err);

#endif
