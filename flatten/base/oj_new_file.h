/** Creation of files.  Every file that the product opens for writing under a
 * new name is created here: a name that is taken is an error and no link is
 *  followed, so that nothing that another user has put under the name is
 *  opened, cut or written. */
#ifndef OJ_NEW_FILE_H
#define OJ_NEW_FILE_H

#include <stddef.h>
#include <stdio.h>

/** A new empty file, open for reading and writing and closed on exec.
 *
 *  folder   descriptor that a relative name starts from, or AT_FDCWD
 *  mode     permissions, less the umask
 *
 *  Returns its descriptor, or -1 with errno; EEXIST where anything, a link
 *  included, has the name. */
int oj_new_file_create(int folder, const char *name, unsigned mode);

/** A new file as above in a folder given by n letters of its path, named
 *  .ogrjoin- and random letters, which others cannot guess.
 *
 *  path     of size bytes: receives the path of the file
 *
 *  Returns its descriptor, or -1 with errno. */
int oj_new_file_create_unpredictable(const char *folder, size_t n,
                                     unsigned mode, char *path, size_t size);

/** Writes a file by write(file, user) under such a name next to path, brings it
 *  to the disk and renames it to path, so that path is what it was before or
 *  complete.  0, or -1 with errno, and nothing is left. */
int oj_new_file_write(const char *path, void (*write)(FILE *, const void *),
                      const void *user);

#endif
