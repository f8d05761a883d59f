#include "oj_sqlite_pages.h"

#include "../arrays/oj_chunk.h"
#include "../base/oj_alloc.h"

#include <string.h>

enum
{
    HEADER_BYTES = 100, /* header of the file */
    /* header of a leaf page; the cell pointer array follows it */
    LEAF_HEAD = 8,
    INTERIOR_HEAD = 12, /* header of an interior page */
    IS_INTERIOR = 5,    /* page types of a table: interior page, leaf page */
    IS_LEAF = 13,
    LEAST_CELL = 6,  /* minimum bytes of a cell with its pointer */
    MOST_LEVELS = 20 /* maximum depth of a tree */
};

/* Offset of SQLite's lock byte. The page that contains it stores no data. */
#define LOCK_BYTE INT64_C(0x40000000)

static int be16(const uint8_t *at)
{
    return at[0] << 8 | at[1];
}

static uint32_t be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
           (uint32_t)at[2] << 8 | at[3];
}

/* ---- pages --------------------------------------------------------------- */

/* Reads a page. Page 1 is refused, because it holds the schema and cannot
 * belong to the table. */
static oj_status read_page(struct oj_sqlite_pages *pages, int64_t number,
                           uint8_t *to, struct oj_error *err)
{
    int64_t size = pages->page_bytes;
    int code;
    if (number < 2 || number > pages->n_pages || number == LOCK_BYTE / size + 1)
        return oj_sqlite_fail_malformed(err);
    pthread_mutex_lock(&pages->mutex);
    code = pages->file->pMethods->xRead(pages->file, to, (int)size,
                                        (number - 1) * size);
    pthread_mutex_unlock(&pages->mutex);
    return code == SQLITE_OK ? OJ_OK : oj_lane_leave_to_gdal(err);
}

/* Returns 1 if the write-ahead log is empty. What is added to it later does not
 * belong to the state that we read. */
static int has_empty_wal(sqlite3 *connection)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 n = 1;
    return sqlite3_file_control(connection, "main",
                                SQLITE_FCNTL_JOURNAL_POINTER,
                                &log) == SQLITE_OK &&
           log->pMethods != NULL &&
           log->pMethods->xFileSize(log, &n) == SQLITE_OK && n == 0;
}

/* Returns the number of pages of the file. The count in the header is valid
 * only if the file was last written by a version of SQLite that maintains it;
 * then two counters in the header are equal. Otherwise the size of the file
 * decides. */
static int64_t count_pages(const uint8_t *header, int64_t n_bytes,
                           int64_t page_bytes)
{
    int64_t n = be32(header + 28);
    return n > 0 && n <= n_bytes / page_bytes &&
                   memcmp(header + 24, header + 92, 4) == 0
               ? n
               : n_bytes / page_bytes;
}

/* Reads the file header (section 1.3 of the format). Returns 0 if the file is
 * not supported. */
static int read_file_header(struct oj_sqlite_pages *pages, sqlite3 *connection)
{
    uint8_t header[HEADER_BYTES];
    sqlite3_int64 n = 0;
    if (pages->file->pMethods == NULL ||
        pages->file->pMethods->xFileSize(pages->file, &n) != SQLITE_OK ||
        pages->file->pMethods->xRead(pages->file, header, HEADER_BYTES, 0) !=
            SQLITE_OK ||
        memcmp(header, "SQLite format 3", 16) != 0 || be32(header + 56) != 1)
        return 0; /* the encoding is not UTF-8 */
    pages->page_bytes = be16(header + 16) == 1 ? 65536 : be16(header + 16);
    if (pages->page_bytes < 512)
        return 0;
    pages->usable_bytes = pages->page_bytes - header[20];
    pages->n_pages = count_pages(header, n, pages->page_bytes);
    return pages->usable_bytes >= 480 &&
           (header[19] == 1 || (header[19] == 2 && has_empty_wal(connection)));
}

/* ---- tree ---------------------------------------------------------------- */

