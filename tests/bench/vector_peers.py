"""Measures other programs on one core, with the vectors that oj_bench_similar --file wrote:

  vector_peers.py FILE DIMENSIONS MOST [K]

scipy's cKDTree in double precision, and FAISS's flat index in single precision.
Prints processor seconds. Each pair is counted twice, as by oj_bench_similar.
"""

import os
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np


def timed(name, work):
    start = time.process_time()
    n = work()
    print(f"{name}: {n} pairs, {time.process_time() - start:.3f} s", flush=True)


def main():
    d, most = int(sys.argv[2]), float(sys.argv[3])
    k = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    vectors = np.fromfile(sys.argv[1]).reshape(-1, d)

    def tree():
        from scipy.spatial import cKDTree
        found = cKDTree(vectors)
        if k:
            distance, _ = found.query(vectors, k + 1, distance_upper_bound=np.nextafter(most, np.inf))
            return int(np.isfinite(distance).sum()) - len(vectors)
        return 2 * len(found.query_pairs(most, output_type="ndarray"))

    def flat():
        import faiss
        faiss.omp_set_num_threads(1)
        index = faiss.IndexFlatL2(d)
        singles = vectors.astype(np.float32)
        index.add(singles)
        if k:
            distance, _ = index.search(singles, k + 1)
            return int((distance <= most * most).sum()) - len(vectors)
        return int(index.range_search(singles, most * most)[0][-1]) - len(vectors)

    import faiss, scipy.spatial  # not timed
    timed("cKDTree", tree)
    timed("FAISS flat", flat)


if __name__ == "__main__":
    main()
