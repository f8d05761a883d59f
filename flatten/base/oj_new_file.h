/** Creates files. Every file that the product opens for writing under a new
 *  name is created here. It is an error if the name exists, and links are not
 *  followed: so a file that another user has put under the name is never
 *  opened, truncated or written. */
#ifndef OJ_NEW_FILE_H
#define OJ_NEW_FILE_H

#include <stddef.h>
#include <stdio.h>

/** Creates an empty file, open for reading and writing, closed on exec.
 *
 *  folder   descriptor to which a relative name refers, or AT_FDCWD
 *  mode     permissions, less the umask
 *
 *  Returns its descriptor, or -1 with errno; EEXIST if the name exists, also as
 *  a link.
 */
int oj_new_file_create(int folder, const char *name, unsigned mode);

/** Like oj_new_file_create(), in the folder given by the first n bytes of
 *  folder. The name is .ogrjoin- and random letters, which other users cannot
 *  guess.
 *
 *  path     [size] receives the path of the file
 *
 *  Returns its descriptor, or -1 with errno.
 */
int oj_new_file_create_unpredictable(const char *folder, size_t n,
                                     unsigned mode, char *path, size_t size);

/** Replaces path atomically: writes a file with an unpredictable name in the
 *  folder of path by write(file, user), syncs it to disk and renames it to
 *  path. The new file gets the permissions of the regular file that it
 *  replaces. Returns 0, or -1 with errno; then path is unchanged and no other
 *  file remains. */
int oj_new_file_write(const char *path, void (*write)(FILE *, const void *),
                      const void *user);

#endif
