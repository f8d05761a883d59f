#include "api_join_crs.h"

oj_status api_join_crs_choose(const struct ogrjoin_settings *s,
                              const struct api_side_crs *left,
                              const struct api_side_crs *right,
                              struct oj_crs_text *out, struct oj_error *err)
{
    const int is_right = left->words == NULL;
    const char *with = api_side_name(is_right ? API_SIDE_RIGHT : API_SIDE_LEFT);
    const char *without =
        api_side_name(is_right ? API_SIDE_LEFT : API_SIDE_RIGHT);
    const struct api_side_crs *has = is_right ? right : left;
    const struct api_side_crs *lacks = is_right ? left : right;
    enum oj_crs_equality equality;
    *out = has->crs;
    if (s->rows.crs == API_CRS_IGNORE || !left->has_shapes ||
        !right->has_shapes || has->words == NULL)
        return OJ_OK;
    if (has->crs.kind == OJ_CRS_KIND_GEOCENTRIC)
        return oj_fail(
            err, OJ_ERR_ARG,
            "%s is a geocentric CRS, whose X and Y are not coordinates of a "
            "plane: reproject both sides to EPSG:4979, or write crs=ignore",
            has->crs.name);
    if (lacks->words == NULL)
    {
        api_settings_notify(s,
                            "the %s side has no CRS; %s is assumed, the CRS of "
                            "the %s side (left_crs and right_crs name another)",
                            without, has->crs.name, with);
        return OJ_OK;
    }
    OJ_TRY(oj_crs_text_compare(left->words, right->words,
                               &s->rows.crs_callbacks, &equality, err));
    if (equality == OJ_CRS_EQUAL)
        return OJ_OK;
    return oj_fail(
        err, OJ_ERR_ARG,
        oj_crs_text_has_other_epoch(&left->crs, &right->crs)
            ? "the sides have two CRS, left %s and right %s: transform one "
              "side to the epoch of the other before the join, or write "
              "crs=ignore to take coordinates as they are"
        : equality == OJ_CRS_DIFFERENT
            ? "the sides have two CRS, left %s and right %s: reproject "
              "one side to the CRS of the other (crs=\"reproject\" of join() "
              "in "
              "Python does it), or write crs=ignore to take coordinates as "
              "they are"
            : "it is not known whether the CRS of the sides, left %s and right "
              "%s, are equal: give both in one form with left_crs and "
              "right_crs, or write crs=ignore to take coordinates as they are",
        left->crs.name, right->crs.name);
}

struct oj_distance_frame
api_join_crs_distance_frame(const struct ogrjoin_settings *s,
                            const struct oj_crs_text *crs)
{
    struct oj_distance_frame frame =
        oj_distance_frame_of_crs_text("", s->relation.metric, crs);
    frame.takes_plain_numbers = s->rows.crs == API_CRS_IGNORE;
    if (frame.takes_plain_numbers && oj_relation_is_on_globe(&s->relation))
        frame.kind = OJ_CRS_KIND_NONE; /* the user states that coordinates are
                                          degrees */
    return frame;
}

oj_status api_join_crs_convert_distances(struct ogrjoin_settings *s,
                                         const struct oj_distance_frame *frame,
                                         struct oj_error *err)
{
    struct oj_distance_request request = {.picks_nearest =
                                              s->pairs.pick == OJ_PICK_NEAREST,
                                          .wants_bearing = s->pairs.bearing};
    if (api_setting_text_as_given(s, "max_distance") != NULL)
        request.max_distance = &s->rows.max_distance;
    if (api_setting_text_as_given(s, "min_distance") != NULL)
        request.min_distance = &s->rows.min_distance;
    if (api_setting_text_as_given(s, "densify") != NULL)
        request.densify = &s->rows.densify;
    return oj_distances_convert(frame, &request, &s->relation, err);
}

/* ---- joins of layers, which have no CRS of their own --------------------- */

static oj_status read_side_crs(const struct ogrjoin_settings *s,
                               const char *words, const char *whose,
                               struct api_side_crs *out, struct oj_error *err)
{
    out->words = words != NULL && words[0] != '\0' ? words : NULL;
    out->has_shapes = 1;
    return oj_crs_text_read(words, whose, &s->rows.crs_callbacks, &out->crs,
                            err);
}

static oj_status use_crs_of_sides(struct ogrjoin_settings *s, const char *left,
                                  const char *right, struct oj_error *err)
{
    struct api_side_crs sides[2];
    struct oj_crs_text crs;
    struct oj_distance_frame frame;
    OJ_TRY(read_side_crs(s, left, "the CRS of the left side", &sides[0], err));
    OJ_TRY(
        read_side_crs(s, right, "the CRS of the right side", &sides[1], err));
    OJ_TRY(api_join_crs_choose(s, &sides[0], &sides[1], &crs, err));
    frame = api_join_crs_distance_frame(s, &crs);
    frame.are_layers = 1;
    OJ_TRY(api_join_crs_convert_distances(s, &frame, err));
    s->rows.max_distance.unit = s->rows.min_distance.unit =
        s->rows.densify.unit = OJ_UNIT_CRS;
    return OJ_OK;
}

int ogrjoin_settings_use_crs(struct ogrjoin_settings *settings,
                             const char *left, const char *right,
                             struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(use_crs_of_sides(settings, left, right, &why), &why,
                            err);
}
