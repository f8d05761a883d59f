/* Reads any bytes as the file of a kept index. It is refused, or gives points
 * that can be saved and read again. With clang:
 * -fsanitize=fuzzer,address,undefined. With OJ_FUZZ_MAIN, fuzz_live_file
 * [ITERATIONS] mutates saved files, from a fixed seed. */
#include "../../algs/live/live_file.h"
#include "../../flatten/base/oj_hash_mix.h"

#include "fuzz_bytes.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum
{
    MOST_BYTES = 4096
};

static char path[64], copy[64];

static void write_bytes(const char *to, const uint8_t *data, size_t size)
{
    FILE *file = fopen(to, "wb");
    require(file != NULL && fwrite(data, 1, size, file) == size &&
                fclose(file) == 0,
            "no file to write");
}

static size_t read_bytes(const char *from, uint8_t *data, size_t size)
{
    FILE *file = fopen(from, "rb");
    size_t n;
    require(file != NULL, "no file to read");
    n = fread(data, 1, size, file);
    (void)fclose(file);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[MOST_BYTES];
    struct live_points points = {0};
    struct oj_error err;
    oj_status status;
    snprintf(path, sizeof path, "/tmp/fuzz_live_%ld", (long)getpid());
    snprintf(copy, sizeof copy, "/tmp/fuzz_live_%ld.copy", (long)getpid());
    write_bytes(path, data, size);
    status = live_file_read(path, &points, &err);
    require(status == OJ_OK || status == OJ_ERR_DATA, "unexpected status");
    require(status == OJ_OK || points.id == NULL, "points of a broken file");
    if (status == OJ_OK)
    {
        require(live_file_write(copy, &points, &err) == OJ_OK,
                "points are not written");
        require(size > sizeof again ||
                    (read_bytes(copy, again, sizeof again) == size &&
                     memcmp(again, data, size) == 0),
                "another file of equal points");
        (void)unlink(copy);
    }
    live_points_free(&points);
    (void)unlink(path);
    return 0;
}

#ifdef OJ_FUZZ_MAIN
/* Makes a file of n points, mostly with the right checksum. Returns its
 * size. */
static size_t make_file(uint8_t *bytes, int n)
{
    static int64_t id[32];
    static double x[32], y[32];
    struct live_points points = {.n = n, .id = id, .x = x, .y = y};
    for (int i = 0; i < n; i++)
    {
        id[i] = (i > 0 ? id[i - 1] : -5) + 1 + pick(3);
        x[i] = any_size(-20, 20);
        y[i] = any_size(-20, 20);
    }
    require(live_file_write(copy, &points, NULL) == OJ_OK, "no file");
    return read_bytes(copy, bytes, MOST_BYTES);
}

/* Corrects the checksum, so that the reader goes on to the bytes after it. */
static void mend_checksum(uint8_t *bytes, size_t size)
{
    int64_t n, number;
    uint64_t hash;
    if (size < 32)
        return;
    memcpy(&n, bytes + 16, sizeof n);
    if (n < 0 || (uint64_t)n * 24 + 32 != size)
        return;
    hash = oj_hash_mix(0, &n);
    for (int64_t i = 0; i < n; i++)
    {
        for (int64_t array = 0; array < 3; array++)
        {
            memcpy(&number, bytes + 32 + 8 * (array * n + i), sizeof number);
            hash = oj_hash_mix(hash, &number);
        }
    }
    memcpy(bytes + 24, &hash, sizeof hash);
}

int main(int argc, char **argv)
{
    static const uint8_t values[] = {0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0xF0};
    static uint8_t bytes[MOST_BYTES];
    long rounds_left = argc > 1 ? atol(argv[1]) : 1000;
    snprintf(copy, sizeof copy, "/tmp/fuzz_live_%ld.copy", (long)getpid());
    for (; rounds_left > 0; rounds_left--)
    {
        size_t n = make_file(bytes, pick(32));
        for (int m = pick(4); m > 0; m--)
            n = mutate(bytes, n, sizeof bytes, values, sizeof values);
        if (pick(2))
            mend_checksum(bytes, n);
        LLVMFuzzerTestOneInput(bytes, n);
    }
    return 0;
}
#endif
