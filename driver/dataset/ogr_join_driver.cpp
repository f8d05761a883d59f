/* The GDAL driver JOIN: a join as a layer that can be read.
 *
 *   options --> struct oj_command --> JoinLayer --> RowStream
 *   (ogr_row_stream.h)
 *
 * Opening reads schemas only. The first row, count or Arrow batch starts the
 * reading and indexing of the join side, on a separate thread. This thread
 * returns one answer after another: the read-ahead is bounded, and rows are
 * available as soon as their batch is joined.
 *
 * GDAL calls one method at a time, each possibly on another thread. An error is
 * reported by CPLError(), in one line, and by the return value. Warnings of a
 * join are reported by CPLError(CE_Warning), notices by CPLDebug("OGRJOIN"),
 * both on the calling thread. Nothing is printed.
 *
 * FIDs do not depend on filters. If no input feature has two rows, rows have
 * the FIDs of the input. Otherwise the rows of input feature f have the FIDs
 * f * n, f * n + 1, ..., where n is the maximum number of rows per feature (-k,
 * or the number of join features); a FID beyond 64 bits becomes OGRNullFID.
 * Rows of a SELECT, and of -how right and full, are numbered 0, 1, 2, ...
 *
 * All differences between GDAL's versions in its C++ classes (3.4 to 3.13) are
 * handled in this file.
 */
#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_json.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>
#include <ogr_swq.h>
#include <ogrsf_frmts.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

extern "C" {
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/read/oj_layer_arrow.h"
#include "../../flatten/read/oj_ogr_errors.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"
#include "../base/oj_shell_words.h"
#include "../base/oj_sql_volatility.h"
#include "../files/oj_path.h"
#include "oj_dataset_name.h"
#include "oj_join_arrow.h"
}
#include "ogr_row_stream.h"
#include "oj_gdal_vector_join.h"

#define OJ_GDAL_IS(major, minor)                                               \
    (GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(major, minor, 0))

/* Virtual methods of GDAL's classes that only read became const in 3.12. */
#if OJ_GDAL_IS(3, 12)
#define OJ_CONST_SINCE_3_12 const
#else
#define OJ_CONST_SINCE_3_12
#endif

namespace
{

const char *const description = "JOIN";

/* Limit of joins in joins. A spec file can name other spec files or itself, on
 * both sides, so that up to 2^MAX_DEPTH of them are open at a time. */
constexpr int MAX_DEPTH = 8;
thread_local int depth = 0;

struct SpecDepthGuard
{
    SpecDepthGuard()
    {
        depth++;
    }
    ~SpecDepthGuard()
    {
        depth--;
    }
};

/* ---- errors -------------------------------------------------------------- */

/* Returns true if status is OJ_OK. Otherwise reports the error as one line,
 * even if the text of a driver or database has several, and returns false. */
bool SucceedsOrReports(oj_status status, oj_error &error)
{
    if (status == OJ_OK)
        return true;
    oj_message_make_one_line(error.message);
    CPLError(CE_Failure, CPLE_AppDefined, "%s", error.message);
    return false;
}

/* ---- the layer ----------------------------------------------------------- */

class JoinLayer final : public OGRLayer
{
    GDALDataset *m_dataset;
    oj_command m_command; /* owned */
    bool m_native_arrow;
    oj_schema m_schema{};
    /* owned; a client may mark fields as ignored in it before it reads */
    OGRFeatureDefn *m_defn = nullptr;
    std::string m_fid_column{};
    CPLStringList m_files{}; /* files of both sides */

    /* m_main: consecutive rows. m_single: rows by FID, from a second pass that
     * shares the join side. So a row by FID does not change the position of
     * m_main. */
    RowStream m_main{}, m_single{};
    OGRFeatureUniquePtr m_peeked{}; /* the next row, if it was read in
                                       advance */
    /* true if no input row has more than one output row */
    bool m_is_one_row = false;
    /* number of rows without filters; -1 if unknown */
    GIntBig m_n_rows = -1;
    oj_join_arrow *m_stream = nullptr; /* the native Arrow stream, while one is
                                          open */
    /* true if the attribute filter uses dates or times */
    bool m_asks_dates = false;
    /* the part of the attribute filter that the input layer applies; "" if it
     * applies no part */
    std::string m_where{};

    /* Capabilities of the input layer. */
    bool m_has_random_read = false, m_has_fast_count = false,
         m_has_fast_extent = false, m_has_fast_box = false;

    oj_status PlanRowsAndFields(oj_error *err);
    void MakeDefinition();
    void SetJoinMetadata();

    bool IsFiltered() const
    {
        return m_poFilterGeom != nullptr || m_poAttrQuery != nullptr;
    }
    bool IsOpen() const;
    bool IsOneToOne() const;
    bool MaySkipFilteredRows() const;
    bool HasInputGeometry() const;
    bool HasInputExtent() const;
    bool IsInputField(const char *name) const;
    std::string ConditionForInputFilter(const char *where) const;
    bool UsesDates() const;
    bool PushesBox() const;
    void PushFilters();

    void CopyIgnoredFlags(OGRFeatureDefn *asked) const;
    bool MeetsCondition(OGRFeature *feature);
    bool PassesFilters(OGRFeature *feature);
    void UnsetIgnoredFields(OGRFeature *feature) const;

    oj_status Refresh(oj_error *err);
    oj_status BeginReading(oj_error *err);
    bool BeginOrReport();
    OGRFeatureUniquePtr ReadNext();
    bool MayReadFeatures() const;
    void Reset();
    bool SkipTo(GIntBig place);
    GIntBig NextRowIndex() const;
    oj_status OpenSingle(oj_error *err);
    oj_status GetRowByFid(int64_t fid, OGRFeatureUniquePtr &feature,
                          oj_error *err);
    oj_status FindIdlePass(oj_pass **pass, oj_error *err);
    oj_status Count(int force, int64_t *n, oj_error *err);
    template <class Read>
    OGRErr ComputeExtent(OGREnvelope *extent, bool force, const Read &read);
#if OJ_GDAL_IS(3, 6)
    static oj_status AdvanceArrow(void *user, int *there, oj_error *err);
    static void EndArrowStream(void *user);
#endif

