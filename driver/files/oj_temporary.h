/** Temporary folders next to the destination, in which an output is made.
 *
 *   data/out.shp                        what the user asked for
 *   data/.out_shp.ogrjoin-Hk2x9a/       made here, while the process lives
 *        .lock                          held by it
 *        out.shp out.dbf out.shx ...    the members, with their final names
 *
 *  The folder has no dot inside its name: GDAL would take .zip, .xlsx and the
 *  like for an archive.  A member moves into place by one rename within the
 *  file system, when it is on the disk.
 *
 *  A run that was killed leaves the folder, not the lock; the next run to the
 *  same destination removes it.  Others may write in the destination, so a
 *  folder is removed only when it belongs to this user, no other may write
 *  in it, and its .lock is a file, free, and holds the name of the folder.
 *  Both folders are held by descriptors: what happens to their names meanwhile
 *  changes nothing of what is moved or removed.
 */
#ifndef OJ_TEMPORARY_H
#define OJ_TEMPORARY_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

#define OJ_PATH_MAX 4096

/** Zeroed memory is a valid absent one. */
struct oj_temporary
{
    char folder[OJ_PATH_MAX];      /**< the temporary folder; "": none */
    char way[OJ_PATH_MAX];         /**< by which its members are opened: by
                                        its descriptor, where /proc is there;
                                        behind oj_failed_writes_prefix() */
    char destination[OJ_PATH_MAX]; /**< the folder of the final names */
    char name[256];                /**< final name of the main member */
    /** Descriptors of the three, where folder is set. */
    int folder_file, destination_file, lock;
};

/** Removes what dead runs to final left, and makes the folder. */
OJ_MUST_USE oj_status oj_temporary_make(const char *final,
                                        struct oj_temporary *out,
                                        struct oj_error *err);

/** Path of the main member inside the folder. */
void oj_temporary_path(const struct oj_temporary *temporary, char *path,
                       int size);

/** OJ_ERR_IO when the disk has no room: drivers that write through a buffer
 *  may not have noticed. */
OJ_MUST_USE oj_status oj_temporary_probe(const struct oj_temporary *temporary,
                                         struct oj_error *err);

/** Moves all members to their final names, the main one last. old: NULL-
 *  terminated paths of the members of the dataset that is replaced, which go;
 *  NULL when nothing is replaced, and then no member may exist yet.
 *  Members reach the disk before they are moved and before old ones go, their
 *  final names before this returns.
 *  OJ_ERR_CANCELLED: nothing was moved. */
OJ_MUST_USE oj_status oj_temporary_move(const struct oj_temporary *temporary,
                                        char **old, struct oj_error *err);

/** Removes the folder with all that is in it. Accepts an absent one. */
void oj_temporary_remove(struct oj_temporary *temporary);

#endif
