#include "oj_utf8.h"

#include "oj_target_clones.h"

#include <string.h>

enum
{
    VECTOR = 32, /* bytes per vector */
    BLOCK = 64,  /* bytes per check */
    BEFORE = 3,  /* preceding bytes that the check of a vector reads */
    /* After a block with a three-byte code point, this many blocks skip the
     * check for two-byte code points: neighbouring text is usually alike. */
    BLOCKS_ALIKE = 8
};

#define FIRST_BITS UINT64_C(0x8080808080808080)

static uint64_t high_bits_of_bytes(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word & FIRST_BITS;
}

int oj_utf8_is_ascii(const char *bytes, int64_t n)
{
    int64_t i = 0;
    uint64_t high = 0;
    for (; i + 16 <= n && high == 0; i += 16)
        high =
            high_bits_of_bytes(bytes + i) | high_bits_of_bytes(bytes + i + 8);
    if (n < 8)
    {
        for (; i < n; i++)
            high |= (unsigned char)bytes[i] & 0x80u;
        return high == 0;
    }
    if (i + 8 < n)
        high |= high_bits_of_bytes(bytes + i);
    return (high | high_bits_of_bytes(bytes + n - 8)) == 0;
}

/* A vector of bytes in one or two registers, on any processor (GCC and Clang
 * extension). A comparison gives -1 for each byte where it holds. Vectors are
 * passed by pointer, since passing them by value depends on the instruction
 * set. */
typedef unsigned char bytes32 __attribute__((vector_size(VECTOR)));
typedef signed char signed32 __attribute__((vector_size(VECTOR)));

#define LOAD(v, s) memcpy(&(v), (s), sizeof(v))

/* Checks the vector at s: if byte s[i] is invalid, or may be, sets the top bit
 * of byte i of *found. s[-3] .. s[-1] must be readable. */
typedef void find_bytes(const unsigned char *s, signed32 *found);

/* Finds invalid bytes exactly. A byte is invalid in three cases: it is a
 * continuation byte (80..BF) that none of the three bytes before it requires; a
 * required continuation byte is missing in its place, where
 *
 *   C0..DF, E0..EF, F0..FF    require 1, 2 or 3 continuation bytes;
 *
 * or the byte before it is never valid (C0, C1, F5..FF) or allows only a part
 * of the continuation bytes after it:
 *
 *   E0 A0..BF, ED 80..9F, F0 90..BF, F4 80..8F */
OJ_INLINE void find_bad_bytes(const unsigned char *s, signed32 *found)
{
    bytes32 c, before, second, third;
    LOAD(c, s);
    LOAD(before, s - 1);
    LOAD(second, s - 2);
    LOAD(third, s - 3);
    *found |= ((signed32)(before >= 0xC0) | (signed32)(second >= 0xE0) |
               (signed32)(third >= 0xF0)) ^
              ((signed32)c < -64);
    *found |= (signed32)((before & 0xFE) == 0xC0) | (signed32)(before >= 0xF5);
    *found |= ((signed32)(before == 0xE0) & (signed32)(c < 0xA0)) |
              ((signed32)(before == 0xF0) & (signed32)(c < 0x90));
    *found |= ((signed32)(before == 0xED) & (signed32)(c > 0x9F)) |
              ((signed32)(before == 0xF4) & (signed32)(c > 0x8F));
}

/* Checks texts of one- and two-byte code points, as in most languages; takes a
 * third of the work of find_bad_bytes(). A continuation byte must follow every
 * C2..DF and must not follow any other byte. Longer code points count as
 * possibly invalid. */
OJ_INLINE void find_bytes_beyond_two(const unsigned char *s, signed32 *found)
{
    bytes32 c, before;
    signed32 begins;
    LOAD(c, s);
    LOAD(before, s - 1);
    begins = (signed32)(before - 0x42) < 0x1E - 0x80;
    *found |= (begins ^ ((signed32)c < -64)) |
              ((signed32)before & ~(begins | ((signed32)before < -64)));
}

/* Checks texts with code points of up to three bytes; takes half the work of
 * find_bad_bytes(). Four-byte code points, and the bytes after E0 and ED, count
 * as possibly invalid. */
OJ_INLINE void find_bytes_beyond_three(const unsigned char *s, signed32 *found)
{
    bytes32 c, before, second;
    signed32 begins;
    LOAD(c, s);
    LOAD(before, s - 1);
    LOAD(second, s - 2);
    begins = (signed32)(before - 0x42) < 0x2E - 0x80;
    *found |= (signed32)before & ~(begins | ((signed32)before < -64));
    begins |= (signed32)(second - 0x60) < 0x10 - 0x80;
    *found |= (begins ^ ((signed32)c < -64)) | (signed32)(before == 0xE0) |
              (signed32)(before == 0xED);
}

