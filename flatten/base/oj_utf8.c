#include "oj_utf8.h"

#include <string.h>

/* Bytes that are looked at together, and those before the first one that decide
 * about it. */
#define BLOCK 64
#define BEFORE 3

static uint64_t high_bits(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word & UINT64_C(0x8080808080808080);
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

/* Sixteen bytes in a vector register, of any processor (GCC and Clang). A
 * comparison gives -1 for each byte where it holds. */
typedef unsigned char bytes16 __attribute__((vector_size(16)));
typedef signed char signed16 __attribute__((vector_size(16)));

static bytes16 load16(const unsigned char *s)
{
    bytes16 v;
    memcpy(&v, s, sizeof v);
    return v;
}

/* Not 0 in each byte that is a tail where the three before it ask for none, or
 * none where they ask for one:
 *
 *   C0..DF, E0..EF, F0..FF    are followed by 1, 2 or 3 bytes 80..BF
 *
 * s[-3] to s[-1] are there. */
static signed16 find_misplaced_bytes(const unsigned char *s)
{
    const signed16 follows = (signed16)(load16(s - 1) >= 0xC0) |
                             (signed16)(load16(s - 2) >= 0xE0) |
                             (signed16)(load16(s - 3) >= 0xF0);
    return follows ^ ((signed16)load16(s) < -64);
}

/* And where the byte before never occurs (C0, C1, F5..FF) or bounds this one:
 * E0 A0..BF, ED 80..9F, F0 90..BF, F4 80..8F. */
static signed16 find_bad_bytes(const unsigned char *s)
{
    const bytes16 c = load16(s), before = load16(s - 1);
    const signed16 is_never =
        (signed16)((before & 0xFE) == 0xC0) | (signed16)(before >= 0xF5);
    const signed16 is_below =
        ((signed16)(before == 0xE0) & (signed16)(c < 0xA0)) |
        ((signed16)(before == 0xF0) & (signed16)(c < 0x90));
    const signed16 is_above =
        ((signed16)(before == 0xED) & (signed16)(c > 0x9F)) |
        ((signed16)(before == 0xF4) & (signed16)(c > 0x8F));
    return find_misplaced_bytes(s) | is_never | is_below | is_above;
}

/* Half the work: all bytes behind one that never occurs or that bounds another
 * are set. */
static signed16 find_doubtful_bytes(const unsigned char *s)
{
    const bytes16 before = load16(s - 1);
    return find_misplaced_bytes(s) | (signed16)((before & 0xFE) == 0xC0) |
           (signed16)(before == 0xE0) | (signed16)(before == 0xED) |
           (signed16)(before >= 0xF0);
}

static int is_any_set(signed16 bytes)
{
    uint64_t half[2];
    memcpy(half, &bytes, sizeof half);
    return (half[0] | half[1]) != 0;
}

static int has_bad_byte_in_block(const unsigned char *s)
{
    signed16 found = find_doubtful_bytes(s);
    for (int i = 16; i < BLOCK; i += 16)
        found |= find_doubtful_bytes(s + i);
    if (!is_any_set(found))
        return 0;
    found = find_bad_bytes(s);
    for (int i = 16; i < BLOCK; i += 16)
        found |= find_bad_bytes(s + i);
    return is_any_set(found);
}

/* Code points that begin before end; *at: where the next one does. */
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

/* The bytes behind the last one would be asked to follow. */
static int ends_within_code_point(const unsigned char *s, int64_t n)
{
    return s[n - 1] >= 0xC0 || s[n - 2] >= 0xE0 || s[n - 3] >= 0xF0;
}

int oj_utf8_is_valid(const char *bytes, int64_t n)
{
    const unsigned char *s = (const unsigned char *)bytes;
    signed16 bad = {0};
    int64_t at = 0;
    if (oj_utf8_is_ascii(bytes, n))
        return 1;
    if (n < BEFORE + 16)
        return are_code_points(s, n, n, &at);
    if (!are_code_points(s, n, BEFORE, &at))
        return 0;
    for (; n - at >= BLOCK; at += BLOCK)
        if (has_bad_byte_in_block(s + at))
            return 0;
    for (; n - at >= 16; at += 16)
        bad |= find_bad_bytes(s + at);
    bad |= find_bad_bytes(s + n - 16); /* some of them once more */
    return !is_any_set(bad) && !ends_within_code_point(s, n);
}
