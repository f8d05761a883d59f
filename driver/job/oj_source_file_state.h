/** The files that a side of a join comes from, and the state they were in:
 *  whether what was read once is still what a new reading would give.
 *
 *  Known only where all of the data is in local files that the driver or an OGR
 *  VRT file names; anything else (databases, /vsi files, formats that refer to
 *  other sources) is not.  Of each file the state is its device and inode,
 *  size, and the times of its last change, to the nanosecond; SQLite's -wal and
 *  -journal files count.
 */
#ifndef OJ_SOURCE_FILE_STATE_H
#define OJ_SOURCE_FILE_STATE_H

#include "../source/oj_source.h"

/** Zeroed memory is a valid one of nothing known. */
struct oj_join_files
{
    char **paths;   /**< owned; absolute; NULL: not known */
    char **state;   /**< owned; a text for each, equal for equal states */
    int is_settled; /**< any later change will show in the state */
};

/** The clock that files are compared with, in nanoseconds. */
int64_t oj_join_files_now(void);

/** Looks at the files of a source that was opened after opened_ns.  Files that
 *  have changed since, or so shortly before that their times could not show a
 *  later change, are not settled. */
void oj_join_files_look(const struct oj_source *source, int64_t opened_ns,
                        struct oj_join_files *files);

/** 1 while the files are known, settled and in the state that was seen. */
int oj_join_files_same(const struct oj_join_files *files);

/** 1 when the files are known and their state is another one now; of files that
 *  are not settled a change that follows another one at once may go unseen. */
int oj_join_files_differ(const struct oj_join_files *files);

/** 1 when the files are known and may have changed since they were looked at.
 *  Costs a stat() per file. */
int oj_join_files_changed(const struct oj_join_files *files);

/** Accepts zeroed memory. */
void oj_join_files_free(struct oj_join_files *files);

#endif
