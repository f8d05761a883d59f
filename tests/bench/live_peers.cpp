/* Measures other libraries with the points of oj_bench_live, to compare them
 * with the kept index: the R*-tree of Boost and the R-tree of libspatialindex.
 *
 *   live_peers [N [MOVES]]     (1,000,000 points, 100,000 moves)
 *
 * Prints a line "PEER .." for each: the processor seconds of building, and
 * those of moves. A move goes anywhere, and is a removal and an insertion. */
#include "nycgen.h"

#include <boost/geometry.hpp>
#include <boost/geometry/geometries/point.hpp>
#include <boost/geometry/index/rtree.hpp>
#include <spatialindex/capi/sidx_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

namespace bgi = boost::geometry::index;
using Point =
    boost::geometry::model::point<double, 2, boost::geometry::cs::cartesian>;
using Value = std::pair<Point, std::int64_t>;

struct Data
{
    std::int64_t n, n_moves;
    std::vector<double> x, y; /* positions of the points, then those of the
                                 moves */
};

static double ProcessorSeconds()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) +
           1e-9 * static_cast<double>(t.tv_nsec);
}

static Data MakeData(std::int64_t n, std::int64_t n_moves)
{
    Data data = {n, n_moves, {}, {}};
    struct nyc_city city = nyc_city(1);
    std::int32_t *blocks = nullptr;
    std::int32_t n_blocks = nyc_land_blocks(&city, &blocks);
    for (std::int64_t i = 0; i < n + n_moves; i++)
    {
        std::int32_t x, y;
        nyc_point(&city, blocks, n_blocks, static_cast<std::uint64_t>(i), &x,
                  &y);
        data.x.push_back(x * (1.0 / NYC_ONE));
        data.y.push_back(y * (1.0 / NYC_ONE));
    }
    std::free(blocks);
    return data;
}

/* Returns the point that move i moves. Each point is moved once, in a
 * pseudo-random order. */
static std::int64_t Moved(const Data &data, std::int64_t i)
{
    return static_cast<std::int64_t>(
        (static_cast<std::uint64_t>(i) * UINT64_C(2654435761)) %
        static_cast<std::uint64_t>(data.n));
}

static void Report(const char *name, const Data &data, double build_s,
                   double moves_s)
{
    std::printf("PEER %s n=%lld build_s=%.3f points_per_s=%.3g moves=%lld "
                "s=%.3f moves_per_s=%.3g\n",
                name, static_cast<long long>(data.n), build_s,
                static_cast<double>(data.n) / build_s,
                static_cast<long long>(data.n_moves), moves_s,
                static_cast<double>(data.n_moves) / moves_s);
    std::fflush(stdout);
}

static void MeasureBoost(Data data)
{
    std::vector<Value> values;
    for (std::int64_t i = 0; i < data.n; i++)
        values.emplace_back(Point(data.x[i], data.y[i]), i);
    double start = ProcessorSeconds();
    bgi::rtree<Value, bgi::rstar<16>> tree(values); /* packed */
    double build_s = ProcessorSeconds() - start;
    start = ProcessorSeconds();
    for (std::int64_t i = 0; i < data.n_moves; i++)
    {
        std::int64_t id = Moved(data, i);
        tree.remove(Value(Point(data.x[id], data.y[id]), id));
        data.x[id] = data.x[data.n + i];
        data.y[id] = data.y[data.n + i];
        tree.insert(Value(Point(data.x[id], data.y[id]), id));
    }
    Report("boost", data, build_s, ProcessorSeconds() - start);
}

static void MeasureSpatialIndex(Data data)
{
    IndexPropertyH properties = IndexProperty_Create();
    IndexProperty_SetIndexType(properties, RT_RTree);
    IndexProperty_SetIndexStorage(properties, RT_Memory);
    IndexH index = Index_Create(properties);
    double start = ProcessorSeconds();
    for (std::int64_t i = 0; i < data.n; i++)
    {
        double at[2] = {data.x[i], data.y[i]};
        Index_InsertData(index, i, at, at, 2, nullptr, 0);
    }
    double build_s = ProcessorSeconds() - start;
    start = ProcessorSeconds();
    for (std::int64_t i = 0; i < data.n_moves; i++)
    {
        std::int64_t id = Moved(data, i);
        double at[2] = {data.x[id], data.y[id]};
        Index_DeleteData(index, id, at, at, 2);
        data.x[id] = at[0] = data.x[data.n + i];
        data.y[id] = at[1] = data.y[data.n + i];
        Index_InsertData(index, id, at, at, 2, nullptr, 0);
    }
    Report("libspatialindex", data, build_s, ProcessorSeconds() - start);
    Index_Destroy(index);
    IndexProperty_Destroy(properties);
}

int main(int argc, char **argv)
{
    std::int64_t n = argc > 1 ? std::atoll(argv[1]) : 1000000;
    std::int64_t n_moves = argc > 2 ? std::atoll(argv[2]) : 100000;
    const Data data = MakeData(n, n_moves);
    MeasureBoost(data);
    MeasureSpatialIndex(data);
    return 0;
}
