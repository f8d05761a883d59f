#include "oj_source_file_state.h"

#include "../base/oj_gdal_driver.h"
#include "../base/oj_shell_words.h"
#include "../base/oj_sql_volatility.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>

#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

/* Maximum time by which the recorded time of a change can lag behind the
 * change. File systems with nanoseconds use the kernel's tick of up to 10 ms,
 * others a tick of up to 2 s; the constants include a margin. */
#define FINE_TICK_NS INT64_C(50000000)
#define COARSE_TICK_NS INT64_C(2500000000)

/* Formats whose data is completely in the files that GDALGetFileList() returns.
 * The sources of a VRT are followed. */
static const char formats[] =
    "GPKG|SQLite|FlatGeobuf|GeoJSON|CSV|ESRI Shapefile|GeoJSONSeq|JSONFG|"
    "TopoJSON|OpenFileGDB|Parquet|Arrow|MapInfo File|KML|GPX|DXF|XLSX|ODS";

int64_t oj_join_files_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- paths --------------------------------------------------------------- */

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Adds a path with `end` behind it to the list, and returns the list. The path
 * is made absolute, because the working directory may change.
 */
static char **add_absolute_path(char **paths, const char *path, const char *end)
{
    char *folder = CPLGetCurrentDir();
    const char *whole =
        CPLProjectRelativeFilename(folder != NULL ? folder : "", path);
    paths = CSLAddString(paths, CPLSPrintf("%s%s", whole, end));
    CPLFree(folder);
    return paths;
}

static int is_plain_file(const char *path)
{
    struct stat at;
    return strncmp(path, "/vsi", 4) != 0 && stat(path, &at) == 0 &&
           S_ISREG(at.st_mode);
}

/* Returns 1 if the list is not empty and all its names are plain local files.
 */
static int are_plain_files(char **files)
{
    if (files == NULL || files[0] == NULL)
        return 0;
    for (int i = 0; files[i] != NULL; i++)
    {
        if (!is_plain_file(files[i]))
            return 0;
    }
    return 1;
}

/* Returns the files and, for files of any format, the names of SQLite's
 * journals beside them. The -shm file is left out, because readers change it,
 * too. */
static char **list_files_and_journals(char **files)
{
    char **paths = NULL;
    for (int i = 0; files[i] != NULL; i++)
    {
        if (ends_with(files[i], "-shm"))
            continue;
        paths = add_absolute_path(paths, files[i], "");
        paths = add_absolute_path(paths, files[i], "-wal");
        paths = add_absolute_path(paths, files[i], "-journal");
    }
    return paths;
}

/* ---- states -------------------------------------------------------------- */

/* Returns 1 if the file exists. An empty journal does not count, because
 * opening a database can leave one. */
static int exists_with_content(const char *path, struct stat *at)
{
    return stat(path, at) == 0 &&
           (at->st_size > 0 ||
            (!ends_with(path, "-wal") && !ends_with(path, "-journal")));
}

/* Returns 1 if every later change of the file will change its recorded times.
 */
static int is_modification_time_reliable(const struct stat *at,
                                         int64_t opened_ns)
{
    int64_t tick =
        at->st_ctim.tv_nsec % 1000000 != 0 ? FINE_TICK_NS : COARSE_TICK_NS;
    int64_t changed =
        (int64_t)at->st_ctim.tv_sec * 1000000000 + at->st_ctim.tv_nsec;
    return changed < opened_ns - tick;
}

/* Returns texts "path device inode size modified changed", or only the path if
 * the file does not exist. Sets *settled to 1 if every time is reliable
 * (is_modification_time_reliable()), else to 0. */
static char **describe_file_states(char **paths, int64_t opened_ns,
                                   int *settled)
{
    char **state = NULL;
    *settled = 1;
    for (int i = 0; paths[i] != NULL; i++)
    {
        struct stat at;
        if (!exists_with_content(paths[i], &at))
        {
            state = CSLAddString(state, paths[i]);
            continue;
        }
        state = CSLAddString(
            state,
            CPLSPrintf("%s %llu %llu %lld %lld.%ld %lld.%ld", paths[i],
                       (unsigned long long)at.st_dev,
                       (unsigned long long)at.st_ino, (long long)at.st_size,
                       (long long)at.st_mtim.tv_sec, at.st_mtim.tv_nsec,
                       (long long)at.st_ctim.tv_sec, at.st_ctim.tv_nsec));
        *settled = *settled && is_modification_time_reliable(&at, opened_ns);
    }
    return state;
}

/* ---- files behind an OGR VRT file ---------------------------------------- */

/* State of the walk through the elements of a VRT file. */
struct vrt_walk
{
    const char *vrt;
    char **files;
    int depth;
};

enum
{
    MAX_DEPTH = 64
};

/* Adds the files that differ from path only in the extension: a.shp, a.dbf,
 * a.shx, a.prj for a.shp. */
