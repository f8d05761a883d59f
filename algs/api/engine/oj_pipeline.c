#include "oj_pipeline.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../../flatten/base/oj_timed_wait.h"

#include <pthread.h>

/* The answer to one part of a batch, in the ring between join thread and
 * caller. */
struct joined_part
{
    struct oj_pipeline_part part;
    struct oj_flat_slice slice; /* the rows of part.flat, if the part is not the
                                   whole batch */
    struct oj_matches matches;
    int ends_batch;
};

/* With n = count_slots(), at most OJ_PIPELINE_SLOTS: batch b is in slot b % n;
 * the answer to part a is in answers[a % n]. Invariants: n_released <= n_read
 * <= n_released + n, n_written <= n_joined <= n_written + n. The threads
 * communicate only by these counters, the ends and the status. */
struct oj_pipeline
{
    struct oj_pipeline_work work;
    struct oj_pipeline_counts counts; /* each stage writes different members */
    pthread_t reader_thread, join_thread;
    struct oj_flat batches[OJ_PIPELINE_SLOTS];
    struct joined_part answers[OJ_PIPELINE_SLOTS];

    /* Members that only the join thread uses. */
    int64_t n_batches_joined;
    struct oj_batch_parts parts;

    /* Members that only the calling thread uses. */
    struct joined_part *in_use; /* answer that the caller uses at present; NULL:
                                   none */
    double in_use_since;

    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t moved;  /* signalled when a member below changes */
    int64_t n_read;        /* number of batches read */
    int64_t n_released;    /* number of batches whose slot may be reused */
    int64_t n_joined;      /* number of answers made */
    int64_t n_written;     /* number of answers that the caller has finished
                              with */
    int64_t read_ended;    /* 1: n_read is final */
    int64_t join_ended;    /* 1: n_joined is final */
    oj_status status;
    struct oj_error error;
};

/* Stores the first error and stops all threads. Later errors are ignored,
 * because they only follow from the first. */
