/** The fields that a join compares: one -similar of a command,
 * LEFT[=RIGHT][:T], and the words of -vector, as the settings of the library
 * have them, too.
 *
 *   name+"street:old"=NAME+ADDR:0.6
 *
 *  Fields with + between them are put together.  In double quotes a name may
 *  have : + and =, and "" is a double quote, also in -on, -exclude and -pick.
 * T is above 0 and at most 1, a decimal of up to nine digits or a fraction.
 */
#ifndef OJ_COMPARED_FIELDS_H
#define OJ_COMPARED_FIELDS_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

enum
{
    OJ_MOST_TEXT_FIELDS = 16 /* of one text */
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_similar
{
    char **fields[2]; /**< of the input and of the join layer, each ended by
                           NULL and OJ_MOST_TEXT_FIELDS at most */
    int64_t numerator, denominator; /**< of T; 0, 0: not written */
};

/** OJ_ERR_ARG with what to write instead; errors begin with dash. */
OJ_MUST_USE oj_status oj_similar_fields_parse(const char *dash,
                                              const char *word,
                                              struct oj_similar *out,
                                              struct oj_error *err);

void oj_similar_fields_free(struct oj_similar *similar);

/** -vector F[:WEIGHT]+..[=..], as price:0.001+area=PRICE+AREA. Owner; zeroed
 *  memory is a valid empty one. */
struct oj_vector_words
{
    char **fields[2]; /**< as above, n of either side */
    double *weight;   /**< [n] > 0; 1 where none is written */
    int n;            /**< OJ_MOST_DIMENSIONS at most */
};

/** OJ_ERR_ARG with what to write instead; errors begin with dash. */
OJ_MUST_USE oj_status oj_vector_fields_parse(const char *dash, const char *word,
                                             struct oj_vector_words *out,
                                             struct oj_error *err);

void oj_vector_fields_free(struct oj_vector_words *words);

/** The list of -on, and of -exclude behind field=: LEFT=RIGHT,F,... with = and
 *  commas in names that are in double quotes. Owner; zeroed memory is a valid
 *  empty one. */
struct oj_field_pairs
{
    char **fields[2]; /**< [n] of the input and of the join layer */
    char *text;       /**< what they point at */
    int n;
};

/** OJ_ERR_ARG with what to write instead; errors begin with dash and option. */
OJ_MUST_USE oj_status oj_field_pairs_parse(const char *dash, const char *option,
                                           const char *list,
                                           struct oj_field_pairs *out,
                                           struct oj_error *err);

void oj_field_pairs_free(struct oj_field_pairs *pairs);

/** The list of -select: F,F,... with commas in names that are in double quotes;
 *  fields[0] alone.  It may be empty; empty names are passed over.  Errors
 * begin with dash and option. */
OJ_MUST_USE oj_status oj_field_names_parse(const char *dash, const char *option,
                                           const char *list,
                                           struct oj_field_pairs *out,
                                           struct oj_error *err);

/** Where the condition of oj_similar_fields_parse() at the begin of a list
 * ends: at a comma outside of names in double quotes, or at the end. */
const char *oj_similar_end(const char *list);

/** Takes a name, which is all of a word, out of its double quotes, if it has
 *  some, in place. OJ_ERR_ARG where they do not end with it; errors begin with
 *  dash and option. */
OJ_MUST_USE oj_status oj_field_name_parse(const char *dash, const char *option,
                                          char *name, struct oj_error *err);

#endif
