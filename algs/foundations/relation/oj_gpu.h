/** Interface between the library and its CUDA module.
 *
 *  The module, ogrjoin_cuda.so, is loaded at the first use and only then; it
 *  carries its own copy of CUDA's run time and exports one function,
 *  oj_gpu_module(). Code that includes this header needs no CUDA headers.
 */
#ifndef OJ_GPU_H
#define OJ_GPU_H

#include "../aggregate/oj_sum_request.h"
#include "../kernels/oj_box.h"
#include "oj_backend_registry.h"
#include "oj_screen.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the interface. Increase it when this header or any struct that it
 * passes on changes. */
#define OJ_GPU_ABI 15u

#define OJ_GPU_MAX_DEVICES 64

struct oj_gpu_device
{
    int ordinal;      /**< number of the device in CUDA */
    char name[128];   /**< "NVIDIA H200" */
    int major, minor; /**< compute capability */
    int64_t total_bytes, free_bytes;
    int n_processors;  /**< streaming multiprocessors */
    char why_not[160]; /**< "" if usable, else the reason in words */
};

/* The join side as held by the module: for its own kernels, for a screen, and
 * for the paper's quadrant method. */
struct oj_gpu_index;
struct oj_gpu_screen;
struct oj_gpu_quadrant_index;

/** Points in the memory of one device. x is NaN for a missing point. */
struct oj_gpu_points
{
    int64_t n;
    const double *x, *y; /**< [n] */
    const int64_t *fid;  /**< [n] for self joins; else NULL */
    int64_t stride;      /**< elements from one x (and y) to the next; 0
                              means 1 */
};

/** The pairs of such points, in memory of that device. */
struct oj_gpu_pairs
{
    int64_t n_points, n_pairs;
    int64_t *offset; /**< [n_points + 1]; NULL: one pair per point */
    int32_t *row;    /**< [n_pairs] join row, or -1: none */
    double *measure; /**< [n_pairs], or NULL: not wanted; NaN where row is -1 */
};

/* A kept index of points on devices. */
struct oj_gpu_live;

/** Counts of a kept index, and of what its batches have done, as in struct
 * oj_live_counts. */
struct oj_gpu_live_counts
{
    int64_t n, n_put, n_moved, n_removed, n_unknown, n_unjoinable, n_superseded,
        n_rebuilt, n_pages, n_bytes;
};

/** Rows that are joined with kept points: points, or boxes. */
struct oj_gpu_live_rows
{
    int64_t n;
    const double *x, *y;      /**< [n] NaN: no point; NULL: there are boxes */
    const struct oj_box *box; /**< [n] pairs are the points in them; or NULL */
    const int64_t *fid;       /**< [n], or NULL */
    const double *max_distance; /**< [n], or NULL: that of the relation */
};

/** Their pairs, in host memory. Owner (oj_free()); zeroed memory is valid. */
struct oj_gpu_live_pairs
{
    int64_t n_rows, n, cap_id, cap_distance;
    int64_t *offset; /**< [n_rows + 1] */
    int64_t *id;
    double *distance; /**< NaN if rows are boxes */
};

/** The greatest k of a nearest join with kept points. */
#define OJ_GPU_LIVE_MOST_K 32

/** Methods of papers for similar texts, vectors and trajectories. */
enum oj_gpu_papers
{
    OJ_GPU_LISTS,       /**< gSSJoin */
    OJ_GPU_SIZE_BLOCKS, /**< sf-gSSJoin */
    OJ_GPU_ZLISTS,      /**< LSS */
    OJ_GPU_CUT_POINTS,  /**< Top-KaBT */
    OJ_N_GPU_PAPERS
};

/** Functions of the module. After a failure the process and the other devices
 * stay usable. */
struct oj_gpu_module
{
    uint32_t abi;
    const char *build; /**< CUDA version and architectures, in one line */

    /** Number of devices that CUDA finds; OJ_ERR_NO_DEVICE with the reason if
     * none. */
    oj_status (*count)(int *n, struct oj_error *err);
    oj_status (*describe)(int ordinal, struct oj_gpu_device *out,
                          struct oj_error *err);

    /** 1 if a kernel family of the module takes this join; input NULL: any
     * layer of points. Other joins stay on the CPU. */
    int (*takes)(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input);

    /** Name of the method that answers the join, for -explain. index NULL: no
     * index was made yet. */
    const char *(*method)(const struct oj_gpu_index *index,
                          const struct oj_relation *relation,
                          const struct oj_flat *join_side,
                          const struct oj_flat *input);

    /* Like build and join of struct oj_engine. Devices and memory limits come
     * from options.  OJ_ERR_UNSUPPORTED: the module's structures cannot hold
     * these data. */
    oj_status (*index)(const struct oj_flat *join_side, const int32_t *tie_rank,
                       const struct oj_relation *relation,
                       const struct oj_options *options,
                       struct oj_gpu_index **out, struct oj_stats *stats,
                       struct oj_error *err);
    oj_status (*papers_index)(enum oj_gpu_papers method,
                              const struct oj_flat *join_side,
                              const int32_t *tie_rank,
                              const struct oj_relation *relation,
                              const struct oj_options *options,
                              struct oj_gpu_index **out, struct oj_stats *stats,
                              struct oj_error *err); /**< options for join() */
    oj_status (*join)(struct oj_gpu_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err);
    /** Like oj_join_sum_pairs(). A request of one word only counts pairs. */
    oj_status (*sum_pairs)(struct oj_gpu_index *index,
                           const struct oj_flat *input,
                           const struct oj_sum_request *request, int64_t *words,
                           int64_t *n_pairs, struct oj_stats *stats,
                           struct oj_error *err);
    void (*free_index)(struct oj_gpu_index *index);

