/* Reads any bytes as the text of a geometry. The text is refused, and nothing
 * is written, or it gives WKB that the reader of WKB accepts and that OGR would
 * write. With clang: -fsanitize=fuzzer,address,undefined. With OJ_FUZZ_MAIN,
 * fuzz_geometry_text [ITERATIONS] mutates sample texts, from a fixed random
 * seed. */
#include "../../flatten/arrays/oj_wkb.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/text/oj_geometry_text.h"

#include "fuzz_bytes.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns 1 if the text is hexadecimal digits. Their bytes can be any. */
static int is_hexadecimal(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
    {
        if (data[i] == ';' || data[i] == '0' || data[i] == '\\')
            return 1;
        if (data[i] == '(' || data[i] == 'E' || data[i] == 'e')
            return 0;
    }
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct oj_geometry_bytes bytes = {0};
    struct oj_flat_buf buf = {0};
    struct oj_error err;
    oj_status first, second, read;
    int64_t n, srid;
    first = oj_geometry_text_read(text, (int64_t)size, &bytes, &srid, &err);
    require(first == OJ_OK || first == OJ_ERR_DATA ||
                first == OJ_ERR_UNSUPPORTED,
            "unexpected status");
    require(first == OJ_OK || bytes.n == 0, "bytes of a text that is refused");
    require(bytes.n <= 40 * (int64_t)size, "too many bytes");
    n = bytes.n;
    second = oj_geometry_text_read(text, (int64_t)size, &bytes, &srid, &err);
    require(first == second && bytes.n == 2 * n, "two answers to one text");
    require(n == 0 || memcmp(bytes.byte, bytes.byte + n, (size_t)n) == 0,
            "other bytes the second time");
    if (n > 0 && !is_hexadecimal(data, size))
    {
        read = oj_wkb_add(&buf, 1, bytes.byte, (size_t)n, &err);
        require(read == OJ_OK, "WKB that cannot be read");
    }
    oj_flat_buf_free(&buf);
    oj_geometry_bytes_free(&bytes);
    return 0;
}

#ifdef OJ_FUZZ_MAIN
int main(int argc, char **argv)
{
    static const char *const seeds[] = {
        "POINT (1 2)",
        "SRID=4326;POINT Z (1.5 -2e3 .5)",
        "LINESTRING (0 0,1 1, 2 0)",
        "POLYGON ((0 0, 9 0, 9 9, 0 0), (1 1, 2 1, 2 2, 1 1))",
        "MULTIPOINT ((1 2), EMPTY, 3 4)",
        "MULTILINESTRING M ((0 0 1, 1 1 2), EMPTY)",
        "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0)), EMPTY)",
        "GEOMETRYCOLLECTION (POINT EMPTY, GEOMETRYCOLLECTION (POINT (nan 1)))",
        "0101000000000000000000F03F0000000000000040",
        "\\x0101000000000000000000F03F0000000000000040"};
    static const uint8_t values[] = {'(', ')', ',', ' ', '0', 'Z',
                                     '-', '.', 'E', 'M', 0,   0xff};
    long n = argc > 1 ? atol(argv[1]) : 200000;
    for (long i = 0; i < n; i++)
    {
        char text[512];
        const char *chosen = seeds[pick((int)(sizeof seeds / sizeof *seeds))];
        size_t size = strlen(chosen);
        uint8_t *exact;
        memcpy(text, chosen, size);
        for (int m = pick(4); m > 0; m--)
            size = mutate(text, size, sizeof text, values, sizeof values);
        /* memory of exactly this size, so that reads beyond it are reported */
        exact = malloc(size);
        if (exact == NULL)
            return 1;
        memcpy(exact, text, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    printf("fuzz_geometry_text: %ld inputs\n", n);
    return 0;
}
#endif
