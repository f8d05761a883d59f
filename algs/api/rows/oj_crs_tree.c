#include "oj_crs_tree.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_number.h"
#include "../../../flatten/base/oj_utf8.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

struct crs_tree_reader
{
    const char *text, *at, *whose;
    struct oj_crs_tree *tree;
};

static oj_status fail_broken(const struct crs_tree_reader *r, const char *what,
                             struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_DATA,
                   "%s is broken %s: %s at byte %lld; give its whole PROJJSON "
                   "or WKT, or AUTHORITY:CODE",
                   r->whose, r->tree->is_json ? "JSON" : "WKT", what,
                   (long long)(r->at - r->text) + 1);
}

static oj_status add_node(struct crs_tree_reader *r, enum oj_crs_node_kind kind,
                          int32_t *added, struct oj_error *err)
{
    struct oj_crs_tree *tree = r->tree;
    OJ_ROOM(tree->node, tree->n, tree->n + 1, tree->capacity, err);
    tree->node[tree->n] = (struct oj_crs_node){
        .kind = kind, .number = (double)NAN, .first = -1, .next = -1};
    *added = (int32_t)tree->n++;
    return OJ_OK;
}

/* Links a node behind *last, the last child of parent, or as its first child.
 */
static void link_node(struct oj_crs_tree *tree, int32_t parent, int32_t *last,
                      int32_t node)
{
    if (*last >= 0)
        tree->node[*last].next = node;
    else if (parent >= 0)
        tree->node[parent].first = node;
    *last = node;
}

static void skip_white_space(struct crs_tree_reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

/* Sets the end of a node's text to the current position. */
static void end_node(struct crs_tree_reader *r, int32_t node)
{
    struct oj_crs_node *n = &r->tree->node[node];
    n->n_text = (int32_t)(r->at - n->text);
}

/* Reads a number that is followed by a character of `ends`, white space or the
 * end of the text. Returns 0 if there is none. Hexadecimal numbers and infinity
 * are not accepted. */
static int read_number(struct crs_tree_reader *r, const char *ends,
                       double *number)
{
    char *end;
    size_t n = strspn(r->at, "+-.0123456789eE");
    if (n == 0 || (r->at[n] != '\0' && strchr(ends, r->at[n]) == NULL &&
                   !isspace((unsigned char)r->at[n])))
        return 0;
    *number = oj_number_read(r->at, &end);
    if (end != r->at + n || !isfinite(*number))
        return 0;
    r->at = end;
    return 1;
}

/* Adds a node for the next value. Its kind is OJ_CRS_NODE_WORD until the caller
 * has read more. depth: number of brackets around the value. */
static oj_status begin_value(struct crs_tree_reader *r, int depth,
                             int32_t *node, struct oj_error *err)
{
    skip_white_space(r);
    if (depth > OJ_CRS_TREE_DEPTH)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s has more than %d brackets in one another at byte "
                       "%lld: give AUTHORITY:CODE in place of this %s",
                       r->whose, OJ_CRS_TREE_DEPTH,
                       (long long)(r->at - r->text) + 1,
                       r->tree->is_json ? "JSON" : "WKT");
    OJ_TRY(add_node(r, OJ_CRS_NODE_WORD, node, err));
    r->tree->node[*node].text = r->at;
    return OJ_OK;
}

/* ---- JSON ---------------------------------------------------------------- */

/* Skips a string and sets *text and *n to its content. */
static oj_status skip_json_string(struct crs_tree_reader *r, const char **text,
                                  int32_t *n, struct oj_error *err)
{
    r->at++;
    *text = r->at;
    while (*r->at != '"')
    {
        if ((unsigned char)*r->at < 0x20)
            return fail_broken(r,
                               "a string that is not closed, or "
                               "has a control character",
                               err);
        if (*r->at == '\\')
        {
            r->at++;
            if (*r->at == '\0' || strchr("\"\\/bfnrtu", *r->at) == NULL)
                return fail_broken(r, "an unknown escape", err);
        }
        r->at++;
    }
    *n = (int32_t)(r->at - *text);
    r->at++;
    return OJ_OK;
}

