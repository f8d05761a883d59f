/** Random numbers for tests, equal on every machine. They depend on a seed,
 * which is printed if a test fails. Include once, in a test program. */
#ifndef RANDOM_NUMBERS_H
#define RANDOM_NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state;

static inline uint64_t random_bits(void)
{
    uint64_t z = random_state += 0x9E3779B97F4A7C15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* 0 .. n - 1 */
static inline int pick(int n)
{
    return (int)(random_bits() % (uint64_t)n);
}

/* 1 once in n times */
static inline int one_in(int n)
{
    return pick(n) == 0;
}

/* 0 <= u < 1 */
static inline double unit(void)
{
    return (double)(random_bits() >> 11) * 0x1p-53;
}

/* low <= v < high */
static inline double between(double low, double high)
{
    return low + (high - low) * unit();
}

/* Returns a random number of either sign whose magnitude is between 2^low and
 * 2^high.
 */
static inline double any_size(int low, int high)
{
    double v = ldexp(1.0 + unit(), low + pick(high - low));
    return pick(2) ? v : -v;
}

/* Returns v moved by up to `steps` doubles in either direction. 0 stays 0,
 * because its neighbours are too small. */
static inline double nudge(double v, int steps)
{
    int n = v == 0.0 ? 0 : pick(2 * steps + 1) - steps;
    for (; n > 0; n--)
        v = nextafter(v, INFINITY);
    for (; n < 0; n++)
        v = nextafter(v, -INFINITY);
    return v;
}

static inline uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* Like ck_assert_msg(), for inner loops. Check writes a note of every assertion
 * to a file, which would take longer than the tested code. */
#define expect(condition, ...)                                                 \
    do                                                                         \
    {                                                                          \
        if (!(condition))                                                      \
            ck_abort_msg(__VA_ARGS__);                                         \
    } while (0)

static inline int is_switched_on(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && strcmp(text, "1") == 0;
}

/* Returns the number of rounds of a test. OGRJOIN_TEST_LONG=1 multiplies it by
 * fifty, OGRJOIN_TEST_SHORT=1 divides ten or more by three, and
 * OGRJOIN_TEST_ROUNDS=n sets it. */
static inline int64_t rounds(int64_t usual)
{
    const char *text = getenv("OGRJOIN_TEST_ROUNDS");
    if (text != NULL && atoll(text) > 0)
        return atoll(text);
    if (is_switched_on("OGRJOIN_TEST_LONG"))
        return 50 * usual;
    return usual >= 10 && is_switched_on("OGRJOIN_TEST_SHORT") ? usual / 3
                                                               : usual;
}

/* Returns the seed of the first round. OGRJOIN_TEST_SEED=n repeats a round that
 * failed. */
static inline uint64_t first_seed(void)
{
    const char *text = getenv("OGRJOIN_TEST_SEED");
    return text != NULL ? strtoull(text, NULL, 10) : 1;
}

/* seed of the current round, or of all rounds */
static uint64_t seed __attribute__((unused));

static inline int64_t first_round(int64_t usual)
{
    seed = random_state = first_seed();
    return rounds(usual);
}

static inline int64_t next_round(int64_t n_left)
{
    random_state = ++seed;
    return n_left - 1;
}

/* Runs the block that follows once per round, each with its own random numbers.
 */
#define EACH_ROUND(usual)                                                      \
    for (int64_t n_left = first_round(usual); n_left > 0;                      \
         n_left = next_round(n_left))

#endif
