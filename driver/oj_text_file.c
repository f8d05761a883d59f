#include "oj_text_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

oj_status oj_text_file_write(const char *path, const char *option,
                             void (*write)(FILE *, const void *),
                             const void *user, struct oj_error *err)
{
    char temporary[4096];
    FILE *file;
    int failed, number;
    if (snprintf(temporary, sizeof temporary, "%s.ogrjoin-%ld", path,
                 (long)getpid()) >= (int)sizeof temporary)
        return oj_fail(err, OJ_ERR_ARG, "-%s: the name is too long", option);
    file = fopen(temporary, "w");
    if (file == NULL)
        return oj_fail(err, OJ_ERR_IO, "-%s: cannot write %s: %s", option, path,
                       strerror(errno));
    write(file, user);
    failed = ferror(file) != 0;
    failed = fclose(file) != 0 || failed;
    if (!failed && rename(temporary, path) == 0)
        return OJ_OK;
    number = errno;
    unlink(temporary);
    return oj_fail(err, OJ_ERR_IO, "-%s: cannot write %s: %s", option, path,
                   strerror(number));
}
