#include "oj_gdal_driver.h"

#include "../../flatten/text/oj_spelling.h"
#include "oj_shell_words.h"

#include <cpl_minixml.h>
#include <cpl_string.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *metadata_item(GDALDriverH driver, const char *name)
{
    return GDALGetMetadataItem(driver, name, NULL);
}

int oj_driver_is(GDALDriverH driver, const char *names)
{
    return driver != NULL &&
           oj_words_find(names, GDALGetDescription(driver)) >= 0;
}

static int is_word_in_list(const char *words, const char *word)
{
    char **list = CSLTokenizeString2(words, " ", 0);
    int found = CSLFindString(list, word) >= 0;
    CSLDestroy(list);
    return found;
}

static int can_create_vector_files(GDALDriverH driver)
{
    return metadata_item(driver, GDAL_DCAP_VECTOR) != NULL &&
           metadata_item(driver, GDAL_DCAP_CREATE) != NULL;
}

/* Returns the length of the longest extension of this driver with which path
 * ends, or 0. */
static size_t length_of_matching_extension(GDALDriverH driver, const char *path)
{
    const char *words = metadata_item(driver, GDAL_DMD_EXTENSIONS);
    char **extensions;
    size_t n = strlen(path), best = 0;
    if (words == NULL)
        words = metadata_item(driver, GDAL_DMD_EXTENSION);
    if (words == NULL)
        return 0;
    extensions = CSLTokenizeString2(words, " ", 0);
    for (int i = 0; extensions != NULL && extensions[i] != NULL; i++)
    {
        size_t m = strlen(extensions[i]);
        if (m > best && n > m + 1 && path[n - m - 1] == '.' &&
            strcasecmp(path + n - m, extensions[i]) == 0)
            best = m;
    }
    CSLDestroy(extensions);
    return best;
}

/* Returns the driver that creates vector files with the extension of path, or
 * NULL. Prefers the longest extension (shp.zip before zip), then the driver
 * that was registered first. */
static GDALDriverH find_by_extension(const char *path)
{
    GDALDriverH best = NULL;
    size_t longest = 0;
    for (int i = 0; i < GDALGetDriverCount(); i++)
    {
        GDALDriverH driver = GDALGetDriver(i);
        size_t length = can_create_vector_files(driver)
                            ? length_of_matching_extension(driver, path)
                            : 0;
        if (length > longest)
        {
            longest = length;
            best = driver;
        }
    }
    return best;
}

/* Returns the name of the driver that the user probably means by an unknown -f
 * format, or NULL. The format may be a word of the driver's name, an extension
 * of its files, or its name with at most two wrong letters. */
static const char *guess_driver_name(const char *format)
{
    enum
    {
        MOST_WRONG = 2
    };
    const char *best = NULL;
    int least = MOST_WRONG + 1;
    for (int i = 0; i < GDALGetDriverCount(); i++)
    {
        GDALDriverH driver = GDALGetDriver(i);
        const char *name = GDALGetDescription(driver);
        int wrong = oj_spelling_distance(format, name);
        char path[64];
        if (!can_create_vector_files(driver))
            continue;
        snprintf(path, sizeof path, "x.%.60s", format);
        if (is_word_in_list(GDALGetDriverLongName(driver), format) ||
            is_word_in_list(name, format) ||
            length_of_matching_extension(driver, path) == strlen(format))
            wrong = 0;
        if (wrong < least && wrong < (int)strlen(format) - 1)
        {
            least = wrong;
            best = name;
        }
    }
    return best;
}

/* Fails because GDAL has no driver of this name. */
static oj_status fail_unknown_format(const char *format, struct oj_error *err)
{
    const char *meant = guess_driver_name(format);
    if (meant != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-f %s: there is no such format; did you mean %s? "
                       "(ogrjoin --formats lists all)",
                       format, meant);
    return oj_fail(err, OJ_ERR_ARG,
                   "-f %s: there is no such format: this GDAL (%s) has no "
                   "driver %s; ogrjoin --formats lists those it has",
                   format, GDALVersionInfo("RELEASE_NAME"), format);
}

oj_status oj_driver_choose(const char *format, const char *path,
                           GDALDriverH *out, struct oj_error *err)
{
    GDALDriverH driver;
    if (format == NULL)
    {
        driver = find_by_extension(path);
        if (driver == NULL)
            return oj_fail(err, OJ_ERR_ARG,
                           "no format is known for the name %s: no driver of "
                           "this GDAL writes files so named; give it a usual "
                           "extension (.gpkg, .fgb, .shp, .geojson, .csv) or "
                           "name the format with -f",
                           path);
        *out = driver;
        return OJ_OK;
    }
    driver = GDALGetDriverByName(format);
    if (driver == NULL)
        return fail_unknown_format(format, err);
    if (!can_create_vector_files(driver))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-f %s: this driver cannot create vector datasets: use "
                       "one that ogrjoin --formats lists as writable",
                       format);
    *out = driver;
    return OJ_OK;
}

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 11, 0)
static const char memory_driver[] = "MEM";
#else
static const char memory_driver[] = "Memory";
#endif

