/** Stores of the host that go past its caches: of results larger than these, so
 *  that no line is read before it is written, and none is pushed out.
 */
#ifndef OJ_UNCACHED_STORE_H
#define OJ_UNCACHED_STORE_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/** Results of more bytes than this go past the caches. */
#define OJ_STREAMED_BYTES ((int64_t)512 << 20)

static inline void oj_stream_int64(int64_t *to, int64_t value)
{
#ifdef __SSE2__
    _mm_stream_si64((long long *)(void *)to, (long long)value);
#else
    *to = value;
#endif
}

/** Streamed stores are seen by other threads that take what follows. */
static inline void oj_stream_end(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/** memcpy(); streams 0: by way of the caches. */
static inline void oj_stream_or_copy(int streams, void *to, const void *from,
                                     size_t n)
{
#ifdef __SSE2__
    char *at = (char *)to;
    const char *next = (const char *)from;
    size_t head = (16 - (uintptr_t)at % 16) % 16;
    if (!streams)
        head = n;
    head = head < n ? head : n;
    memcpy(at, next, head);
    for (at += head, next += head, n -= head; n >= 16; n -= 16)
    {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)next);
        _mm_stream_si128((__m128i *)(void *)at, v);
        at += 16;
        next += 16;
    }
    memcpy(at, next, n);
    oj_stream_end();
#else
    (void)streams;
    memcpy(to, from, n);
#endif
}

#endif