  public:
    /* Takes over the contents of command. */
    JoinLayer(GDALDataset *dataset, const oj_command &command,
              bool native_arrow);
    ~JoinLayer() override;
    JoinLayer(const JoinLayer &) = delete;
    JoinLayer &operator=(const JoinLayer &) = delete;

    /* Opens both sides and plans the rows. Returns false after an error. */
    bool Open();

    using OGRLayer::GetLayerDefn;
    OJ_CONST_SINCE_3_12 OGRFeatureDefn *
    GetLayerDefn() OJ_CONST_SINCE_3_12 override
    {
        return m_defn;
    }
    const char *GetFIDColumn() OJ_CONST_SINCE_3_12 override
    {
        return m_fid_column.c_str();
    }
    int TestCapability(const char *capability) OJ_CONST_SINCE_3_12 override;
    const CPLStringList &GetFiles() const
    {
        return m_files;
    }

    void ResetReading() override
    {
        Reset();
    }
    OGRFeature *GetNextFeature() override;
    OGRFeature *GetFeature(GIntBig fid) override;
    OGRErr SetNextByIndex(GIntBig index) override;
    GIntBig GetFeatureCount(int force) override;

    OGRErr SetAttributeFilter(const char *where) override;
#if OJ_GDAL_IS(3, 11)
    OGRErr ISetSpatialFilter(int field, const OGRGeometry *shape) override;
    OGRErr IGetExtent(int field, OGREnvelope *extent, bool force) override;
#else
    using OGRLayer::GetExtent;
    using OGRLayer::SetSpatialFilter;
    void SetSpatialFilter(OGRGeometry *shape) override;
    OGRErr GetExtent(OGREnvelope *extent, int force) override;
#endif

#if OJ_GDAL_IS(3, 6)
    GDALDataset *GetDataset() override
    {
        return m_dataset;
    }
    bool GetArrowStream(struct ArrowArrayStream *stream,
                        CSLConstList options) override;
#endif
};

/* ---- open and close ------------------------------------------------------ */

JoinLayer::JoinLayer(GDALDataset *dataset, const oj_command &command,
                     bool native_arrow)
    : m_dataset(dataset), m_command(command), m_native_arrow(native_arrow)
{
    m_main.skips = true;
}

JoinLayer::~JoinLayer()
{
    m_peeked.reset();
#if OJ_GDAL_IS(3, 6)
    if (m_stream != nullptr)
        oj_join_arrow_detach(m_stream);
#endif
    /* Stops m_main before m_single is closed, because the two streams may share
     * a join side. */
    m_main.Stop();
    m_single.Close();
    m_main.Close();
    for (OGRFeatureDefn *defn : {m_defn, m_main.asked, m_single.asked})
    {
        if (defn != nullptr)
            defn->Release();
    }
    oj_schema_free(&m_schema);
    oj_command_free(&m_command);
}

/* Makes m_defn. Fields, geometry and CRS are copies, because the pass can be
 * closed and reopened. */
void JoinLayer::MakeDefinition()
{
    const oj_job &job = m_main.pass.job;
    const oj_source &input = job.input;
    const char *given = m_command.output.layer;
    const bool is_reserved = given == nullptr && oj_sql_is_keyword(input.name);
    SetDescription(is_reserved        ? CPLSPrintf("%s_joined", input.name)
                   : given != nullptr ? given
                                      : input.name);
    m_defn = new OGRFeatureDefn(GetDescription());
    m_defn->Reference();
    for (int i = 0; i < static_cast<int>(m_schema.n_fields); i++)
    {
        m_defn->AddFieldDefn(
            OGRFeatureDefn::FromHandle(m_schema.defn)->GetFieldDefn(i));
        /* Removes the name of the field's domain: domains belong to the dataset
         * of the input layer, and the dataset of the join has none. */
        m_defn->GetFieldDefn(i)->SetDomainName("");
    }
    m_defn->SetGeomType(
        oj_schema_layer_type(&m_command.output, m_main.pass.rows.fields.type));
    if (m_defn->GetGeomFieldCount() == 0)
        return;
    OGRGeomFieldDefn *field = m_defn->GetGeomFieldDefn(0);
    field->SetName(oj_schema_name_unless_field(
        &input, OGR_L_GetGeometryColumn(input.layer)));
    if (job.crs.output == nullptr)
        return;
    OGRSpatialReference *crs =
        OGRSpatialReference::FromHandle(job.crs.output)->Clone();
    field->SetSpatialRef(crs);
    crs->Release();
}

/* Sets the metadata of layer and dataset: the join, its sides and options. */
void JoinLayer::SetJoinMetadata()
{
    const oj_job &job = m_main.pass.job;
    CPLStringList list;
    list.SetNameValue("OPERATION", oj_command_op_name(&m_command));
    for (const oj_source *source : {&job.input, &job.join})
    {
        const oj_source_options *side = source->side;
        const std::string role = source == &job.input ? "INPUT_" : "JOIN_";
        const auto add = [&](const char *what, const char *value)
        {
            if (value != nullptr)
                list.SetNameValue((role + what).c_str(), value);
        };
        add("DATASET", side->dataset);
        add("LAYER", side->sql == nullptr ? source->name : nullptr);
        add("SQL", side->sql);
        add("WHERE", side->where);
    }
    if (job.crs.unit[0] != '\0')
        list.SetNameValue("DISTANCE_UNIT", job.crs.unit);
    if (m_command.words != nullptr)
    {
        char *line = oj_words_join(m_command.words);
        list.SetNameValue("COMMAND_LINE", line);
        CPLFree(line);
    }
    SetMetadata(list.List());
    m_dataset->SetMetadata(list.List());
}

oj_status JoinLayer::PlanRowsAndFields(oj_error *err)
{
    const oj_job &job = m_main.pass.job;
    OJ_TRY(oj_pass_open_layer(&m_command, &m_main.pass, &m_schema, err));
    OGRLayerH input = job.input.layer;
    m_is_one_row = m_main.pass.rows.fields.one_row_per_input;
    MakeDefinition();
    m_main.SetDefinition(m_defn, &m_schema);
    m_single.SetDefinition(m_defn, &m_schema);
    /* Collected before rows are requested, because afterwards other threads use
     * the datasets. */
    for (const oj_source *source : {&job.input, &job.join})
    {
        const CPLStringList files(GDALGetFileList(source->dataset), TRUE);
        for (int i = 0; i < files.Count(); i++)
            m_files.AddString(files[i]); /* GetFileList() removes duplicates */
    }
    if (m_schema.keep_fids && m_is_one_row)
        m_fid_column =
            oj_schema_name_unless_field(&job.input, OGR_L_GetFIDColumn(input));
    m_has_random_read = OGR_L_TestCapability(input, OLCRandomRead);
    m_has_fast_count = OGR_L_TestCapability(input, OLCFastFeatureCount);
    m_has_fast_extent = OGR_L_TestCapability(input, OLCFastGetExtent);
    m_has_fast_box = OGR_L_TestCapability(input, OLCFastSpatialFilter);
    SetJoinMetadata();
    return OJ_OK;
}

bool JoinLayer::Open()
{
    oj_error error{OJ_OK, ""};
    CPLErrorReset();
    if (!SucceedsOrReports(PlanRowsAndFields(&error), error))
        return false;
    /* Discards errors of attempts that GDAL made while opening. */
    CPLErrorReset();
    oj_message_list_report(&m_main.pass.messages);
    return true;
}

/* ---- filters for the input layer ----------------------------------------- */

/* Returns true if both sides are open, so that there is an input layer to
 * filter. A side can be closed if reopening it has failed. */
bool JoinLayer::IsOpen() const
{
    return m_main.pass.rows.job != nullptr;
}

bool JoinLayer::IsOneToOne() const
{
    return m_is_one_row && m_command.how == OJ_HOW_LEFT;
}

/* Returns true if input rows that the client's filters reject may be skipped.
 * Skipping must change neither the FIDs of other rows, nor which join rows are
 * unmatched, nor which rows -limit counts. If the join layer is streamed,
 * aggregates are computed for all input rows, so none may be skipped. */
bool JoinLayer::MaySkipFilteredRows() const
{
    const oj_rows &rows = m_main.pass.rows;
    return IsOpen() && m_schema.keep_fids && m_command.limit < 0 &&
           !rows.fields.has_other_rows && !rows.streams_join;
}

/* Returns true if rows have the input's geometry in the input's CRS. */
bool JoinLayer::HasInputGeometry() const
{
    return IsOpen() && m_main.pass.rows.geometry == OJ_WRITE_INPUT &&
           m_main.pass.job.input.transformation == nullptr;
}

/* Returns true if every input feature has a row with its geometry. */
bool JoinLayer::HasInputExtent() const
{
    return HasInputGeometry() && m_command.how == OJ_HOW_LEFT &&
           m_command.limit < 0 &&
           !oj_source_is_filtered(&m_main.pass.job.input);
}

/* Returns true if field `name` of the rows is field `name` of the input layer.
 */
bool JoinLayer::IsInputField(const char *name) const
{
    const oj_source &input = m_main.pass.job.input;
    const int i = m_defn->GetFieldIndex(name);
    const oj_column *column = i >= 0 ? &m_schema.columns[i] : nullptr;
    return column != nullptr && column->origin == OJ_COLUMN_INPUT &&
           OGR_FD_GetFieldIndex(OGR_L_GetLayerDefn(input.layer), name) ==
               input.fields[column->source];
}

/* Drivers that leave attribute filters to OGR, which evaluates them as it
 * evaluates the filters of this layer. */
const char *const filtered_by_ogr =
    "ESRI Shapefile|FlatGeobuf|GeoJSON|GeoJSONSeq|CSV|"
    "Memory|MEM|MapInfo File|KML|GML";

/* Returns true if node is a numeric field (is_field) or a number that is exact
 * in 15 digits. Boolean fields are excluded, because only some drivers treat
 * them as numbers. FID and the other special fields of OGR's SQL are excluded,
 * too, because they are no fields of the layer. */
bool IsPlainValue(const swq_expr_node &node, bool is_field)
{
    const bool is_whole = SWQ_IS_INTEGER(node.field_type);
    if (node.eNodeType != (is_field ? SNT_COLUMN : SNT_CONSTANT) ||
        (!is_whole && node.field_type != SWQ_FLOAT) || node.is_null)
        return false;
    if (is_field)
        return !EQUAL(node.string_value, "fid") &&
               !STARTS_WITH_CI(node.string_value, "ogr_") &&
               strpbrk(node.string_value, "\"\\") == nullptr;
    const double value =
        is_whole ? static_cast<double>(node.int_value) : node.float_value;
    return std::fabs(value) < 1e15 &&
           CPLAtof(CPLSPrintf("%.15g", value)) == value;
}

/* Returns true for the part of OGR's SQL that all drivers evaluate alike:
 * comparisons of numeric fields with numbers, IS NULL, AND and OR. Drivers
 * differ on letter case, NULL under NOT, and LIKE, so their filters could
 * reject rows that this layer must return. */
bool IsPlainWhere(const swq_expr_node &node)
{
    const swq_expr_node *const *sub = node.papoSubExpr;
    if (node.eNodeType != SNT_OPERATION || node.nSubExprCount == 0)
        return false;
    switch (node.nOperation)
    {
        case SWQ_AND:
        case SWQ_OR:
            return std::all_of(sub, sub + node.nSubExprCount,
                               [](const swq_expr_node *one)
                               { return IsPlainWhere(*one); });
        case SWQ_NOT:
            return sub[0]->nOperation == SWQ_ISNULL && IsPlainWhere(*sub[0]);
        case SWQ_EQ:
        case SWQ_NE:
        case SWQ_LT:
        case SWQ_LE:
        case SWQ_GT:
        case SWQ_GE:
        case SWQ_BETWEEN:
        case SWQ_IN:
        case SWQ_ISNULL:
            return IsPlainValue(*sub[0], true) &&
                   std::all_of(sub + 1, sub + node.nSubExprCount,
                               [](const swq_expr_node *one)
                               { return IsPlainValue(*one, false); });
        default:
            return false;
    }
}

/* Returns the condition that the input layer's filter can evaluate, or "".
 * Database servers get no condition, because they also quote and fold names
 * differently. */
std::string JoinLayer::ConditionForInputFilter(const char *where) const
{
    const oj_source &input = m_main.pass.job.input;
    const CPLStringList used(m_poAttrQuery->GetUsedFields(), TRUE);
    if (input.layer == nullptr || used.Count() == 0 || !MaySkipFilteredRows())
        return "";
    for (int i = 0; i < used.Count(); i++)
    {
        if (!IsInputField(used[i]))
            return "";
    }
    GDALDriverH driver = GDALGetDatasetDriver(input.dataset);
    swq_expr_node *node =
        static_cast<swq_expr_node *>(m_poAttrQuery->GetSWQExpr());
    if (oj_driver_is(driver, filtered_by_ogr))
        return where;
    if (oj_driver_is_database(driver) || !IsPlainWhere(*node))
        return "";
    char *text = node->Unparse(nullptr, '"');
    const std::string plain(text);
    CPLFree(text);
    return plain;
}

/* Returns true if the box of the spatial filter can be passed to the input
 * layer. Infinite bounds cannot, because a driver's SQL has no text for
 * them. */
bool JoinLayer::PushesBox() const
{
    const OGREnvelope &box = m_sFilterEnvelope;
    return m_poFilterGeom != nullptr && MaySkipFilteredRows() &&
           HasInputGeometry() && std::isfinite(box.MinX) &&
           std::isfinite(box.MinY) && std::isfinite(box.MaxX) &&
           std::isfinite(box.MaxY);
}

/* Makes the input layer apply those filters of the client that cannot lose a
 * row. All rows are filtered again afterwards. */
void JoinLayer::PushFilters()
{
    oj_pass &pass = m_main.pass;
    m_single.pass.where = nullptr;
    if (m_stream != nullptr)
        return;
    m_main.Stop();
    pass.box = PushesBox() ? &m_sFilterEnvelope : nullptr;
    pass.where = m_where.empty() ? nullptr : m_where.c_str();
    if (pass.box != nullptr || pass.where != nullptr)
        CPLDebug("OGRJOIN", "the input layer filters by%s%s%s",
                 pass.box != nullptr ? " a box" : "",
                 pass.where != nullptr ? " the condition " : "",
                 m_where.c_str());
}

bool JoinLayer::UsesDates() const
{
    const CPLStringList used(
        m_poAttrQuery != nullptr ? m_poAttrQuery->GetUsedFields() : nullptr,
        TRUE);
    for (int i = 0; i < used.Count(); i++)
    {
        const int field = m_defn->GetFieldIndex(used[i]);
        const OGRFieldType type =
            field >= 0 ? m_defn->GetFieldDefn(field)->GetType() : OFTString;
        if (type == OFTDate || type == OFTTime || type == OFTDateTime)
            return true;
    }
    return false;
}

OGRErr JoinLayer::SetAttributeFilter(const char *where)
{
    const OGRErr result = OGRLayer::SetAttributeFilter(where);
    Reset();
    m_asks_dates = UsesDates();
    m_where = m_poAttrQuery != nullptr && m_stream == nullptr
                  ? ConditionForInputFilter(where)
                  : std::string();
    PushFilters();
    return result;
}

/* ---- ignored fields and filters ------------------------------------------ */

/* Copies the flags of ignored fields to `asked`, except for fields that the
 * filters use. */
void JoinLayer::CopyIgnoredFlags(OGRFeatureDefn *asked) const
{
    const CPLStringList used(
        m_poAttrQuery != nullptr ? m_poAttrQuery->GetUsedFields() : nullptr,
        TRUE);
    for (int i = 0; i < m_defn->GetFieldCount(); i++)
    {
        const OGRFieldDefn *field = m_defn->GetFieldDefn(i);
        asked->GetFieldDefn(i)->SetIgnored(
            field->IsIgnored() && used.FindString(field->GetNameRef()) < 0);
    }
    if (m_defn->GetGeomFieldCount() > 0)
        asked->SetGeometryIgnored(m_defn->IsGeometryIgnored() && !IsFiltered());
}

/* Unsets the ignored fields of a feature, which were read only for the filters.
 */
void JoinLayer::UnsetIgnoredFields(OGRFeature *feature) const
{
    for (int i = 0; i < m_defn->GetFieldCount(); i++)
    {
        if (m_defn->GetFieldDefn(i)->IsIgnored())
            feature->UnsetField(i);
    }
    if (m_defn->IsGeometryIgnored())
        feature->SetGeometryDirectly(nullptr);
}

/* Evaluates the attribute filter. Suppresses the error that GDAL reports for
 * each date that is NULL, and reports other errors. */
bool JoinLayer::MeetsCondition(OGRFeature *feature)
{
    if (!m_asks_dates)
        return m_poAttrQuery->Evaluate(feature);
    oj_ogr_errors errors{};
    oj_ogr_errors_begin(&errors);
    const bool does_meet = m_poAttrQuery->Evaluate(feature);
    oj_ogr_errors_end(&errors);
    if (errors.n_failures > 0)
        CPLError(CE_Failure, CPLE_AppDefined, "%s",
                 oj_ogr_errors_text(&errors));
    return does_meet;
}

bool JoinLayer::PassesFilters(OGRFeature *feature)
{
    return (m_poFilterGeom == nullptr ||
            FilterGeometry(feature->GetGeometryRef())) &&
           (m_poAttrQuery == nullptr || MeetsCondition(feature));
}

/* ---- consecutive rows ---------------------------------------------------- */

/* Reopens both sides if a file has changed or an error occurred. Called before
 * reading from the start; does nothing while rows or an Arrow stream are read.
 * OJ_ERR_DATA if the fields differ from those of the layer. */
oj_status JoinLayer::Refresh(oj_error *err)
{
    if (m_stream != nullptr || !oj_pass_is_outdated(&m_main.pass))
        return OJ_OK;
    m_main.CloseCursor();
    const oj_status status = oj_pass_reopen_if_outdated(&m_main.pass, err);
    m_n_rows = -1;
    m_single.Close();
    return status;
}

/* Applies the current flags of ignored fields, and reopens outdated sides
 * (Refresh()). Called before rows are read. */
oj_status JoinLayer::BeginReading(oj_error *err)
{
    if (m_main.cursor != nullptr)
        return OJ_OK;
    CopyIgnoredFlags(m_main.asked);
    return Refresh(err);
}

/* Calls BeginReading(). If it fails, reports the error and returns false; no
 * rows follow then. */
bool JoinLayer::BeginOrReport()
{
    oj_error error{OJ_OK, ""};
    m_main.has_ended = !SucceedsOrReports(BeginReading(&error), error);
    return !m_main.has_ended;
}

/* Returns the next row of the main stream, or NULL at the end. After an error,
 * reports it and returns NULL. */
OGRFeatureUniquePtr JoinLayer::ReadNext()
{
    oj_error error{OJ_OK, ""};
    OGRFeatureUniquePtr feature;
    if (m_main.has_ended || !BeginOrReport() ||
        !SucceedsOrReports(m_main.Next(feature, &error), error))
        return nullptr;
    if (feature == nullptr && !IsFiltered())
        m_n_rows = m_main.position;
    return feature;
}

/* Returns false and reports an error while a native Arrow stream uses the
 * cursor. GDAL's generic stream is no obstacle, because it reads features
 * itself. */
bool JoinLayer::MayReadFeatures() const
{
    if (m_stream == nullptr)
        return true;
    CPLError(CE_Failure, CPLE_AppDefined,
             "an Arrow stream of layer '%s' is open: release it before "
             "features are read, or open the join a second time",
             m_defn->GetName());
    return false;
}

OGRFeature *JoinLayer::GetNextFeature()
{
    if (!MayReadFeatures())
        return nullptr;
    for (;;)
    {
        OGRFeatureUniquePtr feature =
            m_peeked != nullptr ? std::move(m_peeked) : ReadNext();
        if (feature == nullptr)
            return nullptr;
        if (!PassesFilters(feature.get()))
            continue;
        if (IsFiltered())
            UnsetIgnoredFields(feature.get());
        return feature.release();
    }
}

void JoinLayer::Reset()
{
    m_peeked.reset();
    if (m_stream == nullptr)
        m_main.Stop();
}

/* Returns the index of the next row, counted before filters. Returns -1 if
 * there are no rows until the next reset. */
GIntBig JoinLayer::NextRowIndex() const
{
    return m_main.has_ended ? -1 : m_main.position - (m_peeked != nullptr);
}

/* Makes the row with this index the next one. Rows before it are joined, but
 * not made into features. Returns false if there is no such row. After an
 * error, reports it and returns false. */
bool JoinLayer::SkipTo(GIntBig place)
{
    oj_error error{OJ_OK, ""};
    bool there = false;
    if (!MayReadFeatures())
        return false;
    if (m_peeked != nullptr || m_main.has_ended || place < m_main.position)
        Reset();
    if (place < 0)
    {
        m_main.has_ended = true;
        return false;
    }
    if (!BeginOrReport() ||
        !SucceedsOrReports(m_main.Skip(place - m_main.position, &there, &error),
                           error))
        return false;
    if (there)
        m_peeked = ReadNext();
    return m_peeked != nullptr;
}

OGRErr JoinLayer::SetNextByIndex(GIntBig index)
{
    if (IsFiltered())
        return OGRLayer::SetNextByIndex(index);
#if OJ_GDAL_IS(3, 12)
    return SkipTo(index) ? OGRERR_NONE : OGRERR_NON_EXISTING_FEATURE;
#else
    return index >= 0 && SkipTo(index) ? OGRERR_NONE : OGRERR_FAILURE;
#endif
}

/* ---- by FID -------------------------------------------------------------- */

oj_status JoinLayer::OpenSingle(oj_error *err)
{
    if (m_single.pass.command != nullptr)
        return OJ_OK;
    const oj_status status =
        oj_pass_open_shared(&m_command, &m_main.pass, &m_single.pass, err);
    if (status != OJ_OK)
    {
        m_single.Close();
        return status;
    }
    /* Messages of planning were reported when the layer was opened. */
    oj_message_list_mark_reported(&m_single.pass.messages);
    m_main.pass.like = &m_single.pass;
    return OJ_OK;
}

/* Gets a row by FID. If the FIDs are those of the input and the input layer has
 * random access, looks the row up there. Otherwise reads rows until this one,
 * from the place where the last call ended, or from the first row if the last
 * call has passed this row. */
oj_status JoinLayer::GetRowByFid(int64_t fid, OGRFeatureUniquePtr &feature,
                                 oj_error *err)
{
    OJ_TRY(Refresh(err));
    OJ_TRY(OpenSingle(err));
    CopyIgnoredFlags(m_single.asked);
    if (!m_schema.keep_fids)
        return m_single.GetRowByNumber(fid, feature, err);
    return m_command.limit >= 0 ? m_single.SearchRowByFid(fid, feature, err)
                                : m_single.GetRowByFid(fid, feature, err);
}

/* Does not change the position of GetNextFeature(). */
OGRFeature *JoinLayer::GetFeature(GIntBig fid)
{
    oj_error error{OJ_OK, ""};
    OGRFeatureUniquePtr feature;
    if (!SucceedsOrReports(GetRowByFid(fid, feature, &error), error))
        return nullptr;
    if (feature != nullptr && IsFiltered())
        UnsetIgnoredFields(feature.get());
    return feature.release();
}

/* ---- counts and extents -------------------------------------------------- */

/* Sets *pass to a pass whose datasets no thread is using: the main pass, or the
 * single pass while rows of the main pass are read. */
oj_status JoinLayer::FindIdlePass(oj_pass **pass, oj_error *err)
{
    *pass = &m_main.pass;
    if (!oj_pass_is_running(&m_main.pass) && m_stream == nullptr)
        return OJ_OK;
    OJ_TRY(OpenSingle(err));
    *pass = &m_single.pass;
    m_single.Stop();
    m_single.pass.where = m_where.empty() ? nullptr : m_where.c_str();
    return oj_pass_reopen_if_outdated(*pass, err);
}

/* Sets *n to the number of rows, or to -1 if the caller must count the rows by
 * reading them: there is a spatial filter, an attribute filter that the input
 * layer cannot apply, or counting takes long and force is 0. */
oj_status JoinLayer::Count(int force, int64_t *n, oj_error *err)
{
    const bool is_known = IsOneToOne();
    oj_pass *pass;
    *n = -1;
    if (m_poFilterGeom != nullptr)
        return OJ_OK;
    OJ_TRY(Refresh(err));
    if (!IsFiltered() && m_n_rows >= 0)
    {
        *n = m_n_rows;
        return OJ_OK;
    }
    if ((m_poAttrQuery != nullptr && m_where.empty()) ||
        (!force && !(is_known && m_has_fast_count)))
        return OJ_OK;
    OJ_TRY(FindIdlePass(&pass, err));
    const oj_status status =
        is_known ? oj_pass_input_count_or_extent(pass, force, n, nullptr, err)
                 : oj_pass_count(pass, n, err);
    oj_message_list_report(&pass->messages);
    if (!IsFiltered() && status == OJ_OK && *n >= 0)
        m_n_rows = *n;
    return status;
}

/* Does not change the position of GetNextFeature(). */
GIntBig JoinLayer::GetFeatureCount(int force)
{
    oj_error error{OJ_OK, ""};
    const GIntBig place = NextRowIndex();
    int64_t n;
    if (!SucceedsOrReports(Count(force, &n, &error), error))
        return -1;
    if (n >= 0 || !force)
        return n;
    if (!MayReadFeatures())
        return -1;
    n = OGRLayer::GetFeatureCount(force);
    if (place != 0)
        SkipTo(place);
    return n;
}

/* Sets *extent to the extent of the input layer if each row has the geometry of
 * its input feature. Otherwise calls `read`, the method of the base class,
 * which reads all rows; without force, returns OGRERR_FAILURE instead. */
template <class Read>
OGRErr JoinLayer::ComputeExtent(OGREnvelope *extent, bool force,
                                const Read &read)
{
    const GIntBig place = NextRowIndex();
    int64_t there = 0;
    if (HasInputExtent() && (force || m_has_fast_extent))
    {
        oj_error error{OJ_OK, ""};
        oj_pass *pass;
        oj_status status = Refresh(&error);
        if (status == OJ_OK)
            status = FindIdlePass(&pass, &error);
        if (status == OJ_OK)
        {
            status = oj_pass_input_count_or_extent(pass, force, &there, extent,
                                                   &error);
            oj_message_list_report(&pass->messages);
        }
        (void)SucceedsOrReports(status, error);
    }
    if (there > 0)
        return OGRERR_NONE;
    if (!force || !MayReadFeatures())
        return OGRERR_FAILURE;
    const OGRErr result = read();
    if (place != 0)
        SkipTo(place);
    return result;
}

#if OJ_GDAL_IS(3, 11)

OGRErr JoinLayer::ISetSpatialFilter(int field, const OGRGeometry *shape)
{
    OGRErr result = OGRLayer::ISetSpatialFilter(field, shape);
    Reset();
    PushFilters();
    return result;
}

OGRErr JoinLayer::IGetExtent(int field, OGREnvelope *extent, bool force)
{
    return ComputeExtent(
        extent, force,
        [=] { return OGRLayer::IGetExtent(field, extent, force); });
}

#else

void JoinLayer::SetSpatialFilter(OGRGeometry *shape)
{
    OGRLayer::SetSpatialFilter(shape);
    Reset();
    PushFilters();
}

OGRErr JoinLayer::GetExtent(OGREnvelope *extent, int force)
{
    return ComputeExtent(extent, force != FALSE,
                         [=] { return OGRLayer::GetExtent(extent, force); });
}

#endif

/* ---- capabilities -------------------------------------------------------- */

int JoinLayer::TestCapability(const char *capability) OJ_CONST_SINCE_3_12
{
    if (EQUAL(capability, OLCRandomRead))
        return IsOpen() && m_schema.keep_fids && m_command.limit < 0 &&
               m_has_random_read &&
               !oj_source_is_filtered(&m_main.pass.job.input);
    if (EQUAL(capability, OLCFastFeatureCount))
        return !IsFiltered() &&
               (m_n_rows >= 0 || (IsOneToOne() && m_has_fast_count));
    if (EQUAL(capability, OLCFastGetExtent))
        return HasInputExtent() && m_has_fast_extent;
    if (EQUAL(capability, OLCFastSpatialFilter))
        return MaySkipFilteredRows() && HasInputGeometry() && m_has_fast_box;
    if (EQUAL(capability, OLCFastSetNextByIndex))
        return !IsFiltered();
#if OJ_GDAL_IS(3, 6)
    if (EQUAL(capability, OLCFastGetArrowStream))
        return !IsFiltered();
#endif
    return EQUAL(capability, OLCStringsAsUTF8) ||
           EQUAL(capability, OLCIgnoreFields) ||
           EQUAL(capability, OLCCurveGeometries) ||
           EQUAL(capability, OLCMeasuredGeometries) ||
           EQUAL(capability, "ZGeometries");
}

/* ---- Arrow --------------------------------------------------------------- */

#if OJ_GDAL_IS(3, 6)

oj_status JoinLayer::AdvanceArrow(void *user, int *there, oj_error *err)
{
    return static_cast<JoinLayer *>(user)->m_main.AdvanceToNextAnswer(there,
                                                                      err);
}

/* Called when the native stream ends. Applies the filters that were set while
 * it was open.
 */
void JoinLayer::EndArrowStream(void *user)
{
    JoinLayer *layer = static_cast<JoinLayer *>(user);
    layer->m_stream = nullptr;
    layer->m_main.Stop();
    layer->PushFilters();
}

/* Opens a stream of all rows. It is native unless a filter is set, or options
 * or fields require GDAL's generic stream. While the native stream is open,
 * GetNextFeature() fails. */
bool JoinLayer::GetArrowStream(struct ArrowArrayStream *stream,
                               CSLConstList options)
{
    oj_error error{OJ_OK, ""};
    if (!OGRLayer::GetArrowStream(stream, options))
        return false;
    Reset();
    if (!m_native_arrow || IsFiltered() || m_stream != nullptr ||
        BeginReading(&error) != OJ_OK || m_main.BeginReading(&error) != OJ_OK)
        return true; /* a client that now reads features gets an error */
    const oj_arrow_rows rows{m_main.cursor, AdvanceArrow, EndArrowStream, this};
    m_stream = oj_join_arrow_open(OGRFeatureDefn::ToHandle(m_defn), &rows,
                                  const_cast<char **>(options), stream);
    if (m_stream == nullptr)
        Reset();
    return true;
}

#endif

/* ---- the dataset --------------------------------------------------------- */

class JoinDataset final : public GDALDataset
{
    JoinLayer m_layer;

