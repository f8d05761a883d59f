/** The texts of -similar: fields of a row put together, and what they are as
 *  sets of tokens.
 *
 *   -similar name+street=NAME
 *     row    name "Bar"  street "Elm St"      NAME "Bar, Elm Street"
 *     text   "Bar Elm St"                     "Bar, Elm Street"
 *     set    flatten/text/oj_token_sets.h
 *
 *  Values are put together with a space, as the texts that OGR writes; NULL
 * adds nothing.  The dictionary is that of the side whose rows are inserted.
 */
#ifndef OJ_ROW_TEXTS_H
#define OJ_ROW_TEXTS_H

#include "../../algs/relation/oj_compared_fields.h"
#include "../../algs/relation/oj_text_condition.h"
#include "../../flatten/arrays/oj_flat.h"
#include "../../flatten/text/oj_token_sets.h"
#include "oj_classes.h"

/** The fields that make one text. */
struct oj_text_fields
{
    int n;
    struct oj_class_field field[OJ_MOST_TEXT_FIELDS];
};

struct oj_row_texts;

/** The sets of some rows. Owner; zeroed memory is a valid empty one and may be
 *  used for many batches. */
struct oj_row_sets
{
    struct oj_token_sets_buf made[OJ_MOST_TEXTS];
    struct oj_token_sets view[OJ_MOST_TEXTS];
    int64_t *offset; /* the texts of one condition at a time */
    char *bytes;
    int64_t cap_offset, cap_bytes;
};

/** fields    [n]: of the input and of the join layer
 *  word_map  lines of two columns (oj_word_map.h), or NULL; rules' own is not
 *            looked at
 *  cancel    may be NULL */
OJ_MUST_USE oj_status oj_row_texts_new(
    const struct oj_text_fields (*fields)[2], int n,
    const struct oj_token_rules *rules, const char *word_map, int n_threads,
    const int *cancel, struct oj_row_texts **out, struct oj_error *err);

/** Sets flat->texts, which borrows from work, for its rows.
 *  insert      enum oj_insertion: whether the rows make the dictionary
 *  *n_without  how many lack one of the texts: they join nothing */
OJ_MUST_USE oj_status oj_row_texts_make(
    struct oj_row_texts *texts, int side, int insert,
    const struct oj_row_values *values, struct oj_row_sets *work,
    struct oj_flat *flat, int64_t *n_without, struct oj_error *err);

/** The last piece of a side has been inserted: tokens have new numbers from now
 *  on, of condition i number[i] [tokens so far], the caller's, also after an
 *  error; NULL stays where there was no row. */
OJ_MUST_USE oj_status oj_row_texts_order(struct oj_row_texts *texts,
                                         uint32_t *number[OJ_MOST_TEXTS],
                                         struct oj_error *err);

/** Bytes of the memory that it holds. */
int64_t oj_row_sets_bytes(const struct oj_row_sets *sets);

void oj_row_sets_free(struct oj_row_sets *sets);

/** Accepts NULL. */
void oj_row_texts_free(struct oj_row_texts *texts);

/** The dictionaries alone, which any number of texts can use once they are
 * made, each on a thread of its own.  Counts its holders. */
struct oj_dictionaries;

/* These accept NULL: no texts. */

/** Held for the caller until oj_dictionaries_free(). */
struct oj_dictionaries *oj_row_texts_hold(struct oj_row_texts *texts);

/** Looks up in these from now on, which were made by texts of the same rules
 * and the same fields of the join layer; nothing may be inserted. */
void oj_row_texts_use(struct oj_row_texts *texts,
                      struct oj_dictionaries *dictionaries);

int64_t oj_dictionaries_bytes(const struct oj_dictionaries *dictionaries);
void oj_dictionaries_free(struct oj_dictionaries *dictionaries);

#endif
