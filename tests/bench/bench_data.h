/** The layers that oj_bench joins: generated (nycgen.h) or read from a folder
 *  of raw little-endian arrays without headers, offsets int32, n + 1 entries:
 *    points.x.f64 points.y.f64                    points.id.i64
 *    streets.x.f64 streets.y.f64 streets.feat.i32 streets.id.i64
 *    lots.x.f64 lots.y.f64 lots.ring.i32 lots.part.i32 lots.feat.i32
 *                                                 lots.id.i64
 *    zones: as lots
 *  feat: first part (streets: first vertex) of a feature; part: first ring;
 *  ring: first vertex.
 */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include "../../algs/api/engine/oj_join.h"

/** What is asked of the data. */
struct bench_data_options
{
    const char *data;  /**< "nycgen" or a folder */
    const char *input; /**< input layer: points, lots, streets, zones */
    const char *layer; /**< join layer: lots, streets, zones, points */
    int64_t n, m;  /**< input and join features; 0: all, or 170M x 735,488 */
    int skew;      /**< of nycgen */
    uint64_t seed; /**< of nycgen */
    int n_threads; /**< to generate with; 0: all */
    int64_t zones; /**< polygons that overlap, side by side over everything;
                        0: none */
    int64_t
        add_polygon;   /**< vertices of one polygon over everything; 0: none */
    int64_t identical; /**< points added, all at one place */
    int far;           /**< 1: points and join features 1,000 km off */
};

/** Single points. Owned; those of many need no more than their arrays. */
struct bench_points
{
    int64_t n;
    double *x, *y;
    int64_t *id; /**< [n] or NULL: ordinals */
};

/** Both sides. Owned; zeroed memory is a valid empty one. */
struct bench_layers
{
    struct bench_points points; /**< the input, where it is points */
    struct oj_flat_buf shapes;  /**< the input, where it is not */
    struct oj_flat_buf join_side;
};

/** Reads or makes both layers. FIDs are the ids of the raw arrays, or ordinals.
 *  Free them, also after an error. */
OJ_MUST_USE oj_status bench_data_load(const struct bench_data_options *options,
                                      struct bench_layers *layers,
                                      struct oj_error *err);

/** The input side; valid until layers change. */
struct oj_flat bench_input(const struct bench_layers *layers);

/** Adds feature i of flat to buf as fid, moved by shift in x and y. */
OJ_MUST_USE oj_status bench_copy_feature(struct oj_flat_buf *buf,
                                         const struct oj_flat *flat, int64_t i,
                                         int64_t fid, double shift,
                                         struct oj_error *err);

void bench_layers_free(struct bench_layers *layers);

/* Stages of bench_data_load(), each in a file of its own. */

/** bench_raw.c. n_extra more points are allocated than are filled. */
OJ_MUST_USE oj_status bench_raw_load(const struct bench_data_options *options,
                                     int64_t n_extra,
                                     struct bench_layers *layers,
                                     struct oj_error *err);

/** bench_city.c. The same from nycgen, whose input is points without ids. */
OJ_MUST_USE oj_status bench_city_load(const struct bench_data_options *options,
                                      int64_t n_extra,
                                      struct bench_layers *layers,
                                      struct oj_error *err);

#endif
