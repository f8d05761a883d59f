#include "oj_events.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_hash_mix.h"
#include "../../../flatten/base/oj_target_clones.h"

#include <math.h>
#include <string.h>

enum
{
    FEW = 2,         /* maximum number of features stored in struct key
                        itself */
    BLOCK = 16,      /* rows whose keys are looked up together, with
                        prefetches */
    FIRST_SLOTS = 64 /* initial number of slots, a power of 2 */
};

/* Maximum number of keys: key numbers are int32_t. */
#define MAX_KEYS (INT32_MAX - 1)

struct key
{
    int64_t name;     /* the integer key; for text keys the offset of the
                         text */
    int32_t n_text;   /* bytes of the text */
    uint32_t batch;   /* number of the last batch in which the key's features
                         were counted in n_most */
    int32_t n;        /* number of features */
    int32_t capacity; /* capacity of the array of features; FEW: no array, they
                         are in `few` */
    union
    {
        int32_t few[FEW];
        int32_t *many;
    } feature;
};

/* Entry of the hash table of keys. tag is the upper half of the hash; the lower
 * half chooses the slot. */
struct slot
{
    uint32_t tag;
    uint32_t key; /* number of the key + 1; 0: the slot is empty */
};

struct oj_events
{
    struct oj_event_rules rules;
    int64_t n_features;
    const int32_t *tie_rank;

    struct key *key; /* [n_keys] */
    int64_t n_keys, cap_keys;
    struct slot *slot; /* [n_slots], a power of 2; at most half of the slots are
                          in use */
    int64_t n_slots;
    char *text; /* [n_text] texts of all keys */
    int64_t n_text, cap_text;

    uint32_t batch;   /* number of the current batch, compared with key.batch */
    int32_t *row_key; /* [rows of the batch] number of the key; -1: the row
                         gives no events */
    int64_t cap_row_key;
    struct oj_event_counts counts, found; /* totals of all batches; counts of
                                             the current batch */
};

const char *const oj_event_names[OJ_N_EVENTS] = {"enter", "exit", "stay",
                                                 "change"};

void oj_event_rows_free(struct oj_event_rows *events)
{
    const struct oj_event_rows empty = {0};
    oj_matches_free(&events->rows);
    oj_free(events->kind);
    *events = empty;
}

/* ---- features of a key ----------------------------------------------------
 */

static int32_t *features_of_key(struct key *key)
{
    return key->capacity > FEW ? key->feature.many : key->feature.few;
}

static void free_features(struct key *key)
{
    if (key->capacity > FEW)
        oj_free(key->feature.many);
    key->capacity = FEW;
    key->n = 0;
}

/* Makes room for n features of a key, which keeps its present ones. */
static oj_status reserve_features(struct key *key, int64_t n,
                                  struct oj_error *err)
{
    int64_t capacity = key->capacity;
    int32_t *many;
    if (n <= capacity)
        return OJ_OK;
    capacity = 2 * capacity < n ? n : 2 * capacity;
    capacity = capacity < INT32_MAX ? capacity : INT32_MAX;
    OJ_NEW(many, capacity, err);
    memcpy(many, features_of_key(key), (size_t)key->n * sizeof *many);
    if (key->capacity > FEW)
        oj_free(key->feature.many);
    key->feature.many = many;
    key->capacity = (int32_t)capacity;
    return OJ_OK;
}

/* Moves the features of a key into `few` and frees its array, if they fit and
 * the array has room for more than 4 * FEW features. */
static void release_unused_features(struct key *key)
{
    int32_t few[FEW];
    if (key->capacity <= 4 * FEW || key->n > FEW)
        return;
    memcpy(few, key->feature.many, (size_t)key->n * sizeof *few);
    oj_free(key->feature.many);
    memcpy(key->feature.few, few, (size_t)key->n * sizeof *few);
    key->capacity = FEW;
}

/* Replaces the features of a key, which must have room for n. */
static void set_features_of_key(struct key *key, const int32_t *feature,
                                int64_t n)
{
    int32_t *to = features_of_key(key);
    for (int64_t i = 0; i < n; i++)
        to[i] = feature[i];
    key->n = (int32_t)n;
}

/* ---- keys -----------------------------------------------------------------
 */

static uint64_t hash_integer(int64_t name)
{
    return oj_hash_mix(UINT64_C(0x243F6A8885A308D3), &name);
}

