#include "oj_spelling.h"

#include <string.h>
#include <strings.h>

/* Returns the edit distance of two words. Compares only the first MAX letters
 * of each: longer words cannot be mistyped option names. */
static int edit_distance(const char *a, const char *b)
{
    enum
    {
        MAX = 32
    };
    int row[MAX + 1];
    int n_a = (int)strnlen(a, MAX), n_b = (int)strnlen(b, MAX);
    for (int j = 0; j <= n_b; j++)
        row[j] = j;
    for (int i = 1; i <= n_a; i++)
    {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n_b; j++)
        {
            int same = strncasecmp(&a[i - 1], &b[j - 1], 1) == 0;
            int best = diagonal + !same;
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n_b];
}

int oj_spelling_distance(const char *word, const char *name)
{
    size_t n = strlen(word);
    if (n >= 3 && n < strlen(name) && strncasecmp(word, name, n) == 0)
        return 1;
    return edit_distance(word, name);
}
