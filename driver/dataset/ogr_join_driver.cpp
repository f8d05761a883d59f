/* The GDAL driver JOIN: GDAL's classes on top of oj_join_layer.h, and nothing
 * else.  Every difference between GDAL's versions that concerns its classes is
 * in this file (3.4 to 3.13). */
#include "../base/oj_message.h"
#include "../spec/oj_dataset_name.h"
#include "oj_join_layer.h"
#include "oj_vector_algorithm.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_priv.h>
#include <ogrsf_frmts.h>

#include <exception>
#include <memory>
#include <new>

#define OJ_GDAL_IS(major, minor)                                               \
    (GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(major, minor, 0))

/* Methods that only tell something became const. */
#if OJ_GDAL_IS(3, 12)
#define OJ_TELLS const
#else
#define OJ_TELLS
#endif

namespace
{

const char *const description = "JOIN";

/* A specification can name another one, or itself. */
constexpr int MAX_DEPTH = 16;
thread_local int depth = 0;

struct Deeper
{
    Deeper()
    {
        depth++;
    }
    ~Deeper()
    {
        depth--;
    }
};

struct CloseJoin
{
    void operator()(oj_join_layer *join) const
    {
        oj_join_layer_close(join);
    }
};

using Join = std::unique_ptr<oj_join_layer, CloseJoin>;

/* ---- the layer ---------------------------------------------------------- */

class JoinLayer final : public OGRLayer
{
    GDALDataset *m_dataset;
    Join m_join;
    bool m_native_arrow;
    GIntBig m_place = 0; /* of the next row, before filters; -1: there is none
                            until the next reset */

    bool IsFiltered() const
    {
        return m_poFilterGeom != nullptr || m_poAttrQuery != nullptr;
    }
    bool IsWanted(OGRFeature *feature);
    void ReturnTo(GIntBig place);
    template <class Read>
    OGRErr Extent(OGREnvelope *extent, bool force, const Read &read);
    void Hide(OGRFeature *feature);
    void PassBox();

  public:
    JoinLayer(GDALDataset *dataset, Join join, bool native_arrow);

    using OGRLayer::GetLayerDefn;
    OJ_TELLS OGRFeatureDefn *GetLayerDefn() OJ_TELLS override
    {
        return OGRFeatureDefn::FromHandle(
            oj_join_layer_about(m_join.get())->defn);
    }
    const char *GetFIDColumn() OJ_TELLS override
    {
        return oj_join_layer_about(m_join.get())->fid_column;
    }
    int TestCapability(const char *capability) OJ_TELLS override;
    char **GetFiles() const
    {
        return oj_join_layer_about(m_join.get())->files;
    }