OJ_INLINE int is_any_found(const signed32 *found)
{
    uint64_t bits[VECTOR / 8], all = 0;
    memcpy(bits, found, sizeof bits);
    for (int i = 0; i < VECTOR / 8; i++)
        all |= bits[i];
    return (all & FIRST_BITS) != 0;
}

/* Checks blocks from `at` on; returns the start of the first block that may be
 * invalid. */
OJ_INLINE int64_t skip_blocks_without_bad_bytes(const unsigned char *s,
                                                int64_t n, int64_t at,
                                                find_bytes find)
{
    for (; n - at >= BLOCK; at += BLOCK)
    {
        signed32 found = {0};
        for (int i = 0; i < BLOCK; i += VECTOR)
            find(s + at + i, &found);
        if (is_any_found(&found))
            break;
    }
    return at;
}

/* Skips valid blocks by the check for two-byte code points; returns where it
 * stopped. It does not recognise a three- or four-byte code point that begins
 * before the block; such a block is left to the next slower check. */
OJ_CLONES static int64_t
skip_valid_blocks_up_to_two_bytes(const unsigned char *s, int64_t n, int64_t at)
{
    return s[at - 2] >= 0xE0 || s[at - 3] >= 0xF0
               ? at
               : skip_blocks_without_bad_bytes(s, n, at, find_bytes_beyond_two);
}

OJ_CLONES static int64_t
skip_valid_blocks_up_to_three_bytes(const unsigned char *s, int64_t n,
                                    int64_t at)
{
    return s[at - 2] >= 0xF0 || s[at - 3] >= 0xF0
               ? at
               : skip_blocks_without_bad_bytes(s, n, at,
                                               find_bytes_beyond_three);
}

OJ_CLONES static int64_t skip_valid_block_exactly(const unsigned char *s,
                                                  int64_t n, int64_t at)
{
    return skip_blocks_without_bad_bytes(s, n, at, find_bad_bytes);
}

/* Skips valid blocks from `at` on with the fastest check that succeeds: the
 * check for code points of up to two bytes; after it fails, the check for three
 * bytes, for some blocks; after that fails, the exact check, for one block.
 * Returns the start of the first invalid block, or of the incomplete last one.
 */
static int64_t skip_valid_blocks(const unsigned char *s, int64_t n, int64_t at)
{
    int64_t from, end;
    do
    {
        from = at;
        at = skip_valid_blocks_up_to_two_bytes(s, n, at);
        end = at + BLOCKS_ALIKE * BLOCK < n ? at + BLOCKS_ALIKE * BLOCK : n;
        at = skip_valid_blocks_up_to_three_bytes(s, end, at);
        if (end - at >= BLOCK)
            at = skip_valid_block_exactly(s, at + BLOCK, at);
    } while (at > from);
    return at;
}

/* Returns 1 if the bytes from `at` on are valid; n - at must be below BLOCK.
 * Reads some bytes before `at` again to fill a block. */
OJ_CLONES static int is_end_valid(const unsigned char *s, int64_t n, int64_t at)
{
    signed32 found = {0};
    for (; n - at >= VECTOR; at += VECTOR)
        find_bad_bytes(s + at, &found);
    find_bad_bytes(s + n - VECTOR, &found);
    return !is_any_found(&found);
}

/* Returns 1 if the code points that begin before `end` are valid; *at becomes
 * the start of the next one. */
static int pass_valid_code_points(const unsigned char *s, int64_t n,
                                  int64_t end, int64_t *at)
{
    while (*at < end)
    {
        uint32_t code;
        int length = oj_utf8_decode(s + *at, n - *at, &code);
        if (length == 0)
            return 0;
        *at += length;
    }
    return 1;
}

/* Returns 1 if the last code point is cut off. */
static int ends_within_code_point(const unsigned char *s, int64_t n)
{
    return s[n - 1] >= 0xC0 || s[n - 2] >= 0xE0 || s[n - 3] >= 0xF0;
}

int oj_utf8_is_valid(const char *bytes, int64_t n)
{
    const unsigned char *s = (const unsigned char *)bytes;
    int64_t at = 0;
    if (oj_utf8_is_ascii(bytes, n))
        return 1;
    if (n < BEFORE + VECTOR)
        return pass_valid_code_points(s, n, n, &at);
    if (!pass_valid_code_points(s, n, BEFORE, &at))
        return 0;
    at = skip_valid_blocks(s, n, at);
    return n - at < BLOCK && is_end_valid(s, n, at) &&
           !ends_within_code_point(s, n);
}
