/** The consecutive rows of a join as features, made on the calling thread; the
 *  join runs ahead on its own threads (oj_pass.h).
 *
 *    pass opened -> Next, Next, ... [Stop -> filter -> Next, ...] -> Close
 *
 *  Nothing is read before the first row is requested. From then until Stop()
 *  only the threads of the pass may use its datasets. All rows see one state
 *  of the join side, which is read completely before the first row.
 */
#ifndef OGR_ROW_STREAM_H
#define OGR_ROW_STREAM_H

#include <ogrsf_frmts.h>

extern "C" {
#include "../../flatten/write/oj_row_cursor.h"
#include "../rows/oj_pass.h"
}

struct RowStream
{
    oj_pass pass{}; /* opened by oj_pass_open_shared() */
    const oj_schema *schema = nullptr;
    /* definition of the features */
    OGRFeatureDefn *defn = nullptr;
    /* copy of defn with the client's flags of ignored fields, which are not set
     * in features */
    OGRFeatureDefn *asked = nullptr;
    /* If true, fields that are ignored in `asked` when reading begins are not
     * read, and `asked` must not change until Stop(). If false, the ignored
     * fields may change from row to row. */
    bool skips = false;
    bool has_ended = false; /* true if there are no more rows until Stop() */
    oj_row_cursor *cursor = nullptr; /* not NULL while rows are read */
    oj_table *types = nullptr;       /* the join side's columns, without rows */
    OGRFeatureUniquePtr spare{};     /* an unused feature, for the next row */
    int64_t position = 0;            /* number of rows made or skipped */

    /** Sets the definition of the features and the schema of the pass, before
     *  the first row; both must outlive the stream. */
    void SetDefinition(OGRFeatureDefn *of, const oj_schema *with);
    void CloseCursor();
    /** Stops the pass; the next row is then the first one again. */
    void Stop();
    void Close();
    /** Opens the cursor, and reopens an outdated pass; has no effect while rows
     *  are read. */
    oj_status BeginReading(oj_error *err);
    /** Ends the current answer and waits for the next one. *there becomes 0 if
     *  there are no more answers. */
    oj_status AdvanceToNextAnswer(int *there, oj_error *err);
    /** Gets the next row; feature stays unchanged if there is no further row.
     */
    oj_status Next(OGRFeatureUniquePtr &feature, oj_error *err);
    /** Skips n rows. *there becomes false if fewer rows remain. */
    oj_status Skip(int64_t n, bool *there, oj_error *err);
    /** Three ways to get the row with this FID: GetRowByFid() looks it up in
     * the input layer, GetRowByNumber() counts numbered rows, and
     * SearchRowByFid() reads all rows. SearchRowByFid() is for -limit, with
     * which only rows before the limit exist. */
    oj_status GetRowByFid(int64_t fid, OGRFeatureUniquePtr &feature,
                          oj_error *err);
    oj_status GetRowByNumber(int64_t fid, OGRFeatureUniquePtr &feature,
                             oj_error *err);
    oj_status SearchRowByFid(int64_t fid, OGRFeatureUniquePtr &feature,
                             oj_error *err);

  private:
    void StopReadingIgnoredFields();
    oj_status OpenCursor(oj_error *err);
    oj_status BeginAnswer(const oj_answer &answer, oj_error *err);
    oj_status EndRun(oj_status status, oj_error *err);
    oj_status MakeFeature(int *there, OGRFeatureUniquePtr &feature,
                          oj_error *err);
    oj_status MakeRow(int64_t n, OGRFeatureUniquePtr &feature, oj_error *err);
};

#endif
