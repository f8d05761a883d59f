#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr(), O_PATH */
#endif

#include "oj_gpu_module_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULE_FILE "ogrjoin_cuda.so"
#define MODULE_VARIABLE "OGRJOIN_CUDA_MODULE"

enum
{
    PATH_SIZE = OJ_GPU_MODULE_PATH_MAX,
    MAX_SEGMENTS = 64, /* maximum number of program headers; a library has about
                          ten */
    NAMES_SIZE = 16384 /* buffer size for the strings of getpwuid_r() and
                          getgrgid_r() */
};

/* ---- where the module's file is ------------------------------------------ */

/* Folders to search for the module, relative to the folder of the library (or
 * of the program that contains it): that folder itself, its parent (if the
 * library is a GDAL plugin), and the path from the folder of commands to the
 * folder of libraries. */
static const char *const places[] = {
    "",
#ifdef OJ_MODULE_FOLDER
    "../",
    OJ_FOLDER_FROM_COMMAND "/",
#endif
};

/* Writes the path of the module in folder + place to path; returns 0 if there
 * is no such file. */
static int find_module_in(const char *folder, size_t n, const char *place,
                          char path[PATH_SIZE])
{
    return snprintf(path, PATH_SIZE, "%.*s%s" MODULE_FILE, (int)n, folder,
                    place) < PATH_SIZE &&
           access(path, F_OK) == 0;
}

/* Finds the folder of this library, or of the program that it is linked into.
 * If the loader does not know that path (for a program found through PATH),
 * reads /proc/self/exe. Returns the length of the path, or 0 if it is
 * unknown. */
static size_t find_own_folder(char path[PATH_SIZE])
{
    const char *slash;
    Dl_info info;
    ssize_t n;
    path[0] = '\0';
    if (dladdr((const void *)places, &info) != 0 && info.dli_fname != NULL)
        snprintf(path, PATH_SIZE, "%s", info.dli_fname);
    slash = strrchr(path, '/');
    if (slash == NULL &&
        (n = readlink("/proc/self/exe", path, PATH_SIZE - 1)) > 0)
    {
        path[n] = '\0';
        slash = strrchr(path, '/');
    }
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* Chooses the path of the module: the value of OGRJOIN_CUDA_MODULE if set,
 * otherwise the first of `places` that has the file. If none has the file,
 * chooses the folder of installed libraries, or the library's own folder if the
 * build has no such folder. */
static void find_module(char path[PATH_SIZE])
{
    const char *named = getenv(MODULE_VARIABLE);
    char folder[PATH_SIZE];
    size_t n;
    if (named != NULL && named[0] != '\0')
    {
        /* a path without a slash would make dlopen() search the library path */
        snprintf(path, PATH_SIZE, "%s%s",
                 strchr(named, '/') == NULL ? "./" : "", named);
        return;
    }
    n = find_own_folder(folder);
    for (size_t i = 0; n > 0 && i < sizeof places / sizeof *places; i++)
    {
        if (find_module_in(folder, n, places[i], path))
            return;
    }
#ifdef OJ_MODULE_FOLDER
    snprintf(path, PATH_SIZE, "%s/" MODULE_FILE, OJ_MODULE_FOLDER);
#else
    snprintf(path, PATH_SIZE, "%.*s" MODULE_FILE, (int)n, folder);
#endif
}

/* ---- is the file complete? ----------------------------------------------- */

static int is_byte_range_in_file(uint64_t offset, uint64_t n_bytes,
                                 uint64_t size)
{
    return offset <= size && n_bytes <= size - offset;
}

static int read_at_offset(int file, void *out, size_t n_bytes, uint64_t offset)
{
    return pread(file, out, n_bytes, (off_t)offset) == (ssize_t)n_bytes;
}

/* Returns 1 if all segments that the program headers list are within the file.
 * dlopen() maps segments without this check; access to a page beyond the end of
 * the file would raise SIGBUS. */
static int is_file_complete(int file, uint64_t size)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) segment[MAX_SEGMENTS];
    if (!read_at_offset(file, &header, sizeof header, 0) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] !=
            (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header.e_type != ET_DYN || header.e_phnum == 0 ||
        header.e_phnum > MAX_SEGMENTS ||
        header.e_phentsize != sizeof segment[0] ||
        !read_at_offset(file, segment, header.e_phnum * sizeof segment[0],
                        header.e_phoff))
        return 0;
    for (int i = 0; i < header.e_phnum; i++)
    {
        if (!is_byte_range_in_file(segment[i].p_offset, segment[i].p_filesz,
                                   size))
            return 0;
    }
    /* The linker writes the section headers last. If the file contains them, it
     * is complete. */
    return is_byte_range_in_file(
        header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize, size);
}

