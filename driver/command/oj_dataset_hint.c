#include "oj_dataset_hint.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* What GDAL wants before the name of a packed file; NULL: it is none. */
static const char *prefix_of_archive(const char *name)
{
    static const struct
    {
        const char *end, *prefix;
    } kinds[] = {{".zip", "/vsizip/"},
                 {".tar", "/vsitar/"},
                 {".tgz", "/vsitar/"},
                 {".tar.gz", "/vsitar/"},
                 {".gz", "/vsigzip/"}};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    {
        size_t m = strlen(kinds[i].end);
        if (n > m && strcasecmp(name + n - m, kinds[i].end) == 0 &&
            strncmp(name, "/vsi", 4) != 0)
            return kinds[i].prefix;
    }
    return NULL;
}

int oj_dataset_hint(const char *name, const char *role, char *text, size_t size)
{
    static const char layer_name[] = "|layername=";
    const char *prefix = prefix_of_archive(name);
    const char *bar = strstr(name, layer_name), *of_layer;
    struct stat file;
    if (prefix != NULL && stat(name, &file) == 0)
    {
        snprintf(text, size, "to GDAL a packed file is %s%s", prefix, name);
        return 1;
    }
    if (bar != NULL)
    {
        of_layer = bar + sizeof layer_name - 1;
        snprintf(text, size,
                 "that is QGIS's way to name a layer; write %.*s, and "
                 "-%s_layer %.*s",
                 (int)(bar - name), name, role, (int)strcspn(of_layer, "|"),
                 of_layer);
        return 1;
    }
    if (strncmp(name, "/vsistdin", 9) == 0)
    {
        snprintf(text, size,
                 "what comes from there is empty or in no format that can be "
                 "told by its first bytes (CSV is CSV:%s)",
                 name);
        return 1;
    }
    return 0;
}
