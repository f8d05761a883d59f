/* What the checks of a layer share: saying what is wrong, and all rows of a
 * layer with a number for each that tells whether two rows are the same. */
#ifndef LAYER_ROWS_H
#define LAYER_ROWS_H

#include <gdal.h>
#include <ogr_api.h>

#include <stdint.h>

enum
{
    ALL_FIELDS = -1,
    NO_GEOMETRY = -2 /* all fields without the geometry */
};

/* Counts a check; where it does not hold, prints what is wrong. */
void expect(int ok, const char *format, ...);
/* What the checks from now on are about. */
void check_begin(const char *subject);
/* How many did not hold, of how many. */
int checks_failed(int *n_checks);
/* Takes GDAL's messages: an error is one that is expected (between the two
 * calls below), or else a failed check. */
void take_messages(void);
void expect_errors(void);
void expect_none(void);

uint32_t any_number(void);

struct layer_rows
{
    OGRFeatureH *at;
    uint64_t *hash; /* of the whole row, FID and geometry included */
    int n, room;
};

/* A row as one number; without the field of that number, or the geometry. */
uint64_t hash_row(OGRFeatureH feature, int without);
/* From the first row on, under the filters that are set. */
struct layer_rows read_rows(OGRLayerH layer);
void free_rows(struct layer_rows *rows);
void expect_same_rows(const struct layer_rows *got,
                      const struct layer_rows *expected, const char *what);
/* Under the filters that are set, exactly the rows of all for which keep is
 * not 0 come, and are counted; in any order, as an index may give them. */
void expect_kept(OGRLayerH layer, const struct layer_rows *all,
                 const char *keep, const char *what);

/* GetFeature, SetNextByIndex. */
void check_single_rows(OGRLayerH layer, const struct layer_rows *all);
/* Attribute filters, spatial filters, ignored fields, SQL. */
void check_filters(GDALDatasetH dataset, OGRLayerH layer,
                   const struct layer_rows *all);

#endif
