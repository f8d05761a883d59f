/* Loaded before GEOS by LD_PRELOAD. Every distance above 20 is returned one
 * unit too large, so that -validate must find a difference. */
#define _GNU_SOURCE
#include <dlfcn.h>

struct handle;
struct geometry;
typedef int (*distance_function)(struct handle *, const struct geometry *,
                                 const struct geometry *, double *);

int GEOSDistance_r(struct handle *handle, const struct geometry *a,
                   const struct geometry *b, double *distance);

int GEOSDistance_r(struct handle *handle, const struct geometry *a,
                   const struct geometry *b, double *distance)
{
    distance_function real;
    int done;
    *(void **)&real = dlsym(RTLD_NEXT, "GEOSDistance_r");
    done = real(handle, a, b, distance);
    if (done && *distance > 20.0)
        *distance += 1.0;
    return done;
}