    void ResetReading() override;
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

JoinLayer::JoinLayer(GDALDataset *dataset, Join join, bool native_arrow)
    : m_dataset(dataset), m_join(std::move(join)), m_native_arrow(native_arrow)
{
    SetDescription(oj_join_layer_about(m_join.get())->name);
    SetMetadata(oj_join_layer_about(m_join.get())->metadata);
}

int JoinLayer::TestCapability(const char *capability) OJ_TELLS
{
    return oj_join_layer_has(m_join.get(), capability);
}

/* ---- rows --------------------------------------------------------------- */

void JoinLayer::ResetReading()
{
    m_place = 0;
    oj_join_layer_reset(m_join.get());
}

bool JoinLayer::IsWanted(OGRFeature *feature)
{
    return (m_poFilterGeom == nullptr ||
            FilterGeometry(feature->GetGeometryRef())) &&
           (m_poAttrQuery == nullptr || m_poAttrQuery->Evaluate(feature));
}

/* What is ignored is set all the same where the filters look at it. */
void JoinLayer::Hide(OGRFeature *feature)
{
    const OGRFeatureDefn *defn = GetLayerDefn();
    for (int i = 0; i < defn->GetFieldCount(); i++)
    {
        if (defn->GetFieldDefn(i)->IsIgnored())
            feature->UnsetField(i);
    }
    if (defn->IsGeometryIgnored())
        feature->SetGeometryDirectly(nullptr);
}

OGRFeature *JoinLayer::GetNextFeature()
{
    while (m_place >= 0)
    {
        OGRFeatureUniquePtr feature(
            OGRFeature::FromHandle(oj_join_layer_next(m_join.get())));
        if (feature == nullptr)
            return nullptr;
        m_place++;
        if (!IsWanted(feature.get()))
            continue;
        if (IsFiltered())
            Hide(feature.get());
        return feature.release();
    }
    return nullptr;
}

OGRFeature *JoinLayer::GetFeature(GIntBig fid)
{
    OGRFeature *feature =
        OGRFeature::FromHandle(oj_join_layer_get(m_join.get(), fid));
    if (feature != nullptr && IsFiltered())
        Hide(feature);
    return feature;
}

OGRErr JoinLayer::SetNextByIndex(GIntBig index)
{
    if (IsFiltered())
        return OGRLayer::SetNextByIndex(index);
    if (index >= 0 && oj_join_layer_skip_to(m_join.get(), index))
    {
        m_place = index;
        return OGRERR_NONE;
    }
#if OJ_GDAL_IS(3, 12)
    m_place = -1;
    return OGRERR_NON_EXISTING_FEATURE;
#else
    m_place = index >= 0 ? -1 : m_place; /* of no use: nothing is moved */
    return OGRERR_FAILURE;
#endif
}

/* After the base class has read all rows to find something out: whoever reads
 * goes on where they were. */
void JoinLayer::ReturnTo(GIntBig place)
{
    if (place > 0)
        oj_join_layer_skip_to(m_join.get(), place);
    m_place = place;
}

GIntBig JoinLayer::GetFeatureCount(int force)
{
    const GIntBig place = m_place;
    GIntBig n = oj_join_layer_count(m_join.get(), force);
    if (n >= 0 || !force)
        return n;
    n = OGRLayer::GetFeatureCount(force);
    ReturnTo(place);
    return n;
}

OGRErr JoinLayer::SetAttributeFilter(const char *where)
{
    OGRErr result = OGRLayer::SetAttributeFilter(where);
    if (m_poAttrQuery != nullptr)
    {
        CPLStringList used(m_poAttrQuery->GetUsedFields(), TRUE);
        oj_join_layer_filter_where(m_join.get(), where, used.List());
    }
    else
        oj_join_layer_filter_where(m_join.get(), nullptr, nullptr);
    return result;
}

/* The filter has changed: what the rows are joined for. */
void JoinLayer::PassBox()
{
    oj_join_layer_filter_box(
        m_join.get(), m_poFilterGeom != nullptr ? &m_sFilterEnvelope : nullptr);
}

/* read: the base class's own way, which reads all rows. */
template <class Read>
OGRErr JoinLayer::Extent(OGREnvelope *extent, bool force, const Read &read)
{
    const GIntBig place = m_place;
    if (oj_join_layer_extent(m_join.get(), extent, force))
        return OGRERR_NONE;
    if (!force)
        return OGRERR_FAILURE;
    const OGRErr result = read();
    ReturnTo(place);
    return result;
}

#if OJ_GDAL_IS(3, 11)

OGRErr JoinLayer::ISetSpatialFilter(int field, const OGRGeometry *shape)
{
    OGRErr result = OGRLayer::ISetSpatialFilter(field, shape);
    PassBox();
    return result;
}

OGRErr JoinLayer::IGetExtent(int field, OGREnvelope *extent, bool force)
{
    return Extent(extent, force,
                  [=] { return OGRLayer::IGetExtent(field, extent, force); });
}

#else

void JoinLayer::SetSpatialFilter(OGRGeometry *shape)
{
    OGRLayer::SetSpatialFilter(shape);
    PassBox();
}

OGRErr JoinLayer::GetExtent(OGREnvelope *extent, int force)
{
    return Extent(extent, force != FALSE,
                  [=] { return OGRLayer::GetExtent(extent, force); });
}

#endif

#if OJ_GDAL_IS(3, 6)

bool JoinLayer::GetArrowStream(struct ArrowArrayStream *stream,
                               CSLConstList options)
{
    if (!OGRLayer::GetArrowStream(stream, options))
        return false;
    ResetReading();
    if (m_native_arrow && !IsFiltered())
        oj_join_layer_arrow(m_join.get(), stream, const_cast<char **>(options));
    return true;
}

#endif

/* ---- the dataset -------------------------------------------------------- */

class JoinDataset final : public GDALDataset
{
    std::unique_ptr<JoinLayer> m_layer{};

  public:
    JoinDataset(const char *name, Join join, bool native_arrow)
    {
        SetDescription(name);
        SetMetadata(oj_join_layer_about(join.get())->metadata);
        m_layer =
            std::make_unique<JoinLayer>(this, std::move(join), native_arrow);
    }

