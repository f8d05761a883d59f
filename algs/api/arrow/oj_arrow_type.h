/** How the values of an Arrow type are stored, by its format string ("..": any
 *  parameters). Source:
 *  https://arrow.apache.org/docs/format/CDataInterface.html.
 *
 *   format             storage              size
 *   n                  nothing
 *   b                  bits
 *   c C s S i I l L    fixed                bytes of a value (1 to 8)
 *   e f g              fixed                bytes of a value (2, 4, 8)
 *   td.. tt..          fixed                bytes of a value (4 or 8)
 *   ts.. tD..          fixed                bytes of a value (8)
 *   ti..               fixed                bytes of a value (4, 8 or 16)
 *   d:..               fixed                bytes of a value (at most 32)
 *   w:N                fixed                bytes of a value (N)
 *   u z                bytes                bytes of an offset (4)
 *   U Z                bytes                bytes of an offset (8)
 *   vu vz              byte views           bytes of a view (16)
 *   +l +m              lists                bytes of an offset (4)
 *   +L                 lists                bytes of an offset (8)
 *   +vl +vL            list views           bytes of an offset (4, 8)
 *   +w:N               fixed lists          values of a list (N)
 *   +s                 structs
 *   +r                 runs of equal values
 */
#ifndef OJ_ARROW_TYPE_H
#define OJ_ARROW_TYPE_H

#include "arrow_abi.h"

enum oj_arrow_storage
{
    OJ_STORES_NOTHING, /**< the null type, which has no buffers */
    OJ_STORES_BITS,
    OJ_STORES_FIXED,
    OJ_STORES_BYTES,
    OJ_STORES_BYTE_VIEWS,
    OJ_STORES_LISTS,
    OJ_STORES_LIST_VIEWS,
    OJ_STORES_FIXED_LISTS,
    OJ_STORES_STRUCTS,
    OJ_STORES_RUNS
};

struct oj_arrow_type
{
    enum oj_arrow_storage storage;
    int64_t size; /**< meaning by storage: last column of the table at the top
                       of this file */
};

/** Parses the format of a type; a dictionary is not part of it. Returns 0 for
 * types that are not supported, such as unions. */
int oj_arrow_type_read(const char *format, struct oj_arrow_type *out);

/** Returns the type of a schema. Precondition: oj_arrow_type_read() accepts its
 * format. */
struct oj_arrow_type oj_arrow_type_of(const struct ArrowSchema *schema);

#endif
