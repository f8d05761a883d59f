#include "../../ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/aggregate/oj_group_sums.h"
#include "api_index.h"

struct ogrjoin_sums
{
    struct oj_group_sums of;
};

static oj_status new_sums(int64_t n, struct ogrjoin_sums **out,
                          struct oj_error *err)
{
    struct ogrjoin_sums *sums;
    oj_status status;
    OJ_NEW_ZEROED(sums, 1, err);
    status = oj_group_sums_init(&sums->of, n, err);
    if (status == OJ_OK)
        *out = sums;
    else
        ogrjoin_sums_free(sums);
    return status;
}

int ogrjoin_sums_new(int64_t n, struct ogrjoin_sums **out,
                     struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(new_sums(n, out, &why), &why, err);
}

int ogrjoin_sums_add(struct ogrjoin_sums *sums, int64_t n, const int64_t *group,
                     const double *value, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(oj_group_sums_add(&sums->of, n, group, value, &why),
                            &why, err);
}

int ogrjoin_sums_add_integers(struct ogrjoin_sums *sums, int64_t n,
                              const int64_t *group, const int64_t *value,
                              struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(
        oj_group_sums_add_integers(&sums->of, n, group, value, &why), &why,
        err);
}

void ogrjoin_sums_words(const struct ogrjoin_sums *sums, int64_t *offset,
                        uint64_t *word)
{
    oj_group_sums_write_words(&sums->of, offset, word);
}

int ogrjoin_sums_merge(struct ogrjoin_sums *sums, int64_t n,
                       const int64_t *group, const int64_t *offset,
                       const uint64_t *word, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(
        oj_group_sums_merge(&sums->of, n, group, offset, word, &why), &why,
        err);
}

void ogrjoin_sums_values(const struct ogrjoin_sums *sums, double *value)
{
    oj_group_sums_values(&sums->of, value);
}

int ogrjoin_sums_integers(const struct ogrjoin_sums *sums, int64_t *value,
                          struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(oj_group_sums_integers(&sums->of, value, &why),
                            &why, err);
}

void ogrjoin_sums_free(struct ogrjoin_sums *sums)
{
    if (sums == NULL)
        return;
    oj_group_sums_free(&sums->of);
    oj_free(sums);
}
