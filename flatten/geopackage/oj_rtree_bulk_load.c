#include "oj_rtree_bulk_load.h"

#include "../arrays/oj_hilbert.h"
#include "../base/oj_alloc.h"
#include "oj_gdal_sqlite.h"

#include <math.h>
#include <string.h>

enum
{
    HEAD_BYTES = 4,
    CELL_BYTES = 24,
    LOOK_EACH = 1 << 16 /* rows between two checks of the cancel flag */
};

/* Packing takes a fifteenth of the time of an insert per row, but has to pack
 * the old rows, too. So new rows are inserted one by one if the index already
 * has more than MANY_TIMES as many rows. */
#define MANY_TIMES 16

/* Row numbers are stored in the lower 32 bits of the sort key. */
#define MOST_ROWS 4294967295LL

/* ---- rows ---------------------------------------------------------------- */

/* Returns the value rounded down exactly as SQLite rounds the minima of boxes,
 * so that a query finds a row whether it was packed or inserted. */
static float round_down_as_sqlite(double value)
{
    float single = (float)value;
    if ((double)single > value)
        single = (float)(value * (value < 0 ? 1.0 + 1.0 / 8388608.0
                                            : 1.0 - 1.0 / 8388608.0));
    return single;
}

oj_status oj_rtree_add_row(struct oj_rtree *tree, int64_t id,
                           const double box[4], struct oj_error *err)
{
    struct oj_rtree_entry *entry;
    OJ_ROOM(tree->entry, tree->n, tree->n + 1, tree->cap, err);
    entry = &tree->entry[tree->n++];
    entry->id = id;
    entry->box[0] = round_down_as_sqlite(box[0]);
    entry->box[1] = round_down_as_sqlite(box[2]);
    entry->box[2] = -round_down_as_sqlite(-box[1]);
    entry->box[3] = -round_down_as_sqlite(-box[3]);
    return OJ_OK;
}

void oj_rtree_free(struct oj_rtree *tree)
{
    oj_free(tree->entry);
    memset(tree, 0, sizeof *tree);
}

/* State of packing an index level by level, starting with the rows. */
struct packing
{
    const struct oj_rtree *tree;
    /* [0]: Hilbert code and, in the lower half, row number, sorted; [1]:
     * scratch */
    uint64_t *order[2];
    struct oj_rtree_entry *cell; /* cells of the current level's nodes; owned */
    int capacity;                /* maximum cells per node */
    uint8_t *node;               /* [node_bytes] scratch; owned */
    int node_bytes;
    sqlite3_stmt *put_node, *put_parent;
    const int *cancel;
};

/* ---- order --------------------------------------------------------------- */

static void extend_box(float *box, const float *by)
{
    for (int i = 0; i < 2; i++)
    {
        box[i] = by[i] < box[i] ? by[i] : box[i];
        box[2 + i] = by[2 + i] > box[2 + i] ? by[2 + i] : box[2 + i];
    }
}

static void set_empty_box(float *box)
{
    box[0] = box[1] = INFINITY;
    box[2] = box[3] = -INFINITY;
}

static void sort_rows_by_hilbert(struct packing *p)
{
    float all[4];
    double extent[4], box[4];
    set_empty_box(all);
    for (int64_t i = 0; i < p->tree->n; i++)
        extend_box(all, p->tree->entry[i].box);
    for (int k = 0; k < 4; k++)
        extent[k] = (double)all[k];
    for (int64_t i = 0; i < p->tree->n; i++)
    {
        for (int k = 0; k < 4; k++)
            box[k] = (double)p->tree->entry[i].box[k];
        p->order[0][i] =
            (uint64_t)oj_hilbert_code(box, extent) << 32 | (uint64_t)i;
    }
    oj_hilbert_sort(p->order, p->tree->n);
}

/* ---- nodes --------------------------------------------------------------- */

static void put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static void write_cell(uint8_t *at, const struct oj_rtree_entry *cell)
{
    put_u32(at, (uint32_t)((uint64_t)cell->id >> 32));
    put_u32(at + 4, (uint32_t)cell->id);
    for (int i = 0; i < 4; i++)
    {
        uint32_t bits;
        memcpy(&bits, &cell->box[i / 2 + i % 2 * 2], 4);
        put_u32(at + 8 + 4 * i, bits);
    }
}

static int64_t nodes_needed_for_cells(const struct packing *p, int64_t n_cells)
{
    return (n_cells + p->capacity - 1) / p->capacity;
}

/* Writes node i of a level that has n_nodes nodes, numbered from `first` on; a
 * single node is the root, number 1. The node gets the cells [i * capacity,
 * end). Also records its parent, and stores its own cell for the level above.
 */
