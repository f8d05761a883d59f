#include "oj_pipeline.h"

#include "../flatten/oj_array.h"

#include <pthread.h>
#include <time.h>

struct slot
{
    struct oj_flat flat;
    struct oj_matches matches;
};

/* Batches are numbered from 0; batch b lives in slot b % OJ_PIPELINE_SLOTS.
 * n_written <= n_joined <= n_read <= n_written + OJ_PIPELINE_SLOTS holds at all
 * times, and the three counters are all that the stages tell each other. */
struct pipeline
{
    const struct oj_pipeline_source *source;
    const struct oj_pipeline_joiner *joiner;
    const struct oj_pipeline_sink *sink;
    const struct oj_pipeline_options *options;
    struct oj_pipeline_counts *counts;
    struct slot slots[OJ_PIPELINE_SLOTS];

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t moved;  /* any of it has changed */
    int64_t n_read, n_joined, n_written;
    int read_ended; /* n_read is final */
    oj_status status;
    struct oj_error error;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int is_cancelled(const struct pipeline *p)
{
    return p->options->cancel != NULL &&
           __atomic_load_n(p->options->cancel, __ATOMIC_RELAXED) != 0;
}

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

static oj_status fail_cancelled(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
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
    return p->n_read < p->n_written + OJ_PIPELINE_SLOTS;
}

static int may_join(const struct pipeline *p)
{
    return p->n_joined < p->n_read;
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
    return p->read_ended && p->n_joined == p->n_read;
}

static int all_written(const struct pipeline *p)
{
    return p->read_ended && p->n_written == p->n_read;
}

static void *reader_main(void *user)
{
    struct pipeline *p = user;
    for (int64_t batch = 0; await(p, may_read, never); batch++)
    {
        int s = (int)(batch % OJ_PIPELINE_SLOTS);
        struct oj_error error = {OJ_OK, ""};
        double start = now_s();
        oj_status status = is_cancelled(p)
                               ? fail_cancelled(&error)
                               : p->source->read(p->source->user, s,
                                                 &p->slots[s].flat, &error);
        p->counts->read_s += now_s() - start;
        if (status != OJ_OK)
        {
            stop(p, status, &error);
            break;
        }
        if (p->slots[s].flat.n_features == 0)
        {
            pthread_mutex_lock(&p->mutex);
            p->read_ended = 1;
            pthread_cond_broadcast(&p->moved);
            pthread_mutex_unlock(&p->mutex);
            break;
        }
        advance(p, &p->n_read);
    }
    return NULL;
}

static void *join_main(void *user)
{
    struct pipeline *p = user;
    for (int64_t batch = 0; await(p, may_join, all_joined); batch++)
    {
        struct slot *slot = &p->slots[batch % OJ_PIPELINE_SLOTS];
        struct oj_error error = {OJ_OK, ""};
        double start = now_s();
        oj_status status = is_cancelled(p)
                               ? fail_cancelled(&error)
                               : p->joiner->join(p->joiner->user, &slot->flat,
                                                 &slot->matches, &error);
        p->counts->join_s += now_s() - start;
        if (status != OJ_OK)
        {
            stop(p, status, &error);
            break;
        }
        advance(p, &p->n_joined);
    }
    return NULL;
}

static oj_status write_batch(struct pipeline *p, int s, struct oj_error *err)
{
    const struct slot *slot = &p->slots[s];
    double start = now_s();
    if (is_cancelled(p))
        return fail_cancelled(err);
    OJ_TRY(p->sink->write(p->sink->user, s, &slot->flat, &slot->matches, err));
    p->counts->write_s += now_s() - start;
    p->counts->n_batches += 1;
    p->counts->n_rows += slot->flat.n_features;
    p->counts->n_matched += slot->matches.n_matched;
    p->counts->n_pairs += slot->matches.n_pairs;
    if (p->options->progress != NULL &&
        p->options->progress(p->counts->n_rows, p->options->progress_user) != 0)
        return fail_cancelled(err);
    return OJ_OK;
}

static void write_all(struct pipeline *p)
{
    for (int64_t batch = 0; await(p, may_write, all_written); batch++)
    {
        struct oj_error error = {OJ_OK, ""};
        oj_status status =
            write_batch(p, (int)(batch % OJ_PIPELINE_SLOTS), &error);
        if (status != OJ_OK)
        {
            stop(p, status, &error);
            break;
        }
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
        oj_matches_free(&p.slots[s].matches);
    if (p.status != OJ_OK)
        return oj_fail(err, p.status, "%s", p.error.message);
    return OJ_OK;
}