/* The pages of one level of a B-tree, from left to right. */
struct tree_level
{
    uint32_t *number;
    int64_t *greatest; /* upper bound of the row numbers in or below each
                          page */
    int64_t n, cap_number, cap_greatest;
};

static void free_tree_level(struct tree_level *level)
{
    oj_free(level->number);
    oj_free(level->greatest);
}

/* Adds a page. The upper bounds of row numbers must ascend along a level; so no
 * page can occur twice. */
static oj_status add_page_to_level(struct tree_level *level, uint32_t number,
                                   int64_t greatest, struct oj_error *err)
{
    if (level->n > 0 && greatest <= level->greatest[level->n - 1])
        return oj_sqlite_fail_malformed(err);
    OJ_ROOM(level->number, level->n, level->n + 1, level->cap_number, err);
    OJ_ROOM(level->greatest, level->n, level->n + 1, level->cap_greatest, err);
    level->number[level->n] = number;
    level->greatest[level->n++] = greatest;
    return OJ_OK;
}

/* Returns 1 for a page of this type with at least one cell and consistent
 * limits. n_head: bytes of its header. */
static int is_page_sound(const struct oj_sqlite_pages *pages,
                         const uint8_t *page, int type, int n_head)
{
    int n = oj_sqlite_page_n_cells(page), area = oj_sqlite_page_cell_area(page);
    return page[0] == type && n > 0 &&
           n <= (pages->page_bytes - LEAF_HEAD) / LEAST_CELL &&
           n_head + 2 * n <= area && area < pages->usable_bytes;
}

/* Adds the children of an interior page; `greatest` is the upper bound of its
 * row numbers, and so of its last child's. */
static oj_status list_child_pages(const struct oj_sqlite_pages *pages,
                                  const uint8_t *page, int64_t greatest,
                                  struct tree_level *to, struct oj_error *err)
{
    const uint8_t *end = page + pages->usable_bytes;
    int n_cells = oj_sqlite_page_n_cells(page);
    if (!is_page_sound(pages, page, IS_INTERIOR, INTERIOR_HEAD) ||
        to->n > pages->n_pages)
        return oj_sqlite_fail_malformed(err);
    for (int i = 0; i < n_cells; i++)
    {
        int at = be16(page + INTERIOR_HEAD + 2 * i);
        uint64_t key;
        if (at < oj_sqlite_page_cell_area(page) ||
            at > pages->usable_bytes - 4 ||
            oj_sqlite_varint(page + at + 4, end, &key) == 0 ||
            (int64_t)key >= greatest)
            return oj_sqlite_fail_malformed(err);
        OJ_TRY(add_page_to_level(to, be32(page + at), (int64_t)key, err));
    }
    return add_page_to_level(to, be32(page + 8), greatest, err);
}

/* Descends level by level from the root, number[0], to the leaves, which must
 * all have equal depth. */
static oj_status list_leaves(struct oj_sqlite_pages *pages,
                             struct oj_error *err)
{
    for (int depth = 0; depth < MOST_LEVELS; depth++)
    {
        struct tree_level below = {0};
        oj_status status = read_page(pages, pages->number[0], pages->leaf, err);
        if (status != OJ_OK || pages->leaf[0] == IS_LEAF)
            return status;
        for (int64_t i = 0; status == OJ_OK && i < pages->n_numbers; i++)
        {
            status = read_page(pages, pages->number[i], pages->leaf, err);
            if (status == OJ_OK)
                status = list_child_pages(pages, pages->leaf,
                                          pages->greatest[i], &below, err);
        }
        if (status != OJ_OK)
        {
            free_tree_level(&below);
            return status;
        }
        oj_free(pages->number);
        oj_free(pages->greatest);
        pages->number = below.number;
        pages->greatest = below.greatest;
        pages->n_numbers = below.n;
    }
    return oj_sqlite_fail_malformed(err);
}

