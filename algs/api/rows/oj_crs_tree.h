/** Parses JSON or well-known text (WKT), in which a CRS is described, into a
 *  tree.
 *
 *   {"type": "x", "id": {"code": 2263}}     PROJCRS["x", ID["EPSG", 2263]]
 *
 *   group                                   group PROJCRS
 *   |-- text   type  x                      |-- text   x
 *   '-- group  id                           '-- group  ID
 *       '-- number code  2263                   |-- text   EPSG
 *                                               '-- number 2263
 *
 *  Sources: RFC 8259 (JSON); OGC 18-010r11, section 6 (WKT).
 */
#ifndef OJ_CRS_TREE_H
#define OJ_CRS_TREE_H

#include "../../../flatten/base/oj_status.h"

#include <stddef.h>
#include <stdint.h>

enum oj_crs_node_kind
{
    OJ_CRS_NODE_TEXT, /**< a text in quotes */
    OJ_CRS_NODE_NUMBER,
    OJ_CRS_NODE_WORD, /**< JSON: true, false, null; WKT: dates, and words such
                           as east */
    OJ_CRS_NODE_LIST, /**< a JSON array */
    OJ_CRS_NODE_GROUP /**< JSON object; WKT keyword with arguments */
};

struct oj_crs_node
{
    enum oj_crs_node_kind kind;
    const char *name; /**< [n_name] JSON: key of an object member, with escapes;
                           WKT: keyword of a group */
    const char *text; /**< [n_text] as written, without quotes; for a group or
                           list with its brackets */
    int32_t n_name, n_text;
    double number;
    int32_t first, next; /**< index of the first child and of the next sibling;
                              -1: none */
};

/** The nodes of a text. Owns node; the text is borrowed. Zeroed memory is a
 * valid empty value. Node 0 is the root. If WKT consists of several groups with
 * commas between them, as in compound CRS of ESRI, the other groups are
 * siblings of node 0. */
struct oj_crs_tree
{
    int is_json;
    struct oj_crs_node *node; /**< [n] */
    int64_t n, capacity;
};

enum
{
    OJ_CRS_TREE_DEPTH = 64,     /**< maximum nesting of groups; more is an
                                     error */
    OJ_CRS_TREE_BYTES = 1 << 22 /**< maximum bytes of a text; more is an
                                     error */
};

/** Parses a whole text: JSON if it begins with {, [ or a quote, otherwise WKT.
 * whose: origin of the text, for messages. Fails with OJ_ERR_DATA if it is
 * invalid. O(length). */
OJ_MUST_USE oj_status oj_crs_tree_read(const char *text, const char *whose,
                                       struct oj_crs_tree *out,
                                       struct oj_error *err);

/** Returns the first child of node with this name, or -1 if there is none or
 * node is -1. name may be a list, "DATUM|GEODETICDATUM". WKT keywords are
 * compared ignoring case. */
int32_t oj_crs_tree_find(const struct oj_crs_tree *tree, int32_t node,
                         const char *name);

/** Returns 1 if the name of node is in the list names, "A|B". */
int oj_crs_tree_has_name(const struct oj_crs_tree *tree, int32_t node,
                         const char *names);

/** Returns child i of node, or -1 if there is none. */
int32_t oj_crs_tree_child(const struct oj_crs_tree *tree, int32_t node, int i);

/** Copies a text, number or word to out [size], size > 0, with escapes
 * resolved. If it does not fit, it is truncated at a code point. Control
 * characters become blanks. For other nodes and for -1, out becomes "". */
void oj_crs_tree_copy_text(const struct oj_crs_tree *tree, int32_t node,
                           char *out, size_t size);

/** Returns the value of a number node, and NaN for other nodes and for -1. */
double oj_crs_tree_number(const struct oj_crs_tree *tree, int32_t node);

/** tree may be zeroed. */
void oj_crs_tree_free(struct oj_crs_tree *tree);

#endif
