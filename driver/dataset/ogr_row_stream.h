/** The rows of a join as features, one after another, on the thread that asks
 *  for them; the join runs ahead on threads of its own (oj_pass.h).
 *
 *   pass opened -> Next, Next, ... [Stop -> filter -> Next, ...] -> Close
 *
 *  Nothing is read before the first row is asked for.  While rows are under way
 *  the datasets of the pass belong to its threads; after Stop() they are the
 *  caller's.  Rows are of one state of the join side, which is read as a whole
 *  before the first one. */
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
    OGRFeatureDefn *defn = nullptr;  /* of the features that are made */
    OGRFeatureDefn *asked = nullptr; /* those ignored are not set */
    bool skips = false;     /* those ignored in asked when rows are begun are
                               not read, and asked does not change until the
                               stream is stopped; else other fields can be
                               ignored between two rows */
    bool has_ended = false; /* no more rows until it is stopped */
    oj_row_cursor *cursor = nullptr; /* there while rows are read */
    oj_table *types = nullptr;       /* the join side's columns, no rows */
    OGRFeatureUniquePtr spare{};     /* made, and not needed */
    int64_t position = 0;            /* rows that were made or skipped */

    /** Before the first row; both outlive the stream. */
    void Define(OGRFeatureDefn *of, const oj_schema *with);
    void CloseCursor();
    void Stop();
    void Close();
    oj_status Begin(oj_error *err);
    oj_status Advance(int *there, oj_error *err);
    /** feature: the next row, or as it was at the end. */
    oj_status Next(OGRFeatureUniquePtr &feature, oj_error *err);
    /** Passes over n rows; *there false: there are not so many. */
    oj_status Skip(int64_t n, bool *there, oj_error *err);
    /** The row with this FID: by a lookup in the input layer; where rows are
     *  numbered; or by reading all rows, as with -limit a row counts only where
     *  it comes before the end. */
    oj_status Get(int64_t fid, OGRFeatureUniquePtr &feature, oj_error *err);
    oj_status GetNumbered(int64_t fid, OGRFeatureUniquePtr &feature,
                          oj_error *err);
    oj_status GetSearched(int64_t fid, OGRFeatureUniquePtr &feature,
                          oj_error *err);

  private:
    void SkipIgnored();
    oj_status OpenCursor(oj_error *err);
    oj_status BeginAnswer(const oj_answer &answer, oj_error *err);
    oj_status End(oj_status status, oj_error *err);
    oj_status MakeFeature(int *there, OGRFeatureUniquePtr &feature,
                          oj_error *err);
    oj_status MakeRow(int64_t n, OGRFeatureUniquePtr &feature, oj_error *err);
};

#endif
