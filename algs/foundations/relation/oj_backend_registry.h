/** The table of backends: what a user chooses between.  All take the same flat
 *  layers and give the same matches. */
#ifndef OJ_BACKEND_REGISTRY_H
#define OJ_BACKEND_REGISTRY_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "oj_pair_budget.h"
#include "oj_relation.h"

#ifdef __cplusplus
extern "C" {
#endif

/** All devices that can be used, in struct oj_options.gpus. */
#define OJ_ALL_GPUS UINT64_MAX

struct oj_engine;

/** How to run, as against what to ask (struct oj_relation). */
struct oj_options
{
    int n_threads;         /**< >= 1, or 0: all that the machine has */
    int64_t quadrant_size; /**< methods that group points: at most K; 0: 256 */
    int timings;           /**< 1: tell filter and refine apart (costs a bit) */
    const int *cancel; /**< read often; nonzero stops the join; may be NULL */

    /** > 0: a batch of two rows or more that has more pairs is
     *  OJ_ERR_TOO_MANY_PAIRS (oj_pair_budget.h); 0: no bound. */
    int64_t max_batch_pairs;

    /** Kinds of parts that the input side will have, enum oj_part_kind or'ed,
     *  where that is known: what they need is indexed at once, and what others
     *  need only if they come.  0: points, as a rule. */
    unsigned input_kinds;

    /** Rows that will be joined in all, 0: not known; auto chooses by it. */
    int64_t n_expected;

    /* Only for the backend cuda. */
    uint64_t gpus;      /**< bit i: use CUDA device i; 0: device 0 */
    int64_t gpu_memory; /**< bytes to use at most on each; 0: what is free */
    int64_t gpu_batch;  /**< rows of a piece of work; 0: chosen */
};

/** Wall seconds by phase and counts of work, summed over calls. */
struct oj_stats
{
    double index_s;  /**< preparing the join side */
    double sort_s;   /**< ordering or grouping the input points */
    double filter_s; /**< finding candidates (only with timings) */
    double refine_s; /**< exact distances; without timings all of the join */
    int64_t n_candidates; /**< (point, feature or segment) pairs refined */
    int64_t index_bytes;

    /** Pairs that were counted or summed, and never made. */
    int64_t n_pairs_unmade;

    /** Pairs that a backend of GEOS could not decide; no pairs of the answer.
     */
    int64_t n_undecided_pairs;
    char undecided_text[128]; /**< GEOS's reason for the first of them */

    /** The work of each way that the last batch could have gone, as counted
     *  before it went one of them, and which; "" where there is one way. */
    char choice[192];
};

enum oj_device_use
{
    OJ_NO_DEVICE = 0,
    OJ_DEVICE,        /**< the CUDA module first, for what its kernels take */
    OJ_DEVICE_IF_PAYS /**< the same, where it is expected to be faster */
};

struct oj_backend
{
    const char *name;        /**< value of -backend */
    const char *description; /**< one line for --help */
    int is_reference;        /**< 1: slow and plain, never chosen by auto */
    int rounds_as_geos;      /**< 1: GEOS decides its pairs, in rounded numbers
                                  where shapes nearly touch */
    int is_parallel;         /**< 1: on all threads; 0: one */
    enum oj_device_use device_use;
    const struct oj_engine *const *engines; /**< oj_index.h; the first that
                                                 takes a batch; NULL ends */
};

/** Row i of the table, or NULL past its end. Row 0 is the default. */
const struct oj_backend *oj_backend_at(int i);

/** The backend of a name (without case), or NULL. */
const struct oj_backend *oj_backend_find(const char *name);

/** Not in the table: its name stands for those of cpu and cuda. */
extern const struct oj_backend oj_auto_backend;

/** The backend of a name, auto's, too. Errors begin with dash and option, and
 *  have all names. */
OJ_MUST_USE oj_status oj_backend_read(const char *dash, const char *option,
                                      const char *name,
                                      const struct oj_backend **out,
                                      struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
