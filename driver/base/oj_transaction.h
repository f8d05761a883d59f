/** One transaction on one dataset, which either ends complete or never was.
 *
 *  SQLite rolls back by itself when the disk is full, and GDAL does not notice:
 *  whatever it writes next (an index, extents, row counts, in the same call or
 *  while it closes) then changes the file outside any transaction.  So with
 *  the first error in a transaction, and before anything is undone, the
 *  connection is told to refuse all changes.
 */
#ifndef OJ_TRANSACTION_H
#define OJ_TRANSACTION_H

#include "../../flatten/base/oj_status.h"

#include <gdal.h>

/** A run that was killed leaves a journal beside the database, out of which the
 *  next one who may write undoes its changes; until then nobody can read it.
 *  1 when that was so with the file of this name, and is done. */
int oj_transaction_recover(const char *name, const char *const *open_options);

/** Begins, and watches for errors on the calling thread until the transaction
 *  is committed or dropped. One at a time. name: of the dataset, for messages.
 */
OJ_MUST_USE oj_status oj_transaction_begin(GDALDatasetH dataset,
                                           const char *name,
                                           struct oj_error *err);

/** Lets GDAL write what it has put off (a spatial index), still inside. */
OJ_MUST_USE oj_status oj_transaction_flush(GDALDatasetH dataset,
                                           const char *name,
                                           struct oj_error *err);

/** When this fails the transaction is still to be dropped. */
OJ_MUST_USE oj_status oj_transaction_commit(GDALDatasetH dataset,
                                            const char *name,
                                            struct oj_error *err);

/** Undoes the transaction and closes the dataset. */
void oj_transaction_drop(GDALDatasetH dataset);

#endif
