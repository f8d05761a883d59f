#include "oj_memory_size.h"

#include <cpl_conv.h>

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

int oj_memory_size_read(const char *text, int64_t *bytes)
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
