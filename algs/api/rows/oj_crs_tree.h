/** JSON or well-known text (WKT) as a tree, for texts that describe a CRS.
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
    OJ_CRS_NODE_TEXT, /**< in quotes */
    OJ_CRS_NODE_NUMBER,
    OJ_CRS_NODE_WORD, /**< JSON's true, false and null; WKT's east and the
                           like, and dates */
    OJ_CRS_NODE_LIST, /**< a JSON array */
    OJ_CRS_NODE_GROUP /**< a JSON object; a keyword of WKT with arguments */
};

struct oj_crs_node
{
    enum oj_crs_node_kind kind;
    const char *name; /**< [n_name] the key of a member of an object, as
                           written; the keyword of a group of WKT */
    const char *text; /**< [n_text] as written, without quotes; of a group or a
                           list all of it, brackets included */
    int32_t n_name, n_text;
    double number;
    int32_t first, next; /**< the first child, the next sibling; -1: none */
};

/** Owner of node; borrows the text. Zeroed memory is a valid empty one. Node 0
 *  is the root; several groups of WKT with commas between them, as ESRI writes
 *  compound CRS, are siblings of it. */
struct oj_crs_tree
{
    int is_json;
    struct oj_crs_node *node; /**< [n] */
    int64_t n, capacity;
};

enum
{
    OJ_CRS_TREE_DEPTH = 64,     /**< of groups in groups; deeper is an error */
    OJ_CRS_TREE_BYTES = 1 << 22 /**< longer is an error */
};

/** Reads all of text, JSON where it begins with {, [ or a quote, else WKT.
 *  whose: whose text it is, for errors. OJ_ERR_DATA: broken. Linear. */
OJ_MUST_USE oj_status oj_crs_tree_read(const char *text, const char *whose,
                                       struct oj_crs_tree *out,
                                       struct oj_error *err);

/** The first child of node (-1: none has any) that is called name, or -1.
 *  Keywords of WKT are compared without case; name may be several, as
 *  "DATUM|GEODETICDATUM". */
int32_t oj_crs_tree_find(const struct oj_crs_tree *tree, int32_t node,
                         const char *name);

/** 1 when node is called one of the names. */
int oj_crs_tree_is(const struct oj_crs_tree *tree, int32_t node,
                   const char *names);

/** Child i of node, whatever its name, or -1. */
int32_t oj_crs_tree_child(const struct oj_crs_tree *tree, int32_t node, int i);

/** Copies a text, a number or a word as it is written, without escapes, to out
 *  [size], size > 0; cut before the code point that has no room, and control
 *  characters become blanks. "" for others and for -1. */
void oj_crs_tree_copy(const struct oj_crs_tree *tree, int32_t node, char *out,
                      size_t size);

/** The number of a node; NaN for other nodes and for -1. */
double oj_crs_tree_number(const struct oj_crs_tree *tree, int32_t node);

/** Accepts zeroed memory. */
void oj_crs_tree_free(struct oj_crs_tree *tree);

#endif
