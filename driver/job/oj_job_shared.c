/* oj_job_prepare_shared(): the join side of a job, borrowed from the cache. */
#include "../base/oj_cancel.h"
#include "oj_job.h"
#include "oj_join_cache.h"
#include "oj_join_key.h"

oj_status oj_job_open_shared(const struct oj_command *command,
                             struct oj_job *job, struct oj_error *err)
{
    int64_t opened_ns = oj_join_files_now();
    OJ_TRY(oj_job_open(command, job, err));
    OJ_TRY(oj_join_files_look(&job->input, opened_ns, &job->input_files, err));
    return oj_join_files_look(&job->join, opened_ns, &job->join_files, err);
}

int oj_job_is_outdated(const struct oj_job *job)
{
    return oj_join_files_changed(&job->input_files) ||
           oj_join_files_changed(&job->join_files);
}

/* Reads and indexes into side, which then is the cache's. */
static oj_status build(void *user, struct oj_join_side *side, const int *cancel,
                       int *keep, struct oj_error *err)
{
    const struct oj_side_findings nothing = {0};
    struct oj_job *job = user;
    struct oj_options options = oj_job_engine_options(job);
    options.cancel = cancel;
    job->join_side = side;
    oj_sides_take_findings(&job->sides, 1, &nothing); /* of a first attempt */
    OJ_TRY(oj_job_read_join(job, err));
    OJ_TRY(oj_join_open(&side->flat, &job->relation, job->command->backend,
                        &options, &side->engine, err));
    oj_join_side_keep(side, &job->sides);
    *keep = oj_join_files_same(&job->join_files);
    return OJ_OK;
}

/* Also of a failed build: side is gone. */
static void take_back(struct oj_job *job)
{
    job->join_side = &job->own_join_side;
}

/* After the cache's answer. */
static oj_status settle(struct oj_job *job, oj_status status, int is_mine)
{
    if (status != OJ_OK)
    {
        take_back(job);
        return status;
    }
    job->join_side = oj_join_use_side(&job->join_use);
    if (!is_mine)
        oj_join_side_lend(job->join_side, &job->sides);
    return OJ_OK;
}

static oj_status borrow(struct oj_job *job, const struct oj_join_key *key,
                        struct oj_error *err)
{
    int is_mine;
    oj_status status = oj_join_cache_take(key, build, job, oj_cancel_flag(),
                                          &job->join_use, &is_mine, err);
    return settle(job, status, is_mine);
}

oj_status oj_job_prepare_shared(struct oj_job *job, struct oj_error *err)
{
    struct oj_join_key key = {0};
    oj_status status = OJ_OK;
    int may_keep = oj_join_cache_limit() > 0 && oj_join_key_is_possible(job) &&
                   oj_join_files_same(&job->join_files);
    if (job->command->memory > 0)
        return oj_job_prepare(job, err);
    if (may_keep)
        status = oj_join_key_make(job, &job->join_files, &key, err);
    if (status == OJ_OK)
        status = borrow(job, may_keep ? &key : NULL, err);
    oj_join_key_free(&key);
    return status;
}

oj_status oj_job_prepare_like(struct oj_job *job, const struct oj_job *other,
                              struct oj_error *err)
{
    int is_there, is_mine;
    oj_status status =
        oj_join_cache_share(&other->join_use, build, job, oj_cancel_flag(),
                            &job->join_use, &is_there, &is_mine, err);
    if (status == OJ_OK && !is_there)
        return oj_job_prepare_shared(job, err);
    return settle(job, status, is_mine);
}

oj_status oj_job_join(struct oj_job *job, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_error *err)
{
    if (job->join_use.entry != NULL)
        return oj_join_use_batch(&job->join_use, input, out, err);
    return oj_join_batch(job->join_side->engine, input, out, err);
}

void oj_job_stop(struct oj_job *job)
{
    oj_join_use_stop(&job->join_use);
}
