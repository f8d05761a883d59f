/** Families of kernels. Each family answers some joins between some kinds of
 *  features, with answers bit-identical to those of the cpu backend. */
#ifndef CUDA_FAMILY_H
#define CUDA_FAMILY_H

#include "../device/oj_cuda.h"
#include "oj_pair_conditions.h"

struct oj_cuda_family;
struct oj_gpu_index;    /* cuda_index.h */
struct oj_cuda_listing; /* cuda_pair_listing.cuh */
struct oj_cuda_share;   /* cuda_row_shares.cuh */

/** A family's index of one layer on one device. A family derives its own struct
 *  from this one; the members that it adds are zeroed. */
struct oj_cuda_index
{
    const struct oj_cuda_family *family;
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_relation relation;
    /** [n_features] tie rank of each feature, in device memory, for families
     *  with find_share(). NULL if tie ranks equal ordinals, and for other
     *  families. */
    const int32_t *rank;
    struct oj_cuda_memory memory; /**< owns the device arrays of the index */
    /** Index of another family, which answers the points that this family
     *  leaves open; owned, or NULL. */
    struct oj_cuda_index *asked;
};

/** Points of a batch in device memory. x is NaN if a row has no point. */
struct oj_cuda_points
{
    int64_t n;
    const double *x, *y; /**< [n] */

    /* Columns [n], for families with reads_columns. A column is NULL if the
     * batch does not have it or the join does not need it. */
    const int64_t *fid;
    const int32_t *on_class, *exclude_class;
    const double *max_distance;
};

/** Batches of at least this many points are sorted by location before they are
 *  joined; smaller ones keep their order. */
#define OJ_CUDA_FEW_POINTS 4096

/** Maximum size, in bytes per point, of the columns that conditions read. */
#define OJ_CUDA_POINT_COLUMN_BYTES 24

/** Returns the conditions of relation on columns of points and layer. */
struct oj_pair_rule
oj_cuda_family_pair_rule(const struct oj_relation *relation,
                         const struct oj_cuda_layer *layer,
                         const struct oj_cuda_points *points);

/** Sums per join feature on one device, while the chunks of a batch are added
 *  (oj_sum_request.h). The words exist in several copies, and blocks add to
 *  different copies: otherwise they would wait for each other at features with
 *  many points. */
struct oj_cuda_tally
{
    /** The request, with columns [n points] in device memory. If
     *  request.n_words is 1, the only word of a feature counts its pairs, and
     *  n_copies is 1. */
    struct oj_sum_request request;
    unsigned n_copies; /**< a power of two */
    /** Number of words of a copy: n_features * words per feature. */
    int64_t copy_words;
    /** [n_copies * copy_words] the copies; each is indexed by ordinals of the
     *  join layer. */
    unsigned long long *words;
};

/** Pairs of a batch in device memory, as lists (struct oj_matches): row i is
 *  point i; each row is sorted as the relation demands. */
struct oj_cuda_pairs
{
    int64_t n_pairs;
    struct oj_cuda_array<int64_t> offset; /**< [n + 1] */
    struct oj_cuda_array<int32_t> row;    /**< [n_pairs] join ordinal */
    struct oj_cuda_array<double> measure; /**< [n_pairs], or empty if the pairs
                                               have no measure */
};

/** Finds this device's share of the pairs of rows first .. first + n - 1 of
 *  input; row numbers in the result count from first. If it returns
 *  OJ_ERR_NOMEM, it is called again for half as many rows. The device is
 *  current. The function is called on all devices with equal arguments. */
typedef oj_status oj_cuda_family_share_finder(const struct oj_cuda_index *index,
                                              const struct oj_flat *input,
                                              int64_t first, int64_t n,
                                              struct oj_cuda_share *share,
                                              struct oj_stats *stats,
                                              struct oj_error *err);

struct oj_cuda_family
{
    const char *name; /**< name shown by -explain */

    /** Returns 1 if this family answers relation for this join side and this
     *  batch. If input is NULL, the answer is for any layer of points. A family
     *  without find_share() is only asked about points in the plane, a family
     *  without reads_columns only about joins that read no columns. */
    int (*supports)(const struct oj_relation *relation,
                    const struct oj_flat *join_side,
                    const struct oj_flat *input);

    size_t size; /**< sizeof the family's index */

    /** Builds the family's own members of the index. The arrays of *work then
     *  belong to the index. On return all work is done, or enqueued on the
     *  device's stream. */
    oj_status (*build)(struct oj_cuda_index *index, struct oj_cuda_work *work);

    /** 1 if the family evaluates columns of both sides
     *  (oj_cuda_needs_columns(), a maximum distance per input feature); 0 if it
     *  must not be used for joins that need such columns. */
    int reads_columns;

    /** If set, the family takes features of any kinds: it joins rows of the
     *  batch as they are. The index's layer then holds only flat, which has at
     *  least one feature, and tie_rank, and the functions below are NULL. If
     *  find_share is NULL, the family takes points, chunk by chunk, by the
     *  functions below. */
    oj_cuda_family_share_finder *find_share;

    /** Returns the bytes of device memory that a batch of n rows needs in
     *  addition to its points and to one answer per row. The number of rows of
     *  a chunk depends on it. */
    int64_t (*batch_bytes)(const struct oj_cuda_index *index, int64_t n) = NULL;

