#include "oj_pipeline.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"

#include <pthread.h>

/* An answer on its way. */
struct joined_part
{
    struct oj_pipeline_part part;
    struct oj_flat_slice slice; /* part.flat, when it is not the whole batch */
    struct oj_matches matches;
    int ends_batch;
};

/* Batch b lives in slot b % OJ_PIPELINE_SLOTS, answer a in answer
 * a % OJ_PIPELINE_SLOTS.  n_released <= n_read <= n_released + SLOTS and
 * n_written <= n_joined <= n_written + SLOTS hold at all times, and the
 * counters are all that the stages tell each other. */
struct pipeline
{
    const struct oj_pipeline_source *source;
    const struct oj_pipeline_joiner *joiner;
    const struct oj_pipeline_sink *sink;
    const struct oj_pipeline_options *options;
    struct oj_pipeline_counts *counts;
    struct oj_flat batches[OJ_PIPELINE_SLOTS];
    struct joined_part answers[OJ_PIPELINE_SLOTS];

    /* The joiner's own. */
    int64_t n_batches_joined;
    int64_t most_rows; /* of a part; follows what was too many */

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t moved;  /* any of it has changed */
    int64_t n_read;        /* batches */
    int64_t n_released;    /* batches that may be read over */
    int64_t n_joined;      /* answers */
    int64_t n_written;     /* answers */
    int read_ended;        /* n_read is final */
    int join_ended;        /* n_joined is final */
    oj_status status;
    struct oj_error error;
};

/* Later errors are consequences of the first. */
static void stop(struct pipeline *p, oj_status status,
                 const struct oj_error *error)
{
    pthread_mutex_lock(&p->mutex);
    if (p->status == OJ_OK)
    {
        p->status = status;
        p->error = *error;
    }
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->mutex);
}

/* Waits until *ready(p) or nothing can come any more; 1: go on. */
static int await(struct pipeline *p, int (*ready)(const struct pipeline *),
                 int (*ended)(const struct pipeline *))
{
    int go;
    pthread_mutex_lock(&p->mutex);
    while (p->status == OJ_OK && !ready(p) && !ended(p))
        pthread_cond_wait(&p->moved, &p->mutex);
    go = p->status == OJ_OK && ready(p);
    pthread_mutex_unlock(&p->mutex);
    return go;
}

static void advance(struct pipeline *p, int64_t *counter)
{
    pthread_mutex_lock(&p->mutex);
    *counter += 1;
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->mutex);
}

static int may_read(const struct pipeline *p)
{
    return p->n_read < p->n_released + OJ_PIPELINE_SLOTS;
}

static int may_join(const struct pipeline *p)
{
    return p->n_batches_joined < p->n_read;
}

static int may_answer(const struct pipeline *p)
{
    return p->n_joined < p->n_written + OJ_PIPELINE_SLOTS;
}

static int may_write(const struct pipeline *p)
{
    return p->n_written < p->n_joined;
}

static int never(const struct pipeline *p)
{
    (void)p;
    return 0;
}

static int all_joined(const struct pipeline *p)
{
    return p->read_ended && p->n_batches_joined == p->n_read;
}

static int all_written(const struct pipeline *p)
{
    return p->join_ended && p->n_written == p->n_joined;
}

static void raise_flag(struct pipeline *p, int *flag)
{
    pthread_mutex_lock(&p->mutex);
    *flag = 1;
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->mutex);
}

static void *reader_main(void *user)
{
    struct pipeline *p = user;
    for (int64_t batch = 0; await(p, may_read, never); batch++)
    {
        int s = (int)(batch % OJ_PIPELINE_SLOTS);
        struct oj_error error = {OJ_OK, ""};
        double start = oj_clock_seconds();
        oj_status status = oj_check_cancel(p->options->cancel, &error);
        if (status == OJ_OK)
            status =
                p->source->read(p->source->user, s, &p->batches[s], &error);
        p->counts->read_s += oj_clock_seconds() - start;
        if (status != OJ_OK)
        {
            stop(p, status, &error);
            break;
        }
        if (p->batches[s].n_features == 0)
        {
            raise_flag(p, &p->read_ended);
            break;
        }
        advance(p, &p->n_read);
    }
    return NULL;
}

/* Points answer at the n rows of batch slot from first on. */
static oj_status take_rows(struct pipeline *p, struct joined_part *answer,
                           int slot, int64_t first, int64_t n,
                           struct oj_error *err)
{
    const struct oj_flat *batch = &p->batches[slot];
    answer->part.slot = slot;
    answer->part.answer = (int)(answer - p->answers);
    answer->part.first_row = first;
    answer->part.flat = batch;
    answer->ends_batch = first + n == batch->n_features;
    if (n == batch->n_features)
        return OJ_OK;
    answer->part.flat = &answer->slice.flat;
    return oj_flat_slice_make(batch, first, n, &answer->slice, err);
}

/* Joins the next rows of a batch, as many as do not have too many pairs. */
static oj_status join_part(struct pipeline *p, struct joined_part *answer,
                           int slot, int64_t first, int64_t *n_joined,
                           struct oj_error *err)
{
    int64_t left = p->batches[slot].n_features - first;
    for (;;)
    {
        int64_t n = left < p->most_rows ? left : p->most_rows;
        oj_status status;
        OJ_TRY(oj_check_cancel(p->options->cancel, err));
        OJ_TRY(take_rows(p, answer, slot, first, n, err));
        status = p->joiner->join(p->joiner->user, &answer->part,
                                 &answer->matches, err);
        *n_joined = n;
        if (status != OJ_ERR_TOO_MANY_PAIRS || n == 1)
        {
            /* Parts grow again, slowly: trying in vain costs a join. */
            if (p->most_rows < INT64_MAX / 2)
                p->most_rows += (p->most_rows + 3) / 4;
            return status;
        }
        p->most_rows = (n + 1) / 2;
    }
}

