#include "oj_csv_row.h"

#include "../base/oj_message.h"

#include <cpl_string.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum
{
    MOST_PROBED = 4096 /* maximum number of columns in the probe */
};

/* Finds the end of the field that starts at byte *at, and returns it. *at
 * becomes the start of the next field, or is behind the end of the row. */
static int64_t find_field_end(const char *bytes, int64_t n, char separator,
                              int64_t *at)
{
    int is_quoted = 0;
    int64_t i = *at;
    for (; i < n && (is_quoted || bytes[i] != separator); i++)
        is_quoted ^= bytes[i] == '"';
    *at = i + 1;
    return i;
}

static int count_fields(const char *bytes, int64_t n, char separator)
{
    int count = 0;
    for (int64_t at = 0; at <= n; count++)
        (void)find_field_end(bytes, n, separator, &at);
    return count;
}

static int64_t length_without_line_break(const char *bytes, int64_t n)
{
    while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r'))
        n--;
    return n;
}

static int count_probed(const struct oj_csv_columns *columns)
{
    return columns->n < MOST_PROBED ? columns->n : MOST_PROBED;
}

int64_t oj_csv_columns_probe_size(const struct oj_csv_columns *columns)
{
    return 40 * (int64_t)count_probed(columns) + 1;
}

void oj_csv_columns_write_probe(const struct oj_csv_columns *columns,
                                char *text, size_t size)
{
    const int n = count_probed(columns);
    const char separator = columns->separator;
    text[0] = '\0';
    for (int i = 0; i < n; i++)
        oj_message_append(text, size, "%d%c", i, i + 1 < n ? separator : '\n');
    for (int i = 0; i < n; i++)
        oj_message_append(text, size, "\"POINT (%d 0)\"%c", i,
                          i + 1 < n ? separator : '\n');
}

void oj_csv_columns_read_probe(struct oj_csv_columns *columns, OGRLayerH layer)
{
    for (int row = 0; layer != NULL && row < 2; row++)
    {
        OGRFeatureH feature = OGR_L_GetNextFeature(layer);
        OGRGeometryH point =
            feature != NULL ? OGR_F_GetGeometryRef(feature) : NULL;
        if (point != NULL &&
            wkbFlatten(OGR_G_GetGeometryType(point)) == wkbPoint)
        {
            const int x = (int)OGR_G_GetX(point, 0);
            if (row == 0)
            {
                columns->x = x;
                columns->y = (int)OGR_G_GetY(point, 0);
            }
            else if (columns->x < 0)
                columns->wkt = x;
        }
        if (feature != NULL)
            OGR_F_Destroy(feature);
    }
}

/* Returns the separator for which the first line has about n_fields fields, the
 * number that GDAL finds. GDAL's number can be lower, because GDAL can hide a
 * column of WKT. */
static char find_separator(const char *line, int64_t n, int n_fields)
{
    static const char separators[] = ",;\t| ";
    char best = ',';
    int least = INT_MAX;
    for (const char *c = separators; *c != '\0'; c++)
    {
        const int off = abs(count_fields(line, n, *c) - n_fields);
        if (off < least)
        {
            least = off;
            best = *c;
        }
    }
    return best;
}

void oj_csv_columns_init(struct oj_csv_columns *columns)
{
    const struct oj_csv_columns none = {'\0', 0, -1, -1, -1};
    *columns = none;
}

void oj_csv_columns_find(struct oj_csv_columns *columns, const char *line,
                         int64_t n, int n_fields)
{
    n = length_without_line_break(line, n);
    columns->separator = find_separator(line, n, n_fields);
    columns->n = count_fields(line, n, columns->separator);
}

int oj_csv_row_quotes_fields(const struct oj_csv_columns *columns,
                             const char *bytes, int64_t n)
{
    const char separator = columns->separator;
    int is_quoted = 0;
    for (int64_t i = 0; i < n; i++)
    {
        if (bytes[i] != '"')
            continue;
        if (is_quoted && i + 1 < n && bytes[i + 1] == '"')
            i++; /* a doubled quotation mark stands for one */
        else if (is_quoted)
        {
            is_quoted = 0;
            if (i + 1 < n && bytes[i + 1] != separator &&
                strchr(" \r\n", bytes[i + 1]) == NULL)
                return 0;
        }
        else
        {
            is_quoted = 1;
            if (i > 0 && bytes[i - 1] != separator && bytes[i - 1] != ' ')
                return 0;
        }
    }
    return 1;
}

/* Returns 1 if GDAL accepts the field as a coordinate: a number with a decimal
 * point or comma, or an empty field or NaN, which mean that the row has no
 * geometry. */
static int is_coordinate(const char *field, int64_t n)
{
    char text[64];
    int length = 0;
    for (int64_t i = 0; i < n; i++)
    {
        if (strchr(" \t\"", field[i]) != NULL && field[i] != '\0')
            continue;
        if (length + 1 == sizeof text)
            return 0;
        text[length++] = field[i] == ',' ? '.' : field[i];
    }
    text[length] = '\0';
    return length == 0 ||
           strcasecmp(text + (text[0] == '-' || text[0] == '+'), "nan") == 0 ||
           CPLGetValueType(text) != CPL_VALUE_STRING;
}

int oj_csv_row_has_flaw(const struct oj_csv_columns *columns, const char *bytes,
                        int64_t n, char *flaw, size_t size)
{
    int count = 0, used = 0;
    n = length_without_line_break(bytes, n);
    for (int64_t at = 0; at <= n;)
    {
        const int64_t begin = at;
        const int64_t end = find_field_end(bytes, n, columns->separator, &at);
        count++;
        if (end > begin)
            used = count;
        if ((count - 1 == columns->x || count - 1 == columns->y) &&
            !is_coordinate(bytes + begin, end - begin))
        {
            snprintf(flaw, size, "a coordinate is no number");
            return 1;
        }
    }
    if (count >= columns->n && used <= columns->n)
        return 0;
    snprintf(flaw, size, "it has %s, and the first line %d",
             oj_message_count_and_noun(count, "field", "fields"), columns->n);
    return 1;
}

int oj_csv_row_has_wkt(const struct oj_csv_columns *columns, const char *bytes,
                       int64_t n)
{
    int64_t at = 0, begin = 0, end = 0;
    if (columns->wkt < 0)
        return 0;
    n = length_without_line_break(bytes, n);
    for (int i = 0; i <= columns->wkt; i++)
    {
        begin = at;
        end = find_field_end(bytes, n, columns->separator, &at);
    }
    while (begin < end && (bytes[begin] == ' ' || bytes[begin] == '"'))
        begin++;
    return begin < end;
}
