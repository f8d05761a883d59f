/** Reads columns of the test data's tables as struct oj_texts. Include once. */
#ifndef TEXT_LAYERS_H
#define TEXT_LAYERS_H

#include "../../../flatten/text/oj_token_sets.h"

#include "../oracle_table.h"

struct text_column
{
    struct oj_texts view;
    int64_t *offset;
    char *bytes;
    int64_t n_bytes, cap_bytes;
};

static inline void add_text(struct text_column *c, const char *text, int64_t n)
{
    int64_t rows = c->view.n;
    if (rows % 1024 == 0)
        c->offset = realloc(c->offset, (size_t)(rows + 1026) * 8);
    while (c->n_bytes + n + 1 > c->cap_bytes)
    {
        c->cap_bytes = 2 * c->cap_bytes + 4096;
        c->bytes = realloc(c->bytes, (size_t)c->cap_bytes);
    }
    if (c->offset == NULL || c->bytes == NULL)
        abort();
    c->offset[0] = 0;
    memcpy(c->bytes + c->n_bytes, text, (size_t)n);
    c->n_bytes += n;
    c->offset[rows + 1] = c->n_bytes;
    c->view = (struct oj_texts){rows + 1, c->offset, c->bytes};
}

static inline void free_column(struct text_column *c)
{
    free(c->offset);
    free(c->bytes);
    memset(c, 0, sizeof *c);
}

/* Reads every step-th text of a column of a table, at most `most`. Returns 0 if
 * there is no such table. */
static inline int read_column(const char *file, const char *column, int step,
                              int most, struct text_column *out)
{
    struct oracle_table table;
    memset(out, 0, sizeof *out);
    if (!read_table(file, &table))
    {
        printf("left out: there is no %s\n", file);
        return 0;
    }
    for (int row = 1; row < table.n_rows && out->view.n < most; row += step)
    {
        const char *text = get(&table, row, column);
        add_text(out, text, (int64_t)strlen(text));
    }
    free_table(&table);
    return 1;
}

#endif