static oj_status read_json_value(struct crs_tree_reader *r, int depth,
                                 int32_t *added, struct oj_error *err);

/* Sets *key [*n_key] to the key of an object member, and skips its colon. */
static oj_status read_json_key(struct crs_tree_reader *r, const char **key,
                               int32_t *n_key, struct oj_error *err)
{
    if (*r->at != '"')
        return fail_broken(r, "the name of a member is missing", err);
    OJ_TRY(skip_json_string(r, key, n_key, err));
    skip_white_space(r);
    if (*r->at != ':')
        return fail_broken(r, "a colon is missing", err);
    r->at++;
    return OJ_OK;
}

/* Reads an object or an array. */
static oj_status read_json_children(struct crs_tree_reader *r, int depth,
                                    int32_t parent, struct oj_error *err)
{
    const int is_object = *r->at == '{';
    const char end = is_object ? '}' : ']';
    int32_t last = -1;
    r->at++;
    skip_white_space(r);
    if (*r->at == end)
    {
        r->at++;
        return OJ_OK;
    }
    for (;;)
    {
        const char *key = NULL;
        int32_t n_key = 0, child;
        skip_white_space(r);
        if (is_object)
            OJ_TRY(read_json_key(r, &key, &n_key, err));
        OJ_TRY(read_json_value(r, depth + 1, &child, err));
        r->tree->node[child].name = key;
        r->tree->node[child].n_name = n_key;
        link_node(r->tree, parent, &last, child);
        skip_white_space(r);
        if (*r->at == end)
            break;
        if (*r->at != ',')
            return fail_broken(r, "a comma is missing", err);
        r->at++;
    }
    r->at++;
    return OJ_OK;
}

static oj_status read_json_word(struct crs_tree_reader *r, struct oj_error *err)
{
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++)
    {
        size_t n = strlen(words[i]);
        if (strncmp(r->at, words[i], n) == 0)
        {
            r->at += n;
            return OJ_OK;
        }
    }
    return fail_broken(r, "a value is missing", err);
}

static oj_status read_json_value(struct crs_tree_reader *r, int depth,
                                 int32_t *added, struct oj_error *err)
{
    int32_t node;
    const char *text, *from;
    double number = (double)NAN;
    OJ_TRY(begin_value(r, depth, &node, err));
    from = r->at;
    *added = node;
    if (*from == '"')
    {
        int32_t n;
        OJ_TRY(skip_json_string(r, &text, &n, err));
        r->tree->node[node].kind = OJ_CRS_NODE_TEXT;
        r->tree->node[node].text = text;
        r->tree->node[node].n_text = n;
        return OJ_OK;
    }
    if (*from == '{' || *from == '[')
    {
        r->tree->node[node].kind =
            *from == '{' ? OJ_CRS_NODE_GROUP : OJ_CRS_NODE_LIST;
        OJ_TRY(read_json_children(r, depth, node, err));
    }
    else if (*from != '+' && read_number(r, ",]}", &number))
    {
        r->tree->node[node].kind = OJ_CRS_NODE_NUMBER;
        r->tree->node[node].number = number;
    }
    else
        OJ_TRY(read_json_word(r, err));
    end_node(r, node);
    return OJ_OK;
}

/* ---- WKT ----------------------------------------------------------------- */

static oj_status read_wkt_string(struct crs_tree_reader *r, int32_t node,
                                 struct oj_error *err)
{
    r->tree->node[node].kind = OJ_CRS_NODE_TEXT;
    r->tree->node[node].text = ++r->at;
    for (; *r->at != '"' || r->at[1] == '"'; r->at++)
    {
        if (*r->at == '\0')
            return fail_broken(r, "a text that is not closed", err);
        r->at += *r->at == '"';
    }
    end_node(r, node);
    r->at++;
    return OJ_OK;
}

