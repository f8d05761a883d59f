/** The table of backends, from which -backend chooses.  All backends take equal
 * flat layers and give equal matches. */
#ifndef OJ_BACKEND_REGISTRY_H
#define OJ_BACKEND_REGISTRY_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "oj_pair_budget.h"
#include "oj_relation.h"

#ifdef __cplusplus
extern "C" {
#endif

/** All usable devices, as a value of struct oj_options.gpus. */
#define OJ_ALL_GPUS UINT64_MAX

struct oj_engine;

/** How a join runs.  (What it asks for: struct oj_relation.) */
struct oj_options
{
    int n_threads;         /**< >= 1, or 0: all processors of the machine */
    int64_t quadrant_size; /**< maximum points per group, for engines that
                                group points; 0: 256 */
    int timings;           /**< 1: measure filter and refine separately
                                (slows the join a little) */
    const int *cancel; /**< polled often; nonzero stops the join; may be NULL */

    /** > 0: maximum pairs of a batch of two rows or more; more are
     * OJ_ERR_TOO_MANY_PAIRS (oj_pair_budget.h); 0: no bound */
    int64_t max_batch_pairs;

    /** Kinds of parts of the input side, enum oj_part_kind or'ed, if they are
     * known. Indexes for these kinds are built at once, others when the first
     * such part comes.  0: unknown, usually points. */
    unsigned input_kinds;

    /** Expected number of input rows in all, for the choice of backend by auto;
     * 0: unknown */
    int64_t n_expected;

    /* Only for the backend cuda. */
    uint64_t gpus;      /**< bit i: use CUDA device i; 0: device 0 */
    int64_t gpu_memory; /**< maximum bytes to use on each device; 0: the free
                             memory */
    int64_t gpu_batch;  /**< rows per transfer to the GPU; 0: chosen by the
                             module */
};

/** Takes from `from` the options that may differ from batch to batch: cancel
 * and max_batch_pairs. */
static inline void oj_options_set_batches(struct oj_options *options,
                                          const struct oj_options *from)
{
    options->cancel = from->cancel;
    options->max_batch_pairs = from->max_batch_pairs;
}

/** Wall-clock seconds by phase, and counters, summed over all calls. */
struct oj_stats
{
    double index_s;  /**< preparing the join side */
    double sort_s;   /**< ordering or grouping the input points */
    double filter_s; /**< finding candidates (only with timings) */
    double refine_s; /**< exact distances; without timings, the whole join */
    int64_t n_candidates; /**< (point, feature or segment) pairs that were
                               refined */
    int64_t index_bytes;

    /** Pairs that were counted or summed without being stored. */
    int64_t n_pairs_unmade;

    /** Pairs that the GEOS backends could not decide. They are not part of the
     * answer. */
    int64_t n_undecided_pairs;
    char undecided_text[128]; /**< GEOS's message for the first of them */

    /** If there are several methods: the estimated work of each for the last
     * batch, and the chosen one. Otherwise "". */
    char choice[192];
};

enum oj_device_use
{
    OJ_NO_DEVICE = 0,
    OJ_DEVICE,        /**< the CUDA module first, for joins that its kernels
                           take */
    OJ_DEVICE_IF_PAYS /**< likewise, but only if it is expected to be faster */
};

struct oj_backend
{
    const char *name;        /**< value of -backend */
    const char *description; /**< one line for --help */
    int is_reference;        /**< 1: slow and simple, never chosen by auto */
    int rounds_as_geos;      /**< 1: GEOS decides its pairs, in rounded
                                  arithmetic, so that shapes that nearly
                                  touch may differ */
    int is_parallel;         /**< 1: uses all threads; 0: one */
    enum oj_device_use device_use;
    const struct oj_engine *const *engines; /**< engines (oj_index.h); the
                                                 first that takes a batch
                                                 joins it; NULL ends the list */
};

/** Row i of the table, or NULL past its end. Row 0 is the default. */
const struct oj_backend *oj_backend_at(int i);

/** The backend of a name (without case), or NULL. */
const struct oj_backend *oj_backend_find(const char *name);

/** The backend auto, which chooses between cpu and cuda. Not in the table. */
extern const struct oj_backend oj_auto_backend;

/** The backend of a name, also auto. Errors begin with dash and option, and
 * list all names. */
OJ_MUST_USE oj_status oj_backend_read(const char *dash, const char *option,
                                      const char *name,
                                      const struct oj_backend **out,
                                      struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
