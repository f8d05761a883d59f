/** What the library and its CUDA module say to each other.
 *
 *  The module, ogrjoin_cuda.so, is loaded at the first use and only then; it
 *  carries its own copy of CUDA's run time and exports one function,
 *  oj_gpu_module(). Nothing of CUDA is seen above this header.
 */
#ifndef OJ_GPU_H
#define OJ_GPU_H

#include "../aggregate/oj_sum_request.h"
#include "oj_backend_registry.h"
#include "oj_screen.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Changes with this header and with every struct that it passes on. */
#define OJ_GPU_ABI 13u

#define OJ_GPU_MAX_DEVICES 64

struct oj_gpu_device
{
    int ordinal;      /**< as CUDA counts */
    char name[128];   /**< "NVIDIA H200" */
    int major, minor; /**< compute capability */
    int64_t total_bytes, free_bytes;
    int n_processors;  /**< streaming multiprocessors */
    char why_not[160]; /**< "" when usable, else the reason in words */
};

/* A join side, as the module has it for its own kernels, for a screen and for
 * the papers' method. */
struct oj_gpu_index;
struct oj_gpu_screen;
struct oj_gpu_quadrant_index;

/** Points in the memory of one device. x is NaN where there is none. */
struct oj_gpu_points
{
    int64_t n;
    const double *x, *y; /**< [n] */
    const int64_t *fid;  /**< [n] for self joins; else NULL */
    int64_t stride;      /**< from one x, and y, to the next; 0 is 1 */
};

/** Their pairs, in memory of that device, each [n_pairs]. */
struct oj_gpu_pairs
{
    int64_t n_points, n_pairs;
    int64_t *offset; /**< [n_points + 1]; NULL: one for each point */
    int32_t *row;    /**< join row, or -1: none */
    double *measure; /**< or NULL: none is measured; NaN without a row */
};

/** The papers' methods for similar texts, vectors and trajectories. */
enum oj_gpu_papers
{
    OJ_GPU_LISTS,       /**< gSSJoin */
    OJ_GPU_SIZE_BLOCKS, /**< sf-gSSJoin */
    OJ_GPU_ZLISTS,      /**< LSS */
    OJ_GPU_CUT_POINTS,  /**< Top-KaBT */
    OJ_N_GPU_PAPERS
};

/** The module's functions. Statuses and errors are as everywhere; a function
 *  that fails leaves the process and the other devices usable. */
struct oj_gpu_module
{
    uint32_t abi;
    const char *build; /**< CUDA version and architectures, one line */

    /** How many devices CUDA sees; OJ_ERR_NO_DEVICE says why there is none. */
    oj_status (*count)(int *n, struct oj_error *err);
    oj_status (*describe)(int ordinal, struct oj_gpu_device *out,
                          struct oj_error *err);

    /** 1 when the module's own kernels answer such a join; input NULL: any
     *  layer of points. What it does not take stays on the CPU. */
    int (*takes)(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input);

    /** The name of the method that answers it, for -explain. index: of such a
     *  join, or NULL: none was made yet. */
    const char *(*method)(const struct oj_gpu_index *index,
                          const struct oj_relation *relation,
                          const struct oj_flat *join_side,
                          const struct oj_flat *input);

    /* As those of struct oj_engine. Devices and memory limits come from
     * options.  OJ_ERR_UNSUPPORTED: the module's structures cannot hold these
     * data. */
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
                              struct oj_error *err); /**< for join() */
    oj_status (*join)(struct oj_gpu_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err);
    /** As oj_join_sum_pairs(); a request of one word: pairs are counted. */
    oj_status (*sum_pairs)(struct oj_gpu_index *index,
                           const struct oj_flat *input,
                           const struct oj_sum_request *request, int64_t *words,
                           int64_t *n_pairs, struct oj_stats *stats,
                           struct oj_error *err);
    void (*free_index)(struct oj_gpu_index *index);

    /** Why a method that would be better does not answer: it cannot hold the
     *  join side, or lacks the memory. "" when none was passed over. */
    const char *(*why_refused)(const struct oj_gpu_index *index);

    /* Pairs of features of any kinds but points alone whose boxes pass, and
     * what is known of them (oj_screen.h), on the first device of
     * options.  OJ_ERR_TOO_MANY_PAIRS: more than most (> 0). */
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

    /* The papers' method, to compare with: the nearest feature of each point
     * within a finite distance, ties to the first.  As those
     * of struct oj_engine, on the first device of options; stages are timed by
     * the device's clock. The caller asks for nothing else. */
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

    /* Points that stay on the first device of options. Work is given to a
     * stream of the caller's (a cudaStream_t), who waits for it; the size of
     * lists is waited for. The caller's current device stays. */
    oj_status (*resident_index)(const struct oj_flat *join_side,
                                const int32_t *tie_rank,
                                const struct oj_relation *relation,
                                const struct oj_options *options,
                                struct oj_gpu_index **out,
                                struct oj_stats *stats, struct oj_error *err);
    oj_status (*resident_join)(struct oj_gpu_index *index,
                               const struct oj_gpu_points *points, void *stream,
                               struct oj_gpu_pairs *out, struct oj_error *err);
    /** Waits for all streams of the device. */
    void (*resident_free)(struct oj_gpu_index *index,
                          struct oj_gpu_pairs *pairs);

    /** The device that memory is of; OJ_ERR_ARG: none. */
    oj_status (*device_of)(const void *memory, int *ordinal,
                           struct oj_error *err);
    /** What is given to stream then from now on waits for what first has. */
    oj_status (*order_streams)(int ordinal, void *first, void *then,
                               struct oj_error *err);
};

/** The one symbol of the module; NULL when abi is not its own. */
typedef const struct oj_gpu_module *oj_gpu_module_function(uint32_t abi);
#define OJ_GPU_MODULE_SYMBOL "oj_gpu_module"

/** The module, loaded at the first call; one place for all.  Which file it is:
 *  oj_gpu_module_file.h.
 *  OJ_ERR_NO_DEVICE: not there, not loadable (no driver) or of another
 *  version, with the reason.  Thread-safe. */
OJ_MUST_USE oj_status oj_gpu_load(const struct oj_gpu_module **out,
                                  struct oj_error *err);

/** The module, and which devices options name, bit by bit: those that work
 *  where they name all. */
OJ_MUST_USE oj_status oj_gpu_find(const struct oj_options *options,
                                  const struct oj_gpu_module **module,
                                  uint64_t *gpus, struct oj_error *err);

/** Adds to why there was no memory what helps, after "; ", unless the message
 *  has such a part already: whoever wrote it knew better. */
void oj_gpu_advise(struct oj_error *why, const char *advice);

/** For an index: a part of the join side may fit where all of it does not. */
#define OJ_GPU_ADVICE_TILES "-memory SIZE makes tiles, which need less"

/** For a batch. */
#define OJ_GPU_ADVICE_BATCH "a smaller -gpu_batch needs less"

#ifdef __cplusplus
}
#endif
#endif