  public:
    /* Takes over the contents of command. */
    JoinDataset(const char *name, const oj_command &command, bool native_arrow)
        : m_layer(this, command, native_arrow)
    {
        SetDescription(name);
    }

    /* Returns false after an error. */
    bool Open()
    {
        return m_layer.Open();
    }

    int GetLayerCount() OJ_CONST_SINCE_3_12 override
    {
        return 1;
    }
    using GDALDataset::GetLayer;
    OJ_CONST_SINCE_3_12 OGRLayer *GetLayer(int i) OJ_CONST_SINCE_3_12 override
    {
        return i == 0 ? &m_layer : nullptr;
    }
    /* The geometry type depends on the sources, so the dataset declares all
     * types. */
    int TestCapability(const char *capability) OJ_CONST_SINCE_3_12 override
    {
        return EQUAL(capability, ODsCCurveGeometries) ||
               EQUAL(capability, ODsCMeasuredGeometries) ||
               EQUAL(capability, "ZGeometries");
    }
    char **GetFileList() override;
};

/* Returns the spec file and the files of both sides. */
char **JoinDataset::GetFileList()
{
    CPLStringList files(GDALDataset::GetFileList(), TRUE);
    const CPLStringList &behind = m_layer.GetFiles();
    for (int i = 0; i < behind.Count(); i++)
    {
        if (files.FindString(behind[i]) < 0)
            files.AddString(behind[i]);
    }
    return files.StealList();
}

/* ---- the driver ---------------------------------------------------------- */

/* Returns true for names of this driver. GDAL calls this for every dataset
 * before other drivers. An existing file is not a JOIN: name, even in a folder
 * "JOIN:". */
int Identify(GDALOpenInfo *info)
{
    return info->fpL != nullptr
               ? oj_dataset_name_is_file(info->pszFilename)
               : oj_dataset_name_words(info->pszFilename) != nullptr;
}

/* Reads a spec file *.ogrjoin (oj_dataset_name.h); path may be one of GDAL's
 * virtual files. On failure the message is the path followed by the reason. */
oj_status ReadSpec(const char *path, std::string &line, bool &is_relative,
                   oj_error *err)
{
    constexpr GIntBig MAX_BYTES = 16 * 1024 * 1024;
    static const char relative[] = "relative_paths_relative_to_this_file";
    GByte *bytes = nullptr;
    vsi_l_offset n = 0;
    CPLJSONDocument document;
    CPLErrorReset();
    CPLPushErrorHandler(CPLQuietErrorHandler);
    const bool has_read = VSIIngestFile(nullptr, path, &bytes, &n, MAX_BYTES);
    const std::string text(has_read ? reinterpret_cast<char *>(bytes) : "",
                           static_cast<size_t>(has_read ? n : 0));
    VSIFree(bytes);
    const bool is_json =
        text.find('\0') == std::string::npos &&
        text.find("\\u0000") == std::string::npos && /* an escaped zero
                                                        character is refused,
                                                        too */
        document.LoadMemory(
            text.compare(0, 3, "\xEF\xBB\xBF") == 0 ? text.substr(3) : text);
    CPLPopErrorHandler();
    if (!has_read)
        return oj_fail(
            err, OJ_ERR_IO,
            "it cannot be read, or is larger than %d MiB, and is no file of "
            "-write_spec, which holds the options of a join as JSON",
            static_cast<int>(MAX_BYTES >> 20));
    const CPLJSONObject root = document.GetRoot();
    if (!is_json || root.GetType() != CPLJSONObject::Type::Object)
        return oj_fail(err, OJ_ERR_DATA,
                       "it is not a JSON object, as -write_spec writes it%s%s",
                       CPLGetLastErrorMsg()[0] != '\0' ? ": " : "",
                       CPLGetLastErrorMsg());
    if (root.GetString("type") != "ogrjoin")
        return oj_fail(err, OJ_ERR_DATA,
                       "it has no member \"type\": \"ogrjoin\"; -write_spec "
                       "writes such a file");
    const CPLJSONObject words = root.GetObj("command_line");
    line = words.ToString();
    if (words.GetType() != CPLJSONObject::Type::String)
        return oj_fail(err, OJ_ERR_DATA,
                       "it needs a member \"command_line\" with a text, such "
                       "as \"-op nearest input.gpkg join.gpkg\"");
    const CPLJSONObject flag = root.GetObj(relative);
    is_relative = !flag.IsValid() || flag.ToBool();
    if (flag.IsValid() && flag.GetType() != CPLJSONObject::Type::Boolean)
        return oj_fail(err, OJ_ERR_DATA, "the member %s must be true or false",
                       relative);
    return OJ_OK;
}

/* Parses a dataset name: "JOIN:..." or a spec file. */
oj_status ReadName(const char *name, oj_command *command, oj_error *err)
{
    oj_error why{OJ_OK, ""};
    std::string line;
    bool is_relative = true;
    const char *words = oj_dataset_name_words(name);
    if (words != nullptr)
        return oj_command_parse_line(words, "", command, err);
    oj_status status = ReadSpec(name, line, is_relative, &why);
    const std::string folder(is_relative ? oj_path_folder(name, "") : "");
    if (status == OJ_OK)
        status =
            oj_command_parse_line(line.c_str(), folder.c_str(), command, &why);
    return status == OJ_OK
               ? status
               : oj_fail(err, status, "%.300s: %.700s", name, why.message);
}

GDALDataset *Open(GDALOpenInfo *info)
{
    /* Refuses update access without a message: programs open for update first
     * and fall back to read-only. */
    if (!Identify(info) || info->eAccess == GA_Update)
        return nullptr;
    if (depth >= MAX_DEPTH)
    {
        CPLError(CE_Failure, CPLE_OpenFailed,
                 "joins of joins are more than %d deep: take out the spec file "
                 "that names itself, or write the inner joins to files first",
                 MAX_DEPTH);
        return nullptr;
    }
    try
    {
        SpecDepthGuard deeper;
        oj_command command{};
        oj_error err{OJ_OK, ""};
        if (ReadName(info->pszFilename, &command, &err) != OJ_OK)
        {
            oj_message_make_one_line(err.message);
            CPLError(CE_Failure, CPLE_OpenFailed, "%s", err.message);
            return nullptr;
        }
        auto dataset = std::make_unique<JoinDataset>(
            info->pszFilename, command,
            CPLTestBool(
                CSLFetchNameValueDef(info->papszOpenOptions, "ARROW", "YES")));
        return dataset->Open() ? dataset.release() : nullptr;
    }
    catch (const std::exception &e)
    {
        CPLError(CE_Failure, CPLE_AppDefined, "the join cannot be opened: %s",
                 e.what());
        return nullptr;
    }
}

/* Reports a failed file operation. Deleting, renaming and copying affect only
 * the spec file, not the sources. `what` is the operation, for the message. */
CPLErr ReportFileOperation(bool is_done, const char *name, const char *what)
{
    if (is_done)
        return CE_None;
    if (oj_dataset_name_words(name))
        CPLError(CE_Failure, CPLE_AppDefined,
                 "a join named JOIN: is no file and cannot be %s: -write_spec "
                 "makes a file of it",
                 what);
    else
        CPLError(CE_Failure, CPLE_AppDefined,
                 "the spec file %s cannot be %s: %s", name, what,
                 std::strerror(errno));
    return CE_Failure;
}

CPLErr Delete(const char *name)
{
    return ReportFileOperation(
        !oj_dataset_name_words(name) && VSIUnlink(name) == 0, name, "deleted");
}

CPLErr Rename(const char *to, const char *from)
{
    return ReportFileOperation(!oj_dataset_name_words(from) &&
                                   VSIRename(from, to) == 0,
                               from, "renamed");
}

CPLErr Copy(const char *to, const char *from)
{
    return ReportFileOperation(!oj_dataset_name_words(from) &&
                                   CPLCopyFile(to, from) == 0,
                               from, "copied");
}

void Unload(GDALDriver *)
{
    oj_join_cache_clear();
}

const char options[] =
    "<OpenOptionList>"
    "  <Option name='ARROW' type='boolean' default='YES' description='Whether "
    "Arrow streams are made of the join itself; NO: of its features'/>"
    "</OpenOptionList>";

} // namespace

