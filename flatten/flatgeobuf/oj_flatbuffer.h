/** Reads FlatBuffers: tables of fields linked by offsets, little-endian.
 *
 *    root    u32 -> table: i32 back to its vtable, then the fields
 *    vtable  u16 size, u16 size of the table, u16 offset of field 0, 1, ...
 *    vector  u32 count, then the elements
 *
 *  The bytes are untrusted: an offset out of bounds or a wrong size sets
 *  is_broken, and the field reads as absent. So does everything that the
 *  verifier of the FlatBuffers library refuses: tables, offsets and counts not
 *  aligned to 4, vtables at odd offsets or of odd size, offsets of 0 or above
 *  2^31.
 *
 *  Source: the format's specification, "FlatBuffers Internals".
 */
#ifndef OJ_FLATBUFFER_H
#define OJ_FLATBUFFER_H

#include <stdint.h>
#include <string.h>

struct oj_flatbuffer
{
    const uint8_t *bytes; /**< [size] borrowed */
    int64_t size;
    int is_broken;
};

struct oj_flat_table
{
    int64_t at;     /**< offset of the table in the bytes */
    int64_t vtable; /**< offset of its vtable in the bytes */
    int n_fields, size;
};

static inline uint16_t oj_flatbuffer_le16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t oj_flatbuffer_le32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static inline uint64_t oj_flatbuffer_le64(const uint8_t *at)
{
    return (uint64_t)oj_flatbuffer_le32(at) |
           (uint64_t)oj_flatbuffer_le32(at + 4) << 32;
}

/** Returns an unsigned little-endian integer of 1, 2, 4 or 8 bytes. */
static inline int64_t oj_flatbuffer_le(const uint8_t *at, int size)
{
    return size == 1   ? *at
           : size == 2 ? oj_flatbuffer_le16(at)
           : size == 4 ? oj_flatbuffer_le32(at)
                       : (int64_t)oj_flatbuffer_le64(at);
}

/** Reads the table at an offset, which the caller has checked to be a multiple
 *  of 4 (oj_flatbuffer_target()). Returns 0 and sets is_broken if the table or
 *  its vtable is out of bounds or invalid. */
static inline int oj_flatbuffer_table(struct oj_flatbuffer *buffer, int64_t at,
                                      struct oj_flat_table *table)
{
    const uint8_t *bytes = buffer->bytes;
    int vtable_size;
    if (at < 4 || at > buffer->size - 4)
        goto broken;
    table->at = at;
    table->vtable = at - (int32_t)oj_flatbuffer_le32(bytes + at);
    if (table->vtable < 0 || table->vtable > buffer->size - 4)
        goto broken;
    vtable_size = oj_flatbuffer_le16(bytes + table->vtable);
    table->size = oj_flatbuffer_le16(bytes + table->vtable + 2);
    table->n_fields = (vtable_size - 4) / 2;
    if (vtable_size < 4 || ((table->vtable | vtable_size) & 1) != 0 ||
        table->vtable > buffer->size - vtable_size ||
        at > buffer->size - table->size)
        goto broken;
    return 1;
broken:
    buffer->is_broken = 1;
    return 0;
}

static inline int oj_flatbuffer_root(struct oj_flatbuffer *buffer,
                                     struct oj_flat_table *table)
{
    if (buffer->size < 8 || oj_flatbuffer_le32(buffer->bytes) % 4 != 0)
    {
        buffer->is_broken = 1;
        return 0;
    }
    return oj_flatbuffer_table(buffer, oj_flatbuffer_le32(buffer->bytes),
                               table);
}

/** Returns the address of a field of `size` bytes; NULL if the table lacks the
 *  field. */
static inline const uint8_t *
oj_flatbuffer_field(struct oj_flatbuffer *buffer,
                    const struct oj_flat_table *table, int field, int size)
{
    int place;
    if (field >= table->n_fields)
        return NULL;
    place = oj_flatbuffer_le16(buffer->bytes + table->vtable + 4 + 2 * field);
    if (place == 0)
        return NULL;
    if (place < 4 || place > table->size - size)
    {
        buffer->is_broken = 1;
        return NULL;
    }
    return buffer->bytes + table->at + place;
}

/** Follows the offset stored in a field and returns its target, a multiple of
 *  4; 0 if field is NULL. */
static inline int64_t oj_flatbuffer_target(struct oj_flatbuffer *buffer,
                                           const uint8_t *field)
{
    int64_t place;
    uint32_t offset;
    if (field == NULL)
        return 0;
    place = field - buffer->bytes;
    offset = oj_flatbuffer_le32(field);
    if (offset - 1 < INT32_MAX && ((place | offset) & 3) == 0 &&
        place + offset <= buffer->size - 4)
        return place + offset;
    buffer->is_broken = 1;
    return 0;
}

/** Returns the elements of a vector or string, each of size bytes, and their
 *  number *n; NULL and *n == 0 if the table lacks the field. */
static inline const uint8_t *
oj_flatbuffer_vector(struct oj_flatbuffer *buffer,
                     const struct oj_flat_table *table, int field, int size,
                     int64_t *n)
{
    int64_t at = oj_flatbuffer_target(
        buffer, oj_flatbuffer_field(buffer, table, field, 4));
    *n = 0;
    if (at == 0)
        return NULL;
    *n = oj_flatbuffer_le32(buffer->bytes + at);
    if (*n <= (buffer->size - at - 4) / size)
        return buffer->bytes + at + 4;
    *n = 0;
    buffer->is_broken = 1;
    return NULL;
}

/** Reads table i of a vector of n tables. Returns 0 if it is invalid. */
static inline int oj_flatbuffer_element(struct oj_flatbuffer *buffer,
                                        const uint8_t *vector, int64_t i,
                                        struct oj_flat_table *table)
{
    int64_t at = oj_flatbuffer_target(buffer, vector + 4 * i);
    return at != 0 && oj_flatbuffer_table(buffer, at, table);
}

#endif
