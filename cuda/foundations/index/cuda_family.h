/** The module is several engines under one name, as the cpu backend is: each
 *  family answers some joins between some kinds of features, all with the
 *  bits of the cpu backend. */
#ifndef CUDA_FAMILY_H
#define CUDA_FAMILY_H

#include "../device/oj_cuda.h"
#include "oj_pair_conditions.h"

struct oj_cuda_family;
struct oj_gpu_index;    /* cuda_index.h */
struct oj_cuda_listing; /* cuda_pair_listing.cuh */
struct oj_cuda_share;   /* cuda_row_shares.cuh */

/** A family's index of one layer on one device. Each family adds what is its
 *  own, all zero to begin with. */
struct oj_cuda_index
{
    const struct oj_cuda_family *family;
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_relation relation;
    const int32_t *rank; /**< [features] on the device, of families with
                              find_share(): their order among ties; NULL: the
                              ordinal */
    struct oj_cuda_memory memory; /**< all that it has on the device */
    struct oj_cuda_index *asked;  /**< owned; another family's that this one
                                       asks, or NULL */
};

/** Points of a batch on the device. x is NaN where there is none. */
struct oj_cuda_points
{
    int64_t n;
    const double *x, *y; /**< [n] */

    /* Columns, [n] each, for families that know them; NULL: the batch has
     * none, or nothing asks for it. */
    const int64_t *fid;
    const int32_t *on_class, *exclude_class;
    const double *max_distance;
};

/** Fewer points than this are taken as they stand, more by place. */
#define OJ_CUDA_FEW_POINTS 4096

/** Bytes that the columns of a point take at most. */
#define OJ_CUDA_POINT_COLUMN_BYTES 24

/** The conditions of relation on columns of points and layer. */
struct oj_pair_rule
oj_cuda_family_pair_rule(const struct oj_relation *relation,
                         const struct oj_cuda_layer *layer,
                         const struct oj_cuda_points *points);

/** Sums by join feature (oj_sum_request.h), on their way. Blocks add to one of
 *  several copies, so that features with many points are many places. */
struct oj_cuda_tally
{
    struct oj_sum_request request; /**< columns: [points], on the device; one
                                        word: pairs are only counted, in one
                                        copy */
    unsigned n_copies;             /**< a power of two */
    int64_t copy_words;            /**< features * words of each */
    unsigned long long *words;     /**< [n_copies * copy_words], a copy by
                                        ordinals of the join layer */
};

/** Pairs of a batch on the device, in the list form of struct oj_matches:
 *  sorted within a row as the relation asks; rows are points. */
struct oj_cuda_pairs
{
    int64_t n_pairs;
    struct oj_cuda_array<int64_t> offset; /**< [n + 1] */
    struct oj_cuda_array<int32_t> row;    /**< [n_pairs] join ordinal */
    struct oj_cuda_array<double>
        measure; /**< [n_pairs], or empty: no measure */
};

/** Finds the pairs of a share of the rows first .. first + n - 1 of input,
 * whose numbers count from first.  Where it returns OJ_ERR_NOMEM, half as many
 * rows are asked for.  The device is current; every device does the same. */
typedef oj_status oj_cuda_family_share_finder(const struct oj_cuda_index *index,
                                              const struct oj_flat *input,
                                              int64_t first, int64_t n,
                                              struct oj_cuda_share *share,
                                              struct oj_stats *stats,
                                              struct oj_error *err);

struct oj_cuda_family
{
    const char *name; /**< for -explain */

    /** 1 when this family answers relation for this join side and this batch;
     *  input NULL: any layer of points. Asked about points in the plane only,
     *  and by knows_columns. */
    int (*takes)(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input);

    size_t size; /**< of its index */

    /** Builds what is its own; what work holds then is the index's. Everything
     *  is enqueued or done on the device's stream on return. */
    oj_status (*build)(struct oj_cuda_index *index, struct oj_cuda_work *work);

    /** 1: columns of the two sides are looked at (oj_cuda_asks_columns(), own
     *  distances of input features); 0: such joins do not come here. */
    int knows_columns;

    /** Of families that take features of any kinds: rows of the batch itself,
     *  and their pairs. NULL: the family takes points, chunk by chunk, with the
     *  functions below; else these are NULL, and the layer of an index has
     *  nothing but flat, which has features, and tie_rank. */
    oj_cuda_family_share_finder *find_share;

    /** Bytes of device memory that a batch of n rows needs beside its points
     *  and one-to-one answers; for choosing batch sizes. */
    int64_t (*batch_bytes)(const struct oj_cuda_index *index, int64_t n) = NULL;

