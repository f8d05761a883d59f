#include "oj_told.h"

#include <cpl_error.h>

#include <stdio.h>
#include <string.h>

oj_status oj_told_open(struct oj_told *told, struct oj_error *err)
{
    told->n = told->n_told = 0;
    if (pthread_mutex_init(&told->mutex, NULL) != 0)
        return oj_fail(err, OJ_ERR_NOMEM, "could not make a lock");
    return OJ_OK;
}

void oj_told_close(struct oj_told *told)
{
    pthread_mutex_destroy(&told->mutex);
}

static int is_new(const struct oj_told *told, const char *text)
{
    for (int i = 0; i < told->n; i++)
    {
        if (strcmp(told->said[i].text, text) == 0)
            return 0;
    }
    return 1;
}

static void keep(void *user, enum oj_message_kind kind, const char *text)
{
    struct oj_told *told = user;
    char line[sizeof told->said[0].text];
    if (kind == OJ_MESSAGE_ERROR)
        return;
    snprintf(line, sizeof line, "%s", text);
    oj_message_tidy(line);
    pthread_mutex_lock(&told->mutex);
    if (told->n < OJ_MAX_TOLD && is_new(told, line))
    {
        told->said[told->n].kind = kind;
        memcpy(told->said[told->n].text, line, sizeof line);
        told->n++;
    }
    pthread_mutex_unlock(&told->mutex);
}

void oj_told_listen(struct oj_told *told, struct oj_message_sink *sink)
{
    const struct oj_message_sink empty = {0};
    *sink = empty;
    sink->take = keep;
    sink->user = told;
    oj_message_use(sink);
}

/* Texts stay where they are once they are kept, so they are told without the
 * lock: a handler of the host may take its time, or ask for another row. */
void oj_told_tell(struct oj_told *told)
{
    for (;;)
    {
        int i = -1;
        pthread_mutex_lock(&told->mutex);
        if (told->n_told < told->n)
            i = told->n_told++;
        pthread_mutex_unlock(&told->mutex);
        if (i < 0)
            return;
        if (told->said[i].kind == OJ_MESSAGE_WARNING)
            CPLError(CE_Warning, CPLE_AppDefined, "%s", told->said[i].text);
        else
            CPLDebug("OGRJOIN", "%s", told->said[i].text);
    }
}

void oj_told_forget(struct oj_told *told)
{
    pthread_mutex_lock(&told->mutex);
    told->n_told = told->n;
    pthread_mutex_unlock(&told->mutex);
}
