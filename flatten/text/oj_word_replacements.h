/** Replaces words in texts: "st" by "street", or by nothing. */
#ifndef OJ_WORD_REPLACEMENTS_H
#define OJ_WORD_REPLACEMENTS_H

#include "oj_fold.h"

/** A map from words to replacements. Read-only, and so thread-safe, once made.
 */
struct oj_word_map;

/** Makes the map from n bytes of text: a line per word, "St,street". The second
 *  column may be empty or have several words; either column may be in double
 *  quotes. Empty lines are ignored. Both columns are folded, so the map belongs
 *  to one kind of folding. Replacements are not replaced again.
 *  Errors  OJ_ERR_DATA, with the number of the line: no comma, a third column,
 *          a quote that is not closed, text behind a closing quote, no word or
 *          several words in the first column, or a word that was listed before
 *          with another replacement; OJ_ERR_NOMEM
 */
OJ_MUST_USE oj_status oj_word_map_make(const char *text, int64_t n,
                                       enum oj_fold fold,
                                       struct oj_word_map **out,
                                       struct oj_error *err);

/** Replaces the words of a folded text; single spaces separate the words of the
 *  result. */
OJ_MUST_USE oj_status oj_word_map_apply(const struct oj_word_map *map,
                                        const struct oj_folded *text,
                                        struct oj_folded *out,
                                        struct oj_error *err);

/** Frees the map; accepts NULL. */
void oj_word_map_free(struct oj_word_map *map);

#endif
