#include "oj_attributes.h"
#include "../base/oj_array.h"
#include "oj_batch.h"

#include <string.h>

void oj_attributes_clear(struct oj_attributes *attributes)
{
    oj_arrow_slice_free(&attributes->slice);
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
    OJ_TRY(oj_reserve(&attributes->feature, n, n + 1, &attributes->cap_features,
                      sizeof(OGRFeatureH), err));
    attributes->feature[n] = feature;
    attributes->n_features = n + 1;
    return OJ_OK;
}

void oj_attributes_value(const struct oj_attributes *attributes, int field,
                         int64_t row, struct oj_value *value)
{
    if (attributes->slice.chunk != NULL)
    {
        oj_arrow_value(&attributes->slice, field, row, value);
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
    return attributes->slice.chunk != NULL &&
           oj_arrow_reals(&attributes->slice, field, first, n, order, value,
                          is_null, any_null);
}

void oj_batch_free(struct oj_batch *batch)
{
    oj_flat_buf_free(&batch->flat);
    oj_attributes_free(batch->attributes);
    memset(batch, 0, sizeof *batch);
}
