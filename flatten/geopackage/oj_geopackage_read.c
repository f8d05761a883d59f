#include "oj_geopackage_read.h"

#include "oj_sqlite.h"

#include "../base/oj_array.h"
#include "oj_geopackage_scan.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

/* One thread makes rows of a fifth of the points that the caller can take. */
#define MOST_WORKERS 8

/* Rows of a range, however many threads there are: less is more to hand over
 * than to read. */
#define LEAST_ROWS 32768

/* A connection of its own and the next chunk of its range. */
struct worker
{
    struct oj_geopackage_reader *reader;
    sqlite3 *db;
    struct oj_geopackage_scan *scan;
    pthread_t thread;
    int has_thread;

    /* Under the lock. */
    int64_t range; /* number of its range; -1: there are no more */
    int is_ready;  /* what follows is the caller's to take */
    struct oj_chunk *chunk;
    enum oj_geopackage_state state;
    struct oj_geopackage_ends ends; /* of its range so far */
    oj_status status;
    struct oj_error err;
};

struct oj_geopackage_reader
{
    sqlite3 *db;          /* GDAL's */
    sqlite3_stmt *anchor; /* stands at a row, so that what db sees stays */
    const char *table;    /* the layer's */
    char *bounds;         /* statement for the least and the greatest FID */
    struct oj_geopackage_plan plan;
    struct oj_geopackage_scan *scan; /* on db */
    int64_t first, last;             /* FIDs */
    int n_threads;
    int is_started;
    enum oj_geopackage_state state;
    struct oj_geopackage_ends ends; /* of the range before wanted */

