/* The check for valid UTF-8 reads blocks of bytes. It is compared with a
 * function that reads one code point at a time.
 * Kind: truth cases, random against the reference. */
#include "../random_numbers.h"
#include "../run_tests.h"

#include "../../../flatten/base/oj_utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The reference: reads one code point after the other. Returns 1 if s is valid
 * UTF-8. */
static int is_valid_plainly(const unsigned char *s, int64_t n)
{
    int64_t at = 0;
    while (at < n)
    {
        uint32_t code;
        int length = oj_utf8_decode(s + at, n - at, &code);
        if (length == 0)
            return 0;
        at += length;
    }
    return 1;
}

/* Compares both checks of n bytes. The bytes are copied to memory of exactly
 * this size, so that sanitizers report reads beyond it. */
static void same_as_plain(const void *bytes, int64_t n)
{
    char *copy = malloc(n > 0 ? (size_t)n : 1);
    int is_ascii = 1;
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        is_ascii &= (copy[i] & 0x80) == 0;
    ck_assert_int_eq(oj_utf8_is_ascii(copy, n), is_ascii);
    ck_assert_int_eq(oj_utf8_is_valid(copy, n),
                     is_valid_plainly((const unsigned char *)copy, n));
    free(copy);
}

TEST(truth_code_points)
{
    static const struct
    {
        const char *bytes;
        int is_valid;
    } cases[] = {{"", 1},
                 {"plain", 1},
                 {"\x7F", 1},
                 {"\x80", 0},
                 {"\xC2\x80", 1},
                 {"\xC1\xBF", 0}, /* overlong encodings */
                 {"\xC3", 0},
                 {"Z\xFCrich", 0}, /* Latin-1 */
                 {"Z\xC3\xBCrich", 1},
                 {"\xE0\xA0\x80", 1},
                 {"\xE0\x9F\xBF", 0},
                 {"\xED\x9F\xBF", 1},
                 {"\xED\xA0\x80", 0}, /* one half of a surrogate pair */
                 {"\xEF\xBF\xBF", 1},
                 {"\xF0\x90\x80\x80", 1},
                 {"\xF0\x8F\xBF\xBF", 0},
                 {"\xF4\x8F\xBF\xBF", 1},
                 {"\xF4\x90\x80\x80", 0}, /* beyond U+10FFFF */
                 {"\xF5\x80\x80\x80", 0},
                 {"\xFF", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        for (int before = 0; before < 150; before++)
        {
            char text[400];
            int n = snprintf(text, sizeof text, "%*s%s%*s", before, "",
                             cases[i].bytes, before % 37, "");
            ck_assert_int_eq(oj_utf8_is_valid(text, n), cases[i].is_valid);
            same_as_plain(text, n);
        }
    }
}

/* Tests all triples of the bytes in `some` at all positions relative to the end
 * of a block. */
TEST(truth_three_bytes_at_the_ends_of_blocks)
{
    static const unsigned char some[] = {
        'a',  0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
        0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
    enum
    {
        N = (int)sizeof some
    };
    for (int i = 0; i < N * N * N; i++)
    {
        for (int at = 13; at < 88; at += at == 20 ? 40 : 1)
        {
            unsigned char text[200];
            memset(text, 'x', sizeof text);
            text[at] = some[i % N];
            text[at + 1] = some[i / N % N];
            text[at + 2] = some[i / N / N];
            ck_assert_int_eq(oj_utf8_is_valid((char *)text, at + 3),
                             is_valid_plainly(text, at + 3));
            ck_assert_int_eq(oj_utf8_is_valid((char *)text, 150),
                             is_valid_plainly(text, 150));
        }
    }
}

static int put_code_point(unsigned char *to, uint32_t c)
{
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = n - 1; i > 0; i--)
    {
        to[i] = (unsigned char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    to[0] = (unsigned char)(lead[n] | c);
    return n;
}

TEST(random_texts_whole_and_damaged)
{
    static const uint32_t most[] = {0x80, 0x800, 0x10000, 0x110000};
    int n_valid = 0;
    random_state = 5;
    for (int round = 0; round < 60000; round++)
    {
        unsigned char text[700];
        int n = 0, n_wanted = pick(600), kinds = 1 + pick(4);
        while (n < n_wanted)
        {
            uint32_t c = (uint32_t)(random_bits() % most[pick(kinds)]);
            if (c < 0xD800 || c >= 0xE000)
                n += put_code_point(text + n, c);
        }
        if (n > 0 && one_in(3))
            text[pick(n)] = (unsigned char)pick(256);
        if (n > 3 && one_in(3))
            n -= pick(4);
        same_as_plain(text, n);
        n_valid += is_valid_plainly(text, n);
    }
    ck_assert_int_gt(n_valid, 20000);
    ck_assert_int_lt(n_valid, 59000);
}

int main(void)
{
    tests_open("UTF-8");
    return tests_run();
}
