/** Jobs on files that may share their join sides. Include once. */
#ifndef SHARED_JOBS_H
#define SHARED_JOBS_H

#include "join_files.h"

#include "../../../driver/command/oj_parsed_command.h"
#include "../../../driver/rows/oj_pass.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "../../../flatten/base/oj_alloc.h"

#include <cpl_string.h>

struct job_pair
{
    int64_t row, fid; /* row of the input, FID of the join feature */
    double measure;
};

/* A job with all its data, and its answer. */
struct job_trial
{
    struct oj_command command;
    struct oj_pass pass;
    struct oj_error error;
    struct job_pair *pairs;
    int64_t n_pairs, cap_pairs;
};

/* Parses a command line of options, with the files input and join of the
 * folder. */
static inline void parse(struct job_trial *t, const char *line,
                         const char *input, const char *join)
{
    char **words = CSLTokenizeString2(line, " ", 0);
    oj_status status;
    memset(t, 0, sizeof *t);
    words = CSLAddString(words, "-q");
    words = CSLAddString(words, path_of("unused.csv"));
    words = CSLAddString(words, path_of(input));
    words = CSLAddString(words, path_of(join));
    status = oj_command_parse(CSLCount(words), (const char *const *)words,
                              &t->command, &t->error);
    ck_assert_msg(status == OJ_OK, "%s: %s", line, t->error.message);
    CSLDestroy(words);
}

static inline void open_job(struct job_trial *t, const char *line,
                            const char *input, const char *join)
{
    oj_status status;
    parse(t, line, input, join);
    status = oj_pass_open_shared(&t->command, NULL, &t->pass, &t->error);
    ck_assert_msg(status == OJ_OK, "%s: %s", line, t->error.message);
}

static inline void must(struct job_trial *t, oj_status status)
{
    ck_assert_msg(status == OJ_OK, "%s", t->error.message);
}

/* Prepares a job. like is a job whose join side may be used, or NULL. */
static inline void prepare(struct job_trial *t, const struct job_trial *like)
{
    t->pass.like = like != NULL ? &like->pass : NULL;
    must(t, oj_pass_prepare(&t->pass, &t->error));
}

static inline void close_job(struct job_trial *t)
{
    oj_pass_close(&t->pass);
    oj_command_free(&t->command);
    oj_free(t->pairs);
    memset(t, 0, sizeof *t);
}

static inline oj_status add_answer(struct job_trial *t,
                                   const struct oj_answer *answer,
                                   struct oj_error *err)
{
    const struct oj_matches *matches = answer->pairs;
    int64_t first = answer->batch->first_row + answer->first_row;
    OJ_TRY(oj_reserve(&t->pairs, t->n_pairs, t->n_pairs + matches->n_entries,
                      &t->cap_pairs, sizeof *t->pairs, err));
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t p = oj_matches_first(matches, row); p < end; p++)
        {
            struct job_pair *pair = &t->pairs[t->n_pairs];
            if (matches->join_row[p] < 0)
                continue;
            memset(pair, 0, sizeof *pair);
            pair->row = first + row;
            pair->fid = answer->side.flat.fid[matches->join_row[p]];
            if (matches->measure[p] >= 0.0) /* the measure is NaN for predicates
                                             */
                pair->measure = matches->measure[p];
            t->n_pairs++;
        }
    }
    return OJ_OK;
}

static inline oj_status stream(struct job_trial *t)
{
    const struct oj_answer *answer = NULL;
    oj_status status;
    t->n_pairs = 0;
    t->pass.pairs_only = 1;
    do
    {
        status = oj_pass_next(&t->pass, &answer, &t->error);
        if (status == OJ_OK && answer != NULL)
            status = add_answer(t, answer, &t->error);
    } while (status == OJ_OK && answer != NULL);
    return oj_pass_stop(&t->pass, status, &t->error);
}

static inline int same_answer(const struct job_trial *a,
                              const struct job_trial *b)
{
    return a->n_pairs == b->n_pairs &&
           memcmp(a->pairs, b->pairs, (size_t)a->n_pairs * sizeof *a->pairs) ==
               0;
}

/* Joins without a shared join side, as the command does. */
static inline void join_alone(struct job_trial *t, const char *line,
                              const char *input, const char *join)
{
    parse(t, line, input, join);
    must(t, oj_pass_open(&t->command, &t->pass, &t->error));
    prepare(t, NULL);
    must(t, oj_pass_start(&t->pass, 0, &t->error));
    must(t, stream(t));
}

static inline int64_t n_built(void)
{
    return oj_join_cache_counts().n_built;
}

static inline int64_t n_found(void)
{
    return oj_join_cache_counts().n_found;
}

/* Opens, prepares and runs a job. Returns 1 if the job used a join side that
 * existed already. */
static inline int join_shared(struct job_trial *t, const char *line,
                              const char *input, const char *join)
{
    int64_t built = n_built(), found = n_found();
    open_job(t, line, input, join);
    prepare(t, NULL);
    ck_assert_int_eq(n_built() - built + n_found() - found, 1);
    must(t, stream(t));
    return n_found() > found;
}

/* Joins once. Returns 1 if the join side existed already. */
static inline int is_found(const char *line, const char *input,
                           const char *join)
{
    struct job_trial t;
    int found = join_shared(&t, line, input, join);
    close_job(&t);
    return found;
}

#endif
