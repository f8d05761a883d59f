#include "oj_alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OJ_ALIGNMENT 64

/* Arrays of at least two huge pages request huge pages from the kernel: with
 * pages of 4 KB, page faults take a fifth of the time of a join in memory.
 * Smaller arrays (columns of batches) do not request them: on a virtual machine
 * that has returned memory to its host, a huge page takes longer to allocate.
 */
#define HUGE_PAGE ((size_t)2 << 20)

static atomic_llong n_allocations;
static atomic_llong fail_at;

int64_t oj_alloc_fail_at(int64_t n)
{
    int64_t counted = atomic_exchange(&n_allocations, 0);
    atomic_store(&fail_at, n);
    return counted;
}

static int is_test_failure_due(void)
{
    long long n = atomic_fetch_add(&n_allocations, 1) + 1;
    long long at = atomic_load(&fail_at);
    return at > 0 && n >= at;
}

/* Returns n * size bytes, rounded up to the alignment; 0 on overflow. */
static size_t aligned_size_or_0_on_overflow(int64_t n, size_t size)
{
    size_t bytes;
    if (n < 0 || __builtin_mul_overflow((size_t)n, size, &bytes) ||
        bytes > (size_t)PTRDIFF_MAX / 2)
        return 0;
    return (bytes + OJ_ALIGNMENT) & ~(size_t)(OJ_ALIGNMENT - 1);
}

void *oj_malloc(int64_t n, size_t size)
{
    size_t bytes = aligned_size_or_0_on_overflow(n, size);
    void *array;
    if (bytes == 0 || is_test_failure_due())
        return NULL;
    if (bytes < 2 * HUGE_PAGE)
        return aligned_alloc(OJ_ALIGNMENT, bytes);
    if (posix_memalign(&array, HUGE_PAGE, bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    madvise(array, bytes & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
    return array;
}

void *oj_calloc(int64_t n, size_t size)
{
    void *array = oj_malloc(n, size);
    if (array != NULL)
        memset(array, 0, (size_t)n * size);
    return array;
}

void oj_free(void *array)
{
    free(array);
}

oj_status oj_reserve(void *array_pointer, int64_t n_used, int64_t n_needed,
                     int64_t *capacity, size_t size, struct oj_error *err)
{
    void *array, *grown;
    int64_t n;
    if (n_needed <= *capacity)
        return OJ_OK;
    n = *capacity + *capacity / 2;
    if (n < n_needed)
        n = n_needed;
    if (n < 16)
        n = 16;
    memcpy(&array, array_pointer, sizeof array);
    grown = oj_malloc(n, size);
    if (grown == NULL)
        return oj_fail_nomem(err, n, size);
    /* callers count the first entry of an offset array before the array exists:
     * n_used may be 1 while array is NULL */
    if (array != NULL && n_used > 0)
        memcpy(grown, array, (size_t)n_used * size);
    oj_free(array);
    memcpy(array_pointer, &grown, sizeof grown);
    *capacity = n;
    return OJ_OK;
}

oj_status oj_fail_nomem(struct oj_error *err, int64_t n, size_t size)
{
    return oj_fail(err, OJ_ERR_NOMEM,
                   "out of memory: %.1f MB more were needed (free memory, or "
                   "use smaller batches)",
                   (double)n * (double)size / 1048576.0);
}
