/** Finds the option or word that a user probably meant by a mistyped one. */
#ifndef OJ_SPELLING_H
#define OJ_SPELLING_H

/** Returns the edit distance: how many letters must be inserted, deleted or
 *  replaced, ignoring case. An abbreviation ("max_dist") has distance 1. */
int oj_spelling_distance(const char *word, const char *name);

#endif
