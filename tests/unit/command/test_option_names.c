/* The table of options against the man page. Kind: unit. */
#include "../run_tests.h"

#include "../../../algs/relation/oj_relation.h"
#include "../../../driver/command/oj_option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(names_are_unique)
{
    const struct oj_option *a, *b;
    for (int i = 0; (a = oj_option_at(i)) != NULL; i++)
    {
        for (int j = 0; j < i; j++)
        {
            b = oj_option_at(j);
            ck_assert_str_ne(a->name, b->name);
            if (a->alias != NULL)
                ck_assert_str_ne(a->alias, b->name);
        }
    }
}

static char *read_text(const char *name)
{
    enum
    {
        MAX_BYTES = 200000
    };
    char path[1024], *text = malloc(MAX_BYTES);
    size_t n;
    FILE *file;
    snprintf(path, sizeof path, "%s/driver/%s", OJ_SOURCE_DIR, name);
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    ck_assert_ptr_nonnull(text);
    n = fread(text, 1, MAX_BYTES - 1, file);
    fclose(file);
    text[n] = '\0';
    return text;
}

/* dash and name, and then no letter that would make it another name. */
static int names_option(const char *text, const char *dash, const char *name)
{
    char wanted[64];
    size_t n;
    snprintf(wanted, sizeof wanted, "%s%s", dash, name);
    n = strlen(wanted);
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++)
    {
        char next = at[n];
        if (!((next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
              next == '_'))
            return 1;
    }
    return 0;
}

TEST(man_page_names_every_option)
{
    char *man = read_text("ogrjoin.1");
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        ck_assert_msg(names_option(man, "\\-", option->name),
                      "the man page lacks -%s", option->name);
    }
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        const char *name = oj_op_get((enum oj_op)i)->name;
        ck_assert_msg(names_option(man, ".B ", name),
                      "the man page lacks the join %s", name);
    }
    free(man);
}

int main(void)
{
    tests_open("option names");
    return tests_run();
}