    /* Nothing of this without workers. */
    int n_workers;
    struct worker worker[MOST_WORKERS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t next_fid, width; /* of the next range */
    int64_t n_ranges;        /* that were taken */
    int has_more;            /* FIDs that nobody took */
    int64_t wanted;          /* range that the caller is at */
    int stop;
};

/* ---- threads ------------------------------------------------------------- */

/* Holes in the FIDs make ranges wider, and are passed over where they were
 * seen. */
static void learn(struct oj_geopackage_reader *r, int64_t n_rows,
                  const struct oj_geopackage_ends *ends)
{
    if (ends->has_beyond && ends->beyond > r->next_fid &&
        ends->beyond <= r->last)
        r->next_fid = ends->beyond;
    if (n_rows <= r->plan.batch_rows / 2 && r->width < INT64_MAX / 4)
        r->width *= 2;
    else if (n_rows > r->plan.batch_rows && r->width > r->plan.batch_rows)
        r->width /= 2;
}

/* 1 when there is one more. Under the lock. */
static int take_range(struct oj_geopackage_reader *r, struct worker *w,
                      int64_t *first, int64_t *last)
{
    w->range = -1;
    if (!r->has_more || r->stop)
        return 0;
    *first = r->n_ranges > 0 ? r->next_fid : INT64_MIN;
    r->has_more =
        (uint64_t)r->last - (uint64_t)r->next_fid >= (uint64_t)r->width;
    *last = r->has_more ? r->next_fid + (r->width - 1) : INT64_MAX;
    if (r->has_more)
        r->next_fid = *last + 1;
    w->range = r->n_ranges++;
    return 1;
}

/* Hands a chunk over, and waits until it was taken. 0: nobody wants more. */
static int put(struct oj_geopackage_reader *r, struct worker *w,
               const struct worker *made)
{
    int goes_on;
    pthread_mutex_lock(&r->lock);
    w->chunk = made->chunk;
    w->state = made->state;
    w->ends = made->ends;
    w->status = made->status;
    w->err = made->err;
    w->is_ready = 1;
    pthread_cond_broadcast(&r->changed);
    while (w->is_ready && !r->stop)
        pthread_cond_wait(&r->changed, &r->lock);
    goes_on = !r->stop;
    pthread_mutex_unlock(&r->lock);
    return goes_on;
}

static void *work(void *user)
{
    struct worker *w = user, made = {0};
    struct oj_geopackage_reader *r = w->reader;
    int64_t first = 0, last = 0, n_rows;
    int goes_on;
    pthread_mutex_lock(&r->lock);
    goes_on = take_range(r, w, &first, &last);
    pthread_mutex_unlock(&r->lock);
    while (goes_on)
    {
        oj_geopackage_scan_range(w->scan, first, last);
        n_rows = 0;
        do
        {
            made.status =
                oj_geopackage_scan_next(w->scan, &r->stop, &made.chunk,
                                        &made.state, &made.ends, &made.err);
            n_rows += made.chunk != NULL ? made.chunk->n_rows : 0;
            goes_on = made.status == OJ_OK && made.state != OJ_GEOPACKAGE_LEFT;
            goes_on = put(r, w, &made) && goes_on;
        } while (goes_on && made.state == OJ_GEOPACKAGE_MORE);
        pthread_mutex_lock(&r->lock);
        learn(r, n_rows, &made.ends);
        goes_on = goes_on && take_range(r, w, &first, &last);
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

static void close_connection(struct worker *w)
{
    oj_geopackage_scan_close(w->scan);
    sqlite3_close(w->db);
    memset(w, 0, sizeof *w);
}

static void stop_workers(struct oj_geopackage_reader *r)
{
    pthread_mutex_lock(&r->lock);
    __atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->n_workers; i++)
    {
        struct worker *w = &r->worker[i];
        struct oj_slice rest = {0};
        if (w->has_thread)
            pthread_join(w->thread, NULL);
        rest.chunk = w->is_ready ? w->chunk : NULL;
        oj_slice_free(&rest);
        close_connection(w);
    }
    r->n_workers = 0;
}

/* ---- start --------------------------------------------------------------- */

static int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* The two numbers of the statement's only row; 0: there are none. */
static int read_numbers(sqlite3 *db, const char *sql, int64_t *a, int64_t *b)
{
    sqlite3_stmt *row = NULL;
    int has = sql != NULL &&
              sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK &&
              sqlite3_step(row) == SQLITE_ROW &&
              sqlite3_column_type(row, 0) == SQLITE_INTEGER;
    if (has)
    {
        *a = sqlite3_column_int64(row, 0);
        *b = sqlite3_column_int64(row, 1);
    }
    sqlite3_finalize(row);
    return has;
}

/* The version of the state that db sees; -1: none. */
static int64_t version(sqlite3 *db)
{
    int64_t number, unused;
    return read_numbers(db, "PRAGMA data_version", &number, &unused) ? number
                                                                     : -1;
}

/* 1 when the rows that db sees have FIDs. */
static int read_bounds(struct oj_geopackage_reader *r)
{
    return read_numbers(r->db, r->bounds, &r->first, &r->last);
}

/* Has db see what it sees now until the anchor is closed. */
static int drop_anchor(struct oj_geopackage_reader *r)
{
    return sqlite3_prepare_v2(r->db, "SELECT 1 FROM sqlite_master", -1,
                              &r->anchor, NULL) == SQLITE_OK &&
           sqlite3_step(r->anchor) == SQLITE_ROW;
}

/* A connection of its own, within a transaction. *is_open is 0 where there is
 * none to be had: another process is about to write, say. */
static oj_status open_connection(struct oj_geopackage_reader *r,
                                 struct worker *w, int *is_open,
                                 struct oj_error *err)
{
    const char *file = sqlite3_db_filename(r->db, "main");
    w->reader = r;
    *is_open = sqlite3_open_v2(file, &w->db,
                               SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                               NULL) == SQLITE_OK &&
               run(w->db, "BEGIN") &&
               run(w->db, "SELECT 1 FROM sqlite_master LIMIT 1");
    if (*is_open)
        OJ_TRY(
            oj_geopackage_scan_open(&r->plan, w->db, r->table, &w->scan, err));
    *is_open = w->scan != NULL;
    return OJ_OK;
}

/* A file of the system's own, which others can be asked to open, too. */
static int is_plain_file(sqlite3 *db)
{
    const char *file = sqlite3_db_filename(db, "main");
    sqlite3_vfs *vfs = NULL;
    return file != NULL && file[0] == '/' && sqlite3_threadsafe() &&
           sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs) ==
               SQLITE_OK &&
           vfs == sqlite3_vfs_find(NULL);
}

/* 1 when db has the file that is found under its name now. */
static int is_in_place(sqlite3 *db)
{
    int has_moved = 1;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED,
                                &has_moved) == SQLITE_OK &&
           !has_moved;
}

