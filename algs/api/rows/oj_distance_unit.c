#include "oj_distance_unit.h"

#include "../../../flatten/base/oj_number.h"
#include "../../../flatten/base/oj_quoted_name.h"
#include "../../foundations/relation/oj_compared_fields.h"

#include <math.h>
#include <string.h>
#include <strings.h>

const struct oj_unit_row oj_units[OJ_N_UNITS] = {
    {"", 0.0},
    {"m", 1.0},
    {"km", 1000.0},
    {"ft", 0.3048},
    {"us-ft", 1200.0 / 3937.0},
    {"mi", 1609.344},
    {"deg", 3.14159265358979323846 / 180.0},
};

int oj_unit_find(const char *text)
{
    for (int i = 0; i < OJ_N_UNITS; i++)
    {
        if (strcasecmp(oj_units[i].name, text) == 0)
            return i;
    }
    return -1;
}

oj_status oj_distance_parse(const char *dash, const char *option,
                            const char *text, struct oj_distance *out,
                            struct oj_error *err)
{
    char *end;
    const char *rest;
    double value = oj_number_read(text, &end);
    int unit;
    rest = end;
    if (rest == text)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s must be a number, with a unit or without "
                       "(100, 100ft, 0.5km), not '%s'",
                       dash, option, text);
    if (isnan(value) || value < 0)
        return oj_fail(err, OJ_ERR_ARG, "%s%s must be 0 or more, not '%s'",
                       dash, option, text);
    while (*rest == ' ')
        rest++;
    if (rest[0] == ',')
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s %s: write a point for the comma, as 1.5", dash,
                       option, text);
    unit = oj_unit_find(rest);
    if (unit < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s %s: unknown unit '%s'; known are m, km, ft, "
                       "us-ft, mi and deg, and none means the units of the CRS",
                       dash, option, text, rest);
    out->value = value;
    out->unit = (enum oj_unit)unit;
    return OJ_OK;
}

oj_status
oj_distance_field_parse(const char *dash, const char *option, const char *word,
                        int (*has_field)(const void *user, const char *name),
                        const void *user, char *name, enum oj_unit *unit,
                        struct oj_error *err)
{
    const char *at = word, *colon = NULL;
    int found;
    strcpy(name, word);
    *unit = OJ_UNIT_CRS;
    if (*word == '"')
        colon = oj_quoted_name_read(&at, NULL) && *at == ':' ? at : NULL;
    else if (!has_field(user, word))
        colon = strrchr(word, ':');
    if (colon != NULL)
        name[colon - word] = '\0';
    OJ_TRY(oj_field_name_parse(dash, option, name, err));
    if (colon == NULL)
        return OJ_OK;
    found = oj_unit_find(colon + 1);
    if (found < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s %s: unknown unit '%s'; known are m, km, ft, "
                       "us-ft, mi and deg",
                       dash, option, word, colon + 1);
    *unit = (enum oj_unit)found;
    return OJ_OK;
}