    /** Finds one answer per point: writes its join ordinal or -1 to d_row, and
     *  the distance or NaN to d_measure, which may be NULL. Thread-safe on
     *  different streams. NULL if the family does not support this. If the join
     *  gives lists and the family has no list(), join_one() writes OJ_TIED_ROW
     *  for a point that may have several pairs or none. The index `asked` then
     *  lists the pairs of such points by a dwithin join, with the distance
     *  found for a point as its maximum distance. */
    oj_status (*join_one)(const struct oj_cuda_index *index,
                          struct oj_cuda_work *work,
                          const struct oj_cuda_points *points, int32_t *d_row,
                          double *d_measure) = NULL;

    /** Lists all pairs of the points: makes l->out, and waits for the stream to
     *  read the number of pairs. Fails with OJ_ERR_TOO_MANY_PAIRS if a batch of
     *  two or more rows has more than max_pairs. NULL if the family does not
     *  support this. */
    oj_status (*list)(const struct oj_cuda_index *index,
                      struct oj_cuda_listing *l) = NULL;

    /** Adds the pairs of points to *tally. On OJ_ERR_NOMEM nothing is added.
     *  NULL if the family does not support this. */
    oj_status (*add)(const struct oj_cuda_index *index,
                     struct oj_cuda_work *work,
                     const struct oj_cuda_points *points,
                     const struct oj_cuda_tally *tally) = NULL;

    /** Like join_one(), but may write OJ_TIED_ROW for rows that are cheaper to
     *  answer together with rows of other chunks; the join_one() of `asked`
     *  answers these rows later. NULL if the family does not support this. */
    oj_status (*join_most)(const struct oj_cuda_index *index,
                           struct oj_cuda_work *work,
                           const struct oj_cuda_points *points, int32_t *d_row,
                           double *d_measure) = NULL;

    /** 1 if a row costs less in a larger chunk, because the points of
     *  neighbouring threads then lie closer together. */
    int wants_large_chunks = 0;
};

/** Builds the index of a family over layer, which must outlive the index. The
 *  caller frees *out by oj_cuda_family_free(). */
OJ_MUST_USE oj_status oj_cuda_family_build_index(
    const struct oj_cuda_family *family, struct oj_cuda_device *device,
    const struct oj_cuda_layer *layer, const struct oj_relation *relation,
    struct oj_cuda_index **out, struct oj_error *err);
/** Frees an index; accepts NULL. */
void oj_cuda_family_free(struct oj_cuda_index *index);
int64_t oj_cuda_family_bytes(const struct oj_cuda_index *index);

/** Nearest segment of points, one pair per point or all ties; cuda_nearest.cu
 */
extern const struct oj_cuda_family oj_cuda_nearest;
/** Points in polygons; cuda_points_in_polygons.cu */
extern const struct oj_cuda_family oj_cuda_points_in_polygons;
/** Pairs of points that are equal, or within the maximum distance of the join;
 *  cuda_close_points.cu */
extern const struct oj_cuda_family oj_cuda_close_points;
/** Points in the envelopes of features; cuda_points_in_boxes.cu */
extern const struct oj_cuda_family oj_cuda_point_pairs;
/** Nearest points of points, with conditions on pairs or without maximum
 *  distance; cuda_nearest_points.cu */
extern const struct oj_cuda_family oj_cuda_near_points;
/** Nearest and dwithin of points by a packed tree; cuda_tree_distance_joins.cu
 */
extern const struct oj_cuda_family oj_cuda_tree_joins;
/** Returns the join side in an index of oj_cuda_tree_joins; valid as long as
 *  the index. */
const struct oj_tree_side *
oj_cuda_tree_joins_side(const struct oj_cuda_index *index);

/** Similar texts; cuda_similar_text.cu */
extern const struct oj_cuda_family oj_cuda_similar_text;
/** Papers' methods for similar texts; chosen only by name
 *  (oj_gpu_module.papers_index); cuda_gssjoin.cu */
extern const struct oj_cuda_family oj_cuda_lists, oj_cuda_size_blocks;
/** Paper's method for vectors and points (backend cuda_zlists); cuda_lss.cu */
extern const struct oj_cuda_family oj_cuda_zlists;
/** Paper's method for trajectories (backend cuda_cut_points); cuda_topkabt.cu
 */
extern const struct oj_cuda_family oj_cuda_cut_points;
/** Paper's methods for points: trees of G-PICS; cuda_gpics.cu */
extern const struct oj_cuda_family oj_cuda_gpics_quadtree, oj_cuda_gpics_kdtree,
    oj_cuda_gpics_quadtree_single, oj_cuda_gpics_kdtree_single;
/** Nearest and dwithin by distances of shapes (Hausdorff, Frechet);
 *  cuda_similar_shapes.cu */
extern const struct oj_cuda_family oj_cuda_similar_shapes;
/** Similar vectors; cuda_similar_vectors.cu */
extern const struct oj_cuda_family oj_cuda_similar_vectors;

/** Nearest segment of points far from all features; used only by
 *  cuda_nearest.cu; cuda_nearest_segment_of_far_points.cu */
extern const struct oj_cuda_family oj_cuda_near_segments;

enum
{
    OJ_CUDA_MOST_FAMILIES = 17
};

/** Bits of the papers' families in masks of families (bit i: family i). */
#define OJ_CUDA_PAPERS ((1u << OJ_N_GPU_PAPERS) - 1)

/** Returns family i in the order of preference, or NULL past the last. */
const struct oj_cuda_family *oj_cuda_family_at(int i);

#endif
