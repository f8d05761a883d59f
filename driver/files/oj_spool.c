#include "oj_spool.h"

#include "../../flatten/base/oj_array.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct oj_spool
{
    FILE *file;
    size_t record_size;
    int64_t n_records, n_read;
};

static oj_status fail_spool(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "keeping results in a temporary file failed: %s; TMPDIR can "
                   "name another folder",
                   strerror(errno));
}

static FILE *open_nameless(void)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    FILE *file;
    int descriptor;
    if (folder == NULL || folder[0] == '\0')
        folder = "/tmp";
    if (snprintf(path, sizeof path, "%s/ogrjoin-XXXXXX", folder) >=
        (int)sizeof path)
    {
        errno = ENAMETOOLONG;
        return NULL;
    }
    descriptor = mkstemp(path);
    if (descriptor < 0)
        return NULL;
    unlink(path);
    file = fdopen(descriptor, "w+b");
    if (file == NULL)
        close(descriptor);
    return file;
}

oj_status oj_spool_open(int with_values, struct oj_spool **out,
                        struct oj_error *err)
{
    struct oj_spool *spool = oj_calloc(1, sizeof *spool);
    if (spool == NULL)
        return oj_fail_nomem(err, 1, sizeof *spool);
    spool->file = open_nameless();
    if (spool->file == NULL)
    {
        oj_free(spool);
        return fail_spool(err);
    }
    spool->record_size = with_values ? sizeof(struct oj_spool_record)
                                     : offsetof(struct oj_spool_record, value);
    *out = spool;
    return OJ_OK;
}

oj_status oj_spool_write(struct oj_spool *spool,
                         const struct oj_spool_record *record,
                         struct oj_error *err)
{
    if (fwrite(record, spool->record_size, 1, spool->file) != 1)
        return fail_spool(err);
    spool->n_records++;
    return OJ_OK;
}

oj_status oj_spool_rewind(struct oj_spool *spool, struct oj_error *err)
{
    if (fflush(spool->file) != 0 || fseek(spool->file, 0, SEEK_SET) != 0)
        return fail_spool(err);
    spool->n_read = 0;
    return OJ_OK;
}

oj_status oj_spool_read(struct oj_spool *spool, struct oj_spool_record *record,
                        int *at_end, struct oj_error *err)
{
    *at_end = spool->n_read == spool->n_records;
    if (*at_end)
        return OJ_OK;
    if (fread(record, spool->record_size, 1, spool->file) != 1)
        return fail_spool(err);
    spool->n_read++;
    return OJ_OK;
}

int64_t oj_spool_count(const struct oj_spool *spool)
{
    return spool->n_records;
}

void oj_spool_close(struct oj_spool *spool)
{
    if (spool == NULL)
        return;
    fclose(spool->file);
    oj_free(spool);
}
