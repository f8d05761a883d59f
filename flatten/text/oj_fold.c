#include "oj_fold.h"

#include "oj_fold_table.h"

#include "../base/oj_array.h"

/* Bytes of the code point that begins at s, of n more bytes; 0: none does. */
static int decode_utf8(const unsigned char *s, int64_t n, uint32_t *code)
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

/* What a code point becomes: *n code points. */
static const uint32_t *fold_code_point(enum oj_fold fold, const uint32_t *code,
                                       int *n)
{
    static const uint32_t space = ' ';
    const uint16_t *number = fold == OJ_FOLD_FULL ? oj_fold_full : oj_fold_case;
    uint32_t block = *code / OJ_FOLD_BLOCK;
    int place;
    *n = 1;
    if (fold == OJ_FOLD_NONE)
        return code;
    if (block >= OJ_FOLD_BLOCKS)
    {
        if (fold == OJ_FOLD_CASE)
            return code;
        *n = *code < 0xe0100 || *code > 0xe01ef; /* variation selectors */
        return &space;
    }
    place =
        oj_fold_block[number[block] * OJ_FOLD_BLOCK + *code % OJ_FOLD_BLOCK];
    if (place == 0)
        return code;
    *n = (int)oj_fold_pool[place];
    return oj_fold_pool + place + 1;
}

oj_status oj_fold(enum oj_fold fold, const char *bytes, int64_t n,
                  struct oj_folded *out, struct oj_error *err)
{
    const unsigned char *s = (const unsigned char *)bytes;
    int64_t to = 0, n_bad = 0;
    int collapses = fold != OJ_FOLD_NONE;
    for (int64_t i = 0; i < n;)
    {
        uint32_t code = ' ';
        const uint32_t *folded;
        int n_folded, length = decode_utf8(s + i, n - i, &code);
        n_bad += length == 0;
        i += length > 0 ? length : 1;
        folded = fold_code_point(fold, &code, &n_folded);
        /* one for each byte that is left, but for the few that grow */
        if (to + n_folded + (n - i) > out->cap_code)
            OJ_ROOM(out->code, to, to + n_folded + (n - i), out->cap_code, err);
        for (int j = 0; j < n_folded; j++)
        {
            if (collapses && folded[j] == ' ' &&
                (to == 0 || out->code[to - 1] == ' '))
                continue;
            out->code[to++] = folded[j];
        }
    }
    if (collapses && to > 0 && out->code[to - 1] == ' ')
        to--;
    out->n = to;
    out->n_bad_bytes = n_bad;
    return OJ_OK;
}

void oj_folded_free(struct oj_folded *folded)
{
    oj_free(folded->code);
    *folded = (struct oj_folded){0};
}
