/** The table of backends. A backend is one table of functions, chosen at run
 *  time; all take the same flat layers and give the same matches. */
#ifndef OJ_BACKEND_H
#define OJ_BACKEND_H

#include "../../flatten/arrays/oj_flat.h"
#include "../../flatten/arrays/oj_matches.h"
#include "oj_relation.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OJ_BACKEND_ABI 3u

/** All devices that can be used, in struct oj_options.gpus. */
#define OJ_ALL_GPUS UINT64_MAX

/** The join side, prepared by a backend; each backend has its own. */
struct oj_index;

struct oj_screen;
struct oj_sum_request;

/** How to run, as against what to ask (struct oj_relation). */
struct oj_options
{
    int n_threads;         /**< >= 1, or 0: all that the machine has */
    int64_t quadrant_size; /**< methods that group points: at most K; 0: 256 */
    int timings;           /**< 1: tell filter and refine apart (costs a bit) */
    int64_t n_input;       /**< input features that are likely to come, for
                                what pays for many only; 0: not known */
    const int *cancel; /**< read often; nonzero stops the join; may be NULL */

    /** > 0: a batch of two rows or more that has more pairs is
     *  OJ_ERR_TOO_MANY_PAIRS; 0: no bound. Backends may stop somewhat below. */
    int64_t max_batch_pairs;

    /** Kinds of parts that the input side will have, enum oj_part_kind or'ed,
     *  where that is known: what they need is indexed at once, and what others
     *  need only if they come.  0: points, as a rule. */
    unsigned input_kinds;

    /** Rows that will be joined in all, 0: not known; auto chooses by it. */
    int64_t n_expected;

    /** Who finds candidates of predicates for the backend cpu (oj_screen.h);
     *  NULL: it does. Outlives the join. */
    const struct oj_screen *screen;

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
};

struct oj_backend
{
    uint32_t abi;
    const char *name;        /**< value of -backend */
    const char *description; /**< one line for --help */
    int is_reference;        /**< 1: slow and plain, never chosen by auto */
    int method; /**< for rows that share functions: which of them */

    /** Prepares the join side. flat outlives the index and is not changed.
     *  self: the row of the table.  tie_rank: [n_features] place of each
     *  feature in tie order, or NULL: the ordinal is the place.  options:
     *  n_threads and quadrant_size are set.  *out is freed by free_index. */
    oj_status (*index)(const struct oj_backend *self,
                       const struct oj_flat *join_side, const int32_t *tie_rank,
                       const struct oj_relation *relation,
                       const struct oj_options *options, struct oj_index **out,
                       struct oj_stats *stats, struct oj_error *err);

    /** Joins a batch of input features; may be called any number of times,
     *  from one thread at a time. */
    oj_status (*join)(struct oj_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err);

    void (*free_index)(struct oj_index *index); /**< accepts NULL */

    /** 1 when sum_pairs() is worth asking for a batch like input. NULL: never.
     */
    int (*sums)(const struct oj_index *index, const struct oj_flat *input);

    /** Counts and sums by join feature (oj_sum_request.h): adds to words [join
     *  features * words of request] what the pairs of a batch give, and sets
     *  *n_pairs to their number, without making the pairs; request NULL: adds
     *  the pairs that each has to words [join features].  On an error words are
     *  as they were.  OJ_ERR_UNSUPPORTED: join() is the way for this batch.
     *  NULL: it always is. */
    oj_status (*sum_pairs)(struct oj_index *index, const struct oj_flat *input,
                           const struct oj_sum_request *request, int64_t *words,
                           int64_t *n_pairs, struct oj_stats *stats,
                           struct oj_error *err);
};

/** Row i of the table, or NULL past its end. Row 0 is the default. */
OJ_EXPORT const struct oj_backend *oj_backend_at(int i);

/** The backend of a name (without case), or NULL. */
OJ_EXPORT const struct oj_backend *oj_backend_find(const char *name);

/** The rows; those of one library are in one file. */
extern const struct oj_backend oj_cpu_backend;
extern const struct oj_backend oj_cuda_backend;
extern const struct oj_backend oj_quadrant_backend;
extern const struct oj_backend oj_cuda_quadrant_backend;
extern const struct oj_backend oj_geos_backend;
extern const struct oj_backend oj_geos_sorted_backend;
extern const struct oj_backend oj_spatialindex_backend;
extern const struct oj_backend oj_spatialindex_collective_backend;
extern const struct oj_backend oj_sphere_backend;

#ifdef __cplusplus
}
#endif
#endif