static oj_status write_node(const struct packing *p, int level, int64_t i,
                            int64_t n_nodes, int64_t first, int64_t end,
                            struct oj_error *err)
{
    struct oj_rtree_entry own = {.id = n_nodes > 1 ? first + i : 1};
    int64_t begin = i * p->capacity;
    set_empty_box(own.box);
    memset(p->node, 0, (size_t)p->node_bytes);
    put_u32(p->node, (uint32_t)(end - begin) |
                         (n_nodes > 1 ? 0 : (uint32_t)level << 16));
    for (int64_t k = begin; k < end; k++)
    {
        const struct oj_rtree_entry *cell =
            level > 0 ? &p->cell[k]
                      : &p->tree->entry[p->order[0][k] & UINT32_MAX];
        write_cell(p->node + HEAD_BYTES + (k - begin) * CELL_BYTES, cell);
        extend_box(own.box, cell->box);
    }
    /* overwrites p->cell[i], which has been read: the cells still to be read
     * have larger indices */
    p->cell[i] = own;
    sqlite3_bind_int64(p->put_node, 1, own.id);
    sqlite3_bind_blob(p->put_node, 2, p->node, p->node_bytes, SQLITE_STATIC);
    OJ_TRY(oj_sqlite_step(p->put_node, err));
    if (n_nodes == 1)
        return OJ_OK;
    sqlite3_bind_int64(p->put_parent, 1, own.id);
    sqlite3_bind_int64(p->put_parent, 2,
                       nodes_needed_for_cells(p, n_nodes) > 1
                           ? first + n_nodes + i / p->capacity
                           : 1);
    return oj_sqlite_step(p->put_parent, err);
}

static oj_status write_nodes(const struct packing *p, struct oj_error *err)
{
    int64_t n_cells = p->tree->n, n_nodes = 0, first = 2;
    for (int level = 0; n_nodes != 1; level++)
    {
        n_nodes = nodes_needed_for_cells(p, n_cells);
        for (int64_t i = 0; i < n_nodes; i++)
        {
            int64_t end = (i + 1) * p->capacity;
            if (i % 1024 == 0)
                OJ_TRY(oj_check_cancel(p->cancel, err));
            OJ_TRY(write_node(p, level, i, n_nodes, first,
                              end < n_cells ? end : n_cells, err));
        }
        first += n_nodes;
        n_cells = n_nodes;
    }
    return OJ_OK;
}

/* ---- rows as a virtual table --------------------------------------------- */

/* Feeds the rows of the tree to SQLite. They usually ascend by id, so that
 * tables grow at their ends. */
struct row_source
{
    const struct oj_rtree *tree;
    const uint64_t *node; /* [tree->n] number of the leaf node that holds each
                             row; may be NULL */
    const int *cancel;
    int64_t at; /* index of the current row */
};

static oj_status advance_to_next_row(void *user, int *there,
                                     struct oj_error *err)
{
    struct row_source *all = user;
    if (++all->at % LOOK_EACH == 0)
        OJ_TRY(oj_check_cancel(all->cancel, err));
    *there = all->at < all->tree->n;
    return OJ_OK;
}

static void return_row_column(void *user, int column, sqlite3_context *to)
{
    const struct row_source *all = user;
    const struct oj_rtree_entry *entry = &all->tree->entry[all->at];
    if (column < 4)
        sqlite3_result_double(to, (double)entry->box[column]);
    else
        sqlite3_result_int64(to, column == 4 ? entry->id
                                             : (int64_t)all->node[all->at]);
}

/* Runs an INSERT that selects from the virtual table of rows. */
static oj_status insert_rows(struct row_source *all, sqlite3 *connection,
                             const char *format, const char *name,
                             struct oj_error *err)
{
    static const char table[] = "ogrjoin_index_rows";
    struct oj_sqlite_rows rows = {.columns =
                                      "min_x, min_y, max_x, max_y, id, node",
                                  .next = advance_to_next_row,
                                  .column = return_row_column,
                                  .user = all};
    oj_status status;
    all->at = -1;
    OJ_TRY(oj_sqlite_rows_register(connection, table, &rows, err));
    status = oj_sqlite_run(connection, err, format, name, table);
    if (rows.status != OJ_OK)
        status = oj_fail(err, rows.status, "%s", rows.error.message);
    oj_sqlite_rows_unregister(connection, table);
    return status;
}

static oj_status write_rowid_table(const struct packing *p, sqlite3 *connection,
                                   const char *name, struct oj_error *err)
{
    struct row_source all = {p->tree, p->order[1], p->cancel, 0};
    int64_t first = nodes_needed_for_cells(p, p->tree->n) > 1 ? 2 : 1;
    for (int64_t k = 0; k < p->tree->n; k++)
        p->order[1][p->order[0][k] & UINT32_MAX] =
            (uint64_t)(first + k / p->capacity);
    return insert_rows(&all, connection,
                       "INSERT INTO \"%w_rowid\" SELECT id, node FROM %s", name,
                       err);
}

