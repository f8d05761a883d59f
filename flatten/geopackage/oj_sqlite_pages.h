/** Tables of SQLite by the pages of their file: rows without a statement, which
 *  costs a part of what SQLite's virtual machine takes for them.
 *
 *   root      interior page: pages below, in the order of their rows
 *   ...       interior pages
 *   leaves    number of rows | where each begins | ... | row | row
 *   row       bytes | number | record, if it is long followed by
 *   overflow  next page | more of the record
 *   record    bytes of the types | type of column 0, 1, ... | their values
 *
 *  The file is read through SQLite's own handle, within a statement of the
 *  connection that stands at a row: nobody changes the pages until it is
 *  finished. The bytes are not trusted.
 *
 *  Source: "Database File Format" of SQLite.
 *  Pays: sums of 10 M rows of a GeoPackage, see BENCHMARKS.md.
 */
#ifndef OJ_SQLITE_PAGES_H
#define OJ_SQLITE_PAGES_H

#include "../base/oj_status.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>

/** Of a tree. */
#define OJ_SQLITE_MOST_LEVELS 20

struct oj_sqlite_level
{
    uint8_t *page;
    int at; /**< of the next one below */
};

struct oj_sqlite_pages
{
    sqlite3_file *file;
    pthread_mutex_t mutex; /**< of file */
    int64_t n_bytes;       /**< of the file */
    int page_bytes, usable_bytes;

    struct oj_sqlite_level level[OJ_SQLITE_MOST_LEVELS]; /**< interior pages */
    int n_levels;
    int64_t root, last_row;
    int has_begun, has_rows, is_broken;

    uint8_t *leaf; /**< [n_leaves] pages that were read last; owned */
    uint32_t *number;
    int64_t n_leaves, cap_leaves;
};

/** A row of a leaf. */
struct oj_sqlite_row
{
    int64_t number;
    const uint8_t *record;
    int64_t n; /**< bytes of it */
};

/** A long record, put together. Zeroed memory is a valid empty one. */
struct oj_sqlite_record
{
    uint8_t *bytes; /**< owned */
    int64_t cap;
};

/** Prepares the table whose tree begins at page root, about n_bytes of which
 *  are read at once. OJ_ERR_UNSUPPORTED: the file's pages are no state of it (a
 *  log has some), or of a kind that is not known. */
OJ_MUST_USE oj_status oj_sqlite_pages_open(sqlite3 *connection, int64_t root,
                                           int64_t n_bytes,
                                           struct oj_sqlite_pages *pages,
                                           struct oj_error *err);

/** Zeroed memory will do. */
void oj_sqlite_pages_close(struct oj_sqlite_pages *pages);

/** The next leaves, none at the end. OJ_ERR_UNSUPPORTED: the tree is broken
 *  behind the ones before. */
OJ_MUST_USE oj_status oj_sqlite_pages_read(struct oj_sqlite_pages *pages,
                                           struct oj_error *err);

/** Rows of a leaf that was read, one at least. */
static inline int oj_sqlite_leaf_rows(const struct oj_sqlite_pages *pages,
                                      int64_t leaf)
{
    const uint8_t *page = pages->leaf + leaf * pages->page_bytes;
    return page[3] << 8 | page[4];
}

/** Row i of it; its record may be in long_one. Any thread. OJ_ERR_UNSUPPORTED:
 *  it is broken. */
OJ_MUST_USE oj_status oj_sqlite_leaf_row(struct oj_sqlite_pages *pages,
                                         int64_t leaf, int i,
                                         struct oj_sqlite_record *long_one,
                                         struct oj_sqlite_row *row,
                                         struct oj_error *err);

/** Reads a number of 1 to 9 bytes before end; its bytes, 0: it is not whole. */
static inline int oj_sqlite_varint(const uint8_t *at, const uint8_t *end,
                                   uint64_t *value)
{
    uint64_t sum = 0;
    if (at < end && at[0] < 128)
    {
        *value = at[0];
        return 1;
    }
    for (int i = 0; i < 9 && at + i < end; i++)
    {
        if (i == 8 || at[i] < 128)
        {
            *value = i == 8 ? sum << 8 | at[i] : sum << 7 | at[i];
            return i + 1;
        }
        sum = sum << 7 | (at[i] & 127);
    }
    return 0;
}

/** The signed number of n <= 8 bytes. */
static inline int64_t oj_sqlite_integer(const uint8_t *at, int n)
{
    uint64_t bits = n > 0 && at[0] > 127 ? UINT64_MAX : 0;
    if (n == 8)
        return (int64_t)((uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 |
                         (uint64_t)at[2] << 40 | (uint64_t)at[3] << 32 |
                         (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 |
                         (uint64_t)at[6] << 8 | (uint64_t)at[7]);
    for (int i = 0; i < n; i++)
        bits = bits << 8 | at[i];
    return (int64_t)bits;
}

#endif
