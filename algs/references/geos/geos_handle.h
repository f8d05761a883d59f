/** A handle of GEOS and what GEOS last said through it.
 *
 *  GEOS tells of a refusal twice: the call gives nothing (NULL, 2, -1), and the
 *  handle's message handler gets a text. A call that ran out of memory has no
 *  text, or that of the exception. Here the text is kept, so that "nothing" can
 *  be told apart: GEOS cannot say, or memory is out.
 *
 *  Belongs to one thread, and must not be moved while it is open: GEOS holds
 *  its address.
 */
#ifndef GEOS_HANDLE_H
#define GEOS_HANDLE_H

#include "../../../flatten/base/oj_status.h"
#include "../../../flatten/base/oj_third_party_error_patterns.h"

#include <geos_c.h>
#include <stdio.h>

/** Owner; zeroed memory is a closed one. */
struct oj_geos_handle
{
    GEOSContextHandle_t geos; /**< NULL: closed */
    char message[256];        /**< the last text; who asks sets it to "" */
};

static inline void oj_geos_keep_message(const char *message, void *user)
{
    struct oj_geos_handle *handle = user;
    snprintf(handle->message, sizeof handle->message, "%s", message);
}

/** OJ_ERR_NOMEM when GEOS does not start; handle is closed then. */
OJ_MUST_USE static inline oj_status
oj_geos_handle_open(struct oj_geos_handle *handle, struct oj_error *err)
{
    handle->message[0] = '\0';
    handle->geos = GEOS_init_r();
    if (handle->geos == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "GEOS could not be started");
    GEOSContext_setErrorMessageHandler_r(handle->geos, oj_geos_keep_message,
                                         handle);
    return OJ_OK;
}

/** What was made through the handle is to be destroyed before. Accepts a closed
 *  one. */
static inline void oj_geos_handle_close(struct oj_geos_handle *handle)
{
    if (handle->geos != NULL)
        GEOS_finish_r(handle->geos);
    handle->geos = NULL;
}

#endif
