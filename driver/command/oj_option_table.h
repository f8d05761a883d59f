/** The options of a join: one row each.  Those that a join takes are the rows
 * of its parameters (oj_relation.h).
 *
 *  A row has the name of the option, what it takes, where its value goes in
 *  struct oj_command, which joins take it, what it needs, and its help.  The
 *  parser, the checks, --help, the completion, the names of datasets, "gdal
 *  vector join" and the man page are made from the table.
 */
#ifndef OJ_OPTION_TABLE_H
#define OJ_OPTION_TABLE_H

#include "../../algs/foundations/relation/oj_relation.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum oj_option_kind
{
    /* As parameters have them. */
    OJ_OPTION_DISTANCE = OJ_PARAMETER_DISTANCE, /**< double, and a unit in
                                                     struct oj_command.unit */
    OJ_OPTION_COUNT = OJ_PARAMETER_COUNT,   /**< int64_t, minimum to maximum */
    OJ_OPTION_CHOICE = OJ_PARAMETER_CHOICE, /**< int: place in the choices */
    OJ_OPTION_PATTERN = OJ_PARAMETER_PATTERN, /**< char[10]: of DE-9IM */

    OJ_OPTION_FLAG,         /**< int: 1 when given */
    OJ_OPTION_TEXT,         /**< const char * */
    OJ_OPTION_TEXT_OR_FILE, /**< the same; @name: what the file holds */
    OJ_OPTION_FILE,         /**< const char *: what the file holds */
    OJ_OPTION_LIST,         /**< const char **, one more each time */
    OJ_OPTION_THREADS,      /**< int64_t, or ALL_CPUS: 0 */
    OJ_OPTION_SECONDS,      /**< double, > 0 */
    OJ_OPTION_BOX,          /**< double[4] */
    OJ_OPTION_BOXES,        /**< const double *, four more each time; the next
                                 member is their count */
    OJ_OPTION_BYTES,        /**< int64_t: "64M", "4G", "100000" */
    OJ_OPTION_GPUS,         /**< uint64_t: "all", "0,2" as bits */
    OJ_OPTION_OP,           /**< enum oj_op, or "window": is_window */
    OJ_OPTION_BACKEND,      /**< const char *: auto or a backend's name */
    OJ_OPTION_REFERENCE     /**< const char *: a reference backend's name may
                                 follow; geos when none does */
};

/** A row of the table. Texts that are not named may be NULL. */
struct oj_option
{
    const char *group;     /**< heading in --help; never NULL */
    const char *name;      /**< without the dash; never NULL */
    const char *arguments; /**< "" for flags */
    const char *help;      /**< never NULL */
    enum oj_option_kind kind;
    size_t offset; /**< of the value in struct oj_command */

    const char *alias;
    const char *choices; /**< words that may follow, as "first|all"; of
                              OJ_OPTION_CHOICE all of them, NULL: arguments */
    int64_t minimum;     /**< OJ_OPTION_COUNT and OJ_OPTION_THREADS */
    int64_t maximum;     /**< the same; 0: none */

    const char *ops;      /**< the joins that take it, as "nearest|dwithin";
                               NULL: all. Given without -op, an option of one
                               join means that join */
    const char *needs;    /**< the option without which it has no meaning */
    const char *once;     /**< what to write in place of a second one */
    const char *not_read; /**< why a join that is read as a dataset has no use
                               for it; NULL: it has */
};

/** Row i, or NULL past the end. */
const struct oj_option *oj_option_at(int i);

/** The place in the table of the option of that name or alias, in any case; -1:
 *  there is none. */
int oj_option_find(const char *name);

/** What can follow an OJ_OPTION_CHOICE: "first|all". */
const char *oj_option_choices(const struct oj_option *option);

/** The word for a value of an OJ_OPTION_CHOICE.  As all of CPLSPrintf(): kept
 *  for a few calls. */
const char *oj_option_choice_word(const struct oj_option *option, int value);

/** 1 when a word of the command line is an option by its form: "-k", "--k". */
int oj_word_is_option(const char *word);

/** The option that a word of the command line ("-k", "--K") is, or NULL. */
const struct oj_option *oj_option_of_word(const char *word);

/** 1 when it can decide what the join side of a join is, and its engine; those
 *  of CRS aside, which are seen in the sides' own. */
int oj_option_is_of_join_side(const struct oj_option *option);

/** How many words it takes. Of OJ_OPTION_REFERENCE 0: one more may follow. */
int oj_option_words(const struct oj_option *option);

/** What to write in place of an option that ogrjoin does not have.
 *  word: as it was given, with its dashes.  Writes what follows "unknown option
 *  WORD": the option that was probably meant, what does the same here where
 *  the word is one of ogr2ogr or of another tool, or nothing but where all
 *  options are listed.  Cut to size bytes. */
void oj_option_hint(const char *word, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
