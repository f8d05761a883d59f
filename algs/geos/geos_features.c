#include "geos_features.h"
#include "../../flatten/base/oj_array.h"

#include <math.h>
#include <string.h>

#define N_WAYS 4
#define N_SETS 1024
/* About 25 MB of coordinates in GEOS; prepared ones need some times as much. */
#define MAX_VERTICES (INT64_C(1) << 20)

static void drop_prepared(GEOSContextHandle_t geos,
                          struct oj_geos_prepared *one)
{
    if (one->prepared != NULL)
        GEOSPreparedGeom_destroy_r(geos, one->prepared);
    if (one->geometry != NULL)
        GEOSGeom_destroy_r(geos, one->geometry);
    memset(one, 0, sizeof *one);
}

/* Prepares what has a geometry. */
static const GEOSPreparedGeometry *prepare(GEOSContextHandle_t geos,
                                           struct oj_geos_prepared *one)
{
    if (one->prepared == NULL && one->geometry != NULL)
        one->prepared = GEOSPrepare_r(geos, one->geometry);
    return one->prepared;
}

static void drop(struct oj_geos_features *features, struct oj_geos_kept *kept)
{
    if (kept->feature < 0)
        return;
    drop_prepared(features->geos, &kept->whole);
    drop_prepared(features->geos, &kept->beside);
    for (int64_t i = 0; i < kept->n_locators; i++)
        drop_prepared(features->geos, &kept->locator[i]);
    oj_free(kept->locator);
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
    features->kept = NULL;
    features->n_sets = 0;
}

void oj_geos_features_set(struct oj_geos_features *features,
                          const struct oj_flat *flat)
{
    for (int64_t i = 0; i < features->n_sets * N_WAYS; i++)
        drop(features, &features->kept[i]);
    features->flat = flat;
}

