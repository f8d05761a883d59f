#include "oj_text_file_write.h"

#include "../../flatten/base/oj_new_file.h"
#include "../../flatten/base/oj_word_list.h"
#include "oj_path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static oj_status fail_to_write(const char *option, const char *path,
                               struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO, "-%s: cannot write %s: %s", option, path,
                   strerror(errno));
}

/* Returns the standard stream that path names (/dev/stdout ...), or NULL. The
 * stream may be a file that the shell opened and other processes write to;
 * opening it again would truncate it. */
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

/* Returns 1 for a device, a pipe or a link: these are written in place instead
 * of being replaced. */
static int is_not_regular_file(const char *path)
{
    struct stat file;
    return lstat(path, &file) == 0 && !S_ISREG(file.st_mode);
}

/* Refuses links that another user could have made to redirect the write to one
 * of this user's files, which would be truncated. Accepted are links of this
 * user, of root or of the folder's owner, if their target exists. */
static oj_status check_link(const char *option, const char *path,
                            struct oj_error *err)
{
    struct stat link, folder, target;
    if (lstat(path, &link) != 0 || !S_ISLNK(link.st_mode))
        return OJ_OK;
    if (stat(oj_path_folder(path, "."), &folder) != 0)
        return fail_to_write(option, path, err);
    if (link.st_uid != geteuid() && link.st_uid != 0 &&
        link.st_uid != folder.st_uid)
        return oj_fail(err, OJ_ERR_IO,
                       "-%s: %s is a link that another user has made; name "
                       "the file itself",
                       option, path);
    if (stat(path, &target) != 0 && errno == ENOENT)
        return oj_fail(err, OJ_ERR_IO,
                       "-%s: %s is a link whose target does not exist; remove "
                       "it, or name the file itself",
                       option, path);
    return OJ_OK;
}

/* Writes and closes an open file. Returns 0 on failure, with errno set. */
static int write_and_close(int descriptor, void (*write)(FILE *, const void *),
                           const void *user)
{
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    int is_good;
    if (file == NULL)
    {
        int number = errno;
        if (descriptor >= 0)
            close(descriptor);
        errno = number;
        return 0;
    }
    write(file, user);
    is_good = fflush(file) == 0 && !ferror(file);
    return fclose(file) == 0 && is_good;
}

/* Writes to an existing file in place. Returns 0 on failure, with errno set. */
static int write_existing(const char *path, void (*write)(FILE *, const void *),
                          const void *user)
{
    FILE *stream = standard_stream_of(path);
    if (stream == NULL)
        return write_and_close(
            open(path, O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC), write, user);
    write(stream, user);
    return fflush(stream) == 0 && !ferror(stream);
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
    OJ_TRY(check_link(option, path, err));
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
    int is_stream = standard_stream_of(path) != NULL;
    if (!is_stream)
        OJ_TRY(check_link(option, path, err));
    return (is_stream || is_not_regular_file(path)
                ? write_existing(path, write, user)
                : oj_new_file_write(path, write, user) == 0)
               ? OJ_OK
               : fail_to_write(option, path, err);
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
