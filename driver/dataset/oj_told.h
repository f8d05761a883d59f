/** What was said on the threads of a join, kept until it can be told on the
 *  thread that reads the join as a layer: warnings by CPLError(), notices by
 *  CPLDebug(). Each text once.
 */
#ifndef OJ_TOLD_H
#define OJ_TOLD_H

#include "../base/oj_message.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

enum
{
    OJ_MAX_TOLD = 64 /**< different texts; what comes later is dropped */
};

struct oj_told
{
    pthread_mutex_t mutex; /**< guards all below */
    int n, n_told;
    struct
    {
        enum oj_message_kind kind;
        char text[512];
    } said[OJ_MAX_TOLD];
};

OJ_MUST_USE oj_status oj_told_open(struct oj_told *told, struct oj_error *err);

/** What the calling thread says goes to told until oj_message_use(NULL); sink
 *  is filled and must last as long. Errors of GDAL are not kept: they are part
 *  of what fails by them. */
void oj_told_listen(struct oj_told *told, struct oj_message_sink *sink);

/** Tells what has not been told yet. Not between listen and its end. */
void oj_told_tell(struct oj_told *told);

/** What has not been told yet will not be. */
void oj_told_forget(struct oj_told *told);

/** Only of an open one; nobody listens any more. */
void oj_told_close(struct oj_told *told);

#ifdef __cplusplus
}
#endif
#endif
