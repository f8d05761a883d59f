#include "oj_devices.h"

#include "../../algs/relation/oj_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const double gigabyte = 1e9;

static void print_device(const struct oj_gpu_device *device)
{
    printf("GPU %d: %s, compute capability %d.%d, %d multiprocessors, %.1f GB",
           device->ordinal, device->name, device->major, device->minor,
           device->n_processors, (double)device->total_bytes / gigabyte);
    if (device->why_not[0] == '\0')
        printf(" of which %.1f are free: usable\n",
               (double)device->free_bytes / gigabyte);
    else
        printf(": not usable, %s\n", device->why_not);
}

static oj_status print_all(struct oj_error *err)
{
    const struct oj_gpu_module *module;
    int n = 0;
    OJ_TRY(oj_gpu_load(&module, err));
    printf("CUDA module: %s\n", module->build);
    OJ_TRY(module->count(&n, err));
    for (int i = 0; i < n; i++)
    {
        struct oj_gpu_device device;
        OJ_TRY(module->describe(i, &device, err));
        print_device(&device);
    }
    return OJ_OK;
}

void oj_devices_print(void)
{
    struct oj_error err = {OJ_OK, ""};
    if (print_all(&err) != OJ_OK)
        printf("No GPU can be used: %s\n", err.message);
}

oj_status oj_devices_parse(const char *text, uint64_t *out,
                           struct oj_error *err)
{
    uint64_t gpus = 0;
    const char *at = text;
    if (strcasecmp(text, "all") == 0)
    {
        *out = OJ_ALL_GPUS;
        return OJ_OK;
    }
    for (;;)
    {
        char *end;
        long i = strtol(at, &end, 10);
        if (end == at || *at < '0' || *at > '9' ||
            i >= OJ_GPU_MAX_DEVICES - 1 || (*end != '\0' && *end != ','))
            return oj_fail(
                err, OJ_ERR_ARG,
                "-gpu takes all, or numbers of GPUs below %d as 0 or "
                "0,2 (ogrjoin --devices lists them), not '%s'",
                OJ_GPU_MAX_DEVICES - 1, text);
        gpus |= (uint64_t)1 << i;
        if (*end == '\0')
            break;
        at = end + 1;
    }
    *out = gpus;
    return OJ_OK;
}
