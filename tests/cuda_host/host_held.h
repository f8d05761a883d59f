/** What the emulated device lets tests ask and do. Its module shows these
 *  functions beside the one of every module; dlsym() finds none of them in a
 *  module for real devices. */
#ifndef OJ_HOST_HELD_H
#define OJ_HOST_HELD_H

#include <stdint.h>

#define OJ_HOST_HELD_TEXT 200

#ifdef __cplusplus
extern "C" {
#endif

/** From now on the first-th taking of memory of a device, of pinned memory, of
 *  a stream or an event fails, and the n - 1 after it; n 0: none does. */
__attribute__((visibility("default"))) void oj_host_fail_at(int64_t first,
                                                            int64_t n);

/** Takings since then, failed ones too. */
__attribute__((visibility("default"))) int64_t oj_host_takings(void);

/** Blocks of pinned memory that are held. */
__attribute__((visibility("default"))) int64_t oj_host_pinned(void);

/** How many of the other things are held, and which, in words. */
__attribute__((visibility("default"))) int64_t
oj_host_held(char text[OJ_HOST_HELD_TEXT]);

/** Bytes copied between a device and the host so far. */
__attribute__((visibility("default"))) int64_t oj_host_copied(void);

/** Memory of the first device that is a caller's, who may read and write it
 *  while nothing of the device is under way; NULL: none is left. */
__attribute__((visibility("default"))) void *oj_host_take(int64_t bytes);
__attribute__((visibility("default"))) void oj_host_give_back(void *memory);

#ifdef __cplusplus
}
#endif
#endif
