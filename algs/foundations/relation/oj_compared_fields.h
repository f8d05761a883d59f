/** Parsers for options that name fields: -similar LEFT[=RIGHT][:T], -vector,
 *  -within_time, -during, -heading, -on, -exclude and -select; for the command
 *  and for the settings of the library.
 *
 *   name+"street:old"=NAME+ADDR:0.6
 *
 *  Fields with + between them are concatenated.  In double quotes a name may
 *  have : + and =, and "" is a double quote, also in -on, -exclude and -pick. T
 *  is above 0 and at most 1, a decimal of up to nine digits or a fraction.
 */
#ifndef OJ_COMPARED_FIELDS_H
#define OJ_COMPARED_FIELDS_H

#include "../../../flatten/base/oj_status.h"
#include "oj_span_condition.h"

#include <stdint.h>

enum
{
    OJ_MOST_TEXT_FIELDS = 16 /* maximum fields concatenated to one text */
};

/** A parsed -similar. Owner; zeroed memory is a valid empty value. */
struct oj_similar
{
    char **fields[2]; /**< names of fields: [0] of the input, [1] of the join
                           side; each list ends with NULL */
    int64_t numerator, denominator; /**< minimum similarity T as a fraction;
                                         0/0: not given */
};

/** Parses one value of -similar. OJ_ERR_ARG with the expected syntax; the
 * message begins with dash. */
OJ_MUST_USE oj_status oj_similar_fields_parse(const char *dash,
                                              const char *word,
                                              struct oj_similar *out,
                                              struct oj_error *err);

void oj_similar_fields_free(struct oj_similar *similar);

/** A parsed -vector F[:WEIGHT]+..[=..], for example
 * price:0.001+area=PRICE+AREA. Owner; zeroed memory is a valid empty value. */
struct oj_vector_words
{
    char **fields[2]; /**< [n] names of fields: [0] of the input, [1] of the
                           join side */
    double *weight;   /**< [n] > 0; 1 by default */
    int n;            /**< at most OJ_MOST_DIMENSIONS */
};

/** Parses one value of -vector. OJ_ERR_ARG with the expected syntax; the
 * message begins with dash. */
OJ_MUST_USE oj_status oj_vector_fields_parse(const char *dash, const char *word,
                                             struct oj_vector_words *out,
                                             struct oj_error *err);

void oj_vector_fields_free(struct oj_vector_words *words);

/** The parsed -within_time LEFT[=RIGHT]:WINDOW or -during
 * FROM[..UNTIL][=FROM[..UNTIL]][:RELATIONS]. Owner; zeroed memory is a valid
 * empty one. */
struct oj_span_words
{
    char *fields[2][2]; /**< [side][0: from, 1: until] names; both are equal
                             if there is one field, an instant */
    int is_instant[2];  /**< [side] 1: one field */
    struct oj_span_condition condition;
    int is_window;             /**< 1: -within_time */
    int has_unit;              /**< 1: the window is a time, in microseconds */
    double window;             /**< >= 0; without a unit a number */
    char *text;                /**< holds the names that fields points to */
    const char *dash, *option; /**< as given, for messages */
};

/** Parses -within_time (is_window 1) or -during. option: its name, which must
 * outlive *out. OJ_ERR_ARG with the expected syntax; errors begin with dash and
 * option. */
OJ_MUST_USE oj_status oj_span_words_parse(const char *dash, const char *option,
                                          int is_window, const char *word,
                                          struct oj_span_words *out,
                                          struct oj_error *err);

void oj_span_words_free(struct oj_span_words *words);

/** Parses -heading FIELD[:TOLERANCE]: *field is the name, which the caller
 * frees by oj_free(); *tolerance is in degrees, OJ_HEADING_TOLERANCE without
 * one. OJ_ERR_ARG with the expected syntax; the message begins with dash. */
OJ_MUST_USE oj_status oj_heading_words_parse(const char *dash, const char *word,
                                             char **field, double *tolerance,
                                             struct oj_error *err);

/** A parsed list LEFT=RIGHT,F,... of -on, or of -exclude after "field=". Names
 * that contain = or a comma are in double quotes. Owner; zeroed memory is a
 * valid empty value. */
struct oj_field_pairs
{
    char **fields[2]; /**< [n] names of fields: [0] of the input, [1] of the
                           join side */
    char *text;       /**< owns the names that fields points to */
    int n;
};

/** Parses such a list. OJ_ERR_ARG with the expected syntax; the message begins
 * with dash and option. */
OJ_MUST_USE oj_status oj_field_pairs_parse(const char *dash, const char *option,
                                           const char *list,
                                           struct oj_field_pairs *out,
                                           struct oj_error *err);

void oj_field_pairs_free(struct oj_field_pairs *pairs);

/** Parses the list F,F,... of -select into fields[0]. Names that contain a
 * comma are in double quotes. The list may be empty; empty names are skipped.
 * Error messages begin with dash and option. */
OJ_MUST_USE oj_status oj_field_names_parse(const char *dash, const char *option,
                                           const char *list,
                                           struct oj_field_pairs *out,
                                           struct oj_error *err);

/** Returns the end of the first item of a list for -similar: its first comma
 * outside of double quotes, or the end of the list. */
const char *oj_similar_end(const char *list);

/** Removes double quotes around a name, if any, in place. OJ_ERR_ARG if text
 * follows the closing quote; the message begins with dash and option. */
OJ_MUST_USE oj_status oj_field_name_parse(const char *dash, const char *option,
                                          char *name, struct oj_error *err);

#endif
