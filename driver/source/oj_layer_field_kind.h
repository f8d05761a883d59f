/** Describes OGR fields in terms of enums and structs that the rooms without
 * GDAL use. */
#ifndef OJ_LAYER_FIELD_KIND_H
#define OJ_LAYER_FIELD_KIND_H

#include "../../algs/api/rows/oj_field_kind.h"

#include <ogr_api.h>

/** Returns the kind of values that an OGR type stands for. */
static inline enum oj_field_kind oj_layer_field_kind_of(OGRFieldType type,
                                                        OGRFieldSubType subtype)
{
    switch (type)
    {
        case OFTInteger:
            return subtype == OFSTBoolean ? OJ_FIELD_BOOLEAN
                   : subtype == OFSTInt16 ? OJ_FIELD_INT16
                                          : OJ_FIELD_INT32;
        case OFTInteger64:
            return OJ_FIELD_INT64;
        case OFTReal:
            return subtype == OFSTFloat32 ? OJ_FIELD_FLOAT32 : OJ_FIELD_FLOAT64;
        case OFTString:
            return OJ_FIELD_TEXT;
        case OFTBinary:
            return OJ_FIELD_BYTES;
        case OFTDate:
            return OJ_FIELD_DATE;
        case OFTTime:
            return OJ_FIELD_TIME;
        case OFTDateTime:
            return OJ_FIELD_DATETIME;
        case OFTIntegerList:
            return OJ_FIELD_INT32_LIST;
        case OFTInteger64List:
            return OJ_FIELD_INT64_LIST;
        case OFTRealList:
            return OJ_FIELD_FLOAT64_LIST;
        case OFTStringList:
            return OJ_FIELD_TEXT_LIST;
        default:
            return OJ_FIELD_OTHER;
    }
}

static inline enum oj_field_kind oj_layer_field_kind(OGRFieldDefnH field)
{
    return oj_layer_field_kind_of(OGR_Fld_GetType(field),
                                  OGR_Fld_GetSubType(field));
}

/** Describes a field; the name is borrowed from the field. */
static inline struct oj_field_description
oj_layer_field_describe(OGRFieldDefnH field)
{
    struct oj_field_description description = {OGR_Fld_GetNameRef(field),
                                               oj_layer_field_kind(field),
                                               OGR_Fld_IsNullable(field)};
    return description;
}

#endif
