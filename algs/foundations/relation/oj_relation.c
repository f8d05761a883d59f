#include "oj_relation.h"

#include "../../../flatten/base/oj_word_list.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Initialisers of a join by predicate in the table. `exchanged` is the name of
 * the join with exchanged sides. The test test_relation fails if an op has no
 * row. */
#define SHAPES(exchanged)                                                      \
    .takes = OJ_TAKES_SHAPES, .transposed = OJ_OP_##exchanged

static const struct oj_op_info ops[OJ_N_OPS] = {
    [OJ_OP_NEAREST] =
        {"nearest",
         "the nearest join feature, or the -k nearest, within -max_distance",
         .synonyms = "knn|closest", .measure = "join_distance",
         .takes = OJ_TAKES_DISTANCE | OJ_TAKES_K, .k = 1,
         .transposed = OJ_OP_NEAREST},
    [OJ_OP_DWITHIN] =
        {"dwithin", "every join feature within -max_distance",
         .synonyms = "dist_within|distance|within_distance",
         .measure = "join_distance", .takes = OJ_TAKES_DISTANCE,
         .transposed = OJ_OP_DWITHIN,
         .needs = "max_distance|max_distance_field|join_max_distance_field",
         .needs_text =
             "a distance: -max_distance D[unit], -max_distance_field F "
             "or -join_max_distance_field F"},
    [OJ_OP_INTERSECTS] = {"intersects", "they have a point in common (default)",
                          SHAPES(INTERSECTS), .synonyms = "intersect"},
    [OJ_OP_WITHIN] =
        {"within",
         "the input feature lies in the join feature, not only on its boundary",
         SHAPES(CONTAINS), .synonyms = "inside", .pattern = "T*F**F***"},
    [OJ_OP_CONTAINS] =
        {"contains",
         "the join feature lies in the input feature, not only on its boundary",
         SHAPES(WITHIN), .pattern = "T*****FF*"},
    [OJ_OP_COVERS] =
        {"covers", "no point of the join feature is outside the input feature",
         SHAPES(COVEREDBY), .pattern = "******FF*"},
    [OJ_OP_COVEREDBY] =
        {"coveredby",
         "no point of the input feature is outside the join feature",
         SHAPES(COVERS), .synonyms = "covered_by|covered by",
         .pattern = "**F**F***"},
    [OJ_OP_CONTAINS_PROPERLY] =
        {"contains_properly",
         "the join feature lies in the interior of the input feature",
         SHAPES(RELATE), .pattern = "T**FF*FF*",
         .synonyms = "containsproperly|contains properly"},
    [OJ_OP_TOUCHES] = {"touches", "they meet, but their interiors do not",
                       SHAPES(TOUCHES)},
    [OJ_OP_CROSSES] =
        {"crosses",
         "their interiors meet, and a line leaves the polygon, or two lines "
         "share points only",
         SHAPES(CROSSES)},
    [OJ_OP_OVERLAPS] =
        {"overlaps",
         "they are two areas, lines or point sets that share a part, and each "
         "has a part outside of the other",
         SHAPES(OVERLAPS)},
    [OJ_OP_EQUALS] = {"equals",
                      "they cover the same points, whatever their vertices are",
                      SHAPES(EQUALS), .synonyms = "equal",
                      .pattern = "T*F**FFF*"},
    [OJ_OP_DISJOINT] = {"disjoint", "they have no point in common",
                        SHAPES(DISJOINT)},
    [OJ_OP_RELATE] = {"relate", "the DE-9IM pattern of -relate holds for them",
                      SHAPES(RELATE), .needs = "relate",
                      .needs_text =
                          "-relate MASK, nine of the letters T F * 0 1 2"},
    [OJ_OP_BBOX] = {"bbox", "their envelopes have a point in common",
                    SHAPES(BBOX), .synonyms = "envelope"},
    [OJ_OP_SIMILAR] =
        {"similar",
         "texts or vectors are similar: the pairs of -similar or -vector, best "
         "first",
         .synonyms = "fuzzy", .measure = "join_similarity",
         .takes = OJ_TAKES_ATTRIBUTES | OJ_TAKES_K, .k = OJ_EVERY_PAIR,
         .transposed = OJ_OP_SIMILAR, .reference = "lists",
         .needs = "similar|vector",
         .needs_text =
             "fields to compare: texts, as -similar FIELD[=JOIN_FIELD]:T,"
             " or numbers, as -vector FIELD+FIELD -max_difference D"},
    [OJ_OP_ATTRIBUTES] =
        {"attributes",
         "their fields of -on are equal, wherever they are: tables need no "
         "geometry",
         .synonyms = "attribute|field|fields|equi|merge",
         .takes = OJ_TAKES_ATTRIBUTES, .transposed = OJ_OP_ATTRIBUTES,
         .reference = "lists", .needs = "on",
         .needs_text = "the fields that must be equal: -on "
                       "FIELD[=JOIN_FIELD],..."},
};