static oj_status open_connections(struct oj_geopackage_reader *r, int n,
                                  struct oj_error *err)
{
    int is_open = 1;
    while (is_open && r->n_workers < n)
    {
        struct worker *w = &r->worker[r->n_workers];
        oj_status status = open_connection(r, w, &is_open, err);
        r->n_workers += is_open;
        if (!is_open)
            close_connection(w);
        OJ_TRY(status);
    }
    return OJ_OK;
}

/* As many as the rows are worth. */
static int choose_workers(struct oj_geopackage_reader *r)
{
    int n = r->n_threads < MOST_WORKERS ? r->n_threads : MOST_WORKERS;
    uint64_t span = (uint64_t)r->last - (uint64_t)r->first;
    if (n < 2 || span < 2 * LEAST_ROWS || !is_plain_file(r->db))
        return 0;
    span /= 2 * (uint64_t)n;
    if (span < (uint64_t)r->plan.batch_rows)
        r->plan.batch_rows = span > LEAST_ROWS ? (int64_t)span : LEAST_ROWS;
    return n;
}

static void start_threads(struct oj_geopackage_reader *r)
{
    int n = r->n_workers;
    r->next_fid = r->first;
    r->has_more = 1;
    r->width = r->plan.batch_rows;
    for (int i = 0; i < n; i++)
        r->worker[i].range = -1;
    for (r->n_workers = 0; r->n_workers < n; r->n_workers++)
    {
        struct worker *w = &r->worker[r->n_workers];
        w->has_thread = pthread_create(&w->thread, NULL, work, w) == 0;
        if (!w->has_thread)
            break;
    }
    for (int i = r->n_workers; i < n; i++)
        close_connection(&r->worker[i]);
}

/* At the first row, with the threads at work. */
static oj_status start(struct oj_geopackage_reader *r, struct oj_error *err)
{
    int64_t before;
    r->is_started = 1;
    before = version(r->db);
    if (read_bounds(r))
        OJ_TRY(open_connections(r, choose_workers(r), err));
    r->state = OJ_GEOPACKAGE_LEFT;
    if (!drop_anchor(r))
        return OJ_OK;
    if (version(r->db) != before || !is_in_place(r->db) || !read_bounds(r))
        stop_workers(r);
    r->state = OJ_GEOPACKAGE_MORE;
    if (r->n_workers > 0)
        start_threads(r);
    oj_geopackage_scan_range(r->scan, INT64_MIN, INT64_MAX);
    return OJ_OK;
}

/* ---- chunks -------------------------------------------------------------- */

/* The worker that has what is wanted next; NULL: there is nothing more. Under
 * the lock. */
static struct worker *wait_for_chunk(struct oj_geopackage_reader *r)
{
    for (;;)
    {
        if (!r->has_more && r->wanted == r->n_ranges)
            return NULL;
        for (int i = 0; i < r->n_workers; i++)
        {
            struct worker *w = &r->worker[i];
            if (w->range == r->wanted && w->is_ready)
                return w;
        }
        pthread_cond_wait(&r->changed, &r->lock);
    }
}

/* A range starts with the row that was seen after the one before. */
static int follows(const struct oj_geopackage_ends *before,
                   const struct oj_geopackage_ends *after)
{
    return before->has_beyond == after->has_begin &&
           (!before->has_beyond || before->beyond == after->begin);
}