extern "C" OJ_EXPORT void RegisterOGRJOIN(void);

/* Entry point of the plugin; GDAL derives its name from that of the file,
 * ogr_JOIN.so. */
void RegisterOGRJOIN(void)
{
    if (!GDAL_CHECK_VERSION("ogr_JOIN") ||
        GDALGetDriverByName(description) != nullptr)
        return;
    GDALDriver *driver = new (std::nothrow) GDALDriver();
    if (driver == nullptr)
        return;
    driver->SetDescription(description);
    driver->SetMetadataItem(GDAL_DCAP_VECTOR, "YES");
    driver->SetMetadataItem(GDAL_DMD_LONGNAME, "Join of two layers (ogrjoin)");
    driver->SetMetadataItem(GDAL_DMD_CONNECTION_PREFIX, "JOIN:");
    driver->SetMetadataItem(GDAL_DMD_EXTENSION, "ogrjoin");
    driver->SetMetadataItem(GDAL_DMD_EXTENSIONS, "ogrjoin");
    driver->SetMetadataItem(GDAL_DMD_OPENOPTIONLIST, options);
    driver->SetMetadataItem(GDAL_DMD_HELPTOPIC, "ogrjoin(1)");
    driver->SetMetadataItem(GDAL_DCAP_VIRTUALIO, "YES");
    for (const char *kind : {"CURVE", "MEASURED", "Z"})
        driver->SetMetadataItem(CPLSPrintf("DCAP_%s_GEOMETRIES", kind), "YES");
#ifdef GDAL_DMD_SUPPORTED_SQL_DIALECTS
    driver->SetMetadataItem(GDAL_DMD_SUPPORTED_SQL_DIALECTS, "OGRSQL SQLITE");
#endif
    driver->pfnIdentify = Identify;
    driver->pfnOpen = Open;
    driver->pfnDelete = Delete;
    driver->pfnRename = Rename;
    driver->pfnCopyFiles = Copy;
    driver->pfnUnloadDriver = Unload;
    GetGDALDriverManager()->RegisterDriver(driver);
#if OJ_GDAL_IS(3, 12)
    oj_vector_algorithm_declare();
#endif
}
