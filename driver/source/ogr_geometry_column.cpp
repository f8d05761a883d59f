#include "oj_geometry_column.h"

extern "C" {
#include "../base/oj_message.h"
}

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <gdal_version.h>
#include <ogrsf_frmts.h>

#include <cctype>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

/* Getters of GDAL's classes became const in 3.12. */
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 12, 0)
#define OJ_CONST_SINCE_3_12 const
#else
#define OJ_CONST_SINCE_3_12
#endif

namespace
{

/* Flag in the type of an EWKB: an SRID follows the type. */
constexpr unsigned EWKB_HAS_SRID = 0x20000000U;

/* Returns the bytes of a WKB or EWKB without the SRID, which only the outermost
 * geometry can have. */
std::vector<GByte> WkbWithoutSrid(const GByte *bytes, size_t n)
{
    std::vector<GByte> wkb(bytes, bytes + n);
    unsigned type;
    if (n < 9)
        return wkb;
    const bool is_swapped = (bytes[0] == wkbNDR) != (CPL_IS_LSB != 0);
    std::memcpy(&type, bytes + 1, sizeof type);
    if (is_swapped)
        type = CPL_SWAP32(type);
    if ((type & EWKB_HAS_SRID) == 0)
        return wkb;
    type &= ~EWKB_HAS_SRID;
    if (is_swapped)
        type = CPL_SWAP32(type);
    std::memcpy(wkb.data() + 1, &type, sizeof type);
    wkb.erase(wkb.begin() + 5, wkb.begin() + 9);
    return wkb;
}

/* Returns the geometry of a WKB or EWKB, or NULL if the bytes are no
 * geometry. */
std::unique_ptr<OGRGeometry> GeometryOfBytes(const GByte *bytes, size_t n)
{
    const std::vector<GByte> wkb = WkbWithoutSrid(bytes, n);
    OGRGeometry *geometry = nullptr;
    if (wkb.empty() ||
        OGRGeometryFactory::createFromWkb(wkb.data(), nullptr, &geometry,
                                          wkb.size()) != OGRERR_NONE)
        return nullptr;
    return std::unique_ptr<OGRGeometry>(geometry);
}

/* Returns the geometry of a WKT, an EWKT, or a WKB in hexadecimal digits, which
 * begins with the byte order, 00 or 01. Returns NULL if the text is no
 * geometry. */
std::unique_ptr<OGRGeometry> GeometryOfText(const char *text)
{
    OGRGeometry *geometry = nullptr;
    if (*text == '0')
    {
        int n = 0;
        GByte *bytes = CPLHexToBinary(text, &n);
        const bool is_whole = 2 * static_cast<size_t>(n) == std::strlen(text);
        std::unique_ptr<OGRGeometry> made;
        if (is_whole)
            made = GeometryOfBytes(bytes, static_cast<size_t>(n));
        CPLFree(bytes);
        return made;
    }
    if (EQUALN(text, "SRID=", 5) && std::strchr(text, ';') != nullptr)
        text = std::strchr(text, ';') + 1;
    const OGRErr result =
        OGRGeometryFactory::createFromWkt(&text, nullptr, &geometry);
    std::unique_ptr<OGRGeometry> made(geometry);
    while (std::isspace(static_cast<unsigned char>(*text)))
        text++;
    if (result != OGRERR_NONE || *text != '\0')
        made.reset();
    return made;
}

class GeometryColumnLayer final : public OGRLayer
{
    OGRLayer *m_layer;
    OGRFeatureDefn *m_defn = nullptr;
    /* index of the geometry column in m_layer; -1 if geometries are made from
     * the field m_field */
    int m_geometry;
    /* index in m_layer of the field that holds geometries; -1 if geometries are
     * those of the column m_geometry */
    int m_field;
    /* for each field of the view, its index in m_layer */
    std::vector<int> m_source{};
    /* true if features whose field holds no geometry are left out */
    bool m_skips_failures;
    /* number of the features left out in this reading, and the message about
     * the first of them */
    GIntBig m_n_skipped = 0;
    std::string m_first_skipped{};

    std::unique_ptr<OGRFeature> Translate(OGRFeature *from) const;
    bool SetGeometryOfField(const OGRFeature &from, OGRFeature *to) const;

  public:
    GeometryColumnLayer(OGRLayer *layer, int geometry, int field,
                        bool skips_failures);
    ~GeometryColumnLayer() override;
    GeometryColumnLayer(const GeometryColumnLayer &) = delete;
    GeometryColumnLayer &operator=(const GeometryColumnLayer &) = delete;