    int GetLayerCount() OJ_TELLS override
    {
        return 1;
    }
    using GDALDataset::GetLayer;
    OJ_TELLS OGRLayer *GetLayer(int i) OJ_TELLS override
    {
        return i == 0 ? m_layer.get() : nullptr;
    }
    /* Geometries are the sources', whatever these have. */
    int TestCapability(const char *capability) OJ_TELLS override
    {
        return EQUAL(capability, ODsCCurveGeometries) ||
               EQUAL(capability, ODsCMeasuredGeometries) ||
               EQUAL(capability, "ZGeometries");
    }
    char **GetFileList() override;
};

/* The specification, and all that the join is made of. */
char **JoinDataset::GetFileList()
{
    CPLStringList files(GDALDataset::GetFileList(), TRUE);
    const CPLStringList behind(m_layer->GetFiles(), FALSE);
    for (int i = 0; i < behind.Count(); i++)
    {
        if (files.FindString(behind[i]) < 0)
            files.AddString(behind[i]);
    }
    return files.StealList();
}

/* ---- the driver --------------------------------------------------------- */

/* Asked before all other drivers, for every dataset that anybody opens. A file
 * that is there is one, even if it lies in a folder "JOIN:". */
int Identify(GDALOpenInfo *info)
{
    return info->fpL != nullptr ? oj_dataset_name_is_file(info->pszFilename)
                                : oj_dataset_name_is_words(info->pszFilename);
}

Join OpenJoin(const char *name)
{
    oj_command command{};
    oj_error err{OJ_OK, ""};
    if (oj_dataset_name_read(name, &command, &err) != OJ_OK)
    {
        oj_message_tidy(err.message);
        CPLError(CE_Failure, CPLE_OpenFailed, "%s", err.message);
        return nullptr;
    }
    return Join(oj_join_layer_open(&command));
}

GDALDataset *Open(GDALOpenInfo *info)
{
    /* Programs try to update first. An error would be taken for one that
     * counts. */
    if (!Identify(info) || info->eAccess == GA_Update)
        return nullptr;
    if (depth >= MAX_DEPTH)
    {
        CPLError(CE_Failure, CPLE_OpenFailed,
                 "joins of joins are more than %d deep; does a specification "
                 "name itself?",
                 MAX_DEPTH);
        return nullptr;
    }
    try
    {
        Deeper deeper;
        Join join = OpenJoin(info->pszFilename);
        if (join == nullptr)
            return nullptr;
        return new JoinDataset(info->pszFilename, std::move(join),
                               CPLTestBool(CSLFetchNameValueDef(
                                   info->papszOpenOptions, "ARROW", "YES")));
    }
    catch (const std::exception &e)
    {
        CPLError(CE_Failure, CPLE_AppDefined, "the join cannot be opened: %s",
                 e.what());
        return nullptr;
    }
}

/* What a dataset is made of stays where it is: deleting, renaming and copying
 * concern the specification alone. */
CPLErr Tell(bool is_done, const char *name, const char *what)
{
    if (is_done)
        return CE_None;
    CPLError(CE_Failure, CPLE_AppDefined, "the %s cannot be %s",
             oj_dataset_name_is_words(name) ? "join, which is no file,"
                                            : "file of a join",
             what);
    return CE_Failure;
}

CPLErr Delete(const char *name)
{
    return Tell(!oj_dataset_name_is_words(name) && VSIUnlink(name) == 0, name,
                "deleted");
}

CPLErr Rename(const char *to, const char *from)
{
    return Tell(!oj_dataset_name_is_words(from) && VSIRename(from, to) == 0,
                from, "renamed");
}

CPLErr Copy(const char *to, const char *from)
{
    return Tell(!oj_dataset_name_is_words(from) && CPLCopyFile(to, from) == 0,
                from, "copied");
}

void Unload(GDALDriver *)
{
    oj_join_layer_unload();
}

const char options[] =
    "<OpenOptionList>"
    "  <Option name='ARROW' type='boolean' default='YES' description='Whether "
    "Arrow streams are made of the join itself; NO: of its features'/>"
    "</OpenOptionList>";

} // namespace

extern "C" OJ_EXPORT void RegisterOGRJOIN(void);

/* GDAL finds it by the name of the file, ogr_JOIN.so. */
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
