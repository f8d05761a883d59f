#include "oj_arrow_type.h"

#include <stdlib.h>
#include <string.h>

/* Returns the bytes of a decimal type "d:precision,scale[,bits]". */
static int64_t size_of_decimal(const char *format)
{
    const char *comma = strchr(format, ',');
    const char *bits = comma != NULL ? strchr(comma + 1, ',') : NULL;
    return bits != NULL ? atoi(bits + 1) / 8 : 16;
}

static int64_t size_of_temporal(const char *format)
{
    if (format[1] == 'd')
        return format[2] == 'D' ? 4 : 8;
    if (format[1] == 't')
        return format[2] == 's' || format[2] == 'm' ? 4 : 8;
    if (format[1] == 'i')
        return format[2] == 'M' ? 4 : format[2] == 'D' ? 8 : 16;
    return 8; /* timestamps and durations */
}

static int read_nested_type(const char *format, struct oj_arrow_type *out)
{
    switch (format[1])
    {
        case 'l':
        case 'L':
            *out = (struct oj_arrow_type){OJ_STORES_LISTS,
                                          format[1] == 'l' ? 4 : 8};
            return 1;
        case 'v':
            *out = (struct oj_arrow_type){OJ_STORES_LIST_VIEWS,
                                          format[2] == 'l' ? 4 : 8};
            return format[2] == 'l' || format[2] == 'L';
        case 'w':
            *out = (struct oj_arrow_type){OJ_STORES_FIXED_LISTS,
                                          atoll(format + 3)};
            return format[2] == ':' && out->size >= 0 && out->size <= INT32_MAX;
        case 'm':
            *out = (struct oj_arrow_type){OJ_STORES_LISTS, 4};
            return 1;
        case 's':
            *out = (struct oj_arrow_type){OJ_STORES_STRUCTS, 0};
            return 1;
        case 'r':
            *out = (struct oj_arrow_type){OJ_STORES_RUNS, 0};
            return 1;
        default:
            return 0;
    }
}

int oj_arrow_type_read(const char *format, struct oj_arrow_type *out)
{
    static const char fixed[] = "cCsSeiIflLg";
    static const char size[] = "11222444888";
    const char *at = format[1] == '\0' ? strchr(fixed, format[0]) : NULL;
    if (at != NULL && *at != '\0')
    {
        *out = (struct oj_arrow_type){OJ_STORES_FIXED, size[at - fixed] - '0'};
        return 1;
    }
    switch (format[0])
    {
        case 'n':
            *out = (struct oj_arrow_type){OJ_STORES_NOTHING, 0};
            return 1;
        case 'b':
            *out = (struct oj_arrow_type){OJ_STORES_BITS, 0};
            return 1;
        case 'u':
        case 'z':
            *out = (struct oj_arrow_type){OJ_STORES_BYTES, 4};
            return 1;
        case 'U':
        case 'Z':
            *out = (struct oj_arrow_type){OJ_STORES_BYTES, 8};
            return 1;
        case 'v':
            *out = (struct oj_arrow_type){OJ_STORES_BYTE_VIEWS, 16};
            return format[1] == 'u' || format[1] == 'z';
        case 'd':
            *out = (struct oj_arrow_type){OJ_STORES_FIXED,
                                          size_of_decimal(format)};
            return out->size > 0 && out->size <= 32;
        case 'w':
            *out = (struct oj_arrow_type){OJ_STORES_FIXED, atoll(format + 2)};
            return format[1] == ':' && out->size >= 0 && out->size <= INT32_MAX;
        case 't':
            *out = (struct oj_arrow_type){OJ_STORES_FIXED,
                                          size_of_temporal(format)};
            return format[1] != '\0' && strchr("dtsDi", format[1]) != NULL &&
                   format[2] != '\0';
        case '+':
            return read_nested_type(format, out);
        default:
            return 0;
    }
}

struct oj_arrow_type oj_arrow_type_of(const struct ArrowSchema *schema)
{
    struct oj_arrow_type type = {OJ_STORES_NOTHING, 0};
    (void)oj_arrow_type_read(schema->format, &type);
    return type;
}
