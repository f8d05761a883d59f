#include "oj_crs_text.h"

oj_status oj_crs_text_read(const char *text, const char *whose,
                           const struct oj_crs_callbacks *callbacks,
                           struct oj_crs_text *out, struct oj_error *err)
{
    (void)text;
    (void)callbacks;
    (void)out;
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "%s: no CRS can be read", whose);
}

oj_status oj_crs_text_compare(const char *a, const char *b,
                              const struct oj_crs_callbacks *callbacks,
                              enum oj_crs_equality *out, struct oj_error *err)
{
    struct oj_crs_text read;
    OJ_TRY(oj_crs_text_read(a, "CRS", callbacks, &read, err));
    OJ_TRY(oj_crs_text_read(b, "CRS", callbacks, &read, err));
    *out = OJ_CRS_NOT_KNOWN;
    return OJ_OK;
}