    /** Why a better method was not used: it cannot hold the join side, or lacks
     * memory. "" if the best one is in use. */
    const char *(*why_refused)(const struct oj_gpu_index *index);

    /* The screen (oj_screen.h): finds pairs whose boxes pass, with a verdict on
     * each, on the first device of options. For features of any kinds, except
     * points with points.  OJ_ERR_TOO_MANY_PAIRS: more than most (> 0). */
    oj_status (*screen_index)(const struct oj_flat *join_side,
                              const struct oj_screen_rule *rule,
                              const struct oj_options *options,
                              struct oj_gpu_screen **out,
                              struct oj_stats *stats, struct oj_error *err);
    oj_status (*screen_find)(struct oj_gpu_screen *screen,
                             const struct oj_flat *input, int64_t most,
                             struct oj_screen_pairs *out,
                             struct oj_stats *stats, struct oj_error *err);
    void (*screen_free)(struct oj_gpu_screen *screen); /**< accepts NULL */

    /* The paper's quadrant method, as a baseline: the nearest feature of each
     * point within a finite distance, ties to the first.  Like build and join
     * of struct oj_engine, on the first device of options; stages are timed by
     * the device's clock. The caller checks that the join is of this kind. */
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
        struct oj_gpu_quadrant_index *index); /**< accepts NULL */

    /* Joins of points that are already in memory of the first device of
     * options. Kernels are queued on a stream of the caller (a cudaStream_t),
     * who synchronises it; only the sizes of lists are waited for. The caller's
     * current device is left unchanged. */
    oj_status (*resident_index)(const struct oj_flat *join_side,
                                const int32_t *tie_rank,
                                const struct oj_relation *relation,
                                const struct oj_options *options,
                                struct oj_gpu_index **out,
                                struct oj_stats *stats, struct oj_error *err);
    oj_status (*resident_join)(struct oj_gpu_index *index,
                               const struct oj_gpu_points *points, void *stream,
                               struct oj_gpu_pairs *out, struct oj_error *err);
    /** Synchronises the device first. */
    void (*resident_free)(struct oj_gpu_index *index,
                          struct oj_gpu_pairs *pairs);

    /** The device that owns this memory; OJ_ERR_ARG if none does. */
    oj_status (*device_of)(const void *memory, int *ordinal,
                           struct oj_error *err);
    /** Makes later work on stream `then` wait for the present work on stream
     * `first`. */
    oj_status (*order_streams)(int ordinal, void *first, void *then,
                               struct oj_error *err);

    /* A kept index of points on the devices of options, which share the points
     * by their ids. All functions may be called by several threads: they wait
     * for one another. */
    oj_status (*live_new)(const struct oj_options *options,
                          struct oj_gpu_live **out, struct oj_error *err);
    /** Applies n changes as one instant, as oj_live_apply() does. */
    oj_status (*live_apply)(struct oj_gpu_live *live, int64_t n,
                            const int64_t *id, const double *x, const double *y,
                            struct oj_error *err);
    /** The pairs of rows with the points of now: nearest with k <=
     * OJ_GPU_LIVE_MOST_K, dwithin, or the points in boxes; sorted by distance
     * and id, or by id. Of relation it reads op, k, ties, the distances and
     * what excludes pairs. OJ_ERR_TOO_MANY_PAIRS: more than max_pairs (> 0). */
    oj_status (*live_join)(struct oj_gpu_live *live,
                           const struct oj_relation *relation,
                           const struct oj_gpu_live_rows *rows,
                           int64_t max_pairs, struct oj_gpu_live_pairs *out,
                           struct oj_error *err);
    /** All points, in no particular order: the caller frees the arrays by
     * oj_free(). */
    oj_status (*live_points)(struct oj_gpu_live *live, int64_t *n, int64_t **id,
                             double **x, double **y, struct oj_error *err);
    struct oj_gpu_live_counts (*live_count)(struct oj_gpu_live *live);
    void (*live_free)(struct oj_gpu_live *live); /**< accepts NULL */
};

/** The only exported function; returns NULL unless abi is the module's own. */
typedef const struct oj_gpu_module *oj_gpu_module_function(uint32_t abi);
#define OJ_GPU_MODULE_SYMBOL "oj_gpu_module"

/** Loads the module at the first call and returns it; all callers share it.
 * Search order of the file: oj_gpu_module_file.h. OJ_ERR_NO_DEVICE with the
 * reason: not there, not loadable (no driver) or of another version.
 * Thread-safe. */
OJ_MUST_USE oj_status oj_gpu_load(const struct oj_gpu_module **out,
                                  struct oj_error *err);

/** Loads the module and sets *gpus to the devices that options name, one bit
 * each; OJ_ALL_GPUS gives those that work. */
OJ_MUST_USE oj_status oj_gpu_find(const struct oj_options *options,
                                  const struct oj_gpu_module **module,
                                  uint64_t *gpus, struct oj_error *err);

/** Appends advice to an out-of-memory message, after "; ", unless the message
 * has such a part already: that one is more specific. */
void oj_gpu_advise(struct oj_error *why, const char *advice);

/** Advice for an index: a part of the join side may fit. */
#define OJ_GPU_ADVICE_TILES "-memory SIZE makes tiles, which need less"

/** Advice for a batch. */
#define OJ_GPU_ADVICE_BATCH "a smaller -gpu_batch needs less"

#ifdef __cplusplus
}
#endif
#endif
