#include "oj_path.h"

#include "../base/oj_gdal_driver.h"
#include "../base/oj_shell_words.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int oj_path_is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (strcmp(a, b) == 0)
        return 1;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Concatenates the first n_a bytes of a, then b, c and d. Free the result with
 * CPLFree(). */
static char *concatenate_path_parts(size_t n_a, const char *a, const char *b,
                                    const char *c, const char *d)
{
    size_t size = n_a + strlen(b) + strlen(c) + strlen(d) + 1;
    char *made = CPLMalloc(size);
    snprintf(made, size, "%.*s%s%s%s", (int)n_a, a, b, c, d);
    return made;
}

/* Returns the length of the prefix that precedes the path of an archive:
 * "/vsizip/", "/vsizip//vsigzip/", ... */
static size_t archive_prefix_length(const char *name)
{
    static const char *const archives[] = {"/vsizip/", "/vsitar/", "/vsigzip/",
                                           "/vsi7z/", "/vsirar/"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof archives / sizeof *archives;)
    {
        size_t m = strlen(archives[i]);
        if (strncmp(name + n, archives[i], m) != 0)
        {
            i++;
            continue;
        }
        n += m;
        i = 0;
    }
    return n;
}

/* Returns 1 for names such as "GPKG:..." and "WFS:...": word characters, then a
 * colon. */
static int looks_like_connection(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                            "XYZ0123456789_+-");
    return n > 0 && name[n] == ':';
}

static int exists_in_folder(const char *folder, const char *name)
{
    char path[4096];
    struct stat info;
    int n = snprintf(path, sizeof path, "%s%s%s", folder,
                     folder[0] != '\0' ? "/" : "", name);
    return n > 0 && n < (int)sizeof path && stat(path, &info) == 0;
}

/* Returns 1 if name is a path relative to folder, 0 for absolute paths, URLs
 * and texts that are datasets. A name that looks like a connection is a path
 * only if folder contains a file of this name. */
static int is_relative(const char *folder, const char *name)
{
    if (name[0] == '\0' || strchr("/\\<{[", name[0]) != NULL ||
        strstr(name, "://") != NULL)
        return 0;
    if (oj_driver_is_connection(name) || looks_like_connection(name))
        return exists_in_folder(folder, name);
    return 1;
}

char *oj_path_resolve(const char *folder, const char *name)
{
    size_t n = archive_prefix_length(name);
    size_t n_folder = strlen(folder);
    if (n_folder == 0 || !is_relative(folder, name + n))
        return CPLStrdup(name);
    return concatenate_path_parts(
        n, name, folder, folder[n_folder - 1] == '/' ? "" : "/", name + n);
}

/* Skips the "./" and "../" at the start of path and returns the rest. Each
 * "../" removes the last folder of `here`. */
static const char *resolve_dot_folders(char *here, const char *path)
{
    for (;;)
    {
        if (strncmp(path, "./", 2) == 0)
            path += 2;
        else if (strncmp(path, "../", 3) == 0)
        {
            char *slash = strrchr(here, '/');
            if (slash != NULL)
                *slash = '\0';
            path += 3;
        }
        else if (path[0] == '/')
            path++;
        else
            return path;
    }
}

/* Returns the length in bytes of the folders common to both paths, up to a
 * slash: 2 for the folder /a/b and the path /a/c/d. */
static size_t common_folders_length(const char *folder, const char *path)
{
    size_t common = 0;
    for (size_t i = 0;; i++)
    {
        if ((folder[i] == '\0' || folder[i] == '/') && path[i] == '/')
            common = i;
        if (folder[i] != path[i] || folder[i] == '\0')
            return common;
    }
}

char *oj_path_make_relative(const char *folder, const char *name)
{
    char from[PATH_MAX], to[PATH_MAX], up[3 * PATH_MAX / 2] = "";
    size_t n = archive_prefix_length(name), common, n_to;
    const char *path = name + n, *way = to;
    if (!is_relative("", path) || getcwd(to, sizeof to) == NULL ||
        realpath(folder[0] != '\0' ? folder : ".", from) == NULL)
        return CPLStrdup(name);
    /* Both paths are absolute now, and `from` has no links. The root becomes
     * "". */
    from[strcmp(from, "/") == 0 ? 0 : strlen(from)] = '\0';
    to[strcmp(to, "/") == 0 ? 0 : strlen(to)] = '\0';
    path = resolve_dot_folders(to, path);
    n_to = strlen(to);
    if (snprintf(to + n_to, sizeof to - n_to, "/%s", path) >=
        (int)(sizeof to - n_to))
        return CPLStrdup(name);
    common = common_folders_length(from, to);
    if (common > 0 || from[0] == '\0') /* without a common folder `to` stays
                                          absolute */
    {
        for (const char *c = from + common; *c != '\0'; c++)
        {
            if (*c == '/')
                strcat(up, "../");
        }
        way = to + common;
        way += strspn(way, "/");
    }
    /* "-a.gpkg" becomes "./-a.gpkg": otherwise the command would take the name
     * for an option. */
    return concatenate_path_parts(
        n, name, up[0] == '\0' && way[0] == '-' ? "./" : "", up, way);
}

const char *oj_path_folder(const char *path, const char *none)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return none;
    return oj_words_excerpt(path, slash == path ? 1 : (size_t)(slash - path));
}
