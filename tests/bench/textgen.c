/* Texts of the sizes of the papers' collections, by integer arithmetic alone,
 * so that every compiler and machine makes the same bytes; text i is a function
 * of i.
 *
 *   textgen songs|titles|publications N > FILE.csv     columns id, text
 *   textgen check
 *
 * Words are hashed syllables, chosen by Zipf's law.  Of five publications four
 * are copies of the first with one to five letters put in, taken out or
 * replaced.
 *
 *                 mean  sd    greatest length, with seed 1
 *   songs         28.6  11.1  101     (Ribeiro-Junior et al. 2016: Spotify)
 *   titles        51.8  56.5  248     (IMDb)
 *   publications  116.5 37.2  392     (DBLP)
 * are the papers' figures; check prints ours. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_WORDS 30000
#define MOST_BYTES 512

enum text_kind
{
    SONGS,
    TITLES,
    PUBLICATIONS,
    N_KINDS
};

static const char *const kinds[N_KINDS] = {"songs", "titles", "publications"};

struct word_list
{
    uint64_t up_to[N_WORDS]; /* weights of words, summed */
};

/* Numbers of a text, one after another. */
struct dice
{
    uint64_t seed, n;
};

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint32_t roll(struct dice *dice, uint32_t n)
{
    return (uint32_t)((mix(dice->seed + dice->n++) >> 32) * n >> 32);
}

/* The sum of three of them. */
static uint32_t roll_sum(struct dice *dice, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t sum = roll(dice, a);
    sum += roll(dice, b);
    return sum + roll(dice, c);
}

static void make_words(struct word_list *words)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < N_WORDS; i++)
    {
        sum += (UINT64_C(1) << 32) / (i + 2);
        words->up_to[i] = sum;
    }
}

/* Appends a word: its place in the list decides its letters, and common ones
 * are short. */
