/* Similar texts. The engine is compared with the plain reference, and with
 * answers on which other programs agree.
 * Kind: property, degenerate. */
#include "../../../algs/foundations/base/cpu_token_bitmaps.h"
#include "../../../algs/pairs/selection/oj_pair_filter.h"
#include "../join_trial.h"
#include "../run_tests.h"
#include "../text/text_layers.h"

static struct oj_text_condition pick_condition(void)
{
    struct oj_text_condition condition = {(enum oj_text_measure)pick(4),
                                          pick(6), 5 + pick(6)};
    return condition;
}

enum
{
    MOST_PICKED = 100 /* tokens of a set */
};

/* Makes sets of frequent and rare tokens. There are so many near copies that
 * many pairs are exactly at the threshold. */
static void pick_sets(int64_t n, uint32_t n_tokens, struct oj_token_sets_buf *s)
{
    s->n_rows = n;
    s->offset = oj_calloc(n + 1, sizeof *s->offset);
    s->token = oj_malloc(MOST_PICKED * n + 1, sizeof *s->token);
    s->size = oj_malloc(n + 1, sizeof *s->size);
    s->bits = oj_calloc(n + 1, sizeof *s->bits);
    ck_assert(s->offset != NULL && s->token != NULL && s->size != NULL &&
              s->bits != NULL);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = s->offset[i];
        int rarity = 2 + pick(6), is_empty = one_in(20);
        random_state = one_in(3) ? (uint64_t)pick(9) : random_state;
        for (uint32_t t = 0; t < n_tokens && at < s->offset[i] + MOST_PICKED;
             t++)
        {
            if (is_empty || (!one_in(rarity) && !one_in(1 + (int)(t % 5))))
                continue;
            s->token[at++] = t;
            s->bits[i].word[t * 7 % 2] ^= UINT64_C(1) << (t * 11 % 64);
        }
        random_state += (uint64_t)i * 977;
        s->size[i] = (int32_t)(at - s->offset[i]);
        if (s->size[i] > 0 && one_in(4)) /* tokens that are not in the
                                            dictionary */
            s->size[i] += pick(3);
        s->offset[i + 1] = at;
    }
}

/* Joins with one method, whatever its estimated cost. Asserts that the answer
 * is in the order of ordinals. */
static void join_with_engine(const struct oj_engine *engine,
                             const struct join_trial *t, int n_threads,
                             struct oj_matches *out)
{
    struct oj_index_args args = {.join_side = &t->join,
                                 .relation = t->relation};
    struct oj_stats stats = {0};
    struct oj_index *index = NULL;
    args.options.n_threads = n_threads;
    must(oj_index_make(engine, &args, &index, &stats, &error));
    must(engine->join(index, &t->input, out, &stats, &error));
    oj_index_free(engine, index);
}

static int64_t n_pairs_seen, n_exact_seen;

static void count_exact(const struct join_trial *t, const struct oj_matches *m)
{
    const struct oj_text_condition *c = &t->relation.similar[0];
    n_pairs_seen += m->n_pairs;
    for (int64_t i = 0; i < m->n_entries; i++)
        n_exact_seen +=
            m->join_row[i] >= 0 &&
            m->measure[i] == -(double)c->numerator / (double)c->denominator;
}

