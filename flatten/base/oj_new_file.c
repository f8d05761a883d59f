#include "oj_new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>

enum
{
    N_LETTERS = 12,
    MAX_ATTEMPTS = 100
};

int oj_new_file_create(int folder, const char *name, unsigned mode)
{
    return openat(folder, name,
                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  (mode_t)mode);
}

/* Returns 0, or -1 with errno. */
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
