/** The states of a pass (oj_pass.h) and their transitions.
 *
 *    CLOSED --open--> OPEN
 *                      |
 *                  PREPARING ---> STREAMING    -agg, larger join layer
 *                      |              |
 *                      v              |
 *                  PREPARED <---------+
 *                      |     \
 *                      |      CHOOSING         -one_to_one, the first time
 *                      v      /
 *                   STARTED <-----------+
 *                      |                |
 *                      v                | stop
 *                  INPUT_ROWS ----------+
 *                      |                |
 *                      v                |
 *                  OTHER_ROWS ----------+
 *
 *    PREPARED, STARTED --> PREPARING: a single row is requested after the join
 *    layer was streamed for aggregates
 *    any --> BROKEN --reopen--> OPEN
 *
 *  One thread at a time changes the state: from the first row requested until
 *  the last input row, the reader thread; otherwise the caller's thread. Any
 *  thread may read it at any time.
 */
#ifndef OJ_PASS_STATE_H
#define OJ_PASS_STATE_H

#include "../../flatten/base/oj_status.h"

enum oj_pass_state
{
    OJ_PASS_CLOSED,    /**< nothing is open */
    OJ_PASS_OPEN,      /**< schemas are read and rows planned */
    OJ_PASS_PREPARING, /**< a side is being read and indexed */
    /** the batches of the join layer are joined with the indexed input, and
     *  their pairs aggregated */
    OJ_PASS_STREAMING,
    /** input rows can be joined, or their aggregates are complete */
    OJ_PASS_PREPARED,
    /** all input rows are joined, so that -one_to_one can choose pairs */
    OJ_PASS_CHOOSING,
    OJ_PASS_STARTED,    /**< rows can be made, any number of times */
    OJ_PASS_INPUT_ROWS, /**< the input layer is read and its rows are made */
    /** input rows have ended; rows of unmatched join features are made */
    OJ_PASS_OTHER_ROWS,
    OJ_PASS_BROKEN, /**< an error occurred, or a file has changed */
    OJ_N_PASS_STATES
};

/** Returns 1 if a pass may change from one state to the other, by the diagram
 *  above. */
int oj_pass_state_allows(enum oj_pass_state from, enum oj_pass_state to);

/** Returns 1 if the join side of a pass in this state is complete. */
int oj_pass_state_has_join_side(enum oj_pass_state state);

/** Returns the name of the state, as in the diagram above; never NULL. */
const char *oj_pass_state_name(enum oj_pass_state state);

/** Reads the state of a pass atomically. */
enum oj_pass_state oj_pass_state_get(const enum oj_pass_state *state);

/** Changes *state to next. OJ_ERR_INTERNAL, and no change, if this transition
 *  does not exist. */
OJ_MUST_USE oj_status oj_pass_state_enter(enum oj_pass_state *state,
                                          enum oj_pass_state next,
                                          struct oj_error *err);

/** Enters BROKEN, which is possible from every state. */
void oj_pass_state_set_broken(enum oj_pass_state *state);

#endif
