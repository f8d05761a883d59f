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

#include <ogrjoin.h>

/** What is asked of the data. */
struct bench_data_options
{
    const char *data;  /**< "nycgen" or a folder */
    const char *layer; /**< join layer: lots, streets, zones, points */
    int64_t n, m;  /**< points and join features; 0: all, or 170M x 735,488 */
    uint64_t seed; /**< nycgen only */
    int n_threads; /**< to generate with; 0: all */
    int64_t
        add_polygon;   /**< vertices of one polygon over everything; 0: none */
    int64_t identical; /**< points added, all at one place */
    int far;           /**< 1: points and join features 1,000 km off */
};

/** The input side. Owned. */
struct bench_points
{
    int64_t n;
    double *x, *y;
};

/** Reads or makes both layers. The FIDs of the join side are the ids of the raw
 *  arrays, or ordinals. Free both, also after an error. */
OJ_MUST_USE oj_status bench_data_load(const struct bench_data_options *options,
                                      struct bench_points *points,
                                      struct oj_flat_buf *join_side,
                                      struct oj_error *err);

void bench_points_free(struct bench_points *points);

/* Stages of bench_data_load(), each in a file of its own. */

/** bench_raw.c. n_extra more points are allocated than are filled. */
OJ_MUST_USE oj_status bench_raw_load(const struct bench_data_options *options,
                                     int64_t n_extra,
                                     struct bench_points *points,
                                     struct oj_flat_buf *join_side,
                                     struct oj_error *err);

/** bench_city.c. The same from nycgen. */
OJ_MUST_USE oj_status bench_city_load(const struct bench_data_options *options,
                                      int64_t n_extra,
                                      struct bench_points *points,
                                      struct oj_flat_buf *join_side,
                                      struct oj_error *err);

#endif
