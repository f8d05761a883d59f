/** The layers that oj_bench joins. They are generated (nycgen.h), or read from
 *  a folder of raw little-endian arrays without headers. Offsets are int32, and
 *  have n + 1 entries:
 *    points.x.f64 points.y.f64                    points.id.i64
 *    streets.x.f64 streets.y.f64 streets.feat.i32 streets.id.i64
 *    lots.x.f64 lots.y.f64 lots.ring.i32 lots.part.i32 lots.feat.i32
 *                                                 lots.id.i64
 *    zones: as lots
 *  feat is the first part of a feature (of streets: the first vertex), part the
 *  first ring of a part, and ring the first vertex of a ring.
 */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include "../../algs/api/engine/oj_join.h"

/** Options for the data. */
struct bench_data_options
{
    const char *data;  /**< "nycgen" or a folder */
    const char *input; /**< input layer: points, lots, streets or zones */
    const char *layer; /**< join layer: lots, streets, zones or points */
    /** number of input and join features, or 0 for all (170 million and 735,488
     *  of nycgen) */
    int64_t n, m;
    int skew;      /**< skew of nycgen */
    uint64_t seed; /**< seed of nycgen */
    int n_threads; /**< number of threads that generate, or 0 for all
                        processors */
    int64_t zones; /**< number of overlapping polygons in rows over everything,
                        or 0 for none */
    int64_t add_polygon; /**< number of vertices of one polygon over everything,
                              or 0 for none */
    int64_t identical;   /**< number of additional points, all in one place */
    int far;             /**< 1: adds points and join features 1,000 km away */
};

/** Single points. Owner. It has only these arrays, to save memory. */
struct bench_points
{
    int64_t n;
    double *x, *y;
    int64_t *id; /**< [n] ids, or NULL if these are ordinals */
};

/** Both sides. Owner; zeroed memory is a valid empty value. */
struct bench_layers
{
    struct bench_points points; /**< input, if it is points */
    struct oj_flat_buf shapes;  /**< input, if it is not points */
    struct oj_flat_buf join_side;
};

/** Reads or generates both layers. FIDs are the ids of the raw arrays, or
 * ordinals. The caller must free *layers, even after an error. */
OJ_MUST_USE oj_status bench_data_load(const struct bench_data_options *options,
                                      struct bench_layers *layers,
                                      struct oj_error *err);

/** Returns the input side. It is valid until layers are changed. */
struct oj_flat bench_input(const struct bench_layers *layers);

/** Adds feature i of flat to buf with the FID fid, moved by shift in x and
 *  y. */
OJ_MUST_USE oj_status bench_copy_feature(struct oj_flat_buf *buf,
                                         const struct oj_flat *flat, int64_t i,
                                         int64_t fid, double shift,
                                         struct oj_error *err);

void bench_layers_free(struct bench_layers *layers);

/* Stages of bench_data_load(), each in a file of its own. */

/** Reads raw arrays (bench_raw.c). Allocates n_extra points more than it
 * fills. */
OJ_MUST_USE oj_status bench_raw_load(const struct bench_data_options *options,
                                     int64_t n_extra,
                                     struct bench_layers *layers,
                                     struct oj_error *err);

/** Generates the layers with nycgen (bench_city.c). The input consists of
 * points without ids. */
OJ_MUST_USE oj_status bench_city_load(const struct bench_data_options *options,
                                      int64_t n_extra,
                                      struct bench_layers *layers,
                                      struct oj_error *err);

#endif
