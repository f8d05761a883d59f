#include "oj_failed_writes.h"

#include "../../flatten/base/oj_alloc.h"

#include <cpl_conv.h>
#include <cpl_vsi.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Prefix under which our handler is installed; an absolute path follows it.
 * GDAL passes the rest of the path, without the prefix, to the handler, and to
 * unlink() when it removes a file: so the rest must be a valid path. */
static const char prefix[] = "/./.";

/* A folder in which failed writes are recorded. */
struct watched_folder
{
    char *path; /* without the prefix */
    atomic_int first_errno;
    struct watched_folder *next;
};

/* list of watched folders; guarded by folders_lock */
static struct watched_folder *folders;
static pthread_mutex_t folders_lock = PTHREAD_MUTEX_INITIALIZER;

/* An open file, as passed to the callbacks. */
struct watched_file
{
    VSILFILE *file;
    /* the watched folder that contains the file; NULL if there is none, or if
     * the file is open for reading only */
    struct watched_folder *folder;
};

/* Returns the link of the list that points to the folder at or above path; the
 * last link, which is NULL, if no such folder is watched. */
static struct watched_folder **find_watched_folder(const char *path)
{
    struct watched_folder **at = &folders;
    for (; *at != NULL; at = &(*at)->next)
    {
        size_t n = strlen((*at)->path);
        if (strncmp(path, (*at)->path, n) == 0 &&
            (path[n] == '/' || path[n] == '\0'))
            break;
    }
    return at;
}

static struct watched_folder *watched_folder_of_path(const char *path)
{
    struct watched_folder *folder;
    pthread_mutex_lock(&folders_lock);
    folder = *find_watched_folder(path);
    pthread_mutex_unlock(&folders_lock);
    return folder;
}

/* If a call failed, records its errno for the folder (EIO if errno is 0); only
 * the first error is kept. */
static void record_first_error(const struct watched_file *f, int has_failed)
{
    int none = 0, number = errno != 0 ? errno : EIO;
    if (has_failed && f->folder != NULL)
        atomic_compare_exchange_strong(&f->folder->first_errno, &none, number);
}

/* ---- callbacks ----------------------------------------------------------- */

static void *open_file(void *user, const char *path, const char *access)
{
    /* Allocated by GDAL, whose allocator reports when memory is short. */
    struct watched_file *f = VSIMalloc(sizeof *f);
    (void)user;
    if (f == NULL)
    {
        errno = ENOMEM;
        return NULL;
    }
    f->folder =
        strpbrk(access, "wa+") != NULL ? watched_folder_of_path(path) : NULL;
    f->file = VSIFOpenL(path, access);
    if (f->file != NULL)
        return f;
    VSIFree(f);
    return NULL;
}

static int close_file(void *file)
{
    struct watched_file *f = file;
    int result;
    errno = 0;
    result = VSIFCloseL(f->file);
    record_first_error(f, result != 0);
    VSIFree(f);
    return result;
}

static size_t write_file(void *file, const void *bytes, size_t size, size_t n)
{
    struct watched_file *f = file;
    size_t n_written = VSIFWriteL(bytes, size, n, f->file);
    if (n_written != n)
        record_first_error(f, 1);
    return n_written;
}

static size_t read_file(void *file, void *bytes, size_t size, size_t n)
{
    return VSIFReadL(bytes, size, n, ((struct watched_file *)file)->file);
}

/* Seeks. This writes buffered bytes first, so it can fail like a write. Returns
 * the result of VSIFSeekL(). */
static int seek_file(void *file, vsi_l_offset offset, int whence)
{
    struct watched_file *f = file;
    int result = VSIFSeekL(f->file, offset, whence);
    record_first_error(f, result != 0);
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
    record_first_error(f, result != 0);
    return result;
}

static int truncate_file(void *file, vsi_l_offset size)
{
    struct watched_file *f = file;
    int result = VSIFTruncateL(f->file, size);
    record_first_error(f, result != 0);
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
    calls->truncate = truncate_file;
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

static const char *skip_prefix(const char *folder)
{
    size_t n = sizeof prefix - 1;
    return strncmp(folder, prefix, n) == 0 ? folder + n : folder;
}

oj_status oj_failed_writes_watch(const char *folder, struct oj_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct watched_folder *new;
    pthread_once(&once, install_handler);
    OJ_NEW_ZEROED(new, 1, err);
    new->path = CPLStrdup(skip_prefix(folder));
    pthread_mutex_lock(&folders_lock);
    new->next = folders;
    folders = new;
    pthread_mutex_unlock(&folders_lock);
    return OJ_OK;
}

int oj_failed_writes_errno(const char *folder)
{
    struct watched_folder *found = watched_folder_of_path(skip_prefix(folder));
    return found != NULL ? atomic_load(&found->first_errno) : 0;
}

void oj_failed_writes_unwatch(const char *folder)
{
    struct watched_folder **link, *found;
    pthread_mutex_lock(&folders_lock);
    link = find_watched_folder(skip_prefix(folder));
    found = *link;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&folders_lock);
    if (found != NULL)
        CPLFree(found->path);
    oj_free(found);
}
