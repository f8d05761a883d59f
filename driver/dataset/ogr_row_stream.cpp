#include "ogr_row_stream.h"

extern "C" {
#include "../../flatten/read/oj_attribute_table.h"
#include "../base/oj_message.h"
}

void RowStream::SetDefinition(OGRFeatureDefn *of, const oj_schema *with)
{
    schema = with;
    defn = of;
    asked = of->Clone();
    asked->Reference();
}

void RowStream::CloseCursor()
{
    oj_row_cursor_close(cursor);
    oj_table_free(types);
    cursor = nullptr;
    types = nullptr;
}

void RowStream::Stop()
{
    CloseCursor();
    (void)!oj_pass_stop(&pass, OJ_OK, nullptr);
    has_ended = false;
    position = 0;
}

void RowStream::Close()
{
    Stop();
    spare.reset();
    oj_pass_close(&pass);
}

/* Stops reading the fields that are ignored now, until the stream is
 * stopped. */
void RowStream::StopReadingIgnoredFields()
{
    for (int64_t i = 0; i < schema->n_fields; i++)
    {
        const oj_column &column = schema->columns[i];
        if (column.origin == OJ_COLUMN_INPUT)
            oj_source_skip_field(
                &pass.job.input, column.source,
                asked->GetFieldDefn(column.target)->IsIgnored());
    }
}

/* Opens the cursor. The join side need not be read yet, because the cursor
 * needs only the types of its columns. */
oj_status RowStream::OpenCursor(oj_error *err)
{
    const oj_source &join = pass.job.join;
    oj_write_options options{};
    OJ_TRY(oj_table_new(join.layer, join.fields, join.n_fields + join.n_hidden,
                        &types, err));
    oj_rows_fill_write_options(&pass.rows, schema, &options);
    options.join_table = types;
    if (defn->GetGeomFieldCount() > 0)
        options.crs = OGR_GFld_GetSpatialRef(
            OGR_FD_GetGeomFieldDefn(OGRFeatureDefn::ToHandle(defn), 0));
    options.cancel = nullptr; /* no cancelling: rows are made only when they are
                                 requested */
    OJ_TRY(oj_row_cursor_open(OGRFeatureDefn::ToHandle(asked), &options,
                              &cursor, err));
    oj_row_cursor_set_first_fid(cursor, 0);
    return OJ_OK;
}

oj_status RowStream::BeginAnswer(const oj_answer &answer, oj_error *err)
{
    oj_row_cursor_set_join_side(cursor, answer.join_side, answer.join_table);
    oj_row_cursor_set_fid_stride(cursor, oj_pass_most_rows(&pass));
    return answer.is_matched != nullptr
               ? oj_row_cursor_begin_join_rows(cursor, answer.batch,
                                               answer.is_matched, err)
               : oj_row_cursor_begin_answer(cursor, answer.batch,
                                            answer.first_row, answer.matches,
                                            answer.values, err);
}

oj_status RowStream::BeginReading(oj_error *err)
{
    if (cursor != nullptr)
        return OJ_OK;
    OJ_TRY(oj_pass_reopen_if_outdated(&pass, err));
    const oj_status status = OpenCursor(err);
    if (status != OJ_OK)
        CloseCursor();
    return status;
}

/* Ends the run of the pass. Called after the last row or an error. */
oj_status RowStream::EndRun(oj_status status, oj_error *err)
{
    has_ended = true;
    oj_row_cursor_end_answer(cursor);
    return oj_pass_stop(&pass, status, err);
}

oj_status RowStream::AdvanceToNextAnswer(int *there, oj_error *err)
{
    const oj_answer *answer = nullptr;
    *there = 0;
    if (has_ended)
        return OJ_OK;
    if (!oj_pass_is_running(&pass) && skips)
        StopReadingIgnoredFields();
    oj_row_cursor_end_answer(cursor);
    oj_status status = oj_pass_next(&pass, &answer, err);
    if (status == OJ_OK && answer != nullptr)
        status = BeginAnswer(*answer, err);
    *there = status == OJ_OK && answer != nullptr;
    if (!*there)
        status = EndRun(status, err);
    oj_message_list_report(&pass.messages);
    return status;
}

