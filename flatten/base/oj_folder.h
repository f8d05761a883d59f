/** Folders that are held by a descriptor.  What is in one is named relative to
 *  it, so that nothing changes its meaning when another user renames a folder
 *  or puts a link in its place, and no link is ever entered. */
#ifndef OJ_FOLDER_H
#define OJ_FOLDER_H

/** Descriptor of a folder, for reading its names; parent: descriptor of the
 *  folder that it lies in, or AT_FDCWD.  -1 with errno; ENOTDIR or ELOOP where
 *  the name is a link. */
int oj_folder_open(int parent, const char *name);

/** 1 when the folder belongs to this user and no other user may write in it. */
int oj_folder_is_own(int folder);

/** Calls visit for each name in the folder but "." and "..", until it returns
 *  nonzero.  Returns what it returned last, 0 for an empty folder, or -1 with
 *  errno where the names cannot be read. */
int oj_folder_each(int folder,
                   int (*visit)(int folder, const char *name, void *user),
                   void *user);

/** Removes all that is in the folder, with what is in its folders; links go as
 *  names.  last: a name that is removed when all others are gone, or NULL.
 *  0, or -1 with errno. */
int oj_folder_clear(int folder, const char *last);

/** Brings the names in the folder to the disk.  0, or -1 with errno; folders of
 *  file systems that have no such thing, and those that cannot be read, count
 *  as brought. */
int oj_folder_sync(int folder);

/** Brings a file in the folder to the disk, or a folder in it with all that is
 *  in that one. 0, or -1 with errno. */
int oj_folder_sync_member(int folder, const char *name);

#endif
