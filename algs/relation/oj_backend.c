#include "oj_backend.h"

#include <stddef.h>
#include <strings.h>

static const struct oj_backend *const backends[] = {
    &oj_cpu_backend,          &oj_cuda_backend,
    &oj_quadrant_backend,     &oj_cuda_quadrant_backend,
    &oj_geos_backend,         &oj_geos_sorted_backend,
    &oj_spatialindex_backend, &oj_spatialindex_collective_backend,
    &oj_sphere_backend,
};

const struct oj_backend *oj_backend_at(int i)
{
    int n = (int)(sizeof backends / sizeof *backends);
    return i >= 0 && i < n ? backends[i] : NULL;
}

const struct oj_backend *oj_backend_find(const char *name)
{
    const struct oj_backend *backend;
    for (int i = 0; (backend = oj_backend_at(i)) != NULL; i++)
    {
        if (strcasecmp(backend->name, name) == 0)
            return backend;
    }
    return NULL;
}
