/** Fibers: several stacks of one thread of the host, of which one runs. */
#ifndef OJ_HOST_FIBER_H
#define OJ_HOST_FIBER_H

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define OJ_HOST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OJ_HOST_ASAN 1
#endif
#endif
#ifndef OJ_HOST_ASAN
#define OJ_HOST_ASAN 0
#endif

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace oj_host
{
/** What is kept of a stack that does not run. */
struct fiber
{
#ifdef __x86_64__
    void *top; /**< what it goes on with lies there */
#else
    ucontext_t context;
#endif
    char *stack; /**< its lower end */
    size_t bytes;
    void *fake_stack; /**< the address sanitizer's */
};

/** body starts with fiber_arrived(), and never returns. */
void fiber_make(fiber *f, char *stack, size_t bytes, void (*body)(void));

/** Leaves from for to; returns when somebody switches back. */
void fiber_switch(fiber *from, fiber *to);

/** First thing of a body. */
void fiber_arrived(void);
} // namespace oj_host

#endif
