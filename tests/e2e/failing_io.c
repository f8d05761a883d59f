/* Loaded before the C library by LD_PRELOAD. The n-th call that changes a file
 * below a folder fails, alone or with all later ones, as on a broken or full
 * disk.
 *
 *  FAILING_FOLDER  absolute path of the folder; calls on other paths and
 *                  descriptors do not count
 *  FAILING_CALL    the calls that count: pwrite, write, fwrite, fsync,
 *                  ftruncate, open, rename or unlink; fwrite includes fclose,
 *                  and the last three include openat, renameat and unlinkat
 *  FAILING_N       number of the call that fails; 0: none
 *  FAILING_ERRNO   errno of the call that fails
 *  FAILING_STICKY  if set, all later calls fail, too
 *  FAILING_COUNT   file to which the number of calls is written at the end
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long n_calls;

static int is_in_folder(const char *path)
{
    const char *folder = getenv("FAILING_FOLDER");
    return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

/* Returns 1 if a descriptor is that of the folder, or of a file below it. */
static int does_descriptor_count(int fd)
{
    char name[64], path[4096];
    ssize_t n;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    n = readlink(name, path, sizeof path - 2);
    if (n <= 0)
        return 0;
    path[n] = '/';
    path[n + 1] = '\0';
    return is_in_folder(path);
}

static int counts(const char *call)
{
    const char *asked = getenv("FAILING_CALL");
    return asked != NULL && strcmp(asked, call) == 0;
}

/* Counts a call that changes a file of the folder. Returns 1, with errno set,
 * if the call must fail. */
static int fails(void)
{
    const char *n = getenv("FAILING_N"), *code = getenv("FAILING_ERRNO");
    long which = n != NULL ? atol(n) : 0;
    long call = __atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED);
    if (which == 0 || call < which ||
        (call > which && getenv("FAILING_STICKY") == NULL))
        return 0;
    errno = code != NULL ? atoi(code) : EIO;
    return 1;
}

static int descriptor_fails(const char *call, int fd)
{
    return counts(call) && does_descriptor_count(fd) && fails();
}

static int path_fails(const char *call, const char *path)
{
    return counts(call) && is_in_folder(path) && fails();
}

/* A name that is relative to the working folder does not count. */
static int name_fails(const char *call, int folder, const char *name)
{
    return name[0] == '/' ? path_fails(call, name)
                          : descriptor_fails(call, folder);
}

__attribute__((destructor)) static void write_count(void)
{
    const char *path = getenv("FAILING_COUNT");
    FILE *file;
    unsetenv("FAILING_CALL");
    file = path != NULL ? fopen(path, "w") : NULL;
    if (file == NULL)
        return;
    fprintf(file, "%ld\n", n_calls);
    fclose(file);
}

/* Declares `real`, the function of this name in the C library. */
#define REAL(type, name, ...)                                                  \
    type (*real)(__VA_ARGS__);                                                 \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    return descriptor_fails("pwrite", fd) ? -1 : real(fd, bytes, n, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    return descriptor_fails("pwrite", fd) ? -1 : real(fd, bytes, n, at);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    REAL(ssize_t, write, int, const void *, size_t);
    return descriptor_fails("write", fd) ? -1 : real(fd, bytes, n);
}

/* The C library's own fwrite() calls an internal write(), which cannot be
 * replaced. */
size_t fwrite(const void *bytes, size_t size, size_t n, FILE *file)
{
    REAL(size_t, fwrite, const void *, size_t, size_t, FILE *);
    return descriptor_fails("fwrite", fileno(file))
               ? 0
               : real(bytes, size, n, file);
}

int fclose(FILE *file)
{
    REAL(int, fclose, FILE *);
    int has_failed = descriptor_fails("fwrite", fileno(file));
    int result = real(file);
    if (has_failed)
        errno = EIO;
    return has_failed ? EOF : result;
}

int fsync(int fd)
{
    REAL(int, fsync, int);
    return descriptor_fails("fsync", fd) ? -1 : real(fd);
}

int fdatasync(int fd)
{
    REAL(int, fdatasync, int);
    return descriptor_fails("fsync", fd) ? -1 : real(fd);
}

int ftruncate(int fd, off_t n)
{
    REAL(int, ftruncate, int, off_t);
    return descriptor_fails("ftruncate", fd) ? -1 : real(fd, n);
}

int ftruncate64(int fd, off64_t n)
{
    REAL(int, ftruncate64, int, off64_t);
    return descriptor_fails("ftruncate", fd) ? -1 : real(fd, n);
}

int rename(const char *from, const char *to)
{
    REAL(int, rename, const char *, const char *);
    return path_fails("rename", to) ? -1 : real(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    REAL(int, renameat, int, const char *, int, const char *);
    return name_fails("rename", to_folder, to)
               ? -1
               : real(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to,
              unsigned flags)
{
    REAL(int, renameat2, int, const char *, int, const char *, unsigned);
    return name_fails("rename", to_folder, to)
               ? -1
               : real(from_folder, from, to_folder, to, flags);
}

int unlink(const char *path)
{
    REAL(int, unlink, const char *);
    return path_fails("unlink", path) ? -1 : real(path);
}

int unlinkat(int folder, const char *name, int flags)
{
    REAL(int, unlinkat, int, const char *, int);
    return name_fails("unlink", folder, name) ? -1 : real(folder, name, flags);
}

static int is_for_writing(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY;
}

int open(const char *path, int flags, ...)
{
    REAL(int, open, const char *, int, ...);
    va_list arguments;
    int mode;
    va_start(arguments, flags);
    mode = va_arg(arguments, int);
    va_end(arguments);
    return is_for_writing(flags) && path_fails("open", path)
               ? -1
               : real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    REAL(int, open64, const char *, int, ...);
    va_list arguments;
    int mode;
    va_start(arguments, flags);
    mode = va_arg(arguments, int);
    va_end(arguments);
    return is_for_writing(flags) && path_fails("open", path)
               ? -1
               : real(path, flags, mode);
}

int openat(int folder, const char *name, int flags, ...)
{
    REAL(int, openat, int, const char *, int, ...);
    va_list arguments;
    int mode;
    va_start(arguments, flags);
    mode = va_arg(arguments, int);
    va_end(arguments);
    return is_for_writing(flags) && name_fails("open", folder, name)
               ? -1
               : real(folder, name, flags, mode);
}

int openat64(int folder, const char *name, int flags, ...)
{
    REAL(int, openat64, int, const char *, int, ...);
    va_list arguments;
    int mode;
    va_start(arguments, flags);
    mode = va_arg(arguments, int);
    va_end(arguments);
    return is_for_writing(flags) && name_fails("open", folder, name)
               ? -1
               : real(folder, name, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    REAL(FILE *, fopen, const char *, const char *);
    return strpbrk(mode, "wa+") != NULL && path_fails("open", path)
               ? NULL
               : real(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    REAL(FILE *, fopen64, const char *, const char *);
    return strpbrk(mode, "wa+") != NULL && path_fails("open", path)
               ? NULL
               : real(path, mode);
}