TEST(property_prefixes_and_lists)
{
    for (int i = 0; i < 400; i++)
    {
        struct join_trial t = {0};
        struct columns *c = &t.columns;
        MATCHES plain = {0}, fast = {0}, batch = {0};
        uint32_t n_tokens = 4 + (uint32_t)pick(60);
        int64_t n_join = pick(120), n_input = pick(120), first;
        int is_self = one_in(3); /* both sides have one set of texts */
        random_state = (uint64_t)i * 31 + 1;
        n_input = is_self ? n_join : n_input;
        add_features_without_geometry(&t.join_buf, n_join);
        add_features_without_geometry(&t.input_buf, n_input);
        trial_view(&t);
        t.relation = oj_relation_default();
        t.relation.op = OJ_OP_SIMILAR;
        t.relation.k = one_in(2) ? OJ_EVERY_PAIR : 1 + pick(4);
        t.relation.ties = one_in(2) ? OJ_TIES_ALL : OJ_TIES_FIRST;
        pick_columns(c, &t.join, &t.input, &t.relation, 1.0, 5);
        t.relation.exclude_same_geometry = 0;
        t.relation.n_similar = 1 + one_in(4);
        for (int s = 0; s < t.relation.n_similar; s++)
        {
            t.relation.similar[s] = pick_condition();
            pick_sets(n_join, n_tokens, &c->text[0][s]);
            pick_sets(n_input, n_tokens + (uint32_t)pick(5), &c->text[1][s]);
            c->texts[0][s] = oj_token_sets_view(&c->text[0][s]);
            c->texts[1][s] = oj_token_sets_view(&c->text[1][s]);
            if (is_self && s == 0)
                c->texts[1][s] = c->texts[0][s];
        }
        t.join.texts = c->texts[0];
        t.input.texts = c->texts[1];
        t.join.n_texts = t.input.n_texts = t.relation.n_similar;
        trial_answer(&t, "lists", 1, &plain);
        trial_answer(&t, "cpu", 1 + pick(3), &fast);
        same_matches("similar texts", &fast, &plain);
        join_with_engine(i % 2 ? &oj_cpu_similar_bitmaps
                               : &oj_cpu_similar_lists,
                         &t, 1 + pick(3), &fast);
        join_with_engine(&oj_lists_engine, &t, 1, &batch);
        same_matches("similar texts", &fast, &batch);
        count_exact(&t, &plain);
        /* a slice of the input must give its part of the answer */
        first = n_input > 0 ? pick((int)n_input) : 0;
        if (plain.offset != NULL)
        {
            struct join_trial part = t;
            struct oj_flat_slice slice = {0};
            must(oj_flat_slice_make(&t.input, first, n_input - first, &slice,
                                    &error));
            part.input = slice.flat;
            trial_answer(&part, "auto", 1, &batch);
            for (int64_t r = first; r < n_input; r++)
                expect(batch.offset[r - first + 1] - batch.offset[r - first] ==
                           plain.offset[r + 1] - plain.offset[r],
                       "trial %d: row %d of a slice", i, (int)r);
            oj_flat_slice_free(&slice);
        }
        trial_free(&t);
    }
    printf("%lld pairs, %lld of them at the threshold\n",
           (long long)n_pairs_seen, (long long)n_exact_seen);
    ck_assert_int_gt(n_pairs_seen, 10000);
    ck_assert_int_gt(n_exact_seen, 300);
}

/* Points near points with similar texts, some of them long, compared with all
 * pairs one by one. */
TEST(property_near_points)
{
    int64_t n_found = 0, n_long = 0;
    for (int i = 0; i < 200; i++)
    {
        struct join_trial t = {0};
        struct oj_token_sets text[2];
        MATCHES m = {0};
        int64_t n = 1 + pick(150), at = 0;
        uint32_t n_tokens = 4 + (uint32_t)pick(i % 2 ? 40 : 120);
        random_state = (uint64_t)i * 37 + 5;
        for (int64_t f = 0; f < 2 * n; f++)
            add_point(f < n ? &t.join_buf : &t.input_buf, 10 * unit(),
                      10 * unit());
        trial_view(&t);
        t.relation = oj_relation_default();
        t.relation.op = OJ_OP_DWITHIN;
        t.relation.max_distance = 1.0 + pick(5);
        t.relation.n_similar = 1;
        t.relation.similar[0] = pick_condition();
        for (int side = 0; side < 2; side++)
        {
            pick_sets(n, n_tokens, &t.columns.text[side][0]);
            text[side] = oj_token_sets_view(&t.columns.text[side][0]);
        }
        t.join.texts = &text[0];
        t.input.texts = &text[1];
        t.join.n_texts = t.input.n_texts = 1;
        trial_answer(&t, "cpu", 1 + pick(3), &m);
        for (int64_t row = 0; row < n; row++)
        {
            int64_t n_pairs = 0;
            for (int64_t f = 0; f < n; f++)
            {
                double d = hypot(t.input.x[row] - t.join.x[f],
                                 t.input.y[row] - t.join.y[f]);
                int64_t a = text[1].size[row], b = text[0].size[f];
                int64_t common =
                    oj_token_sets_count_common(&text[1], row, &text[0], f);
                n_pairs +=
                    d <= t.relation.max_distance && common > 0 &&
                    oj_text_is_similar(&t.relation.similar[0], common, a, b);
                n_long += a >= OJ_LONG_TEXT && b >= OJ_LONG_TEXT;
            }
            expect(oj_matches_end(&m, row) - oj_matches_first(&m, row) ==
                       n_pairs,
                   "trial %d, row %d: %d pairs", i, (int)row, (int)n_pairs);
            at += n_pairs;
        }
        ck_assert_int_eq(m.n_pairs, at);
        n_found += at;
        trial_free(&t);
    }
    ck_assert_int_gt(n_found, 10000);
    ck_assert_int_gt(n_long, 10000);
}

