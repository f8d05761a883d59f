/** Interface between the library and its CUDA module, ogrjoin_cuda.so. The
 * module is loaded at its first use. It is linked with its own copy of the CUDA
 * runtime and exports one function, oj_gpu_module(). Code that includes this
 * header needs no CUDA headers. */
#ifndef OJ_GPU_H
#define OJ_GPU_H

#include "../aggregate/oj_sum_request.h"
#include "../kernels/oj_box.h"
#include "oj_backend_registry.h"
#include "oj_screen.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the interface. Increase it whenever this header or a struct that
 * it uses changes. */
#define OJ_GPU_ABI 17u

#define OJ_GPU_MAX_DEVICES 64

/** A CUDA device and whether it can be used. */
struct oj_gpu_device
{
    int ordinal;      /**< device number in CUDA */
    char name[128];   /**< "NVIDIA H200" */
    int major, minor; /**< compute capability, as 9.0 */
    int64_t total_bytes, free_bytes;
    int n_processors;  /**< streaming multiprocessors */
    char why_not[160]; /**< "" if the device is usable, else the reason */
};

/* The join side in the module, in three forms: for its own kernels, for the
 * screen, and for the quadrant method of the paper. */
struct oj_gpu_index;
struct oj_gpu_screen;
struct oj_gpu_quadrant_index;

/** Points in the memory of one device. */
struct oj_gpu_points
{
    int64_t n;
    const double *x, *y; /**< [n], `stride` apart; x is NaN for a missing
                              point */
    const int64_t *fid;  /**< [n] input FIDs, for self joins; otherwise NULL */
    int64_t stride;      /**< number of elements from one x to the next; 0 means
                              1 */
};

/** Pairs of points that are in device memory. The arrays are in device memory,
 * too. */
struct oj_gpu_pairs
{
    int64_t n_points, n_pairs;
    int64_t *offset; /**< [n_points + 1] first pair of each point; NULL: exactly
                          one entry per point */
    int32_t *row;    /**< [n_pairs] join row; -1: no pair */
    double *measure; /**< [n_pairs]; NaN where row is -1; NULL: not requested */
};

/* A live index of points on devices (see algs/live). */
struct oj_gpu_live;

/** Number of points in the index, and counts of changes to it. The members are
 * those of struct oj_live_counts (algs/live/oj_live.h), which explains them. */
struct oj_gpu_live_counts
{
    int64_t n, n_put, n_moved, n_removed, n_unknown, n_unjoinable, n_superseded,
        n_rebuilt, n_pages, n_bytes;
};

/** Input rows of a join with a live index: points, or boxes. */
struct oj_gpu_live_rows
{
    int64_t n;
    const double *x, *y;      /**< [n] x is NaN for a missing point; NULL: the
                                   rows are boxes */
    const struct oj_box *box; /**< [n] boxes; a pair is a point in a box. NULL:
                                   the rows are points */
    const int64_t *fid; /**< [n] ids of the rows, which exclusions compare with
                             the ids of points; may be NULL */
    const double *max_distance; /**< [n] maximum distance of each row; NULL: the
                                     relation's maximum for all rows */
};

/** Pairs of a join with a live index, in host memory. Owner (free with
 * oj_free()); zeroed memory is valid. */
struct oj_gpu_live_pairs
{
    int64_t n_rows, n, cap_id, cap_distance;
    int64_t *offset; /**< [n_rows + 1] first pair of each row */
    int64_t *id;
    double *distance; /**< [n]; NaN if the rows are boxes */
};

/** Maximum k of a nearest join with a live index. */
#define OJ_GPU_LIVE_MOST_K 32

/** Published methods for similar texts, vectors, trajectories and points. */
enum oj_gpu_papers
{
    OJ_GPU_LISTS,          /**< gSSJoin */
    OJ_GPU_SIZE_BLOCKS,    /**< sf-gSSJoin */
    OJ_GPU_ZLISTS,         /**< LSS */
    OJ_GPU_CUT_POINTS,     /**< Top-KaBT */
    OJ_GPU_GPICS_QUADTREE, /**< G-PICS: rows registered at leaves */
    OJ_GPU_GPICS_KDTREE,
    OJ_GPU_GPICS_QUADTREE_SINGLE, /**< G-PICS: a thread for each row */
    OJ_GPU_GPICS_KDTREE_SINGLE,
    OJ_N_GPU_PAPERS
};

/** Functions of the module. After a failure the process and all other devices
 * remain usable. */