/* Makes the next row of the answer, or sets *there to 0 if the answer has no
 * more rows. Unset fields become NULL, because some drivers distinguish unset
 * from NULL in features, but not in streams. */
oj_status RowStream::MakeFeature(int *there, OGRFeatureUniquePtr &feature,
                                 oj_error *err)
{
    if (spare == nullptr)
        spare.reset(OGRFeature::CreateFeature(defn));
    if (spare == nullptr)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for a feature: free memory");
    OJ_TRY(oj_row_cursor_next(cursor, OGRFeature::ToHandle(spare.get()), there,
                              err));
    if (!*there)
        return OJ_OK;
    for (int i = 0; i < defn->GetFieldCount(); i++)
    {
        if (!spare->IsFieldSet(i) && !asked->GetFieldDefn(i)->IsIgnored())
            spare->SetFieldNull(i);
    }
    feature = std::move(spare);
    return OJ_OK;
}

oj_status RowStream::Next(OGRFeatureUniquePtr &feature, oj_error *err)
{
    int there = 1;
    if (has_ended)
        return OJ_OK;
    OJ_TRY(BeginReading(err));
    while (there)
    {
        int is_made = 0;
        const oj_status status = MakeFeature(&is_made, feature, err);
        if (status != OJ_OK)
            return EndRun(status, err);
        if (is_made)
        {
            position++;
            return OJ_OK;
        }
        OJ_TRY(AdvanceToNextAnswer(&there, err));
    }
    return OJ_OK;
}

oj_status RowStream::Skip(int64_t n, bool *there, oj_error *err)
{
    oj_row_place places[256];
    constexpr int64_t most = sizeof places / sizeof *places;
    int has_answer = 1;
    *there = false;
    if (has_ended)
        return OJ_OK;
    OJ_TRY(BeginReading(err));
    while (n > 0 && has_answer)
    {
        const int64_t taken =
            oj_row_cursor_next_places(cursor, places, n < most ? n : most);
        n -= taken;
        position += taken;
        if (taken == 0)
            OJ_TRY(AdvanceToNextAnswer(&has_answer, err));
    }
    *there = n == 0;
    return OJ_OK;
}

/* Makes row n of the current answer. */
oj_status RowStream::MakeRow(int64_t n, OGRFeatureUniquePtr &feature,
                             oj_error *err)
{
    oj_row_place place;
    int there = 1;
    for (; n > 0 && there; n--)
        there = oj_row_cursor_next_places(cursor, &place, 1) > 0;
    return there ? MakeFeature(&there, feature, err) : OJ_OK;
}

oj_status RowStream::GetRowByFid(int64_t fid, OGRFeatureUniquePtr &feature,
                                 oj_error *err)
{
    oj_answer answer;
    int there;
    OJ_TRY(BeginReading(err));
    oj_status status =
        oj_pass_answer_feature(&pass, &fid, &answer, &there, err);
    if (status == OJ_OK && there)
    {
        status = BeginAnswer(answer, err);
        if (status == OJ_OK)
            status = MakeRow(fid, feature, err);
        oj_row_cursor_end_answer(cursor);
    }
    if (status != OJ_OK) /* the next request reopens the pass */
    {
        CloseCursor();
        status = oj_pass_stop(&pass, status, err);
    }
    oj_message_list_report(&pass.messages);
    return status;
}

/* Gets the row with the number fid. Skips the rows before it. If the stream has
 * passed it already, starts again from the first row. */
oj_status RowStream::GetRowByNumber(int64_t fid, OGRFeatureUniquePtr &feature,
                                    oj_error *err)
{
    bool there;
    if (has_ended || fid < position)
        Stop();
    OJ_TRY(Skip(fid - position, &there, err));
    return there ? Next(feature, err) : OJ_OK;
}

oj_status RowStream::SearchRowByFid(int64_t fid, OGRFeatureUniquePtr &feature,
                                    oj_error *err)
{
    Stop();
    do
    {
        feature.reset();
        OJ_TRY(Next(feature, err));
    } while (feature != nullptr && feature->GetFID() != fid);
    return OJ_OK;
}