static void stop_pipeline(struct oj_pipeline *p, oj_status status,
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

/* Waits until ready(p) or ended(p) is true, or an error occurs. Returns 1 if
 * ready(p). */
static int wait_until_ready_or_ended(struct oj_pipeline *p,
                                     int (*ready)(const struct oj_pipeline *),
                                     int (*ended)(const struct oj_pipeline *))
{
    int go;
    pthread_mutex_lock(&p->mutex);
    while (p->status == OJ_OK && !ready(p) && !ended(p))
        pthread_cond_wait(&p->moved, &p->mutex);
    go = p->status == OJ_OK && ready(p);
    pthread_mutex_unlock(&p->mutex);
    return go;
}

static void increment_and_wake_waiters(struct oj_pipeline *p, int64_t *counter)
{
    pthread_mutex_lock(&p->mutex);
    *counter += 1;
    pthread_cond_broadcast(&p->moved);
    pthread_mutex_unlock(&p->mutex);
}

static int count_slots(const struct oj_pipeline *p)
{
    return p->work.n_slots != NULL ? *p->work.n_slots : OJ_PIPELINE_SLOTS;
}

static int has_free_batch_slot(const struct oj_pipeline *p)
{
    return p->n_read < p->n_released + count_slots(p);
}

static int has_batch_to_join(const struct oj_pipeline *p)
{
    return p->n_batches_joined < p->n_read;
}

static int has_free_answer_slot(const struct oj_pipeline *p)
{
    return p->n_joined < p->n_written + count_slots(p);
}

static int has_answer_to_write(const struct oj_pipeline *p)
{
    return p->n_written < p->n_joined;
}

/* Passed as ended() to waits for a free slot: nothing but a free slot or an
 * error ends these waits. */
static int can_end_without_slot(const struct oj_pipeline *p)
{
    (void)p;
    return 0;
}

static int are_all_batches_joined(const struct oj_pipeline *p)
{
    return p->read_ended && p->n_batches_joined == p->n_read;
}

static int are_all_answers_written(const struct oj_pipeline *p)
{
    return p->join_ended && p->n_written == p->n_joined;
}

static void read_batches_until_end(struct oj_pipeline *p)
{
    for (int64_t batch = 0; wait_until_ready_or_ended(p, has_free_batch_slot,
                                                      can_end_without_slot);
         batch++)
    {
        int s = (int)(batch % count_slots(p));
        struct oj_error error = {OJ_OK, ""};
        double start = oj_clock_seconds();
        oj_status status = oj_check_cancel(p->work.cancel, &error);
        if (status == OJ_OK)
            status = p->work.read(p->work.user, s, &p->batches[s], &error);
        p->counts.read_s += oj_clock_seconds() - start;
        if (status != OJ_OK)
        {
            stop_pipeline(p, status, &error);
            break;
        }
        if (p->batches[s].n_features == 0)
        {
            increment_and_wake_waiters(p, &p->read_ended);
            break;
        }
        increment_and_wake_waiters(p, &p->n_read);
    }
}

/* Arguments of join_part(). */
struct part_to_join
{
    struct oj_pipeline *pipeline;
    struct joined_part *answer;
};

static oj_status join_part(void *user, const struct oj_flat *rows,
                           struct oj_matches *out, struct oj_error *err)
{
    const struct part_to_join *to_join = user;
    const struct oj_pipeline_work *work = &to_join->pipeline->work;
    struct oj_pipeline_part *part = &to_join->answer->part;
    part->flat = rows;
    OJ_TRY(oj_check_cancel(work->cancel, err));
    return work->join(work->user, part, out, err);
}

/* Joins the next rows of the batch in slot, from `first` on, and sets *n to
 * their number, chosen so that the pairs fit into one answer. */
static oj_status join_rows_within_pair_limit(struct oj_pipeline *p,
                                             struct joined_part *answer,
                                             int slot, int64_t first,
                                             int64_t *n, struct oj_error *err)
{
    const struct oj_flat *batch = &p->batches[slot];
    struct part_to_join to_join = {p, answer};
    answer->part.slot = slot;
    answer->part.answer = (int)(answer - p->answers);
    answer->part.first_row = first;
    OJ_TRY(oj_batch_parts_join(&p->parts, batch, first, &answer->slice,
                               join_part, &to_join, &answer->matches, n, err));
    answer->ends_batch = first + *n == batch->n_features;
    return OJ_OK;
}

static oj_status join_batch_in_parts(struct oj_pipeline *p, int slot,
                                     struct oj_error *err)
{
    /* read here, because the slot may be overwritten after the last part of the
     * batch */
    int64_t n_rows = p->batches[slot].n_features, first = 0, n = 0;
    if (p->n_batches_joined == 0 && p->work.sample != NULL &&
        p->work.may_sample(p->work.user))
        p->parts.sample = p->work.sample;
    while (first < n_rows)
    {
        struct joined_part *answer;
        double start;
        oj_status status;
        if (!wait_until_ready_or_ended(p, has_free_answer_slot,
                                       can_end_without_slot))
            return OJ_OK; /* another stage has stopped the pipeline */
        answer = &p->answers[p->n_joined % count_slots(p)];
        start = oj_clock_seconds();
        status = join_rows_within_pair_limit(p, answer, slot, first, &n, err);
        p->counts.join_s += oj_clock_seconds() - start;
        OJ_TRY(status);
        first += n;
        increment_and_wake_waiters(p, &p->n_joined);
    }
    return OJ_OK;
}

static void join_batches_until_end(struct oj_pipeline *p)
{
    while (
        wait_until_ready_or_ended(p, has_batch_to_join, are_all_batches_joined))
    {
        struct oj_error error = {OJ_OK, ""};
        oj_status status = join_batch_in_parts(
            p, (int)(p->n_batches_joined % count_slots(p)), &error);
        if (status != OJ_OK)
        {
            stop_pipeline(p, status, &error);
            break;
        }
        p->n_batches_joined++;
    }
    increment_and_wake_waiters(p, &p->join_ended);
}

static void *run_stages(struct oj_pipeline *p,
                        void (*stages)(struct oj_pipeline *))
{
    if (p->work.on_thread != NULL)
        p->work.on_thread(p->work.user, stages, p);
    else
        stages(p);
    return NULL;
}

static void *reader_main(void *pipeline)
{
    return run_stages(pipeline, read_batches_until_end);
}

static void *join_main(void *pipeline)
{
    return run_stages(pipeline, join_batches_until_end);
}

/* ---- the caller ---------------------------------------------------------- */

/* Sets *answer to the next answer, or to NULL after the last. */
static oj_status wait_for_next_answer(struct oj_pipeline *p,
                                      struct joined_part **answer,
                                      struct oj_error *err)
{
    oj_status status = OJ_OK;
    pthread_mutex_lock(&p->mutex);
    while (status == OJ_OK && p->status == OJ_OK && !has_answer_to_write(p) &&
           !are_all_answers_written(p))
    {
        oj_timed_wait_until_poll(&p->moved, &p->mutex);
        status = oj_check_cancel(p->work.cancel, err);
    }
    *answer = has_answer_to_write(p)
                  ? &p->answers[p->n_written % count_slots(p)]
                  : NULL;
    if (p->status != OJ_OK)
        status = oj_fail(err, p->status, "%s", p->error.message);
    pthread_mutex_unlock(&p->mutex);
    return status;
}

/* Lets the join thread reuse the answer that the caller has finished with. */
static oj_status release_answer(struct oj_pipeline *p, struct oj_error *err)
{
    struct oj_pipeline_counts *counts = &p->counts;
    const struct joined_part *answer = p->in_use;
    if (answer == NULL)
        return OJ_OK;
    p->in_use = NULL;
    counts->write_s += oj_clock_seconds() - p->in_use_since;
    counts->n_parts += 1;
    counts->n_rows += answer->part.flat->n_features;
    counts->n_matched += answer->matches.n_matched;
    counts->n_pairs += answer->matches.n_pairs;
    if (p->work.progress != NULL &&
        p->work.progress(counts->n_rows, p->work.user) != 0)
        return oj_fail_cancelled(err);
    if (answer->ends_batch)
        increment_and_wake_waiters(p, &p->n_released);
    increment_and_wake_waiters(p, &p->n_written);
    return OJ_OK;
}

oj_status oj_pipeline_next(struct oj_pipeline *p,
                           const struct oj_pipeline_part **part,
                           const struct oj_matches **matches,
                           struct oj_error *err)
{
    int64_t most = p->work.max_pairs;
    struct joined_part *answer;
    *part = NULL;
    OJ_TRY(release_answer(p, err));
    OJ_TRY(wait_for_next_answer(p, &answer, err));
    if (answer == NULL)
        return OJ_OK;
    OJ_TRY(oj_check_cancel(p->work.cancel, err));
    if (most > 0 && p->counts.n_pairs + answer->matches.n_pairs > most)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "there are more than %lld pairs, the limit set by "
                       "-max_pairs: raise it, or restrict the join",
                       (long long)most);
    *part = &answer->part;
    *matches = &answer->matches;
    p->in_use = answer;
    p->in_use_since = oj_clock_seconds();
    return OJ_OK;
}

