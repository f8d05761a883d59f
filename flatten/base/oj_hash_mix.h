/** A step of a hash over numbers. For hash tables, where equal hashes are
 *  followed by a comparison, and to detect changes; not against adversaries. */
#ifndef OJ_HASH_MIX_H
#define OJ_HASH_MIX_H

#include <stdint.h>
#include <string.h>

/** Extends a hash by 8 bytes, those of an integer or of a double. */
static inline uint64_t oj_hash_mix(uint64_t hash, const void *number)
{
    uint64_t bits;
    memcpy(&bits, number, sizeof bits);
    hash = (hash ^ bits) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

#endif
