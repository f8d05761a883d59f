/** The warnings and notices of the threads of a join, kept until the thread
 * that reads the join as a layer can report them: warnings by CPLError(),
 * notices by CPLDebug(). Each text once.
 */
#ifndef OJ_MESSAGE_LIST_H
#define OJ_MESSAGE_LIST_H

#include "oj_message.h"

#include <pthread.h>

enum
{
    OJ_MOST_MESSAGES = 64 /**< different texts; what comes later is dropped */
};

struct oj_message_list
{
    pthread_mutex_t mutex; /**< guards all below */
    int n, n_reported;
    struct
    {
        enum oj_message_kind kind;
        char text[512];
    } messages[OJ_MOST_MESSAGES];
};

OJ_MUST_USE oj_status oj_message_list_open(struct oj_message_list *list,
                                           struct oj_error *err);

/** Messages of the calling thread go to the list until oj_message_use(NULL);
 *  sink is filled and must last as long. Errors of GDAL are not kept: they are
 *  part of what fails by them. */
void oj_message_list_hear(struct oj_message_list *list,
                          struct oj_message_sink *sink);

/** Reports what was not reported yet. Not while the calling thread is heard. */
void oj_message_list_report(struct oj_message_list *list);

/** What was not reported yet will not be. */
void oj_message_list_drop(struct oj_message_list *list);

/** Only of an open one; no thread is heard any more. */
void oj_message_list_close(struct oj_message_list *list);

#endif
