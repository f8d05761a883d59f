#include "oj_gpu.h"

#include "oj_gpu_module_file.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Result of loading the module, which is attempted only once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct oj_gpu_module *loaded;
static struct oj_error why_not;

/* Opens the checked file by its descriptor, because its path may name another
 * file by now. The descriptor stays open, because dlopen() recognises a loaded
 * library by its path, here /proc/self/fd/NUMBER. Returns NULL on failure. */
static void *open_library(int file)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/* Returns dlerror() without the /proc path that open_library() used. */
static const char *text_of_loading_error(void)
{
    const char *text = dlerror(), *colon;
    if (text == NULL)
        return "no reason given";
    colon = strstr(text, ": ");
    return strncmp(text, "/proc/self/fd/", 14) == 0 && colon != NULL ? colon + 2
                                                                     : text;
}

static oj_status open_module(const char *path, int file,
                             const struct oj_gpu_module **out,
                             struct oj_error *err)
{
    oj_gpu_module_function *entry;
    const struct oj_gpu_module *module;
    void *library = open_library(file), *symbol;
    if (library == NULL)
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "the CUDA module %s cannot be loaded: %s; install the "
                       "NVIDIA driver and this module again",
                       path, text_of_loading_error());
    symbol = dlsym(library, OJ_GPU_MODULE_SYMBOL);
    if (symbol == NULL)
    {
        dlclose(library);
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "%s is no CUDA module of ogrjoin: name ogrjoin_cuda.so",
                       path);
    }
    memcpy(&entry, &symbol, sizeof entry);
    module = entry(OJ_GPU_ABI);
    if (module == NULL || module->abi != OJ_GPU_ABI)
    {
        dlclose(library);
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "the CUDA module %s belongs to another version of "
                       "ogrjoin; install the module of this version",
                       path);
    }
    /* The module is never closed: the CUDA runtime does not support unloading.
     */
    *out = module;
    return OJ_OK;
}

static void load_module(void)
{
    char path[OJ_GPU_MODULE_PATH_MAX];
    int file;
    if (oj_gpu_module_file_open(path, &file, &why_not) != OJ_OK)
        return;
    if (open_module(path, file, &loaded, &why_not) != OJ_OK)
        close(file);
}

void oj_gpu_add_advice(struct oj_error *why, const char *advice)
{
    size_t n = strlen(why->message);
    if (strstr(why->message, "; ") == NULL)
        snprintf(why->message + n, sizeof why->message - n, "; %s", advice);
}

oj_status oj_gpu_load(const struct oj_gpu_module **out, struct oj_error *err)
{
    pthread_once(&once, load_module);
    if (loaded == NULL)
        return oj_fail(err, why_not.status, "%s", why_not.message);
    *out = loaded;
    return OJ_OK;
}

/* ---- devices ------------------------------------------------------------- */

/* Tests n devices and sets the bits of the usable ones. If none is usable,
 * fails with the reason of the first device. */
static oj_status find_usable_devices(const struct oj_gpu_module *module, int n,
                                     uint64_t *gpus, struct oj_error *err)
{
    struct oj_gpu_device device, first = {0};
    *gpus = 0;
    for (int i = 0; i < n; i++)
    {
        OJ_TRY(module->describe(i, &device, err));
        if (device.why_not[0] == '\0')
            *gpus |= (uint64_t)1 << i;
        if (i == 0)
            first = device;
    }
    if (*gpus == 0)
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "no GPU can be used: %s (the first GPU; ogrjoin "
                       "--devices lists all)",
                       first.why_not);
    return OJ_OK;
}

oj_status oj_gpu_load_and_choose_devices(const struct oj_options *options,
                                         const struct oj_gpu_module **module,
                                         uint64_t *gpus, struct oj_error *err)
{
    int n = 0;
    OJ_TRY(oj_gpu_load(module, err));
    OJ_TRY((*module)->count(&n, err));
    if (options->gpus == OJ_ALL_GPUS)
        return find_usable_devices(*module, n, gpus, err);
    *gpus = options->gpus;
    for (int i = n; i < OJ_GPU_MAX_DEVICES; i++)
    {
        if ((options->gpus >> i & 1) != 0)
            return oj_fail(err, OJ_ERR_NO_DEVICE,
                           "there is no GPU %d: name one that ogrjoin "
                           "--devices lists",
                           i);
    }
    return OJ_OK;
}