static uint64_t hash_text(const char *text, int64_t n)
{
    uint64_t hash = oj_hash_mix(UINT64_C(0x243F6A8885A308D3), &n);
    for (; n >= 8; n -= 8, text += 8)
        hash = oj_hash_mix(hash, text);
    if (n > 0)
    {
        char last[8] = {0};
        memcpy(last, text, (size_t)n);
        hash = oj_hash_mix(hash, last);
    }
    return hash;
}

/* The key of a row, with its hash. */
struct name
{
    uint64_t hash;
    int64_t integer;
    const char *text; /* NULL: the key is an integer */
    int64_t n_text;
};

static struct name hashed_name_of_row(const struct oj_event_keys *keys,
                                      int64_t row)
{
    struct name name = {0};
    if (keys->integer != NULL)
    {
        name.integer = keys->integer[row];
        name.hash = hash_integer(name.integer);
        return name;
    }
    name.text = keys->bytes + keys->offset[row];
    name.n_text = keys->offset[row + 1] - keys->offset[row];
    name.hash = hash_text(name.text, name.n_text);
    return name;
}

static uint64_t first_slot_of_hash(const struct oj_events *events,
                                   uint64_t hash)
{
    return hash & (uint64_t)(events->n_slots - 1);
}

static int is_key_of_name(const struct oj_events *events, const struct key *key,
                          const struct name *name)
{
    if (!events->rules.has_texts)
        return key->name == name->integer;
    return key->n_text == name->n_text &&
           memcmp(events->text + key->name, name->text, (size_t)name->n_text) ==
               0;
}

/* Returns the slot of the key; if the key is new, the empty slot for it. */
static struct slot *find_slot(const struct oj_events *events,
                              const struct name *name)
{
    const uint32_t tag = (uint32_t)(name->hash >> 32);
    uint64_t at = first_slot_of_hash(events, name->hash);
    for (;; at = (at + 1) & (uint64_t)(events->n_slots - 1))
    {
        struct slot *slot = &events->slot[at];
        if (slot->key == 0 ||
            (slot->tag == tag &&
             is_key_of_name(events, &events->key[slot->key - 1], name)))
            return slot;
    }
}

static struct name hashed_name_of_key(const struct oj_events *events,
                                      const struct key *key)
{
    struct name name = {0};
    name.integer = key->name;
    if (!events->rules.has_texts)
    {
        name.hash = hash_integer(key->name);
        return name;
    }
    name.text = events->text + key->name;
    name.n_text = key->n_text;
    name.hash = hash_text(name.text, name.n_text);
    return name;
}

/* Inserts all keys into the slots, which must be empty. */
static void insert_all_keys_into_slots(struct oj_events *events)
{
    for (int64_t i = 0; i < events->n_keys; i++)
    {
        const struct name name = hashed_name_of_key(events, &events->key[i]);
        uint64_t at = first_slot_of_hash(events, name.hash);
        while (events->slot[at].key != 0)
            at = (at + 1) & (uint64_t)(events->n_slots - 1);
        events->slot[at].tag = (uint32_t)(name.hash >> 32);
        events->slot[at].key = (uint32_t)i + 1;
    }
}

/* Replaces the hash table by one of n_slots slots that holds all keys. */
static oj_status resize_slots(struct oj_events *events, int64_t n_slots,
                              struct oj_error *err)
{
    struct slot *slots;
    OJ_NEW_ZEROED(slots, n_slots, err);
    oj_free(events->slot);
    events->slot = slots;
    events->n_slots = n_slots;
    insert_all_keys_into_slots(events);
    return OJ_OK;
}

static oj_status copy_text_of_key(struct oj_events *events,
                                  const struct name *name, struct oj_error *err)
{
    if (name->n_text > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the key of a report is longer than 2 GiB: choose "
                       "another key");
    OJ_ROOM(events->text, events->n_text, events->n_text + name->n_text,
            events->cap_text, err);
    memcpy(events->text + events->n_text, name->text, (size_t)name->n_text);
    events->n_text += name->n_text;
    return OJ_OK;
}

/* Adds a key without features and puts it into `slot`. If the table has to grow
 * first, puts the key into a slot of the new table. */
