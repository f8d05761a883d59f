/** Parses amounts of memory: 100000, 512M, 4G, 1.5GB. */
#ifndef OJ_MEMORY_SIZE_H
#define OJ_MEMORY_SIZE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returns 1 and sets *bytes (at least 1), or returns 0 if text is not an
 *  amount. K, M, G and T are powers of 1024. */
int oj_memory_size_read(const char *text, int64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