static void add_word(const struct word_list *words, struct dice *dice,
                     char text[MOST_BYTES])
{
    static const char *const starts[] = {
        "b", "c", "d", "f",  "g",  "h",  "l",  "m",  "n",  "p",
        "r", "s", "t", "v",  "w",  "st", "tr", "ch", "pr", "sh",
        "",  "k", "j", "br", "th", "gr", "qu", "y",  "z",  "pl"};
    static const char *const middles[] = {"a",  "e",  "i",  "o", "u", "a",
                                          "e",  "i",  "o",  "e", "y", "ea",
                                          "ou", "ai", "io", "ee"};
    static const char *const ends[] = {"",  "",  "",   "n", "r",  "s",
                                       "t", "l", "nd", "m", "ng", "ck"};
    uint64_t at = mix(dice->seed + dice->n++) % words->up_to[N_WORDS - 1];
    size_t low = 0, high = N_WORDS - 1, length = strlen(text);
    struct dice own = {0, 0};
    uint32_t n_syllables = 1;
    while (low < high)
    {
        size_t middle = (low + high) / 2;
        if (words->up_to[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    own.seed = mix(low) ^ 77;
    n_syllables += low > 40;
    n_syllables += low > 400 ? roll(&own, 2) : 0;
    n_syllables += low > 3000 ? roll(&own, 2) : 0;
    if (length + 8 * n_syllables + 2 > MOST_BYTES)
        return;
    if (length > 0)
        strcat(text, " ");
    for (uint32_t s = 0; s < n_syllables; s++)
    {
        uint32_t start = roll(&own, 30), middle = roll(&own, 16);
        strcat(text, starts[start < 22 ? start : roll(&own, 30)]);
        strcat(text, middles[middle]);
        strcat(text, ends[roll(&own, 12)]);
    }
}

static void add_words(const struct word_list *words, struct dice *dice,
                      uint32_t n, char text[MOST_BYTES])
{
    for (uint32_t i = 0; i < n; i++)
        add_word(words, dice, text);
}

static void add_edit(struct dice *dice, char text[MOST_BYTES])
{
    size_t n = strlen(text);
    size_t at = roll(dice, (uint32_t)n);
    uint32_t what = roll(dice, 3);
    char letter = (char)('a' + roll(dice, 26));
    if (what == 0 && n + 2 < MOST_BYTES)
        memmove(text + at + 1, text + at, n + 1 - at);
    if (what == 1 && n > 4)
        memmove(text + at, text + at + 1, n - at);
    else
        text[at] = letter;
}

static void make_text(const struct word_list *words, enum text_kind kind,
                      uint64_t i, char text[MOST_BYTES])
{
    uint64_t first = kind == PUBLICATIONS ? i / 5 * 5 : i;
    struct dice dice = {mix(first ^ (uint64_t)kind << 40), 0};
    uint32_t n;
    text[0] = '\0';
    switch (kind)
    {
        case SONGS:
            add_words(words, &dice, 2 + roll_sum(&dice, 2, 3, 1), text);
            break;
        case TITLES: /* short ones as a rule, and a long tail */
            n = 1 + roll_sum(&dice, 2, 4, 1);
            if (roll(&dice, 100) < 24)
                n += roll(&dice, 34);
            add_words(words, &dice, n, text);
            text[248] = '\0';
            break;
        default:
            add_words(words, &dice, 2 + roll_sum(&dice, 7, 6, 1), text);
            add_words(words, &dice, 2 + 2 * roll(&dice, 6), text);
    }
    if (i == first)
        return;
    dice.seed = mix(i ^ UINT64_C(5) << 50);
    dice.n = 0;
    for (n = 1 + roll(&dice, 5); n > 0; n--)
        add_edit(&dice, text);
}

/* ---- the program --------------------------------------------------------- */

static int check(const struct word_list *words)
{
    static const uint64_t wanted[N_KINDS] = {UINT64_C(0x897f1de61e062339),
                                             UINT64_C(0x5432570a9888f745),
                                             UINT64_C(0xb8c175ef9b3e302b)};
    int n_wrong = 0;
    for (int kind = 0; kind < N_KINDS; kind++)
    {
        uint64_t sum = 0, n = 20000, length = 0, square = 0, most = 0, mean;
        for (uint64_t i = 0; i < n; i++)
        {
            char text[MOST_BYTES];
            uint64_t n_bytes;
            make_text(words, (enum text_kind)kind, i, text);
            n_bytes = strlen(text);
            for (uint64_t b = 0; b < n_bytes; b++)
                sum = mix(sum ^ (unsigned char)text[b]);
            sum = mix(sum ^ i << 8);
            length += n_bytes;
            square += n_bytes * n_bytes;
            most = n_bytes > most ? n_bytes : most;
        }
        mean = length / n;
        printf("%s: mean length %" PRIu64 ".%" PRIu64 ", variance %" PRIu64
               ", greatest %" PRIu64 ", sum %016" PRIx64 "\n",
               kinds[kind], mean, length * 10 / n % 10,
               square / n - mean * mean, most, sum);
        n_wrong += sum != wanted[kind];
    }
    return n_wrong != 0;
}

int main(int argc, char **argv)
{
    static struct word_list words;
    make_words(&words);
    if (argc == 2 && strcmp(argv[1], "check") == 0)
        return check(&words);
    for (int kind = 0; argc == 3 && kind < N_KINDS; kind++)
    {
        uint64_t n = strtoull(argv[2], NULL, 10);
        if (strcmp(argv[1], kinds[kind]) != 0)
            continue;
        printf("id,text\n");
        for (uint64_t i = 0; i < n; i++)
        {
            char text[MOST_BYTES];
            make_text(&words, (enum text_kind)kind, i, text);
            printf("%" PRIu64 ",%s\n", i, text);
        }
        return 0;
    }
    fprintf(stderr, "textgen songs|titles|publications N, or textgen check\n");
    return 2;
}
