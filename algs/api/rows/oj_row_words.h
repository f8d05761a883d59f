/** The words that say which rows a join gives and what they hold: -how, -pick,
 *  -overlap and -geometry of the command, the settings of these names in the
 *  library.
 *
 *   word                       becomes
 *   how right                  enum oj_how
 *   pick max:"a=b"             struct oj_row_pick: greatest value of field a=b
 *   overlap area, percent      the two values in want of struct oj_pair_request
 *   geometry connection        enum oj_write_geometry, and four values in want
 *
 *  Words are read without case. Errors are OJ_ERR_ARG with what to write
 *  instead, and name options with dash before them: "-" for the command, "" for
 *  settings.
 */
#ifndef OJ_ROW_WORDS_H
#define OJ_ROW_WORDS_H

#include "../../../flatten/base/oj_output_row_modes.h"
#include "../../pairs/values/oj_pair_stage.h"
#include "oj_field_kind.h"
#include "oj_plain_value.h"

/** The words of how and geometry, in the order of their enums; oj_choice_read()
 *  reads them. */
#define OJ_HOW_WORDS "left|inner|semi|anti|right|full"
#define OJ_ROW_GEOMETRY_WORDS "input|join|nearest_point|connection|intersection"

/** The words of overlap, of which a list with commas may have several. */
#define OJ_OVERLAP_WORDS "area|length|percent"

/** The words of pick, with the starts of those that name a field. */
#define OJ_PICK_WORDS                                                          \
    "first|nearest|largest_overlap|smallest_area|largest_area|most_similar|"   \
    "max:|min:"

/** Which pair of a row stays. Owner of field; zeroed memory keeps all pairs. */
struct oj_row_pick
{
    enum oj_pick_rule rule;
    char *field;  /**< of the join layer, OJ_PICK_SCORE; else NULL */
    int is_least; /**< 1: the pair with its least value stays */
};

/** Reads a rule of pick. A field may be in double quotes
 *  (oj_compared_fields.h). Whether the rule goes with the join:
 *  oj_option_clash.h. */
OJ_MUST_USE oj_status oj_row_pick_read(const char *dash, const char *rule,
                                       struct oj_row_pick *out,
                                       struct oj_error *err);

/** Fails unless the field has an order that pick can take, as numbers, dates
 * and times have. */
OJ_MUST_USE oj_status oj_row_pick_check_field(
    const char *dash, const struct oj_field_description *field,
    struct oj_error *err);

/** The score (oj_pick.h) of a join feature with this value of the field, which
 *  is NULL, an integer or a real. */
int64_t oj_row_pick_score(const struct oj_row_pick *pick,
                          const struct oj_plain_value *value);

/** Accepts zeroed memory, which it is afterwards. */
void oj_row_pick_free(struct oj_row_pick *pick);

/** Sets want [OJ_N_PAIR_VALUES] of the sizes in a list, "area,length,percent";
 *  empty words are passed over. OJ_ERR_ARG for an unknown word, and for a list
 *  without any. */
OJ_MUST_USE oj_status oj_row_overlap_read(const char *dash, const char *list,
                                          unsigned char *want,
                                          struct oj_error *err);

/** Sets what rows with this geometry need of their pairs. */
void oj_row_geometry_request(enum oj_write_geometry geometry,
                             struct oj_pair_request *request);

#endif
