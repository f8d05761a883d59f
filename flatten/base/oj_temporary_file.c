#include "oj_temporary_file.h"

#include "oj_new_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
    PATH_SIZE = 4096
};

static oj_status fail_temporary_file(const char *what, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "keeping %s in a temporary file failed: %s; TMPDIR can "
                   "name another folder",
                   what, strerror(errno));
}

/* Creates a file with a random name in the folder given by the first n bytes of
 * `folder`, and unlinks it at once. Returns its descriptor, or -1 with errno.
 */
static int open_unlinked_in(const char *folder, size_t n)
{
    char path[PATH_SIZE];
    int file =
        oj_new_file_create_unpredictable(folder, n, 0600, path, sizeof path);
    if (file >= 0)
        unlink(path);
    return file;
}

/* Like open_unlinked_in(), in the folder that contains path. */
static int open_unlinked_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? open_unlinked_in(".", 1)
                         : open_unlinked_in(path, (size_t)(slash - path));
}

oj_status oj_temporary_file_open(const char *near, const char *what,
                                 struct oj_temporary_file *out,
                                 struct oj_error *err)
{
    struct oj_temporary_file made = {-1, 1, 0, what};
    const char *fallback = getenv("TMPDIR");
    if (near != NULL && strncmp(near, "/vsi", 4) != 0)
        made.descriptor = open_unlinked_beside(near);
    if (made.descriptor < 0)
    {
        if (fallback == NULL || fallback[0] == '\0')
            fallback = "/tmp";
        made.descriptor = open_unlinked_in(fallback, strlen(fallback));
    }
    if (made.descriptor < 0)
        return fail_temporary_file(what, err);
    *out = made;
    return OJ_OK;
}

int oj_write_at(int descriptor, int64_t at, const void *bytes, int64_t n)
{
    const char *from = bytes;
    while (n > 0)
    {
        ssize_t written = pwrite(descriptor, from, (size_t)n, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        from += written;
        at += written;
        n -= written;
    }
    return 0;
}

int oj_read_at(int descriptor, int64_t at, void *bytes, int64_t n)
{
    char *to = bytes;
    while (n > 0)
    {
        ssize_t read = pread(descriptor, to, (size_t)n, (off_t)at);
        if (read < 0 && errno == EINTR)
            continue;
        if (read == 0)
            errno = ENODATA; /* the file ends before n bytes */
        if (read <= 0)
            return -1;
        to += read;
        at += read;
        n -= read;
    }
    return 0;
}

oj_status oj_temporary_file_overwrite(const struct oj_temporary_file *file,
                                      int64_t offset, const void *bytes,
                                      int64_t n, struct oj_error *err)
{
    return oj_write_at(file->descriptor, offset, bytes, n) == 0
               ? OJ_OK
               : fail_temporary_file(file->what, err);
}

oj_status oj_temporary_file_write(struct oj_temporary_file *file,
                                  const void *bytes, int64_t n,
                                  struct oj_error *err)
{
    OJ_TRY(oj_temporary_file_overwrite(file, file->size, bytes, n, err));
    file->size += n;
    return OJ_OK;
}

oj_status oj_temporary_file_read(const struct oj_temporary_file *file,
                                 int64_t offset, void *bytes, int64_t n,
                                 struct oj_error *err)
{
    return oj_read_at(file->descriptor, offset, bytes, n) == 0
               ? OJ_OK
               : fail_temporary_file(file->what, err);
}

void oj_temporary_file_close(struct oj_temporary_file *file)
{
    if (file->is_open)
        close(file->descriptor);
    memset(file, 0, sizeof *file);
}
