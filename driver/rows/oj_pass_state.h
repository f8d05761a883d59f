/** The states of a pass (oj_pass.h), and the table of what follows on what.
 *
 *   CLOSED --open--> OPEN
 *                     |
 *                 PREPARING ---> STREAMING    -agg, the larger join layer
 *                     |              |
 *                     v              |
 *                 PREPARED <---------+
 *                     |     \
 *                     |      CHOOSING         -one_to_one, the first time
 *                     v      /
 *                  STARTED <-----------+
 *                     |                |
 *                     v                | stop
 *                 INPUT_ROWS ----------+
 *                     |                |
 *                     v                |
 *                 OTHER_ROWS ----------+
 *
 *   PREPARED, STARTED --> PREPARING: a single row is asked for, of aggregates
 *                         that were streamed
 *   any --> BROKEN --reopen--> OPEN
 *
 *  A pass has one state.  It is changed by one thread at a time: the thread
 *  that reads the input rows, from the first row asked for until these have
 *  ended, else the caller's.  Other threads may look at it at any time.
 */
#ifndef OJ_PASS_STATE_H
#define OJ_PASS_STATE_H

#include "../../flatten/base/oj_status.h"

enum oj_pass_state
{
    OJ_PASS_CLOSED,     /**< nothing is open */
    OJ_PASS_OPEN,       /**< the schemas are read, and the rows are planned */
    OJ_PASS_PREPARING,  /**< the side to index is read and indexed */
    OJ_PASS_STREAMING,  /**< the join layer is read past the indexed input, and
                             its pairs are added up */
    OJ_PASS_PREPARED,   /**< input rows can be joined, or their aggregates are
                             there */
    OJ_PASS_CHOOSING,   /**< all input rows are joined, for the pairs of
                             -one_to_one */
    OJ_PASS_STARTED,    /**< rows can be made, any number of times */
    OJ_PASS_INPUT_ROWS, /**< the input layer is read, and its rows are made */
    OJ_PASS_OTHER_ROWS, /**< input rows have ended; join rows that match nothing
                             are made */
    OJ_PASS_BROKEN,     /**< something failed, or a file has changed */
    OJ_N_PASS_STATES
};

/** 1 when a pass can go from one to the other. */
int oj_pass_state_allows(enum oj_pass_state from, enum oj_pass_state to);

/** 1 when the join side of a pass in this state is complete. */
int oj_pass_state_has_join_side(enum oj_pass_state state);

/** As in the table above. Never NULL. */
const char *oj_pass_state_name(enum oj_pass_state state);

/** Of a pass that another thread may be changing. */
enum oj_pass_state oj_pass_state_get(const enum oj_pass_state *state);

/** OJ_ERR_INTERNAL, and *state as it was, where the table has no such step. */
OJ_MUST_USE oj_status oj_pass_state_enter(enum oj_pass_state *state,
                                          enum oj_pass_state next,
                                          struct oj_error *err);

/** Enters BROKEN, which every state allows. */
void oj_pass_state_break(enum oj_pass_state *state);

#endif
