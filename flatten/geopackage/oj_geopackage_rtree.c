#include "oj_geopackage_rtree.h"

#include "../arrays/oj_hilbert.h"
#include "../base/oj_array.h"
#include "oj_sqlite.h"

#include <math.h>
#include <string.h>

enum
{
    HEAD_BYTES = 4,
    CELL_BYTES = 24,
    MOST_LEVELS = 40, /* as many as SQLite follows */
    LOOK_EACH = 1 << 16
};

/* More rows would need wider numbers in their order. */
#define MOST_ROWS 4294967295LL

/* ---- rows ---------------------------------------------------------------- */

/* Rounded away from the middle, as SQLite does it: an index is told the same
 * whichever way a row came into it. */
static float round_down(double value)
{
    float single = (float)value;
    if ((double)single > value)
        single = (float)(value * (value < 0 ? 1.0 + 1.0 / 8388608.0
                                            : 1.0 - 1.0 / 8388608.0));
    return single;
}

static float round_up(double value)
{
    float single = (float)value;
    if ((double)single < value)
        single = (float)(value * (value < 0 ? 1.0 - 1.0 / 8388608.0
                                            : 1.0 + 1.0 / 8388608.0));
    return single;
}

oj_status oj_rtree_add(struct oj_rtree *tree, int64_t id, const double box[4],
                       struct oj_error *err)
{
    struct oj_rtree_entry *entry;
    OJ_ROOM(tree->entry, tree->n, tree->n + 1, tree->cap, err);
    entry = &tree->entry[tree->n++];
    entry->id = id;
    entry->box[0] = round_down(box[0]);
    entry->box[1] = round_up(box[1]);
    entry->box[2] = round_down(box[2]);
    entry->box[3] = round_up(box[3]);
    return OJ_OK;
}

void oj_rtree_free(struct oj_rtree *tree)
{
    const struct oj_rtree empty = {0};
    oj_free(tree->entry);
    *tree = empty;
}

/* ---- order --------------------------------------------------------------- */

static void grow_box(float *box, const float *by)
{
    for (int i = 0; i < 4; i += 2)
    {
        box[i] = by[i] < box[i] ? by[i] : box[i];
        box[i + 1] = by[i + 1] > box[i + 1] ? by[i + 1] : box[i + 1];
    }
}

static void set_empty_box(float *box)
{
    box[0] = box[2] = INFINITY;
    box[1] = box[3] = -INFINITY;
}

/* Rows by their places on the curve: the row is the lower half. */
static oj_status sort_rows_by_hilbert(const struct oj_rtree *tree,
                                      uint64_t **out, struct oj_error *err)
{
    float all[4];
    double extent[4];
    uint64_t *order[2];
    set_empty_box(all);
    for (int64_t i = 0; i < tree->n; i++)
        grow_box(all, tree->entry[i].box);
    for (int i = 0; i < 4; i++)
        extent[i] = (double)all[i / 2 + i % 2 * 2]; /* x y x y */
    order[0] = oj_malloc(tree->n, sizeof *order[0]);
    order[1] = oj_malloc(tree->n, sizeof *order[1]);
    if (order[0] == NULL || order[1] == NULL)
    {
        oj_free(order[0]);
        oj_free(order[1]);
        return oj_fail_nomem(err, 2 * tree->n, sizeof *order[0]);
    }
    for (int64_t i = 0; i < tree->n; i++)
    {
        const float *b = tree->entry[i].box;
        const double box[4] = {(double)b[0], (double)b[2], (double)b[1],
                               (double)b[3]};
        order[0][i] =
            (uint64_t)oj_hilbert_code(box, extent) << 32 | (uint64_t)i;
    }
    oj_hilbert_sort(order, tree->n);
    oj_free(order[1]);
    *out = order[0];
    return OJ_OK;
}

/* ---- nodes --------------------------------------------------------------- */

/* An index on its way into its tables. Level 0 is that of the rows; the nodes
 * of a level have consecutive numbers, the root has 1. */
struct packing
{
    const struct oj_rtree *tree;
    uint64_t *order; /* [n rows] owned */
    int n_levels;    /* of nodes, the last has the root alone */
    int64_t n_nodes[MOST_LEVELS], first[MOST_LEVELS];
    float (*box)[4]; /* [all nodes] owned: node i is at i - 1 */
    int64_t n_all;
    int capacity;  /* cells of a node */
    uint8_t *node; /* [node_bytes] owned */
    int node_bytes;
    sqlite3_stmt *put_node, *put_parent;
    const int *cancel;
};

