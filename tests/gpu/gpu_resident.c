#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr() */
#endif

#include "gpu_resident.h"

#include <dlfcn.h>

oj_status gpu_resident_find(const struct gpu_resident **out,
                            struct oj_error *err)
{
    const struct oj_gpu_module *module;
    const struct gpu_resident *resident = NULL;
    Dl_info info;
    void *file = NULL;
    OJ_TRY(oj_gpu_load(&module, err));
    if (dladdr(module, &info) != 0)
        file = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (file != NULL)
        resident = dlsym(file, GPU_RESIDENT_SYMBOL);
    if (resident == NULL)
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "the module was built without tests");
    *out = resident;
    return OJ_OK;
}
