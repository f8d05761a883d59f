/** The table of the options of a join, one row each. Options that only some
 *  joins take are generated from the parameters of joins (oj_relation.h).
 *
 *  A row has the option's name, kind of value, offset in struct oj_command, the
 *  joins that take it, the option that it requires, and its help. The parser,
 *  the checks, --help, completion, dataset names, "gdal vector join" and the
 *  man page are made from the table.
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
    /* The first four have the values of enum oj_parameter_kind. */
    /** double; its unit is stored in struct oj_command.unit */
    OJ_OPTION_DISTANCE = OJ_PARAMETER_DISTANCE,
    OJ_OPTION_COUNT = OJ_PARAMETER_COUNT,   /**< int64_t, minimum to maximum */
    OJ_OPTION_CHOICE = OJ_PARAMETER_CHOICE, /**< int: index in the choices */
    OJ_OPTION_PATTERN = OJ_PARAMETER_PATTERN, /**< char[10]: DE-9IM pattern */

    OJ_OPTION_FLAG, /**< int: 1 if given */
    OJ_OPTION_TEXT, /**< const char * */
    /** const char *; after "@" the name of a file with the text */
    OJ_OPTION_TEXT_OR_FILE,
    OJ_OPTION_FILE,    /**< const char *: content of the named file */
    OJ_OPTION_LIST,    /**< const char **: one more entry per use */
    OJ_OPTION_THREADS, /**< int64_t; the word ALL_CPUS is read as 0 */
    OJ_OPTION_SECONDS, /**< double, > 0: "1.5", "1s", "200ms", "2min" */
    OJ_OPTION_BOX,     /**< double[4] */
    /** const double *: each use adds 4 numbers; the number of boxes is the next
     *  member of struct oj_command */
    OJ_OPTION_BOXES,
    OJ_OPTION_BYTES,   /**< int64_t: "64M", "4G", "100000" */
    OJ_OPTION_GPUS,    /**< uint64_t: one bit per device; "all", "0,2" */
    OJ_OPTION_OP,      /**< enum oj_op; "window" sets is_window */
    OJ_OPTION_BACKEND, /**< const char *: "auto" or a backend's name */
    /** const char *; optional argument: name of a reference backend, by default
     *  the reference of the join (oj_relation_reference_backend()) */
    OJ_OPTION_REFERENCE,
    /** const char *; optional argument: one of the choices, by default "" */
    OJ_OPTION_FLAG_OR_WORD
};

/** A row of the table. Texts may be NULL unless stated otherwise. */
struct oj_option
{
    const char *group;     /**< heading in --help; never NULL */
    const char *name;      /**< without the dash; never NULL */
    const char *arguments; /**< "" for flags */
    const char *help;      /**< never NULL */
    enum oj_option_kind kind;
    size_t offset; /**< offset of the value in struct oj_command */

    const char *alias;
    /** possible arguments, "first|all"; an OJ_OPTION_CHOICE accepts only these.
     *  NULL if `arguments` lists them */
    const char *choices;
    /** smallest value, if kind is OJ_OPTION_COUNT or OJ_OPTION_THREADS */
    int64_t minimum;
    /** largest value, if kind is OJ_OPTION_COUNT or OJ_OPTION_THREADS; 0 if
     *  there is no limit */
    int64_t maximum;

    /** joins that take the option, "nearest|dwithin"; NULL if all joins take
     *  it. If -op is missing, an option that only one join takes selects that
     *  join */
    const char *ops;
    const char *needs; /**< option that must be given, too */
    /** advice in the error message if the option is given twice; NULL stands
     *  for "leave one out" */
    const char *once;
    /** reason why a dataset (JOIN:) does not accept the option, or NULL */
    const char *not_read;
};

/** Returns row i, or NULL past the end of the table. */
const struct oj_option *oj_option_at(int i);

/** Returns the index of the option with this name or alias, ignoring case, or
 *  -1 if there is none. */
int oj_option_find(const char *name);

/** Returns the possible arguments of an OJ_OPTION_CHOICE: "first|all". */
const char *oj_option_choices(const struct oj_option *option);

/** Returns the argument that stands for a value of an OJ_OPTION_CHOICE. From
 *  CPLSPrintf(): overwritten after a few more calls. */
const char *oj_option_choice_word(const struct oj_option *option, int value);

/** Returns 1 if a word has the form of an option: "-k", "--k". */
int oj_word_is_option(const char *word);

/** Returns the option that an argument names ("-k", "--K"), or NULL. */
const struct oj_option *oj_option_of_word(const char *word);

/** Returns 1 if the option can change the join side or the engine, so that a
 *  cached join side depends on it. Returns 0 for options of the CRS, because
 *  the cache compares the CRS themselves. */
int oj_option_is_of_join_side(const struct oj_option *option);

/** Returns 1 for options of the join and of the CRS: they decide which pairs
 *  two given layers have. */
int oj_option_is_of_pairs(const struct oj_option *option);

/** Returns the number of arguments; 0 for OJ_OPTION_REFERENCE and
 *  OJ_OPTION_FLAG_OR_WORD, although one optional argument may follow. */
int oj_option_count_words(const struct oj_option *option);

/** Returns 1 if word, with its dashes, is a general option of GDAL's programs,
 *  such as --config. */
int oj_option_is_of_gdal(const char *word);

/** Writes the advice that follows "unknown option WORD" in an error to text:
 *  the option with a similar name, the equivalent of an option of ogr2ogr or
 *  another tool, or a reference to --help. word has its dashes. The advice is
 *  cut to size bytes. */
void oj_option_hint(const char *word, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
