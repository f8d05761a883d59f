#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* renameat2 */
#endif
#include "oj_temporary.h"

#include "../../flatten/base/oj_folder.h"
#include "../../flatten/base/oj_new_file.h"
#include "../../flatten/base/oj_temporary_file.h"
#include "../../flatten/base/oj_word_list.h"
#include "../base/oj_cancel.h"
#include "../base/oj_shell_words.h"
#include "oj_failed_writes.h"
#include "oj_path.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char mark[] = ".ogrjoin-";
static const char lock_name[] = ".lock";
static const char probe_name[] = ".probe";

enum
{
    PROBE_BYTES = 65536,
    NAME_SIZE = 512 /* maximum size of a temporary folder's name */
};

static oj_status fail_system(struct oj_error *err, const char *what,
                             const char *path)
{
    return oj_fail(err, OJ_ERR_IO, "%s %s: %s", what, path, strerror(errno));
}

/* Joins folder and name. From CPLSPrintf(): overwritten after a few more calls.
 */
static const char *path_in_folder(const char *folder, const char *name)
{
    return CPLSPrintf("%s/%s", folder, name);
}

/* ---- folders ------------------------------------------------------------- */

/* Returns the name of the temporary folder, without its path. */
static const char *folder_name(const struct oj_temporary *t)
{
    return CPLGetFilename(t->folder);
}

/* Splits the path `final` into its folder, made absolute, and its name. */
static oj_status split_path(const char *final, struct oj_temporary *t,
                            struct oj_error *err)
{
    size_t n = strlen(final);
    const char *path, *folder;
    while (n > 1 && final[n - 1] == '/')
        n--;
    path = oj_words_excerpt(final, n);
    folder = oj_path_folder(path, ".");
    if (CPLStrlcpy(t->name, CPLGetFilename(path), sizeof t->name) >=
        sizeof t->name)
        return oj_fail(
            err, OJ_ERR_ARG,
            "the path of the output is too long, write to a shorter one: %s",
            final);
    if (realpath(folder, t->destination) == NULL)
        return fail_system(err, "cannot write into folder", folder);
    return OJ_OK;
}

/* Fills start with the prefix of the temporary folders' names for this
 * output. */
static void temporary_name_prefix(const struct oj_temporary *t, char *start,
                                  size_t size)
{
    snprintf(start, size, ".%s", t->name);
    for (char *c = start + 1; *c != '\0'; c++)
    {
        if (*c == '.')
            *c = '_';
    }
    snprintf(start + strlen(start), size - strlen(start), "%s", mark);
}

/* Returns 1 if the content of the file is name. */
static int does_file_contain_name(int file, const char *name)
{
    char text[NAME_SIZE];
    ssize_t n = pread(file, text, sizeof text, 0);
    return n > 0 && (size_t)n == strlen(name) &&
           memcmp(text, name, (size_t)n) == 0;
}

/* Opens and locks the .lock of a temporary folder, if an earlier run of this
 * user left the folder behind and no process uses it. Returns its descriptor.
 * Returns -1 if the folder must not be removed. */