static void put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static void put_cell(uint8_t *at, int64_t id, const float *box)
{
    put_u32(at, (uint32_t)((uint64_t)id >> 32));
    put_u32(at + 4, (uint32_t)id);
    for (int i = 0; i < 4; i++)
    {
        uint32_t bits;
        memcpy(&bits, &box[i], 4);
        put_u32(at + 8 + 4 * i, bits);
    }
}

static oj_status plan_levels(struct packing *p, struct oj_error *err)
{
    int64_t n = p->tree->n;
    int top;
    do
    {
        n = (n + p->capacity - 1) / p->capacity;
        p->n_nodes[p->n_levels++] = n;
        p->n_all += n;
    } while (n > 1);
    top = p->n_levels - 1;
    p->first[top] = 1;
    for (int level = top; level > 0; level--)
        p->first[level - 1] = p->first[level] + p->n_nodes[level];
    p->box = oj_malloc(p->n_all, sizeof *p->box);
    p->node = oj_malloc(p->node_bytes, 1);
    return p->box != NULL && p->node != NULL
               ? OJ_OK
               : oj_fail_nomem(err, p->n_all, sizeof *p->box);
}

/* The cell k of a level is in its node k / capacity. */
static int64_t count_level_cells(const struct packing *p, int level)
{
    return level == 0 ? p->tree->n : p->n_nodes[level - 1];
}

static const float *level_cell_box(const struct packing *p, int level,
                                   int64_t k, int64_t *id)
{
    const struct oj_rtree_entry *row;
    if (level > 0)
    {
        *id = p->first[level - 1] + k;
        return p->box[*id - 1];
    }
    row = &p->tree->entry[p->order[k] & UINT32_MAX];
    *id = row->id;
    return row->box;
}

static void find_boxes(struct packing *p)
{
    for (int level = 0; level < p->n_levels; level++)
    {
        for (int64_t k = 0; k < count_level_cells(p, level); k++)
        {
            int64_t id, node = p->first[level] + k / p->capacity;
            if (k % p->capacity == 0)
                set_empty_box(p->box[node - 1]);
            grow_box(p->box[node - 1], level_cell_box(p, level, k, &id));
        }
    }
}

/* Node i of a level: itself, and whose it is. */
static oj_status write_node(const struct packing *p, int level, int64_t i,
                            struct oj_error *err)
{
    int64_t begin = i * p->capacity, end = begin + p->capacity;
    int64_t number = p->first[level] + i;
    int is_root = level == p->n_levels - 1;
    if (end > count_level_cells(p, level))
        end = count_level_cells(p, level);
    memset(p->node, 0, (size_t)p->node_bytes);
    put_u32(p->node,
            (uint32_t)(end - begin) | (is_root ? (uint32_t)level << 16 : 0));
    for (int64_t k = begin; k < end; k++)
    {
        int64_t id;
        const float *box = level_cell_box(p, level, k, &id);
        put_cell(p->node + HEAD_BYTES + (k - begin) * CELL_BYTES, id, box);
    }
    sqlite3_bind_int64(p->put_node, 1, number);
    sqlite3_bind_blob(p->put_node, 2, p->node, p->node_bytes, SQLITE_STATIC);
    OJ_TRY(oj_sqlite_step(p->put_node, err));
    if (is_root)
        return OJ_OK;
    sqlite3_bind_int64(p->put_parent, 1, number);
    sqlite3_bind_int64(p->put_parent, 2, p->first[level + 1] + i / p->capacity);
    return oj_sqlite_step(p->put_parent, err);
}

static oj_status write_nodes(const struct packing *p, struct oj_error *err)
{
    for (int level = p->n_levels - 1; level >= 0; level--)
    {
        for (int64_t i = 0; i < p->n_nodes[level]; i++)
        {
            if (i % 1024 == 0)
                OJ_TRY(oj_check_cancel(p->cancel, err));
            OJ_TRY(write_node(p, level, i, err));
        }
    }
    return OJ_OK;
}

/* ---- where rows are ------------------------------------------------------ */

