/** Files for what does not fit into memory.  They have no name, so nothing is
 *  left of them however the process ends. */
#ifndef OJ_SCRATCH_H
#define OJ_SCRATCH_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Zeroed memory is a valid closed one. */
struct oj_scratch
{
    int file; /**< descriptor, when is_open */
    int is_open;
    int64_t size; /**< bytes written */
};

/** In the folder of near, a path (an output, whose disk has to have room), or
 *  in TMPDIR or /tmp where that folder takes no files or near is NULL. */
OJ_MUST_USE oj_status oj_scratch_open(const char *near, struct oj_scratch *out,
                                      struct oj_error *err);

/** Appends n bytes. */
OJ_MUST_USE oj_status oj_scratch_write(struct oj_scratch *scratch,
                                       const void *bytes, int64_t n,
                                       struct oj_error *err);

/** Reads n bytes that were written at offset. */
OJ_MUST_USE oj_status oj_scratch_read(const struct oj_scratch *scratch,
                                      int64_t offset, void *bytes, int64_t n,
                                      struct oj_error *err);

/** Accepts a closed one. */
void oj_scratch_close(struct oj_scratch *scratch);

#ifdef __cplusplus
}
#endif
#endif