static oj_status read_wkt_value(struct crs_tree_reader *r, int depth,
                                int32_t *added, struct oj_error *err);

/* Reads the arguments of KEYWORD[...] or KEYWORD(...), starting at the bracket.
 */
static oj_status read_wkt_arguments(struct crs_tree_reader *r, int depth,
                                    int32_t parent, struct oj_error *err)
{
    const char end = *r->at == '[' ? ']' : ')';
    int32_t last = -1;
    do
    {
        int32_t child;
        r->at++;
        OJ_TRY(read_wkt_value(r, depth + 1, &child, err));
        link_node(r->tree, parent, &last, child);
        skip_white_space(r);
    } while (*r->at == ',');
    if (*r->at != end)
        return fail_broken(r, "a comma or a closing bracket is missing", err);
    r->at++;
    return OJ_OK;
}

static oj_status read_wkt_value(struct crs_tree_reader *r, int depth,
                                int32_t *added, struct oj_error *err)
{
    int32_t node;
    const char *from;
    double number = (double)NAN;
    OJ_TRY(begin_value(r, depth, &node, err));
    from = r->at;
    *added = node;
    if (*from == '"')
        return read_wkt_string(r, node, err);
    if (read_number(r, ",])", &number))
    {
        r->tree->node[node].kind = OJ_CRS_NODE_NUMBER;
        r->tree->node[node].number = number;
        end_node(r, node);
        return OJ_OK;
    }
    r->at += strcspn(r->at, " \t\r\n,\"[]()");
    end_node(r, node);
    if (r->at == from)
        return fail_broken(r, "a value is missing", err);
    skip_white_space(r);
    if (*r->at != '[' && *r->at != '(')
        return OJ_OK;
    r->tree->node[node].kind = OJ_CRS_NODE_GROUP;
    r->tree->node[node].name = from;
    r->tree->node[node].n_name = r->tree->node[node].n_text;
    OJ_TRY(read_wkt_arguments(r, depth, node, err));
    end_node(r, node);
    return OJ_OK;
}

/* ---- whole texts --------------------------------------------------------- */

static oj_status read_whole_text(struct crs_tree_reader *r,
                                 struct oj_error *err)
{
    int32_t last = -1, root;
    if (strlen(r->text) > OJ_CRS_TREE_BYTES)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s is longer than the %d bytes that a CRS may have: "
                       "give AUTHORITY:CODE in its place",
                       r->whose, OJ_CRS_TREE_BYTES);
    skip_white_space(r);
    r->tree->is_json = *r->at != '\0' && strchr("{[\"", *r->at) != NULL;
    if (r->tree->is_json)
        OJ_TRY(read_json_value(r, 0, &root, err));
    else
    {
        OJ_TRY(read_wkt_value(r, 0, &root, err));
        for (skip_white_space(r); *r->at == ','; skip_white_space(r))
        {
            link_node(r->tree, -1, &last, root);
            r->at++;
            OJ_TRY(read_wkt_value(r, 0, &root, err));
        }
        link_node(r->tree, -1, &last, root);
    }
    skip_white_space(r);
    return *r->at == '\0' ? OJ_OK : fail_broken(r, "more text", err);
}

oj_status oj_crs_tree_read(const char *text, const char *whose,
                           struct oj_crs_tree *out, struct oj_error *err)
{
    struct oj_crs_tree tree = {0};
    struct crs_tree_reader r = {text, text, whose, &tree};
    oj_status status = read_whole_text(&r, err);
    if (status != OJ_OK)
    {
        oj_crs_tree_free(&tree);
        return status;
    }
    *out = tree;
    return OJ_OK;
}

void oj_crs_tree_free(struct oj_crs_tree *tree)
{
    oj_free(tree->node);
    *tree = (struct oj_crs_tree){0};
}

/* ---- access to nodes ----------------------------------------------------- */