/* Rows on their way into the table of their nodes, most often upwards by id:
 * the table then grows at its end. */
struct places
{
    const struct packing *p;
    uint32_t *node; /* [n rows] */
    int64_t at;     /* the row at hand */
};

static oj_status next_row_place(void *user, int *there, struct oj_error *err)
{
    struct places *all = user;
    if (++all->at % LOOK_EACH == 0)
        OJ_TRY(oj_check_cancel(all->p->cancel, err));
    *there = all->at < all->p->tree->n;
    return OJ_OK;
}

static void result_row_place(void *user, int column, sqlite3_context *to)
{
    const struct places *all = user;
    sqlite3_result_int64(to, column == 0 ? all->p->tree->entry[all->at].id
                                         : (int64_t)all->node[all->at]);
}

static oj_status write_rowid_table(const struct packing *p, sqlite3 *connection,
                                   const char *name, struct oj_error *err)
{
    static const char table[] = "ogrjoin_row_places";
    struct places all = {.p = p, .at = -1};
    struct oj_sqlite_rows rows = {.n_columns = 2,
                                  .next = next_row_place,
                                  .column = result_row_place,
                                  .user = &all};
    oj_status status;
    OJ_NEW(all.node, p->tree->n, err);
    for (int64_t k = 0; k < p->tree->n; k++)
        all.node[p->order[k] & UINT32_MAX] =
            (uint32_t)(p->first[0] + k / p->capacity);
    status = oj_sqlite_rows_open(connection, table, &rows, err);
    if (status == OJ_OK)
    {
        status = oj_sqlite_run(connection, err,
                               "INSERT INTO \"%w_rowid\" SELECT c0, c1 FROM %s",
                               name, table);
        if (rows.status != OJ_OK)
            status = oj_fail(err, rows.status, "%s", rows.error.message);
        oj_sqlite_rows_close(connection, table);
    }
    oj_free(all.node);
    return status;
}

/* ---- the index ----------------------------------------------------------- */

/* Nodes are as long as SQLite made the first one: the page's size decides. */
static oj_status find_capacity(struct packing *p, sqlite3 *connection,
                               const char *name, struct oj_error *err)
{
    sqlite3_stmt *statement = NULL;
    OJ_TRY(oj_sqlite_prepare(
        connection, &statement, err,
        "SELECT length(data) FROM \"%w_node\" WHERE nodeno = 1", name));
    if (sqlite3_step(statement) == SQLITE_ROW)
        p->node_bytes = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    p->capacity = (p->node_bytes - HEAD_BYTES) / CELL_BYTES;
    if (p->capacity < 2)
        return oj_fail(err, OJ_ERR_IO, "the spatial index %s has no root",
                       name);
    return OJ_OK;
}

static oj_status pack_rtree(struct packing *p, sqlite3 *connection,
                            const char *name, struct oj_error *err)
{
    OJ_TRY(find_capacity(p, connection, name, err));
    OJ_TRY(oj_sqlite_prepare(
        connection, &p->put_node, err,
        "INSERT OR REPLACE INTO \"%w_node\" VALUES (?1, ?2)", name));
    OJ_TRY(oj_sqlite_prepare(connection, &p->put_parent, err,
                             "INSERT INTO \"%w_parent\" VALUES (?1, ?2)",
                             name));
    OJ_TRY(sort_rows_by_hilbert(p->tree, &p->order, err));
    OJ_TRY(plan_levels(p, err));
    find_boxes(p);
    OJ_TRY(write_nodes(p, err));
    return write_rowid_table(p, connection, name, err);
}

oj_status oj_rtree_write(struct oj_rtree *tree, sqlite3 *connection,
                         const char *name, const int *cancel,
                         struct oj_error *err)
{
    struct packing p = {.tree = tree, .cancel = cancel};
    oj_status status = OJ_OK;
    if (tree->n > MOST_ROWS)
        return oj_fail(err, OJ_ERR_LIMIT, "more than %lld rows have no index",
                       MOST_ROWS);
    if (tree->n > 0)
        status = pack_rtree(&p, connection, name, err);
    sqlite3_finalize(p.put_node);
    sqlite3_finalize(p.put_parent);
    oj_free(p.order);
    oj_free(p.box);
    oj_free(p.node);
    if (status == OJ_OK)
        oj_rtree_free(tree);
    return status;
}
