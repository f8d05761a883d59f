#include "oj_event_state.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_hash_mix.h"
#include "../../../flatten/base/oj_temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = {'O', 'G', 'R', 'J', 'E', 'V', 'T', '1'};

static const uint64_t seed = UINT64_C(0x13198A2E03707344);

/* ---- the join features ----------------------------------------------------
 */

static int64_t fid_of_feature(const struct oj_flat *join, int64_t feature)
{
    return join->fid != NULL ? join->fid[feature] : feature;
}

static uint64_t hash_vertices(uint64_t hash, const struct oj_flat *flat,
                              int64_t first, int64_t end)
{
    const int64_t n = end - first;
    hash = oj_hash_mix(hash, &n);
    for (int64_t v = first; v < end; v++)
    {
        hash = oj_hash_mix(hash, &flat->x[v]);
        hash = oj_hash_mix(hash, &flat->y[v]);
    }
    return hash;
}

/* Returns the hash extended by a feature: its FID, maximum distance, parts,
 * rings and vertices. A point has one hash in both forms of a layer (with and
 * without part offsets). */
static uint64_t hash_feature(uint64_t hash, const struct oj_flat *flat,
                             int64_t feature)
{
    const int64_t fid = fid_of_feature(flat, feature);
    hash = oj_hash_mix(hash, &fid);
    if (flat->max_distance != NULL)
        hash = oj_hash_mix(hash, &flat->max_distance[feature]);
    if (oj_flat_is_points(flat))
    {
        int64_t first, end, kind = OJ_PART_POINT;
        oj_flat_vertex_range(flat, feature, &first, &end);
        return first == end
                   ? hash
                   : hash_vertices(oj_hash_mix(hash, &kind), flat, first, end);
    }
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        const int64_t kind = flat->part_kind[p];
        hash = oj_hash_mix(hash, &kind);
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
            hash = hash_vertices(hash, flat, flat->vertex_offset[r],
                                 flat->vertex_offset[r + 1]);
    }
    return hash;
}

static uint64_t fingerprint_of_layer(const struct oj_flat *join)
{
    uint64_t hash = seed;
    for (int64_t i = 0; i < join->n_features; i++)
        hash = hash_feature(hash, join, i);
    return hash;
}

/* Entry of the index from FIDs to join features. */
struct named_feature
{
    int64_t fid;
    int32_t feature;
};

static int compare_fids(const void *a, const void *b)
{
    const int64_t x = ((const struct named_feature *)a)->fid;
    const int64_t y = ((const struct named_feature *)b)->fid;
    return (x > y) - (x < y);
}

/* Makes an array of all join features with their FIDs, ascending by FID. The
 * caller frees *out with oj_free(). */
static oj_status sort_by_fid(const struct oj_flat *join,
                             struct named_feature **out, struct oj_error *err)
{
    const int64_t n = join->n_features;
    struct named_feature *named;
    OJ_NEW(named, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        named[i].fid = fid_of_feature(join, i);
        named[i].feature = (int32_t)i;
    }
    qsort(named, (size_t)n, sizeof *named, compare_fids);
    for (int64_t i = 1; i < n; i++)
    {
        const int64_t fid = named[i].fid;
        if (named[i - 1].fid != fid)
            continue;
        oj_free(named);
        return oj_fail(err, OJ_ERR_ARG,
                       "events with a state need unique FIDs in the join "
                       "layer, but several of its features have the FID %lld: "
                       "give each its own",
                       (long long)fid);
    }
    *out = named;
    return OJ_OK;
}

oj_status oj_event_state_check_unique_fids(const struct oj_event_state *state,
                                           struct oj_error *err)
{
    struct named_feature *named;
    OJ_TRY(sort_by_fid(state->join, &named, err));
    oj_free(named);
    return OJ_OK;
}

/* ---- bytes ----------------------------------------------------------------
 */