static void add_files_of_same_stem(struct vrt_walk *walk, const char *path)
{
    char *folder = CPLStrdup(CPLGetPath(path));
    char *stem = CPLStrdup(CPLGetBasename(path));
    char **names = VSIReadDir(folder[0] != '\0' ? folder : ".");
    walk->files = CSLAddString(walk->files, path);
    for (int i = 0; names != NULL && names[i] != NULL; i++)
    {
        const char *other;
        if (strcmp(CPLGetBasename(names[i]), stem) != 0)
            continue;
        other = CPLFormFilename(folder, names[i], NULL);
        if (is_plain_file(other) &&
            CSLFindStringCaseSensitive(walk->files, other) < 0)
            walk->files = CSLAddString(walk->files, other);
    }
    CSLDestroy(names);
    CPLFree(stem);
    CPLFree(folder);
}

static int add_vrt_source(struct vrt_walk *walk, CPLXMLNode *node)
{
    const char *text = CPLGetXMLValue(node, "", "");
    GDALDriverH driver = NULL;
    char *path;
    int is_known;
    if (CPLTestBoolean(CPLGetXMLValue(node, "relativeToVRT", "0")))
        text = CPLProjectRelativeFilename(CPLGetPath(walk->vrt), text);
    path = CPLStrdup(text);
    if (is_plain_file(path))
        driver = GDALIdentifyDriverEx(path, GDAL_OF_VECTOR, NULL, NULL);
    is_known = oj_driver_is(driver, formats);
    if (is_known)
        add_files_of_same_stem(walk, path);
    CPLFree(path);
    return is_known;
}

static int check_vrt_element_and_add_files(struct vrt_walk *walk,
                                           CPLXMLNode *node)
{
    const char *text = CPLGetXMLValue(node, "", "");
    if (strcasecmp(node->pszValue, "SrcDataSource") == 0)
        return add_vrt_source(walk, node);
    if (strcasecmp(node->pszValue, "SrcSQL") == 0)
        return !oj_sql_select_may_vary(text) &&
               !oj_sql_select_may_read_other_files(text, NULL, "");
    /* An open option can hold prelude statements, which can attach databases.
     */
    return strcasecmp(node->pszValue, "OOI") != 0 ||
           strncasecmp(CPLGetXMLValue(node, "key", ""), "PRELUDE", 7) != 0;
}

static int walk_vrt_elements(struct vrt_walk *walk, CPLXMLNode *node)
{
    int is_good = walk->depth++ < MAX_DEPTH;
    for (; node != NULL && is_good; node = node->psNext)
    {
        if (node->eType == CXT_Element)
            is_good = check_vrt_element_and_add_files(walk, node) &&
                      walk_vrt_elements(walk, node->psChild);
    }
    walk->depth--;
    return is_good;
}

/* Appends each data source of the VRT file, and all files that differ from it
 * only in the extension. Returns 0 if a source is not a local file, has an
 * unknown format, or is a SELECT whose result may depend on other files. */
static int list_vrt_sources(const char *path, char ***files)
{
    struct vrt_walk walk = {path, *files, 0};
    CPLXMLNode *tree;
    int is_good;
    if (!is_plain_file(path))
        return 0;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    tree = CPLParseXMLFile(path);
    CPLErrorReset();
    CPLPopErrorHandler();
    is_good = tree != NULL && walk_vrt_elements(&walk, tree);
    CPLDestroyXMLNode(tree);
    *files = walk.files;
    return is_good;
}

/* ---- files of a source --------------------------------------------------- */

/* Returns the list of a source's files, or NULL if the files are not known. For
 * a VRT file the list includes the files that it refers to. */
static char **list_files_behind_source(const struct oj_source *source)
{
    GDALDriverH driver = GDALGetDatasetDriver(source->dataset);
    int is_vrt = oj_driver_is(driver, "OGR_VRT");
    int is_known = is_vrt || oj_driver_is(driver, formats);
    char **files = NULL, **paths = NULL;
    if (is_known)
        files = GDALGetFileList(source->dataset);
    if (is_vrt)
        is_known = list_vrt_sources(source->side->dataset, &files);
    if (is_known && are_plain_files(files))
        paths = list_files_and_journals(files);
    CSLDestroy(files);
    return paths;
}

void oj_join_files_record(const struct oj_source *source, int64_t opened_ns,
                          struct oj_join_files *files)
{
    memset(files, 0, sizeof *files);
    files->paths = list_files_behind_source(source);
    if (files->paths != NULL)
        files->state =
            describe_file_states(files->paths, opened_ns, &files->is_settled);
}

int oj_join_files_have_changed(const struct oj_join_files *files)
{
    char **state;
    int ignored, same;
    if (files->paths == NULL)
        return 0;
    state = describe_file_states(files->paths, 0, &ignored);
    same = oj_words_are_equal((const char *const *)state,
                              (const char *const *)files->state);
    CSLDestroy(state);
    return !same;
}

int oj_join_files_are_unchanged(const struct oj_join_files *files)
{
    return files->paths != NULL && files->is_settled &&
           !oj_join_files_have_changed(files);
}

int oj_join_files_may_have_changed(const struct oj_join_files *files)
{
    return files->paths != NULL && !oj_join_files_are_unchanged(files);
}

void oj_join_files_free(struct oj_join_files *files)
{
    CSLDestroy(files->paths);
    CSLDestroy(files->state);
    memset(files, 0, sizeof *files);
}
