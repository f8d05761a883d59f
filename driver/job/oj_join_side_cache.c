#include "oj_join_side_cache.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_timed_wait.h"
#include "../base/oj_message.h"
#include "../base/oj_shell_words.h"
#include "../command/oj_memory_size.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <pthread.h>
#include <string.h>
#include <strings.h>

/* An entry: a join side and its state. The cache's mutex guards all members
 * except side, which belongs to the builder while it is built. Afterwards its
 * engine is shared through oj_join_acquire(), and the rest of side is
 * read-only. If a builder is cancelled, is_ready, error and runner are unset,
 * and a waiting thread builds the entry. */
struct oj_join_entry
{
    /* next entry of the list of entries (is_listed) or of the garbage */
    struct oj_join_entry *next;
    int is_listed; /* 1 if the entry can be found by its key */
    int is_ready;
    /* why the build failed; its status is OJ_OK if the build has not failed */
    struct oj_error error;
    int n_users; /* number of its users and of the threads waiting for
                    it */
    int64_t last_use;
    int64_t n_bytes;
    int stop; /* cancel flag of the engine */
    /* the use that builds the entry, or joins with the engine itself instead of
     * a copy; NULL if there is none */
    struct oj_join_use *runner;
    struct oj_join_side side;
    struct oj_join_key key;
};

static struct
{
    pthread_mutex_t mutex;
    /* condition variable, signalled at every change that a thread may wait for
     */
    pthread_cond_t changed;
    struct oj_join_entry *list;
    struct oj_join_entry *garbage; /* entries to be freed after the mutex is
                                      unlocked */
    int64_t clock, n_built, n_found;
    int is_ending;     /* 1 if the process is ending; atomic */
    int has_condition; /* 1 if `changed` is initialised */
} cache = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- join sides ---------------------------------------------------------- */

void oj_join_side_copy_from_sides(struct oj_join_side *side,
                                  const struct oj_sides *sides)
{
    side->findings = sides->reshape[1].found;
    side->vocabulary = oj_vocabulary_add_reference(sides->columns.vocabulary);
}

void oj_join_side_copy_to_sides(const struct oj_join_side *side,
                                struct oj_sides *sides)
{
    sides->reshape[1].found = side->findings;
    oj_side_columns_use_vocabulary(&sides->columns, side->vocabulary);
}

/* Returns the bytes of memory of the arrays of buf, computed from their
 * capacities. */
static int64_t flat_bytes(const struct oj_flat_buf *buf)
{
    return 8 * (buf->cap_features + buf->cap_part_offset +
                buf->cap_ring_offset + buf->cap_vertex_offset + buf->cap_x +
                buf->cap_y + buf->cap_m) +
           buf->cap_parts;
}

/* Returns the bytes of memory of an engine, which is that of `side` or a copy
 * of it; 0 for NULL. An engine that reports no size is estimated at 72 bytes
 * per vertex and 4 per feature. */
static int64_t engine_bytes(const struct oj_join_side *side,
                            struct oj_join *engine)
{
    const struct oj_flat *flat = &side->flat;
    int64_t n, index;
    if (engine == NULL)
        return 0;
    n = oj_join_tie_rank(engine) != NULL ? flat->n_features : 0;
    index = oj_join_index_bytes(engine);
    if (index == 0)
    {
        index = OJ_INDEX_BYTES_PER_VERTEX *
                (oj_flat_is_points(flat) ? flat->n_features : flat->n_vertices);
        n = flat->n_features;
    }
    return index + n * (int64_t)sizeof(int32_t);
}

/* Returns the bytes of memory of a side with this engine. */
static int64_t side_bytes(const struct oj_join_side *side,
                          struct oj_join *engine)
{
    return flat_bytes(&side->buf) + flat_bytes(&side->work.shapes) +
           oj_compared_columns_bytes(&side->work.columns) +
           engine_bytes(side, engine) + oj_vocabulary_bytes(side->vocabulary) +
           (side->table != NULL ? oj_table_bytes(side->table) : 0);
}

void oj_stats_add(struct oj_stats *sum, const struct oj_stats *before,
                  const struct oj_stats *after)
{
    static const struct oj_stats none = {0};
    if (before == NULL)
        before = &none;
    sum->index_s += after->index_s - before->index_s;
    sum->sort_s += after->sort_s - before->sort_s;
    sum->filter_s += after->filter_s - before->filter_s;
    sum->refine_s += after->refine_s - before->refine_s;
    sum->n_candidates += after->n_candidates - before->n_candidates;
    if (after->index_bytes > sum->index_bytes)
        sum->index_bytes = after->index_bytes;
    if (sum->n_undecided_pairs == 0 &&
        after->n_undecided_pairs > before->n_undecided_pairs)
        memcpy(sum->undecided_text, after->undecided_text,
               sizeof sum->undecided_text);
    sum->n_undecided_pairs +=
        after->n_undecided_pairs - before->n_undecided_pairs;
}

