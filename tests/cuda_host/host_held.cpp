/* Counts the resources of emulated devices that the process holds, and makes
 * allocations fail. The process aborts if device memory, streams or events are
 * not freed when it ends, or a device's memory when its last stream is
 * destroyed. Pinned memory may remain, because the module keeps some for the
 * next join. Tests can query more (host_held.h). */
#include "host_held.h"
#include "host_state.h"

namespace oj_host
{
namespace
{
std::atomic<int64_t> n_held[N_THINGS];
std::atomic<int64_t> n_allocations, first_failing, end_failing;

const char *const names[N_THINGS] = {"blocks of device memory", "", "streams",
                                     "events"};

/* Aborts at the end of the process if resources are still held. Memory of a
 * lost device need not be freed. */
struct last_look
{
    ~last_look()
    {
        char text[OJ_HOST_HELD_TEXT];
        static const int64_t keeps = setting("OJ_CUDA_HOST_KEEPS", 0);
        if (any_device_is_lost())
            n_held[DEVICE_MEMORY] = 0;
        if (!keeps && oj_host_held(text) > 0)
            die("not freed when the process ends: %s", text);
    }
} at_end;
} // namespace

bool may_take(void)
{
    int64_t n = ++n_allocations;
    return n < first_failing || n >= end_failing;
}

void holds(enum thing thing, int n)
{
    n_held[thing] += n;
}
} // namespace oj_host

using namespace oj_host;

void oj_host_fail_at(int64_t first, int64_t n)
{
    n_allocations = 0;
    first_failing = first;
    end_failing = first + n;
}

int64_t oj_host_allocations(void)
{
    return n_allocations;
}

int64_t oj_host_pinned(void)
{
    return n_held[PINNED_MEMORY];
}

int64_t oj_host_held(char text[OJ_HOST_HELD_TEXT])
{
    int64_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < N_THINGS; i++)
    {
        size_t used = strlen(text);
        int64_t here = n_held[i];
        if (i == PINNED_MEMORY || here == 0)
            continue;
        n += here;
        snprintf(text + used, OJ_HOST_HELD_TEXT - used, "%s%lld %s",
                 used > 0 ? ", " : "", (long long)here, names[i]);
    }
    return n;
}