struct oj_gpu_module
{
    uint32_t abi;
    const char *build; /**< text with the CUDA version and the architectures */

    /** Counts the devices that CUDA finds. OJ_ERR_NO_DEVICE with the reason if
     * there are none. */
    oj_status (*count)(int *n, struct oj_error *err);
    oj_status (*describe)(int ordinal, struct oj_gpu_device *out,
                          struct oj_error *err);

    /** Returns 1 if the module has kernels for this join. If input is NULL, the
     * question is for any layer of points as input. */
    int (*supports)(const struct oj_relation *relation,
                    const struct oj_flat *join_side,
                    const struct oj_flat *input);

    /** Returns the name of the method by which the module joins, for -explain.
     * index may be NULL if it is not built yet. */
    const char *(*method)(const struct oj_gpu_index *index,
                          const struct oj_relation *relation,
                          const struct oj_flat *join_side,
                          const struct oj_flat *input);

    /* index() and join() correspond to build and join of struct oj_engine.
     * OJ_ERR_UNSUPPORTED: the module's data structures cannot hold the join
     * side. */
    oj_status (*index)(const struct oj_flat *join_side, const int32_t *tie_rank,
                       const struct oj_relation *relation,
                       const struct oj_options *options,
                       struct oj_gpu_index **out, struct oj_stats *stats,
                       struct oj_error *err);
    /** Like index(), for one of the papers' methods. */
    oj_status (*papers_index)(enum oj_gpu_papers method,
                              const struct oj_flat *join_side,
                              const int32_t *tie_rank,
                              const struct oj_relation *relation,
                              const struct oj_options *options,
                              struct oj_gpu_index **out, struct oj_stats *stats,
                              struct oj_error *err);
    oj_status (*join)(struct oj_gpu_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err);
    /** Counts and sums pairs like oj_join_sum_pairs(). If each feature has a
     * single word, pairs are only counted. */
    oj_status (*sum_pairs)(struct oj_gpu_index *index,
                           const struct oj_flat *input,
                           const struct oj_sum_request *request, int64_t *words,
                           int64_t *n_pairs, struct oj_stats *stats,
                           struct oj_error *err);
    void (*free_index)(struct oj_gpu_index *index);

    /** Returns the reason why a faster method is not used (it cannot hold the
     * join side, or memory does not suffice), or "" if the fastest is used. */
    const char *(*why_refused)(const struct oj_gpu_index *index);

    /* The screen (oj_screen.h) finds the pairs whose boxes pass, each with a
     * verdict. The devices of options share the rows. Features may be of any
     * kinds, except points with points. OJ_ERR_TOO_MANY_PAIRS: there are more
     * than `most` pairs, and most > 0. */
    oj_status (*screen_index)(const struct oj_flat *join_side,
                              const struct oj_screen_rule *rule,
                              const struct oj_options *options,
                              struct oj_gpu_screen **out,
                              struct oj_stats *stats, struct oj_error *err);
    oj_status (*screen_find)(struct oj_gpu_screen *screen,
                             const struct oj_flat *input, int64_t most,
                             struct oj_screen_pairs *out,
                             struct oj_stats *stats, struct oj_error *err);
    /** screen may be NULL */
    void (*screen_free)(struct oj_gpu_screen *screen);

    /* The quadrant method of the paper, as a baseline. Finds the nearest
     * feature of each point within a finite distance; ties go to the feature
     * with the lowest tie rank. quadrant_index() and quadrant_join() correspond
     * to build and join of struct oj_engine. The method uses the first device
     * of options and measures its stages by the device's clock. Precondition:
     * the caller has checked that the join is of this kind. */
    oj_status (*quadrant_index)(const struct oj_flat *join_side,
                                const int32_t *tie_rank,
                                const struct oj_relation *relation,
                                const struct oj_options *options,
                                struct oj_gpu_quadrant_index **out,
                                struct oj_stats *stats, struct oj_error *err);
    oj_status (*quadrant_join)(struct oj_gpu_quadrant_index *index,
                               const struct oj_flat *input,
                               struct oj_matches *out, struct oj_stats *stats,
                               struct oj_error *err);
    void (*quadrant_free)(
        struct oj_gpu_quadrant_index *index); /**< index may be NULL */

