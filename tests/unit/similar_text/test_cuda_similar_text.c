/* Similar texts on a GPU have the answers of the backend cpu, bit for bit.
 * Skipped if no GPU can be used.
 * Kind: property, degenerate, memory. OGRJOIN_TEST_ROUNDS=n runs more rounds.
 */
#include "../references.h"

#include "../join_trial.h"
#include "../run_device_tests.h"
#include "../text/text_layers.h"

static int64_t n_pairs_seen, n_exact_seen;

/* Makes sets of up to `most` of n_tokens tokens. Many are copies of earlier
 * sets, with a few tokens added and removed. */
static void pick_sets(int64_t n, uint32_t n_tokens, int most,
                      struct oj_token_sets_buf *s)
{
    s->n_rows = n;
    s->offset = oj_calloc(n + 1, sizeof *s->offset);
    s->token = oj_malloc((int64_t)n_tokens * n + 1, sizeof *s->token);
    s->size = oj_malloc(n + 1, sizeof *s->size);
    s->bits = oj_calloc(n + 1, sizeof *s->bits);
    ck_assert(s->offset != NULL && s->token != NULL && s->size != NULL &&
              s->bits != NULL);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t of = i > 0 ? pick((int)i) : 0, at = s->offset[i];
        int64_t from = s->offset[of], end = s->offset[of + 1];
        int is_copy = i > 0 && !one_in(4), changes = 1 + pick(12);
        int rarity = (int)n_tokens / (1 + pick(most)) + 1;
        for (uint32_t t = 0; t < n_tokens && !one_in(40000); t++)
        {
            int is_in = one_in(rarity);
            while (is_copy && from < end && s->token[from] < t)
                from++;
            if (is_copy && !one_in(changes * 4))
                is_in = from < end && s->token[from] == t;
            if (!is_in)
                continue;
            s->token[at++] = t;
            s->bits[i].word[t * 7 % 2] ^= UINT64_C(1) << (t * 11 % 64);
        }
        s->size[i] = (int32_t)(at - s->offset[i]);
        if (s->size[i] > 0 && one_in(6)) /* tokens that are not in the
                                            dictionary */
            s->size[i] += pick(3);
        s->offset[i + 1] = at;
    }
}

static void set_texts(struct join_trial *t)
{
    struct columns *c = &t->columns;
    for (int s = 0; s < 2; s++)
        c->texts[s][0] = oj_token_sets_view(&c->text[s][0]);
    t->join.texts = c->texts[0];
    t->input.texts = c->texts[1];
    t->join.n_texts = t->input.n_texts = t->relation.n_similar = 1;
    t->relation.op = OJ_OP_SIMILAR;
    t->relation.k = OJ_EVERY_PAIR;
}

static void make_job(struct join_trial *t, int most_rows)
{
    static const uint32_t n_tokens[] = {3, 30, 200, 1200, 3000};
    int64_t n_join = pick(most_rows), n_input = pick(most_rows);
    uint32_t n = n_tokens[pick(5)];
    int most = 1 + pick(one_in(3) ? 150 : 30), fids = !one_in(5);
    memset(t, 0, sizeof *t);
    add_features_without_geometry(&t->join_buf, n_join);
    add_features_without_geometry(&t->input_buf, n_input);
    trial_view(t);
    if (fids)
        t->join.fid = t->fid = pick_fids(n_join);
    t->relation = oj_relation_default();
    t->relation.op = OJ_OP_SIMILAR;
    pick_columns(&t->columns, &t->join, &t->input, &t->relation, 1.0, 4);
    t->relation.exclude_same_geometry = 0;
    pick_sets(n_join, n, most, &t->columns.text[0][0]);
    pick_sets(n_input, n + (uint32_t)pick(3), most, &t->columns.text[1][0]);
    set_texts(t);
    t->relation.similar[0] = (struct oj_text_condition){
        (enum oj_text_measure)pick(4), pick(10), 9 + pick(3)};
    if (one_in(3))
        t->relation.k = 1 + pick(one_in(3) ? 40 : 4);
}

/* Compares the answer with those of the papers' methods. With little memory,
 * these methods may return an error. */
static void compare_papers(const struct join_trial *t,
                           const struct oj_options *given,
                           const struct oj_matches *truth)
{
    static const char *const papers[] = {"cuda_lists", "cuda_size_blocks"};
    for (int i = 0; i < 2; i++)
    {
        MATCHES theirs = {0};
        oj_status status =
            trial_open_and_join(t, papers[i], given, NULL, &theirs);
        if (t->relation.k < OJ_EVERY_PAIR)
            ck_assert_int_eq(status, OJ_ERR_UNSUPPORTED);
        else if (given->gpu_memory == 0 || status != OJ_ERR_NOMEM)
        {
            must(status);
            same_matches(papers[i], &theirs, truth);
        }
    }
}

static void compare_with_cpu(const struct join_trial *t,
                             const struct oj_options *given)
{
    const struct oj_text_condition *c = &t->relation.similar[0];
    MATCHES ours = {0}, truth = {0};
    char how[64] = "";
    trial_truth(t, &truth);
    must(trial_open_and_join(t, "cuda", given, how, &ours));
    same_matches("on the GPU", &ours, &truth);
    compare_papers(t, given, &truth);
    ck_assert(t->relation.ties == OJ_TIES_ALL || given->gpu_memory > 0 ||
              strstr(how, "all pairs") != NULL);
    n_pairs_seen += ours.n_pairs;
    for (int64_t i = 0; i < ours.n_entries; i++)
        n_exact_seen +=
            ours.measure[i] == -(double)c->numerator / (double)c->denominator;
}

