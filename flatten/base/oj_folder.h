/** Works on folders by their descriptors. Names are relative to the descriptor,
 *  so they keep their meaning when another user renames a folder or replaces it
 *  by a link; links are never followed. */
#ifndef OJ_FOLDER_H
#define OJ_FOLDER_H

/** Opens a folder for reading its names; parent: descriptor of the folder that
 *  contains it, or AT_FDCWD. Returns a descriptor, or -1 with errno; ENOTDIR or
 *  ELOOP if the name is a link. */
int oj_folder_open(int parent, const char *name);

/** Returns 1 if this user owns the folder and no other user may write to it. */
int oj_folder_is_own(int folder);

/** Calls visit for each name in the folder except "." and "..", until visit
 *  returns nonzero. Returns the last result of visit, 0 for an empty folder, or
 *  -1 with errno if the names cannot be read. */
int oj_folder_for_each_name(int folder,
                            int (*visit)(int folder, const char *name,
                                         void *user),
                            void *user);

/** Removes everything in the folder, recursively; links are removed, not
 *  followed. last: a name to remove after all others, or NULL. Returns 0, or -1
 *  with errno. */
int oj_folder_clear(int folder, const char *last);

/** Writes the folder's names to disk (fsync). Returns 0, or -1 with errno. File
 *  systems without fsync for folders, and folders that cannot be read, count as
 *  success. */
int oj_folder_sync(int folder);

/** Writes a member of the folder to disk (fsync): a file, or a folder with all
 *  its content. Returns 0, or -1 with errno. */
int oj_folder_sync_member(int folder, const char *name);

#endif
