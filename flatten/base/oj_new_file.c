#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH */
#endif
#include "oj_new_file.h"

#include "oj_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum
{
    PATH_SIZE = 4096,
    N_LETTERS = 12,
    MAX_ATTEMPTS = 100
};

int oj_new_file_create(int folder, const char *name, unsigned mode)
{
    return openat(folder, name,
                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  (mode_t)mode);
}

/* Fills letters from the kernel's random source. Returns 0, or -1 with errno.
 */
static int put_random_letters(char letters[N_LETTERS])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    uint8_t bytes[N_LETTERS];
    ssize_t n;
    do
        n = getrandom(bytes, sizeof bytes, 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof bytes)
        return -1;
    for (int i = 0; i < N_LETTERS; i++)
        letters[i] = alphabet[bytes[i] % 64];
    return 0;
}

int oj_new_file_create_unpredictable(const char *folder, size_t n,
                                     unsigned mode, char *path, size_t size)
{
    int length = snprintf(path, size, "%.*s/.ogrjoin-%.*s", (int)n, folder,
                          N_LETTERS, "            ");
    int file = -1;
    if (length < 0 || (size_t)length >= size)
    {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (int i = 0; i < MAX_ATTEMPTS && file < 0; i++)
    {
        if (put_random_letters(path + length - N_LETTERS) != 0)
            return -1;
        file = oj_new_file_create(AT_FDCWD, path, mode);
        if (file < 0 && errno != EEXIST)
            return -1;
    }
    return file;
}

/* Writes the file by write(file, user), and closes the descriptor. Returns 0,
 * or -1 with errno. */
static int write_and_close(int descriptor, void (*write)(FILE *, const void *),
                           const void *user)
{
    FILE *file = fdopen(descriptor, "w");
    int is_good;
    if (file == NULL)
    {
        const int number = errno;
        close(descriptor);
        errno = number;
        return -1;
    }
    write(file, user);
    is_good = fflush(file) == 0 && !ferror(file) && fsync(descriptor) == 0;
    return fclose(file) == 0 && is_good ? 0 : -1;
}

/* Writes the folder to disk, so that the new name survives a crash. Returns 0,
 * or -1 with errno. */
static int sync_folder(const char *folder)
{
    const int descriptor = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int result;
    if (descriptor < 0)
        return -1;
    result = oj_folder_sync(descriptor);
    close(descriptor);
    return result;
}

/* Creates a file that is to replace path, in the folder given by the first n
 * bytes of folder. If path is a regular file, the new file has its permissions
 * from the start: a user who may not open path can never open the new file.
 * temporary [size] receives the path of the new file. Returns its descriptor,
 * or -1 with errno. */
static int create_replacement(const char *path, const char *folder, size_t n,
                              char *temporary, size_t size)
{
    struct stat old;
    const int replaces = lstat(path, &old) == 0 && S_ISREG(old.st_mode);
    const unsigned mode = replaces ? (unsigned)old.st_mode & 0777u : 0666u;
    const int file =
        oj_new_file_create_unpredictable(folder, n, mode, temporary, size);
    if (file >= 0 && replaces)
        (void)!fchmod(file, (mode_t)mode);
    return file;
}

int oj_new_file_write(const char *path, void (*write)(FILE *, const void *),
                      const void *user)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_SIZE], temporary[PATH_SIZE];
    const size_t n = slash == NULL   ? 1
                     : slash == path ? 1
                                     : (size_t)(slash - path);
    int number, file;
    if (n >= sizeof folder)
    {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, slash == NULL ? "." : path, n);
    folder[n] = '\0';
    file = create_replacement(path, folder, n, temporary, sizeof temporary);
    if (file < 0)
        return -1;
    if (write_and_close(file, write, user) == 0 && rename(temporary, path) == 0)
        return sync_folder(folder);
    number = errno;
    unlink(temporary);
    errno = number;
    return -1;
}