static int lock_stale_folder(int folder, const char *name)
{
    struct stat info;
    int lock;
    if (!oj_folder_is_own(folder))
        return -1;
    lock =
        openat(folder, lock_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (lock < 0)
        return -1;
    if (fstat(lock, &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_uid == geteuid() && does_file_contain_name(lock, name) &&
        flock(lock, LOCK_EX | LOCK_NB) == 0)
        return lock;
    close(lock);
    return -1;
}

static int remove_if_stale(int destination, const char *name, void *prefix)
{
    int folder, lock;
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return 0;
    folder = oj_folder_open(destination, name);
    if (folder < 0)
        return 0;
    lock = lock_stale_folder(folder, name);
    if (lock >= 0)
    {
        if (oj_folder_clear(folder, lock_name) == 0)
            unlinkat(destination, name, AT_REMOVEDIR);
        close(lock);
    }
    close(folder);
    return 0;
}

static void remove_stale_folders(const struct oj_temporary *t)
{
    char start[NAME_SIZE];
    temporary_name_prefix(t, start, sizeof start);
    (void)oj_folder_for_each_name(t->destination_file, remove_if_stale, start);
}

/* Sets t->access_path, the path by which GDAL opens the members. The path leads
 * to this folder even if another folder gets its name. Failed writes through
 * the path are recorded. */
static oj_status choose_access_path(struct oj_temporary *t,
                                    struct oj_error *err)
{
    const char *prefix = oj_failed_writes_prefix();
    struct stat by_access_path, folder;
    snprintf(t->access_path, sizeof t->access_path, "%s/proc/self/fd/%d",
             prefix, t->folder_file);
    if (stat(t->access_path, &by_access_path) == 0 &&
        fstat(t->folder_file, &folder) == 0 &&
        by_access_path.st_dev == folder.st_dev &&
        by_access_path.st_ino == folder.st_ino)
        return OJ_OK;
    if (snprintf(t->access_path, sizeof t->access_path, "%s%s", prefix,
                 t->folder) >= (int)sizeof t->access_path)
        return oj_fail(
            err, OJ_ERR_ARG,
            "the path of the output is too long, write to a shorter one: %s",
            t->folder);
    return OJ_OK;
}

static oj_status fail_folder_replaced(struct oj_temporary *t,
                                      struct oj_error *err)
{
    /* the signal handler must not empty this folder */
    oj_cancel_drop_temporary(t->folder_file);
    close(t->folder_file);
    t->folder_file = -1;
    return oj_fail(err, OJ_ERR_IO,
                   "another user has replaced the temporary folder %s; write "
                   "into a folder where others may not",
                   t->folder);
}

static int is_any_name(int folder, const char *name, void *unused)
{
    (void)folder;
    (void)name;
    (void)unused;
    return 1;
}

static oj_status make_folder(struct oj_temporary *t, struct oj_error *err)
{
    char start[NAME_SIZE];
    temporary_name_prefix(t, start, sizeof start);
    if (snprintf(t->folder, sizeof t->folder, "%s/%sXXXXXX", t->destination,
                 start) >= (int)sizeof t->folder)
        return oj_fail(
            err, OJ_ERR_ARG,
            "the path of the output is too long, write to a shorter one: %s/%s",
            t->destination, t->name);
    if (mkdtemp(t->folder) == NULL)
    {
        t->folder[0] = '\0';
        return fail_system(err, "cannot write into folder", t->destination);
    }
    t->folder_file = oj_folder_open(t->destination_file, folder_name(t));
    if (t->folder_file < 0)
        return fail_system(err, "cannot open", t->folder);
    return oj_folder_for_each_name(t->folder_file, is_any_name, NULL) == 0
               ? OJ_OK
               : fail_folder_replaced(t, err);
}

/* Returns 1 if both files have one owner. The user of the process is not
 * compared, because on a network file system the owner can differ from it. */
static int have_one_owner(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_uid == y.st_uid;
}

/* Creates .lock. It gets this name only when it is locked and complete, so that
 * no other run finds it unlocked. */
static oj_status create_lock_file(struct oj_temporary *t, struct oj_error *err)
{
    static const char unlocked[] = ".lock-new";
    const char *name = folder_name(t);
    t->lock = oj_new_file_create(t->folder_file, unlocked, 0600);
    if (t->lock < 0)
        return fail_system(err, "cannot write",
                           path_in_folder(t->folder, lock_name));
    if (!have_one_owner(t->lock, t->folder_file))
        return fail_folder_replaced(t, err);
    /* flock() fails on file systems without locks. A folder that a killed run
     * leaves there is never removed. */
    (void)!flock(t->lock, LOCK_EX | LOCK_NB);
    errno = ENOSPC;
    if (write(t->lock, name, strlen(name)) != (ssize_t)strlen(name) ||
        renameat(t->folder_file, unlocked, t->folder_file, lock_name) != 0)
        return fail_system(err, "cannot write",
                           path_in_folder(t->folder, lock_name));
    return OJ_OK;
}

/* Opens the folder of the output by O_PATH, since it may be writable and
 * searchable but not readable. */
static oj_status open_destination(struct oj_temporary *t, struct oj_error *err)
{
    t->destination_file =
        open(t->destination, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return t->destination_file >= 0
               ? OJ_OK
               : fail_system(err, "cannot write into folder", t->destination);
}

/* Clears the folder through its descriptor, then removes it by name with rmdir.
 * If another user has put another folder under this name, rmdir removes that
 * folder only if it is empty. */
static void close_temporary(struct oj_temporary *t)
{
    if (t->access_path[0] != '\0')
        oj_failed_writes_unwatch(t->access_path);
    if (t->folder_file >= 0)
        (void)oj_folder_clear(t->folder_file, lock_name);
    if (t->folder[0] != '\0')
        unlinkat(t->destination_file, folder_name(t), AT_REMOVEDIR);
    if (t->folder_file >= 0)
    {
        oj_cancel_drop_temporary(t->folder_file);
        close(t->folder_file);
    }
    if (t->lock >= 0)
        close(t->lock);
    close(t->destination_file);
    memset(t, 0, sizeof *t);
    t->folder_file = t->destination_file = t->lock = -1;
}

oj_status oj_temporary_make(const char *final, struct oj_temporary *out,
                            struct oj_error *err)
{
    struct oj_temporary t = {.folder_file = -1, .lock = -1};
    oj_status status;
    OJ_TRY(split_path(final, &t, err));
    OJ_TRY(open_destination(&t, err));
    remove_stale_folders(&t);
    status = make_folder(&t, err);
    if (status == OJ_OK)
    {
        oj_cancel_add_temporary(t.destination_file, folder_name(&t),
                                t.folder_file);
        status = create_lock_file(&t, err);
    }
    if (status == OJ_OK)
        status = choose_access_path(&t, err);
    if (status == OJ_OK)
        status = oj_failed_writes_watch(t.access_path, err);
    if (status == OJ_OK)
        *out = t;
    else
        close_temporary(&t);
    return status;
}

void oj_temporary_path(const struct oj_temporary *t, char *path, int size)
{
    snprintf(path, (size_t)size, "%s/%s", t->access_path, t->name);
}

oj_status oj_temporary_check_writable(const struct oj_temporary *t,
                                      struct oj_error *err)
{
    static const char zeros[PROBE_BYTES];
    int file = oj_new_file_create(t->folder_file, probe_name, 0600), why = 0;
    if (file < 0)
        return fail_system(err, "cannot write",
                           path_in_folder(t->folder, probe_name));
    if (oj_write_at(file, 0, zeros, sizeof zeros) != 0 || fsync(file) != 0)
        why = errno;
    if (close(file) != 0 && why == 0)
        why = errno;
    /* if this fails, the probe file is removed with the folder */
    unlinkat(t->folder_file, probe_name, 0);
    if (why != 0)
        return oj_fail(err, OJ_ERR_IO, "cannot write the output into %s: %s",
                       t->destination, strerror(why));
    return OJ_OK;
}

struct members
{
    char **names;
    const char *main;
    int has_main;
};

static int add_member(int folder, const char *name, void *to)
{
    struct members *members = to;
    (void)folder;
    if (strcmp(name, members->main) == 0)
        members->has_main = 1;
    else if (strcmp(name, lock_name) != 0 && strcmp(name, probe_name) != 0)
        members->names = CSLAddString(members->names, name);
    return 0;
}

/* Returns the names of all members, the main one last. Free them with
 * CSLDestroy(). */
static char **list_output_files_main_last(const struct oj_temporary *t)
{
    struct members members = {NULL, t->name, 0};
    (void)oj_folder_for_each_name(t->folder_file, add_member, &members);
    return members.has_main ? CSLAddString(members.names, t->name)
                            : members.names;
}

/* Returns 1 if path is one of the files in old. */
static int is_among_old_files(char **old, const char *path)
{
    for (int i = 0; old != NULL && old[i] != NULL; i++)
    {
        if (oj_path_is_same_file(old[i], path))
            return 1;
    }
    return 0;
}

/* Suffixes of SQLite's journals. SQLite finds journals by their names, and
 * would apply an old journal to a new file. */
static const char *const journals[] = {"-journal", "-wal", "-shm"};

static oj_status check_no_journals(const char *target, struct oj_error *err)
{
    struct stat info;
    for (size_t i = 0; i < sizeof journals / sizeof *journals; i++)
    {
        const char *path = CPLSPrintf("%s%s", target, journals[i]);
        if (lstat(path, &info) == 0)
            return oj_fail(err, OJ_ERR_IO,
                           "%s exists and would be taken for the journal of "
                           "the output; remove it",
                           path);
    }
    return OJ_OK;
}

static oj_status check_targets_replaceable(const struct oj_temporary *t,
                                           char **members, char **old,
                                           struct oj_error *err)
{
    struct stat info;
    for (int i = 0; members != NULL && members[i] != NULL; i++)
    {
        const char *target = path_in_folder(t->destination, members[i]);
        if (lstat(target, &info) != 0)
            OJ_TRY(check_no_journals(target, err));
        else if (!is_among_old_files(old, target))
            return oj_fail(
                err, OJ_ERR_IO,
                "%s exists where the output must be written, and is no part of "
                "what is replaced; remove it, or name another output",
                target);
    }
    return OJ_OK;
}

/* Gives a new file the permissions of the file that it replaces. */
static void copy_permissions(const struct oj_temporary *t, const char *name)
{
    struct stat info;
    if (fstatat(t->destination_file, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(info.st_mode))
        (void)!fchmodat(t->folder_file, name, info.st_mode & 0777, 0);
}

/* Writes the members to disk (fsync) and copies permissions. A signal during
 * this time still ends the run. */
static oj_status sync_members_to_disk(const struct oj_temporary *t,
                                      char **members, char **old,
                                      struct oj_error *err)
{
    for (int i = 0; members[i] != NULL; i++)
    {
        if (old != NULL)
            copy_permissions(t, members[i]);
        if (oj_folder_sync_member(t->folder_file, members[i]) != 0)
            return fail_system(err, "cannot write",
                               path_in_folder(t->destination, members[i]));
    }
    return OJ_OK;
}

/* Moves a member that is a folder. rename() cannot replace a folder that is not
 * empty, so the old and the new folder are exchanged; the old one is removed
 * with the temporary folder. Returns 0, or -1 with errno. */
static int rename_or_exchange_folder(const struct oj_temporary *t,
                                     const char *name)
{
    int from = t->folder_file, to = t->destination_file;
    struct stat info;
    if (renameat(from, name, to, name) == 0)
        return 0;
    if (fstatat(to, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(info.st_mode))
        return renameat2(from, name, to, name, RENAME_EXCHANGE);
    return -1;
}

/* Returns 1 if path differs from the output only in the extension: a/out.dbf
 * for a/out.shp. */
static int is_sidecar(const struct oj_temporary *t, const char *path)
{
    const char *name = CPLGetFilename(path);
    const char *dot = strrchr(t->name, '.');
    size_t stem = dot != NULL ? (size_t)(dot - t->name) : strlen(t->name);
    char resolved[OJ_PATH_MAX];
    return strcmp(name, t->name) != 0 && strncmp(name, t->name, stem) == 0 &&
           name[stem] == '.' &&
           realpath(oj_path_folder(path, "."), resolved) != NULL &&
           strcmp(resolved, t->destination) == 0;
}

/* Removes sidecar files (is_sidecar()) of the old dataset that the new dataset
 * lacks, e.g. an index that would not fit the new data. */
static void remove_old_sidecars(const struct oj_temporary *t, char **members,
                                char **old)
{
    for (int i = 0; old != NULL && old[i] != NULL; i++)
    {
        if (is_sidecar(t, old[i]) &&
            CSLFindString(members, CPLGetFilename(old[i])) < 0)
            unlinkat(t->destination_file, CPLGetFilename(old[i]), 0);
    }
}

static oj_status move_output_files_into_place(const struct oj_temporary *t,
                                              char **members, char **old,
                                              struct oj_error *err)
{
    remove_old_sidecars(t, members, old);
    for (int i = 0; members != NULL && members[i] != NULL; i++)
    {
        for (size_t j = 0; j < sizeof journals / sizeof *journals; j++)
            unlinkat(t->destination_file,
                     CPLSPrintf("%s%s", members[i], journals[j]), 0);
        if (rename_or_exchange_folder(t, members[i]) != 0)
            return fail_system(err, "cannot write",
                               path_in_folder(t->destination, members[i]));
    }
    return oj_folder_sync(t->destination_file) == 0
               ? OJ_OK
               : fail_system(err,
                             "the output is complete, but a power failure may "
                             "undo it: cannot write to disk folder",
                             t->destination);
}

oj_status oj_temporary_move_into_place(const struct oj_temporary *t, char **old,
                                       struct oj_error *err)
{
    char **members = list_output_files_main_last(t);
    oj_status status = check_targets_replaceable(t, members, old, err);
    if (status == OJ_OK && members == NULL)
        status =
            oj_fail(err, OJ_ERR_IO,
                    "the driver wrote no file for the output; name another "
                    "format with -f");
    if (status == OJ_OK)
        status = sync_members_to_disk(t, members, old, err);
    if (status == OJ_OK)
    {
        oj_cancel_defer_signals();
        status = oj_cancel_check(err);
        if (status == OJ_OK)
            status = move_output_files_into_place(t, members, old, err);
        oj_cancel_accept_signals();
    }
    CSLDestroy(members);
    return status;
}

void oj_temporary_remove(struct oj_temporary *t)
{
    if (t->folder[0] != '\0')
        close_temporary(t);
}
