/** A step of a hash of numbers, one after another.  For numbers that are
 *  compared afterwards, or whose change is to be noticed; not against people
 *  who choose them. */
#ifndef OJ_HASH_MIX_H
#define OJ_HASH_MIX_H

#include <stdint.h>
#include <string.h>

/** The hash of what hash is of and then of 8 bytes, those of an integer or of a
 *  double. */
static inline uint64_t oj_hash_mix(uint64_t hash, const void *number)
{
    uint64_t bits;
    memcpy(&bits, number, sizeof bits);
    hash = (hash ^ bits) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

#endif