TEST(random_sides)
{
    n_pairs_seen = n_exact_seen = 0;
    EACH_ROUND(60)
    {
        struct oj_options options = {.n_threads = 1, .gpus = OJ_ALL_GPUS};
        struct join_trial job, alone;
        make_job(&job, one_in(5) ? 600 : 150);
        options.gpu_batch =
            one_in(2) ? 0 : 1 + job.input.n_features / (1 + pick(5));
        compare_with_cpu(&job, &options);
        alone = trial_with_itself(&job);
        compare_with_cpu(&alone, &options);
        trial_free(&job);
    }
    printf("%lld pairs, %lld of them at the threshold\n",
           (long long)n_pairs_seen, (long long)n_exact_seen);
    ck_assert_int_gt(n_pairs_seen, 0);
    ck_assert_int_gt(n_exact_seen, 0);
}

/* All rows have equal texts, which gives more pairs than are allocated at
 * first. */
TEST(all_alike)
{
    const struct oj_options options = {.n_threads = 1};
    const struct oj_options bounded = {.n_threads = 1, .max_batch_pairs = 1000};
    struct join_trial job;
    MATCHES out = {0};
    random_state = 5;
    do
    {
        make_job(&job, 400);
        trial_free(&job);
        make_job(&job, 400);
    } while (job.join.n_features < 300 || job.input.n_features < 300);
    job.relation.k = OJ_EVERY_PAIR;
    job.relation.unordered_pairs = job.relation.exclude_self = 0;
    job.join.on_class = job.input.on_class = NULL;
    job.join.exclude_class = job.input.exclude_class = NULL;
    for (int s = 0; s < 2; s++)
    {
        struct oj_token_sets_buf *sets = &job.columns.text[s][0];
        for (int64_t i = 0; i < sets->n_rows; i++)
        {
            sets->offset[i + 1] = 2 * (i + 1);
            sets->token[2 * i] = 1;
            sets->token[2 * i + 1] = 2;
            sets->size[i] = 2;
            sets->bits[i] = (struct oj_token_bits){{6, 0}};
        }
    }
    set_texts(&job);
    n_pairs_seen = 0;
    compare_with_cpu(&job, &options);
    ck_assert_int_eq(n_pairs_seen, job.join.n_features * job.input.n_features);
    ck_assert_int_eq(trial_open_and_join(&job, "cuda", &bounded, NULL, &out),
                     OJ_ERR_TOO_MANY_PAIRS);
    trial_free(&job);
}

/* Enough for a part, or the CPU joins. */
TEST(little_memory)
{
    struct join_trial job;
    random_state = 8;
    make_job(&job, 900);
    for (int64_t bytes = 1 << 12; bytes < (int64_t)1 << 26; bytes *= 4)
    {
        const struct oj_options options = {.n_threads = 1, .gpu_memory = bytes};
        compare_with_cpu(&job, &options);
    }
    trial_free(&job);
}

/* Joins for which there is no kernel are answered by the CPU. */
TEST(left_to_the_cpu)
{
    const struct oj_options options = {.n_threads = 1};
    struct join_trial job;
    random_state = 11;
    make_job(&job, 200);
    job.relation.k = 3;
    job.relation.ties = OJ_TIES_ALL;
    compare_with_cpu(&job, &options);
    trial_free(&job);
}

TEST(degenerate_sides)
{
    const struct oj_options options = {.n_threads = 1};
    int cancel = 1;
    const struct oj_options stopped = {.n_threads = 1, .cancel = &cancel};
    struct join_trial job;
    struct oj_flat input;
    MATCHES out = {0};
    random_state = 4;
    make_job(&job, 300);
    ck_assert_int_gt(job.input.n_features, 0);
    ck_assert_int_eq(trial_open_and_join(&job, "cuda", &stopped, NULL, &out),
                     OJ_ERR_CANCELLED);
    input = job.input;
    job.input = (struct oj_flat){0};
    compare_with_cpu(&job, &options);
    job.input = input;
    job.input.n_texts = 0;
    ck_assert_int_eq(trial_open_and_join(&job, "cuda", &options, NULL, &out),
                     OJ_ERR_ARG);
    job.input = input;
    job.join.n_texts = 0;
    ck_assert_int_eq(trial_open_and_join(&job, "cuda", &options, NULL, &out),
                     OJ_ERR_ARG);
    job.join = (struct oj_flat){0};
    compare_with_cpu(&job, &options);
    trial_free(&job);
}

TEST(real_names)
{
    static const int tenths[] = {8, 6, 4};
    const struct oj_options options = {.n_threads = 0};
    struct join_trial job = {0};
    struct oj_token_rules rules = {0};
    struct text_column names;
    struct oj_dictionary *dictionary = NULL;
    if (!read_column("geonames_cities.csv", "name", 60, INT32_MAX, &names))
        return;
    add_features_without_geometry(&job.join_buf, names.view.n);
    job.relation = oj_relation_default();
    must(oj_token_dictionary_make(&names.view, NULL, &rules, 0, NULL,
                                  &dictionary, &job.columns.text[0][0],
                                  &error));
    trial_view(&job);
    set_texts(&job);
    job.input = job.join;
    job.relation.unordered_pairs = 1;
    n_pairs_seen = 0;
    for (int i = 0; i < 3; i++)
    {
        job.relation.similar[0] =
            (struct oj_text_condition){OJ_TEXT_JACCARD, tenths[i], 10};
        compare_with_cpu(&job, &options);
    }
    ck_assert_int_gt(n_pairs_seen, 50);
    job.relation.unordered_pairs = 0;
    job.relation.k = 3;
    job.relation.similar[0].numerator = 0; /* one common token is sufficient */
    compare_with_cpu(&job, &options);
    oj_token_dictionary_free(dictionary);
    free_column(&names);
    trial_free(&job);
}

int main(void)
{
    if (!device_tests_open("similar texts on a GPU"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
