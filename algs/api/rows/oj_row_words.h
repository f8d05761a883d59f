/** Parses the options that select the rows of a join and their content: -how,
 *  -pick, -overlap and -geometry of the command, and the library's settings of
 *  these names.
 *
 *   word                       becomes
 *   how right                  enum oj_how
 *   pick max:"a=b"             struct oj_row_pick: greatest value of field a=b
 *   overlap area, percent      the two values in want of struct oj_pair_request
 *   geometry connection        enum oj_write_geometry, and four values in want
 *
 *  Case does not matter. Errors are OJ_ERR_ARG with the accepted words; dash
 *  precedes option names in messages: "-" for the command, "" for settings.
 */
#ifndef OJ_ROW_WORDS_H
#define OJ_ROW_WORDS_H

#include "../../../flatten/base/oj_output_row_modes.h"
#include "../../pairs/values/oj_one_to_one.h"
#include "../../pairs/values/oj_pair_stage.h"
#include "oj_field_kind.h"
#include "oj_plain_value.h"

/** Words of how and geometry, in the order of their enums, for
 * oj_choice_read(). */
#define OJ_HOW_WORDS "left|inner|semi|anti|right|full"
#define OJ_ROW_GEOMETRY_WORDS "input|join|nearest_point|connection|intersection"

/** Words of overlap, which is a comma-separated list of them. */
#define OJ_OVERLAP_WORDS "area|length|percent|iou|input_area|join_area"

/** Words of nlt, which keeps the parts of one kind of an intersection; index:
 * argument of oj_row_request_kept_parts(). */
#define OJ_ROW_PART_WORDS "POLYGON|LINESTRING|POINT"

/** The words of one_to_one, in the order of enum oj_one_to_one_rule after the
 * first. */
#define OJ_ONE_TO_ONE_WORDS "greedy|best"

/** Joins by distance. Only their pairs have a place on a line (-along_field and
 * others). */
#define OJ_LINE_OPS "nearest|dwithin"

/** Words of along, in the order of enum oj_along_by. */
#define OJ_ALONG_WORDS "length|m"

/** found: bits of enum oj_m_found for the join side. Fails with OJ_ERR_ARG if
 * it has lines or rings, but none of their vertices has an M value. side: name
 * of the join side in the message. */
OJ_MUST_USE oj_status oj_row_along_check_m(const char *dash, const char *side,
                                           unsigned found,
                                           struct oj_error *err);

/** Words of pick; max: and min: are followed by the name of a field. */
#define OJ_PICK_WORDS                                                          \
    "first|nearest|largest_overlap|smallest_area|largest_area|most_similar|"   \
    "max:|min:"

/** The rule that picks one pair per row. Owns field; zeroed memory keeps all
 * pairs. */
struct oj_row_pick
{
    enum oj_pick_rule rule;
    char *field;  /**< for OJ_PICK_SCORE: field of the join layer; otherwise
                       NULL */
    int is_least; /**< 1: picks the smallest value of field; 0: the greatest */
};

/** Parses the rule of pick. A field may be in double quotes
 * (oj_compared_fields.h). oj_option_clash.h checks that the rule fits the join.
 */
OJ_MUST_USE oj_status oj_row_pick_read(const char *dash, const char *rule,
                                       struct oj_row_pick *out,
                                       struct oj_error *err);

/** Fails with OJ_ERR_ARG unless pick can order values of the field's kind:
 * numbers, dates, times. */
OJ_MUST_USE oj_status oj_row_pick_check_field(
    const char *dash, const struct oj_field_description *field,
    struct oj_error *err);

/** Converts the value of a join feature's field (NULL, an integer or a real) to
 * a score (oj_pick.h). */
int64_t oj_row_pick_score(const struct oj_row_pick *pick,
                          const struct oj_plain_value *value);

/** Returns the rule that a word of one_to_one stands for; "" is greedy, and
 * NULL is none. */
enum oj_one_to_one_rule oj_row_one_to_one_rule(const char *word);

/** Frees field and zeroes *pick, which may be zeroed already. */
void oj_row_pick_free(struct oj_row_pick *pick);

enum
{
    OJ_N_OVERLAP_WORDS = 6
};

/** The output column and the pair value for a word of overlap. */
struct oj_overlap_column
{
    const char *name;
    enum oj_pair_value value;
};
extern const struct oj_overlap_column oj_overlap_columns[OJ_N_OVERLAP_WORDS];

/** Sets want[v] to 1 for each pair value v that is named by a list such as
 * "area,length,percent"; want has OJ_N_PAIR_VALUES elements. Empty words are
 * skipped. Fails with OJ_ERR_ARG for an unknown word or an empty list. */
OJ_MUST_USE oj_status oj_row_overlap_read(const char *dash, const char *list,
                                          unsigned char *want,
                                          struct oj_error *err);

/** Requests that intersections keep only the parts of one kind, word number
 * `word` of OJ_ROW_PART_WORDS, and that pairs without such parts are dropped.
 */
void oj_row_request_kept_parts(int word, struct oj_pair_request *request);

/** Requests the values of pairs that are needed to write this geometry. */
void oj_row_request_geometry_values(enum oj_write_geometry geometry,
                                    struct oj_pair_request *request);

#endif
