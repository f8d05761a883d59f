/** One transaction on one dataset, which is committed completely or rolled
 *  back.
 *  SQLite itself rolls back if a write fails or the disk is full, and GDAL does
 *  not notice: its further statements (rows, an index, extents, row counts,
 *  even while closing) would change the file outside of any transaction.
 *  Therefore the connection refuses every commit except that of
 *  oj_transaction_commit(); after a rollback it refuses this one, too. All ways
 *  of writing (features, direct rows, updates, new columns, a replaced layer)
 *  use this connection. */
#ifndef OJ_TRANSACTION_H
#define OJ_TRANSACTION_H

#include "../../flatten/base/oj_status.h"

#include <gdal.h>

/** Rolls back the unfinished transaction of a killed run, whose journal lies
 *  beside the SQLite file `name`. Other programs cannot read the file until a
 *  program with write access has rolled it back. Returns 1 if there was such a
 *  journal and the rollback succeeded. */
int oj_transaction_recover(const char *name, const char *const *open_options);

/** Begins the transaction. Only one can be open. name is the name of the
 *  dataset, for messages. */
OJ_MUST_USE oj_status oj_transaction_begin(GDALDatasetH dataset,
                                           const char *name,
                                           struct oj_error *err);

/** Makes GDAL write deferred changes (a spatial index) within the
 *  transaction. */
OJ_MUST_USE oj_status oj_transaction_flush(GDALDatasetH dataset,
                                           const char *name,
                                           struct oj_error *err);

/** Commits. On failure nothing is committed, and the caller still must call
 *  oj_transaction_roll_back(). After success an SQLite database accepts no more
 *  changes through this connection. */
OJ_MUST_USE oj_status oj_transaction_commit(GDALDatasetH dataset,
                                            const char *name,
                                            struct oj_error *err);

/** Rolls the transaction back and closes the dataset. */
void oj_transaction_roll_back(GDALDatasetH dataset);

#endif
