/** Amounts of memory as a person writes them: 100000, 512M, 4G, 1.5GB. */
#ifndef OJ_SIZE_H
#define OJ_SIZE_H

#include <stdint.h>

/** 1 and the bytes, at least 1, or 0 where text is no such amount. K, M, G and
 *  T are powers of 1024. */
int oj_size_parse(const char *text, int64_t *bytes);

#endif
