/** Splits a command line that is given as one text (a dataset name, say) into
 *  words, which are separated by white space and quoted as in a shell.
 *
 *    -where "kind = 'park'"  lots\ 2026.gpkg  'it'\''s.gpkg'  ''
 *
 *  Inside '...' every character is literal; inside "..." a backslash escapes \
 *  " $ and `; elsewhere it escapes any character. Adjacent quoted pieces form
 *  one word. Nothing is expanded: $, * and ~ are literal.
 */
#ifndef OJ_SHELL_WORDS_H
#define OJ_SHELL_WORDS_H

#include "../../flatten/base/oj_status.h"
#include "../../flatten/base/oj_word_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Splits text into *n words, NULL-terminated, in one block that oj_free()
 *  frees. OJ_ERR_ARG if a closing quote is missing. */
OJ_MUST_USE oj_status oj_words_split(const char *text, char ***words, int *n,
                                     struct oj_error *err);

/** Returns 1 if two NULL-terminated lists hold equal words in equal order. NULL
 *  is an empty list. */
int oj_words_are_equal(const char *const *a, const char *const *b);

/** Returns the first n bytes of text as a string, from CPLSPrintf():
 *  overwritten after a few more calls. (CPLSPrintf() does not support "%.*s".)
 */
const char *oj_words_excerpt(const char *text, size_t n);

/** Quotes and joins the words into one text, which oj_words_split() splits
 *  again. Free it with CPLFree(). */
char *oj_words_join(const char *const *words);

#ifdef __cplusplus
}
#endif
#endif
