/** Columns of struct oj_flat for the conditions on attributes: made from the
 *  fields that -on, -exclude field=, -similar, -vector, -within_time, -during,
 *  -heading, -max_distance_field and -join_max_distance_field name.
 *
 *   fields of the inserted side --> vocabulary --> columns
 *                                       ^
 *   fields of the other side --- look up -------> columns
 *
 *  Classes: rows with equal values get equal small integers, so that the join
 *  compares integers. algs/api/rows/oj_value_classes.h defines which values
 *  are equal; dates, lists and binaries are compared as the texts that OGR
 *  writes.
 *
 *  Texts: the fields of a row, concatenated, and their sets of tokens.
 *
 *   -similar name+street=NAME
 *     row    name "Bar"  street "Elm St"      NAME "Bar, Elm Street"
 *     text   "Bar Elm St"                     "Bar, Elm Street"
 *     set    flatten/text/oj_token_sets.h
 *
 *  The text of a value is what OGR writes; a space separates fields, and NULL
 *  adds nothing. The dictionary is made from the side whose rows are inserted.
 *
 *  Vectors: numbers of a row, from several fields or from one list.
 *
 *   -vector price:0.001+area=PRICE+AREA     (0.001 price, area)
 *   -vector emb                             a list, or a text "[0.1, 2]"
 *
 *  GeoPackage stores lists as texts. A weight multiplies the values of both
 *  sides first. The number of dimensions is the number of fields, or the
 *  length of the first list on the inserted side. A row has no vector if it
 *  has a NULL, a NaN or a number beyond OJ_FLAT_MOST, a list of another length,
 *  or (for cosine) a squared length below DBL_MIN.
 */
#ifndef OJ_SIDE_COMPARED_COLUMNS_H
#define OJ_SIDE_COMPARED_COLUMNS_H

#include "../../algs/api/rows/oj_value_classes.h"
#include "../../algs/foundations/relation/oj_span_values.h"
#include "../../algs/foundations/relation/oj_text_similarity_condition.h"
#include "../../algs/foundations/relation/oj_vector_condition.h"
#include "../../flatten/arrays/oj_flat.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "../../flatten/text/oj_token_sets.h"

/* ---- values of fields ---------------------------------------------------- */

/** A field of one side: its index among the fields that are read, and its type.
 */
struct oj_side_field
{
    int column;
    OGRFieldType type;
    OGRFieldSubType subtype;
    OGRFeatureH scratch; /**< feature that formats values, owned; NULL until
                              needed */
    OGRFeatureDefnH defn;
};

/** Sets *text to the text of a value that is not NULL, as OGR writes it, and *n
 *  to its number of bytes. The text is borrowed: it is valid until the next
 *  call, and no longer than the value. */
OJ_MUST_USE oj_status oj_side_field_text(struct oj_side_field *field,
                                         const struct oj_value *value,
                                         const char **text, int64_t *n,
                                         struct oj_error *err);

/** Frees the scratch feature and its definition. */
void oj_side_field_free(struct oj_side_field *field);

/** The columns that are made from fields. */
enum oj_made_column
{
    OJ_MADE_ON_CLASS,
    OJ_MADE_EXCLUDE_CLASS,
    OJ_MADE_MAX_DISTANCE,
    OJ_MADE_HEADING,
    OJ_MADE_VECTOR,
    OJ_MADE_SPAN, /**< spans of the first condition; those of others follow */
    OJ_MADE_LAST_SPAN = OJ_MADE_SPAN + OJ_MOST_SPANS - 1,
    OJ_MADE_TEXT, /**< texts of the first -similar; the columns of further ones
                       follow */
    OJ_N_MADE_COLUMNS = OJ_MADE_TEXT + OJ_MOST_TEXTS
};

/** The fields of one side from which one column is made, in order. Owns the
 *  array. */
struct oj_side_fields
{
    int n;
    int64_t capacity;
    struct oj_side_field *field; /**< [n] */
};

/** Numbered values of the fields of the side that is read first, in which
 *  values of the other side are looked up. After the last insert it is
 *  read-only: any number of struct oj_side_columns may use it, each on its own
 *  thread. */
struct oj_vocabulary
{
    int n_holders;                      /**< reference count; atomic */
    struct oj_value_classes classes[2]; /**< [0] for -on, [1] for -exclude */
    struct oj_word_map *word_map; /**< replacements of -word_map, or NULL; the
                                       dictionaries borrow it */
    /** one per -similar; NULL until it is made */
    struct oj_dictionary *dictionary[OJ_MOST_TEXTS];
    int64_t n_dimensions; /**< dimensions of the vectors; 0 if not yet known */
};

/** Makes the columns of both sides. Zeroed memory is valid and makes none. */
struct oj_side_columns
{
    /** [column][side] the fields; n = 0: the column is not needed. */
    struct oj_side_fields fields[OJ_N_MADE_COLUMNS][2];
    struct oj_vocabulary *vocabulary; /**< holds one reference */

    /* The members up to cancel are set by the caller before columns are made.
     */
    /** factor from the unit of a field to the unit of the CRS */
    double distance_scale;
    const double *weight; /**< weight of each field of -vector */
    enum oj_vector_norm norm;
    int n_spans; /**< number of -within_time and -during */
    struct oj_span_reading span[OJ_MOST_SPANS];
    int n_texts;                 /**< number of -similar */
    struct oj_token_rules rules; /**< except the word map */
    int n_threads;               /**< threads for texts; 0 stands for all */
    const int *cancel;           /**< flag that cancels the work; may be NULL */