static oj_status add_key(struct oj_events *events, const struct name *name,
                         struct slot *slot, struct oj_error *err)
{
    const int64_t n = events->n_keys;
    struct key *key;
    if (n >= MAX_KEYS)
        return oj_fail(
            err, OJ_ERR_LIMIT,
            "more than %d keys, the maximum, are in one batch or "
            "inside of join features: use fewer keys, or smaller batches",
            MAX_KEYS);
    if (2 * (n + 1) > events->n_slots)
    {
        OJ_TRY(resize_slots(events, 2 * events->n_slots, err));
        slot = find_slot(events, name);
    }
    OJ_ROOM(events->key, n, n + 1, events->cap_keys, err);
    key = &events->key[n];
    memset(key, 0, sizeof *key);
    key->name = name->integer;
    key->capacity = FEW;
    if (name->text != NULL)
    {
        key->name = events->n_text;
        OJ_TRY(copy_text_of_key(events, name, err));
        key->n_text = (int32_t)name->n_text;
    }
    events->n_keys = n + 1;
    slot->tag = (uint32_t)(name->hash >> 32);
    slot->key = (uint32_t)n + 1;
    return OJ_OK;
}

/* Drops keys without features. The other keys and their texts move down, so the
 * slots must be filled again. */
static void drop_empty_keys(struct oj_events *events)
{
    int64_t n = 0, n_text = 0;
    for (int64_t i = 0; i < events->n_keys; i++)
    {
        struct key *key = &events->key[i];
        if (key->n == 0)
        {
            free_features(key);
            continue;
        }
        if (events->rules.has_texts)
        {
            memmove(events->text + n_text, events->text + key->name,
                    (size_t)key->n_text);
            key->name = n_text;
            n_text += key->n_text;
        }
        events->key[n++] = *key;
    }
    events->n_keys = n;
    events->n_text = n_text;
}

/* Before a batch, drops the keys without features if they are at least half of
 * all keys and the keys fill at least a quarter of the slots. Otherwise memory
 * would grow with every vehicle ever seen. */
static void drop_empty_keys_if_many(struct oj_events *events)
{
    const int64_t n_empty = events->n_keys - events->counts.n_inside;
    if (4 * events->n_keys < events->n_slots || 2 * n_empty < events->n_keys)
        return;
    drop_empty_keys(events);
    memset(events->slot, 0, (size_t)events->n_slots * sizeof *events->slot);
    insert_all_keys_into_slots(events);
}

/* ---- the rows of a batch --------------------------------------------------
 */

static int has_location(const struct oj_flat *reports, int64_t row)
{
    return oj_flat_is_points(reports)
               ? !isnan(reports->x[row])
               : reports->part_offset[row] < reports->part_offset[row + 1];
}

static int row_has_key(const struct oj_event_keys *keys, int64_t row)
{
    if (keys->is_null != NULL && keys->is_null[row])
        return 0;
    return keys->integer != NULL || keys->offset[row] < keys->offset[row + 1];
}

/* Gives the batch a number that no key has yet. When the 32-bit number wraps
 * around, the numbers of all keys are reset. */
static void begin_batch(struct oj_events *events)
{
    if (++events->batch != 0)
        return;
    events->batch = 1;
    for (int64_t i = 0; i < events->n_keys; i++)
        events->key[i].batch = 0;
}

/* A batch during the look-up of its keys. */
struct report_batch
{
    const struct oj_event_keys *keys;
    const struct oj_flat *reports;
    const struct oj_matches *pairs;
    struct oj_event_counts counts;
    int64_t n_most; /* upper bound of the number of events: each feature that a
                       key had before the batch can give one exit, each pair of
                       a row one enter and one exit */
};

/* Makes room for the features that the row's key will have after this row. */
static oj_status reserve_features_of_row(struct oj_events *events,
                                         struct report_batch *b, int64_t row,
                                         struct oj_error *err)
{
    const int64_t n =
        oj_matches_end(b->pairs, row) - oj_matches_first(b->pairs, row);
    struct key *key = &events->key[events->row_key[row]];
    if (key->batch != events->batch)
    {
        b->n_most += key->n;
        key->batch = events->batch;
        release_unused_features(key);
    }
    b->n_most += 2 * n;
    return reserve_features(key, n, err);
}

/* A block of rows whose keys are looked up in three steps. Other blocks are
 * handled between the steps, so that prefetched memory arrives in time:
 *
 *   name    hashes each row's key; prefetches its slot
 *   fetch   prefetches the key that the slot refers to
 *   find    finds or adds the key, and makes room for its features */
struct key_block
{
    int64_t first;
    int n;
    struct name name[BLOCK];
};

/* Hashes the keys of the block's rows. Sets row_key to -1 for rows that give no
 * events. */
