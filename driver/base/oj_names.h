/** Field names that are taken, compared without case, as most formats do. */
#ifndef OJ_NAMES_H
#define OJ_NAMES_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Owner; zeroed memory is a valid empty one. */
struct oj_names
{
    int64_t n, capacity;
    char **name;
};

int oj_names_has(const struct oj_names *names, const char *name);

/** Adds a copy of name, taken or not; *kept is the copy. Empty names and NULL
 *  are passed over. */
OJ_MUST_USE oj_status oj_names_add(struct oj_names *names, const char *name,
                                   const char **kept, struct oj_error *err);

/** Adds name, or, when it is taken, prefix and name, or then the same with _2,
 *  _3 and so on; *kept is what was added. */
OJ_MUST_USE oj_status oj_names_add_free(struct oj_names *names,
                                        const char *prefix, const char *name,
                                        const char **kept,
                                        struct oj_error *err);

void oj_names_free(struct oj_names *names);

#ifdef __cplusplus
}
#endif
#endif
