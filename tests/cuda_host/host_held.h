/** Functions by which tests query and control the emulated device. Its module
 *  exports them in addition to the function that every module exports. In a
 *  module for real devices, dlsym() does not find them. */
#ifndef OJ_HOST_HELD_H
#define OJ_HOST_HELD_H

#include <stdint.h>

#define OJ_HOST_HELD_TEXT 200

#ifdef __cplusplus
extern "C" {
#endif

/** Makes allocations number first .. first + n - 1 fail, counted from 1 after
 *  this call. Allocations of device memory, pinned memory, streams and events
 *  count. With n = 0 none fails. */
__attribute__((visibility("default"))) void oj_host_fail_at(int64_t first,
                                                            int64_t n);

/** Returns the number of allocations since oj_host_fail_at(), including those
 *  that failed. */
__attribute__((visibility("default"))) int64_t oj_host_allocations(void);

/** Returns the number of blocks of pinned memory that are held. */
__attribute__((visibility("default"))) int64_t oj_host_pinned(void);

/** Returns the number of resources other than pinned memory that are held, and
 *  lists them in text. */
__attribute__((visibility("default"))) int64_t
oj_host_held(char text[OJ_HOST_HELD_TEXT]);

/** Returns the bytes copied between devices and the host so far. */
__attribute__((visibility("default"))) int64_t oj_host_copied(void);

/** Allocates memory on the first device. Returns NULL if too little is left.
 *  The memory belongs to the caller, who may access it directly while no work
 *  of the device runs. */
__attribute__((visibility("default"))) void *oj_host_take(int64_t bytes);
__attribute__((visibility("default"))) void oj_host_give_back(void *memory);

#ifdef __cplusplus
}
#endif
#endif
