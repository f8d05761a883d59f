/** The fields that a reader was asked for: what the reader, its batches and the
 *  writer know about them.
 */
#ifndef OJ_LAYER_FIELDS_H
#define OJ_LAYER_FIELDS_H

#include <ogr_api.h>

struct oj_field
{
    int index; /**< in the layer's definition */
    OGRFieldType type;
    OGRFieldSubType subtype;
    int is_skipped; /**< nobody looks at its values, which can be missing */
};

/** A view. */
struct oj_fields
{
    int n;
    const struct oj_field *field; /**< [n] */
    int geometry_field;           /**< < 0: the layer has none */
};

#endif
