/** What to write in place of an option that ogrjoin does not have. */
#ifndef OJ_OPTION_HINT_H
#define OJ_OPTION_HINT_H

#include <stddef.h>

/** word: as it was given, with its dashes.  Writes what follows "unknown option
 *  WORD": the option that was probably meant, what does the same here where
 *  the word is one of ogr2ogr or of another tool, or nothing but where all
 *  options are listed.  Cut to size bytes. */
void oj_option_hint(const char *word, char *text, size_t size);

#endif
