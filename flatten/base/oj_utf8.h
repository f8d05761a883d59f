/** UTF-8 as defined by RFC 3629: no overlong sequences, no surrogates, no code
 *  points above U+10FFFF. */
#ifndef OJ_UTF8_H
#define OJ_UTF8_H

#include <stdint.h>

/** Decodes the code point at s, where n > 0 bytes are readable. Returns its
 *  number of bytes; 0 if they are invalid, and *code is then unchanged. */
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

/** Returns 1 if all n bytes are ASCII. */
int oj_utf8_is_ascii(const char *bytes, int64_t n);

/** Returns 1 if n bytes are valid UTF-8. It uses vector instructions, because
 *  every text that is read is checked: with AVX2, half an instruction per byte
 *  if code points have one or two bytes, one if they have three. */
int oj_utf8_is_valid(const char *bytes, int64_t n);

#endif
