#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* renameat2 */
#endif
#include "oj_temporary.h"

#include "../../flatten/base/oj_word_list.h"
#include "../base/oj_cancel.h"
#include "../base/oj_shell_words.h"
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
#include <time.h>
#include <unistd.h>

static const char mark[] = ".ogrjoin-";
static const char lock_name[] = ".lock";

enum
{
    PROBE_BYTES = 65536,
    YOUNG_S = 60 /* a folder without a lock this young may get one yet */
};

static oj_status fail_system(struct oj_error *err, const char *what,
                             const char *path)
{
    return oj_fail(err, OJ_ERR_IO, "%s %s: %s", what, path, strerror(errno));
}

/* A path in a folder. As all of CPLSPrintf(): kept for a few calls. */
static const char *path_in_folder(const char *folder, const char *name)
{
    return CPLSPrintf("%s/%s", folder, name);
}

/* ---- folders ------------------------------------------------------------- */

/* Splits final into the folder, made absolute, and the name. */
static oj_status split_path(const char *final, struct oj_temporary *t,
                            struct oj_error *err)
{
    size_t n = strlen(final);
    const char *path, *folder;
    while (n > 1 && final[n - 1] == '/')
        n--;
    path = oj_words_start(final, n);
    folder = oj_path_folder(path, ".");
    if (CPLStrlcpy(t->name, CPLGetFilename(path), sizeof t->name) >=
        sizeof t->name)
        return oj_fail(err, OJ_ERR_ARG, "the name is too long: %s", final);
    if (realpath(folder, t->destination) == NULL)
        return fail_system(err, "cannot write into folder", folder);
    return OJ_OK;
}

/* How the name of a temporary folder for this destination begins. */
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

/* 1 when the run that made this folder is gone. */
static int is_owner_process_gone(const char *folder)
{
    struct stat info;
    int lock = open(path_in_folder(folder, lock_name), O_RDWR | O_CLOEXEC),
        stale;
    if (lock < 0)
        return errno == ENOENT && stat(folder, &info) == 0 &&
               time(NULL) - info.st_mtime > YOUNG_S;
    stale = flock(lock, LOCK_EX | LOCK_NB) == 0;
    close(lock);
    return stale;
}

static void remove_stale_folders(const struct oj_temporary *t)
{
    char start[sizeof t->name + sizeof mark + 2];
    char **names = VSIReadDir(t->destination);
    temporary_name_prefix(t, start, sizeof start);
    for (int i = 0; names != NULL && names[i] != NULL; i++)
    {
        if (strncmp(names[i], start, strlen(start)) == 0 &&
            is_owner_process_gone(path_in_folder(t->destination, names[i])))
            VSIRmdirRecursive(path_in_folder(t->destination, names[i]));
    }
    CSLDestroy(names);
}

static oj_status make_folder(struct oj_temporary *t, struct oj_error *err)
{
    char start[sizeof t->name + sizeof mark + 2];
    temporary_name_prefix(t, start, sizeof start);
    if (snprintf(t->folder, sizeof t->folder, "%s/%sXXXXXX", t->destination,
                 start) >= (int)sizeof t->folder)
        return oj_fail(err, OJ_ERR_ARG, "the name is too long: %s/%s",
                       t->destination, t->name);
    if (mkdtemp(t->folder) != NULL)
        return OJ_OK;
    t->folder[0] = '\0';
    return fail_system(err, "cannot write into folder", t->destination);
}

static oj_status create_lock_file(struct oj_temporary *t, struct oj_error *err)
{
    const char *path = path_in_folder(t->folder, lock_name);
    t->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (t->lock < 0)
        return fail_system(err, "cannot write", path);
    /* File systems without locks: the worst is a folder that stays. */
    (void)!flock(t->lock, LOCK_EX | LOCK_NB);
    return OJ_OK;
}

oj_status oj_temporary_make(const char *final, struct oj_temporary *out,
                            struct oj_error *err)
{
    struct oj_temporary t = {0};
    oj_status status;
    t.lock = -1;
    OJ_TRY(split_path(final, &t, err));
    remove_stale_folders(&t);
    OJ_TRY(make_folder(&t, err));
    oj_cancel_replace_temporary("", t.folder);
    status = create_lock_file(&t, err);
    if (status == OJ_OK)
        *out = t;
    else
        oj_temporary_remove(&t);
    return status;
}

void oj_temporary_path(const struct oj_temporary *t, char *path, int size)
{
    snprintf(path, (size_t)size, "%s/%s", t->folder, t->name);
}

oj_status oj_temporary_probe(const struct oj_temporary *t, struct oj_error *err)
{
    static const char zeros[PROBE_BYTES];
    const char *path = path_in_folder(t->folder, ".probe");
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), ok;
    if (file < 0)
        return fail_system(err, "cannot write", path);
    errno = ENOSPC;
    ok = write(file, zeros, sizeof zeros) == (ssize_t)sizeof zeros;
    ok = fsync(file) == 0 && ok;
    ok = close(file) == 0 && ok;
    unlink(path);
    if (!ok)
        return oj_fail(err, OJ_ERR_IO, "cannot write the output into %s: %s",
                       t->destination, strerror(errno));
    return OJ_OK;
}

