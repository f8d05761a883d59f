/** The table of options that clash with each other or with the join, for the
 *  command, the library and all other entries.
 *
 *   options given by name --> the first row of the table that fits --> message
 *
 *  The table uses the command's names.  A caller that spells them in another
 *  way, as one_to_one=True, gives a function for that.
 */
#ifndef OJ_OPTION_CLASH_H
#define OJ_OPTION_CLASH_H

#include "../../../flatten/base/oj_status.h"
#include "../../foundations/relation/oj_relation.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The options given, and the resulting relation. */
struct oj_given_options
{
    const struct oj_relation *relation;
    const char *op; /**< name of the join as the user wrote it */

    /** The value of an option; "" if it has none, or if it is neither a text
     * nor one of several choices. NULL: it was not given, or this caller does
     * not have it. */
    const char *(*word)(const void *user, const char *name);

    /** Writes the option as the user has to write it, with word unless that is
     * NULL. A NULL function: like the command, "-name word". */
    void (*spell)(const void *user, const char *name, const char *word,
                  char *text, size_t size);
    const void *user;
};

/** OJ_ERR_ARG for the first row of the table that applies. Costs a pass over
 * some 50 rows. */
OJ_MUST_USE oj_status oj_option_clash_check(
    const struct oj_given_options *given, struct oj_error *err);

/** Option names in row i of the table, for tests; NULL past the end.
 * which  0: the option of the row; 1: the others, as "a|b|c"; 2: options that
 *        must be missing; "": none */
const char *oj_option_clash_names(int i, int which);

#ifdef __cplusplus
}
#endif
#endif
