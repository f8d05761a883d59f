/** The table of backends: the values of -backend. All backends that support a
 * join give equal pairs; backends that decide by GEOS may differ for shapes
 * that nearly touch. */
#ifndef OJ_BACKEND_REGISTRY_H
#define OJ_BACKEND_REGISTRY_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "oj_pair_budget.h"
#include "oj_relation.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Value of oj_options.gpus: all usable devices. */
#define OJ_ALL_GPUS UINT64_MAX

struct oj_engine;

/** How a join runs. (Which pairs it finds is in struct oj_relation.) */
struct oj_options
{
    int n_threads;         /**< number of threads; 0: all processors of the
                                machine */
    int64_t quadrant_size; /**< maximum points per quadrant, for methods that
                                group points in quadrants; 0: the default,
                                256 */
    int timings; /**< 1: measure the times of filter and refinement separately,
                      which slows the join slightly */
    const int *cancel; /**< cancel flag, polled often: nonzero stops the join;
                            may be NULL */

    /** Maximum pairs of a batch of two rows or more. More pairs give
     * OJ_ERR_TOO_MANY_PAIRS (oj_pair_budget.h). 0: no limit. */
    int64_t max_batch_pairs;

    /** Kinds of input geometries that are expected, enum oj_part_kind or'ed.
     * Indexes for these kinds are built at once; an index for another kind is
     * built when the first geometry of this kind is joined. 0: unknown; points
     * are assumed. */
    unsigned input_kinds;

    /** Expected number of input rows in all batches, by which `auto` chooses
     * the backend. 0: unknown. */
    int64_t n_expected;

    /* The following options are for the backend cuda only. */
    uint64_t gpus;      /**< bit i: use CUDA device i; 0: device 0 */
    int64_t gpu_memory; /**< maximum bytes to use on each device; 0: all free
                             memory */
    int64_t gpu_batch;  /**< rows per transfer to the GPU; 0: the module's
                             default */
};

/** Copies the options that may differ between batches: cancel and
 * max_batch_pairs. */
static inline void oj_options_copy_per_batch(struct oj_options *options,
                                             const struct oj_options *from)
{
    options->cancel = from->cancel;
    options->max_batch_pairs = from->max_batch_pairs;
}

/** Wall-clock seconds by phase, and counters, summed over all calls. */
struct oj_stats
{
    double index_s;  /**< building the index of the join side */
    double sort_s;   /**< sorting or grouping of input points */
    double filter_s; /**< finding candidates; measured only with timings */
    double refine_s; /**< exact tests of candidates; without timings the whole
                          join */
    int64_t n_candidates; /**< number of pairs (point with feature or segment)
                               that passed the filter and were tested exactly */
    int64_t n_points_searched; /**< number of input points for which the engines
                                    of cpu_near_points.c and of
                                    cpu_nearest_for_points.c searched; a maximum
                                    distance excludes the other points
                                    beforehand */
    int64_t index_bytes;

    /** Number of pairs that were counted or summed without being stored. */
    int64_t n_pairs_not_stored;

    /** Number of pairs that the GEOS backends could not decide and left out of
     * the result. */
    int64_t n_undecided_pairs;
    char undecided_text[128]; /**< GEOS's message for the first undecided
                                   pair */

    /** Text for -explain if there are several methods: the estimated cost of
     * each for the last batch, and the chosen method. Otherwise "". */
    char choice[192];
};

/** Whether a backend uses a GPU. */
enum oj_device_use
{
    OJ_NO_DEVICE = 0,
    OJ_DEVICE,        /**< use the CUDA module for joins that it supports,
                           otherwise engines */
    OJ_DEVICE_IF_PAYS /**< like OJ_DEVICE, but only if the GPU is expected to be
                           faster */
};

/** A row of the table of backends. */
struct oj_backend
{
    const char *name;        /**< value of -backend */
    const char *description; /**< one line of the help text */
    int is_reference;        /**< 1: a slow and simple method to compare results
                                  with; auto never chooses it */
    int uses_rounded_arithmetic; /**< 1: GEOS decides pairs, in rounded
                             arithmetic: the result may differ for shapes that
                             nearly touch */
    int is_parallel;             /**< 1: uses all threads; 0: a single one */
    enum oj_device_use device_use;
    const struct oj_engine *const *engines; /**< engines (oj_index.h) in order
                                                 of preference; NULL ends the
                                                 list */
};

/** Returns row i of the table, or NULL past its end. Row 0 is the backend
 *  cpu. */
const struct oj_backend *oj_backend_at(int i);

/** Finds a backend by name, ignoring case. Returns NULL if there is none. */
const struct oj_backend *oj_backend_find(const char *name);

/** The backend auto, which chooses between cpu and cuda. It is not in the
 * table. */
extern const struct oj_backend oj_auto_backend;

/** Finds a backend by name, auto included. Error messages begin with dash and
 * option ("-backend") and list all names. */
OJ_MUST_USE oj_status oj_backend_read(const char *dash, const char *option,
                                      const char *name,
                                      const struct oj_backend **out,
                                      struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