static oj_status join_batch(struct pipeline *p, int slot, struct oj_error *err)
{
    /* Asked once: after its last answer the slot is read into again. */
    int64_t n_rows = p->batches[slot].n_features, first = 0, n = 0;
    while (first < n_rows)
    {
        struct joined_part *answer;
        double start;
        oj_status status;
        if (!await(p, may_answer, never))
            return OJ_OK; /* stopped elsewhere */
        answer = &p->answers[p->n_joined % OJ_PIPELINE_SLOTS];
        start = oj_clock_seconds();
        status = join_part(p, answer, slot, first, &n, err);
        p->counts->join_s += oj_clock_seconds() - start;
        OJ_TRY(status);
        first += n;
        advance(p, &p->n_joined);
    }
    return OJ_OK;
}

static void *join_main(void *user)
{
    struct pipeline *p = user;
    while (await(p, may_join, all_joined))
    {
        struct oj_error error = {OJ_OK, ""};
        oj_status status = join_batch(
            p, (int)(p->n_batches_joined % OJ_PIPELINE_SLOTS), &error);
        if (status != OJ_OK)
        {
            stop(p, status, &error);
            break;
        }
        p->n_batches_joined++;
    }
    raise_flag(p, &p->join_ended);
    return NULL;
}

static oj_status write_answer(struct pipeline *p,
                              const struct joined_part *answer,
                              struct oj_error *err)
{
    struct oj_pipeline_counts *counts = p->counts;
    int64_t most = p->options->max_pairs;
    double start = oj_clock_seconds();
    OJ_TRY(oj_check_cancel(p->options->cancel, err));
    if (most > 0 && counts->n_pairs + answer->matches.n_pairs > most)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "there are more than %lld pairs, the most that "
                       "-max_pairs allows",
                       (long long)most);
    OJ_TRY(p->sink->write(p->sink->user, &answer->part, &answer->matches, err));
    counts->write_s += oj_clock_seconds() - start;
    counts->n_parts += 1;
    counts->n_rows += answer->part.flat->n_features;
    counts->n_matched += answer->matches.n_matched;
    counts->n_pairs += answer->matches.n_pairs;
    if (p->options->progress != NULL &&
        p->options->progress(counts->n_rows, p->options->progress_user) != 0)
        return oj_fail_cancelled(err);
    return OJ_OK;
}

static void write_all(struct pipeline *p)
{
    while (await(p, may_write, all_written))
    {
        struct joined_part *answer =
            &p->answers[p->n_written % OJ_PIPELINE_SLOTS];
        struct oj_error error = {OJ_OK, ""};
        oj_status status = write_answer(p, answer, &error);
        if (status != OJ_OK)
        {
            stop(p, status, &error);
            break;
        }
        if (answer->ends_batch)
            advance(p, &p->n_released);
        advance(p, &p->n_written);
    }
}

static void run_threads(struct pipeline *p)
{
    const struct oj_error no_thread = {OJ_ERR_NOMEM,
                                       "could not start a thread"};
    pthread_t reader, joiner;
    int has_reader, has_joiner;
    has_reader = pthread_create(&reader, NULL, reader_main, p) == 0;
    has_joiner = has_reader && pthread_create(&joiner, NULL, join_main, p) == 0;
    if (has_joiner)
        write_all(p);
    else
        stop(p, OJ_ERR_NOMEM, &no_thread);
    if (has_joiner)
        pthread_join(joiner, NULL);
    if (has_reader)
        pthread_join(reader, NULL);
}

oj_status oj_pipeline_run(const struct oj_pipeline_source *source,
                          const struct oj_pipeline_joiner *joiner,
                          const struct oj_pipeline_sink *sink,
                          const struct oj_pipeline_options *options,
                          struct oj_pipeline_counts *counts,
                          struct oj_error *err)
{
    const struct oj_pipeline_counts no_counts = {0};
    struct pipeline p = {0};
    *counts = no_counts;
    p.source = source;
    p.joiner = joiner;
    p.sink = sink;
    p.options = options;
    p.counts = counts;
    p.most_rows = INT64_MAX;
    if (pthread_mutex_init(&p.mutex, NULL) != 0)
        return oj_fail(err, OJ_ERR_NOMEM, "could not make a lock");
    if (pthread_cond_init(&p.moved, NULL) != 0)
    {
        pthread_mutex_destroy(&p.mutex);
        return oj_fail(err, OJ_ERR_NOMEM, "could not make a lock");
    }
    run_threads(&p);
    pthread_cond_destroy(&p.moved);
    pthread_mutex_destroy(&p.mutex);
    for (int s = 0; s < OJ_PIPELINE_SLOTS; s++)
    {
        oj_matches_free(&p.answers[s].matches);
        oj_flat_slice_free(&p.answers[s].slice);
    }
    if (p.status != OJ_OK)
        return oj_fail(err, p.status, "%s", p.error.message);
    return OJ_OK;
}