static void hash_keys_of_block(struct oj_events *events, struct report_batch *b,
                               struct key_block *block)
{
    int32_t *row_key = events->row_key + block->first;
    for (int i = 0; i < block->n; i++)
    {
        const int64_t row = block->first + i;
        const struct name none = {0};
        const int has_key = row_has_key(b->keys, row);
        row_key[i] = has_key && has_location(b->reports, row) ? 0 : -1;
        b->counts.n_without_key += !has_key;
        b->counts.n_without_place += has_key && row_key[i] < 0;
        block->name[i] =
            row_key[i] == 0 ? hashed_name_of_row(b->keys, row) : none;
        __builtin_prefetch(
            &events->slot[first_slot_of_hash(events, block->name[i].hash)]);
    }
}

OJ_INLINE void prefetch_keys_of_block(const struct oj_events *events,
                                      const struct key_block *block)
{
    for (int i = 0; i < block->n; i++)
    {
        const uint32_t key =
            events->slot[first_slot_of_hash(events, block->name[i].hash)].key;
        if (key != 0)
            __builtin_prefetch(&events->key[key - 1]);
    }
}

static oj_status find_keys_of_block(struct oj_events *events,
                                    struct report_batch *b,
                                    const struct key_block *block,
                                    struct oj_error *err)
{
    int32_t *row_key = events->row_key + block->first;
    for (int i = 0; i < block->n; i++)
    {
        struct slot *slot;
        if (row_key[i] < 0)
            continue;
        slot = find_slot(events, &block->name[i]);
        if (slot->key == 0)
        {
            OJ_TRY(add_key(events, &block->name[i], slot, err));
            row_key[i] = (int32_t)events->n_keys - 1;
        }
        else
            row_key[i] = (int32_t)slot->key - 1;
        OJ_TRY(reserve_features_of_row(events, b, block->first + i, err));
    }
    return OJ_OK;
}

static oj_status find_keys_of_batch(struct oj_events *events,
                                    struct report_batch *b,
                                    struct oj_error *err)
{
    const int64_t n = b->pairs->n_rows;
    const int64_t n_blocks = n / BLOCK + (n % BLOCK != 0);
    struct key_block block[3];
    for (int64_t i = 0; i < n_blocks + 2; i++)
    {
        struct key_block *named = &block[i % 3];
        if (i < n_blocks)
        {
            named->first = i * BLOCK;
            named->n =
                (int)(n - named->first < BLOCK ? n - named->first : BLOCK);
            hash_keys_of_block(events, b, named);
        }
        if (i >= 1 && i <= n_blocks)
            prefetch_keys_of_block(events, &block[(i - 1) % 3]);
        if (i >= 2)
            OJ_TRY(find_keys_of_block(events, b, &block[(i - 2) % 3], err));
    }
    return OJ_OK;
}

/* ---- events ---------------------------------------------------------------
 */

/* A report with its pairs, and where its events are written. */
struct report
{
    const int32_t *feature; /* [n] */
    const double *measure;  /* [n] */
    int64_t n;
    struct oj_event_rows *out;
    int64_t at; /* index in out of the next event */
};

static void append_event(struct report *r, enum oj_event event, int32_t feature,
                         double measure)
{
    const int64_t at = r->at++;
    r->out->rows.join_row[at] = feature;
    r->out->rows.measure[at] = measure;
    r->out->kind[at] = (uint8_t)event;
}

static int32_t tie_rank_of_feature(const struct oj_events *events,
                                   int32_t feature)
{
    return events->tie_rank != NULL ? events->tie_rank[feature] : feature;
}

/* Adds an exit for each feature of the key that is not in a pair of the
 * report. */
static void append_exits(const struct oj_events *events, const int32_t *before,
                         int64_t n_before, struct report *r)
{
    int64_t now = 0;
    for (int64_t i = 0; i < n_before; i++)
    {
        const int32_t rank = tie_rank_of_feature(events, before[i]);
        while (now < r->n &&
               tie_rank_of_feature(events, r->feature[now]) < rank)
            now++;
        if (now == r->n || r->feature[now] != before[i])
            append_event(r, OJ_EVENT_EXIT, before[i], (double)NAN);
    }
}

/* Appends events of one kind for pairs of the report: OJ_EVENT_STAY for those
 * whose feature the key had before, or OJ_EVENT_ENTER for the others. */
