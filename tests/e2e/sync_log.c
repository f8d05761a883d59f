/* Loaded before the C library by LD_PRELOAD. Writes each call of fsync() and
 * rename() to the file SYNC_LOG, in their order, one per line:
 *
 *   sync PATH
 *   move NAME
 *
 * With SYNC_FAILS set, fsync() fails for regular files, except those with
 * .probe in their path. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int (*sync_function)(int);
typedef int (*rename_function)(const char *, const char *);
typedef int (*renameat_function)(int, const char *, int, const char *);
typedef int (*renameat2_function)(int, const char *, int, const char *,
                                  unsigned);

static void write_line(const char *what, const char *path)
{
    char line[4200];
    const char *log = getenv("SYNC_LOG");
    int file = log != NULL
                   ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
                   : -1;
    int n = snprintf(line, sizeof line, "%s %s\n", what, path);
    if (file < 0)
        return;
    if (write(file, line, (size_t)n) != (ssize_t)n)
        abort();
    close(file);
}

int fsync(int file)
{
    char link[64], path[4096];
    struct stat info;
    sync_function real;
    ssize_t n;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    write_line("sync", path);
    if (getenv("SYNC_FAILS") != NULL && fstat(file, &info) == 0 &&
        S_ISREG(info.st_mode) && strstr(path, ".probe") == NULL)
    {
        errno = EIO;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    return real(file);
}

int rename(const char *from, const char *to)
{
    rename_function real;
    *(void **)&real = dlsym(RTLD_NEXT, "rename");
    write_line("move", to);
    return real(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    renameat_function real;
    *(void **)&real = dlsym(RTLD_NEXT, "renameat");
    write_line("move", to);
    return real(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to,
              unsigned flags)
{
    renameat2_function real;
    *(void **)&real = dlsym(RTLD_NEXT, "renameat2");
    write_line("move", to);
    return real(from_folder, from, to_folder, to, flags);
}
