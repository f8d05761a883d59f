/** Reads tables whose first line has the names of columns, such as the answers
 * of the test suites of GEOS and JTS. Include once, in a test program. */
#ifndef ORACLE_TABLE_H
#define ORACLE_TABLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef OJ_TEST_DATA
#define OJ_TEST_DATA "."
#endif

#define MOST_FIELDS 8

/* A table whose first line has the names of columns. Fields may be in
 * quotes. */
struct oracle_table
{
    char *text;
    int n_rows, n_fields, capacity;
    char **field; /* [n_rows * MOST_FIELDS] */
};

static inline char *read_file(const char *name)
{
    const char *folder = getenv("OGRJOIN_TEST_DATA");
    char path[4096], *text;
    FILE *file;
    long n;
    snprintf(path, sizeof path, "%s/%s",
             folder != NULL && folder[0] ? folder : OJ_TEST_DATA, name);
    file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    n = ftell(file);
    rewind(file);
    text = calloc((size_t)n + 1, 1);
    if (text == NULL || fread(text, 1, (size_t)n, file) != (size_t)n)
        exit(1);
    fclose(file);
    return text;
}

/* Ends the next field in place, advances *text beyond it and returns it. Sets
 * *end_of_row to 1 if it is the last field of its row. */
static inline char *next_field(char **text, int *end_of_row)
{
    char *from = *text, *to = *text, *field = *text;
    int in_quotes = 0;
    for (; *from != '\0'; from++)
    {
        if (*from == '"')
        {
            if (in_quotes && from[1] == '"')
                *to++ = *from++;
            else
                in_quotes = !in_quotes;
            continue;
        }
        if (!in_quotes && (*from == ',' || *from == '\n'))
            break;
        if (*from != '\r')
            *to++ = *from;
    }
    *end_of_row = *from != ',';
    *text = *from != '\0' ? from + 1 : from;
    *to = '\0';
    return field;
}

static inline int read_table(const char *name, struct oracle_table *table)
{
    char *text = read_file(name);
    memset(table, 0, sizeof *table);
    if (text == NULL)
        return 0;
    table->text = text;
    while (*text != '\0')
    {
        int end_of_row = 0;
        if (table->n_rows == table->capacity)
        {
            table->capacity = 2 * table->capacity + 1024;
            table->field =
                realloc(table->field,
                        (size_t)table->capacity * MOST_FIELDS * sizeof(char *));
            if (table->field == NULL)
                exit(1);
        }
        for (int i = 0; i < MOST_FIELDS; i++)
            table->field[table->n_rows * MOST_FIELDS + i] = NULL;
        for (int i = 0; !end_of_row; i++)
        {
            char *field = next_field(&text, &end_of_row);
            if (i < MOST_FIELDS)
                table->field[table->n_rows * MOST_FIELDS + i] = field;
        }
        table->n_rows++;
    }
    return 1;
}

/* Returns the field of a row by the name of its column. */
static inline const char *get(const struct oracle_table *table, int row,
                              const char *column)
{
    for (int i = 0; i < MOST_FIELDS && table->field[i] != NULL; i++)
    {
        if (strcmp(table->field[i], column) == 0)
            return table->field[row * MOST_FIELDS + i];
    }
    fprintf(stderr, "there is no column %s\n", column);
    exit(1);
}

static inline void free_table(struct oracle_table *table)
{
    free(table->text);
    free(table->field);
}

static inline int find_case(const struct oracle_table *cases,
                            const char *case_id)
{
    static int last = 1; /* the tests of a case are consecutive */
    for (int i = 0; i < cases->n_rows; i++)
    {
        int row = (last + i) % cases->n_rows;
        if (strcmp(get(cases, row, "case_id"), case_id) == 0)
        {
            last = row;
            return row;
        }
    }
    fprintf(stderr, "there is no case %s\n", case_id);
    exit(1);
}

#endif
