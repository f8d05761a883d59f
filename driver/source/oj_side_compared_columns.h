/** What -on, -exclude field=, -similar, -vector and fields of distances ask of
 *  the rows of a side, as columns of struct oj_flat.
 *
 *   fields of both sides --> of the side that is inserted --> vocabulary
 *                                                                 |
 *                        columns of the other <-- looked up ------'
 *
 *  Classes: rows with equal values get equal small numbers, so that the join
 *  compares numbers.  Which values are equal: algs/api/rows/oj_value_classes.h;
 *  dates, lists and binaries are the texts that OGR writes.
 *
 *  Texts: fields of a row put together, and what they are as sets of tokens.
 *
 *   -similar name+street=NAME
 *     row    name "Bar"  street "Elm St"      NAME "Bar, Elm Street"
 *     text   "Bar Elm St"                     "Bar, Elm Street"
 *     set    flatten/text/oj_token_sets.h
 *
 *  Values are put together with a space, as the texts that OGR writes; NULL
 *  adds nothing.  The dictionary is that of the side whose rows are inserted.
 *
 *  Vectors: numbers of a row, from fields or from one list.
 *
 *   -vector price:0.001+area=PRICE+AREA     (0.001 price, area)
 *   -vector emb                             a list, or a text as "[0.1, 2]",
 *                                           which is how GeoPackage keeps lists
 *
 *  A weight multiplies both sides before anything else.  As many dimensions as
 *  fields, or as the first list of the side whose rows are inserted.  Not a
 *  vector: one with a NULL, a NaN or a number beyond OJ_FLAT_MOST, a list of
 *  another length, and for a cosine one whose squared length is below DBL_MIN.
 */
#ifndef OJ_SIDE_COMPARED_COLUMNS_H
#define OJ_SIDE_COMPARED_COLUMNS_H

#include "../../algs/api/rows/oj_value_classes.h"
#include "../../algs/foundations/relation/oj_text_similarity_condition.h"
#include "../../algs/foundations/relation/oj_vector_condition.h"
#include "../../flatten/arrays/oj_flat.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "../../flatten/text/oj_token_sets.h"

/* ---- values of fields ---------------------------------------------------- */

/** A field of one side: its place among the fields read, and its type. */
struct oj_side_field
{
    int column;
    OGRFieldType type;
    OGRFieldSubType subtype;
    OGRFeatureH scratch; /**< owned; writes values; NULL: not needed yet */
    OGRFeatureDefnH defn;
};

/** The text of a value that is there, as OGR writes it, *n bytes, borrowed
 *  until the next one or as long as the value. */
OJ_MUST_USE oj_status oj_side_field_text(struct oj_side_field *field,
                                         const struct oj_value *value,
                                         const char **text, int64_t *n,
                                         struct oj_error *err);

/** Frees what writes values. */
void oj_side_field_free(struct oj_side_field *field);

/* ---- what is asked ------------------------------------------------------- */

/** What fields are made into. */
enum oj_made_column
{
    OJ_MADE_ON_CLASS,
    OJ_MADE_EXCLUDE_CLASS,
    OJ_MADE_MAX_DISTANCE,
    OJ_MADE_VECTOR,
    OJ_MADE_TEXT, /**< of the first condition on texts; others follow */
    OJ_N_MADE_COLUMNS = OJ_MADE_TEXT + OJ_MOST_TEXTS
};

/** Fields of one side, in their order. Owner. */
struct oj_side_fields
{
    int n;
    int64_t capacity;
    struct oj_side_field *field; /**< [n] */
};

/** What the inserted rows have in common with those that are looked up,
 *  without the fields that they came from: after the last insert, any number of
 *  columns can look up in it, each on a thread of its own. */
struct oj_vocabulary
{
    int n_holders;                      /**< counted atomically */
    struct oj_value_classes classes[2]; /**< of -on and -exclude */
    struct oj_word_map *word_map; /**< or NULL; the dictionaries borrow it */
    struct oj_dictionary *dictionary[OJ_MOST_TEXTS]; /**< NULL: not made yet */
    int64_t n_dimensions; /**< of vectors; 0: not known yet */
};

/** Zeroed memory is a valid one that asks for nothing. */
struct oj_side_columns
{
    /** Of input and join layer. None: not asked for. */
    struct oj_side_fields fields[OJ_N_MADE_COLUMNS][2];
    struct oj_vocabulary *vocabulary; /**< held */

    /* Set by the caller. */
    double distance_scale; /**< from a field's unit to that of the CRS */
    const double *weight;  /**< of each field of vectors */
    enum oj_vector_norm norm;
    int n_texts;                 /**< conditions on texts */
    struct oj_token_rules rules; /**< but the word map */
    int n_threads;               /**< for texts, 0: all */
    const int *cancel;           /**< may be NULL */