/* Places for all of a small layer, or as many as are kept at most. */
static int make_places(struct oj_geos_features *features)
{
    int64_t n_sets = features->n_sets > 0 ? features->n_sets : 16;
    while (n_sets * N_WAYS < features->flat->n_features &&
           (n_sets < N_SETS || features->keep_all))
        n_sets *= 2;
    if (n_sets == features->n_sets)
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
    place->is_apart = -1;
    features->n_vertices += place->n_vertices;
    return place;
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

/* ---- the union of the parts --------------------------------------------- */

/* So many parts have their boxes compared each with each. */
#define FEW_PARTS 64

/* The polygon parts of a feature with the boxes of a few: 1 when none meet. */
static int boxes_are_apart(const struct oj_flat *flat, int64_t feature,
                           const struct oj_box *box)
{
    int64_t first = flat->part_offset[feature];
    int64_t n = flat->part_offset[feature + 1] - first;
    for (int64_t i = 0; i < n; i++)
    {
        if (flat->part_kind[first + i] != OJ_PART_POLYGON)
            continue;
        for (int64_t j = 0; j < i; j++)
        {
            if (flat->part_kind[first + j] == OJ_PART_POLYGON &&
                oj_box_intersects(&box[i], &box[j]))
                return 0;
        }
    }
    return 1;
}

static int64_t count_polygons(const struct oj_flat *flat, int64_t feature)
{
    int64_t n = 0, part = flat->part_offset[feature];
    for (; part < flat->part_offset[feature + 1]; part++)
        n += flat->part_kind[part] == OJ_PART_POLYGON;
    return n;
}

/* 1 when the polygon parts are apart, or touch in points: then the collection
 * of them is the union.  0: not; -1: memory is out. */
static int look_whether_apart(struct oj_geos_features *features,
                              struct oj_geos_kept *kept)
{
    const struct oj_flat *flat = features->flat;
    const struct oj_box *box;
    GEOSGeometry *polygons = NULL;
    char is_valid;
    if (features->rings_as_lines || (kept->kinds & OJ_PART_POLYGON) == 0 ||
        oj_flat_is_points(flat) || kept->n_components < 2 ||
        count_polygons(flat, kept->feature) < 2)
        return 1;
    box = oj_geos_features_boxes(features, kept);
    if (box == NULL)
        return -1;
    if (kept->n_components <= FEW_PARTS &&
        boxes_are_apart(flat, kept->feature, box))
        return 1;
    if (kept->kinds != OJ_PART_POLYGON)
    {
        polygons =
            oj_geos_kinds(features->geos, flat, kept->feature, OJ_PART_POLYGON);
        if (polygons == NULL)
            return -1;
    }
    is_valid = GEOSisValid_r(features->geos,
                             polygons != NULL ? polygons : kept->geometry);
    if (polygons != NULL)
        GEOSGeom_destroy_r(features->geos, polygons);
    return is_valid > 1 ? -1 : is_valid;
}

static int is_apart(struct oj_geos_features *features,
                    struct oj_geos_kept *kept)
{
    if (kept->is_apart < 0)
        kept->is_apart = look_whether_apart(features, kept);
    return kept->is_apart;
}

/* 1 when each polygon part is valid by itself; -1: memory is out, or GEOS
 * raised. */
static int parts_are_valid(const struct oj_geos_features *features,
                           const struct oj_geos_kept *kept)
{
    for (int i = 0; i < kept->n_components; i++)
    {
        const GEOSGeometry *part =
            GEOSGetGeometryN_r(features->geos, kept->geometry, i);
        char is_valid = part != NULL ? GEOSisValid_r(features->geos, part) : 2;
        if (is_valid != 1)
            return is_valid == 0 ? 0 : -1;
    }
    return 1;
}

/* The union of the polygon parts, in a collection with the other parts. NULL:
 * GEOS raised, or memory is out. */
static GEOSGeometry *unite(const struct oj_geos_features *features,
                           const struct oj_geos_kept *kept)
{
    GEOSContextHandle_t geos = features->geos;
    GEOSGeometry *member[2],
        *polygons =
            oj_geos_kinds(geos, features->flat, kept->feature, OJ_PART_POLYGON);
    member[0] = polygons != NULL ? GEOSUnaryUnion_r(geos, polygons) : NULL;
    if (polygons != NULL)
        GEOSGeom_destroy_r(geos, polygons);
    if (kept->kinds == OJ_PART_POLYGON || member[0] == NULL)
        return member[0];
    member[1] = oj_geos_kinds(geos, features->flat, kept->feature,
                              OJ_PART_POINT | OJ_PART_LINE);
    if (member[1] == NULL)
    {
        GEOSGeom_destroy_r(geos, member[0]);
        return NULL;
    }
    /* takes the members, also when it fails */
    return GEOSGeom_createCollection_r(geos, GEOS_GEOMETRYCOLLECTION, member,
                                       2);
}

const GEOSGeometry *oj_geos_features_whole(struct oj_geos_features *features,
                                           struct oj_geos_kept *kept)
{
    int apart, are_valid;
    if (kept->whole.geometry != NULL)
        return kept->whole.geometry;
    apart = is_apart(features, kept);
    if (apart != 0)
        return apart > 0 ? kept->geometry : NULL;
    are_valid = parts_are_valid(features, kept);
    if (are_valid != 1)
        return are_valid == 0 ? kept->geometry : NULL;
    kept->whole.geometry = unite(features, kept);
    return kept->whole.geometry;
}

const GEOSPreparedGeometry *
oj_geos_features_prepare(struct oj_geos_features *features,
                         struct oj_geos_kept *kept)
{
    const GEOSGeometry *whole;
    if (kept->whole.prepared != NULL)
        return kept->whole.prepared;
    whole = oj_geos_features_whole(features, kept);
    if (whole != NULL)
        kept->whole.prepared = GEOSPrepare_r(features->geos, whole);
    return kept->whole.prepared;
}

/* ---- where points lie ---------------------------------------------------- */

int oj_geos_features_list_locators(struct oj_geos_features *features,
                                   struct oj_geos_kept *kept)
{
    int64_t n = kept->n_components;
    int apart;
    if (kept->n_locators > 0)
        return 1;
    apart = is_apart(features, kept);
    if (apart < 0)
        return 0;
    if (apart)
        n = 1;
    kept->locator = oj_calloc(n, sizeof *kept->locator);
    if (kept->locator != NULL)
        kept->n_locators = n;
    return kept->n_locators > 0;
}

const GEOSPreparedGeometry *
oj_geos_features_locator(struct oj_geos_features *features,
                         struct oj_geos_kept *kept, int64_t i)
{
    const struct oj_flat *flat = features->flat;
    int64_t first = flat->part_offset[kept->feature] + i;
    int64_t end =
        kept->n_locators == 1 ? first + kept->n_components : first + 1;
    struct oj_geos_prepared *one = &kept->locator[i];
    if (one->geometry == NULL)
        one->geometry =
            oj_geos_rings(features->geos, flat, flat->ring_offset[first],
                          flat->ring_offset[end]);
    return prepare(features->geos, one);
}

const GEOSPreparedGeometry *
oj_geos_features_unite(struct oj_geos_features *features,
                       struct oj_geos_kept *kept, const int64_t *part,
                       int64_t n)
{
    GEOSGeometry *parts;
    if (kept->n_beside == n &&
        memcmp(kept->part_beside, part, (size_t)n * sizeof *part) == 0)
        return kept->beside.prepared;
    drop_prepared(features->geos, &kept->beside);
    kept->n_beside = 0;
    parts = oj_geos_polygons(features->geos, features->flat, kept->feature,
                             part, n);
    if (parts == NULL)
        return NULL;
    kept->beside.geometry = GEOSUnaryUnion_r(features->geos, parts);
    GEOSGeom_destroy_r(features->geos, parts);
    if (prepare(features->geos, &kept->beside) == NULL)
        return NULL;
    kept->n_beside = n;
    memcpy(kept->part_beside, part, (size_t)n * sizeof *part);
    return kept->beside.prepared;
}