/* Both kernels must agree in every bit of their results. */
TEST(property_planes)
{
    oj_token_planes_near *const kernels[] = {oj_token_planes_find_near_plain,
                                             oj_token_planes_avx512()};
    uint64_t word[8][200], query[8], near[5];
    uint32_t class[200];
    int32_t limit[7];
    if (kernels[1] == NULL)
        printf("left out: AVX-512, which this processor has not\n");
    for (int i = 0; i < 600; i += kernels[1] != NULL ? 1 : 2)
    {
        struct oj_token_planes planes = {1 << i % 4, 200, word[0], class};
        int64_t at = pick(100), n = pick(101);
        int32_t most = 0;
        random_state = (uint64_t)i / 2 + 7;
        for (int c = 0; c < 7; c++)
        {
            limit[c] = pick(40 * planes.n_words) - 1;
            most = limit[c] > most ? limit[c] : most;
        }
        for (int w = 0; w < 8; w++)
        {
            query[w] = (uint64_t)pick(1 << 30) * 0x9e3779b9u;
            for (int s = 0; s < 200; s++)
                word[w][s] = query[w] ^ (uint64_t)pick(1 << 30) * 0x85ebca6bu;
        }
        for (int s = 0; s < 200; s++)
            class[s] = (uint32_t)pick(7);
        kernels[i % 2](&planes, at, n, query, limit, most, near);
        for (int64_t s = 0; s < (n + 63) / 64 * 64; s++)
        {
            int differ = 0;
            for (int w = 0; s < n && w < planes.n_words; w++)
                differ += __builtin_popcountll(word[w][at + s] ^ query[w]);
            ck_assert_int_eq((int)(near[s / 64] >> s % 64 & 1),
                             s < n && differ <= limit[class[at + s]]);
        }
    }
}

/* --- names of places ------------------------------------------------------ */

/* Reads one layer of texts, which is used as both sides. Returns 0 if its file
 * is missing. */
static int open_names(struct join_trial *t, struct text_column *names,
                      struct oj_dictionary **dictionary)
{
    struct oj_token_rules rules = {0};
    memset(t, 0, sizeof *t);
    if (!read_column("geonames_cities.csv", "name", 1, INT32_MAX, names))
        return 0;
    add_features_without_geometry(&t->join_buf, names->view.n);
    t->join = oj_flat_buf_view(&t->join_buf);
    must(oj_token_dictionary_make(&names->view, NULL, &rules, 0, NULL,
                                  dictionary, &t->columns.text[0][0], &error));
    t->columns.texts[0][0] = oj_token_sets_view(&t->columns.text[0][0]);
    t->join.texts = t->columns.texts[0];
    t->join.n_texts = 1;
    t->input = t->join;
    t->relation = oj_relation_default();
    t->relation.op = OJ_OP_SIMILAR;
    t->relation.k = OJ_EVERY_PAIR;
    t->relation.unordered_pairs = 1;
    t->relation.n_similar = 1;
    t->relation.similar[0] = (struct oj_text_condition){OJ_TEXT_JACCARD, 8, 10};
    return 1;
}

static void close_names(struct join_trial *t, struct text_column *names,
                        struct oj_dictionary *dictionary)
{
    oj_token_dictionary_free(dictionary);
    free_column(names);
    trial_free(t);
}