#define VALUE(type, field)                                                     \
    .kind = OJ_PARAMETER_##type, .offset = offsetof(struct oj_relation, field)

static const struct oj_parameter parameters[] = {
    {"relate", "MASK", "relate",
     "the join is a DE-9IM pattern: nine of T F * 0 1 2, as T*F**F***",
     VALUE(PATTERN, mask)},
    {"max_distance", "D[unit]", "nearest|dwithin|similar",
     "only join features within this distance, in units of the coordinates, or "
     "on the globe in metres; dwithin needs it; default of the others: any",
     "only join features within this distance; units m, km, ft, us-ft, mi, "
     "deg, or none for the units of the CRS of the join (the input layer's, or "
     "-t_srs); without this option -op nearest is unbounded",
     VALUE(DISTANCE, max_distance), .most = INFINITY},
    {"min_distance", "D[unit]", "nearest|dwithin",
     "only join features that are at least this far away",
     VALUE(DISTANCE, min_distance), .most = 1e300},
    {"metric", "planar|sphere|ellipsoid", "nearest|dwithin|similar",
     "distances in the plane of the CRS (default); where the CRS of the join "
     "is "
     "in degrees also in metres: along great circles of a sphere, or along "
     "geodesics of its ellipsoid",
     VALUE(CHOICE, metric)},
    {"k", "K", "nearest|similar", "the K nearest, or most similar",
     "the K nearest instead of one, or the K most similar instead of all; adds "
     "the column join_rank",
     VALUE(COUNT, k), .least = 1, .most = INT32_MAX},
    {"ties", "first|all", "nearest|similar",
     "of join features that are equally near or similar, takes those with the "
     "smallest FIDs (default), or all",
     VALUE(CHOICE, ties)},
    {"distance_to", "interior|boundary", "nearest",
     "takes a point in a polygon to be at distance 0 (default), or measures "
     "how far it is from the polygon's rings",
     VALUE(CHOICE, distance_to)},
    {"distance", "least|hausdorff|directed_hausdorff|hausdorff_points|frechet",
     "nearest|dwithin",
     "measures the least distance (default), or how much two shapes differ: "
     "hausdorff as in GEOS, directed_hausdorff from the input feature alone, "
     "hausdorff_points between vertices, frechet between the sequences of "
     "vertices",
     VALUE(CHOICE, distance)},
    {"densify", "D[unit]", "nearest|dwithin",
     "with a -distance other than least: adds vertices to both sides until no "
     "segment is longer than D",
     VALUE(DISTANCE, densify), .most = 1e300},
};

const struct oj_op_info *oj_op_get(enum oj_op op)
{
    return &ops[op];
}

const char *oj_relation_reference_backend(const struct oj_relation *relation)
{
    const char *reference = oj_op_get(relation->op)->reference;
    if (reference != NULL && isinf(relation->max_distance))
        return reference;
    return relation->metric == OJ_METRIC_SPHERE      ? "sphere"
           : relation->metric == OJ_METRIC_ELLIPSOID ? "ellipsoid"
                                                     : "geos";
}

int oj_op_find(const char *name)
{
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        if (strcasecmp(ops[i].name, name) == 0)
            return i;
    }
    return -1;
}

void oj_op_names(const char *between, char *names, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < OJ_N_OPS && used < size; i++)
        used += (size_t)snprintf(names + used, size - used, "%s%s",
                                 i > 0 ? between : "", ops[i].name);
}

