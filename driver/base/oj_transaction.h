/** One transaction on one dataset, which either ends complete or never was.
 *
 *  SQLite rolls back by itself when a write fails or the disk is full, and GDAL
 *  does not notice: each statement that follows (rows, an index, extents, row
 *  counts, also while it closes) would change the file outside any transaction.
 *  So from its begin on the connection refuses each commit but the one of
 *  oj_transaction_commit(), and that one, too, once anything was rolled back.
 *  All ways of writing (features, rows past GDAL, updates, new columns, a
 *  replaced layer) share that connection.
 */
#ifndef OJ_TRANSACTION_H
#define OJ_TRANSACTION_H

#include "../../flatten/base/oj_status.h"

#include <gdal.h>

/** A run that was killed leaves a journal beside the database, out of which the
 *  next one who may write undoes its changes; until then nobody can read it.
 *  1 when that was so with the file of this name, and is done. */
int oj_transaction_recover(const char *name, const char *const *open_options);

/** Begins. One at a time. name: of the dataset, for messages. */
OJ_MUST_USE oj_status oj_transaction_begin(GDALDatasetH dataset,
                                           const char *name,
                                           struct oj_error *err);

/** Lets GDAL write what it has put off (a spatial index), still inside. */
OJ_MUST_USE oj_status oj_transaction_flush(GDALDatasetH dataset,
                                           const char *name,
                                           struct oj_error *err);

/** When this fails nothing was committed, and the transaction is still to be
 *  dropped. Afterwards an SQLite database takes no further changes by this
 *  connection. */
OJ_MUST_USE oj_status oj_transaction_commit(GDALDatasetH dataset,
                                            const char *name,
                                            struct oj_error *err);

/** Undoes the transaction and closes the dataset. */
void oj_transaction_drop(GDALDatasetH dataset);

#endif
