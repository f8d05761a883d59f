/* Runs the blocks of a kernel. A block runs on one thread of the host. Each of
 * its threads is a fiber, which is switched only where it waits for others:
 *
 *   lane  ready --> runs --> ended
 *           ^         |
 *           |         v
 *           +--- waits for lanes of its warp, or for the block
 *
 * OJ_CUDA_HOST_ORDER is the order of the lanes: forward (lane 0 first),
 * backward, or a number, the seed of a random order. OJ_CUDA_HOST_THREADS=n is
 * the number of blocks of a kernel that run at a time. With
 * OJ_CUDA_HOST_FAULTS=stay, a thread that accesses invalid memory loses the
 * device, as on a real one; otherwise the process ends.
 */
#include "cuda_runtime.h"
#include "host_fiber.h"

#include <cstdarg>
#include <signal.h>
#include <sys/mman.h>

namespace oj_host
{
__thread struct thread_place *now;

void die(const char *format, ...)
{
    va_list list;
    fflush(stdout);
    fprintf(stderr, "emulated device: ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    if (now != nullptr)
        fprintf(stderr, "  in thread %u of block %u\n", now->thread.x,
                now->block.x);
    abort();
}

size_t shared_place(size_t size)
{
    static std::atomic<size_t> end{0};
    size_t bytes =
        SHARED_HEAD + (size + SHARED_HEAD - 1) / SHARED_HEAD * SHARED_HEAD;
    size_t place = end.fetch_add(bytes);
    if (place + bytes > SHARED_BYTES)
        die("SHARED_BYTES is too small");
    return place;
}

namespace
{
enum
{
    WARP = 32,
    MOST_THREADS = 1024,
    MOST_WARPS = MOST_THREADS / WARP,
    STACK_BYTES = OJ_HOST_ASAN ? 512 << 10 : 128 << 10,
    PAGE = 4096
};

enum thread_state : uint8_t
{
    BEGINS,
    WAITS_FOR_WARP, /* waits, or has waited and is ready */
    WAITS_FOR_BLOCK,
    ENDED
};

/* State of a thread of the block, in a cache line of its own. */
struct alignas(64) lane
{
    fiber *on; /* runs the lane; NULL before it begins and after it ends */
    uint64_t value, result;
    const char *file;
    int line;
    uint3 thread;
    unsigned mask, asked;
    uint8_t width;
    enum thread_state state;
    enum warp_meeting what;
};

/* A thread of the host that runs blocks of a kernel. */
struct runner
{
    struct thread_place place;
    fiber scheduler;
    std::vector<fiber *> idle; /* fibers parked at the start of a lane */
    std::vector<std::unique_ptr<fiber>> fibers;
    std::vector<char *> stacks;
    const launch_shape *shape;
    const std::function<void()> *body;
    lane lanes[MOST_THREADS];
    /* Lanes of each warp, as masks. */
    unsigned ready[MOST_WARPS], waiting[MOST_WARPS];
    unsigned ready_warps;
    int n, n_warps, n_ended, warp, at;
    /* A fault has happened: the fibers cannot be used any more. */
    int is_spoiled;
    uint64_t random;
    alignas(SHARED_HEAD) unsigned char shared[SHARED_BYTES];
};

thread_local runner *mine;

/* Returns the runner of the host thread that now runs the fiber. It is not
 * inlined: a fiber may continue on another thread, so the compiler must not use
 * the address of `mine` again. */
[[gnu::noinline]] runner *runner_here(void)
{
    asm volatile("" ::: "memory");
    return mine;
}

const char *const names[] = {
    "__syncwarp",       "__ballot_sync", "__any_sync",     "__all_sync",
    "__match_any_sync", "__shfl_sync",   "__shfl_up_sync", "__shfl_xor_sync"};

/* --- orders --------------------------------------------------------------- */

enum order
{
    FORWARD,
    BACKWARD,
    SHUFFLED
};

const char *order_text(void)
{
    const char *text = getenv("OJ_CUDA_HOST_ORDER");
    return text != nullptr && *text != '\0' ? text : "forward";
}

const enum order order = strcmp(order_text(), "forward") == 0    ? FORWARD
                         : strcmp(order_text(), "backward") == 0 ? BACKWARD
                                                                 : SHUFFLED;
const uint64_t seed = (uint64_t)atoll(order_text());

uint64_t mix(uint64_t v)
{
    v = (v ^ (v >> 31)) * 0x9E3779B97F4A7C15u;
    return v ^ (v >> 29);
}

uint64_t draw(runner *r)
{
    r->random += 0xA0761D6478BD642Fu;
    return mix(r->random);
}

/* Returns one set bit of bits, by the order of the lanes: the first, the last,
 * or the next one after a random position. */
int pick_bit(runner *r, unsigned bits)
{
    unsigned from;
    switch (order)
    {
        case FORWARD:
            return __builtin_ctz(bits);
        case BACKWARD:
            return 31 - __builtin_clz(bits);
        default:
            from = (unsigned)(draw(r) >> 59);
            bits = bits >> from | bits << (-from & 31u);
            return (int)(((unsigned)__builtin_ctz(bits) + from) & 31u);
    }
}

/* Returns the warp to run next, or -1 if no lane is ready. Except in random
 * order, the last warp continues as long as it can. */
int next_warp(runner *r)
{
    if (r->ready_warps == 0)
        return -1;
    if (order != SHUFFLED && r->ready[r->warp] != 0)
        return r->warp;
    return pick_bit(r, r->ready_warps);
}

void make_ready(runner *r, int w, unsigned lanes)
{
    r->ready[w] |= lanes;
    r->ready_warps |= 1u << w;
}

uint64_t block_in_order(uint64_t i, uint64_t n)
{
    if (order == FORWARD)
        return i;
    if (order == BACKWARD)
        return n - 1 - i;
    uint64_t step = mix(seed + n) % n | 1u;
    while (std::gcd(step, n) != 1)
        step += 2;
    return (uint64_t)((unsigned __int128)i * step % n);
}

/* --- fibers --------------------------------------------------------------- */

void leave(runner *r, fiber *self);

/* Main loop of every fiber: runs one lane after the other. */
void run_lanes(void)
{
    fiber_arrived();
    for (;;)
    {
        runner *r = runner_here();
        (*r->body)();
        lane *l = &r->lanes[r->at];
        fiber *self = l->on;
        l->state = ENDED;
        l->on = nullptr;
        r->n_ended++;
        r->idle.push_back(self);
        leave(r, self);
    }
}

/* Adds a fiber. Stacks begin at different offsets within a page, so that they
 * do not compete for cache lines. There is a protected page below each
 * stack. */
void add_fiber(runner *r)
{
    size_t shift = (r->fibers.size() * 7 % 56) * 64;
    char *memory =
        (char *)mmap(nullptr, STACK_BYTES + PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, PAGE, PROT_NONE) != 0)
        die("cannot allocate stacks");
    r->stacks.push_back(memory);
    r->fibers.emplace_back(new fiber);
    fiber_make(r->fibers.back().get(), memory + PAGE, STACK_BYTES - shift,
               run_lanes);
    r->idle.push_back(r->fibers.back().get());
}

/* Returns the fiber to run next, or the scheduler if no lane is ready. */
fiber *next_fiber(runner *r)
{
    int w = next_warp(r);
    if (w < 0)
        return &r->scheduler;
    int i = pick_bit(r, r->ready[w]);
    lane *l = &r->lanes[w * WARP + i];
    r->ready[w] &= ~(1u << i);
    if (r->ready[w] == 0)
        r->ready_warps &= ~(1u << w);
    r->warp = w;
    r->at = w * WARP + i;
    r->place.thread = l->thread;
    if (l->on == nullptr)
    {
        if (r->idle.empty())
            add_fiber(r);
        l->on = r->idle.back();
        r->idle.pop_back();
    }
    return l->on;
}

/* Switches to the next fiber. */
void leave(runner *r, fiber *self)
{
    fiber *next = next_fiber(r);
    if (next != self)
        fiber_switch(self, next);
}

/* --- synchronisation ------------------------------------------------------ */

void describe(const runner *r)
{
    fprintf(stderr, "emulated device: block %u of %s is stuck:\n",
            r->place.block.x, r->shape->kernel);
    for (int i = 0; i < r->n; i++)
    {
        const lane *l = &r->lanes[i];
        if (l->state == ENDED)
            fprintf(stderr, "  thread %d has ended\n", i);
        else if (l->state == WAITS_FOR_BLOCK)
            fprintf(stderr, "  thread %d: __syncthreads, %s:%d\n", i, l->file,
                    l->line);
        else
            fprintf(stderr, "  thread %d: %s of %08x, %s:%d\n", i,
                    names[l->what], l->mask, l->file, l->line);
    }
}

/* Returns the lanes of mask that have contributed this value. */
unsigned lanes_with_value(const lane *warp, unsigned mask, uint64_t value)
{
    unsigned same = 0;
    for (unsigned left = mask; left != 0; left &= left - 1)
    {
        int i = __builtin_ctz(left);
        same |= (unsigned)(warp[i].value == value) << i;
    }
    return same;
}

uint64_t asked_value(const lane *warp, const lane *l, int at)
{
    /* width is a power of two */
    int group = at & -(int)l->width, asked = at;
    if (l->what == MEET_SHUFFLE)
        asked = group + (int)(l->asked & (l->width - 1));
    else if (l->what == MEET_SHUFFLE_UP && at - (int)l->asked >= group)
        asked = at - (int)l->asked;
    else if (l->what == MEET_SHUFFLE_XOR &&
             (at ^ (int)l->asked) < group + (int)l->width)
        asked = at ^ (int)l->asked;
    if ((l->mask >> asked & 1u) == 0)
        die("%s, %s:%d: lane %d asks lane %d, which is not in %08x",
            names[l->what], l->file, l->line, at, asked, l->mask);
    return warp[asked].value;
}

void answer(lane *warp, unsigned mask, enum warp_meeting what)
{
    uint64_t all = 0;
    if (what == MEET_BALLOT || what == MEET_ANY || what == MEET_ALL)
        all = lanes_with_value(warp, mask, 1);
    if (what == MEET_ANY || what == MEET_ALL)
        all = what == MEET_ANY ? all != 0 : all == mask;
    for (unsigned left = mask; left != 0; left &= left - 1)
    {
        int i = __builtin_ctz(left);
        lane *l = &warp[i];
        l->result = what >= MEET_SHUFFLE ? asked_value(warp, l, i)
                    : what == MEET_MATCH
                        ? lanes_with_value(warp, mask, l->value)
                        : all;
    }
}

/* Resumes the lanes of mask if all of them wait for this operation. */
void try_meeting(runner *r, int w, unsigned mask, enum warp_meeting what)
{
    lane *warp = &r->lanes[w * WARP];
    if ((r->waiting[w] & mask) != mask)
        return;
    for (unsigned left = mask; left != 0; left &= left - 1)
    {
        const lane *l = &warp[__builtin_ctz(left)];
        if (l->mask != mask || l->what != what)
            return;
    }
    answer(warp, mask, what);
    r->waiting[w] &= ~mask;
    make_ready(r, w, mask);
}

/* Resumes all threads of the block. It is called when no thread is ready.
 * Aborts unless all threads that have not ended wait at one barrier. */
void release_block(runner *r)
{
    const lane *first = nullptr;
    int sum = 0;
    for (int i = 0; i < r->n; i++)
    {
        const lane *l = &r->lanes[i];
        if (l->state == ENDED)
            continue;
        if (first == nullptr)
            first = l;
        if (l->state != WAITS_FOR_BLOCK || l->line != first->line ||
            strcmp(l->file, first->file) != 0)
        {
            describe(r);
            abort();
        }
        sum += l->value != 0;
    }
    for (int i = 0; i < r->n; i++)
    {
        lane *l = &r->lanes[i];
        if (l->state == ENDED)
            continue;
        l->result = (uint64_t)sum;
        make_ready(r, i / WARP, 1u << (i % WARP));
    }
}

/* --- blocks --------------------------------------------------------------- */

void run_block(runner *r, uint64_t block)
{
    static std::atomic<uint64_t> serial{0};
    dim3 grid = r->shape->grid;
    r->place.block = {(unsigned)(block % grid.x),
                      (unsigned)(block / grid.x % grid.y),
                      (unsigned)(block / grid.x / grid.y)};
    r->place.serial = ++serial;
    r->n_ended = 0;
    r->warp = order == BACKWARD ? r->n_warps - 1 : 0;
    if (order == SHUFFLED)
        r->random = mix(seed * 1000003u + block);
    r->ready_warps = 0;
    for (int w = 0; w < r->n_warps; w++)
    {
        int n = r->n - w * WARP;
        r->ready[w] = r->waiting[w] = 0;
        make_ready(r, w, n < WARP ? (1u << n) - 1u : ~0u);
    }
    for (int i = 0; i < r->n; i++)
    {
        r->lanes[i].on = nullptr;
        r->lanes[i].state = BEGINS;
    }
    while (r->n_ended < r->n && !r->is_spoiled)
    {
        fiber *next = next_fiber(r);
        if (next == &r->scheduler)
            release_block(r);
        else
            fiber_switch(&r->scheduler, next);
    }
}

/* Runners are kept between kernels, so that their stacks are used again. */
std::mutex kept_lock;
std::vector<std::unique_ptr<runner>> &kept_runners(void)
{
    static auto *kept = new std::vector<std::unique_ptr<runner>>;
    return *kept;
}

std::unique_ptr<runner> take_runner(void)
{
    std::lock_guard<std::mutex> hold(kept_lock);
    std::unique_ptr<runner> r;
    if (kept_runners().empty())
        return std::unique_ptr<runner>(new runner());
    r = std::move(kept_runners().back());
    kept_runners().pop_back();
    return r;
}

void keep_runner(std::unique_ptr<runner> r)
{
    std::lock_guard<std::mutex> hold(kept_lock);
    kept_runners().push_back(std::move(r));
}

/* --- faults --------------------------------------------------------------- */

struct sigaction before;

/* Handles SIGSEGV on the stack of the fiber that caused it. The fiber never
 * continues. */
void on_fault(int, siginfo_t *info, void *)
{
    runner *r = mine;
    if (r == nullptr || r->is_spoiled)
    {
        sigaction(SIGSEGV, &before, nullptr);
        return;
    }
    fprintf(stderr, "emulated device: %s: thread %u of block %u touched %p\n",
            r->shape->kernel, r->place.thread.x, r->place.block.x,
            info->si_addr);
    r->is_spoiled = 1;
    fiber_switch(r->lanes[r->at].on, &r->scheduler);
}

int watch_faults(void)
{
    const char *text = getenv("OJ_CUDA_HOST_FAULTS");
    struct sigaction action;
    if (text == nullptr || strcmp(text, "stay") != 0)
        return 0;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    return sigaction(SIGSEGV, &action, &before) == 0;
}

/* --- grids ---------------------------------------------------------------- */

struct grid_run
{
    const launch_shape *shape;
    const std::function<void()> *body;
    uint64_t n_blocks;
    std::atomic<uint64_t> next;
    std::atomic<int> is_spoiled;
};

void run_some(grid_run *g)
{
    std::unique_ptr<runner> r = take_runner();
    dim3 block = g->shape->block;
    r->shape = g->shape;
    r->body = g->body;
    r->n = (int)(block.x * block.y * block.z);
    r->n_warps = (r->n + WARP - 1) / WARP;
    for (int i = 0; i < r->n; i++)
        r->lanes[i].thread = {(unsigned)i % block.x,
                              (unsigned)i / block.x % block.y,
                              (unsigned)i / block.x / block.y};
    r->place.block_size = block;
    r->place.grid_size = g->shape->grid;
    mine = r.get();
    r->place.shared = r->shared;
    now = &r->place;
    for (;;)
    {
        uint64_t i = g->next++;
        if (i >= g->n_blocks)
            break;
        run_block(r.get(), block_in_order(i, g->n_blocks));
        if (!r->is_spoiled)
            continue;
        g->is_spoiled = 1;
        g->next = g->n_blocks;
    }
    mine = nullptr;
    now = nullptr;
    if (!r->is_spoiled)
        keep_runner(std::move(r));
    else
        (void)r.release();
}

unsigned count_threads(void)
{
    const char *text = getenv("OJ_CUDA_HOST_THREADS");
    unsigned n = text != nullptr ? (unsigned)atoi(text)
                                 : std::thread::hardware_concurrency();
    return n < 1 ? 1 : n > 16 ? 16 : n;
}
} // namespace

uint64_t wait_for_lanes(enum warp_meeting what, unsigned mask, uint64_t value,
                        unsigned asked, unsigned width, const char *file,
                        int line)
{
    runner *r = mine;
    int at = r->at, w = at / WARP, n = r->n - w * WARP;
    lane *l = &r->lanes[at];
    unsigned there = n < WARP ? (1u << n) - 1u : ~0u;
    if ((mask >> (at % WARP) & 1u) == 0)
        die("%s, %s:%d: lane %d is not in its mask %08x", names[what], file,
            line, at % WARP, mask);
    if ((mask & ~there) != 0)
        die("%s, %s:%d: the block has no lanes %08x", names[what], file, line,
            mask & ~there);
    l->what = what;
    l->mask = mask;
    l->value = value;
    l->asked = asked;
    l->width = (uint8_t)width;
    l->file = file;
    l->line = line;
    l->state = WAITS_FOR_WARP;
    r->waiting[w] |= 1u << (at % WARP);
    try_meeting(r, w, mask, what);
    leave(r, l->on);
    return l->result;
}

int wait_for_block(int value, const char *file, int line)
{
    runner *r = mine;
    lane *l = &r->lanes[r->at];
    l->value = (uint64_t)(value != 0);
    l->file = file;
    l->line = line;
    l->state = WAITS_FOR_BLOCK;
    leave(r, l->on);
    return (int)l->result;
}

int run_blocks(const launch_shape &shape, const std::function<void()> &body)
{
    static const unsigned most = count_threads();
    static const int watches = watch_faults();
    dim3 n = shape.grid;
    grid_run g = {&shape, &body, (uint64_t)n.x * n.y * n.z, {0}, {0}};
    (void)watches;
    std::vector<std::thread> others;
    while (others.size() + 1 < most && 8 * (others.size() + 1) < g.n_blocks)
        others.emplace_back(run_some, &g);
    run_some(&g);
    for (std::thread &other : others)
        other.join();
    return !g.is_spoiled;
}
} // namespace oj_host
