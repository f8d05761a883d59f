/** A GEOS context handle with the last error text that GEOS reported through
 *  it.
 *
 *  A call that fails returns NULL, 2 or -1 and passes a text to the handle's
 *  message handler. If memory ran out, there is no text, or that of bad_alloc.
 *  So the text distinguishes a pair that GEOS cannot decide from lack of
 *  memory.
 *
 *  Used by one thread. Must not be moved while it is open, because GEOS holds
 *  its address. */
#ifndef GEOS_HANDLE_H
#define GEOS_HANDLE_H

#include "../../../flatten/base/oj_status.h"
#include "../../../flatten/base/oj_third_party_error_patterns.h"

#include <geos_c.h>
#include <stdio.h>

/** A handle. Owner; zeroed memory is a closed handle. */
struct oj_geos_handle
{
    GEOSContextHandle_t geos; /**< NULL: the handle is closed */
    char message[256];        /**< last error text; the caller clears it before
                                   each call */
};

static inline void oj_geos_handle_keep_message(const char *message, void *user)
{
    struct oj_geos_handle *handle = user;
    snprintf(handle->message, sizeof handle->message, "%s", message);
}

/** Opens a handle. Fails with OJ_ERR_NOMEM if GEOS does not start; the handle
 * is then closed. */
OJ_MUST_USE static inline oj_status
oj_geos_handle_open(struct oj_geos_handle *handle, struct oj_error *err)
{
    handle->message[0] = '\0';
    handle->geos = GEOS_init_r();
    if (handle->geos == NULL)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for the start of GEOS: free memory");
    GEOSContext_setErrorMessageHandler_r(handle->geos,
                                         oj_geos_handle_keep_message, handle);
    return OJ_OK;
}

/** Closes the handle, which may be closed already. All objects made with it
 * must have been destroyed. */
static inline void oj_geos_handle_close(struct oj_geos_handle *handle)
{
    if (handle->geos != NULL)
        GEOS_finish_r(handle->geos);
    handle->geos = NULL;
}

#endif
