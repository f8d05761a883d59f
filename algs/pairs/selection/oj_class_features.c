#include "oj_class_features.h"

#include "../../../flatten/base/oj_alloc.h"
#include "oj_tie_rank_sort.h"

#include <string.h>

/* Class numbers up to CLASSES_PER_FEATURE times the number of features, plus
 * LEAST_CLASSES, may be positions in an array. Layers with higher numbers do
 * not count as having small classes. */
#define CLASSES_PER_FEATURE 4
#define LEAST_CLASSES 1024

static int64_t count_classes(const struct oj_flat *flat)
{
    int32_t highest = -1;
    for (int64_t f = 0; f < flat->n_features; f++)
        highest = flat->on_class[f] > highest ? flat->on_class[f] : highest;
    return (int64_t)highest + 1;
}

oj_status oj_class_features_are_small(const struct oj_flat *flat,
                                      int *are_small, struct oj_error *err)
{
    uint8_t *count;
    int64_t n_classes, n = 0;
    int64_t n_pairs = 0; /* pairs of features with equal classes */
    int most = 0;
    *are_small = 0;
    if (flat->on_class == NULL)
        return OJ_OK;
    n_classes = count_classes(flat);
    if (n_classes > CLASSES_PER_FEATURE * flat->n_features + LEAST_CLASSES)
        return OJ_OK;
    OJ_NEW_ZEROED(count, n_classes, err);
    for (int64_t f = 0; f < flat->n_features && most <= OJ_MOST_OF_CLASS; f++)
    {
        int32_t of = flat->on_class[f];
        if (of < 0)
            continue;
        n++;
        n_pairs += 2 * count[of] + 1;
        if (++count[of] > most)
            most++;
    }
    oj_free(count);
    *are_small = most <= OJ_MOST_OF_CLASS && n_pairs <= OJ_FEW_OF_CLASS * n;
    return OJ_OK;
}

/* Fills the lists from the last rank to the first. first[c] is the end of the
 * list of class c on entry, and its start on return. */
static oj_status
fill_lists_of_classes(struct oj_class_features *classes,
                      const struct oj_flat *flat, const int32_t *tie_rank,
                      int (*is_listed)(const void *user, int64_t feature),
                      const void *user, struct oj_error *err)
{
    int64_t n = flat->n_features;
    int32_t *feature_of = NULL; /* features in tie order */
    if (tie_rank != NULL)
    {
        OJ_NEW(feature_of, n, err);
        for (int64_t f = 0; f < n; f++)
            feature_of[tie_rank[f]] = (int32_t)f;
    }
    for (int64_t rank = n - 1; rank >= 0; rank--)
    {
        int64_t f = feature_of != NULL ? feature_of[rank] : rank;
        if (flat->on_class[f] >= 0 && is_listed(user, f))
            classes->feature[--classes->first[flat->on_class[f]]] = (int32_t)f;
    }
    oj_free(feature_of);
    return OJ_OK;
}

oj_status
oj_class_features_make(struct oj_class_features *classes,
                       const struct oj_flat *flat, const int32_t *tie_rank,
                       int (*is_listed)(const void *user, int64_t feature),
                       const void *user, struct oj_error *err)
{
    int32_t total = 0;
    classes->n_classes = count_classes(flat);
    OJ_NEW_ZEROED(classes->first, classes->n_classes + 1, err);
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        if (flat->on_class[f] >= 0)
            classes->first[flat->on_class[f]] += is_listed(user, f);
    }
    for (int64_t c = 0; c <= classes->n_classes; c++)
    {
        total += classes->first[c];
        classes->first[c] = total;
    }
    OJ_NEW(classes->feature, total, err);
    return fill_lists_of_classes(classes, flat, tie_rank, is_listed, user, err);
}

int64_t oj_class_features_bytes(const struct oj_class_features *classes)
{
    return classes->first == NULL
               ? 0
               : (classes->n_classes + 1 + classes->first[classes->n_classes]) *
                     (int64_t)sizeof *classes->first;
}

void oj_class_features_free(struct oj_class_features *classes)
{
    oj_free(classes->first);
    oj_free(classes->feature);
    memset(classes, 0, sizeof *classes);
}
