#include "oj_attributes.h"
#include "../base/oj_array.h"

void oj_attributes_clear(struct oj_attributes *attributes)
{
    oj_slice_free(&attributes->slice);
    for (int64_t i = 0; i < attributes->n_features; i++)
        OGR_F_Destroy(attributes->feature[i]);
    attributes->n_features = 0;
}

void oj_attributes_free(struct oj_attributes *attributes)
{
    if (attributes == NULL)
        return;
    oj_attributes_clear(attributes);
    oj_free(attributes->feature);
    oj_free(attributes);
}

oj_status oj_attributes_push(struct oj_attributes *attributes,
                             OGRFeatureH feature, struct oj_error *err)
{
    int64_t n = attributes->n_features;
    OJ_ROOM(attributes->feature, n, n + 1, attributes->cap_features, err);
    attributes->feature[n] = feature;
    attributes->n_features = n + 1;
    return OJ_OK;
}

OGRGeometryH oj_attributes_geometry(const struct oj_attributes *attributes,
                                    int64_t row)
{
    return OGR_F_GetGeometryRef(attributes->feature[row]);
}

void oj_attributes_value(const struct oj_attributes *attributes, int field,
                         int64_t row, struct oj_value *value)
{
    const struct oj_slice *slice = &attributes->slice;
    if (slice->chunk != NULL)
    {
        oj_column_value(&slice->chunk->column[OJ_CHUNK_FIELDS + field],
                        slice->first + row, value);
        return;
    }
    value->raw = *OGR_F_GetRawFieldRef(attributes->feature[row],
                                       attributes->fields->field[field].index);
    value->n_text = -1;
}
