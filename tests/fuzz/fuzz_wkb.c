/* Reads any bytes as WKB. The reader refuses them, or makes a layer that passes
 * oj_flat_check(). With clang: -fsanitize=fuzzer,address,undefined. With
 * OJ_FUZZ_MAIN, fuzz_wkb [ITERATIONS] mutates sample geometries, from a fixed
 * random seed. */
#include "../../flatten/arrays/oj_wkb.h"
#include "../../flatten/base/oj_alloc.h"

#include "../unit/arrays/wkb_seeds.h"
#include "fuzz_bytes.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the bytes as the first feature, which may get the short form, and as a
 * feature after a polygon. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oj_flat_buf buf = {0};
    struct oj_flat flat;
    struct wkb polygon = {0};
    struct oj_error err;
    oj_status first, second;
    wkb_polygon(&polygon, 0, 1, 0, 0);
    first = oj_wkb_add(&buf, 1, data, size, &err);
    require(first == OJ_OK || first == OJ_ERR_DATA ||
                first == OJ_ERR_UNSUPPORTED,
            "unexpected status");
    require(buf.n_features == (first == OJ_OK), "a feature too many");
    flat = oj_flat_buf_view(&buf);
    require(oj_flat_check(&flat, &err) == OJ_OK, "the layer is inconsistent");
    require(flat.n_vertices <= (int64_t)size / 8 + 1, "too many vertices");
    require(oj_wkb_add(&buf, 2, polygon.bytes, polygon.n, NULL) == OJ_OK,
            "a good polygon is refused");
    second = oj_wkb_add(&buf, 3, data, size, &err);
    require(first == second, "two answers to the same bytes");
    flat = oj_flat_buf_view(&buf);
    require(oj_flat_check(&flat, &err) == OJ_OK, "the layer is inconsistent");
    require(flat.n_features == 1 + 2 * (first == OJ_OK), "a feature too many");
    oj_flat_buf_free(&buf);
    return 0;
}

#ifdef OJ_FUZZ_MAIN
int main(int argc, char **argv)
{
    static const uint8_t values[] = {0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0xF0};
    long n = argc > 1 ? atol(argv[1]) : 200000;
    struct wkb w;
    for (long i = 0; i < n; i++)
    {
        uint8_t *exact;
        wkb_seed(&w, pick(WKB_SEEDS), wkb_flags(pick(WKB_FLAGS)), pick(2));
        for (int m = pick(4); m > 0; m--)
            w.n = mutate(w.bytes, w.n, sizeof w.bytes, values, sizeof values);
        exact = malloc(w.n); /* exact size, so that a sanitizer reports reads
                                beyond it */
        if (exact == NULL)
            return 1;
        memcpy(exact, w.bytes, w.n);
        LLVMFuzzerTestOneInput(exact, w.n);
        free(exact);
    }
    printf("fuzz_wkb: %ld inputs\n", n);
    return 0;
}
#endif