void oj_join_side_free(struct oj_join_side *side)
{
    oj_join_close(side->engine);
    oj_table_free(side->table);
    oj_flat_buf_free(&side->buf);
    oj_side_work_free(&side->work);
    oj_vocabulary_free(side->vocabulary);
    memset(side, 0, sizeof *side);
}

/* ---- the limit ----------------------------------------------------------- */

/* Returns a quarter of the memory that the process may use; 1 GB if that is
 * unknown. Determined once. */
static int64_t quarter_of_memory(void)
{
    static int64_t quarter;
    int64_t bytes = __atomic_load_n(&quarter, __ATOMIC_RELAXED);
    if (bytes == 0)
    {
        int64_t memory = CPLGetPhysicalRAM();
        bytes = memory > 0 ? memory / 4 : INT64_C(1) << 30;
        __atomic_store_n(&quarter, bytes, __ATOMIC_RELAXED);
    }
    return bytes;
}

int64_t oj_join_cache_limit(void)
{
    static int has_warned;
    const char *text = CPLGetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    int64_t bytes;
    if (text == NULL || text[0] == '\0')
        return quarter_of_memory();
    if (strcmp(text, "0") == 0)
        return 0;
    if (oj_memory_size_read(text, &bytes))
        return bytes;
    if (!__atomic_exchange_n(&has_warned, 1, __ATOMIC_RELAXED))
        oj_warn(
            "OGRJOIN_CACHE_MAX must be a number of bytes, such as 512M or 4G, "
            "or 0, not '%s': a quarter of the memory is used",
            text);
    return quarter_of_memory();
}

/* ---- the list ------------------------------------------------------------ */

void oj_join_key_free(struct oj_join_key *key)
{
    CSLDestroy(key->identity);
    CSLDestroy(key->state);
    key->identity = key->state = NULL;
}

static int are_string_lists_equal(char **a, char **b)
{
    return oj_words_are_equal((const char *const *)a, (const char *const *)b);
}

/* Returns the listed entry with this identity, or NULL. There is at most one,
 * because a new state of the files replaces the old entry. */
static struct oj_join_entry *find_entry(const struct oj_join_key *key)
{
    struct oj_join_entry *entry = cache.list;
    while (entry != NULL &&
           !are_string_lists_equal(entry->key.identity, key->identity))
        entry = entry->next;
    return entry;
}

static void unlist_entry(struct oj_join_entry *entry)
{
    struct oj_join_entry **at = &cache.list;
    if (!entry->is_listed)
        return;
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    entry->next = NULL;
    entry->is_listed = 0;
}

/* Removes the entry from the list; it is freed when its last user releases it.
 */
static void drop_entry(struct oj_join_entry *entry)
{
    unlist_entry(entry);
    if (entry->n_users > 0)
        return;
    entry->next = cache.garbage;
    cache.garbage = entry;
}

/* Drops unused entries, the least recently used first, until the others fit. */
static void evict_oldest_unused(int64_t limit)
{
    for (;;)
    {
        struct oj_join_entry *oldest = NULL;
        int64_t n_bytes = 0;
        for (struct oj_join_entry *e = cache.list; e != NULL; e = e->next)
        {
            n_bytes += e->n_bytes;
            if (e->n_users == 0 &&
                (oldest == NULL || e->last_use < oldest->last_use))
                oldest = e;
        }
        if (n_bytes <= limit || oldest == NULL)
            return;
        drop_entry(oldest);
    }
}

/* Drops one reference to the entry. */
static void release_entry_use(struct oj_join_entry *entry)
{
    entry->last_use = ++cache.clock;
    entry->n_users--;
    if (!entry->is_listed || (entry->n_users == 0 && !entry->is_ready))
        drop_entry(entry);
}

/* Returns 1 if the process ends and the engine has device memory. Such an
 * engine is not freed, because the GPU's library may already be unloaded. */
static int is_not_freed_at_exit(const struct oj_join_entry *entry)
{
    const struct oj_join *engine = entry->side.engine;
    return __atomic_load_n(&cache.is_ending, __ATOMIC_RELAXED) &&
           engine != NULL &&
           strncasecmp(oj_join_backend(engine)->name, "cuda", 4) == 0;
}

/* Drops unused entries beyond the limit and unlocks the mutex. Frees the
 * dropped entries only then, because that takes time and other threads wait for
 * the mutex. */
