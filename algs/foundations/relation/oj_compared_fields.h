/** Parsers for options that name fields: -similar LEFT[=RIGHT][:T], -vector,
 *  -within_time, -during, -heading, -on, -exclude and -select; for the command
 *  and for the settings of the library.
 *
 *   name+"street:old"=NAME+ADDR:0.6
 *
 *  -similar concatenates fields that have + between them.  A name in double
 *  quotes may contain : + and =, and "" in it stands for a double quote; this
 *  also applies to -on, -exclude and -pick.  T is above 0 and at most 1, a
 *  decimal of up to nine digits or a fraction.
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
                                         0/0: T was not given */
};

/** Parses one value of -similar. The message of OJ_ERR_ARG begins with dash and
 * describes the syntax. */
OJ_MUST_USE oj_status oj_similar_fields_parse(const char *dash,
                                              const char *word,
                                              struct oj_similar *out,
                                              struct oj_error *err);

void oj_similar_fields_free(struct oj_similar *similar);

/** A parsed -vector F[:WEIGHT]+..[=..], for example
 * price:0.001+area=PRICE+AREA. Owner; zeroed memory is a valid empty value. */
struct oj_vector_words
{
    /** [n] names of fields: [0] of the input side, [1] of the join side */
    char **fields[2];
    double *weight; /**< [n] > 0; 1 by default */
    int n;          /**< at most OJ_MOST_DIMENSIONS */
};

/** Parses one value of -vector. The message of OJ_ERR_ARG begins with dash and
 * describes the syntax. */
OJ_MUST_USE oj_status oj_vector_fields_parse(const char *dash, const char *word,
                                             struct oj_vector_words *out,
                                             struct oj_error *err);

void oj_vector_fields_free(struct oj_vector_words *words);

/** A parsed -within_time LEFT[=RIGHT]:WINDOW or -during
 * FROM[..UNTIL][=FROM[..UNTIL]][:RELATIONS]. Owner; zeroed memory is a valid
 * empty value. */
struct oj_span_words
{
    char *fields[2][2]; /**< [side][0: from, 1: until] names of fields. Both are
                             equal if the side has one field (an instant). */
    int is_instant[2];  /**< [side] 1: the side has one field */
    struct oj_span_condition condition;
    int is_window; /**< 1: -within_time */
    int has_unit;  /**< 1: the window has a unit of time and is in microseconds
                    */
    double window; /**< maximum difference, >= 0 */
    char *text;    /**< owns the names that `fields` points to */
    /** The parser's arguments dash and option, for messages; borrowed. */
    const char *dash, *option;
};

/** Parses -within_time (is_window 1) or -during (0). option is the option's
 * name, which must outlive *out. The message of OJ_ERR_ARG begins with dash and
 * option and describes the syntax. */
OJ_MUST_USE oj_status oj_span_words_parse(const char *dash, const char *option,
                                          int is_window, const char *word,
                                          struct oj_span_words *out,
                                          struct oj_error *err);

void oj_span_words_free(struct oj_span_words *words);

/** Parses -heading FIELD[:TOLERANCE]. Sets *field to the name, which the caller
 * frees by oj_free(). Sets *tolerance in degrees, to OJ_HEADING_TOLERANCE if
 * none is given. The message of OJ_ERR_ARG begins with dash and describes the
 * syntax. */
OJ_MUST_USE oj_status oj_heading_words_parse(const char *dash, const char *word,
                                             char **field, double *tolerance,
                                             struct oj_error *err);

/** A parsed list LEFT=RIGHT,F,... of -on, or of -exclude behind "field=". F
 * without = names a field of both sides. A name that contains = or a comma is
 * written in double quotes. Owner; zeroed memory is a valid empty value. */
struct oj_field_pairs
{
    char **fields[2]; /**< [n] names of fields: [0] of the input, [1] of the
                           join side */
    char *text;       /**< owns the names that fields points to */
    int n;
};

/** Parses a list of -on or -exclude. The message of OJ_ERR_ARG begins with dash
 * and option and describes the syntax. */
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
const char *oj_similar_fields_end(const char *list);

/** Removes double quotes around a name, if any, in place. OJ_ERR_ARG if the
 * closing quote is missing or text follows it; the message begins with dash and
 * option. */
OJ_MUST_USE oj_status oj_field_name_parse(const char *dash, const char *option,
                                          char *name, struct oj_error *err);

#endif
