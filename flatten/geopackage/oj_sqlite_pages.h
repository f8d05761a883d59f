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
 *  finished. The bytes are not trusted: OJ_ERR_IO, malformed, for whatever
 *  SQLite refuses when it reads such pages, and also for what only its
 *  integrity check finds but a lookup by number would answer differently:
 *  numbers of rows that do not ascend or lie outside of the keys above them,
 *  cells outside of the cell area, chains of overflow pages that are too long.
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

struct oj_sqlite_pages
{
    sqlite3_file *file;
    pthread_mutex_t mutex; /**< of file */
    int64_t n_pages;       /**< of the file, by its header */
    int page_bytes, usable_bytes;

    uint32_t *number;  /**< [n_numbers] of all leaves, n_done of which were
                            read; owned */
    int64_t *greatest; /**< [n_numbers] number that a row of each may have, more
                            than in the leaf before; owned */
    int64_t n_numbers, n_done;
    uint8_t *leaf; /**< [n_leaves] pages that were read last; owned */
    int64_t n_leaves, cap_leaves;
};

/** A long record, put together. Zeroed memory is a valid empty one. */
struct oj_sqlite_record
{
    uint8_t *bytes; /**< owned */
    int64_t cap;
};

/** What OJ_ERR_IO of these functions means. */
#define OJ_SQLITE_MALFORMED                                                    \
    "its pages are malformed (PRAGMA integrity_check of SQLite lists where)"

static inline oj_status oj_sqlite_fail_malformed(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO, "%s", OJ_SQLITE_MALFORMED);
}

/** Prepares the table whose tree begins at page root, about n_bytes of which
 *  are read at once. OJ_ERR_UNSUPPORTED: the file's pages are no state of it (a
 *  log has some), or of a kind that is not known. OJ_ERR_IO: malformed. */
OJ_MUST_USE oj_status oj_sqlite_pages_open(sqlite3 *connection, int64_t root,
                                           int64_t n_bytes,
                                           struct oj_sqlite_pages *pages,
                                           struct oj_error *err);

/** Zeroed memory will do. */
void oj_sqlite_pages_close(struct oj_sqlite_pages *pages);

/** The next leaves, none at the end. OJ_ERR_IO: one of them is malformed.
 *  OJ_ERR_UNSUPPORTED: one cannot be read. */
OJ_MUST_USE oj_status oj_sqlite_pages_read(struct oj_sqlite_pages *pages,
                                           struct oj_error *err);

/** Puts a record of n bytes together that begins at *record, of which room
 *  bytes at most are there. OJ_ERR_IO: malformed. */
OJ_MUST_USE oj_status oj_sqlite_assemble(struct oj_sqlite_pages *pages,
                                         int64_t room, uint64_t n,
                                         struct oj_sqlite_record *to,
                                         const uint8_t **record,
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

/** The signed number of n <= 8 bytes of a record, behind which others may be
 *  read. */
static inline int64_t oj_sqlite_integer(const uint8_t *at, int n)
{
    uint64_t bits = (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 |
                    (uint64_t)at[2] << 40 | (uint64_t)at[3] << 32 |
                    (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 |
                    (uint64_t)at[6] << 8 | (uint64_t)at[7];
    return n == 0 ? 0 : (int64_t)bits >> (64 - 8 * n);
}

/** A leaf that was read. */
static inline const uint8_t *oj_sqlite_leaf(const struct oj_sqlite_pages *pages,
                                            int64_t leaf)
{
    return pages->leaf + leaf * pages->page_bytes;
}

/** The rows of a leaf, one at least, or the pages below another one. */
static inline int oj_sqlite_page_n_cells(const uint8_t *page)
{
    return page[3] << 8 | page[4];
}

/** Where the cells of a page begin that has some: none begins before. */
static inline int oj_sqlite_page_cell_area(const uint8_t *page)
{
    return page[5] << 8 | page[6];
}

/** Greatest number that a row of the leaf before this one may have. *has: there
 *  is such a leaf. */
static inline int64_t
oj_sqlite_greatest_before(const struct oj_sqlite_pages *pages, int64_t leaf,
                          int *has)
{
    int64_t i = pages->n_done - pages->n_leaves + leaf;
    *has = i > 0;
    return i > 0 ? pages->greatest[i - 1] : INT64_MIN;
}

/** Greatest number that a row of this leaf may have. */
static inline int64_t
oj_sqlite_greatest_of_leaf(const struct oj_sqlite_pages *pages, int64_t leaf)
{
    return pages->greatest[pages->n_done - pages->n_leaves + leaf];
}

/** Where the record of row i of a leaf begins, its bytes and the row's number;
 *  NULL: the row is malformed. SQLite writes no size in more than 5 bytes, and
 *  reads the ninth of one differently. */
static inline const uint8_t *
oj_sqlite_leaf_row(const struct oj_sqlite_pages *pages, const uint8_t *leaf,
                   int i, uint64_t *n, int64_t *number)
{
    const uint8_t *end = leaf + pages->usable_bytes, *at;
    int start = leaf[8 + 2 * i] << 8 | leaf[9 + 2 * i], n_head;
    uint64_t bits = 0;
    if (start < oj_sqlite_page_cell_area(leaf) || start >= pages->usable_bytes)
        return NULL;
    at = leaf + start;
    n_head = oj_sqlite_varint(at, end, n);
    if (n_head > 5)
        return NULL;
    at += n_head;
    n_head = n_head > 0 ? oj_sqlite_varint(at, end, &bits) : 0;
    *number = (int64_t)bits;
    return n_head > 0 ? at + n_head : NULL;
}

/** The n bytes of a record that begins at at, most often there. Any thread.
 *  OJ_ERR_IO: malformed. */
OJ_MUST_USE static inline oj_status
oj_sqlite_record(struct oj_sqlite_pages *pages, const uint8_t *leaf,
                 const uint8_t *at, uint64_t n,
                 struct oj_sqlite_record *long_one, const uint8_t **record,
                 struct oj_error *err)
{
    int64_t room = leaf + pages->usable_bytes - at;
    *record = at;
    return n <= (uint64_t)room && n <= (uint64_t)pages->usable_bytes - 35
               ? OJ_OK
               : oj_sqlite_assemble(pages, room, n, long_one, record, err);
}

#endif