static void append_events_of_pairs(const struct oj_events *events,
                                   const int32_t *before, int64_t n_before,
                                   enum oj_event event, struct report *r)
{
    int64_t i = 0;
    for (int64_t now = 0; now < r->n; now++)
    {
        const int32_t rank = tie_rank_of_feature(events, r->feature[now]);
        while (i < n_before && tie_rank_of_feature(events, before[i]) < rank)
            i++;
        if ((i < n_before && before[i] == r->feature[now]) ==
            (event == OJ_EVENT_STAY))
            append_event(r, event, r->feature[now], r->measure[now]);
    }
}

static void append_nearest_event(const struct oj_events *events,
                                 struct key *key, struct report *r)
{
    const int32_t before = key->n > 0 ? features_of_key(key)[0] : -1;
    const int32_t now = r->n > 0 ? r->feature[0] : -1;
    const double measure = r->n > 0 ? r->measure[0] : (double)NAN;
    if (now != before)
        append_event(r, OJ_EVENT_CHANGE, now, measure);
    else if (events->rules.with_stays && now >= 0)
        append_event(r, OJ_EVENT_STAY, now, measure);
}

/* Returns 1 if n features are equal in a and b. A loop, because a call of
 * memcmp() costs more for the few features of a key. */
static inline int are_features_equal(const int32_t *a, const int32_t *b,
                                     int64_t n)
{
    int64_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i == n;
}

static void append_events_of_report(const struct oj_events *events,
                                    struct key *key, struct report *r)
{
    const int32_t *before = features_of_key(key);
    const int64_t n = key->n;
    const int is_equal = n == r->n && are_features_equal(before, r->feature, n);
    if (events->rules.is_nearest)
    {
        append_nearest_event(events, key, r);
        return;
    }
    if (!is_equal)
    {
        append_exits(events, before, n, r);
        append_events_of_pairs(events, before, n, OJ_EVENT_ENTER, r);
    }
    if (events->rules.with_stays)
        append_events_of_pairs(events, before, n, OJ_EVENT_STAY, r);
}

/* Appends the events of all rows to out. Cannot fail, because
 * oj_events_prepare() has allocated all memory. */
static void append_events_of_rows(struct oj_events *events,
                                  const struct oj_matches *pairs,
                                  struct oj_event_rows *out)
{
    struct report r = {0};
    r.out = out;
    for (int64_t row = 0; row < pairs->n_rows; row++)
    {
        const int64_t first = oj_matches_first(pairs, row);
        struct key *key;
        out->rows.offset[row] = r.at;
        if (row + BLOCK < pairs->n_rows && events->row_key[row + BLOCK] >= 0)
            __builtin_prefetch(&events->key[events->row_key[row + BLOCK]]);
        if (events->row_key[row] < 0)
            continue;
        key = &events->key[events->row_key[row]];
        r.feature = pairs->join_row + first;
        r.measure = pairs->measure + first;
        r.n = oj_matches_end(pairs, row) - first;
        append_events_of_report(events, key, &r);
        events->counts.n_inside += (r.n > 0) - (key->n > 0);
        set_features_of_key(key, r.feature, r.n);
        out->rows.n_matched += r.at > out->rows.offset[row];
    }
    out->rows.offset[pairs->n_rows] = r.at;
    out->rows.n_entries = out->rows.n_pairs = r.at;
    for (int64_t i = 0; i < r.at; i++)
        events->counts.n_events[out->kind[i]]++;
}

oj_status oj_events_prepare(struct oj_events *events,
                            const struct oj_event_keys *keys,
                            const struct oj_flat *reports,
                            const struct oj_matches *pairs,
                            struct oj_event_rows *out, int64_t *n_most,
                            struct oj_error *err)
{
    const int64_t n = pairs->n_rows;
    struct report_batch b = {.keys = keys, .reports = reports, .pairs = pairs};
    if ((keys->integer == NULL) != events->rules.has_texts)
        return oj_fail(err, OJ_ERR_ARG,
                       "keys are integers in some batches of reports and texts "
                       "in others: give keys of one kind");
    if (reports->n_features != n)
        return oj_fail_internal(
            err, "pairs of %lld rows for a batch of %lld reports", (long long)n,
            (long long)reports->n_features);
    drop_empty_keys_if_many(events);
    OJ_ROOM(events->row_key, 0, n, events->cap_row_key, err);
    begin_batch(events);
    OJ_TRY(find_keys_of_batch(events, &b, err));
    events->found = b.counts;
    *n_most = events->rules.is_nearest ? n : b.n_most;
    OJ_TRY(oj_matches_reserve(&out->rows, n, *n_most, 1, err));
    OJ_ROOM(out->kind, 0, *n_most, out->cap_kind, err);
    return OJ_OK;
}

