/** Fibers: several stacks of one host thread. One of them runs at a time. */
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
/** State of a fiber that does not run. */
struct fiber
{
#ifdef __x86_64__
    void *top; /**< top of the fiber's stack, with its registers */
#else
    ucontext_t context;
#endif
    char *stack; /**< lower end of the fiber's stack */
    size_t bytes;
    void *fake_stack; /**< used by the address sanitizer */
};

/** Makes a fiber. body must start with fiber_arrived() and never return. */
void fiber_make(fiber *f, char *stack, size_t bytes, void (*body)(void));

/** Switches from fiber `from` to fiber `to`. Returns when another fiber
 *  switches back to `from`. */
void fiber_switch(fiber *from, fiber *to);

/** Must be the first call of every body. */
void fiber_arrived(void);
} // namespace oj_host

#endif
