#include "oj_pass_state.h"

#define TO(state) (1u << OJ_PASS_##state)

/* Names of the states and their transitions, indexed by enum oj_pass_state. */
static const struct
{
    const char *name;
    int has_join_side;
    /* possible next states, one bit each; BROKEN is possible from every state
     */
    unsigned next;
} states[OJ_N_PASS_STATES] = {
    {"CLOSED", 0, TO(OPEN)},
    {"OPEN", 0, TO(PREPARING)},
    {"PREPARING", 0, TO(STREAMING) | TO(PREPARED)},
    {"STREAMING", 0, TO(PREPARED)},
    {"PREPARED", 1, TO(PREPARING) | TO(CHOOSING) | TO(STARTED)},
    {"CHOOSING", 1, TO(STARTED)},
    {"STARTED", 1, TO(PREPARING) | TO(INPUT_ROWS)},
    {"INPUT_ROWS", 1, TO(OTHER_ROWS) | TO(STARTED)},
    {"OTHER_ROWS", 1, TO(STARTED)},
    {"BROKEN", 0, TO(OPEN)},
};

int oj_pass_state_allows(enum oj_pass_state from, enum oj_pass_state to)
{
    return to == OJ_PASS_BROKEN || (states[from].next >> to & 1u) != 0;
}

int oj_pass_state_has_join_side(enum oj_pass_state state)
{
    return states[state].has_join_side;
}

const char *oj_pass_state_name(enum oj_pass_state state)
{
    return states[state].name;
}

enum oj_pass_state oj_pass_state_get(const enum oj_pass_state *state)
{
    return __atomic_load_n(state, __ATOMIC_ACQUIRE);
}

oj_status oj_pass_state_enter(enum oj_pass_state *state,
                              enum oj_pass_state next, struct oj_error *err)
{
    const enum oj_pass_state now = oj_pass_state_get(state);
    if (!oj_pass_state_allows(now, next))
        return oj_fail_internal(err, "a pass cannot go from %s to %s",
                                oj_pass_state_name(now),
                                oj_pass_state_name(next));
    __atomic_store_n(state, next, __ATOMIC_RELEASE);
    return OJ_OK;
}

void oj_pass_state_set_broken(enum oj_pass_state *state)
{
    __atomic_store_n(state, OJ_PASS_BROKEN, __ATOMIC_RELEASE);
}