void oj_events_append_prepared(struct oj_events *events,
                               const struct oj_matches *pairs,
                               struct oj_event_rows *out)
{
    append_events_of_rows(events, pairs, out);
    events->counts.n_reports += pairs->n_rows;
    events->counts.n_without_key += events->found.n_without_key;
    events->counts.n_without_place += events->found.n_without_place;
}

oj_status oj_events_add(struct oj_events *events,
                        const struct oj_event_keys *keys,
                        const struct oj_flat *reports,
                        const struct oj_matches *pairs,
                        struct oj_event_rows *out, struct oj_error *err)
{
    int64_t n_most;
    OJ_TRY(oj_events_prepare(events, keys, reports, pairs, out, &n_most, err));
    oj_events_append_prepared(events, pairs, out);
    return OJ_OK;
}

/* ---- creation and counts --------------------------------------------------
 */

oj_status oj_events_new(const struct oj_event_rules *rules, int64_t n_features,
                        const int32_t *tie_rank, struct oj_events **out,
                        struct oj_error *err)
{
    struct oj_events *events;
    oj_status status;
    OJ_NEW_ZEROED(events, 1, err);
    events->rules = *rules;
    events->n_features = n_features;
    events->tie_rank = tie_rank;
    status = resize_slots(events, FIRST_SLOTS, err);
    if (status == OJ_OK)
        *out = events;
    else
        oj_events_free(events);
    return status;
}

void oj_events_free(struct oj_events *events)
{
    if (events == NULL)
        return;
    for (int64_t i = 0; i < events->n_keys; i++)
        free_features(&events->key[i]);
    oj_free(events->key);
    oj_free(events->slot);
    oj_free(events->text);
    oj_free(events->row_key);
    oj_free(events);
}

void oj_events_count(const struct oj_events *events,
                     struct oj_event_counts *counts)
{
    *counts = events->counts;
}

const struct oj_event_rules *oj_events_rules(const struct oj_events *events)
{
    return &events->rules;
}

/* ---- keys one by one ------------------------------------------------------
 */

int oj_events_next_key(const struct oj_events *events, int64_t *at,
                       struct oj_event_key *out)
{
    for (; *at < events->n_keys; ++*at)
    {
        struct key *key = &events->key[*at];
        if (key->n == 0)
            continue;
        out->integer = key->name;
        out->text = events->rules.has_texts ? events->text + key->name : NULL;
        out->n_text = key->n_text;
        out->n = key->n;
        out->feature = features_of_key(key);
        ++*at;
        return 1;
    }
    return 0;
}

static oj_status check_features_of_key(const struct oj_events *events,
                                       const struct oj_event_key *key,
                                       struct oj_error *err)
{
    int is_good = key->n > 0 && (key->n == 1 || !events->rules.is_nearest);
    for (int32_t i = 0; i < key->n && is_good; i++)
        is_good = key->feature[i] >= 0 &&
                  key->feature[i] < events->n_features &&
                  (i == 0 || tie_rank_of_feature(events, key->feature[i - 1]) <
                                 tie_rank_of_feature(events, key->feature[i]));
    if (is_good)
        return OJ_OK;
    return oj_fail(
        err, OJ_ERR_DATA,
        "the features of a key are out of range or not in ascending order");
}

oj_status oj_events_add_key(struct oj_events *events,
                            const struct oj_event_key *key,
                            struct oj_error *err)
{
    struct name name = {0};
    struct slot *slot;
    struct key *added;
    OJ_TRY(check_features_of_key(events, key, err));
    name.integer = key->integer;
    name.text = key->text;
    name.n_text = key->n_text;
    name.hash = key->text != NULL ? hash_text(key->text, key->n_text)
                                  : hash_integer(key->integer);
    slot = find_slot(events, &name);
    if (slot->key != 0)
        return oj_fail(err, OJ_ERR_DATA, "a key occurs in it twice");
    OJ_TRY(add_key(events, &name, slot, err));
    added = &events->key[events->n_keys - 1];
    OJ_TRY(reserve_features(added, key->n, err));
    set_features_of_key(added, key->feature, key->n);
    events->counts.n_inside++;
    return OJ_OK;
}
