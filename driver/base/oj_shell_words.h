/** A command line in one text, as in a dataset name: words separated by white
 *  space and quoted as in a shell.
 *
 *    -where "kind = 'park'"  lots\ 2026.gpkg  'it'\''s.gpkg'  ''
 *
 *  Inside '...' every character is literal; inside "..." a backslash escapes \
 *  " $ and `; elsewhere it escapes any character.  Adjacent quoted pieces form
 *  one word.  Nothing is expanded: $, * and ~ are literal.
 */
#ifndef OJ_SHELL_WORDS_H
#define OJ_SHELL_WORDS_H

#include "../../flatten/base/oj_status.h"
#include "../../flatten/base/oj_word_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Splits text into *n words, NULL-terminated, in one block that oj_free()
 *  frees. OJ_ERR_ARG when a closing quote is missing. */
OJ_MUST_USE oj_status oj_words_split(const char *text, char ***words, int *n,
                                     struct oj_error *err);

/** 1 when two NULL-terminated lists hold equal words in equal order. NULL is an
 *  empty list. */
int oj_words_are_same(const char *const *a, const char *const *b);

/** The first n bytes of text. From CPLSPrintf(), which does not support
 *  "%.*s". */
const char *oj_words_start(const char *text, size_t n);

/** Quotes and joins the words, so that oj_words_split() returns them.
 *  CPLFree(). */
char *oj_words_join(const char *const *words);

#ifdef __cplusplus
}
#endif
#endif