/* Names of all members; the main one is last. Freed with CSLDestroy. */
static char **list_output_files_main_last(const struct oj_temporary *t)
{
    char **names = VSIReadDir(t->folder), **members = NULL;
    for (int i = 0; names != NULL && names[i] != NULL; i++)
    {
        if (oj_words_find(".|..|.lock", names[i]) < 0 &&
            strcmp(names[i], t->name) != 0)
            members = CSLAddString(members, names[i]);
    }
    if (CSLFindString(names, t->name) >= 0)
        members = CSLAddString(members, t->name);
    CSLDestroy(names);
    return members;
}

/* 1 when path is one of the files in old. */
static int is_among_old_files(char **old, const char *path)
{
    for (int i = 0; old != NULL && old[i] != NULL; i++)
    {
        if (oj_path_is_same_file(old[i], path))
            return 1;
    }
    return 0;
}

/* SQLite takes journals by their names, and would roll one back into a file
 * that it never belonged to. */
static const char *const journals[] = {"-journal", "-wal", "-shm"};

static oj_status check_no_journals(const char *target, struct oj_error *err)
{
    struct stat info;
    for (size_t i = 0; i < sizeof journals / sizeof *journals; i++)
    {
        const char *path = CPLSPrintf("%s%s", target, journals[i]);
        if (lstat(path, &info) == 0)
            return oj_fail(err, OJ_ERR_IO,
                           "%s is in the way of the output: it would be taken "
                           "for its journal; remove it",
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
            return oj_fail(err, OJ_ERR_IO,
                           "%s is in the way of the output: it exists and is "
                           "no part of what is replaced",
                           target);
    }
    return OJ_OK;
}

/* Data on disk, and the permissions of the file that will be replaced. */
static oj_status fsync_and_copy_permissions(const char *path,
                                            const char *target,
                                            struct oj_error *err)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC), ok;
    if (file < 0)
        return fail_system(err, "cannot read", path);
    ok = fsync(file) == 0;
    if (ok && stat(target, &info) == 0 && !S_ISDIR(info.st_mode))
        (void)!fchmod(file, info.st_mode & 0777);
    close(file);
    return ok ? OJ_OK : fail_system(err, "cannot write", path);
}

/* A rename cannot replace a folder that holds something; swap the two, and the
 * old one goes with the temporary folder. */
static int rename_or_exchange_folder(const char *from, const char *to)
{
    struct stat info;
    if (rename(from, to) == 0)
        return 0;
    if (stat(to, &info) == 0 && S_ISDIR(info.st_mode))
        return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
    return -1;
}

/* 1 for a/out.dbf when t is about a/out.shp: a file next to it that differs in
 * the extension only. */
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

/* Members of the old dataset that the new one does not have, such as an index
 * that would not fit it. */
static void remove_old_sidecars(const struct oj_temporary *t, char **members,
                                char **old)
{
    for (int i = 0; old != NULL && old[i] != NULL; i++)
    {
        if (is_sidecar(t, old[i]) &&
            CSLFindString(members, CPLGetFilename(old[i])) < 0)
            unlink(old[i]);
    }
}

static oj_status move_output_files_into_place(const struct oj_temporary *t,
                                              char **members, char **old,
                                              struct oj_error *err)
{
    for (int i = 0; old != NULL && members != NULL && members[i] != NULL; i++)
        OJ_TRY(fsync_and_copy_permissions(
            path_in_folder(t->folder, members[i]),
            path_in_folder(t->destination, members[i]), err));
    remove_old_sidecars(t, members, old);
    for (int i = 0; members != NULL && members[i] != NULL; i++)
    {
        const char *to = path_in_folder(t->destination, members[i]);
        for (size_t j = 0; j < sizeof journals / sizeof *journals; j++)
            unlink(CPLSPrintf("%s%s", to, journals[j]));
        if (rename_or_exchange_folder(path_in_folder(t->folder, members[i]),
                                      to) != 0)
            return fail_system(err, "cannot write", to);
    }
    return OJ_OK;
}

oj_status oj_temporary_move(const struct oj_temporary *t, char **old,
                            struct oj_error *err)
{
    char **members = list_output_files_main_last(t);
    oj_status status = check_targets_replaceable(t, members, old, err);
    if (status == OJ_OK && members == NULL)
        status = oj_fail(err, OJ_ERR_IO, "the driver wrote no file");
    if (status == OJ_OK)
    {
        oj_cancel_hold();
        status = oj_cancel_check(err);
        if (status == OJ_OK)
            status = move_output_files_into_place(t, members, old, err);
        oj_cancel_release();
    }
    CSLDestroy(members);
    return status;
}

void oj_temporary_remove(struct oj_temporary *t)
{
    if (t->folder[0] == '\0')
        return;
    VSIRmdirRecursive(t->folder);
    oj_cancel_replace_temporary(t->folder, "");
    if (t->lock >= 0)
        close(t->lock);
    memset(t, 0, sizeof *t);
    t->lock = -1;
}