    struct oj_value_key key; /* scratch: the values of one row in -on or
                                -exclude */
};

/** Makes a new vocabulary. Precondition: columns->rules is set. word_map is a
 *  text with two columns (oj_word_replacements.h), or NULL. */
OJ_MUST_USE oj_status oj_side_columns_open(struct oj_side_columns *columns,
                                           const char *word_map,
                                           struct oj_error *err);

/** Appends *field to the fields of this side from which the column `made` (enum
 *  oj_made_column) is computed. field->scratch and defn must be NULL. */
OJ_MUST_USE oj_status oj_side_columns_add(struct oj_side_columns *columns,
                                          int made, int side,
                                          const struct oj_side_field *field,
                                          struct oj_error *err);

/** Returns 1 if any field of that side is needed. */
int oj_side_columns_are_needed(const struct oj_side_columns *columns, int side);

/** Replaces the vocabulary of *columns by `vocabulary`, which other columns
 *  with equal options have made. *columns then add no values to it. */
void oj_side_columns_use_vocabulary(struct oj_side_columns *columns,
                                    struct oj_vocabulary *vocabulary);

/** Frees what columns owns; zeroed memory is accepted. */
void oj_side_columns_close(struct oj_side_columns *columns);

/** Adds a reference, which oj_vocabulary_free() drops. Returns vocabulary. */
struct oj_vocabulary *
oj_vocabulary_add_reference(struct oj_vocabulary *vocabulary);

/** Returns the bytes of memory that the vocabulary owns. Accepts NULL. */
int64_t oj_vocabulary_bytes(const struct oj_vocabulary *vocabulary);

/** Drops one reference. Accepts NULL. */
void oj_vocabulary_free(struct oj_vocabulary *vocabulary);

/* ---- the columns --------------------------------------------------------- */

/** The columns of some rows. Owns its arrays; zeroed memory is valid and empty.
 *  The columns may be filled again for each batch. */
struct oj_compared_columns
{
    int32_t *on_class, *exclude_class;
    double *max_distance, *heading;
    double *vector; /**< vector: n_dimensions values per row */
    /** ends of the spans; until[i] is NULL if from[i] holds both ends */
    int64_t *from[OJ_MOST_SPANS], *until[OJ_MOST_SPANS];
    int n_spans;
    /** token sets of the texts, one element per -similar */
    struct oj_token_sets_buf sets[OJ_MOST_TEXTS];
    struct oj_token_sets texts[OJ_MOST_TEXTS]; /**< views of `sets` */
    int n_texts;
    int64_t n_dimensions;
    int64_t cap_on_class, cap_exclude_class, cap_max_distance, cap_vector;
    int64_t cap_heading;
    int64_t cap_from[OJ_MOST_SPANS], cap_until[OJ_MOST_SPANS];
    int64_t *offset; /* scratch: the texts of one -similar */
    char *bytes;
    int64_t cap_offset, cap_bytes;
};

/** Numbers of rows that lack a value which the join compares. Such rows have no
 * pairs, except that rows without a heading fit every segment. */
struct oj_missing_values
{
    /** -max_distance_field: rows whose distance is NULL or negative */
    int64_t n_no_reach;
    int64_t n_no_text;   /**< -similar: rows without text */
    int64_t n_no_vector; /**< -vector: rows without a vector */
    /** -within_time, -during: rows without a span, by condition */
    int64_t n_no_span[OJ_MOST_SPANS];
    /** -heading: rows without a usable heading, which fit every segment */
    int64_t n_no_heading;
};

/** Whether the values of rows are added to the vocabulary. */
enum oj_insertion
{
    OJ_LOOK_UP = 0,
    OJ_INSERT_ALL, /**< values are added; these are all rows of the side */
    OJ_INSERT_SOME /**< values are added; more rows of the side follow */
};

/** Makes the columns of the rows of flat, which then borrows them from made,
 *  and adds to missing. The class of a row is -1 if one of its values is NULL,
 *  or if values are looked up and no inserted row has these values. insert is
 *  an enum oj_insertion. Not thread-safe. OJ_ERR_DATA if the first list is
 *  longer than OJ_MOST_DIMENSIONS. */
OJ_MUST_USE oj_status oj_side_columns_make(struct oj_side_columns *columns,
                                           int side, int insert,
                                           const struct oj_attributes *values,
                                           struct oj_compared_columns *made,
                                           struct oj_flat *flat,
                                           struct oj_missing_values *missing,
                                           struct oj_error *err);

/** Renumbers the tokens after the last rows of a side were inserted. Sets
 *  number[i] to a map from old to new numbers of the tokens of -similar i, or
 *  to NULL if there was no row. The caller frees the maps, even after an
 *  error. */
OJ_MUST_USE oj_status oj_side_columns_renumber_tokens(
    struct oj_side_columns *columns, uint32_t *number[OJ_MOST_TEXTS],
    struct oj_error *err);

/** Copies the columns of row `from` of flat into made, as its row n. */
OJ_MUST_USE oj_status oj_compared_columns_append(
    struct oj_compared_columns *made, int64_t n, const struct oj_flat *flat,
    int64_t from, struct oj_error *err);

/** Sets the columns of flat, which then borrows them from made. */
void oj_compared_columns_view(const struct oj_compared_columns *made,
                              struct oj_flat *flat);

/** Returns the bytes of memory that made owns. */
int64_t oj_compared_columns_bytes(const struct oj_compared_columns *made);

/** Frees the columns; made is then valid and empty. */
void oj_compared_columns_free(struct oj_compared_columns *made);

#endif
