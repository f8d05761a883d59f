/** One step of a hash over numbers. Suited to hash tables that also compare
 *  keys, and to detecting changes; it does not resist adversaries. */
#ifndef OJ_HASH_MIX_H
#define OJ_HASH_MIX_H

#include <stdint.h>
#include <string.h>

/** Returns the hash extended by the 8 bytes of an integer or a double. */
static inline uint64_t oj_hash_mix(uint64_t hash, const void *number)
{
    uint64_t bits;
    memcpy(&bits, number, sizeof bits);
    hash = (hash ^ bits) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

#endif
