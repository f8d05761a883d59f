#include "oj_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int oj_folder_open(int parent, const char *name)
{
    return openat(parent, name,
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int oj_folder_is_own(int folder)
{
    struct stat info;
    return fstat(folder, &info) == 0 && S_ISDIR(info.st_mode) &&
           info.st_uid == geteuid() &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int oj_folder_for_each_name(int folder,
                            int (*visit)(int folder, const char *name,
                                         void *user),
                            void *user)
{
    /* Opens the folder a second time: reading the names would move the read
     * position of the caller's descriptor. */
    int file = oj_folder_open(folder, "."), result = 0;
    DIR *names = file >= 0 ? fdopendir(file) : NULL;
    const struct dirent *entry;
    if (names == NULL)
    {
        if (file >= 0)
            close(file);
        return -1;
    }
    while (result == 0 && (entry = readdir(names)) != NULL)
    {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = visit(folder, entry->d_name, user);
    }
    closedir(names);
    return result;
}

/* ---- removal ------------------------------------------------------------- */

struct clearing
{
    const char *last;
    int n_removed, first_errno;
};

static int remove_subfolder(int folder, const char *name)
{
    int subfolder = oj_folder_open(folder, name), result;
    if (subfolder < 0)
        return -1;
    result = oj_folder_clear(subfolder, NULL);
    close(subfolder);
    return result == 0 ? unlinkat(folder, name, AT_REMOVEDIR) : -1;
}

static int remove_name(int folder, const char *name, void *user)
{
    struct clearing *clearing = user;
    if (clearing->last != NULL && strcmp(name, clearing->last) == 0)
        return 0;
    if (unlinkat(folder, name, 0) == 0 ||
        ((errno == EISDIR || errno == EPERM) &&
         remove_subfolder(folder, name) == 0))
        clearing->n_removed++;
    else if (errno != ENOENT && clearing->first_errno == 0)
        clearing->first_errno = errno;
    return 0;
}

/* Repeats until a reading of the names removes nothing: a reading may miss
 * names while others are being removed. */
int oj_folder_clear(int folder, const char *last)
{
    struct clearing clearing = {last, 0, 0};
    do
    {
        clearing.n_removed = 0;
        clearing.first_errno = 0;
        if (oj_folder_for_each_name(folder, remove_name, &clearing) != 0)
            return -1;
    } while (clearing.n_removed > 0);
    if (clearing.first_errno == 0 && last != NULL &&
        unlinkat(folder, last, 0) != 0 && errno != ENOENT)
        clearing.first_errno = errno;
    errno = clearing.first_errno;
    return clearing.first_errno == 0 ? 0 : -1;
}

/* ---- writing to disk ----------------------------------------------------- */

int oj_folder_sync(int folder)
{
    int file = oj_folder_open(folder, "."), result, number;
    if (file < 0)
        return errno == EACCES ? 0 : -1;
    result = fsync(file);
    number = errno;
    close(file);
    errno = number;
    return result == 0 || number == EINVAL || number == ENOSYS ? 0 : -1;
}

static int sync_any_member(int folder, const char *name, void *unused)
{
    (void)unused;
    return oj_folder_sync_member(folder, name);
}

int oj_folder_sync_member(int folder, const char *name)
{
    struct stat info;
    int file = openat(folder, name,
                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
        result, number;
    if (file < 0)
        return errno == ELOOP ? 0 : -1; /* the folder's sync covers a link,
                                           which has no data of its own */
    result = fstat(file, &info);
    if (result == 0 && S_ISREG(info.st_mode))
        result = fsync(file);
    if (result == 0 && S_ISDIR(info.st_mode))
    {
        result = oj_folder_for_each_name(file, sync_any_member, NULL);
        if (result == 0)
            result = oj_folder_sync(file);
    }
    number = errno;
    close(file);
    errno = number;
    return result;
}