TEST(real_names)
{
    static const struct
    {
        int64_t tenths, n_pairs;
        const char *sum;
    } want[] = {{8, 22478, "22369.679955"},
                {6, 44684, "36747.230074"},
                {4, 383686, "189588.531121"}};
    struct join_trial t;
    struct text_column names;
    struct oj_dictionary *dictionary = NULL;
    if (!open_names(&t, &names, &dictionary))
        return;
    for (int i = 0; i < 3; i++)
    {
        MATCHES one = {0}, three = {0};
        double sum = 0;
        char text[40];
        t.relation.similar[0].numerator = want[i].tenths;
        trial_answer(&t, "cpu", 1, &one);
        trial_answer(&t, "cpu", 3, &three);
        same_matches("similar texts", &one, &three);
        for (int64_t p = 0; p < one.n_entries; p++)
            sum -= one.measure[p];
        snprintf(text, sizeof text, "%.6f", sum);
        ck_assert_int_eq(one.n_pairs, want[i].n_pairs);
        ck_assert_str_eq(text, want[i].sum);
    }
    close_names(&t, &names, dictionary);
}

/* The most similar texts without a threshold. They are searched in rounds. */
TEST(real_most_similar)
{
    struct join_trial t;
    struct text_column names;
    struct oj_dictionary *dictionary = NULL;
    struct oj_flat_slice slice = {0};
    MATCHES plain = {0}, fast = {0};
    if (!open_names(&t, &names, &dictionary))
        return;
    must(oj_flat_slice_make(&t.input, 70000, 500, &slice, &error));
    t.input = slice.flat;
    t.relation.unordered_pairs = 0;
    t.relation.exclude_self = 1;
    t.relation.k = 3;
    t.relation.ties = OJ_TIES_ALL;
    t.relation.similar[0].numerator = 0;
    trial_answer(&t, "cpu", 2, &fast);
    trial_answer(&t, "lists", 1, &plain);
    same_matches("similar texts", &fast, &plain);
    ck_assert_int_ge(plain.n_pairs, 1400);
    oj_flat_slice_free(&slice);
    close_names(&t, &names, dictionary);
}

/* --- degenerate sides ----------------------------------------------------- */

TEST(degenerate_sides)
{
    struct join_trial t = {0};
    struct columns *c = &t.columns;
    MATCHES out = {0};
    add_features_without_geometry(&t.join_buf, 3);
    trial_view(&t);
    t.relation = oj_relation_default();
    t.relation.op = OJ_OP_SIMILAR;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", NULL, NULL, &out),
                     OJ_ERR_ARG);
    t.relation.n_similar = 1;
    t.relation.similar[0] = (struct oj_text_condition){OJ_TEXT_COSINE, 1, 2};
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", NULL, NULL, &out),
                     OJ_ERR_ARG);
    ck_assert_int_eq(trial_open_and_join(&t, "lists", NULL, NULL, &out),
                     OJ_ERR_ARG);
    pick_sets(3, 9, &c->text[0][0]);
    c->texts[0][0] = oj_token_sets_view(&c->text[0][0]);
    t.join.texts = c->texts[0];
    t.join.n_texts = 1;
    trial_answer(&t, "cpu", 1, &out); /* no input */
    ck_assert_int_eq(out.n_rows, 0);
    t.input = t.join;
    t.join = (struct oj_flat){0};
    trial_answer(&t, "cpu", 1, &out);
    ck_assert(out.n_rows == 3 && out.n_pairs == 0);
    trial_answer(&t, "lists", 1, &out);
    ck_assert(out.n_rows == 3 && out.n_pairs == 0);
    t.join = t.input;
    t.input.n_texts = 0;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", NULL, NULL, &out),
                     OJ_ERR_ARG);
    t.relation.similar[0].denominator = 0;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", NULL, NULL, &out),
                     OJ_ERR_ARG);
    ck_assert_int_eq(trial_open_and_join(&t, "geos", NULL, NULL, &out),
                     OJ_ERR_ARG);
    t.relation.similar[0].denominator = 2;
    ck_assert_int_eq(trial_open_and_join(&t, "geos", NULL, NULL, &out),
                     OJ_ERR_UNSUPPORTED);
    trial_free(&t);
}

int main(void)
{
    tests_open("similar texts");
    return tests_run();
}
