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

int oj_attributes_reals(const struct oj_attributes *attributes, int field,
                        int64_t first, int64_t n, const int32_t *order,
                        double *value, uint8_t *is_null, int *any_null)
{
    const struct oj_slice *slice = &attributes->slice;
    const struct oj_column_view *column;
    const double *from;
    if (slice->chunk == NULL)
        return 0;
    column = &slice->chunk->column[OJ_CHUNK_FIELDS + field];
    if (column->format != 'g')
        return 0;
    from = (const double *)column->values + column->first + slice->first;
    *any_null = column->bits != NULL;
    for (int64_t i = 0; i < n; i++)
        value[i] = from[order != NULL ? order[first + i] : first + i];
    for (int64_t i = 0; *any_null && i < n; i++)
        is_null[i] = !oj_column_has(
            column,
            slice->first + (order != NULL ? order[first + i] : first + i));
    return 1;
}