const struct oj_parameter *oj_parameter_at(int i)
{
    int n = (int)(sizeof parameters / sizeof *parameters);
    return i >= 0 && i < n ? &parameters[i] : NULL;
}

void oj_parameter_write_value(const struct oj_parameter *parameter,
                              const struct oj_relation *relation, char *text,
                              size_t size)
{
    const void *at = (const char *)relation + parameter->offset;
    const char *word = at;
    int n = (int)sizeof relation->mask;
    if (parameter->kind == OJ_PARAMETER_CHOICE)
        word = oj_words_at(parameter->arguments, *(const int *)at, &n);
    if (parameter->kind == OJ_PARAMETER_DISTANCE)
        snprintf(text, size, "%.17g", *(const double *)at);
    else if (parameter->kind == OJ_PARAMETER_COUNT)
        snprintf(text, size, "%lld", *(const long long *)at);
    else
        snprintf(text, size, "%.*s", n, word);
}

oj_status oj_choice_read(const char *dash, const char *name,
                         const char *choices, const char *value, int *out,
                         struct oj_error *err)
{
    int place = oj_words_find(choices, value);
    if (place < 0)
        return oj_fail(err, OJ_ERR_ARG, "%s%s must be one of %s, not '%s'",
                       dash, name, choices, value);
    *out = place;
    return OJ_OK;
}

oj_status oj_mask_read(const char *dash, const char *name, const char *value,
                       char out[10], struct oj_error *err)
{
    if (strspn(value, "TtFf*012") != 9 || value[9] != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s must be nine of the letters T F * 0 1 2, as "
                       "T*F**F***, not '%.40s'",
                       dash, name, value);
    for (int i = 0; i < 10; i++)
        out[i] = (char)toupper((unsigned char)value[i]);
    return OJ_OK;
}

struct oj_relation oj_relation_default(void)
{
    struct oj_relation relation;
    memset(&relation, 0, sizeof relation);
    relation.op = OJ_OP_NEAREST;
    relation.max_distance = INFINITY;
    relation.k = 1;
    return relation;
}

struct oj_relation oj_relation_transpose(const struct oj_relation *relation)
{
    struct oj_relation other = *relation;
    const struct oj_op_info *op = oj_op_get(relation->op);
    const char *mask = op->pattern != NULL ? op->pattern : relation->mask;
    other.op = op->transposed;
    other.unordered_pairs = -relation->unordered_pairs;
    other.enough_pairs = OJ_ENOUGH_ALL;
    if (relation->distance == OJ_DISTANCE_DIRECTED_HAUSDORFF)
        other.distance = OJ_DISTANCE_DIRECTED_FROM_JOIN;
    else if (relation->distance == OJ_DISTANCE_DIRECTED_FROM_JOIN)
        other.distance = OJ_DISTANCE_DIRECTED_HAUSDORFF;
    for (int i = 0; i < relation->n_spans; i++)
        other.spans[i] = oj_span_condition_transpose(&relation->spans[i]);
    for (int i = 0; i < 9 && other.op == OJ_OP_RELATE; i++)
        other.mask[i] = mask[i % 3 * 3 + i / 3];
    return other;
}

int oj_relation_needs_contact(const struct oj_relation *relation)
{
    static const int common[] = {0, 1, 3, 4}; /* interiors and boundaries */
    if (relation->op != OJ_OP_RELATE)
        return relation->op != OJ_OP_DISJOINT &&
               (ops[relation->op].takes & OJ_TAKES_SHAPES) != 0;
    for (int i = 0; i < 4; i++)
    {
        if (strchr("Ff*", relation->mask[common[i]]) == NULL)
            return 1;
    }
    return 0;
}

static oj_status check_heading(const struct oj_relation *r,
                               struct oj_error *err)
{
    const struct oj_heading_condition *heading = &r->heading;
    if (!heading->is_asked)
        return OJ_OK;
    if (!(heading->tolerance >= 0.0 && heading->tolerance <= 180.0))
        return oj_fail(err, OJ_ERR_ARG,
                       "the tolerance of a heading must be from 0 to 180 "
                       "degrees, not %g",
                       heading->tolerance);
    if (!oj_relation_is_by_distance(r) || oj_relation_compares_shapes(r) ||
        r->metric != OJ_METRIC_PLANAR || r->min_distance > 0.0)
        return oj_fail(err, OJ_ERR_ARG,
                       "heading needs op nearest or dwithin with metric planar "
                       "and distance least, without a minimum distance: set "
                       "these, or leave heading out");
    return OJ_OK;
}

