#include "oj_failed_writes.h"

#include "../../flatten/base/oj_alloc.h"

#include <cpl_vsi.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* GDAL takes a handler by the beginning of a path, hands it the rest, and its
 * Unlink() removes that rest by the system's unlink() instead of the callback.
 * So the rest has to be an absolute path, which it is behind this prefix. */
static const char prefix[] = "/./.";

static atomic_int first_errno;

/* A file as the callbacks get it. */
struct watched_file
{
    VSILFILE *file;
    int is_written; /* opened for writing */
};

/* Keeps the errno of a call that failed. EIO where it left none. */
static void keep_error(const struct watched_file *f, int has_failed)
{
    int none = 0, number = errno != 0 ? errno : EIO;
    if (has_failed && f->is_written)
        atomic_compare_exchange_strong(&first_errno, &none, number);
}

/* ---- callbacks ----------------------------------------------------------- */

static void *open_file(void *user, const char *path, const char *access)
{
    struct watched_file *f = oj_malloc(1, sizeof *f);
    (void)user;
    if (f == NULL)
        return NULL;
    f->is_written = strpbrk(access, "wa+") != NULL;
    f->file = VSIFOpenL(path, access);
    if (f->file != NULL)
        return f;
    oj_free(f);
    return NULL;
}

static int close_file(void *file)
{
    struct watched_file *f = file;
    int result;
    errno = 0;
    result = VSIFCloseL(f->file);
    keep_error(f, result != 0);
    oj_free(f);
    return result;
}

static size_t write_file(void *file, const void *bytes, size_t size, size_t n)
{
    struct watched_file *f = file;
    size_t n_written = VSIFWriteL(bytes, size, n, f->file);
    if (n_written != n)
        keep_error(f, 1);
    return n_written;
}

static size_t read_file(void *file, void *bytes, size_t size, size_t n)
{
    return VSIFReadL(bytes, size, n, ((struct watched_file *)file)->file);
}

/* What is buffered is written before. */
static int seek_file(void *file, vsi_l_offset offset, int whence)
{
    struct watched_file *f = file;
    int result = VSIFSeekL(f->file, offset, whence);
    keep_error(f, result != 0);
    return result;
}

static vsi_l_offset tell_file(void *file)
{
    return VSIFTellL(((struct watched_file *)file)->file);
}

static int is_file_at_end(void *file)
{
    return VSIFEofL(((struct watched_file *)file)->file);
}

static int flush_file(void *file)
{
    struct watched_file *f = file;
    int result = VSIFFlushL(f->file);
    keep_error(f, result != 0);
    return result;
}

static int cut_file(void *file, vsi_l_offset size)
{
    struct watched_file *f = file;
    int result = VSIFTruncateL(f->file, size);
    keep_error(f, result != 0);
    return result;
}

static int stat_path(void *user, const char *path, VSIStatBufL *info, int flags)
{
    (void)user;
    return VSIStatExL(path, info, flags);
}

static int unlink_path(void *user, const char *path)
{
    (void)user;
    return VSIUnlink(path);
}

static int rename_path(void *user, const char *from, const char *to)
{
    (void)user;
    return VSIRename(from, to);
}

static int make_folder(void *user, const char *path, long mode)
{
    (void)user;
    return VSIMkdir(path, mode);
}

static int remove_folder(void *user, const char *path)
{
    (void)user;
    return VSIRmdir(path);
}

static char **list_folder(void *user, const char *path, int n_most)
{
    (void)user;
    return VSIReadDirEx(path, n_most);
}

/* ---- handler ------------------------------------------------------------- */

static void install_handler(void)
{
    VSIFilesystemPluginCallbacksStruct *calls =
        VSIAllocFilesystemPluginCallbacksStruct();
    calls->open = open_file;
    calls->close = close_file;
    calls->write = write_file;
    calls->read = read_file;
    calls->seek = seek_file;
    calls->tell = tell_file;
    calls->eof = is_file_at_end;
    calls->flush = flush_file;
    calls->truncate = cut_file;
    calls->stat = stat_path;
    calls->unlink = unlink_path;
    calls->rename = rename_path;
    calls->mkdir = make_folder;
    calls->rmdir = remove_folder;
    calls->read_dir = list_folder;
    VSIInstallPluginHandler(prefix, calls);
    VSIFreeFilesystemPluginCallbacksStruct(calls);
}

const char *oj_failed_writes_prefix(void)
{
    return prefix;
}

void oj_failed_writes_watch(void)
{
    static int is_installed;
    if (!is_installed)
        install_handler();
    is_installed = 1;
    atomic_store(&first_errno, 0);
}

int oj_failed_writes_errno(void)
{
    return atomic_load(&first_errno);
}
