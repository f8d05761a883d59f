#include "oj_message_list.h"

#include <cpl_error.h>

#include <stdio.h>
#include <string.h>

oj_status oj_message_list_open(struct oj_message_list *list,
                               struct oj_error *err)
{
    list->n = list->n_reported = 0;
    if (pthread_mutex_init(&list->mutex, NULL) != 0)
        return oj_fail(err, OJ_ERR_NOMEM, "could not make a lock");
    return OJ_OK;
}

void oj_message_list_close(struct oj_message_list *list)
{
    pthread_mutex_destroy(&list->mutex);
}

static int is_new(const struct oj_message_list *list, const char *text)
{
    for (int i = 0; i < list->n; i++)
    {
        if (strcmp(list->messages[i].text, text) == 0)
            return 0;
    }
    return 1;
}

static void keep(void *user, enum oj_message_kind kind, const char *text)
{
    struct oj_message_list *list = user;
    char line[sizeof list->messages[0].text];
    if (kind == OJ_MESSAGE_ERROR)
        return;
    snprintf(line, sizeof line, "%s", text);
    oj_message_tidy(line);
    pthread_mutex_lock(&list->mutex);
    if (list->n < OJ_MOST_MESSAGES && is_new(list, line))
    {
        list->messages[list->n].kind = kind;
        memcpy(list->messages[list->n].text, line, sizeof line);
        list->n++;
    }
    pthread_mutex_unlock(&list->mutex);
}

void oj_message_list_hear(struct oj_message_list *list,
                          struct oj_message_sink *sink)
{
    const struct oj_message_sink empty = {0};
    *sink = empty;
    sink->take = keep;
    sink->user = list;
    oj_message_use(sink);
}

/* Texts stay where they are once they are kept, so they are reported without
 * the lock: a handler of the host may take its time, or ask for another row. */
void oj_message_list_report(struct oj_message_list *list)
{
    for (;;)
    {
        int i = -1;
        pthread_mutex_lock(&list->mutex);
        if (list->n_reported < list->n)
            i = list->n_reported++;
        pthread_mutex_unlock(&list->mutex);
        if (i < 0)
            return;
        if (list->messages[i].kind == OJ_MESSAGE_WARNING)
            CPLError(CE_Warning, CPLE_AppDefined, "%s", list->messages[i].text);
        else
            CPLDebug("OGRJOIN", "%s", list->messages[i].text);
    }
}

void oj_message_list_drop(struct oj_message_list *list)
{
    pthread_mutex_lock(&list->mutex);
    list->n_reported = list->n;
    pthread_mutex_unlock(&list->mutex);
}