    struct oj_value_key key; /* of a row */
};

/** Makes a vocabulary of its own; columns->rules are set.  word_map: lines of
 *  two columns (oj_word_replacements.h), or NULL. */
OJ_MUST_USE oj_status oj_side_columns_open(struct oj_side_columns *columns,
                                           const char *word_map,
                                           struct oj_error *err);

/** Adds field, without scratch, to those of this side that are made into one
 *  column.  made: enum oj_made_column */
OJ_MUST_USE oj_status oj_side_columns_add(struct oj_side_columns *columns,
                                          int made, int side,
                                          const struct oj_side_field *field,
                                          struct oj_error *err);

/** 1 when a field of that side is asked for. */
int oj_side_columns_need(const struct oj_side_columns *columns, int side);

/** Looks up in vocabulary from now on, which was made by columns that ask the
 *  same of the inserted side, in place of its own; nothing may be inserted. */
void oj_side_columns_use(struct oj_side_columns *columns,
                         struct oj_vocabulary *vocabulary);

/** Accepts zeroed memory. */
void oj_side_columns_close(struct oj_side_columns *columns);

/** Held for the caller until oj_vocabulary_free(). */
struct oj_vocabulary *oj_vocabulary_hold(struct oj_vocabulary *vocabulary);

/** Bytes of the memory that it holds. Accepts NULL. */
int64_t oj_vocabulary_bytes(const struct oj_vocabulary *vocabulary);

/** Accepts NULL. */
void oj_vocabulary_free(struct oj_vocabulary *vocabulary);

/* ---- what is made -------------------------------------------------------- */

/** The columns of some rows. Owner; zeroed memory is a valid empty one and may
 *  be used for many batches. */
struct oj_compared_columns
{
    int32_t *on_class, *exclude_class;
    double *max_distance, *vector; /**< n_dimensions of each row */
    struct oj_token_sets_buf sets[OJ_MOST_TEXTS]; /**< of texts, */
    struct oj_token_sets texts[OJ_MOST_TEXTS];    /**< and their views */
    int n_texts;
    int64_t n_dimensions;
    int64_t cap_on_class, cap_exclude_class, cap_max_distance, cap_vector;
    int64_t *offset; /* the texts of one condition at a time */
    char *bytes;
    int64_t cap_offset, cap_bytes;
};

/** Rows that join nothing, because a value is missing. */
struct oj_missing_values
{
    int64_t n_no_reach;  /**< rows without a usable distance of their own:
                              NULL or negative */
    int64_t n_no_text;   /**< -similar: rows without such a text */
    int64_t n_no_vector; /**< -vector: the same without a vector */
};

/** What rows are to columns that both sides are compared by. */
enum oj_insertion
{
    OJ_LOOK_UP = 0,
    OJ_INSERT_ALL, /**< all rows of the side that is looked up */
    OJ_INSERT_SOME /**< of a side that comes in pieces */
};

/** Sets the columns of flat, which borrows from made, for its rows; adds to
 *  missing.  Of classes a row with a NULL gets -1, and without insert so does
 *  one whose values no inserted row has.  insert: enum oj_insertion.  One
 *  thread at a time.
 *  OJ_ERR_DATA: the first list is longer than OJ_MOST_DIMENSIONS. */
OJ_MUST_USE oj_status oj_side_columns_make(struct oj_side_columns *columns,
                                           int side, int insert,
                                           const struct oj_attributes *values,
                                           struct oj_compared_columns *made,
                                           struct oj_flat *flat,
                                           struct oj_missing_values *missing,
                                           struct oj_error *err);

/** The last piece of a side has been inserted: tokens have new numbers from now
 *  on, of condition i number[i] [tokens so far], the caller's, also after an
 *  error; NULL stays where there was no row. */
OJ_MUST_USE oj_status oj_side_columns_order(struct oj_side_columns *columns,
                                            uint32_t *number[OJ_MOST_TEXTS],
                                            struct oj_error *err);

/** Copies the columns of row from of flat behind the n rows of made. */
OJ_MUST_USE oj_status oj_compared_columns_append(
    struct oj_compared_columns *made, int64_t n, const struct oj_flat *flat,
    int64_t from, struct oj_error *err);

/** Sets the columns of flat, which borrows from made. */
void oj_compared_columns_view(const struct oj_compared_columns *made,
                              struct oj_flat *flat);

/** Bytes of the memory that it holds. */
int64_t oj_compared_columns_bytes(const struct oj_compared_columns *made);

/** It is a valid empty one afterwards. */
void oj_compared_columns_free(struct oj_compared_columns *made);

#endif