/* ---- is the file safe to load? ------------------------------------------- */

static oj_status fail_to_load(const char *path, struct oj_error *err,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static oj_status fail_to_load(const char *path, struct oj_error *err,
                              const char *format, ...)
{
    char why[PATH_SIZE + 200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return oj_fail(err, OJ_ERR_NO_DEVICE,
                   "the CUDA module %s cannot be loaded: %s", path, why);
}

/* Returns 1 if the group is the user's private group: it has the user's name
 * and no other members. Always 0 for root. */
static int is_private_group(gid_t id)
{
    struct passwd user, *found_user = NULL;
    struct group group, *found_group = NULL;
    char user_names[NAMES_SIZE], group_names[NAMES_SIZE];
    uid_t uid = geteuid();
    if (uid == 0 ||
        getpwuid_r(uid, &user, user_names, sizeof user_names, &found_user) !=
            0 ||
        getgrgid_r(id, &group, group_names, sizeof group_names, &found_group) !=
            0 ||
        found_user == NULL || found_group == NULL || user.pw_gid != id ||
        strcmp(user.pw_name, group.gr_name) != 0)
        return 0;
    for (char **member = group.gr_mem; *member != NULL; member++)
    {
        if (strcmp(*member, user.pw_name) != 0)
            return 0;
    }
    return 1;
}

/* Fails if another user may write to this open file or folder; name is for
 * messages. */
static oj_status check_no_other_user_writes(const char *path, const char *name,
                                            int file, struct oj_error *err)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return fail_to_load(path, err, "%s: %s", name, strerror(errno));
    if (info.st_uid != 0 && info.st_uid != geteuid())
        return fail_to_load(path, err,
                            "%s belongs to another user, who could change it; "
                            "it must belong to this user or to root",
                            name);
    if ((info.st_mode & S_IWOTH) != 0 ||
        ((info.st_mode & S_IWGRP) != 0 && !is_private_group(info.st_gid)))
        return fail_to_load(
            path, err,
            "other users may write to %s; move the module to a folder where "
            "only this user or root may write",
            name);
    return OJ_OK;
}

/* Opens the folder of a file and checks that no other user may write to it. The
 * path is absolute or relative. */
static oj_status open_checked_folder(const char *path, const char *file_path,
                                     int *folder, struct oj_error *err)
{
    char name[PATH_SIZE];
    const char *slash = strrchr(file_path, '/');
    oj_status status;
    int n = slash == NULL ? 0 : (int)(slash - file_path);
    snprintf(name, sizeof name, "%.*s", n, file_path);
    if (n == 0)
        snprintf(name, sizeof name, "%s", slash == NULL ? "." : "/");
    *folder = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0)
        return fail_to_load(path, err, "%s: %s", name, strerror(errno));
    status = check_no_other_user_writes(path, name, *folder, err);
    if (status != OJ_OK)
    {
        close(*folder);
        *folder = -1;
    }
    return status;
}

/* Opens the file at path, after symbolic links are resolved. Checks the folder
 * in path and the folder of the resolved file. */
static oj_status open_in_checked_folders(const char *path, int *file,
                                         struct oj_error *err)
{
    char resolved[PATH_SIZE];
    int folder;
    OJ_TRY(open_checked_folder(path, path, &folder, err));
    close(folder);
    if (realpath(path, resolved) == NULL)
        return fail_to_load(path, err, "%s", strerror(errno));
    OJ_TRY(open_checked_folder(path, resolved, &folder, err));
    *file = openat(folder, strrchr(resolved, '/') + 1,
                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*file < 0)
    {
        int number = errno;
        close(folder);
        return fail_to_load(path, err, "%s", strerror(number));
    }
    close(folder);
    return OJ_OK;
}

static oj_status check_file(const char *path, int file, struct oj_error *err)
{
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) ||
        !is_file_complete(file, (uint64_t)info.st_size))
        return fail_to_load(path, err,
                            "it is truncated or no module; build or install it "
                            "again");
    return check_no_other_user_writes(path, "the file", file, err);
}

oj_status oj_gpu_module_file_open(char path[OJ_GPU_MODULE_PATH_MAX], int *file,
                                  struct oj_error *err)
{
    oj_status status;
    find_module(path);
    if (access(path, F_OK) != 0)
        return oj_fail(
            err, OJ_ERR_NO_DEVICE,
            "there is no CUDA module %s: install it (for Python "
            "the wheel ogrjoin-cuda), or name another file by " MODULE_VARIABLE,
            path);
    OJ_TRY(open_in_checked_folders(path, file, err));
    status = check_file(path, *file, err);
    if (status != OJ_OK)
        close(*file);
    return status;
}
