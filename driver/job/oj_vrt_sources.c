#include "oj_vrt_sources.h"

#include "../base/oj_select_words.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Of a walk through the elements. */
struct vrt_walk
{
    const char *vrt;
    int (*takes)(const char *driver);
    char **files;
    int depth;
};

enum
{
    MAX_DEPTH = 64
};

static int is_plain_file(const char *path)
{
    struct stat at;
    return strncmp(path, "/vsi", 4) != 0 && stat(path, &at) == 0 &&
           S_ISREG(at.st_mode);
}

/* a.shp: a.dbf, a.shx, a.prj, a.shp itself. */
static void add_all_beside(struct vrt_walk *walk, const char *path)
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

static int add_source(struct vrt_walk *walk, CPLXMLNode *node)
{
    const char *text = CPLGetXMLValue(node, "", "");
    char *path;
    GDALDriverH driver = NULL;
    if (CPLTestBoolean(CPLGetXMLValue(node, "relativeToVRT", "0")))
        text = CPLProjectRelativeFilename(CPLGetPath(walk->vrt), text);
    path = CPLStrdup(text);
    if (is_plain_file(path))
        driver = GDALIdentifyDriverEx(path, GDAL_OF_VECTOR, NULL, NULL);
    if (driver == NULL || !walk->takes(GDALGetDescription(driver)))
        driver = NULL;
    else
        add_all_beside(walk, path);
    CPLFree(path);
    return driver != NULL;
}

static int is_fixed_select(CPLXMLNode *node)
{
    const char *sql = CPLGetXMLValue(node, "", "");
    return !oj_select_may_vary(sql) && !oj_select_may_reach_out(sql, NULL, "");
}

/* An open option: statements that run first can attach databases. */
static int is_harmless(CPLXMLNode *node)
{
    return strncasecmp(CPLGetXMLValue(node, "key", ""), "PRELUDE", 7) != 0;
}

static int look(struct vrt_walk *walk, CPLXMLNode *node)
{
    if (strcasecmp(node->pszValue, "SrcDataSource") == 0)
        return add_source(walk, node);
    if (strcasecmp(node->pszValue, "SrcSQL") == 0)
        return is_fixed_select(node);
    if (strcasecmp(node->pszValue, "OOI") == 0)
        return is_harmless(node);
    return 1;
}

static int look_at_all(struct vrt_walk *walk, CPLXMLNode *node)
{
    int is_good = walk->depth++ < MAX_DEPTH;
    for (; node != NULL && is_good; node = node->psNext)
    {
        if (node->eType == CXT_Element)
            is_good = look(walk, node) && look_at_all(walk, node->psChild);
    }
    walk->depth--;
    return is_good;
}

int oj_vrt_sources(const char *path, int (*takes)(const char *driver),
                   char ***files)
{
    struct vrt_walk walk = {path, takes, *files, 0};
    CPLXMLNode *tree;
    int is_good;
    if (!is_plain_file(path))
        return 0;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    tree = CPLParseXMLFile(path);
    CPLErrorReset();
    CPLPopErrorHandler();
    is_good = tree != NULL && look_at_all(&walk, tree);
    CPLDestroyXMLNode(tree);
    *files = walk.files;
    return is_good;
}
