/** The table of options that exclude each other or do not fit the join. Used by
 *  the command, JOIN: and the library.
 *
 *   options given by name --> first row of the table that applies --> message
 *
 *  The table uses the names of the command.  A caller with another syntax, such
 *  as one_to_one=True, supplies a function for messages.
 */
#ifndef OJ_OPTION_CLASH_H
#define OJ_OPTION_CLASH_H

#include "../../../flatten/base/oj_status.h"
#include "../../foundations/relation/oj_relation.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The options given by the user, and the resulting relation. */
struct oj_given_options
{
    const struct oj_relation *relation;
    const char *op; /**< name of the join as the user wrote it (a join can have
                         synonyms) */

    /** Returns the value of an option as text; "" if it has no value, or a
     * value that is no text; NULL if it was not given, or if this caller does
     * not have the option. */
    const char *(*word)(const void *user, const char *name);

    /** Writes an option in the user's syntax, with `word` as its value unless
     * word is NULL. spell NULL: messages have the command's syntax, "-name
     * word". */
    void (*spell)(const void *user, const char *name, const char *word,
                  char *text, size_t size);
    const void *user;
};

/** Tests the rows of the table, about 70. Fails with OJ_ERR_ARG and the message
 * of the first row that applies. */
OJ_MUST_USE oj_status oj_option_clash_check(
    const struct oj_given_options *given, struct oj_error *err);

/** Returns option names of row i of the table, for tests, or NULL beyond its
 * end. which 0: the option of the row; 1: the others, as "a|b|c"; 2: the
 * options that must be missing. "": the row has none. */
const char *oj_option_clash_names(int i, int which);

#ifdef __cplusplus
}
#endif
#endif