oj_status oj_relation_check(const struct oj_relation *r, struct oj_error *err)
{
    char mask[sizeof r->mask];
    if ((int)r->op < 0 || r->op >= OJ_N_OPS)
        return oj_fail(err, OJ_ERR_ARG,
                       "there is no join number %d: use a value of enum oj_op",
                       (int)r->op);
    if (isnan(r->max_distance) || r->max_distance < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "the maximum distance must be 0 or more, not %g",
                       r->max_distance);
    if (isnan(r->min_distance) || r->min_distance < 0 || isinf(r->min_distance))
        return oj_fail(err, OJ_ERR_ARG,
                       "the minimum distance must be a finite number, 0 or "
                       "more, not %g",
                       r->min_distance);
    if (r->k < 1 || r->k > INT32_MAX)
        return oj_fail(err, OJ_ERR_ARG,
                       "k must be a whole number from 1 to %d, not %lld",
                       INT32_MAX, (long long)r->k);
    if ((int)r->distance < OJ_DISTANCE_LEAST ||
        r->distance > OJ_DISTANCE_DIRECTED_FROM_JOIN)
        return oj_fail(err, OJ_ERR_ARG,
                       "there is no distance number %d: use a value of enum "
                       "oj_distance_kind",
                       (int)r->distance);
    if (!(r->densify >= 0.0 && r->densify < INFINITY))
        return oj_fail(err, OJ_ERR_ARG,
                       "densify must be a finite length, 0 or more (0: no "
                       "limit), not %g",
                       r->densify);
    if (r->metric == OJ_METRIC_ELLIPSOID && oj_relation_compares_shapes(r))
        return oj_fail(
            err, OJ_ERR_ARG,
            "distances between shapes (hausdorff, frechet) are not possible "
            "with metric ellipsoid: use metric planar or sphere");
    if (r->densify > 0.0 && !oj_relation_compares_shapes(r))
        return oj_fail(err, OJ_ERR_ARG,
                       "densify needs a distance between shapes, because more "
                       "vertices do not change the minimum distance: set "
                       "distance to hausdorff or frechet, or leave densify "
                       "out");
    if (oj_relation_compares_shapes(r) && r->distance_to == OJ_TO_BOUNDARY)
        return oj_fail(err, OJ_ERR_ARG,
                       "distance_to needs distance least, because distances "
                       "between shapes (hausdorff, frechet) always take "
                       "polygons as their rings: leave distance_to out");
    if (r->n_similar < 0 || r->n_similar > OJ_MOST_TEXTS)
        return oj_fail(err, OJ_ERR_ARG,
                       "a join has at most %d conditions on texts (similar); "
                       "concatenate fields with +",
                       (int)OJ_MOST_TEXTS);
    if (r->op == OJ_OP_SIMILAR && !oj_relation_compares_attributes(r))
        return oj_fail(err, OJ_ERR_ARG,
                       "op similar needs texts or vectors to compare: give "
                       "similar (NAME or NAME:0.6) or vector");
    for (int i = 0; i < r->n_similar; i++)
        OJ_TRY(oj_text_condition_check(&r->similar[i], err));
    OJ_TRY(oj_vector_condition_check(&r->vector, err));
    if (r->n_spans < 0 || r->n_spans > OJ_MOST_SPANS)
        return oj_fail(err, OJ_ERR_ARG,
                       "a join has at most %d conditions on spans "
                       "(within_time, during): leave some out",
                       (int)OJ_MOST_SPANS);
    for (int i = 0; i < r->n_spans; i++)
        OJ_TRY(oj_span_condition_check(&r->spans[i], err));
    OJ_TRY(check_heading(r, err));
    if (r->op == OJ_OP_RELATE)
        return oj_mask_read("", "relate", r->mask, mask, err);
    return OJ_OK;
}