int oj_crs_tree_has_name(const struct oj_crs_tree *tree, int32_t node,
                         const char *names)
{
    const struct oj_crs_node *n;
    if (node < 0)
        return 0;
    n = &tree->node[node];
    while (n->name != NULL)
    {
        size_t length = strcspn(names, "|");
        if ((size_t)n->n_name == length &&
            (tree->is_json ? strncmp(n->name, names, length)
                           : strncasecmp(n->name, names, length)) == 0)
            return 1;
        if (names[length] == '\0')
            return 0;
        names += length + 1;
    }
    return 0;
}

int32_t oj_crs_tree_find(const struct oj_crs_tree *tree, int32_t node,
                         const char *name)
{
    int32_t child = node >= 0 ? tree->node[node].first : -1;
    while (child >= 0 && !oj_crs_tree_has_name(tree, child, name))
        child = tree->node[child].next;
    return child;
}

int32_t oj_crs_tree_child(const struct oj_crs_tree *tree, int32_t node, int i)
{
    int32_t child = node >= 0 ? tree->node[node].first : -1;
    while (child >= 0 && i-- > 0)
        child = tree->node[child].next;
    return child;
}

double oj_crs_tree_number(const struct oj_crs_tree *tree, int32_t node)
{
    return node >= 0 ? tree->node[node].number : (double)NAN;
}

/* ---- texts with escapes resolved ----------------------------------------- */

static uint32_t read_hex4(const char *digits)
{
    uint32_t code = 0;
    for (int i = 0; i < 4; i++)
    {
        int c = tolower((unsigned char)digits[i]);
        if (!isxdigit(c))
            return ' ';
        code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return code;
}

/* Returns the code point of the escape after a backslash, and sets *at to the
 * position after the escape. */
static uint32_t read_json_escape(const char **at, const char *end)
{
    uint32_t code, low;
    if (**at != 'u')
    {
        char c = *(*at)++;
        return strchr("bfnrt", c) != NULL ? ' ' : (unsigned char)c;
    }
    ++*at;
    if (end - *at < 4)
    {
        *at = end;
        return ' ';
    }
    code = read_hex4(*at);
    *at += 4;
    if (code < 0xd800 || code >= 0xe000)
        return code;
    if (code >= 0xdc00 || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return '?';
    low = read_hex4(*at + 2);
    if (low < 0xdc00 || low >= 0xe000)
        return '?';
    *at += 6;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* Returns the next code point of a text and advances *at; '?' for invalid
 * UTF-8. */
static uint32_t next_code_point(const struct oj_crs_tree *tree, const char **at,
                                const char *end)
{
    uint32_t code = '?';
    int n;
    if (**at == '\\' && tree->is_json)
    {
        ++*at;
        return read_json_escape(at, end);
    }
    if (**at == '"') /* WKT doubles quotes within a text: skip the second. (JSON
                        has no such quotes.) */
        ++*at;
    n = *at < end ? oj_utf8_decode((const unsigned char *)*at, end - *at, &code)
                  : 0;
    *at += n > 0 ? n : *at < end;
    return code;
}

/* Writes a code point as UTF-8; returns the number of bytes, at most 4. */
static size_t encode_utf8(uint32_t code, char *out)
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[n] | code);
    return n;
}

void oj_crs_tree_copy_text(const struct oj_crs_tree *tree, int32_t node,
                           char *out, size_t size)
{
    const struct oj_crs_node *n = node >= 0 ? &tree->node[node] : NULL;
    const char *at = n != NULL ? n->text : "";
    const char *end =
        n != NULL && n->kind <= OJ_CRS_NODE_WORD ? at + n->n_text : at;
    size_t used = 0, length;
    char bytes[4];
    while (at < end)
    {
        uint32_t code = next_code_point(tree, &at, end);
        if (code < 0x20 || code == 0x7f)
            code = ' ';
        length = encode_utf8(code, bytes);
        if (used + length >= size)
            break;
        memcpy(out + used, bytes, length);
        used += length;
    }
    out[used] = '\0';
}