    /** One-to-one joins: join ordinal or -1 and distance or NaN of each point;
     *  d_measure may be NULL. May be called from several threads with different
     *  streams. NULL when the family has no such.
     *
     *  Joins that give lists, of a family without list(): OJ_TIED_ROW where
     *  there may be several pairs, or none. The index's asked lists these, with
     *  the distance as greatest distance of the point if it is a dwithin. */
    oj_status (*join_one)(const struct oj_cuda_index *index,
                          struct oj_cuda_work *work,
                          const struct oj_cuda_points *points, int32_t *d_row,
                          double *d_measure) = NULL;

    /** Joins that give lists: makes l->out; waits for the stream to learn the
     *  size. More than max_pairs in a batch of two rows or more:
     *  OJ_ERR_TOO_MANY_PAIRS. NULL when the family has no such. */
    oj_status (*list)(const struct oj_cuda_index *index,
                      struct oj_cuda_listing *l) = NULL;

    /** Adds to tally the pairs of points; nothing when it returns
     *  OJ_ERR_NOMEM. NULL when the family has no such. */
    oj_status (*add)(const struct oj_cuda_index *index,
                     struct oj_cuda_work *work,
                     const struct oj_cuda_points *points,
                     const struct oj_cuda_tally *tally) = NULL;

    /** As join_one(), but where the index has an asked, rows that are better
     *  answered together with those of other chunks get OJ_TIED_ROW: asked
     *  answers them by its join_one(). NULL when the family has no such. */
    oj_status (*join_most)(const struct oj_cuda_index *index,
                           struct oj_cuda_work *work,
                           const struct oj_cuda_points *points, int32_t *d_row,
                           double *d_measure) = NULL;

    /** 1: the more rows go to a kernel at once, the closer together are those
     *  that its threads take side by side, and the less each of them costs. */
    int wants_large_chunks = 0;
};

/** The index that family builds of layer, which outlives it. */
OJ_MUST_USE oj_status oj_cuda_family_index(const struct oj_cuda_family *family,
                                           struct oj_cuda_device *device,
                                           const struct oj_cuda_layer *layer,
                                           const struct oj_relation *relation,
                                           struct oj_cuda_index **out,
                                           struct oj_error *err);
/** Accepts NULL. */
void oj_cuda_family_free(struct oj_cuda_index *index);
int64_t oj_cuda_family_bytes(const struct oj_cuda_index *index);

/** nearest of points: one each, any join features, or all that are as near;
 *  cuda_nearest.cu */
extern const struct oj_cuda_family oj_cuda_nearest;
/** Points in polygons; cuda_points_in_polygons.cu */
extern const struct oj_cuda_family oj_cuda_points_in_polygons;
/** Points and points: within a distance of the join's, equal;
 *  cuda_close_points.cu */
extern const struct oj_cuda_family oj_cuda_close_points;
/** Points in the envelopes of features; cuda_points_in_boxes.cu */
extern const struct oj_cuda_family oj_cuda_point_pairs;
/** nearest of points among points, with conditions or at any distance;
 *  cuda_nearest_points.cu */
extern const struct oj_cuda_family oj_cuda_near_points;
/** nearest and dwithin of points, by a packed tree; cuda_tree_distance_joins.cu
 */
extern const struct oj_cuda_family oj_cuda_tree_joins;
/** The join side of an index of that family; valid as long as the index. */
const struct oj_tree_side *
oj_cuda_tree_joins_side(const struct oj_cuda_index *index);

/** Similar texts; cuda_similar_text.cu */
extern const struct oj_cuda_family oj_cuda_similar_text;
/** The papers' methods for them, which are only asked by name (struct
 *  oj_gpu_module.papers_index); cuda_gssjoin.cu */
extern const struct oj_cuda_family oj_cuda_lists, oj_cuda_size_blocks;
/** And for vectors and points; cuda_lss.cu */
extern const struct oj_cuda_family oj_cuda_zlists;
/** And for trajectories; cuda_topkabt.cu */
extern const struct oj_cuda_family oj_cuda_cut_points;
/** nearest and dwithin by distances of shapes; cuda_similar_shapes.cu */
extern const struct oj_cuda_family oj_cuda_similar_shapes;
/** Similar vectors; cuda_similar_vectors.cu */
extern const struct oj_cuda_family oj_cuda_similar_vectors;

/** The nearest segment of points, for cuda_nearest.cu alone, which asks it
 *  about points far from everything; cuda_nearest_segment_of_far_points.cu */
extern const struct oj_cuda_family oj_cuda_near_segments;

enum
{
    OJ_CUDA_MOST_FAMILIES = 13
};

/** Families of the papers, bit by bit. */
#define OJ_CUDA_PAPERS ((1u << OJ_N_GPU_PAPERS) - 1)

/** Family i in the order they are asked, or NULL past the last. */
const struct oj_cuda_family *oj_cuda_family_at(int i);

#endif
