/** Records the files behind a side of a join and their state, to detect whether
 *  reading them again could give other rows.
 *
 *  The files are known only if all data is in local files that the driver or an
 *  OGR VRT file lists; they are unknown for other sources (databases, /vsi
 *  files, formats that refer to other sources). The state of a file is its
 *  device, inode, size, and times of last change in nanoseconds; SQLite's -wal
 *  and -journal files are included.
 */
#ifndef OJ_SOURCE_FILE_STATE_H
#define OJ_SOURCE_FILE_STATE_H

#include "../source/oj_source.h"

/** The files of a source and their state. Zeroed memory is valid and means that
 *  the files are not known. */
struct oj_join_files
{
    char **paths; /**< absolute paths, owned; NULL if the files are not known */
    /** one text per path, owned; equal texts mean equal states */
    char **state;
    int is_settled; /**< 1 if any later change will change the state */
};

/** Returns the current time, in nanoseconds, of the clock that sets file times.
 */
int64_t oj_join_files_clock_ns(void);

/** Records the files of a source that was opened at opened_ns
 *  (oj_join_files_clock_ns()). is_settled becomes 0 if a file changed after
 *  opened_ns, or so shortly before that a next change may get an equal time. */
void oj_join_files_record(const struct oj_source *source, int64_t opened_ns,
                          struct oj_join_files *files);

/** Returns 1 if the files are known, settled and unchanged. */
int oj_join_files_are_unchanged(const struct oj_join_files *files);

/** Returns 1 if the files are known and their state has changed. If they are
 *  not settled, a change may be missed. */
int oj_join_files_have_changed(const struct oj_join_files *files);

/** Returns 1 if the files are known and may have changed since they were
 *  recorded. Costs one stat() per file. */
int oj_join_files_may_have_changed(const struct oj_join_files *files);

/** Frees what files owns; zeroed memory is accepted. */
void oj_join_files_free(struct oj_join_files *files);

#endif