oj_status oj_driver_fail_memory_dataset(struct oj_error *err)
{
    if (GDALGetDriverByName(memory_driver) == NULL)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "GDAL's driver %s, for layers in memory, is missing: "
                       "leave it out of GDAL_SKIP",
                       memory_driver);
    return oj_fail_internal(err, "GDAL cannot make a layer in memory: %s",
                            CPLGetLastErrorMsg());
}

GDALDatasetH oj_driver_create_memory_dataset(void)
{
    GDALDriverH driver = GDALGetDriverByName(memory_driver);
    return driver != NULL ? GDALCreate(driver, "", 0, 0, 0, GDT_Unknown, NULL)
                          : NULL;
}

int oj_driver_is_connection(const char *path)
{
    for (int i = 0; i < GDALGetDriverCount(); i++)
    {
        GDALDriverH driver = GDALGetDriver(i);
        const char *prefix = metadata_item(driver, GDAL_DMD_CONNECTION_PREFIX);
        if (prefix != NULL && prefix[0] != '\0' &&
            metadata_item(driver, GDAL_DCAP_VECTOR) != NULL &&
            strncasecmp(path, prefix, strlen(prefix)) == 0)
            return 1;
    }
    return 0;
}

int oj_driver_is_database(GDALDriverH driver)
{
    const char *prefix = metadata_item(driver, GDAL_DMD_CONNECTION_PREFIX);
    return prefix != NULL && prefix[0] != '\0' &&
           metadata_item(driver, GDAL_DMD_EXTENSION) == NULL;
}

int oj_driver_takes_field(GDALDriverH driver, OGRFieldType type)
{
    const char *types = metadata_item(driver, GDAL_DMD_CREATIONFIELDDATATYPES);
    return types == NULL || is_word_in_list(types, OGR_GetFieldTypeName(type));
}

int oj_driver_takes_subtype(GDALDriverH driver, OGRFieldSubType subtype)
{
    const char *types =
        metadata_item(driver, GDAL_DMD_CREATIONFIELDDATASUBTYPES);
    /* OFSTJSON only marks a string field: drivers without this subtype store
     * the strings unchanged. */
    if (subtype == OFSTNone || subtype == OFSTJSON)
        return 1;
    return types != NULL &&
           is_word_in_list(types, OGR_GetFieldSubTypeName(subtype));
}

const char *oj_driver_column_read_as_fid(GDALDriverH driver)
{
    /* SQLite's reader uses a column of this name as FID, even if the table has
     * another primary key. */
    return oj_driver_is(driver, "SQLite") ? "ogc_fid" : NULL;
}

int oj_driver_takes_fids(GDALDriverH driver)
{
    /* Geodatabases do not accept FID 0, the first FID in other formats. */
    if (oj_driver_is(driver, "FileGDB|OpenFileGDB"))
        return 0;
    return oj_driver_is(driver, "GeoJSON|GeoJSONSeq|Memory|MEM") ||
           oj_driver_has_layer_option(driver, "FID", NULL, 0);
}

/* Returns 1 if the driver's metadata item `list`, an XML text, contains the
 * option `name`. If so, copies its default value to default_value [size],
 * unless that is NULL. */
static int find_option_in_list(GDALDriverH driver, const char *list,
                               const char *name, char *default_value, int size)
{
    const char *text = metadata_item(driver, list);
    CPLXMLNode *root = text != NULL ? CPLParseXMLString(text) : NULL;
    int found = 0;
    if (root == NULL)
        return 0;
    for (const CPLXMLNode *node = root->psChild; node != NULL && !found;
         node = node->psNext)
    {
        if (node->eType != CXT_Element ||
            strcasecmp(CPLGetXMLValue(node, "name", ""), name) != 0)
            continue;
        found = 1;
        if (default_value != NULL)
            snprintf(default_value, (size_t)size, "%s",
                     CPLGetXMLValue(node, "default", ""));
    }
    CPLDestroyXMLNode(root);
    return found;
}

int oj_driver_has_layer_option(GDALDriverH driver, const char *name,
                               char *default_value, int size)
{
    return find_option_in_list(driver, GDAL_DS_LAYER_CREATIONOPTIONLIST, name,
                               default_value, size);
}

int oj_driver_has_open_option(GDALDriverH driver, const char *name)
{
    return find_option_in_list(driver, GDAL_DMD_OPENOPTIONLIST, name, NULL, 0);
}
