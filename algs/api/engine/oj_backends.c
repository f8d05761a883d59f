#include "../../foundations/relation/oj_index.h"
#include "oj_span_slices.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct oj_engine *const on_cpu[] = {&oj_span_slices,
                                                 &oj_cpu_nearest_by_heading,
                                                 &oj_cpu_similar_shapes,
                                                 &oj_cpu_distance_of_class,
                                                 &oj_cpu_nearest_points,
                                                 &oj_cpu_points_in_polygons,
                                                 &oj_cpu_points_in_envelopes,
                                                 &oj_cpu_near_points,
                                                 &oj_cpu_distance,
                                                 &oj_cpu_sphere,
                                                 &oj_cpu_equal_points,
                                                 &oj_cpu_equal_attributes,
                                                 &oj_cpu_predicate,
                                                 &oj_cpu_similar,
                                                 &oj_cpu_similar_vectors,
                                                 NULL};

_Static_assert(sizeof on_cpu / sizeof *on_cpu <= OJ_MOST_ENGINES + 1,
               "a join has room for so many");

/* A NULL-terminated list with a single engine. */
#define ONLY(engine)                                                           \
    (const struct oj_engine *const[])                                          \
    {                                                                          \
        &(engine), NULL                                                        \
    }

static const struct oj_backend backends[] = {
    {"cpu",
     "our engine on all CPU cores: packed trees, cells with a known state, "
     "exact kernels",
     0, 0, 1, OJ_NO_DEVICE, on_cpu},
    {"cuda",
     "our engine on NVIDIA GPUs, with the answers of cpu: nearest and dwithin "
     "of points, points in polygons, equal points, points in envelopes; lines "
     "and polygons with one another: envelopes, intersects, disjoint, and the "
     "candidates of the other predicates, which the CPU decides; similar "
     "texts, "
     "vectors and shapes; other joins run on the CPU",
     0, 0, 1, OJ_DEVICE, on_cpu},
    {"quadrant",
     "the papers' method: quadrants of points, a grid of boxes, all segments",
     1, 0, 1, OJ_NO_DEVICE, ONLY(oj_quadrant_engine)},
    {"cuda_quadrant",
     "the papers' method on an NVIDIA GPU: quadrants of points, a grid of "
     "boxes, all segments",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_cuda_quadrant_engine)},
    {"geos", "reference: GEOS STRtree and GEOS predicates, one thread", 1, 1, 0,
     OJ_NO_DEVICE, ONLY(oj_geos_engine)},
    {"geos_sorted",
     "reference: GEOS STRtree and GEOS predicates, the input in Morton order, "
     "prepared geometries, one thread",
     1, 1, 0, OJ_NO_DEVICE, ONLY(oj_geos_sorted_engine)},
#ifdef OJ_SPATIALINDEX /* libogrjoin is built without libspatialindex */
    {"spatialindex",
     "reference: libspatialindex R-tree and GEOS predicates, one thread", 1, 1,
     0, OJ_NO_DEVICE, ONLY(oj_spatialindex_engine)},
    {"spatialindex_collective",
     "reference: libspatialindex R-tree, one query per quadrant of input "
     "features, and GEOS predicates, one thread",
     1, 1, 0, OJ_NO_DEVICE, ONLY(oj_spatialindex_collective_engine)},