/* Hashes 8 bytes at a time; the last bytes are padded with zeros. */
static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, int64_t n)
{
    uint8_t last[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        hash = oj_hash_mix(hash, bytes + i);
    if (i == n)
        return hash;
    memcpy(last, bytes + i, (size_t)(n - i));
    return oj_hash_mix(hash, last);
}

static void write_number(uint64_t number, int n_bytes, uint8_t *bytes)
{
    for (int i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
}

static uint64_t read_number(const uint8_t *bytes, int n_bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < n_bytes; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

/* ---- writing --------------------------------------------------------------
 */

/* Buffered output of a state file. The hash reads 8 bytes at a time, so a full
 * buffer must hold a multiple of 8 bytes. Write errors stay in the FILE
 * (ferror). */
struct state_output
{
    FILE *file;
    uint64_t hash;
    size_t n; /* bytes in use */
    uint8_t bytes[65536];
};

static void flush_output(struct state_output *o)
{
    o->hash = hash_bytes(o->hash, o->bytes, (int64_t)o->n);
    (void)fwrite(o->bytes, 1, o->n, o->file);
    o->n = 0;
}

static void output_bytes(struct state_output *o, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    while (n > 0)
    {
        const size_t room = sizeof o->bytes - o->n;
        const size_t now = n < room ? n : room;
        memcpy(o->bytes + o->n, at, now);
        o->n += now;
        at += now;
        n -= now;
        if (o->n == sizeof o->bytes)
            flush_output(o);
    }
}

static void output_number(struct state_output *o, uint64_t number, int n_bytes)
{
    uint8_t bytes[8];
    write_number(number, n_bytes, bytes);
    output_bytes(o, bytes, (size_t)n_bytes);
}

static void output_text(struct state_output *o, const char *text, int64_t n)
{
    output_number(o, (uint64_t)n, 4);
    output_bytes(o, text, (size_t)n);
}

static void output_key(struct state_output *o, const struct oj_event_key *key,
                       const struct oj_flat *join)
{
    if (key->text != NULL)
        output_text(o, key->text, key->n_text);
    else
        output_number(o, (uint64_t)key->integer, 8);
    output_number(o, (uint64_t)key->n, 4);
    for (int32_t i = 0; i < key->n; i++)
        output_number(o, (uint64_t)fid_of_feature(join, key->feature[i]), 8);
}

void oj_event_state_write(FILE *file, const void *user)
{
    const struct oj_event_state_to_write *w = user;
    const struct oj_event_state *state = w->state;
    struct state_output o = {0};
    struct oj_event_counts counts;
    struct oj_event_key key;
    int64_t at = 0;
    uint8_t hash[8];
    o.file = file;
    o.hash = seed;
    oj_events_count(w->events, &counts);
    output_bytes(&o, magic, sizeof magic);
    output_number(&o, fingerprint_of_layer(state->join), 8);
    output_number(&o, (uint64_t)state->join->n_features, 8);
    output_number(&o, (uint64_t)oj_events_rules(w->events)->has_texts, 4);
    output_text(&o, state->options, (int64_t)strlen(state->options));
    output_number(&o, (uint64_t)counts.n_inside, 8);
    while (oj_events_next_key(w->events, &at, &key))
        output_key(&o, &key, state->join);
    flush_output(&o);
    write_number(o.hash, 8, hash);
    (void)fwrite(hash, 1, sizeof hash, file);
}

/* ---- reading --------------------------------------------------------------
 */

/* The bytes of a state file, read from start to end. */
struct state_input
{
    const uint8_t *at;
    int64_t n; /* bytes not yet read */
    const char *path;
    const struct oj_event_state *state;
    struct oj_events *events;
    struct named_feature *named;
    int32_t *feature; /* [cap_feature] features of the current key */
    int64_t cap_feature;
};

static oj_status fail_damaged(const struct state_input *in, const char *why,
                              struct oj_error *err)
{
    return oj_fail(
        err, OJ_ERR_DATA,
        "the state file %s is damaged (%s): remove it, or restore a copy",
        in->path, why);
}

static oj_status fail_truncated(const struct state_input *in,
                                struct oj_error *err)
{
    return fail_damaged(in, "it ends too early", err);
}

static oj_status read_next_bytes(struct state_input *in, int64_t n,
                                 const uint8_t **bytes, struct oj_error *err)
{
    if (n > in->n)
        return fail_truncated(in, err);
    *bytes = in->at;
    in->at += n;
    in->n -= n;
    return OJ_OK;
}

static oj_status read_next_number(struct state_input *in, int n_bytes,
                                  uint64_t *number, struct oj_error *err)
{
    const uint8_t *bytes = NULL;
    OJ_TRY(read_next_bytes(in, n_bytes, &bytes, err));
    *number = read_number(bytes, n_bytes);
    return OJ_OK;
}

static oj_status read_next_text(struct state_input *in, const char **text,
                                int64_t *n, struct oj_error *err)
{
    const uint8_t *bytes = NULL;
    uint64_t length;
    OJ_TRY(read_next_number(in, 4, &length, err));
    OJ_TRY(read_next_bytes(in, (int64_t)length, &bytes, err));
    *text = (const char *)bytes;
    *n = (int64_t)length;
    return OJ_OK;
}

/* Checks magic number and hash, and skips both. */
static oj_status check_magic_and_hash(struct state_input *in,
                                      struct oj_error *err)
{
    const uint8_t *bytes = NULL;
    if (in->n < (int64_t)sizeof magic ||
        memcmp(in->at, magic, sizeof magic) != 0)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s is not a state file of events: name another file",
                       in->path);
    if (in->n < (int64_t)sizeof magic + 8)
        return fail_truncated(in, err);
    in->n -= 8;
    if (hash_bytes(seed, in->at, in->n) != read_number(in->at + in->n, 8))
        return fail_damaged(in, "its checksum does not match its content", err);
    return read_next_bytes(in, (int64_t)sizeof magic, &bytes, err);
}

/* Fails because the state was written with other options. The quoted text comes
 * from the file, so unprintable bytes are replaced. */
static oj_status fail_options(const struct state_input *in, const char *text,
                              int64_t n, struct oj_error *err)
{
    char shown[400];
    int64_t i = 0;
    for (; i < n && i + 1 < (int64_t)sizeof shown; i++)
        shown[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    shown[i] = '\0';
    return oj_fail(err, OJ_ERR_ARG,
                   "the state file %s was written with other options (%s) than "
                   "these (%.400s): use those options, or another state file",
                   in->path, shown, in->state->options);
}

static oj_status check_options(struct state_input *in, struct oj_error *err)
{
    const char *options = in->state->options, *text;
    uint64_t has_texts;
    int64_t n;
    OJ_TRY(read_next_number(in, 4, &has_texts, err));
    OJ_TRY(read_next_text(in, &text, &n, err));
    if (n != (int64_t)strlen(options) || memcmp(text, options, (size_t)n) != 0)
        return fail_options(in, text, n, err);
    if ((has_texts != 0) != (oj_events_rules(in->events)->has_texts != 0))
        return oj_fail(
            err, OJ_ERR_ARG,
            "the keys in the state file %s are %s, but the keys of the reports "
            "are %s: use the other kind of field as key, or another state file",
            in->path, has_texts ? "texts" : "integers",
            has_texts ? "integers" : "texts");
    return OJ_OK;
}

static oj_status check_join_features(struct state_input *in,
                                     struct oj_error *err)
{
    const struct oj_flat *join = in->state->join;
    uint64_t fingerprint, n;
    OJ_TRY(read_next_number(in, 8, &fingerprint, err));
    OJ_TRY(read_next_number(in, 8, &n, err));
    if (n != (uint64_t)join->n_features)
        return oj_fail(err, OJ_ERR_ARG,
                       "the state file %s was written with another join layer, "
                       "of %llu features (this one has %lld): use that layer, "
                       "or another state file",
                       in->path, (unsigned long long)n,
                       (long long)join->n_features);
    if (fingerprint != fingerprint_of_layer(join))
        return oj_fail(
            err, OJ_ERR_ARG,
            "the state file %s was written with another join layer, with other "
            "FIDs or geometries: use that layer, or another state file",
            in->path);
    return OJ_OK;
}

static oj_status find_feature(const struct state_input *in, int64_t fid,
                              int32_t *feature, struct oj_error *err)
{
    const struct named_feature wanted = {fid, 0};
    const struct named_feature *found =
        bsearch(&wanted, in->named, (size_t)in->state->join->n_features,
                sizeof wanted, compare_fids);
    if (found == NULL)
        return fail_damaged(in, "it contains a FID that no join feature has",
                            err);
    *feature = found->feature;
    return OJ_OK;
}

static oj_status read_key(struct state_input *in, struct oj_error *err)
{
    struct oj_event_key key = {0};
    struct oj_error reason;
    uint64_t number;
    oj_status status;
    if (oj_events_rules(in->events)->has_texts)
        OJ_TRY(read_next_text(in, &key.text, &key.n_text, err));
    else
    {
        OJ_TRY(read_next_number(in, 8, &number, err));
        key.integer = (int64_t)number;
    }
    OJ_TRY(read_next_number(in, 4, &number, err));
    if ((int64_t)number > in->n / 8)
        return fail_truncated(in, err);
    key.n = (int32_t)number;
    OJ_ROOM(in->feature, 0, key.n, in->cap_feature, err);
    for (int32_t i = 0; i < key.n; i++)
    {
        OJ_TRY(read_next_number(in, 8, &number, err));
        OJ_TRY(find_feature(in, (int64_t)number, &in->feature[i], err));
    }
    key.feature = in->feature;
    status = oj_events_add_key(in->events, &key, &reason);
    if (status == OJ_ERR_DATA)
        return fail_damaged(in, reason.message, err);
    return status == OJ_OK ? OJ_OK : oj_fail(err, status, "%s", reason.message);
}

static oj_status read_keys(struct state_input *in, struct oj_error *err)
{
    uint64_t n_keys;
    OJ_TRY(read_next_number(in, 8, &n_keys, err));
    for (uint64_t i = 0; i < n_keys; i++)
        OJ_TRY(read_key(in, err));
    return in->n == 0 ? OJ_OK
                      : fail_damaged(in, "bytes follow its last key", err);
}

oj_status oj_event_state_read(const uint8_t *bytes, int64_t n, const char *path,
                              const struct oj_event_state *state,
                              struct oj_events *events, struct oj_error *err)
{
    struct state_input in = {0};
    oj_status status;
    in.at = bytes;
    in.n = n;
    in.path = path;
    in.state = state;
    in.events = events;
    OJ_TRY(check_magic_and_hash(&in, err));
    OJ_TRY(check_join_features(&in, err));
    OJ_TRY(check_options(&in, err));
    OJ_TRY(sort_by_fid(state->join, &in.named, err));
    status = read_keys(&in, err);
    oj_free(in.named);
    oj_free(in.feature);
    return status;
}

static oj_status fail_file(const char *path, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO, "the state file %s cannot be read: %s", path,
                   strerror(errno));
}

/* Reads the state from an open file descriptor. */
static oj_status read_file(int file, const char *path,
                           const struct oj_event_state *state,
                           struct oj_events *events, struct oj_error *err)
{
    struct stat found;
    uint8_t *bytes;
    oj_status status;
    if (fstat(file, &found) != 0)
        return fail_file(path, err);
    if (!S_ISREG(found.st_mode))
        return oj_fail(err, OJ_ERR_ARG,
                       "the state file %s is not a regular file: name a file",
                       path);
    OJ_NEW(bytes, (int64_t)found.st_size, err);
    if (oj_read_at(file, 0, bytes, (int64_t)found.st_size) != 0)
        status = fail_file(path, err);
    else
        status = oj_event_state_read(bytes, (int64_t)found.st_size, path, state,
                                     events, err);
    oj_free(bytes);
    return status;
}

oj_status oj_event_state_load(const char *path,
                              const struct oj_event_state *state,
                              struct oj_events *events, int *is_there,
                              struct oj_error *err)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    oj_status status;
    *is_there = file >= 0;
    if (file < 0)
        return errno == ENOENT ? OJ_OK : fail_file(path, err);
    status = read_file(file, path, state, events, err);
    close(file);
    return status;
}