    using OGRLayer::GetLayerDefn;
    OJ_CONST_SINCE_3_12 OGRFeatureDefn *
    GetLayerDefn() OJ_CONST_SINCE_3_12 override
    {
        return m_defn;
    }
    const char *GetFIDColumn() OJ_CONST_SINCE_3_12 override
    {
        return m_layer->GetFIDColumn();
    }
    void ResetReading() override
    {
        m_n_skipped = 0;
        m_layer->ResetReading();
    }
    void WarnOfSkipped() const;
    OGRFeature *GetNextFeature() override;
    OGRFeature *GetFeature(GIntBig fid) override;
    GIntBig GetFeatureCount(int force) override;
    OGRErr SetAttributeFilter(const char *where) override
    {
        return m_layer->SetAttributeFilter(where);
    }
    int TestCapability(const char *capability) OJ_CONST_SINCE_3_12 override;
};

GeometryColumnLayer::GeometryColumnLayer(OGRLayer *layer, int geometry,
                                         int field, bool skips_failures)
    : m_layer(layer), m_geometry(geometry), m_field(field),
      m_skips_failures(skips_failures)
{
    const OGRFeatureDefn *defn = layer->GetLayerDefn();
    m_defn = new OGRFeatureDefn(layer->GetName());
    m_defn->Reference();
    SetDescription(layer->GetName());
    if (geometry >= 0)
    {
        OGRGeomFieldDefn column(defn->GetGeomFieldDefn(geometry));
        m_defn->DeleteGeomFieldDefn(0);
        m_defn->AddGeomFieldDefn(&column);
    }
    else
    {
        m_defn->GetGeomFieldDefn(0)->SetName(
            defn->GetFieldDefn(field)->GetNameRef());
        m_defn->GetGeomFieldDefn(0)->SetType(wkbUnknown);
    }
    for (int i = 0; i < defn->GetFieldCount(); i++)
    {
        if (i == field)
            continue;
        OGRFieldDefn copy(defn->GetFieldDefn(i));
        m_defn->AddFieldDefn(&copy);
        m_source.push_back(i);
    }
}

GeometryColumnLayer::~GeometryColumnLayer()
{
    m_defn->Release();
}

/* Sets the geometry of `to` from the field of `from`. Returns false after an
 * error. */
bool GeometryColumnLayer::SetGeometryOfField(const OGRFeature &from,
                                             OGRFeature *to) const
{
    const OGRField *raw = from.GetRawFieldRef(m_field);
    const bool is_bytes = from.GetFieldDefnRef(m_field)->GetType() == OFTBinary;
    const char *text = is_bytes ? "" : raw->String;
    std::unique_ptr<OGRGeometry> made;
    if (!from.IsFieldSetAndNotNull(m_field))
        return true;
    while (!is_bytes && std::isspace(static_cast<unsigned char>(*text)))
        text++;
    if (!is_bytes && *text == '\0')
        return true;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    made = is_bytes ? GeometryOfBytes(raw->Binary.paData,
                                      static_cast<size_t>(raw->Binary.nCount))
                    : GeometryOfText(text);
    CPLPopErrorHandler();
    CPLErrorReset();
    if (made == nullptr)
    {
        CPLError(
            CE_Failure, CPLE_AppDefined,
            "feature " CPL_FRMT_GIB ": the field '%s' holds no %s%s%.40s%s%s",
            from.GetFID(), from.GetFieldDefnRef(m_field)->GetNameRef(),
            is_bytes ? "WKB" : "WKT, nor WKB in hexadecimal digits",
            is_bytes ? "" : ": '", text, is_bytes ? "" : "'",
            m_skips_failures ? ""
                             : "; correct it, or leave such features out by "
                               "-skipfailures");
        return false;
    }
    to->SetGeometryDirectly(made.release());
    return true;
}

/* Returns a feature of the view, made from a feature of the layer. Returns NULL
 * after an error.
 */
std::unique_ptr<OGRFeature>
GeometryColumnLayer::Translate(OGRFeature *from) const
{
    auto to = std::make_unique<OGRFeature>(m_defn);
    to->SetFID(from->GetFID());
    to->SetStyleString(from->GetStyleString());
    for (size_t i = 0; i < m_source.size(); i++)
        to->SetField(static_cast<int>(i), from->GetRawFieldRef(m_source[i]));
    if (m_geometry >= 0)
        to->SetGeometryDirectly(from->StealGeometry(m_geometry));
    else if (!SetGeometryOfField(*from, to.get()))
        return nullptr;
    return to;
}

OGRFeature *GeometryColumnLayer::GetNextFeature()
{
    for (;;)
    {
        const std::unique_ptr<OGRFeature> from(m_layer->GetNextFeature());
        if (from == nullptr)
            return nullptr;
        std::unique_ptr<OGRFeature> to;
        if (m_skips_failures)
            CPLPushErrorHandler(CPLQuietErrorHandler);
        to = Translate(from.get());
        if (m_skips_failures)
            CPLPopErrorHandler();
        if (to == nullptr && m_skips_failures)
        {
            if (m_n_skipped++ == 0)
                m_first_skipped = CPLGetLastErrorMsg();
            CPLErrorReset();
            continue;
        }
        if (to == nullptr || m_poFilterGeom == nullptr ||
            FilterGeometry(to->GetGeometryRef()))
            return to.release();
    }
}

void GeometryColumnLayer::WarnOfSkipped() const
{
    if (m_n_skipped > 0)
        oj_warn("-skipfailures: %lld feature%s of the layer '%s' left out; the "
                "first: %s",
                static_cast<long long>(m_n_skipped),
                m_n_skipped == 1 ? "" : "s", m_layer->GetName(),
                m_first_skipped.c_str());
}

OGRFeature *GeometryColumnLayer::GetFeature(GIntBig fid)
{
    const std::unique_ptr<OGRFeature> from(m_layer->GetFeature(fid));
    return from != nullptr ? Translate(from.get()).release() : nullptr;
}

GIntBig GeometryColumnLayer::GetFeatureCount(int force)
{
    return m_poFilterGeom == nullptr && !m_skips_failures
               ? m_layer->GetFeatureCount(force)
               : OGRLayer::GetFeatureCount(force);
}

int GeometryColumnLayer::TestCapability(const char *capability)
    OJ_CONST_SINCE_3_12
{
    if (EQUAL(capability, OLCFastFeatureCount) &&
        (m_poFilterGeom != nullptr || m_skips_failures))
        return FALSE;
    return (EQUAL(capability, OLCFastFeatureCount) ||
            EQUAL(capability, OLCRandomRead) ||
            EQUAL(capability, OLCStringsAsUTF8)) &&
           m_layer->TestCapability(capability);
}

bool MayHoldGeometries(const OGRFieldDefn &field)
{
    return field.GetType() == OFTString || field.GetType() == OFTBinary;
}

/* Returns an error about the column `name`. Its message lists the columns that
 * can hold geometries. */
oj_status FailColumn(const OGRFeatureDefn &defn, const char *name,
                     const char *option, const char *why, oj_error *err)
{
    char names[600] = "";
    for (int i = 0; i < defn.GetGeomFieldCount(); i++)
        oj_message_append_name(names, sizeof names,
                               defn.GetGeomFieldDefn(i)->GetNameRef());
    for (int i = 0; i < defn.GetFieldCount(); i++)
    {
        if (MayHoldGeometries(*defn.GetFieldDefn(i)))
            oj_message_append_name(names, sizeof names,
                                   defn.GetFieldDefn(i)->GetNameRef());
    }
    return oj_fail(err, OJ_ERR_ARG,
                   "-%s: layer '%s' %s '%.100s'; it can be one of: %s", option,
                   defn.GetName(), why, name,
                   names[0] != '\0' ? names : "(there is none)");
}

} // namespace

