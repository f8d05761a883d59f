/* Reads any bytes as the state of events. They are refused with one line of
 * error, or give keys that can be saved and read again. With clang:
 * -fsanitize=fuzzer,address,undefined. With OJ_FUZZ_MAIN, fuzz_event_state
 * [ITERATIONS] mutates states from a fixed seed; most of them have a matching
 * hash. */
#include "../../algs/pairs/events/oj_event_state.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_hash_mix.h"
#include "fuzz_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum
{
    N_FEATURES = 9
};

static const double x[N_FEATURES] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const int64_t fid[N_FEATURES] = {-5, 3, 10, 11, 12, 99, 256, 70000, 1};

static struct oj_flat make_join(void)
{
    struct oj_flat join = {0};
    join.n_features = join.n_vertices = N_FEATURES;
    join.fid = fid;
    join.x = join.y = x;
    return join;
}

/* tie ranks, which follow the FIDs */
static const int32_t tie_rank[N_FEATURES] = {0, 2, 3, 4, 5, 6, 7, 8, 1};

static struct oj_events *make_events(int has_texts, int is_nearest)
{
    const struct oj_event_rules rules = {is_nearest, 0, has_texts};
    struct oj_events *events = NULL;
    require(oj_events_new(&rules, N_FEATURES, tie_rank, &events, NULL) == OJ_OK,
            "no memory");
    return events;
}

static char *write_state(const struct oj_events *events, size_t *n)
{
    const struct oj_flat join = make_join();
    const struct oj_event_state state = {&join, "-op within"};
    const struct oj_event_state_to_write written = {&state, events};
    char *bytes = NULL;
    FILE *file = open_memstream(&bytes, n);
    require(file != NULL, "no memory");
    oj_event_state_write(file, &written);
    require(fclose(file) == 0, "a file in memory");
    return bytes;
}

static oj_status read_state(const void *bytes, size_t n,
                            struct oj_events *events, struct oj_error *err)
{
    const struct oj_flat join = make_join();
    const struct oj_event_state state = {&join, "-op within"};
    return oj_event_state_read(bytes, (int64_t)n, "FILE", &state, events, err);
}

/* Writes the state that was read, and reads it again. */
static void check_state(const struct oj_events *events, int has_texts,
                        int is_nearest)
{
    struct oj_events *again = make_events(has_texts, is_nearest);
    struct oj_event_counts a, b;
    struct oj_error err;
    size_t n = 0;
    char *bytes = write_state(events, &n);
    require(read_state(bytes, n, again, &err) == OJ_OK, "not read again");
    oj_events_count(events, &a);
    oj_events_count(again, &b);
    require(a.n_inside == b.n_inside, "other keys");
    free(bytes);
    oj_events_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int rules = 0; rules < 4; rules++)
    {
        struct oj_events *events = make_events(rules & 1, rules >> 1);
        struct oj_error err = {OJ_OK, ""};
        oj_status status = read_state(data, size, events, &err);
        if (status == OJ_OK)
            check_state(events, rules & 1, rules >> 1);
        else
            require((status == OJ_ERR_DATA || status == OJ_ERR_ARG ||
                     status == OJ_ERR_NOMEM) &&
                        err.message[0] != '\0' &&
                        strchr(err.message, '\n') == NULL,
                    "an error without a line that says why");
        oj_events_free(events);
    }
    return 0;
}

#ifdef OJ_FUZZ_MAIN
enum
{
    MAX_BYTES = 1000
};

static size_t make_state(uint8_t *to)
{
    const int has_texts = pick(2), is_nearest = pick(2);
    struct oj_events *events = make_events(has_texts, is_nearest);
    size_t n = 0;
    char *bytes;
    for (int i = pick(6); i > 0; i--)
    {
        char name[16];
        int32_t features[N_FEATURES];
        struct oj_event_key key = {0};
        snprintf(name, sizeof name, "key %d", pick(20));
        key.integer = pick(20) - 3;
        key.text = has_texts ? name : NULL;
        key.n_text = (int64_t)strlen(name);
        key.feature = features;
        for (int r = pick(3); r < N_FEATURES; r += 1 + pick(4))
        {
            int32_t f = 0;
            while (tie_rank[f] != r)
                f++;
            features[key.n++] = f;
        }
        key.n = is_nearest && key.n > 1 ? 1 : key.n;
        (void)!oj_events_add_key(events, &key, NULL); /* the key may repeat */
    }
    bytes = write_state(events, &n);
    require(n + 8 < MAX_BYTES, "a state that is too large");
    memcpy(to, bytes, n);
    free(bytes);
    oj_events_free(events);
    return n;
}

/* Corrects the hash, so that the reader goes on to the bytes after it. */
static void mend_hash(uint8_t *bytes, size_t n)
{
    uint64_t hash = UINT64_C(0x13198A2E03707344);
    uint8_t word[8];
    for (size_t i = 0; i < n - 8; i += 8)
    {
        memset(word, 0, sizeof word);
        memcpy(word, bytes + i, n - 8 - i < 8 ? n - 8 - i : 8);
        hash = oj_hash_mix(hash, word);
    }
    for (int i = 0; i < 8; i++)
        bytes[n - 8 + (size_t)i] = (uint8_t)(hash >> (8 * i));
}

int main(int argc, char **argv)
{
    static const uint8_t values[] = {0, 1, 2, 8, 0x7F, 0x80, 0xFF, 'k'};
    long n_rounds = argc > 1 ? atol(argv[1]) : 100000, n_read = 0;
    for (long i = 0; i < n_rounds; i++)
    {
        uint8_t bytes[MAX_BYTES];
        size_t n = make_state(bytes);
        for (int m = pick(4); m > 0; m--)
            n = mutate(bytes, n, MAX_BYTES - 1, values, sizeof values);
        if (n >= 8 && !one_in(8))
            mend_hash(bytes, n);
        LLVMFuzzerTestOneInput(bytes, n);
        n_read++;
    }
    printf("%ld inputs\n", n_read);
    return 0;
}
#endif
