/** UTF-8 as RFC 3629 has it: no sequence that is longer than needed, no half of
 *  a surrogate pair, nothing beyond U+10FFFF. */
#ifndef OJ_UTF8_H
#define OJ_UTF8_H

#include <stdint.h>

/** Bytes of the code point that begins at s, of n > 0 more bytes; 0: none does,
 *  and *code is as it was. */
static inline int oj_utf8_decode(const unsigned char *s, int64_t n,
                                 uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = s[0] < 0x80   ? 1
                 : s[0] < 0xc2 ? 0
                 : s[0] < 0xe0 ? 2
                 : s[0] < 0xf0 ? 3
                 : s[0] < 0xf5 ? 4
                               : 0;
    uint32_t c = s[0] & (length == 1 ? 0x7fu : 0xffu >> (length + 1));
    if (length == 0 || length > n)
        return 0;
    for (int i = 1; i < length; i++)
    {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *code = c;
    return length;
}

/** 1 when none of n bytes is beyond ASCII. */
int oj_utf8_is_ascii(const char *bytes, int64_t n);

/** 1 when n bytes are whole code points.  Blocks of bytes are looked at by
 *  vector instructions, since every text that is read comes by here: with AVX2
 *  half an instruction a byte where code points take one or two bytes, one
 *  where they take three. */
int oj_utf8_is_valid(const char *bytes, int64_t n);

#endif
