#include "oj_scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096

static oj_status fail(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "keeping data in a temporary file failed: %s; TMPDIR can "
                   "name another folder",
                   strerror(errno));
}

/* The descriptor of a file without a name in folder, or -1. */
static int open_in(const char *folder)
{
    char path[PATH_SIZE];
    int file;
    if (snprintf(path, sizeof path, "%s/.ogrjoin-XXXXXX", folder) >=
        (int)sizeof path)
        return -1;
    file = mkstemp(path);
    if (file >= 0)
        unlink(path);
    return file;
}

/* The folder that path is in. */
static void folder_of(const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        snprintf(folder, size, ".");
    else
        snprintf(folder, size, "%.*s", slash == path ? 1 : (int)(slash - path),
                 path);
}

oj_status oj_scratch_open(const char *near, struct oj_scratch *out,
                          struct oj_error *err)
{
    struct oj_scratch scratch = {-1, 1, 0};
    char folder[PATH_SIZE];
    const char *fallback = getenv("TMPDIR");
    if (near != NULL && strncmp(near, "/vsi", 4) != 0)
    {
        folder_of(near, folder, sizeof folder);
        scratch.file = open_in(folder);
    }
    if (scratch.file < 0)
        scratch.file = open_in(
            fallback != NULL && fallback[0] != '\0' ? fallback : "/tmp");
    if (scratch.file < 0)
        return fail(err);
    *out = scratch;
    return OJ_OK;
}

oj_status oj_scratch_write(struct oj_scratch *scratch, const void *bytes,
                           int64_t n, struct oj_error *err)
{
    const char *from = bytes;
    while (n > 0)
    {
        ssize_t written =
            pwrite(scratch->file, from, (size_t)n, (off_t)scratch->size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return fail(err);
        from += written;
        n -= written;
        scratch->size += written;
    }
    return OJ_OK;
}

oj_status oj_scratch_read(const struct oj_scratch *scratch, int64_t offset,
                          void *bytes, int64_t n, struct oj_error *err)
{
    char *to = bytes;
    while (n > 0)
    {
        ssize_t read = pread(scratch->file, to, (size_t)n, (off_t)offset);
        if (read < 0 && errno == EINTR)
            continue;
        if (read == 0)
            return oj_fail(err, OJ_ERR_IO, "a temporary file ends early");
        if (read < 0)
            return fail(err);
        to += read;
        n -= read;
        offset += read;
    }
    return OJ_OK;
}

void oj_scratch_close(struct oj_scratch *scratch)
{
    const struct oj_scratch closed = {0};
    if (scratch->is_open)
        close(scratch->file);
    *scratch = closed;
}
