#include "geos_handle.h"

#include <stdio.h>

static void keep_message(const char *message, void *user)
{
    struct oj_geos_handle *handle = user;
    snprintf(handle->message, sizeof handle->message, "%s", message);
}

oj_status oj_geos_handle_open(struct oj_geos_handle *handle,
                              struct oj_error *err)
{
    handle->message[0] = '\0';
    handle->geos = GEOS_init_r();
    if (handle->geos == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "GEOS could not be started");
    GEOSContext_setErrorMessageHandler_r(handle->geos, keep_message, handle);
    return OJ_OK;
}

void oj_geos_handle_close(struct oj_geos_handle *handle)
{
    if (handle->geos != NULL)
        GEOS_finish_r(handle->geos);
    handle->geos = NULL;
}
