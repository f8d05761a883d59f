/** Finds the word that a mistyped word was meant to be. */
#ifndef OJ_SPELLING_H
#define OJ_SPELLING_H

/** Returns the edit distance: letters to insert, delete or replace, ignoring
 *  case. An abbreviation ("max_dist") has distance 1. */
int oj_spelling_distance(const char *word, const char *name);

#endif
