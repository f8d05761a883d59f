/** Temporary folders next to the destination, in which an output is made.
 *
 *    data/out.shp                      the output that the user asked for
 *    data/.out_shp.ogrjoin-Hk2x9a/     made here while the process runs
 *         .lock                        locked by the process
 *         out.shp out.dbf out.shx ...  the members, with their final names
 *
 *  The folder's name has no further dot: GDAL would take .zip, .xlsx and
 *  similar extensions for an archive. Once a member is on the disk, one rename
 *  within the file system moves it into place.
 *
 *  A killed run leaves the folder, but not its lock; the next run with this
 *  destination removes the folder. Other users may write to the destination,
 *  so a folder is removed only if it belongs to this user, no other user may
 *  write in it, and its .lock is a regular file, unlocked, that contains the
 *  folder's name. Both folders are accessed through descriptors, so that
 *  renaming them meanwhile does not redirect a move or a removal.
 */
#ifndef OJ_TEMPORARY_H
#define OJ_TEMPORARY_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

#define OJ_PATH_MAX 4096

/** A temporary folder and its output. Zeroed memory is valid: there is no
 *  folder. */
struct oj_temporary
{
    char folder[OJ_PATH_MAX]; /**< the temporary folder; "" if there is none */
    /** path by which drivers open the members, with oj_failed_writes_prefix():
     *  /proc/self/fd/N, or `folder` where that is missing */
    char access_path[OJ_PATH_MAX];
    char destination[OJ_PATH_MAX]; /**< the folder of the final names */
    char name[256];                /**< final name of the main member */
    /** Descriptors of the temporary folder, the destination and .lock; valid if
     *  folder is set. */
    int folder_file, destination_file, lock;
};

/** Removes folders that killed runs with this destination have left, and makes
 *  a new folder. final is the path of the output. */
OJ_MUST_USE oj_status oj_temporary_make(const char *final,
                                        struct oj_temporary *out,
                                        struct oj_error *err);

/** Writes the path of the main member in the temporary folder to path. */
void oj_temporary_path(const struct oj_temporary *temporary, char *path,
                       int size);

/** Returns OJ_ERR_IO if the disk is full: drivers that buffer writes may not
 *  have noticed it. */
OJ_MUST_USE oj_status oj_temporary_check_writable(
    const struct oj_temporary *temporary, struct oj_error *err);

/** Moves all members to their final names, the main one last. old:
 *  NULL-terminated paths of the files of the replaced dataset, which are
 *  removed; if old is NULL, no file may exist under a final name yet. Members
 *  are synced to the disk before they are moved, and the final names before
 *  this returns. On OJ_ERR_CANCELLED nothing was moved. */
OJ_MUST_USE oj_status oj_temporary_move_into_place(
    const struct oj_temporary *temporary, char **old, struct oj_error *err);

/** Removes the folder and its contents; zeroed memory is accepted. */
void oj_temporary_remove(struct oj_temporary *temporary);

#endif
