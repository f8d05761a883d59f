#include "oj_utf8.h"

#include "oj_clones.h"

#include <string.h>

enum
{
    VECTOR = 32, /* bytes per vector */
    BLOCK = 64,  /* bytes per check */
    BEFORE = 3,  /* bytes before a vector on which its check depends */
    /* Blocks that are checked for three-byte code points after a block that has
     * one: neighbours are usually alike. */
    BLOCKS_ALIKE = 8
};

#define FIRST_BITS UINT64_C(0x8080808080808080)

static uint64_t high_bits(const char *bytes)
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
        high = high_bits(bytes + i) | high_bits(bytes + i + 8);
    if (n < 8)
    {
        for (; i < n; i++)
            high |= (unsigned char)bytes[i] & 0x80u;
        return high == 0;
    }
    if (i + 8 < n)
        high |= high_bits(bytes + i);
    return (high | high_bits(bytes + n - 8)) == 0;
}

/* A vector of bytes in one or two registers of any processor (GCC and Clang). A
 * comparison gives -1 for each byte where it holds. Vectors are passed by
 * pointer: passed by value, the call would depend on the instruction set. */
typedef unsigned char bytes32 __attribute__((vector_size(VECTOR)));
typedef signed char signed32 __attribute__((vector_size(VECTOR)));

#define LOAD(v, s) memcpy(&(v), (s), sizeof(v))

/* Sets the top bit of each byte of *found whose byte in the vector at s is
 * wrong, or may be. s[-3] .. s[-1] must be readable. */
typedef void find_bytes(const unsigned char *s, signed32 *found);

/* A byte is wrong if it is a tail byte although the three bytes before it do
 * not demand one, or is none although they do:
 *
 *   C0..DF, E0..EF, F0..FF    are followed by 1, 2 or 3 bytes 80..BF
 *
 * or if the byte before never occurs (C0, C1, F5..FF) or limits this one:
 *
 *   E0 A0..BF, ED 80..9F, F0 90..BF, F4 80..8F
 */
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

/* For texts whose code points have one or two bytes, as in most languages; a
 * third of the work. Tail bytes must follow C2..DF, and nothing else; bytes
 * before may be ASCII, C2..DF and tail bytes. */
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

/* For texts whose code points have up to three bytes; half the work. Bytes
 * after E0 and ED, which limit them, also count as possibly wrong. */
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

/* Checks blocks from `at` on; returns the start of the first one that fails. */
OJ_INLINE int64_t pass_blocks(const unsigned char *s, int64_t n, int64_t at,
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

/* The faster checks ignore code points of three or four bytes that begin before
 * the block: such blocks are left to the next check. */
OJ_CLONES static int64_t pass_blocks_up_to_two(const unsigned char *s,
                                               int64_t n, int64_t at)
{
    return s[at - 2] >= 0xE0 || s[at - 3] >= 0xF0
               ? at
               : pass_blocks(s, n, at, find_bytes_beyond_two);
}

OJ_CLONES static int64_t pass_blocks_up_to_three(const unsigned char *s,
                                                 int64_t n, int64_t at)
{
    return s[at - 2] >= 0xF0 || s[at - 3] >= 0xF0
               ? at
               : pass_blocks(s, n, at, find_bytes_beyond_three);
}

OJ_CLONES static int64_t pass_blocks_exactly(const unsigned char *s, int64_t n,
                                             int64_t at)
{
    return pass_blocks(s, n, at, find_bad_bytes);
}

/* Passes valid blocks from `at` on: by the fastest check; where it fails, some
 * blocks by the next one; where that fails, one block exactly. */
static int64_t pass_valid_blocks(const unsigned char *s, int64_t n, int64_t at)
{
    int64_t from, end;
    do
    {
        from = at;
        at = pass_blocks_up_to_two(s, n, at);
        end = at + BLOCKS_ALIKE * BLOCK < n ? at + BLOCKS_ALIKE * BLOCK : n;
        at = pass_blocks_up_to_three(s, end, at);
        if (end - at >= BLOCK)
            at = pass_blocks_exactly(s, at + BLOCK, at);
    } while (at > from);
    return at;
}

/* Checks the bytes from `at` on, n - at < BLOCK; some of them twice. */
OJ_CLONES static int is_end_valid(const unsigned char *s, int64_t n, int64_t at)
{
    signed32 found = {0};
    for (; n - at >= VECTOR; at += VECTOR)
        find_bad_bytes(s + at, &found);
    find_bad_bytes(s + n - VECTOR, &found);
    return !is_any_found(&found);
}

/* Returns 1 if the code points that begin before end are valid; *at: where the
 * next one begins. */
static int are_code_points(const unsigned char *s, int64_t n, int64_t end,
                           int64_t *at)
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
        return are_code_points(s, n, n, &at);
    if (!are_code_points(s, n, BEFORE, &at))
        return 0;
    at = pass_valid_blocks(s, n, at);
    return n - at < BLOCK && is_end_valid(s, n, at) &&
           !ends_within_code_point(s, n);
}
