/** Reads the rows of SQLite tables directly from the pages of the file, without
 *  an SQL statement per row: in a fraction of the time of SQLite's virtual
 *  machine.
 *
 *    root      interior page: child pages, in the order of their rows
 *    ...       interior pages
 *    leaves    number of rows | offset of each | ... | row | row
 *    row       size | number | record; a long one continues in
 *    overflow  next page | more of the record
 *    record    size of the types | type of column 0, 1, ... | their values
 *
 *  The file is read through SQLite's own handle, while a statement of the
 *  connection is open at a row, so that no other connection changes the pages.
 *  The bytes are untrusted. The reader fails with OJ_ERR_IO ("malformed") for
 *  everything that SQLite refuses when it reads such pages. It also fails for
 *  errors that only SQLite's integrity check finds, but that would change the
 *  result of a lookup by number: row numbers that do not ascend or are outside
 *  of the keys above them, cells outside of the cell area, chains of overflow
 *  pages that are too long.
 *
 *  Source: "Database File Format" of SQLite. This saves time in sums of 10 M
 *  rows of a GeoPackage; BENCHMARKS.md has the times. */
#ifndef OJ_SQLITE_PAGES_H
#define OJ_SQLITE_PAGES_H

#include "../base/oj_status.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>

struct oj_sqlite_pages
{
    sqlite3_file *file;
    pthread_mutex_t mutex; /**< guards `file` */
    int64_t n_pages;       /**< number of pages of the file */
    int page_bytes, usable_bytes;

    /** [n_numbers] page numbers of all leaves, of which n_done have been read;
     *  owned */
    uint32_t *number;
    /** [n_numbers] upper bound of the row numbers of each leaf; its row numbers
     *  also exceed the bound of the previous leaf; owned */
    int64_t *greatest;
    int64_t n_numbers, n_done;
    uint8_t *leaf; /**< the n_leaves pages that were read last, page_bytes each;
                        8 more bytes may be read behind them; owned */
    int64_t n_leaves, cap_leaves;
};

/** Buffer for a record that spans several pages. Zeroed memory is a valid empty
 *  one. */
struct oj_sqlite_record
{
    uint8_t *bytes; /**< owned */
    int64_t cap;
};

/** Message of OJ_ERR_IO for malformed pages. */
#define OJ_SQLITE_MALFORMED                                                    \
    "its pages are malformed (PRAGMA integrity_check of SQLite lists where)"

static inline oj_status oj_sqlite_fail_malformed(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO, "%s", OJ_SQLITE_MALFORMED);
}

/** Prepares reading the table with this root page, about n_bytes at a time.
 *  Fails with OJ_ERR_UNSUPPORTED if the file does not show the current state
 *  (part of it is in a log), or is of an unknown kind; fails with OJ_ERR_IO if
 *  the file is malformed. */
OJ_MUST_USE oj_status oj_sqlite_pages_open(sqlite3 *connection, int64_t root,
                                           int64_t n_bytes,
                                           struct oj_sqlite_pages *pages,
                                           struct oj_error *err);

/** Frees the memory of pages; zeroed memory is accepted. */
void oj_sqlite_pages_close(struct oj_sqlite_pages *pages);

/** Reads the next leaves; pages->n_leaves is 0 at the end. Fails with
 *  OJ_ERR_IO if a leaf is malformed, and with OJ_ERR_UNSUPPORTED if a leaf
 *  cannot be read. */
OJ_MUST_USE oj_status oj_sqlite_pages_read(struct oj_sqlite_pages *pages,
                                           struct oj_error *err);

/** Copies a record of n bytes, which begins at *record and continues on
 *  overflow pages, into one piece. At most `room` bytes are in the leaf. Fails
 *  with OJ_ERR_IO if the overflow pages are malformed. */
OJ_MUST_USE oj_status oj_sqlite_copy_overflow(struct oj_sqlite_pages *pages,
                                              int64_t room, uint64_t n,
                                              struct oj_sqlite_record *to,
                                              const uint8_t **record,
                                              struct oj_error *err);

/** Sets *value to a varint of 1 to 9 bytes, which must end before `end`.
 *  Returns its number of bytes, or 0 if it is truncated. */
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

/** Returns a signed integer of n <= 8 bytes. 8 bytes must be readable. */
static inline int64_t oj_sqlite_integer(const uint8_t *at, int n)
{
    uint64_t bits = (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 |
                    (uint64_t)at[2] << 40 | (uint64_t)at[3] << 32 |
                    (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 |
                    (uint64_t)at[6] << 8 | (uint64_t)at[7];
    return n == 0 ? 0 : (int64_t)bits >> (64 - 8 * n);
}

/** Returns the address of one of the leaves in memory. */
static inline const uint8_t *oj_sqlite_leaf(const struct oj_sqlite_pages *pages,
                                            int64_t leaf)
{
    return pages->leaf + leaf * pages->page_bytes;
}

/** Returns the number of cells of a page: the rows of a leaf; one less than the
 *  children of an interior page. */
static inline int oj_sqlite_page_n_cells(const uint8_t *page)
{
    return page[3] << 8 | page[4];
}

/** Returns the offset at which the cells of a page begin. */
static inline int oj_sqlite_page_cell_area(const uint8_t *page)
{
    return page[5] << 8 | page[6];
}

/** Returns the upper bound of the row numbers of the leaf before this one. *has
 *  is 0 for the first leaf, which no leaf precedes. */
static inline int64_t
oj_sqlite_greatest_row_before_leaf(const struct oj_sqlite_pages *pages,
                                   int64_t leaf, int *has)
{
    int64_t i = pages->n_done - pages->n_leaves + leaf;
    *has = i > 0;
    return i > 0 ? pages->greatest[i - 1] : INT64_MIN;
}

/** Returns the upper bound of the row numbers of this leaf. */
static inline int64_t
oj_sqlite_greatest_row_of_leaf(const struct oj_sqlite_pages *pages,
                               int64_t leaf)
{
    return pages->greatest[pages->n_done - pages->n_leaves + leaf];
}

/** Returns the record of row i of a leaf, or NULL if it is malformed; sets *n
 *  to its size in bytes and *number to the row number. A size that is encoded
 *  in more than 5 bytes is refused, because SQLite never writes such a size. */
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

/** Sets *record to the record of n bytes that begins at `at`; copies it to
 *  long_one only if it continues on other pages. Any thread may call it. Fails
 *  with OJ_ERR_IO if the record is malformed. */
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
               : oj_sqlite_copy_overflow(pages, room, n, long_one, record, err);
}

#endif