/* ---- the index ----------------------------------------------------------- */

/* Reads from the root how many cells a node has room for; SQLite derives it
 * from the page size. */
static oj_status read_cells_per_node(struct packing *p, sqlite3 *connection,
                                     const char *name, struct oj_error *err)
{
    double n = 0;
    OJ_TRY(oj_sqlite_read_numbers(
        connection, 1, &n, err,
        "SELECT length(data) FROM \"%w_node\" WHERE nodeno = 1", name));
    p->node_bytes = (int)n;
    p->capacity = (p->node_bytes - HEAD_BYTES) / CELL_BYTES;
    if (p->capacity < 2)
        return oj_fail(err, OJ_ERR_IO,
                       "the spatial index %s is broken: it has no root; drop "
                       "it and create it again",
                       name);
    return OJ_OK;
}

static oj_status pack_rtree(struct packing *p, sqlite3 *connection,
                            const char *name, struct oj_error *err)
{
    OJ_TRY(read_cells_per_node(p, connection, name, err));
    OJ_TRY(oj_sqlite_prepare(
        connection, &p->put_node, err,
        "INSERT OR REPLACE INTO \"%w_node\" VALUES (?1, ?2)", name));
    OJ_TRY(oj_sqlite_prepare(connection, &p->put_parent, err,
                             "INSERT INTO \"%w_parent\" VALUES (?1, ?2)",
                             name));
    OJ_NEW(p->order[0], p->tree->n, err);
    OJ_NEW(p->order[1], p->tree->n, err);
    OJ_NEW(p->cell, nodes_needed_for_cells(p, p->tree->n), err);
    OJ_NEW(p->node, p->node_bytes, err);
    sort_rows_by_hilbert(p);
    OJ_TRY(write_nodes(p, err));
    return write_rowid_table(p, connection, name, err);
}

/* Adds the rows of the existing index to the tree and deletes all nodes but the
 * root. */
static oj_status move_index_rows_to_tree(struct oj_rtree *tree,
                                         sqlite3 *connection, const char *name,
                                         struct oj_error *err)
{
    sqlite3_stmt *rows = NULL;
    oj_status status;
    int code = SQLITE_ROW;
    OJ_TRY(oj_sqlite_prepare(connection, &rows, err,
                             "SELECT * FROM \"%w\" ORDER BY 1", name));
    for (status = OJ_OK;
         status == OJ_OK && (code = sqlite3_step(rows)) == SQLITE_ROW;)
    {
        double box[4];
        for (int i = 0; i < 4; i++)
            box[i] = sqlite3_column_double(rows, 1 + i);
        status =
            oj_rtree_add_row(tree, sqlite3_column_int64(rows, 0), box, err);
    }
    sqlite3_finalize(rows);
    OJ_TRY(status);
    if (code != SQLITE_DONE)
        return oj_sqlite_fail_statement(connection, err);
    OJ_TRY(oj_sqlite_run(connection, err, "DELETE FROM \"%w_parent\"", name));
    OJ_TRY(oj_sqlite_run(connection, err, "DELETE FROM \"%w_rowid\"", name));
    return oj_sqlite_run(connection, err,
                         "DELETE FROM \"%w_node\" WHERE nodeno > 1", name);
}

oj_status oj_rtree_write(struct oj_rtree *tree, sqlite3 *connection,
                         const char *name, const int *cancel,
                         struct oj_error *err)
{
    struct packing p = {.tree = tree, .cancel = cancel};
    struct row_source all = {.tree = tree, .cancel = cancel};
    double n_there = 0;
    oj_status status = OJ_OK;
    OJ_TRY(oj_sqlite_read_numbers(connection, 1, &n_there, err,
                                  "SELECT count(*) FROM \"%w_rowid\"", name));
    if (n_there > MANY_TIMES * (double)tree->n)
        return insert_rows(&all, connection,
                           "INSERT INTO \"%w\" SELECT id, min_x, max_x, min_y, "
                           "max_y FROM %s",
                           name, err);
    if (n_there > 0)
        OJ_TRY(move_index_rows_to_tree(tree, connection, name, err));
    if (tree->n > MOST_ROWS)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a spatial index cannot hold more than %lld rows; write "
                       "with -lco SPATIAL_INDEX=NO",
                       MOST_ROWS);
    if (tree->n > 0)
        status = pack_rtree(&p, connection, name, err);
    sqlite3_finalize(p.put_node);
    sqlite3_finalize(p.put_parent);
    oj_free(p.order[0]);
    oj_free(p.order[1]);
    oj_free(p.cell);
    oj_free(p.node);
    if (status == OJ_OK)
        oj_rtree_free(tree);
    return status;
}
