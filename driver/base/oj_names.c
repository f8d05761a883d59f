#include "oj_names.h"

#include "../../flatten/base/oj_array.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

int oj_names_has(const struct oj_names *names, const char *name)
{
    for (int64_t i = 0; i < names->n; i++)
    {
        if (strcasecmp(names->name[i], name) == 0)
            return 1;
    }
    return 0;
}

oj_status oj_names_add(struct oj_names *names, const char *name,
                       const char **kept, struct oj_error *err)
{
    size_t n = name != NULL ? strlen(name) : 0;
    char *copy;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(oj_reserve(&names->name, names->n, names->n + 1, &names->capacity,
                      sizeof *names->name, err));
    OJ_NEW(copy, (int64_t)n + 1, err);
    memcpy(copy, name, n + 1);
    names->name[names->n++] = copy;
    if (kept != NULL)
        *kept = copy;
    return OJ_OK;
}

oj_status oj_names_add_free(struct oj_names *names, const char *prefix,
                            const char *name, const char **kept,
                            struct oj_error *err)
{
    int64_t size = (int64_t)(strlen(prefix) + strlen(name)) + 24;
    oj_status status;
    char *try;
    if (!oj_names_has(names, name))
        return oj_names_add(names, name, kept, err);
    OJ_NEW(try, size, err);
    snprintf(try, (size_t)size, "%s%s", prefix, name);
    for (int64_t i = 2; oj_names_has(names, try); i++)
        snprintf(try, (size_t)size, "%s%s_%lld", prefix, name, (long long)i);
    status = oj_names_add(names, try, kept, err);
    oj_free(try);
    return status;
}

void oj_names_free(struct oj_names *names)
{
    const struct oj_names empty = {0};
    for (int64_t i = 0; i < names->n; i++)
        oj_free(names->name[i]);
    oj_free(names->name);
    *names = empty;
}