static int init_locks(struct oj_pipeline *p)
{
    if (pthread_mutex_init(&p->mutex, NULL) != 0)
        return 0;
    if (oj_timed_wait_init(&p->moved))
        return 1;
    pthread_mutex_destroy(&p->mutex);
    return 0;
}

static void free_pipeline(struct oj_pipeline *p)
{
    pthread_cond_destroy(&p->moved);
    pthread_mutex_destroy(&p->mutex);
    for (int s = 0; s < OJ_PIPELINE_SLOTS; s++)
    {
        oj_matches_free(&p->answers[s].matches);
        oj_flat_slice_free(&p->answers[s].slice);
    }
    oj_batch_parts_free(&p->parts);
    oj_free(p);
}

static oj_status start_threads(struct oj_pipeline *p, struct oj_error *err)
{
    const struct oj_error error = {
        OJ_ERR_NOMEM,
        "the system could not start a thread: it is out of memory or of "
        "threads (ulimit -u); end other programs, or use fewer threads"};
    int has_reader =
        pthread_create(&p->reader_thread, NULL, reader_main, p) == 0;
    if (has_reader && pthread_create(&p->join_thread, NULL, join_main, p) == 0)
        return OJ_OK;
    stop_pipeline(p, OJ_ERR_NOMEM, &error);
    if (has_reader)
        pthread_join(p->reader_thread, NULL);
    return oj_fail(err, OJ_ERR_NOMEM, "%s", error.message);
}

oj_status oj_pipeline_open(const struct oj_pipeline_work *work,
                           struct oj_pipeline **out, struct oj_error *err)
{
    struct oj_pipeline *p;
    oj_status status;
    OJ_NEW_ZEROED(p, 1, err);
    p->work = *work;
    p->parts.max_pairs = work->max_part_pairs;
    p->parts.user = work->user;
    if (!init_locks(p))
    {
        oj_free(p);
        return oj_fail(err, OJ_ERR_NOMEM,
                       "the system could not create a lock: it is out of "
                       "memory or resources; end other programs");
    }
    status = start_threads(p, err);
    if (status == OJ_OK)
        *out = p;
    else
        free_pipeline(p);
    return status;
}

/* Cancels the threads and waits for their end. If all answers were used, they
 * have ended already. */
oj_status oj_pipeline_close(struct oj_pipeline *p, oj_status status,
                            struct oj_pipeline_counts *counts,
                            struct oj_error *err)
{
    struct oj_error error = {OJ_ERR_CANCELLED, ""};
    if (p == NULL)
        return status;
    if (status != OJ_OK && err != NULL)
        error = *err;
    stop_pipeline(p, status != OJ_OK ? status : OJ_ERR_CANCELLED, &error);
    pthread_join(p->join_thread, NULL);
    pthread_join(p->reader_thread, NULL);
    p->counts.n_pairs_again = p->parts.n_pairs_again;
    if (counts != NULL)
        *counts = p->counts;
    /* returns the first error of any thread; but if a thread has only noticed
     * the cancellation, the caller's error stays */
    if (status != OJ_OK && p->status != OJ_ERR_CANCELLED)
        status = oj_fail(err, p->status, "%s", p->error.message);
    free_pipeline(p);
    return status;
}
