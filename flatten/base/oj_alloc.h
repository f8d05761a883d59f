/** The only malloc of the project. Sizes are checked for overflow, arrays start
 *  on a cache line, and tests can make the n-th allocation fail. */
#ifndef OJ_ALLOC_H
#define OJ_ALLOC_H

#include "oj_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Allocates an uninitialised array of n elements of size bytes, 64-byte
 *  aligned. n == 0 gives a valid pointer. Returns NULL if memory is missing, n
 *  < 0 or the size overflows. Free it with oj_free(). */
void *oj_malloc(int64_t n, size_t size);

/** Like oj_malloc(), with zeroed elements. */
void *oj_calloc(int64_t n, size_t size);

/** Frees an array; accepts NULL. */
void oj_free(void *array);

/** Makes *array hold at least n_needed elements; its capacity grows by at least
 *  half. size: bytes of an element; n_used: elements to keep; *capacity:
 *  elements allocated.  On failure array and capacity are unchanged. */
OJ_MUST_USE oj_status oj_reserve(void *array_pointer, int64_t n_used,
                                 int64_t n_needed, int64_t *capacity,
                                 size_t size, struct oj_error *err);

/** oj_reserve() for an array of any type; on failure it returns the status from
 *  the enclosing function. */
#define OJ_ROOM(array, n_used, n_needed, capacity, err)                        \
    OJ_TRY(oj_reserve(&(array), (n_used), (n_needed), &(capacity),             \
                      sizeof *(array), (err)))

/** Tests only: the n-th allocation from now on (1 = the next) and all after it
 *  fail; 0 switches this off. Process-wide. Returns the number of allocations
 *  since the last call. The emulated CUDA module exports its own copy. */
OJ_EXPORT int64_t oj_alloc_fail_at(int64_t n);

/** Allocates an array; on failure it returns OJ_ERR_NOMEM from the enclosing
 *  function. Use it only where the function owns nothing yet. */
#define OJ_NEW(pointer, n, err)                                                \
    do                                                                         \
    {                                                                          \
        (pointer) = oj_malloc((n), sizeof *(pointer));                         \
        if ((pointer) == NULL)                                                 \
            return oj_fail_nomem((err), (n), sizeof *(pointer));               \
    } while (0)

/** Like OJ_NEW(), with zeroed elements. */
#define OJ_NEW_ZEROED(pointer, n, err)                                         \
    do                                                                         \
    {                                                                          \
        (pointer) = oj_calloc((n), sizeof *(pointer));                         \
        if ((pointer) == NULL)                                                 \
            return oj_fail_nomem((err), (n), sizeof *(pointer));               \
    } while (0)

/** Returns OJ_ERR_NOMEM. The message states the size of n elements in megabytes
 *  and advises the user. */
oj_status oj_fail_nomem(struct oj_error *err, int64_t n, size_t size);

#ifdef __cplusplus
}
#endif
#endif
