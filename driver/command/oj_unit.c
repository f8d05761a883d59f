#include "oj_unit.h"

#include <cpl_conv.h>

#include <ctype.h>
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

/* CPLStrtod reads "inf" and "nan" only when nothing follows them, and the
 * value's spelling must not depend on the locale. */
static double read_number_of_any_locale(const char *text, const char **rest)
{
    int is_infinite = strncasecmp(text, "inf", 3) == 0;
    char *end;
    double value = CPLStrtod(text, &end);
    *rest = !is_infinite                            ? end
            : strncasecmp(text, "infinity", 8) == 0 ? text + 8
                                                    : text + 3;
    return is_infinite ? INFINITY : value;
}

oj_status oj_distance_parse(const char *text, const char *option,
                            struct oj_distance *out, struct oj_error *err)
{
    const char *rest;
    double value;
    int unit;
    value = read_number_of_any_locale(text, &rest);
    if (rest == text)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s must be a number, with a unit or without "
                       "(100, 100ft, 0.5km), not '%s'",
                       option, text);
    if (isnan(value) || value < 0)
        return oj_fail(err, OJ_ERR_ARG, "-%s must be 0 or more, not '%s'",
                       option, text);
    while (*rest == ' ')
        rest++;
    if (rest[0] == ',')
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s %s: write a point for the comma, as 1.5", option,
                       text);
    unit = oj_unit_find(rest);
    if (unit < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s %s: unknown unit '%s'; known are m, km, ft, us-ft, "
                       "mi and deg, and none means the units of the CRS",
                       option, text, rest);
    out->value = value;
    out->unit = (enum oj_unit)unit;
    return OJ_OK;
}

int oj_size_parse(const char *text, int64_t *bytes)
{
    static const char letters[] = "KMGT";
    char *end;
    double value = CPLStrtod(text, &end);
    const char *rest = end;
    while (*rest == ' ')
        rest++;
    for (int i = 0; letters[i] != '\0'; i++)
    {
        if (toupper((unsigned char)*rest) == letters[i])
        {
            value *= ldexp(1.0, 10 * (i + 1));
            rest++;
            break;
        }
    }
    if (strncasecmp(rest, "iB", 2) == 0 && rest > end)
        rest += 2;
    else if (toupper((unsigned char)*rest) == 'B')
        rest++;
    if (end == text || *rest != '\0' || !(value >= 1.0) || !(value < 9.0e18) ||
        strcspn(text, "xXnN") != strlen(text))
        return 0;
    *bytes = (int64_t)value;
    return 1;
}
