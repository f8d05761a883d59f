/** A value that an aggregate holds, in what order such values are given back,
 *  and where those are put that memory has no room for (oj_aggregate_held.h).
 */
#ifndef OJ_AGGREGATE_HELD_VALUE_H
#define OJ_AGGREGATE_HELD_VALUE_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

enum oj_held_order
{
    OJ_HELD_BY_NUMBER, /**< 16 bytes a value */
    OJ_HELD_BY_BYTES,  /**< as memcmp() says, the shorter first */
    OJ_HELD_BY_PLACE   /**< by (FID, place), which differ within a row */
};

/** Where runs go. */
struct oj_held_files
{
    /** An open file descriptor, for reading and writing, of an empty file that
     *  goes away when it is closed; < 0 with errno. */
    int (*open)(void *user);
    void *user;
};

/** A value, on its way in or out. */
struct oj_held_value
{
    int64_t row;
    uint64_t number;    /**< BY_NUMBER */
    int64_t fid, place; /**< BY_PLACE */
    const char *bytes;  /**< not BY_NUMBER; going out, valid until the next */
    int64_t n_bytes;
};

#endif