oj_status oj_sqlite_pages_open(sqlite3 *connection, int64_t root,
                               int64_t n_bytes, struct oj_sqlite_pages *pages,
                               struct oj_error *err)
{
    memset(pages, 0, sizeof *pages);
    pthread_mutex_init(&pages->mutex, NULL);
    if (sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER,
                             &pages->file) != SQLITE_OK ||
        pages->file == NULL || !read_file_header(pages, connection))
        return oj_lane_leave_to_gdal(err);
    pages->cap_leaves = n_bytes / pages->page_bytes + 1;
    OJ_NEW(pages->leaf, pages->cap_leaves * pages->page_bytes + 8,
           err); /* room for the bytes that are read behind the last leaf */
    OJ_NEW(pages->number, 1, err);
    OJ_NEW(pages->greatest, 1, err);
    pages->number[0] = (uint32_t)root;
    pages->greatest[0] = INT64_MAX;
    pages->n_numbers = 1;
    return list_leaves(pages, err);
}

void oj_sqlite_pages_close(struct oj_sqlite_pages *pages)
{
    oj_free(pages->leaf);
    oj_free(pages->number);
    oj_free(pages->greatest);
    pthread_mutex_destroy(&pages->mutex);
}

/* ---- leaves -------------------------------------------------------------- */

/* Reads the next leaves. Only the single leaf of an empty table may be empty.
 */
oj_status oj_sqlite_pages_read(struct oj_sqlite_pages *pages,
                               struct oj_error *err)
{
    const uint32_t *number = pages->number + pages->n_done;
    int64_t n = pages->n_numbers - pages->n_done;
    if (n > pages->cap_leaves)
        n = pages->cap_leaves;
    pages->n_leaves = 0;
    for (int64_t i = 0; i < n; i++)
        OJ_TRY(read_page(pages, number[i], pages->leaf + i * pages->page_bytes,
                         err));
    pages->n_done += n;
    if (pages->n_numbers == 1 && n == 1 && pages->leaf[0] == IS_LEAF &&
        oj_sqlite_page_n_cells(pages->leaf) == 0)
        return OJ_OK;
    for (int64_t i = 0; i < n; i++)
        if (!is_page_sound(pages, oj_sqlite_leaf(pages, i), IS_LEAF, LEAF_HEAD))
            return oj_sqlite_fail_malformed(err);
    pages->n_leaves = n;
    return OJ_OK;
}

/* ---- rows ---------------------------------------------------------------- */

/* Copies a record from its leaf and its chain of overflow pages into one piece
 * (section 1.6 of the format). Each overflow page is read 4 bytes before the
 * place of its content, so that its 4-byte header overwrites the last 4 bytes
 * of the content before; these are then restored. */
oj_status oj_sqlite_copy_overflow(struct oj_sqlite_pages *pages, int64_t room,
                                  uint64_t size, struct oj_sqlite_record *to,
                                  const uint8_t **record, struct oj_error *err)
{
    int64_t more = pages->usable_bytes - 4, n = (int64_t)size, done;
    int64_t least = (pages->usable_bytes - 12) * 32 / 255 - 23;
    uint32_t next;
    if (size > INT32_MAX || n > pages->n_pages * pages->page_bytes)
        return oj_sqlite_fail_malformed(err);
    done = least + (n - least) % more;
    if (done > pages->usable_bytes - 35)
        done = least;
    if (n <= pages->usable_bytes - 35 || done + 4 > room)
        return oj_sqlite_fail_malformed(err);
    OJ_TRY(
        oj_reserve(&to->bytes, 0, n + pages->page_bytes + 4, &to->cap, 1, err));
    memcpy(to->bytes, *record, (size_t)done);
    next = be32(*record + done);
    for (; done < n; done += more)
    {
        uint8_t kept[4], *page = to->bytes + done - 4;
        memcpy(kept, page, 4);
        OJ_TRY(read_page(pages, next, page, err));
        next = be32(page);
        memcpy(page, kept, 4);
    }
    if (next != 0) /* the chain of overflow pages is longer than the record, or
                      has a loop */
        return oj_sqlite_fail_malformed(err);
    *record = to->bytes;
    return OJ_OK;
}
