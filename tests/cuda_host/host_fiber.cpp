#include "host_fiber.h"

#include <cstdint>
#include <cstring>

#if OJ_HOST_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef __x86_64__
/* Pushes the registers that a called function must preserve on the stack of the
 * fiber that stops. Pops those of the fiber that continues from its stack.
 */
asm(".text\n"
    ".globl oj_host_switch\n"
    ".hidden oj_host_switch\n"
    ".type oj_host_switch, @function\n"
    "oj_host_switch:\n"
    "    push %rbp\n"
    "    push %rbx\n"
    "    push %r12\n"
    "    push %r13\n"
    "    push %r14\n"
    "    push %r15\n"
    "    mov %rsp, (%rdi)\n"
    "    mov %rsi, %rsp\n"
    "    pop %r15\n"
    "    pop %r14\n"
    "    pop %r13\n"
    "    pop %r12\n"
    "    pop %rbx\n"
    "    pop %rbp\n"
    "    ret\n"
    ".size oj_host_switch, . - oj_host_switch\n");
extern "C" __attribute__((visibility("hidden"))) void
oj_host_switch(void **left, void *to);
#endif

namespace oj_host
{
void fiber_make(fiber *f, char *stack, size_t bytes, void (*body)(void))
{
    memset((void *)f, 0, sizeof *f);
    f->stack = stack;
    f->bytes = bytes;
#ifdef __x86_64__
    /* The initial stack has six registers, the address of body, and a return
     * address for body, which is 0 because body never returns. With this word,
     * the stack is aligned as in any function. */
    void **top = (void **)(void *)(stack + bytes) - 8;
    memset(top, 0, 8 * sizeof *top);
    top[6] = (void *)(uintptr_t)body;
    f->top = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = bytes;
    makecontext(&f->context, body, 0);
#endif
}

#if OJ_HOST_ASAN
static thread_local fiber *left;

/* Records the bounds of the stack that was left. The bounds of a thread's own
 * stack are unknown until then. */
static void arrive(void *fake_stack)
{
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &bytes);
    left->stack = (char *)(uintptr_t)bottom;
    left->bytes = bytes;
}
#endif

void fiber_arrived(void)
{
#if OJ_HOST_ASAN
    arrive(nullptr);
#endif
}

void fiber_switch(fiber *from, fiber *to)
{
#if OJ_HOST_ASAN
    left = from;
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->bytes);
#endif
#ifdef __x86_64__
    oj_host_switch(&from->top, to->top);
#else
    swapcontext(&from->context, &to->context);
#endif
#if OJ_HOST_ASAN
    arrive(from->fake_stack);
#endif
}
} // namespace oj_host