oj_status oj_geometry_column_choose(OGRLayerH layer, const char *name,
                                    const char *option, int skips_failures,
                                    OGRLayerH *out, struct oj_error *err)
{
    OGRLayer *source = OGRLayer::FromHandle(layer);
    const OGRFeatureDefn *defn = source->GetLayerDefn();
    const int geometry = defn->GetGeomFieldIndex(name);
    const int field = geometry < 0 ? defn->GetFieldIndex(name) : -1;
    *out = nullptr;
    if (geometry == 0)
        return OJ_OK;
    if (geometry < 0 && field < 0)
        return FailColumn(*defn, name, option, "has no column", err);
    if (field >= 0 && !MayHoldGeometries(*defn->GetFieldDefn(field)))
        return FailColumn(*defn, name, option, "has no geometries in", err);
    try
    {
        *out = OGRLayer::ToHandle(new GeometryColumnLayer(
            source, geometry, field, skips_failures != 0));
    }
    catch (const std::bad_alloc &)
    {
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for a geometry column: free memory");
    }
    return OJ_OK;
}

void oj_geometry_column_close(OGRLayerH view)
{
    if (view != nullptr)
        static_cast<GeometryColumnLayer *>(OGRLayer::FromHandle(view))
            ->WarnOfSkipped();
    delete OGRLayer::FromHandle(view);
}
