/** How the values of an Arrow type are stored, by its format string. Source:
 *  https://arrow.apache.org/docs/format/CDataInterface.html.
 *
 *   format       storage                    size
 *   n            nothing
 *   b            bits
 *   i, tdD, d:   fixed                      bytes of a value
 *   u, Z         bytes                      bytes of an offset
 *   vu, vz       byte views                 bytes of a view
 *   +l, +L, +m   lists                      bytes of an offset
 *   +vl, +vL     list views                 bytes of an offset
 *   +w:3         fixed lists                values of a list
 *   +s           structs
 *   +r           runs of equal values
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
