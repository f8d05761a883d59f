/** What -backend auto does: the cpu backend, or cuda where it pays.
 *
 *  The choice is made when the join side is known and the number of input rows
 *  is (struct oj_options.n_expected); else at the first batch, by its size.  A
 *  device that fails is left for the CPU.  The answers are the same.
 */
#ifndef AUTO_BACKEND_H
#define AUTO_BACKEND_H

#include "../relation/oj_backend.h"

/** Not in the table: its name stands for those of the two. */
extern const struct oj_backend oj_auto_backend;

/** The row that is at work, or was chosen. */
const struct oj_backend *oj_auto_used(const struct oj_index *index);

/** Why, in words: "GPU expected to take 0.3 s, the CPU 2.1 s". */
const char *oj_auto_reason(const struct oj_index *index);

/** What answers a batch like input; NULL: one of points. */
const char *oj_auto_method(const struct oj_index *index,
                           const struct oj_flat *input);

#endif