static void evict_and_unlock(int64_t limit)
{
    struct oj_join_entry *garbage, *next;
    evict_oldest_unused(limit);
    garbage = cache.garbage;
    cache.garbage = NULL;
    pthread_mutex_unlock(&cache.mutex);
    for (; garbage != NULL; garbage = next)
    {
        next = garbage->next;
        if (is_not_freed_at_exit(garbage))
            continue;
        oj_join_side_free(&garbage->side);
        oj_join_key_free(&garbage->key);
        oj_free(garbage);
    }
}

/* ---- waiting ------------------------------------------------------------- */

static int is_cancel_flag_set(const int *flag)
{
    return flag != NULL && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

static oj_status fail_cancelled(struct oj_error *err)
{
    return oj_fail(
        err, OJ_ERR_CANCELLED,
        "interrupted while waiting for a join side that another thread reads");
}

/* ---- building ------------------------------------------------------------ */

/* Makes an entry and lists it under key. With key NULL it is not listed, so
 * that it cannot be found. Returns NULL if memory runs out. */
static struct oj_join_entry *new_entry(const struct oj_join_key *key)
{
    struct oj_join_entry *entry = oj_calloc(1, sizeof *entry);
    if (entry == NULL || key == NULL)
        return entry;
    entry->key.identity = CSLDuplicate(key->identity);
    entry->key.state = CSLDuplicate(key->state);
    entry->next = cache.list;
    entry->is_listed = 1;
    cache.list = entry;
    return entry;
}

/* Records that entry->runner has stopped using the engine and that the entry
 * takes n_bytes of memory, and wakes waiting threads. Precondition: the mutex
 * is locked. */
static void release_entry_from_runner(struct oj_join_entry *entry,
                                      int64_t n_bytes)
{
    entry->runner = NULL;
    entry->n_bytes = n_bytes;
    __atomic_store_n(&entry->stop, 0, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&cache.changed);
}

/* Builds the entry. Precondition: the mutex is locked; it is unlocked during
 * the build and locked again on return. */
static oj_status build_entry(struct oj_join_entry *entry, oj_join_build build,
                             void *user, struct oj_join_use *use,
                             struct oj_error *err)
{
    struct oj_error error = {OJ_OK, ""};
    oj_status status;
    int keep = 1;
    entry->runner = use;
    use->entry = entry;
    pthread_mutex_unlock(&cache.mutex);
    status = build(user, &entry->side, &entry->stop, &keep, &error);
    if (status != OJ_OK)
        oj_join_side_free(&entry->side);
    pthread_mutex_lock(&cache.mutex);
    release_entry_from_runner(
        entry,
        status == OJ_OK ? side_bytes(&entry->side, entry->side.engine) : 0);
    if (!keep || (status != OJ_OK && status != OJ_ERR_CANCELLED))
        unlist_entry(entry);
    if (status == OJ_OK)
    {
        cache.n_built++;
        entry->is_ready = 1;
        return OJ_OK;
    }
    use->entry = NULL;
    if (status != OJ_ERR_CANCELLED)
    {
        entry->error = error;
        entry->error.status = status;
    }
    return oj_fail(err, status, "%s", error.message);
}

/* Waits until the entry is ready. If no thread builds it, builds it and sets
 * *is_mine to 1. Precondition: the mutex is locked. */
static oj_status wait_or_build_entry(struct oj_join_entry *entry,
                                     oj_join_build build, void *user,
                                     struct oj_join_use *use, int *is_mine,
                                     struct oj_error *err)
{
    while (!entry->is_ready && entry->runner != NULL &&
           !is_cancel_flag_set(use->cancel))
        oj_timed_wait_until_poll(&cache.changed, &cache.mutex);
    if (entry->is_ready)
    {
        cache.n_found++;
        use->entry = entry;
        return OJ_OK;
    }
    if (entry->error.status != OJ_OK)
        return oj_fail(err, entry->error.status, "%s", entry->error.message);
    if (is_cancel_flag_set(use->cancel))
        return fail_cancelled(err);
    *is_mine = 1;
    return build_entry(entry, build, user, use, err);
}

/* Returns the entry of `like`, the entry of key, or a new one. Precondition:
 * the mutex is locked. */
static struct oj_join_entry *find_or_add_entry(const struct oj_join_use *like,
                                               const struct oj_join_key *key)
{
    struct oj_join_entry *entry = like != NULL ? like->entry : NULL;
    if (entry != NULL || key == NULL)
        return entry != NULL ? entry : new_entry(NULL);
    entry = find_entry(key);
    if (entry != NULL && are_string_lists_equal(entry->key.state, key->state))
        return entry;
    if (entry != NULL)
        drop_entry(entry);
    return new_entry(key);
}

oj_status oj_join_cache_find_or_build(const struct oj_join_use *like,
                                      const struct oj_join_key *key,
                                      oj_join_build build, void *user,
                                      const int *cancel,
                                      struct oj_join_use *use, int *is_mine,
                                      struct oj_error *err)
{
    struct oj_join_entry *entry;
    int64_t limit = oj_join_cache_limit();
    oj_status status;
    *is_mine = 0;
    pthread_mutex_lock(&cache.mutex);
    cache.has_condition =
        cache.has_condition || oj_timed_wait_init(&cache.changed);
    entry = cache.has_condition ? find_or_add_entry(like, key) : NULL;
    memset(use, 0, sizeof *use);
    use->cancel = cancel;
    if (entry == NULL)
        status = oj_fail_nomem(err, 1, sizeof *entry);
    else
    {
        entry->n_users++;
        status = wait_or_build_entry(entry, build, user, use, is_mine, err);
        if (status != OJ_OK)
            release_entry_use(entry);
    }
    evict_and_unlock(limit);
    return status;
}

/* ---- using --------------------------------------------------------------- */

struct oj_join_side *oj_join_use_side(const struct oj_join_use *use)
{
    return &use->entry->side;
}

/* Makes this use the runner: it joins with the engine itself, which polls the
 * entry's flag. Sets that flag if the use was cancelled before, because
 * oj_join_use_stop() then found no runner. */
static void set_runner_of_entry(struct oj_join_use *use)
{
    pthread_mutex_lock(&cache.mutex);
    use->entry->runner = use;
    if (is_cancel_flag_set(use->cancel))
        __atomic_store_n(&use->entry->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&cache.mutex);
}

/* Returns 1 for an error after which the engine may be broken or needs more
 * memory than is free. Later uses do not get the entry then. */
static int is_engine_failure(oj_status status)
{
    return status == OJ_ERR_NOMEM || status == OJ_ERR_NO_DEVICE ||
           status == OJ_ERR_INTERNAL || status == OJ_ERR_IO ||
           status == OJ_ERR_DATA;
}

oj_status oj_join_use_join_batch(struct oj_join_use *use,
                                 const struct oj_flat *input,
                                 struct oj_matches *out, struct oj_error *err)
{
    struct oj_join_entry *entry = use->entry;
    int64_t limit = oj_join_cache_limit(), n_bytes = 0;
    struct oj_stats before;
    struct oj_join *engine = NULL;
    oj_status status =
        oj_join_acquire(entry->side.engine, use->cancel, &engine, err);
    if (status == OJ_OK)
    {
        if (engine == entry->side.engine)
            set_runner_of_entry(use);
        before = *oj_join_stats(engine);
        status = oj_join_batch(engine, input, out, err);
        oj_stats_add(&use->stats, &before, oj_join_stats(engine));
        /* measured again, because engines build some indexes on first use */
        n_bytes = side_bytes(&entry->side, engine);
    }
    pthread_mutex_lock(&cache.mutex);
    if (entry->runner == use)
        release_entry_from_runner(entry, n_bytes);
    if (is_engine_failure(status))
        unlist_entry(entry);
    if (engine != NULL)
    {
        entry->n_bytes = n_bytes;
        oj_join_release(engine);
    }
    evict_and_unlock(limit);
    return status;
}

void oj_join_use_stop(struct oj_join_use *use)
{
    pthread_mutex_lock(&cache.mutex);
    if (use->entry != NULL && use->entry->runner == use)
        __atomic_store_n(&use->entry->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&cache.changed);
    pthread_mutex_unlock(&cache.mutex);
}

void oj_join_use_release(struct oj_join_use *use)
{
    int64_t limit;
    if (use->entry == NULL)
        return;
    limit = oj_join_cache_limit();
    pthread_mutex_lock(&cache.mutex);
    /* the only user left needs no copies of the engine */
    if (use->entry->n_users == 1 && use->entry->side.engine != NULL)
        oj_join_free_unused_copies(use->entry->side.engine, 1);
    release_entry_use(use->entry);
    memset(use, 0, sizeof *use);
    evict_and_unlock(limit);
}

/* ---- the end ------------------------------------------------------------- */

void oj_join_cache_clear(void)
{
    pthread_mutex_lock(&cache.mutex);
    while (cache.list != NULL)
        drop_entry(cache.list);
    evict_and_unlock(INT64_MAX);
}

__attribute__((destructor)) static void clear_cache_at_exit(void)
{
    __atomic_store_n(&cache.is_ending, 1, __ATOMIC_RELAXED);
    oj_join_cache_clear();
}

struct oj_join_cache_counts oj_join_cache_counts(void)
{
    struct oj_join_cache_counts counts = {0};
    pthread_mutex_lock(&cache.mutex);
    for (struct oj_join_entry *e = cache.list; e != NULL; e = e->next)
    {
        counts.n_entries++;
        counts.n_bytes += e->n_bytes;
    }
    counts.n_built = cache.n_built;
    counts.n_found = cache.n_found;
    pthread_mutex_unlock(&cache.mutex);
    return counts;
}
