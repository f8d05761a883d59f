/** One -similar of a command, LEFT[=RIGHT][:T], and the words of -vector:
 *
 *   name+"street:old"=NAME+ADDR:0.6
 *
 *  Fields with + between them are put together.  In double quotes a name may
 *  have : + and =, and "" is a double quote.  T is above 0 and at most 1, a
 *  decimal of up to nine digits or a fraction.
 */
#ifndef OJ_SIMILAR_H
#define OJ_SIMILAR_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

/** Owner; zeroed memory is a valid empty one. */
struct oj_similar
{
    char **fields[2]; /**< string lists: of the input and of the join layer */
    int64_t numerator, denominator; /**< of T; 0, 0: not written */
};

/** OJ_ERR_ARG with what to write instead. */
OJ_MUST_USE oj_status oj_similar_parse(const char *word, struct oj_similar *out,
                                       struct oj_error *err);

void oj_similar_free(struct oj_similar *similar);

/** -vector F[:WEIGHT]+..[=..], as price:0.001+area=PRICE+AREA. Owner; zeroed
 *  memory is a valid empty one. */
struct oj_vector_words
{
    char **fields[2]; /**< string lists of one length, as above */
    double *weight;   /**< [fields] > 0; 1 where none is written */
};

/** OJ_ERR_ARG with what to write instead. */
OJ_MUST_USE oj_status oj_vector_parse(const char *word,
                                      struct oj_vector_words *out,
                                      struct oj_error *err);

void oj_vector_words_free(struct oj_vector_words *words);

#endif
