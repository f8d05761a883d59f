/** The only malloc of the project: counts times sizes are checked for overflow,
 *  arrays start on a cache line, and the tests can make the n-th call fail.
 */
#ifndef OJ_ALLOC_H
#define OJ_ALLOC_H

#include "oj_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Uninitialised array of n elements of size bytes, 64-byte aligned.
 *  n == 0 gives a valid pointer.  NULL when out of memory, n < 0 or overflow.
 *  Free with oj_free(). */
void *oj_malloc(int64_t n, size_t size);

/** An array like oj_malloc()'s, of zeros. */
void *oj_calloc(int64_t n, size_t size);

/** Accepts NULL. */
void oj_free(void *array);

/** Makes *array (elements of size bytes, n_used in use, *capacity allocated)
 *  hold at least n_needed elements; grows by half.  On failure both are
 *  unchanged. */
OJ_MUST_USE oj_status oj_reserve(void *array_pointer, int64_t n_used,
                                 int64_t n_needed, int64_t *capacity,
                                 size_t size, struct oj_error *err);

/** oj_reserve() of an array of its own type, from a function that returns a
 *  status: returns it when there is no memory. */
#define OJ_ROOM(array, n_used, n_needed, capacity, err)                        \
    OJ_TRY(oj_reserve(&(array), (n_used), (n_needed), &(capacity),             \
                      sizeof *(array), (err)))

/** Tests only: the n-th allocation from now on (1 = the next) and all after it
 *  fail; 0 switches this off. Process-wide. Returns the number of allocations
 *  counted since the last call. The emulated CUDA module shows its own. */
OJ_EXPORT int64_t oj_alloc_fail_at(int64_t n);

/** Allocates an array and returns OJ_ERR_NOMEM from the enclosing function
 *  when that fails.  For functions that own nothing yet; others test for NULL
 *  themselves. */
#define OJ_NEW(pointer, n, err)                                                \
    do                                                                         \
    {                                                                          \
        (pointer) = oj_malloc((n), sizeof *(pointer));                         \
        if ((pointer) == NULL)                                                 \
            return oj_fail_nomem((err), (n), sizeof *(pointer));               \
    } while (0)

/** OJ_NEW() of an array of zeros. */
#define OJ_NEW_ZEROED(pointer, n, err)                                         \
    do                                                                         \
    {                                                                          \
        (pointer) = oj_calloc((n), sizeof *(pointer));                         \
        if ((pointer) == NULL)                                                 \
            return oj_fail_nomem((err), (n), sizeof *(pointer));               \
    } while (0)

/** OJ_ERR_NOMEM, with the megabytes of n elements of size bytes and what a user
 *  can do. */
oj_status oj_fail_nomem(struct oj_error *err, int64_t n, size_t size);

#ifdef __cplusplus
}
#endif
#endif
