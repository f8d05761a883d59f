/** What -backend auto expects a join to cost, from rates that were measured
 *  (BENCHMARKS.md). */
#ifndef AUTO_COST_H
#define AUTO_COST_H

/** How much there is to do. */
struct oj_auto_work
{
    int of_points;          /**< 1: input rows are points */
    int n_threads;          /**< >= 1 */
    int is_started;         /**< 1: CUDA is at work in this process already */
    double n_rows;          /**< input rows, all that will come */
    double n_vertices;      /**< of them; read of lines and polygons only */
    double n_join_vertices; /**< of the join side */
};

/** Wall seconds, index included. */
struct oj_auto_cost
{
    double cpu_s, gpu_s;
};

struct oj_auto_cost oj_auto_expect(const struct oj_auto_work *work);

/** 1 when a GPU is clearly the faster one. */
int oj_auto_gpu_pays(const struct oj_auto_cost *cost);

#endif
