/** What a mistyped word was meant to be. */
#ifndef OJ_SPELLING_H
#define OJ_SPELLING_H

/** How unlike name the word is: letters to insert, delete or replace, without
 *  case; a word cut short ("max_dist") counts as one letter off. */
int oj_spelling_distance(const char *word, const char *name);

#endif
