/** ogrjoin --devices: the GPUs, and what can be said against them. */
#ifndef OJ_DEVICES_H
#define OJ_DEVICES_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

/** Prints a line for each GPU, or why none can be used. */
void oj_devices_print(void);

/** "0", "0,2", "all" (all ones) as struct oj_options.gpus has them. */
OJ_MUST_USE oj_status oj_devices_parse(const char *text, uint64_t *out,
                                       struct oj_error *err);

#endif
