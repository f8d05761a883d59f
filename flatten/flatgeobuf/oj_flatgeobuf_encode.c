#include "oj_flatgeobuf_encode.h"

#include "../arrays/oj_wkb.h"
#include "../base/oj_array.h"
#include "oj_flatbuffer.h"
#include "oj_flatgeobuf_format.h"

#include <math.h>

/* Most bytes of a feature. */
#define MOST_BYTES 2147483647LL

/* ---- bytes ----------------------------------------------------------------
 */

oj_status oj_fgb_room(struct oj_fgb_bytes *to, int64_t n, struct oj_error *err)
{
    if (n > MOST_BYTES)
        return oj_fail(err, OJ_ERR_LIMIT, "a feature takes more than 2 GiB");
    return oj_reserve(&to->at, to->n, to->n + n, &to->cap, 1, err);
}

static void set16(uint8_t *to, int64_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static void set32(uint8_t *to, int64_t value)
{
    set16(to, value);
    set16(to + 2, value >> 16);
}

/* n zero bytes, and more before them, until n_before bytes after the first is a
 * multiple of align. */
static oj_status grow(struct oj_fgb_bytes *to, int64_t n, int64_t n_before,
                      int64_t align, int64_t *at, struct oj_error *err)
{
    int64_t pad = (align - (to->n + n_before) % align) % align;
    OJ_TRY(oj_fgb_room(to, pad + n, err));
    memset(to->at + to->n, 0, (size_t)(pad + n));
    *at = to->n + pad;
    to->n += pad + n;
    return OJ_OK;
}

static oj_status append(struct oj_fgb_bytes *to, const void *bytes, int64_t n,
                        struct oj_error *err)
{
    OJ_TRY(oj_fgb_room(to, n, err));
    if (n > 0)
        memcpy(to->at + to->n, bytes, (size_t)n);
    to->n += n;
    return OJ_OK;
}

oj_status oj_fgb_add_bytes(struct oj_fgb_encoder *encoder, int column,
                           const void *bytes, int64_t n, struct oj_error *err)
{
    uint8_t size[4];
    if (n > MOST_BYTES)
        return oj_fail(err, OJ_ERR_LIMIT, "a value takes more than 2 GiB");
    set32(size, n);
    OJ_TRY(oj_fgb_add_number(encoder, column, size, 4, err));
    return append(&encoder->properties, bytes, n, err);
}

/* ---- well-known binary ----------------------------------------------------
 */

int oj_fgb_wkb_type(const uint8_t *wkb)
{
    return (int)oj_le32(wkb + 1);
}

/* A place in WKB, and what the vertices there hold. */
struct wkb_place
{
    const uint8_t *at;
    int type, n_values, has_z, has_m;
};

static void enter(struct wkb_place *wkb)
{
    int type = oj_fgb_wkb_type(wkb->at);
    wkb->type = type % 1000;
    wkb->has_z = type / 1000 == 1 || type / 1000 == 3;
    wkb->has_m = type / 1000 >= 2;
    wkb->n_values = 2 + wkb->has_z + wkb->has_m;
    wkb->at += 5;
}

static int64_t take_count(struct wkb_place *wkb)
{
    int64_t n = oj_le32(wkb->at);
    wkb->at += 4;
    return n;
}

static int has_parts(int type)
{
    return type > OJ_FGB_MULTILINE && type != OJ_FGB_CIRCULAR &&
           type != OJ_FGB_TIN && type != OJ_FGB_TRIANGLE;
}

/* Vertices of the geometry at wkb, which goes behind it. */
static int64_t skip(struct wkb_place *wkb)
{
    struct oj_wkb_walk walk = {.at = wkb->at};
    oj_wkb_pass(&walk);
    wkb->at = walk.at;
    return walk.n_vertices;
}

static int64_t n_vertices_of(const uint8_t *at)
{
    struct wkb_place wkb = {.at = at};
    return skip(&wkb);
}

/* ---- geometries ------------------------------------------------------------
 */

/* A table with these fields, if any, 4 bytes each; place[slot] is where the
 * field is. */
static oj_status make_table(struct oj_fgb_bytes *to, const int *slots,
                            int n_slots, int64_t *table, int64_t *place,
                            struct oj_error *err)
{
    int last = n_slots > 0 ? slots[n_slots - 1] : -1;
    int64_t vtable;
    OJ_TRY(grow(to, 4 + 2 * (last + 1), 4 + 2 * (last + 1), 4, &vtable, err));
    set16(to->at + vtable, 4 + 2 * (last + 1));
    set16(to->at + vtable + 2, 4 + 4 * n_slots);
    for (int i = 0; i < n_slots; i++)
        set16(to->at + vtable + 4 + 2 * slots[i], 4 + 4 * i);
    OJ_TRY(grow(to, 4 + 4 * n_slots, 0, 4, table, err));
    set32(to->at + *table, *table - vtable);
    for (int i = 0; i < n_slots; i++)
        place[slots[i]] = *table + 4 + 4 * i;
    return OJ_OK;
}

/* A vector of n elements that the field at place points at; *at: the first. */
static oj_status make_vector(struct oj_fgb_bytes *to, int64_t place, int64_t n,
                             int size, int64_t *at, struct oj_error *err)
{
    int64_t vector;
    OJ_TRY(grow(to, 4 + n * size, 4, size > 4 ? 8 : 4, &vector, err));
    set32(to->at + place, vector - place);
    set32(to->at + vector, n);
    *at = vector + 4;
    return OJ_OK;
}

/* Where the vertices of one geometry go. */
struct vertex_target
{
    struct oj_fgb_encoder *encoder;
    int64_t xy, z, m, ends; /* the next of each */
    int64_t n;              /* so far */
};

static void put_vertices(struct vertex_target *v, struct wkb_place *wkb,
                         int64_t n)
{
    uint8_t *to = v->encoder->bytes.at;
    double *box = v->encoder->latest.box;
    for (int64_t i = 0; i < n; i++)
    {
        double x = oj_wkb_double(wkb->at), y = oj_wkb_double(wkb->at + 8);
        box[0] = x < box[0] ? x : box[0];
        box[1] = y < box[1] ? y : box[1];
        box[2] = x > box[2] ? x : box[2];
        box[3] = y > box[3] ? y : box[3];
        memcpy(to + v->xy, wkb->at, 16);
        v->xy += 16;
        if (v->z != 0 && wkb->has_z)
            memcpy(to + v->z + 8 * (v->n + i), wkb->at + 16, 8);
        if (v->m != 0 && wkb->has_m)
            memcpy(to + v->m + 8 * (v->n + i), wkb->at + 8 * wkb->n_values - 8,
                   8);
        wkb->at += 8 * wkb->n_values;
    }
    v->n += n;
}

static void put_run(struct vertex_target *v, struct wkb_place *wkb)
{
    put_vertices(v, wkb, take_count(wkb));
    if (v->ends == 0)
        return;
    set32(v->encoder->bytes.at + v->ends, v->n);
    v->ends += 4;
}

/* Those of a geometry without parts, whose count was taken. */
static void put_members(struct vertex_target *v, struct wkb_place *wkb,
                        int64_t n)
{
    for (int64_t i = 0; i < n; i++)
    {
        struct wkb_place member = {.at = wkb->at};
        if (wkb->type == OJ_FGB_POLYGON || wkb->type == OJ_FGB_TRIANGLE)
        {
            put_run(v, wkb);
            continue;
        }
        if (n_vertices_of(wkb->at) == 0)
        {
            (void)skip(wkb);
            continue;
        }
        enter(&member);
        if (member.type == OJ_FGB_POINT)
            put_vertices(v, &member, 1);
        else
        {
            if (member.type == OJ_FGB_TRIANGLE)
                (void)take_count(&member);
            put_run(v, &member);
        }
        wkb->at = member.at;
    }
}

/* Members that are not empty; rings of a polygon all count. */
static int64_t count_members(const struct wkb_place *wkb, int64_t n)
{
    struct wkb_place member = {.at = wkb->at};
    int64_t n_full = 0;
    if (wkb->type == OJ_FGB_POLYGON || wkb->type == OJ_FGB_TRIANGLE)
        return n;
    for (int64_t i = 0; i < n; i++)
        n_full += skip(&member) > 0;
    return n_full;
}

static oj_status put_simple(struct oj_fgb_encoder *encoder,
                            struct wkb_place *wkb, int64_t n_vertices,
                            const int64_t *place, int64_t n_members,
                            int64_t n_ends, struct oj_error *err)
{
    struct vertex_target v = {encoder, 0, 0, 0, 0, 0};
    struct oj_fgb_bytes *to = &encoder->bytes;
    if (n_ends > 0)
        OJ_TRY(make_vector(to, place[OJ_FGB_ENDS], n_ends, 4, &v.ends, err));
    OJ_TRY(make_vector(to, place[OJ_FGB_XY], 2 * n_vertices, 8, &v.xy, err));
    if (encoder->layout.has_z)
        OJ_TRY(make_vector(to, place[OJ_FGB_Z], n_vertices, 8, &v.z, err));
    if (encoder->layout.has_m)
        OJ_TRY(make_vector(to, place[OJ_FGB_M], n_vertices, 8, &v.m, err));
    if (wkb->type == OJ_FGB_POINT)
        put_vertices(&v, wkb, 1);
    else if (wkb->type == OJ_FGB_LINE || wkb->type == OJ_FGB_CIRCULAR)
        put_vertices(&v, wkb, n_members);
    else
        put_members(&v, wkb, n_members);
    return OJ_OK;
}

static oj_status put_geometry(struct oj_fgb_encoder *encoder,
                              struct wkb_place *wkb, int is_part,
                              int64_t *table, struct oj_error *err);

static oj_status put_parts(struct oj_fgb_encoder *encoder,
                           struct wkb_place *wkb, int64_t place, int64_t n,
                           struct oj_error *err)
{
    struct oj_fgb_bytes *to = &encoder->bytes;
    int64_t at;
    OJ_TRY(make_vector(to, place, count_members(wkb, n), 4, &at, err));
    for (int64_t i = 0; i < n; i++)
    {
        struct wkb_place part = {.at = wkb->at};
        int64_t table;
        if (n_vertices_of(wkb->at) == 0)
        {
            (void)skip(wkb);
            continue;
        }
        OJ_TRY(put_geometry(encoder, &part, 1, &table, err));
        set32(to->at + at, table - at);
        at += 4;
        wkb->at = part.at;
    }
    return OJ_OK;
}

/* One that has vertices. */
static oj_status put_geometry(struct oj_fgb_encoder *encoder,
                              struct wkb_place *wkb, int is_part,
                              int64_t *table, struct oj_error *err)
{
    int slots[OJ_FGB_GEOMETRY_FIELDS], n_slots = 0, parts;
    int64_t place[OJ_FGB_GEOMETRY_FIELDS] = {0}, n_members = 0, n_ends = 0;
    int64_t n_vertices = n_vertices_of(wkb->at);
    enter(wkb);
    parts = has_parts(wkb->type);
    if (wkb->type != OJ_FGB_POINT)
        n_members = take_count(wkb);
    if (!parts && wkb->type != OJ_FGB_POINT && wkb->type != OJ_FGB_LINE &&
        wkb->type != OJ_FGB_CIRCULAR && wkb->type != OJ_FGB_MULTIPOINT)
        n_ends = count_members(wkb, n_members);
    if (n_ends == 1) /* it has all vertices */
        n_ends = 0;
    if (n_ends > 0)
        slots[n_slots++] = OJ_FGB_ENDS;
    if (!parts)
        slots[n_slots++] = OJ_FGB_XY;
    if (!parts && encoder->layout.has_z)
        slots[n_slots++] = OJ_FGB_Z;
    if (!parts && encoder->layout.has_m)
        slots[n_slots++] = OJ_FGB_M;
    if (is_part || !encoder->layout.is_typed || parts)
        slots[n_slots++] = OJ_FGB_TYPE;
    if (parts)
        slots[n_slots++] = OJ_FGB_PARTS;
    OJ_TRY(make_table(&encoder->bytes, slots, n_slots, table, place, err));
    if (place[OJ_FGB_TYPE] != 0)
        encoder->bytes.at[place[OJ_FGB_TYPE]] = (uint8_t)wkb->type;
    encoder->has_curves |=
        wkb->type >= OJ_FGB_CIRCULAR && wkb->type <= OJ_FGB_MULTISURFACE;
    if (parts)
        return put_parts(encoder, wkb, place[OJ_FGB_PARTS], n_members, err);
    return put_simple(encoder, wkb, n_vertices, place, n_members, n_ends, err);
}

/* ---- features --------------------------------------------------------------
 */

/* The size of the feature that starts at start. */
static oj_status end_feature(struct oj_fgb_bytes *to, int64_t start,
                             struct oj_fgb_node *node, struct oj_error *err)
{
    int64_t at;
    OJ_TRY(grow(to, 0, 0, 8, &at, err));
    if (to->n - start > MOST_BYTES)
        return oj_fail(err, OJ_ERR_LIMIT, "a feature takes more than 2 GiB");
    set32(to->at + start, to->n - start - 4);
    node->offset = (uint64_t)(to->n - start);
    return OJ_OK;
}

static oj_status put_properties(struct oj_fgb_encoder *encoder, int64_t at,
                                struct oj_error *err)
{
    struct oj_fgb_bytes *to = &encoder->bytes;
    set32(to->at + at, encoder->properties.n);
    return append(to, encoder->properties.at, encoder->properties.n, err);
}

/* Of a point that encode_any() has made; its vector of properties begins where
 * the head ends. */
static void note_head(struct oj_fgb_encoder *encoder, int64_t start, int64_t n)
{
    if (n > (int64_t)sizeof encoder->head)
        return;
    memcpy(encoder->head, encoder->bytes.at + start, (size_t)n);
    encoder->n_head = (int)n;
}

static int is_plain_point(const struct oj_fgb_encoder *encoder,
                          const uint8_t *wkb)
{
    return encoder->has_vertices && encoder->properties.n > 0 &&
           oj_fgb_wkb_type(wkb) == OJ_FGB_POINT && !encoder->layout.has_z &&
           !encoder->layout.has_m && !isnan(oj_wkb_double(wkb + 5)) &&
           !isnan(oj_wkb_double(wkb + 13));
}

static oj_status encode_any(struct oj_fgb_encoder *encoder, const uint8_t *wkb,
                            struct oj_error *err)
{
    static const int fields[] = {OJ_FGB_FEATURE_GEOMETRY,
                                 OJ_FGB_FEATURE_PROPERTIES};
    struct oj_fgb_bytes *to = &encoder->bytes;
    struct wkb_place geometry = {.at = wkb};
    int64_t place[2] = {0}, start = to->n, at, table;
    int first = encoder->has_vertices ? 0 : 1;
    int n = (encoder->properties.n > 0 ? 2 : 1) - first;
    OJ_TRY(grow(to, 8, 0, 4, &at, err));
    OJ_TRY(make_table(to, fields + first, n, &table, place, err));
    set32(to->at + start + 4, table - start - 4);
    if (encoder->has_vertices)
    {
        OJ_TRY(put_geometry(encoder, &geometry, 0, &table, err));
        set32(to->at + place[0], table - place[0]);
    }
    if (encoder->properties.n > 0)
    {
        OJ_TRY(make_vector(to, place[1], 0, 1, &at, err));
        OJ_TRY(put_properties(encoder, at - 4, err));
        if (is_plain_point(encoder, wkb))
            note_head(encoder, start, at - 4 - start);
    }
    return end_feature(to, start, &encoder->latest, err);
}

/* The same, of a plain point. */
static oj_status encode_point(struct oj_fgb_encoder *encoder,
                              const uint8_t *wkb, struct oj_error *err)
{
    struct oj_fgb_bytes *to = &encoder->bytes;
    double *box = encoder->latest.box;
    int64_t start = to->n, n = encoder->n_head;
    OJ_TRY(oj_fgb_room(to, n + 12 + encoder->properties.n, err));
    memcpy(to->at + start, encoder->head, (size_t)n);
    memcpy(to->at + start + n - 16, wkb + 5, 16);
    memcpy(box, wkb + 5, 16);
    memcpy(box + 2, wkb + 5, 16);
    to->n += n + 4;
    OJ_TRY(put_properties(encoder, to->n - 4, err));
    return end_feature(to, start, &encoder->latest, err);
}

oj_status oj_fgb_encode(struct oj_fgb_encoder *encoder, const uint8_t *wkb,
                        struct oj_error *err)
{
    double *box = encoder->latest.box;
    oj_status status;
    box[0] = box[1] = (double)INFINITY;
    box[2] = box[3] = (double)-INFINITY;
    encoder->has_curves = 0;
    encoder->has_vertices = wkb != NULL && n_vertices_of(wkb) > 0;
    status = encoder->n_head > 0 && is_plain_point(encoder, wkb)
                 ? encode_point(encoder, wkb, err)
                 : encode_any(encoder, wkb, err);
    encoder->properties.n = 0;
    return status;
}

void oj_fgb_encoder_free(struct oj_fgb_encoder *encoder)
{
    oj_free(encoder->properties.at);
    oj_free(encoder->bytes.at);
    memset(encoder, 0, sizeof *encoder);
}
