#include "geos_features.h"
#include "../flatten/oj_array.h"

#include <math.h>
#include <string.h>

#define N_WAYS 4
#define N_SETS 1024
/* About 25 MB of coordinates in GEOS; prepared ones need some times as much. */
#define MAX_VERTICES (INT64_C(1) << 20)

static void drop(struct oj_geos_features *features, struct oj_geos_kept *kept)
{
    if (kept->feature < 0)
        return;
    if (kept->prepared != NULL)
        GEOSPreparedGeom_destroy_r(features->geos, kept->prepared);
    if (kept->prepared_rings != NULL)
        GEOSPreparedGeom_destroy_r(features->geos, kept->prepared_rings);
    if (kept->rings != NULL)
        GEOSGeom_destroy_r(features->geos, kept->rings);
    GEOSGeom_destroy_r(features->geos, kept->geometry);
    oj_free(kept->box);
    features->n_vertices -= kept->n_vertices;
    memset(kept, 0, sizeof *kept);
    kept->feature = -1;
}

void oj_geos_features_free(struct oj_geos_features *features)
{
    for (int64_t i = 0; i < features->n_sets * N_WAYS; i++)
        drop(features, &features->kept[i]);
    oj_free(features->kept);
    oj_free(features->validity);
    features->kept = NULL;
    features->validity = NULL;
    features->n_sets = 0;
}

void oj_geos_features_set(struct oj_geos_features *features,
                          const struct oj_flat *flat)
{
    for (int64_t i = 0; i < features->n_sets * N_WAYS; i++)
        drop(features, &features->kept[i]);
    oj_free(features->validity);
    features->validity = NULL;
    features->flat = flat;
}

/* Places for all of a small layer, or as many as are kept at most. */
static int make_places(struct oj_geos_features *features)
{
    int64_t n_sets = 16;
    while (n_sets * N_WAYS < features->flat->n_features &&
           (n_sets < N_SETS || features->keep_all))
        n_sets *= 2;
    if (n_sets <= features->n_sets)
        return 1;
    oj_geos_features_free(features);
    features->kept = oj_calloc(n_sets * N_WAYS, sizeof *features->kept);
    if (features->kept == NULL)
        return 0;
    for (int64_t i = 0; i < n_sets * N_WAYS; i++)
        features->kept[i].feature = -1;
    features->n_sets = n_sets;
    return 1;
}

/* Drops what was used longest ago until there is room for n more vertices. */
static void make_room(struct oj_geos_features *features, int64_t n)
{
    while (!features->keep_all && features->n_vertices > 0 &&
           features->n_vertices + n > MAX_VERTICES)
    {
        struct oj_geos_kept *oldest = NULL;
        for (int64_t i = 0; i < features->n_sets * N_WAYS; i++)
        {
            struct oj_geos_kept *kept = &features->kept[i];
            if (kept->feature >= 0 &&
                (oldest == NULL || kept->used < oldest->used))
                oldest = kept;
        }
        if (oldest == NULL)
            return;
        drop(features, oldest);
    }
}

static int64_t count_vertices(const struct oj_flat *flat, int64_t feature)
{
    int64_t first, end;
    oj_flat_vertices(flat, feature, &first, &end);
    return end - first;
}

struct oj_geos_kept *oj_geos_features_get(struct oj_geos_features *features,
                                          int64_t feature)
{
    struct oj_geos_kept *set, *place;
    GEOSGeometry *geometry;
    if (!make_places(features))
        return NULL;
    set = features->kept + N_WAYS * (feature & (features->n_sets - 1));
    place = set;
    features->now++;
    for (int way = 0; way < N_WAYS; way++)
    {
        if (set[way].feature == feature)
        {
            set[way].used = features->now;
            return &set[way];
        }
        if (set[way].used < place->used)
            place = &set[way];
    }
    geometry = oj_geos_feature(features->geos, features->flat, feature,
                               features->rings_as_lines);
    if (geometry == NULL)
        return NULL;
    drop(features, place);
    make_room(features, count_vertices(features->flat, feature));
    place->feature = feature;
    place->used = features->now;
    place->kinds = oj_flat_kinds(features->flat, feature);
    place->n_vertices = count_vertices(features->flat, feature);
    place->n_components = GEOSGetNumGeometries_r(features->geos, geometry);
    place->geometry = geometry;
    features->n_vertices += place->n_vertices;
    return place;
}

const GEOSPreparedGeometry *
oj_geos_features_prepare(struct oj_geos_features *features,
                         struct oj_geos_kept *kept)
{
    if (kept->prepared == NULL)
        kept->prepared = GEOSPrepare_r(features->geos, kept->geometry);
    return kept->prepared;
}

const GEOSPreparedGeometry *
oj_geos_features_locator(struct oj_geos_features *features,
                         struct oj_geos_kept *kept)
{
    const struct oj_flat *flat = features->flat;
    int64_t first = flat->part_offset[kept->feature];
    int64_t end = flat->part_offset[kept->feature + 1];
    if (flat->ring_offset[end] - flat->ring_offset[first] == 1)
        return oj_geos_features_prepare(features, kept);
    if (kept->rings == NULL)
        kept->rings = oj_geos_rings(features->geos, flat, kept->feature);
    if (kept->prepared_rings == NULL && kept->rings != NULL)
        kept->prepared_rings = GEOSPrepare_r(features->geos, kept->rings);
    return kept->prepared_rings;
}

static struct oj_box box_of(const double *x, const double *y, int64_t first,
                            int64_t end)
{
    struct oj_box box = oj_box_empty();
    for (int64_t v = first; v < end; v++)
        oj_box_add_point(&box, x[v], y[v]);
    return oj_box_around(&box, 0.0);
}

/* Components are parts, or the rings of the parts. */
static void fill_boxes(const struct oj_geos_features *features, int64_t feature,
                       struct oj_box *box)
{
    const struct oj_flat *flat = features->flat;
    if (oj_flat_is_points(flat))
    {
        box[0] = box_of(flat->x, flat->y, feature, feature + 1);
        return;
    }
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        int64_t first = flat->ring_offset[part];
        int64_t end = flat->ring_offset[part + 1];
        if (!features->rings_as_lines)
        {
            *box++ = box_of(flat->x, flat->y, flat->vertex_offset[first],
                            flat->vertex_offset[end]);
            continue;
        }
        for (int64_t ring = first; ring < end; ring++)
            *box++ = box_of(flat->x, flat->y, flat->vertex_offset[ring],
                            flat->vertex_offset[ring + 1]);
    }
}

const struct oj_box *oj_geos_features_boxes(struct oj_geos_features *features,
                                            struct oj_geos_kept *kept)
{
    if (kept->box != NULL)
        return kept->box;
    kept->box = oj_malloc(kept->n_components, sizeof *kept->box);
    if (kept->box != NULL)
        fill_boxes(features, kept->feature, kept->box);
    return kept->box;
}

int oj_geos_features_is_valid(struct oj_geos_features *features,
                              struct oj_geos_kept *kept)
{
    int64_t n = features->flat->n_features;
    char is_valid;
    if (features->validity == NULL)
        features->validity = oj_calloc(n, sizeof *features->validity);
    if (features->validity == NULL)
        return -1;
    if (features->validity[kept->feature] != 0)
        return features->validity[kept->feature] - 1;
    is_valid = GEOSisValid_r(features->geos, kept->geometry);
    if (is_valid > 1)
        return -1;
    features->validity[kept->feature] = (uint8_t)(1 + is_valid);
    return is_valid;
}