    /* Joins points that are already in the memory of the first device of
     * options. Kernels run on the caller's stream (a cudaStream_t), which the
     * caller synchronises; these functions only wait until the sizes of lists
     * are known. The caller's current device is unchanged on return. */
    oj_status (*resident_index)(const struct oj_flat *join_side,
                                const int32_t *tie_rank,
                                const struct oj_relation *relation,
                                const struct oj_options *options,
                                struct oj_gpu_index **out,
                                struct oj_stats *stats, struct oj_error *err);
    oj_status (*resident_join)(struct oj_gpu_index *index,
                               const struct oj_gpu_points *points, void *stream,
                               struct oj_gpu_pairs *out, struct oj_error *err);
    /** Synchronises the device and frees the arrays of pairs, which
     * resident_join() has made with this index. */
    void (*resident_free)(struct oj_gpu_index *index,
                          struct oj_gpu_pairs *pairs);

    /** Sets *ordinal to the device that owns this memory; OJ_ERR_ARG if no
     * device does. */
    oj_status (*device_of)(const void *memory, int *ordinal,
                           struct oj_error *err);
    /** Makes all work that is queued on stream `then` from now on wait for the
     * work that is queued on stream `first` now. */
    oj_status (*order_streams)(int ordinal, void *first, void *then,
                               struct oj_error *err);

    /* Makes a live index of points. Points are distributed to the devices of
     * options by their coordinates. Thread-safe: all functions of a live index
     * lock it. */
    oj_status (*live_new)(const struct oj_options *options,
                          struct oj_gpu_live **out, struct oj_error *err);
    /** Applies n changes atomically, as oj_live_apply() does: sets point id[i]
     * to (x[i], y[i]); x[i] NaN removes it. */
    oj_status (*live_apply)(struct oj_gpu_live *live, int64_t n,
                            const int64_t *id, const double *x, const double *y,
                            struct oj_error *err);
    /** Finds the pairs of rows with the current points. Joins: nearest with k
     * <= OJ_GPU_LIVE_MOST_K, dwithin, points in boxes. The pairs of a row are
     * sorted by (distance, id), those of a box by id. Used members of
     * relation: op, k, ties, distances and exclusions. OJ_ERR_TOO_MANY_PAIRS:
     * there are more than max_pairs pairs, and max_pairs > 0. */
    oj_status (*live_join)(struct oj_gpu_live *live,
                           const struct oj_relation *relation,
                           const struct oj_gpu_live_rows *rows,
                           int64_t max_pairs, struct oj_gpu_live_pairs *out,
                           struct oj_error *err);
    /** Lists all points in no particular order. The caller frees the arrays
     * with oj_free(). */
    oj_status (*live_points)(struct oj_gpu_live *live, int64_t *n, int64_t **id,
                             double **x, double **y, struct oj_error *err);
    struct oj_gpu_live_counts (*live_count)(struct oj_gpu_live *live);
    void (*live_free)(struct oj_gpu_live *live); /**< live may be NULL */
};

/** The only exported function. Returns NULL unless abi equals the module's
 * OJ_GPU_ABI. */
typedef const struct oj_gpu_module *oj_gpu_module_function(uint32_t abi);
#define OJ_GPU_MODULE_SYMBOL "oj_gpu_module"

/** Loads the module at the first call and returns it; later calls return the
 * loaded module. The file is searched by oj_gpu_module_file_open().
 * OJ_ERR_NO_DEVICE with the reason: the file is missing, cannot be loaded (no
 * driver) or has another version. Thread-safe. */
OJ_MUST_USE oj_status oj_gpu_load(const struct oj_gpu_module **out,
                                  struct oj_error *err);

/** Loads the module and sets *gpus to the devices that options->gpus selects,
 * one bit each. OJ_ALL_GPUS becomes the set of all usable devices; 0, which
 * means device 0, remains 0. */
OJ_MUST_USE oj_status oj_gpu_load_and_choose_devices(
    const struct oj_options *options, const struct oj_gpu_module **module,
    uint64_t *gpus, struct oj_error *err);

/** Appends "; " and advice to an out-of-memory message. Does nothing if the
 * message has advice already, which is then more specific. */
void oj_gpu_add_advice(struct oj_error *why, const char *advice);

/** Advice when the index does not fit into memory: one tile of the join side
 * may fit. */
#define OJ_GPU_ADVICE_TILES "-memory SIZE makes tiles, which need less"

/** Advice when a batch does not fit into memory. */
#define OJ_GPU_ADVICE_BATCH "a smaller -gpu_batch needs less"

#ifdef __cplusplus
}
#endif
#endif
