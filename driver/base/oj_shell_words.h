/** A command line in one text, as the name of a dataset holds it: words parted
 *  by white space and quoted as in a shell.
 *
 *    -where "kind = 'park'"  lots\ 2026.gpkg  'it'\''s.gpkg'  ''
 *
 *  '...' is taken as it is; in "..." a backslash stands before \ " $ and `;
 *  elsewhere it takes the meaning from any character.  Quoted pieces that touch
 *  are one word.  Nothing is expanded: $, * and ~ are letters.
 */
#ifndef OJ_SHELL_WORDS_H
#define OJ_SHELL_WORDS_H

#include "../../flatten/base/oj_status.h"
#include "../../flatten/base/oj_word_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The words of text, NULL-terminated, in one block that oj_free() frees.
 *  *n: how many.  OJ_ERR_ARG when a quote does not end. */
OJ_MUST_USE oj_status oj_words_split(const char *text, char ***words, int *n,
                                     struct oj_error *err);

/** 1 when two NULL-terminated lists hold equal words in the same order; NULL is
 *  an empty list. */
int oj_words_are_same(const char *const *a, const char *const *b);

/** The first n bytes of a text, as a text of CPLSPrintf(), whose own formats
 *  know no "%.*s". */
const char *oj_words_start(const char *text, size_t n);

/** The text that these NULL-terminated words are split from; CPLFree(). */
char *oj_words_join(const char *const *words);

#ifdef __cplusplus
}
#endif
#endif