#endif
    {"gpics_quadtree",
     "the paper's method for points with points (nearest, dwithin, equals, "
     "...) and in envelopes: a quadtree, rows registered at its leaves, leaf "
     "by leaf",
     1, 0, 1, OJ_NO_DEVICE, ONLY(oj_gpics_quadtree_engine)},
    {"gpics_kdtree",
     "the paper's method for points with points and in envelopes: a k-d tree, "
     "rows registered at its leaves, leaf by leaf",
     1, 0, 1, OJ_NO_DEVICE, ONLY(oj_gpics_kdtree_engine)},
    {"gpics_quadtree_single",
     "the traditional method for points with points and in envelopes: each row "
     "reads the leaves of a quadtree by itself",
     1, 0, 1, OJ_NO_DEVICE, ONLY(oj_gpics_quadtree_single_engine)},
    {"gpics_kdtree_single",
     "the traditional method for points with points and in envelopes: each row "
     "reads the leaves of a k-d tree by itself",
     1, 0, 1, OJ_NO_DEVICE, ONLY(oj_gpics_kdtree_single_engine)},
    {"cuda_gpics_quadtree",
     "gpics_quadtree on an NVIDIA GPU: a block for each leaf and 128 of its "
     "rows",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_cuda_gpics_quadtree_engine)},
    {"cuda_gpics_kdtree",
     "gpics_kdtree on an NVIDIA GPU: a block for each leaf and 128 of its rows",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_cuda_gpics_kdtree_engine)},
    {"cuda_gpics_quadtree_single",
     "gpics_quadtree_single on an NVIDIA GPU: a thread for each row", 1, 0, 0,
     OJ_NO_DEVICE, ONLY(oj_cuda_gpics_quadtree_single_engine)},
    {"cuda_gpics_kdtree_single",
     "gpics_kdtree_single on an NVIDIA GPU: a thread for each row", 1, 0, 0,
     OJ_NO_DEVICE, ONLY(oj_cuda_gpics_kdtree_single_engine)},
    {"live_quadtree",
     "the kept index of the library (ogrjoin_live) with the points of the join "
     "side: a quadtree of pages",
     1, 0, 1, OJ_NO_DEVICE, ONLY(oj_live_quadtree_engine)},
    {"live_kdtree",
     "the kept index of the library (ogrjoin_live) with the points of the join "
     "side: a k-d tree of pages",
     1, 0, 1, OJ_NO_DEVICE, ONLY(oj_live_kdtree_engine)},
    {"sphere",
     "reference for -metric sphere: spherical trigonometry, every edge of "
     "every feature in reach, one thread",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_sphere_engine)},
    {"ellipsoid",
     "reference for -metric ellipsoid: geodesics to every point and edge in "
     "reach, one thread",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_ellipsoid_engine)},
    {"cuda_lists",
     "the papers' method for similar texts on an NVIDIA GPU: inverted lists, "
     "all common tokens counted",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_cuda_lists_engine)},
    {"cuda_size_blocks",
     "the papers' later method for similar texts on an NVIDIA GPU: blocks of "
     "texts by size, common tokens counted",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_cuda_size_blocks_engine)},
    {"cut_points",
     "the papers' method for -distance hausdorff_points: the boxes' least and "
     "greatest distances, all vertices of what they leave, one thread",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_cut_points_engine)},
    {"cuda_cut_points",
     "the papers' method for -distance hausdorff_points on an NVIDIA GPU, with "
     "-ties first and -k up to 1024: the boxes' least and greatest distances, "
     "all vertices of what they leave",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_cuda_cut_points_engine)},
    {"lists",
     "reference for similar texts, and the papers' method: inverted lists, all "
     "common tokens counted; for similar vectors and equal attributes: all "
     "pairs; one thread",
     1, 0, 0, OJ_NO_DEVICE,
     (const struct oj_engine *const[]){&oj_lists_engine,
                                       &oj_plain_vectors_engine,
                                       &oj_plain_attributes_engine, NULL}},
    {"cuda_zlists",
     "the paper's method for similar vectors, and for nearest and dwithin of "
     "points, on an NVIDIA GPU: shifted Z-orders of the join side",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_cuda_zlists_engine)},
    {"zlists",
     "the paper's method for similar vectors, and for nearest and dwithin of "
     "points: shifted Z-orders of the join side, the shortest stretch; one "
     "thread",
     1, 0, 0, OJ_NO_DEVICE, ONLY(oj_zlists_engine)},
};

const struct oj_backend oj_auto_backend = {
    "auto", "cpu, or cuda where it pays", 0, 0, 1, OJ_DEVICE_IF_PAYS, on_cpu};

const struct oj_backend *oj_backend_at(int i)
{
    int n = (int)(sizeof backends / sizeof *backends);
    return i >= 0 && i < n ? &backends[i] : NULL;
}

const struct oj_backend *oj_backend_find(const char *name)
{
    const struct oj_backend *backend;
    for (int i = 0; (backend = oj_backend_at(i)) != NULL; i++)
    {
        if (strcasecmp(backend->name, name) == 0)
            return backend;
    }
    return NULL;
}

oj_status oj_backend_read(const char *dash, const char *option,
                          const char *name, const struct oj_backend **out,
                          struct oj_error *err)
{
    const struct oj_backend *backend = oj_backend_find(name);
    char names[1024];
    if (backend == NULL && strcasecmp(name, oj_auto_backend.name) == 0)
        backend = &oj_auto_backend;
    if (backend != NULL)
    {
        *out = backend;
        return OJ_OK;
    }
    snprintf(names, sizeof names, "%s", oj_auto_backend.name);
    for (int i = 0; (backend = oj_backend_at(i)) != NULL; i++)
    {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, ", %s", backend->name);
    }
    return oj_fail(err, OJ_ERR_ARG,
                   "%s%s %.40s: there is no such backend; write one of %s",
                   dash, option, name, names);
}
