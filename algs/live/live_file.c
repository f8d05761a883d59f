#include "live_file.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_hash_mix.h"
#include "../../flatten/base/oj_new_file.h"
#include "../../flatten/base/oj_temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = {'O', 'J', 'L', 'I', 'V', 'E', '1', '\n'};

/* A number that reads differently in the other byte order. */
#define BYTE_ORDER_MARK INT64_C(0x0102030405060708)

struct live_file_header
{
    char magic[8];
    int64_t byte_order, n;
    uint64_t checksum;
};

static uint64_t checksum_of(const struct live_points *points)
{
    uint64_t hash = oj_hash_mix(0, &points->n);
    for (int64_t i = 0; i < points->n; i++)
    {
        hash = oj_hash_mix(hash, &points->id[i]);
        hash = oj_hash_mix(hash, &points->x[i]);
        hash = oj_hash_mix(hash, &points->y[i]);
    }
    return hash;
}

/* --- writing ---------------------------------------------------------------
 */

/* Writes header and points. After an error ferror(file) is set. */
static void write_points(FILE *file, const void *user)
{
    const struct live_points *points = user;
    size_t n = (size_t)points->n;
    struct live_file_header header = {.byte_order = BYTE_ORDER_MARK,
                                      .n = points->n,
                                      .checksum = checksum_of(points)};
    memcpy(header.magic, magic, sizeof magic);
    (void)fwrite(&header, sizeof header, 1, file);
    (void)fwrite(points->id, sizeof *points->id, n, file);
    (void)fwrite(points->x, sizeof *points->x, n, file);
    (void)fwrite(points->y, sizeof *points->y, n, file);
}

oj_status live_file_write(const char *path, const struct live_points *points,
                          struct oj_error *err)
{
    if (oj_new_file_write(path, write_points, points) == 0)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_IO, "%.700s cannot be written: %s", path,
                   strerror(errno));
}

/* --- reading ---------------------------------------------------------------
 */

static oj_status fail_data(const char *path, const char *why,
                           struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_DATA,
                   "%.700s was not written by save(), or is damaged (%s): "
                   "name another file, or save again",
                   path, why);
}

static oj_status read_header(const char *path, int file,
                             struct live_file_header *out, struct oj_error *err)
{
    struct stat of;
    if (fstat(file, &of) != 0)
        return oj_fail(err, OJ_ERR_IO, "%.700s cannot be read: %s", path,
                       strerror(errno));
    if (!S_ISREG(of.st_mode))
        return oj_fail(err, OJ_ERR_IO,
                       "%.700s is no file: name one that a kept index was "
                       "saved to",
                       path);
    if (of.st_size < (off_t)sizeof *out ||
        oj_read_at(file, 0, out, (int64_t)sizeof *out) != 0 ||
        memcmp(out->magic, magic, sizeof magic) != 0)
        return fail_data(path, "wrong first bytes", err);
    if (out->byte_order != BYTE_ORDER_MARK)
        return oj_fail(err, OJ_ERR_DATA,
                       "%.700s was saved on a machine with another byte "
                       "order: save the index on a machine like this one, or "
                       "build it here anew from its points",
                       path);
    if (out->n < 0 || out->n > INT32_MAX ||
        of.st_size != (off_t)sizeof *out + 24 * (off_t)out->n)
        return fail_data(path, "wrong size", err);
    return OJ_OK;
}

static oj_status read_arrays(const char *path, int file,
                             struct live_points *points, struct oj_error *err)
{
    int64_t size = points->n * 8, at = (int64_t)sizeof(struct live_file_header);
    if (oj_read_at(file, at, points->id, size) != 0 ||
        oj_read_at(file, at + size, points->x, size) != 0 ||
        oj_read_at(file, at + 2 * size, points->y, size) != 0)
        return oj_fail(err, OJ_ERR_IO, "%.700s cannot be read: %s", path,
                       strerror(errno));
    return OJ_OK;
}

static oj_status check_points(const char *path, const struct live_points *p,
                              uint64_t checksum, struct oj_error *err)
{
    if (checksum_of(p) != checksum)
        return fail_data(path, "its checksum does not match", err);
    for (int64_t i = 0; i < p->n; i++)
    {
        if (i > 0 && p->id[i] <= p->id[i - 1])
            return fail_data(path, "its ids do not ascend", err);
        if (!(fabs(p->x[i]) <= OJ_FLAT_MOST && fabs(p->y[i]) <= OJ_FLAT_MOST))
            return fail_data(path, "a coordinate that no point can have", err);
    }
    return OJ_OK;
}

static oj_status read_points(const char *path, int file,
                             struct live_points *points, struct oj_error *err)
{
    struct live_file_header header;
    OJ_TRY(read_header(path, file, &header, err));
    points->n = header.n;
    OJ_NEW(points->id, points->n, err);
    OJ_NEW(points->x, points->n, err);
    OJ_NEW(points->y, points->n, err);
    OJ_TRY(read_arrays(path, file, points, err));
    return check_points(path, points, header.checksum, err);
}

oj_status live_file_read(const char *path, struct live_points *out,
                         struct oj_error *err)
{
    struct live_points points = {0};
    /* O_NONBLOCK: opening a FIFO does not wait for a writer. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    oj_status status;
    if (file < 0)
        return oj_fail(err, OJ_ERR_IO, "%.700s cannot be opened: %s", path,
                       strerror(errno));
    status = read_points(path, file, &points, err);
    close(file);
    if (status == OJ_OK)
        *out = points;
    else
        live_points_free(&points);
    return status;
}