/* The next chunk of the threads, maybe NULL before the end. */
static oj_status take_chunk(struct oj_geopackage_reader *r,
                            struct oj_chunk **out, struct oj_error *err)
{
    struct worker *w;
    oj_status status = OJ_OK;
    pthread_mutex_lock(&r->lock);
    w = wait_for_chunk(r);
    r->state = w != NULL ? w->state : OJ_GEOPACKAGE_END;
    if (w != NULL && r->wanted > 0 && !follows(&r->ends, &w->ends))
        r->state = OJ_GEOPACKAGE_LEFT; /* its chunk goes with the worker */
    else if (w != NULL)
    {
        *out = w->chunk;
        status = w->status;
        if (status != OJ_OK)
            *err = w->err;
        if (r->state == OJ_GEOPACKAGE_END)
        {
            r->wanted++;
            r->ends = w->ends;
            r->state = OJ_GEOPACKAGE_MORE;
        }
        w->is_ready = 0;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

static oj_status next(void *stream, struct oj_chunk **out, const char **text,
                      struct oj_error *err)
{
    static const int never = 0;
    struct oj_geopackage_reader *r = stream;
    *text = NULL;
    *out = NULL;
    if (!r->is_started)
        OJ_TRY(start(r, err));
    while (*out == NULL && r->state == OJ_GEOPACKAGE_MORE)
    {
        if (r->n_workers > 0)
            OJ_TRY(take_chunk(r, out, err));
        else
            OJ_TRY(oj_geopackage_scan_next(r->scan, &never, out, &r->state,
                                           &r->ends, err));
    }
    if (*out != NULL || r->state == OJ_GEOPACKAGE_END)
        return OJ_OK;
    stop_workers(r);
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "left to GDAL");
}

/* ---- open and close ------------------------------------------------------ */

static void close_reader(void *reader)
{
    struct oj_geopackage_reader *r = reader;
    if (r == NULL)
        return;
    stop_workers(r);
    oj_geopackage_scan_close(r->scan);
    sqlite3_finalize(r->anchor);
    sqlite3_free(r->bounds);
    oj_geopackage_plan_free(&r->plan);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    oj_free(r);
}

/* A connection that writes has changes of its own. */
static int is_read_only(sqlite3 *db)
{
    return db != NULL && sqlite3_db_readonly(db, "main") == 1 &&
           sqlite3_get_autocommit(db);
}

static oj_status open_scan(struct oj_geopackage_reader *r, OGRLayerH layer,
                           struct oj_error *err)
{
    const char *fid = OGR_L_GetFIDColumn(layer);
    r->table = OGR_L_GetName(layer);
    r->bounds = sqlite3_mprintf("SELECT (SELECT min(\"%w\") FROM \"%w\"), "
                                "(SELECT max(\"%w\") FROM \"%w\")",
                                fid, r->table, fid, r->table);
    if (r->bounds == NULL)
        return oj_fail_nomem(err, 1, 1024);
    return oj_geopackage_scan_open(&r->plan, r->db, r->table, &r->scan, err);
}

oj_status oj_geopackage_read_open(GDALDatasetH dataset, OGRLayerH layer,
                                  const int *fields,
                                  const unsigned char *skipped, int n_fields,
                                  int64_t batch_rows, int n_threads,
                                  struct oj_geopackage_reader **out,
                                  struct oj_error *err)
{
    struct oj_geopackage_reader *r;
    sqlite3 *db = oj_sqlite_of(dataset);
    oj_status status;
    int fits;
    *out = NULL;
    if (!is_read_only(db))
        return OJ_OK;
    OJ_NEW_ZEROED(r, 1, err);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->db = db;
    r->n_threads = n_threads;
    status = oj_geopackage_plan_init(&r->plan, layer, fields, skipped, n_fields,
                                     batch_rows, &fits, err);
    if (status == OJ_OK && fits)
        status = open_scan(r, layer, err);
    if (status == OJ_OK && r->scan != NULL)
        *out = r;
    else
        close_reader(r);
    return status;
}

const struct oj_lane oj_geopackage_lane = {"GeoPackage", 1, next, close_reader,
                                           1};
