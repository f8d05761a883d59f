#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr() */
#endif

#include "oj_gpu.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULE_FILE "ogrjoin_cuda.so"
#define MODULE_VARIABLE "OGRJOIN_CUDA_MODULE"

enum
{
    PATH_SIZE = 4096,
    MAX_SEGMENTS = 64 /* a library has some ten */
};

/* What the one attempt gave. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct oj_gpu_module *loaded;
static struct oj_error why_not;

/* Where the file may lie, from the folder of the library or of the program that
 * holds it: beside it; above the plugin driver; from the command. */
static const char *const places[] = {"", "../", OJ_FOLDER_FROM_COMMAND "/"};

/* The file in such a place; 0: it is not there. */
static int find_module_in(const char *folder, size_t n, const char *place,
                          char path[PATH_SIZE])
{
    return snprintf(path, PATH_SIZE, "%.*s%s" MODULE_FILE, (int)n, folder,
                    place) < PATH_SIZE &&
           access(path, F_OK) == 0;
}

/* The folder of the library, or of the program that holds it, which is known by
 * what it was called: found in PATH, without a folder. Returns its length. */
static size_t find_own_folder(char path[PATH_SIZE])
{
    const char *slash;
    Dl_info info;
    ssize_t n;
    path[0] = '\0';
    if (dladdr((const void *)&once, &info) != 0 && info.dli_fname != NULL)
        snprintf(path, PATH_SIZE, "%s", info.dli_fname);
    slash = strrchr(path, '/');
    if (slash == NULL &&
        (n = readlink("/proc/self/exe", path, PATH_SIZE - 1)) > 0)
    {
        path[n] = '\0';
        slash = strrchr(path, '/');
    }
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* Where it should be: the first of the places that has it, else the folder of
 * installed libraries. */
static void find_module(char path[PATH_SIZE])
{
    const char *named = getenv(MODULE_VARIABLE);
    char folder[PATH_SIZE];
    size_t n;
    if (named != NULL && named[0] != '\0')
    {
        /* dlopen() looks for a bare name elsewhere than here */
        snprintf(path, PATH_SIZE, "%s%s",
                 strchr(named, '/') == NULL ? "./" : "", named);
        return;
    }
    n = find_own_folder(folder);
    for (size_t i = 0; n > 0 && i < sizeof places / sizeof *places; i++)
    {
        if (find_module_in(folder, n, places[i], path))
            return;
    }
    snprintf(path, PATH_SIZE, "%s/" MODULE_FILE, OJ_MODULE_FOLDER);
}

/* ---- is the file whole? -------------------------------------------------- */

static int is_byte_range_in_file(uint64_t offset, uint64_t n_bytes,
                                 uint64_t size)
{
    return offset <= size && n_bytes <= size - offset;
}

static int read_at_offset(int file, void *out, size_t n_bytes, uint64_t offset)
{
    return pread(file, out, n_bytes, (off_t)offset) == (ssize_t)n_bytes;
}

/* The parts of the file that its headers name are in it: dlopen() maps them
 * without looking, and a page that is not there is a SIGBUS. */
static int is_file_complete(int file, uint64_t size)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) segment[MAX_SEGMENTS];
    if (!read_at_offset(file, &header, sizeof header, 0) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] !=
            (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header.e_type != ET_DYN || header.e_phnum == 0 ||
        header.e_phnum > MAX_SEGMENTS ||
        header.e_phentsize != sizeof segment[0] ||
        !read_at_offset(file, segment, header.e_phnum * sizeof segment[0],
                        header.e_phoff))
        return 0;
    for (int i = 0; i < header.e_phnum; i++)
    {
        if (!is_byte_range_in_file(segment[i].p_offset, segment[i].p_filesz,
                                   size))
            return 0;
    }
    /* The linker puts it last: with it, all of the file is there. */
    return is_byte_range_in_file(
        header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize, size);
}

static oj_status check_module_file_is_complete(const char *path,
                                               struct oj_error *err)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC), is_good;
    is_good = file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
              is_file_complete(file, (uint64_t)info.st_size);
    if (file >= 0)
        close(file);
    /* What may not be read is dlopen()'s to tell. */
    if (is_good || file < 0)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_NO_DEVICE,
                   "the CUDA module %s cannot be loaded: it is truncated or "
                   "no module; build or install it again",
                   path);
}

static oj_status open_module(const char *path, const struct oj_gpu_module **out,
                             struct oj_error *err)
{
    oj_gpu_module_function *entry;
    const struct oj_gpu_module *module;
    void *library, *symbol;
    if (access(path, F_OK) != 0)
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "there is no CUDA module %s (" MODULE_VARIABLE
                       " names another place)",
                       path);
    OJ_TRY(check_module_file_is_complete(path, err));
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "the CUDA module cannot be loaded: %s", dlerror());
    symbol = dlsym(library, OJ_GPU_MODULE_SYMBOL);
    if (symbol == NULL)
    {
        dlclose(library);
        return oj_fail(err, OJ_ERR_NO_DEVICE, "%s is no CUDA module of ogrjoin",
                       path);
    }
    memcpy(&entry, &symbol, sizeof entry);
    module = entry(OJ_GPU_ABI);
    if (module == NULL || module->abi != OJ_GPU_ABI)
    {
        dlclose(library);
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "the CUDA module %s belongs to another version of "
                       "ogrjoin",
                       path);
    }
    /* Never closed: CUDA's run time does not like to be unloaded. */
    *out = module;
    return OJ_OK;
}

static void load_module(void)
{
    char path[PATH_SIZE];
    find_module(path);
    if (open_module(path, &loaded, &why_not) != OJ_OK)
        loaded = NULL;
}

void oj_gpu_advise(struct oj_error *why, const char *advice)
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

/* The devices of n that work; the reason of the first where none does. */
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
        return oj_fail(err, OJ_ERR_NO_DEVICE, "no GPU can be used: %s",
                       first.why_not);
    return OJ_OK;
}

oj_status oj_gpu_find(const struct oj_options *options,
                      const struct oj_gpu_module **module, uint64_t *gpus,
                      struct oj_error *err)
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
                           "there is no GPU %d (ogrjoin --devices lists them)",
                           i);
    }
    return OJ_OK;
}
