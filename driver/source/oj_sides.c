#include "oj_sides.h"

#include "../base/oj_cancel.h"
#include "../base/oj_message.h"
#include "../base/oj_words.h"
#include "../files/oj_path.h"

#include <cpl_string.h>

#include <math.h>
#include <string.h>

/* ---- self joins --------------------------------------------------------- */

static int is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* FIDs tell rows apart, so filters may differ, but open options may not: they
 * can change what a row is. */
static int is_same_layer(const struct oj_source *a, const struct oj_source *b)
{
    return oj_path_is_same_file(a->side->dataset, b->side->dataset) &&
           is_same_text(a->side->sql, b->side->sql) &&
           (a->side->sql == NULL ||
            is_same_text(a->side->dialect, b->side->dialect)) &&
           oj_words_are_same(a->side->open_options, b->side->open_options) &&
           strcmp(a->name, b->name) == 0;
}

static int is_excluded(const struct oj_command *command, const char *what)
{
    return CSLFindString((CSLConstList)command->exclude, what) >= 0;
}

static oj_status settle_self_join(const struct oj_command *command,
                                  const struct oj_source *input,
                                  const struct oj_source *join,
                                  struct oj_sides *sides,
                                  struct oj_relation *relation,
                                  struct oj_error *err)
{
    int asked = is_excluded(command, "self");
    sides->is_self_join = command->n_windows == 0 && is_same_layer(input, join);
    relation->exclude_self = sides->is_self_join || asked;
    sides->needs_fids = relation->exclude_self;
    relation->exclude_same_geometry = is_excluded(command, "same_geometry");
    relation->unordered_pairs = command->unordered_pairs;
    if (command->unordered_pairs && !relation->exclude_self)
        return oj_fail(err, OJ_ERR_ARG,
                       "-unordered_pairs is for two sides that are one layer; "
                       "where they are one to you (a SELECT, a copy), say so "
                       "with -exclude self");
    if (sides->is_self_join && !asked)
        oj_notice("both sides are the layer '%s': no feature is joined with "
                  "itself",
                  input->name);
    return OJ_OK;
}

/* Rows that all have the FID -1 would all be one feature. */
static oj_status check_fids(const struct oj_sides *sides, int side,
                            const struct oj_flat *flat, struct oj_error *err)
{
    if (!sides->needs_fids || flat->fid == NULL)
        return OJ_OK;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        if (flat->fid[i] == OGRNullFID)
            return oj_fail(err, OJ_ERR_DATA,
                           "%s layer '%s' has rows without a FID, so it cannot "
                           "be told whether two features are one: -exclude "
                           "same_geometry needs no FIDs",
                           sides->reshape[side].role,
                           sides->reshape[side].name);
    }
    return OJ_OK;
}

/* ---- the sphere --------------------------------------------------------- */

static const char points_only[] =
    "-metric sphere measures from points and multipoints of the input layer; "
    "-centroid_of input or -point_on_surface_of input makes points of others";

static int becomes_points(const struct oj_reshape *reshape)
{
    return reshape->shape == OJ_SHAPE_CENTROID ||
           reshape->shape == OJ_SHAPE_POINT_ON_SURFACE;
}

static oj_status check_type(const struct oj_sides *sides,
                            const struct oj_source *input, struct oj_error *err)
{
    if (!sides->needs_points || becomes_points(&sides->reshape[0]) ||
        oj_source_can_hold_points(input))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_DATA, "input layer '%s' holds %s features; %s",
                   input->name, OGRGeometryTypeToName(input->type),
                   points_only);
}

static oj_status check_points(const struct oj_sides *sides,
                              const struct oj_flat *flat, struct oj_error *err)
{
    if (!sides->needs_points || oj_flat_is_points(flat) ||
        (flat->part_kinds & ~(unsigned)OJ_PART_POINT) == 0)
        return OJ_OK;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        for (int64_t p = flat->part_offset[i]; p < flat->part_offset[i + 1];
             p++)
        {
            if (flat->part_kind[p] != OJ_PART_POINT)
                return oj_fail(
                    err, OJ_ERR_DATA,
                    "feature %lld of input layer '%s' is no point; %s",
                    (long long)(flat->fid != NULL ? flat->fid[i] : i),
                    sides->reshape[0].name, points_only);
        }
    }
    return OJ_OK;
}

/* Features of which a vertex is nowhere on the sphere. */
static int64_t count_beyond_poles(const struct oj_flat *flat)
{
    int64_t n = 0;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t v = i, end = i + 1;
        if (!oj_flat_is_points(flat))
        {
            v = flat->vertex_offset[flat->ring_offset[flat->part_offset[i]]];
            end = flat->part_offset[i + 1];
            end = flat->vertex_offset[flat->ring_offset[end]];
        }
        while (v < end && !(fabs(flat->y[v]) > 90.0))
            v++;
        n += v < end;
    }
    return n;
}

/* ---- both sides --------------------------------------------------------- */

oj_status oj_sides_open(const struct oj_command *command,
                        struct oj_source *input, struct oj_source *join,
                        const struct oj_crs *crs, struct oj_sides *sides,
                        struct oj_relation *relation, struct oj_error *err)
{
    sides->reshape[0] = oj_reshape_for(command, 0, input->name);
    sides->reshape[1] = oj_reshape_for(command, 1, join->name);
    sides->reshape[0].cancel = sides->reshape[1].cancel = oj_cancel_flag();
    sides->needs_points = command->metric == OJ_METRIC_SPHERE;
    OJ_TRY(check_type(sides, input, err));
    OJ_TRY(settle_self_join(command, input, join, sides, relation, err));
    return oj_conditions_open(command, input, join, crs, &sides->conditions,
                              err);
}

int oj_sides_need_values(const struct oj_sides *sides, int side)
{
    return oj_conditions_needed(&sides->conditions, side);
}

oj_status oj_sides_make(struct oj_sides *sides, int side, int insert,
                        const struct oj_row_values *values,
                        struct oj_side_work *work, struct oj_flat *flat,
                        struct oj_error *err)
{
    struct oj_side_findings *found = &sides->reshape[side].found;
    if (oj_reshape_is_needed(&sides->reshape[side]))
    {
        oj_flat_buf_clear(&work->shapes);
        OJ_TRY(oj_reshape_features(&sides->reshape[side], flat, &work->shapes,
                                   err));
        *flat = oj_flat_buf_view(&work->shapes);
    }
    OJ_TRY(check_fids(sides, side, flat, err));
    if (side == 0)
        OJ_TRY(check_points(sides, flat, err));
    if (sides->needs_points)
        found->n_beyond_poles += count_beyond_poles(flat);
    if (!oj_conditions_needed(&sides->conditions, side))
        return OJ_OK;
    return oj_conditions_fill(&sides->conditions, side, insert, values,
                              &work->columns, flat, &found->n_no_reach, err);
}

void oj_side_work_free(struct oj_side_work *work)
{
    oj_flat_buf_free(&work->shapes);
    oj_columns_free(&work->columns);
}

void oj_sides_close(struct oj_sides *sides)
{
    oj_reshape_free(&sides->reshape[0]);
    oj_reshape_free(&sides->reshape[1]);
    oj_conditions_free(&sides->conditions);
}
