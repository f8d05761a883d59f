#include "oj_text_file_write.h"

#include "../../flatten/base/oj_word_list.h"
#include "oj_path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static oj_status fail_to_write(const char *option, const char *path,
                               struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO, "-%s: cannot write %s: %s", option, path,
                   strerror(errno));
}

/* A name of one of the two streams, which can be a file that a shell has opened
 * and that others write to: opened once more, it would be cut. */
static FILE *standard_stream_of(const char *path)
{
    if (oj_words_find("/dev/stdout|/dev/fd/1|/vsistdout/|/vsistdout", path) >=
        0)
        return stdout;
    return oj_words_find("/dev/stderr|/dev/fd/2", path) >= 0 ? stderr : NULL;
}

int oj_text_file_is_stdout(const char *path)
{
    return standard_stream_of(path) == stdout;
}

/* A device, a pipe or a link stays what it is: written as it stands. */
static int is_not_regular_file(const char *path)
{
    struct stat file;
    return lstat(path, &file) == 0 && !S_ISREG(file.st_mode);
}

/* errno says why, where this is 0. */
static int write_to(const char *path, void (*write)(FILE *, const void *),
                    const void *user)
{
    FILE *file = standard_stream_of(path);
    int failed;
    if (file != NULL)
    {
        write(file, user);
        return fflush(file) == 0 && !ferror(file);
    }
    file = fopen(path, "w");
    if (file == NULL)
        return 0;
    write(file, user);
    failed = ferror(file) != 0;
    return fclose(file) == 0 && !failed;
}

oj_status oj_text_file_check(const char *path, const char *option,
                             struct oj_error *err)
{
    const char *folder = oj_path_folder(path, ".");
    struct stat file;
    if (standard_stream_of(path) != NULL)
        return OJ_OK;
    if (stat(path, &file) == 0 && S_ISDIR(file.st_mode))
    {
        errno = EISDIR;
        return fail_to_write(option, path, err);
    }
    if (is_not_regular_file(path))
        return access(path, W_OK) == 0 ? OJ_OK
                                       : fail_to_write(option, path, err);
    return access(folder, W_OK | X_OK) == 0 ? OJ_OK
                                            : fail_to_write(option, path, err);
}

oj_status oj_text_file_write(const char *path, const char *option,
                             void (*write)(FILE *, const void *),
                             const void *user, struct oj_error *err)
{
    char temporary[4096];
    int number;
    if (standard_stream_of(path) != NULL || is_not_regular_file(path))
        return write_to(path, write, user) ? OJ_OK
                                           : fail_to_write(option, path, err);
    if (snprintf(temporary, sizeof temporary, "%s.ogrjoin-%ld", path,
                 (long)getpid()) >= (int)sizeof temporary)
        return oj_fail(err, OJ_ERR_ARG, "-%s: the name is too long", option);
    if (write_to(temporary, write, user) && rename(temporary, path) == 0)
        return OJ_OK;
    number = errno;
    unlink(temporary);
    errno = number;
    return fail_to_write(option, path, err);
}

void oj_text_file_put_json(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++)
    {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}
