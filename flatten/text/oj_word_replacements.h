/** Words that stand for others: "st" for "street", or for nothing. */
#ifndef OJ_WORD_REPLACEMENTS_H
#define OJ_WORD_REPLACEMENTS_H

#include "oj_fold.h"

/** Does not change once made: to be read by any number of threads. */
struct oj_word_map;

/** Reads n bytes: a line for each word, "St,street"; what follows the comma may
 *  be nothing, and several words; either may be in double quotes.  Empty lines
 *  count for nothing.  Both are folded, so the map belongs to one kind of
 *  folding.  A replaced word is not looked up again.
 *  Errors  OJ_ERR_DATA: a line without a comma or with a third column, with no
 *          or several words before it, or with a word that came before and
 * stood for something else, with its number; OJ_ERR_NOMEM */
OJ_MUST_USE oj_status oj_word_map_make(const char *text, int64_t n,
                                       enum oj_fold fold,
                                       struct oj_word_map **out,
                                       struct oj_error *err);

/** The folded text with its words replaced, those left a space apart. */
OJ_MUST_USE oj_status oj_word_map_apply(const struct oj_word_map *map,
                                        const struct oj_folded *text,
                                        struct oj_folded *out,
                                        struct oj_error *err);

/** Accepts NULL. */
void oj_word_map_free(struct oj_word_map *map);

#endif
