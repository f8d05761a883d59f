#include "api_settings.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../../flatten/base/oj_word_list.h"
#include "../../../flatten/text/oj_spelling.h"
#include "../../live/oj_live.h"
#include "../rows/oj_option_clash.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* 2^53: all integers up to this are exact in a double */
#define MOST_WHOLE 9007199254740992.0

#define VALUE(type, field)                                                     \
    .kind = OJ_PARAMETER_##type,                                               \
    .offset = offsetof(struct ogrjoin_settings, field)

/* Settings that are not parameters of joins. */
static const struct oj_parameter own_settings[] = {
    {"op", .help = "what makes a pair: nearest (default), intersects, ...",
     VALUE(OP, relation.op)},
    {"exclude_self", .help = "1: no pairs of equal ids (0)",
     VALUE(INT, relation.exclude_self), .most = 1},
    {"unordered", .help = "1: only pairs whose left id is the smaller (0)",
     VALUE(INT, relation.unordered_pairs), .most = 1},
    {"exclude_same_geometry", .help = "1: no pairs of equal vertices (0)",
     VALUE(INT, relation.exclude_same_geometry), .most = 1},
    {"backend",
     .help = "auto (default), cpu, cuda, or another name that "
             "ogrjoin_backend_name() lists",
     VALUE(BACKEND, backend)},
    {"threads", .help = "threads to use; 0: all (default)",
     VALUE(INT, options.n_threads), .most = 4096},
    {"gpus",
     .help = "cuda: sum of 2^i for each device i to use; 0: the first (0)",
     VALUE(COUNT, options.gpus), .most = MOST_WHOLE},
    {"gpu_memory",
     .help = "cuda: bytes to use at most on each device; 0: all (0)",
     VALUE(COUNT, options.gpu_memory), .most = MOST_WHOLE},
    {"max_pairs", .help = "a join with more pairs fails; 0: no bound (0)",
     VALUE(COUNT, options.max_batch_pairs), .most = MOST_WHOLE},
    {"pick", API_PICK_NAMES,
     .help = "one pair of each row: first, nearest, largest_overlap, "
             "smallest_area, largest_area, most_similar, score (of struct "
             "ogrjoin_columns), for rows also max:COLUMN and min:COLUMN of the "
             "join side, or all (default)",
     VALUE(CHOICE, pairs.pick)},
    {"one_to_one", "none|" OJ_ONE_TO_ONE_WORDS,
     .help = "1 or greedy: each feature in one pair at most; pairs are taken "
             "in the order of similarity, distance, and features; 2 or best: "
             "the maximum number of pairs, with the least sum of measures (0)",
     VALUE(INT, pairs.one_to_one), .most = OJ_ONE_TO_ONE_BEST},
    {"overlap_area", .help = "1: area of the intersection (0)",
     VALUE(INT, pairs.overlap_area), .most = 1},
    {"overlap_length", .help = "1: length of the intersection's lines (0)",
     VALUE(INT, pairs.overlap_length), .most = 1},
    {"overlap_percent",
     .help = "1: part of the left feature that overlaps, in percent (0)",
     VALUE(INT, pairs.overlap_percent), .most = 1},
    {"nearest_point",
     .help = "1: nearest_x and nearest_y, the point of the right feature that "
             "is nearest to the left one (0)",
     VALUE(INT, pairs.nearest_point), .most = 1},
    {"from_point",
     .help = "1: from_x and from_y, the point of the left feature that is "
             "nearest to the right one (0)",
     VALUE(INT, pairs.from_point), .most = 1},
    {"intersection", .help = "1: what both features have in common, as WKB (0)",
     VALUE(INT, pairs.intersection), .most = 1},
    {"bearing",
     .help = "1: direction from the left feature to the nearest point of the "
             "right one, degrees clockwise from north (0)",
     VALUE(INT, pairs.bearing), .most = 1},
    {"line_along",
     .help = "1: measure along the right feature, a line or rings, from its "
             "start to the place nearest to the left one (0)",
     VALUE(INT, pairs.named[OJ_PAIR_ALONG - OJ_FIRST_NAMED_PAIR_VALUE]),
     .most = 1, .ops = OJ_LINE_OPS},
    {"along", OJ_ALONG_WORDS,
     .help =
         "what line_along and along_field hold: the length (default), or m: "
         "the measure from the M values of the line's vertices, which are "
         "read from Arrow only with this setting",
     VALUE(CHOICE, pairs.along), .ops = OJ_LINE_OPS},
    {"line_along_percent", .help = "1: line_along in percent of the length (0)",
     VALUE(INT, pairs.named[OJ_PAIR_ALONG_PERCENT - OJ_FIRST_NAMED_PAIR_VALUE]),
     .most = 1, .ops = OJ_LINE_OPS},
    {"line_offset",
     .help = "1: distance from the line, above 0 on its left, below 0 on its "
             "right (0)",
     VALUE(INT, pairs.named[OJ_PAIR_OFFSET - OJ_FIRST_NAMED_PAIR_VALUE]),
     .most = 1, .ops = OJ_LINE_OPS},
    {"line_side",
     .help = "1: side of the line: 1 left, -1 right, 0 on the line (0)",
     VALUE(INT, pairs.named[OJ_PAIR_SIDE - OJ_FIRST_NAMED_PAIR_VALUE]),
     .most = 1, .ops = OJ_LINE_OPS},
    {"line_segment",
     .help = "1: number of the nearest segment of the line, from 1 on (0)",
     VALUE(INT, pairs.named[OJ_PAIR_SEGMENT - OJ_FIRST_NAMED_PAIR_VALUE]),
     .most = 1, .ops = OJ_LINE_OPS},
    {"line_bearing",
     .help = "1: direction of the nearest segment of the line, degrees "
             "clockwise from north (0)",
     VALUE(INT, pairs.named[OJ_PAIR_LINE_BEARING - OJ_FIRST_NAMED_PAIR_VALUE]),
     .most = 1, .ops = OJ_LINE_OPS},
    {"matrix",
     .help = "1: DE-9IM matrix of the features, a number for "
             "ogrjoin_pairs_word() (0)",
     VALUE(INT, pairs.named[OJ_PAIR_MATRIX - OJ_FIRST_NAMED_PAIR_VALUE]),
     .most = 1},
    {"relation",
     .help = "1: the first of equals, contains, within, touches, crosses, "
             "overlaps, intersects, disjoint that holds, as a number for "
             "ogrjoin_pairs_word() (0)",
     VALUE(INT, pairs.named[OJ_PAIR_RELATION - OJ_FIRST_NAMED_PAIR_VALUE]),
     .most = 1},
    {"share",
     .help = "1: compute the overlaps that the aggregates weighted_sum and "
             "weighted_mean need (0)",
     VALUE(INT, pairs.share), .most = 1},
    {"similar",
     .help = "only pairs with similar texts: the minimum similarity of each "
             "column of texts, as 0.6 or 3/4,0.5, or with the names of columns "
             "LEFT[=RIGHT][:T], as name=NAME:0.6,street+town:0.5",
     VALUE(THRESHOLDS, similar)},
    {"min_similarity",
     .help = "minimum similarity of the columns in similar that are written "
             "without one",
     VALUE(THRESHOLD, min_similarity)},
    {"vector",
     .help = "only pairs with similar numbers: columns with weights, "
             "F[:WEIGHT]+..[=..], as price:0.001+area, or one column of lists",
     VALUE(VECTOR, vector)},
    {"max_difference",
     .help = "maximum difference of vectors; without it k is needed",
     VALUE(DISTANCE, relation.vector.max_difference), .most = INFINITY},
    {"norm", OJ_NORM_NAMES,
     .help = "difference of two vectors: l2 (default), l1, linf, or cosine: 1 "
             "minus their cosine",
     VALUE(CHOICE, relation.vector.norm)},
    {"side", "none|left|right",
     .help = "side of the join for which layers are read from Arrow: errors "
             "name left and right, which read the columns named in similar and "
             "vector, too (none)",
     VALUE(CHOICE, side)},
    {"first_row",
     .help = "number of the first row of a layer read from Arrow: errors and "
             "pairs count rows from it on (0)",
     VALUE(COUNT, first_row), .most = MOST_WHOLE},
    {"measure", OJ_TEXT_MEASURE_NAMES,
     .help = "how similar two sets of tokens are: jaccard (default), dice, "
             "cosine, overlap",
     VALUE(CHOICE, measure)},
    {"tokens", OJ_TOKEN_NAMES,
     .help = "how a text is split into tokens: trgm (default), words, 1grams "
             "to 8grams",
     VALUE(CHOICE, rules.tokens)},
    {"fold", OJ_FOLD_NAMES,
     .help = "which texts count as equal: full (default), case, none",
     VALUE(CHOICE, rules.fold)},
    {"word_map",
     .help = "words to replace in texts: lines of two words, as \"st,street\"",
     VALUE(TEXT, word_map)},
    {"tree", OJ_LIVE_TREE_WORDS,
     .help = "of a kept index: quadtree, kdtree (not on GPUs), or auto "
             "(default): a "
             "quadtree, unless that would be deep or badly filled",
     VALUE(CHOICE, tree)},
    {"changes",
     .help =
         "near pairs of a kept index: 1: only those that came or went since "
         "the last call that asked so (0)",
     VALUE(INT, changes), .most = 1},
};

/* Settings of joins of rows only. Texts are parsed later, when the columns are
 * known. */
static const struct oj_parameter row_settings[] = {
    {"how", OJ_HOW_WORDS,
     .help = "rows: left (default): one for each pair, and input rows without "
             "a pair; inner: one for each pair; semi, anti: each input row "
             "with, or without, a pair once; right, full: like inner, left, "
             "and then join rows without a pair",
     VALUE(CHOICE, rows.how)},
    {"agg",
     .help =
         "rows: one for each input row, with aggregates over its pairs, as "
         "\"count, mean(fare), concat(name, '; ') as names, "
         "mean(join_distance)\": of columns of the join side or of the pairs",
     .kind = OJ_PARAMETER_KEPT},
    {"on",
     .help = "rows: LEFT=RIGHT,..., only pairs with equal values in these "
             "columns",
     .kind = OJ_PARAMETER_KEPT},
    {"within_time",
     .help = "rows: LEFT[=RIGHT]:WINDOW, only pairs whose times in these "
             "columns are at most that far apart, as seen=departed:30min (ms, "
             "s, min, h, d; of numbers a number)",
     .kind = OJ_PARAMETER_KEPT},
    {"during",
     .help = "rows: FROM..UNTIL[=FROM..UNTIL][:RELATION], only pairs whose "
             "spans of time or numbers have the relation: intersects "
             "(default), before, meets, overlaps, starts, during, finishes, "
             "equals, contains ..., or several with + between them",
     .kind = OJ_PARAMETER_KEPT},
    {"heading",
     .help =
         "rows: F[:TOLERANCE], of lines and rings of the join side only the "
         "segments count whose direction differs from this column of the "
         "input, degrees clockwise from north, by at most TOLERANCE (45)",
     .kind = OJ_PARAMETER_KEPT, .ops = "nearest|dwithin"},
    {"heading_both_ways",
     .help = "rows: 1: the reverse direction of a segment may fit, too (0)",
     VALUE(INT, relation.heading.both_ways), .most = 1,
     .ops = "nearest|dwithin"},
    {"exclude",
     .help = "rows: self, same_geometry, field=F or field=LEFT=RIGHT, with "
             "commas between them: no such pairs",
     .kind = OJ_PARAMETER_KEPT},
    {"overlap",
     .help = "rows: area, length, percent, iou, input_area, join_area, with "
             "commas between them: columns with the size of the intersection "
             "and of both",
     .kind = OJ_PARAMETER_KEPT},
    {"unordered_pairs", .help = "another name of unordered",
     VALUE(INT, relation.unordered_pairs), .most = 1},
    {"nearest_point_fields", .help = "another name of nearest_point",
     VALUE(INT, pairs.nearest_point), .most = 1},
    {"bearing_field", .help = "another name of bearing",
     VALUE(INT, pairs.bearing), .most = 1},
    {"along_field",
     .help = "rows: name of a column with the measure along the right feature, "
             "a line or rings, from its start to the place nearest to the left "
             "one",
     .kind = OJ_PARAMETER_KEPT, .ops = OJ_LINE_OPS},
    {"along_percent_field",
     .help = "rows: as along_field, in percent of the length",
     .kind = OJ_PARAMETER_KEPT, .ops = OJ_LINE_OPS},
    {"offset_field",
     .help = "rows: name of a column with the distance from the line, above 0 "
             "on its left, below 0 on its right",
     .kind = OJ_PARAMETER_KEPT, .ops = OJ_LINE_OPS},
    {"side_field",
     .help = "rows: name of a column with left, right or on (the line)",
     .kind = OJ_PARAMETER_KEPT, .ops = OJ_LINE_OPS},
    {"segment_field",
     .help = "rows: name of a column with the number of the nearest segment of "
             "the line, from 1 on",
     .kind = OJ_PARAMETER_KEPT, .ops = OJ_LINE_OPS},
    {"line_bearing_field",
     .help = "rows: name of a column with the direction of the nearest segment "
             "of the line, degrees clockwise from north",
     .kind = OJ_PARAMETER_KEPT, .ops = OJ_LINE_OPS},
    {"matrix_field",
     .help = "rows: name of a column with the DE-9IM matrix of the features",
     .kind = OJ_PARAMETER_KEPT},
    {"relation_field",
     .help = "rows: name of a column with the first of equals, contains, "
             "within, touches, crosses, overlaps, intersects, disjoint that "
             "holds",
     .kind = OJ_PARAMETER_KEPT},
    {"geometry", API_GEOMETRY_WORDS,
     .help = "rows: geometry of a row: input (default), join, nearest_point of "
             "the join feature, connection (the line to it), intersection of "
             "both features, or none",
     VALUE(CHOICE, rows.geometry)},
    {"nlt", "AS_IS|" OJ_ROW_PART_WORDS,
     .help = "rows: keep only the polygons, lines or points of geometry "
             "intersection, as multi-geometries; pairs without such parts are "
             "dropped",
     VALUE(CHOICE, rows.parts)},
    {"prefix",
     .help = "rows: prefix of columns of the join side whose names are in use "
             "(join_)",
     .kind = OJ_PARAMETER_KEPT},
    {"name_fid",
     .help = "rows: name of the column join_fid; \"\": no such column",
     .kind = OJ_PARAMETER_KEPT},
    {"name_distance", .help = "rows: as name_fid, of join_distance",
     .kind = OJ_PARAMETER_KEPT},
    {"name_rank", .help = "rows: as name_fid, of join_rank",
     .kind = OJ_PARAMETER_KEPT},
    {"name_similarity", .help = "rows: as name_fid, of join_similarity",
     .kind = OJ_PARAMETER_KEPT},
    {"name_difference", .help = "rows: as name_fid, of join_difference",
     .kind = OJ_PARAMETER_KEPT},
    {"name_count",
     .help = "rows: name of a column with the number of the input row's pairs",
     .kind = OJ_PARAMETER_KEPT},
    {"left_column", .help = "rows: the column of geometries of the input",
     .kind = OJ_PARAMETER_KEPT},
    {"right_column", .help = "rows: the column of geometries of the join side",
     .kind = OJ_PARAMETER_KEPT},
    {"left_x",
     .help =
         "rows: column of x of the input, which is then points; needs left_y",
     .kind = OJ_PARAMETER_KEPT},
    {"left_y",
     .help =
         "rows: column of y of the input, which is then points; needs left_x",
     .kind = OJ_PARAMETER_KEPT},
    {"right_x", .help = "rows: as left_x, of the join side",
     .kind = OJ_PARAMETER_KEPT},
    {"right_y", .help = "rows: as left_y, of the join side",
     .kind = OJ_PARAMETER_KEPT},
    {"left_select",
     .help = "rows: the columns of the input that rows have, with commas "
             "between them; \"\": none; default: all",
     .kind = OJ_PARAMETER_KEPT},
    {"right_select",
     .help =
         "rows: the columns of the join side that rows have, as left_select",
     .kind = OJ_PARAMETER_KEPT},
    {"left_fid",
     .help = "rows: a column of whole numbers that are the input's FIDs, for "
             "exclude self and unordered_pairs",
     .kind = OJ_PARAMETER_KEPT},
    {"right_fid",
     .help = "rows: as left_fid, of the join side; it becomes join_fid and "
             "decides ties",
     .kind = OJ_PARAMETER_KEPT},
    {"left_crs",
     .help = "rows: the CRS of the input: PROJJSON, WKT or authority:code; "
             "default: that of its column of geometries",
     .kind = OJ_PARAMETER_KEPT},
    {"right_crs", .help = "rows: the CRS of the join side, as left_crs",
     .kind = OJ_PARAMETER_KEPT},
    {"crs", "check|ignore",
     .help = "rows: check (default): two CRS are an error, and so are plain "
             "distances in degrees; ignore: coordinates are taken as they are",
     VALUE(CHOICE, rows.crs)},
    {"max_distance_field",
     .help = "rows: op dwithin: the column of the input with the maximum "
             "distance of each row, F or F:km",
     .kind = OJ_PARAMETER_KEPT},
    {"join_max_distance_field",
     .help = "rows: as max_distance_field, of the join side",
     .kind = OJ_PARAMETER_KEPT},
    {"events",
     .help = "rows: changes: a row for each right feature that a key of the "
             "input has entered or left since its last row, with a column "
             "event: enter, exit, or change with op nearest; all: also stay",
     .kind = OJ_PARAMETER_KEPT},
    {"key",
     .help = "rows: with events: the column of the input that identifies what "
             "moves",
     .kind = OJ_PARAMETER_KEPT},
    {"state",
     .help = "rows: with events: a file that keeps the features of each key: "
             "read before the first row and written after the last",
     .kind = OJ_PARAMETER_KEPT},
    {"batch_rows",
     .help = "rows: rows of the input that are read and joined at once; 0: up "
             "to a million, as suits the join (0)",
     VALUE(COUNT, rows.batch_rows), .most = INT32_MAX},
    {"input_rows",
     .help = "rows: how many the input has, for progress; 0: unknown (0)",
     VALUE(COUNT, rows.input_rows), .most = MOST_WHOLE},
    {"right_is_part",
     .help = "rows: 1: the right side is a part of a layer, as joins in tiles "
             "have it: with along=m all its lines may lack M values (0)",
     VALUE(INT, rows.right_is_part), .most = 1},
};

/* the table's offsets are of struct oj_relation, but are used on struct
 * ogrjoin_settings */
_Static_assert(offsetof(struct ogrjoin_settings, relation) == 0,
               "the relation comes first");

static const struct oj_parameter *setting_at(int i)
{
    int n_own = (int)(sizeof own_settings / sizeof *own_settings);
    int n_rows = (int)(sizeof row_settings / sizeof *row_settings);
    if (i < 0 || i < n_own)
        return i < 0 ? NULL : &own_settings[i];
    return i - n_own < n_rows ? &row_settings[i - n_own]
                              : oj_parameter_at(i - n_own - n_rows);
}

/* Parameters of other libraries and our setting that corresponds, whose
 * spelling is too different for closest_setting(). */
static const struct
{
    const char *word, *setting;
} synonyms[] = {
    {"predicate", "op"},
    {"distance_col", "name_distance"},
    {"return_distance", "name_distance"},
    {"exclusive", "exclude_same_geometry"},
    {"on_attribute", "on"},
    {"left_on", "on"},
    {"right_on", "on"},
    {"rsuffix", "prefix"},
    {"suffixes", "prefix"},
    {"aggfunc", "agg"},
    {"n_neighbors", "k"},
};

/* Parameters of other libraries without a corresponding setting, and what to do
 * instead. */
static const struct
{
    const char *word, *instead;
} without_setting[] = {
    {"where", "filter the side before the join"},
    {"join_where", "filter the side before the join"},
    {"lsuffix", "columns of the left side keep their names"},
};

static const char *advice_for_missing_setting(const char *name)
{
    for (size_t i = 0; i < sizeof without_setting / sizeof *without_setting;
         i++)
    {
        if (strcasecmp(without_setting[i].word, name) == 0)
            return without_setting[i].instead;
    }
    return NULL;
}

/* Returns the setting that a wrong name probably means: the synonym of another
 * library, otherwise the most similar name (the shortest if several are equally
 * similar). Returns NULL if no name is similar. */
static const char *closest_setting(const char *name)
{
    const struct oj_parameter *setting;
    const char *best = NULL;
    int least = (int)strlen(name) / 3 + 1;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
    {
        if (strcasecmp(synonyms[i].word, name) == 0)
            return synonyms[i].setting;
    }
    for (int i = 0; (setting = setting_at(i)) != NULL; i++)
    {
        int distance = oj_spelling_distance(name, setting->name);
        if (distance <= least && distance < (int)strlen(name) &&
            (best == NULL || distance < least ||
             strlen(setting->name) < strlen(best)))
        {
            best = setting->name;
            least = distance;
        }
    }
    return best;
}

static oj_status find_setting(const char *name, int *out, struct oj_error *err)
{
    const struct oj_parameter *setting;
    const char *closest, *instead;
    for (int i = 0; (setting = setting_at(i)) != NULL; i++)
    {
        *out = i;
        if (strcmp(setting->name, name) == 0)
            return OJ_OK;
    }
    instead = advice_for_missing_setting(name);
    if (instead != NULL)
        return oj_fail(err, OJ_ERR_ARG, "there is no setting \"%.40s\": %s",
                       name, instead);
    closest = closest_setting(name);
    return oj_fail(err, OJ_ERR_ARG, "there is no setting \"%.40s\"%s%s%s", name,
                   closest != NULL ? "; did you mean \"" : "",
                   closest != NULL ? closest : "",
                   closest != NULL ? "\"?"
                                   : "; ogrjoin_setting_name() lists all");
}

const char *ogrjoin_setting_name(int i)
{
    const struct oj_parameter *setting = setting_at(i);
    return setting != NULL ? setting->name : NULL;
}

const char *ogrjoin_setting_help(int i)
{
    const struct oj_parameter *setting = setting_at(i);
    return setting != NULL ? setting->help : NULL;
}

const char *api_setting_text_as_given(const struct ogrjoin_settings *settings,
                                      const char *name)
{
    const struct oj_parameter *setting;
    for (int i = 0; (setting = setting_at(i)) != NULL; i++)
    {
        if (strcmp(setting->name, name) == 0)
            return settings->given[i];
    }
    return NULL;
}

static const struct oj_backend *backend_at(int i)
{
    return i == 0 ? &oj_auto_backend : oj_backend_at(i - 1);
}

const char *ogrjoin_backend_name(int i)
{
    const struct oj_backend *backend = backend_at(i);
    return backend != NULL ? backend->name : NULL;
}

const char *ogrjoin_backend_help(int i)
{
    const struct oj_backend *backend = backend_at(i);
    return backend != NULL ? backend->description : NULL;
}

struct ogrjoin_settings *ogrjoin_settings_new(void)
{
    struct ogrjoin_settings *settings = oj_calloc(1, sizeof *settings);
    if (settings == NULL)
        return NULL;
    settings->relation = oj_relation_default();
    settings->relation.vector.max_difference = INFINITY;
    settings->rows.max_distance.value = INFINITY;
    snprintf(settings->backend, sizeof settings->backend, "%s",
             oj_auto_backend.name);
    return settings;
}

void ogrjoin_settings_free(struct ogrjoin_settings *settings)
{
    if (settings == NULL)
        return;
    oj_free(settings->word_map);
    oj_free(settings->similar);
    oj_free(settings->vector);
    for (int i = 0; i < API_MOST_SETTINGS; i++)
        oj_free(settings->given[i]);
    oj_free(settings);
}

static oj_status duplicate_text(char **to, const char *value,
                                struct oj_error *err)
{
    size_t size = strlen(value) + 1;
    char *copy;
    OJ_NEW(copy, (int64_t)size, err);
    memcpy(copy, value, size);
    oj_free(*to);
    *to = copy;
    return OJ_OK;
}

static oj_status set_op(struct ogrjoin_settings *s, const char *value,
                        struct oj_error *err)
{
    int op = oj_op_find(value);
    char names[256];
    oj_op_names(", ", names, sizeof names);
    if (op < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "there is no op \"%.40s\": write one of %s", value,
                       names);
    s->relation.op = (enum oj_op)op;
    return OJ_OK;
}

static oj_status set_backend(struct ogrjoin_settings *s, const char *value,
                             struct oj_error *err)
{
    const struct oj_backend *backend;
    OJ_TRY(oj_backend_read("", "backend", value, &backend, err));
    snprintf(s->backend, sizeof s->backend, "%s", backend->name);
    return OJ_OK;
}

/* Parses the setting similar: a list of columns with thresholds, or of
 * thresholds alone. */
static oj_status parse_similar(const char *list, struct compared_fields *out,
                               struct oj_error *err)
{
    int is_named = list[strspn(list, "0123456789./,")] != '\0';
    oj_status status = OJ_OK;
    char *word;
    OJ_NEW(word, (int64_t)strlen(list) + 1, err);
    while (*list != '\0' && status == OJ_OK)
    {
        struct oj_similar *to = &out->similar[out->n_similar];
        const char *end = oj_similar_fields_end(list);
        memcpy(word, list, (size_t)(end - list));
        word[end - list] = '\0';
        list = end + (*end == ',');
        if (out->n_similar == OJ_MOST_TEXTS)
            status = oj_fail(err, OJ_ERR_ARG,
                             "similar takes at most %d conditions: leave some "
                             "out, or concatenate columns with +",
                             OJ_MOST_TEXTS);
        else if (is_named)
            status = oj_similar_fields_parse("", word, to, err);
        else
            status = oj_text_threshold_parse(
                "", "similar", word, &to->numerator, &to->denominator, err);
        out->n_similar += status == OJ_OK;
    }
    oj_free(word);
    return status;
}

oj_status
api_settings_parse_compared_fields(const struct ogrjoin_settings *settings,
                                   struct compared_fields *out,
                                   struct oj_error *err)
{
    memset(out, 0, sizeof *out);
    if (settings->similar != NULL)
        OJ_TRY(parse_similar(settings->similar, out, err));
    if (settings->vector != NULL)
        OJ_TRY(oj_vector_fields_parse("", settings->vector, &out->vector, err));
    return OJ_OK;
}

oj_status api_settings_parse_spans(const struct ogrjoin_settings *settings,
                                   struct oj_span_words words[OJ_MOST_SPANS],
                                   int *n, struct oj_error *err)
{
    static const char *const names[OJ_MOST_SPANS] = {"within_time", "during"};
    memset(words, 0, OJ_MOST_SPANS * sizeof *words);
    *n = 0;
    for (int i = 0; i < OJ_MOST_SPANS; i++)
    {
        const char *word = api_setting_text_as_given(settings, names[i]);
        if (word == NULL)
            continue;
        OJ_TRY(
            oj_span_words_parse("", names[i], i == 0, word, &words[*n], err));
        ++*n;
    }
    return OJ_OK;
}

oj_status api_settings_parse_heading(const struct ogrjoin_settings *settings,
                                     char **field, double *tolerance,
                                     struct oj_error *err)
{
    const char *word = api_setting_text_as_given(settings, "heading");
    *field = NULL;
    return word == NULL
               ? OJ_OK
               : oj_heading_words_parse("", word, field, tolerance, err);
}

static oj_status set_similar(struct ogrjoin_settings *settings,
                             const char *value, struct oj_error *err)
{
    struct oj_text_condition *to = settings->relation.similar;
    struct compared_fields fields = {.n_similar = 0};
    oj_status status = parse_similar(value, &fields, err);
    if (status == OJ_OK)
        status = duplicate_text(&settings->similar, value, err);
    if (status == OJ_OK)
    {
        for (int i = 0; i < fields.n_similar; i++)
        {
            to[i].numerator = fields.similar[i].numerator;
            to[i].denominator = fields.similar[i].denominator;
        }
        settings->relation.n_similar = fields.n_similar;
    }
    compared_fields_free(&fields);
    return status;
}

static oj_status set_vector(struct ogrjoin_settings *settings,
                            const char *value, struct oj_error *err)
{
    struct oj_vector_words words = {0};
    OJ_TRY(oj_vector_fields_parse("", value, &words, err));
    oj_vector_fields_free(&words);
    OJ_TRY(duplicate_text(&settings->vector, value, err));
    settings->relation.vector.is_asked = 1;
    return OJ_OK;
}

/* Returns the member that stores this setting if it is a distance with its
 * unit, and NULL for other settings. */
static struct oj_distance *distance_of_setting(struct ogrjoin_settings *s,
                                               const struct oj_parameter *of)
{
    struct api_row_settings *rows = &s->rows;
    return of->offset ==
                   offsetof(struct ogrjoin_settings, relation.max_distance)
               ? &rows->max_distance
           : of->offset ==
                   offsetof(struct ogrjoin_settings, relation.min_distance)
               ? &rows->min_distance
           : of->offset == offsetof(struct ogrjoin_settings, relation.densify)
               ? &rows->densify
               : NULL;
}

static oj_status fail_not_a_number(const char *name, const char *value,
                                   struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_ARG,
                   "%s must be a number, not the text \"%.40s\"", name, value);
}

/* Sets a distance such as "100ft". A number with a unit is converted later,
 * when the CRS is known. */
static oj_status set_distance(struct ogrjoin_settings *settings,
                              const struct oj_parameter *setting,
                              const char *value, struct oj_error *err)
{
    struct oj_distance *to = distance_of_setting(settings, setting), read;
    if (to == NULL)
        return fail_not_a_number(setting->name, value, err);
    OJ_TRY(oj_distance_parse("", setting->name, value, &read, err));
    *to = read;
    *(double *)(void *)((char *)settings + setting->offset) = read.value;
    return OJ_OK;
}

/* Sets the rule of pick. For rows, the rule may name a column, which is looked
 * up when the rows are opened. */
static oj_status set_pick(struct ogrjoin_settings *settings, const char *value,
                          struct oj_error *err)
{
    if (strncasecmp(value, "max:", 4) != 0 &&
        strncasecmp(value, "min:", 4) != 0)
        return oj_choice_read("", "pick", API_PICK_NAMES, value,
                              &settings->pairs.pick, err);
    settings->pairs.pick = OJ_PICK_SCORE;
    return OJ_OK;
}

static oj_status set_choice(struct ogrjoin_settings *settings,
                            const struct oj_parameter *setting,
                            const char *value, struct oj_error *err)
{
    void *at = (char *)settings + setting->offset;
    if (at == (void *)&settings->pairs.pick)
        return set_pick(settings, value, err);
    return oj_choice_read("", setting->name, setting->arguments, value, at,
                          err);
}

static oj_status set_text(struct ogrjoin_settings *settings, const char *name,
                          const char *value, struct oj_error *err)
{
    const struct oj_parameter *setting;
    void *at;
    int place;
    OJ_TRY(find_setting(name, &place, err));
    setting = setting_at(place);
    at = (char *)settings + setting->offset;
    switch (setting->kind)
    {
        case OJ_PARAMETER_KEPT:
            break;
        case OJ_PARAMETER_OP:
            OJ_TRY(set_op(settings, value, err));
            break;
        case OJ_PARAMETER_BACKEND:
            OJ_TRY(set_backend(settings, value, err));
            break;
        case OJ_PARAMETER_THRESHOLD:
            OJ_TRY(oj_text_threshold_parse("", name, value, at,
                                           (int64_t *)at + 1, err));
            break;
        case OJ_PARAMETER_THRESHOLDS:
            OJ_TRY(set_similar(settings, value, err));
            break;
        case OJ_PARAMETER_VECTOR:
            OJ_TRY(set_vector(settings, value, err));
            break;
        case OJ_PARAMETER_TEXT:
            OJ_TRY(duplicate_text(at, value, err));
            break;
        case OJ_PARAMETER_CHOICE:
            OJ_TRY(set_choice(settings, setting, value, err));
            break;
        case OJ_PARAMETER_DISTANCE:
            OJ_TRY(set_distance(settings, setting, value, err));
            break;
        case OJ_PARAMETER_INT: /* some integers can also be given as words */
            if (setting->arguments == NULL)
                return fail_not_a_number(name, value, err);
            OJ_TRY(set_choice(settings, setting, value, err));
            break;
        case OJ_PARAMETER_PATTERN: /* a pattern also sets the op that uses it */
            OJ_TRY(oj_mask_read("", name, value, at, err));
            OJ_TRY(set_op(settings, setting->ops, err));
            break;
        default:
            return fail_not_a_number(name, value, err);
    }
    return duplicate_text(&settings->given[place], value, err);
}

/* Sets a threshold to the decimal fraction that was meant: 0.6 to 6/10, not to
 * the nearest double. */
static oj_status set_threshold(const char *name, double value, int64_t *to,
                               struct oj_error *err)
{
    const int64_t most = 1000000000;
    double n = nearbyint(value * (double)most);
    if (!(value > 0.0 && value <= 1.0) || n / (double)most != value)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s must be above 0 and at most 1, a number of up to 9 "
                       "digits or a text as 2/3, not %.17g",
                       name, value);
    to[0] = (int64_t)n;
    to[1] = most;
    return OJ_OK;
}

static oj_status store_number_in_setting(struct ogrjoin_settings *settings,
                                         const struct oj_parameter *setting,
                                         double value, struct oj_error *err)
{
    const char *name = setting->name;
    void *at = (char *)settings + setting->offset;
    int is_whole = setting->kind == OJ_PARAMETER_COUNT ||
                   setting->kind == OJ_PARAMETER_INT;
    struct oj_distance *distance;
    if (setting->kind == OJ_PARAMETER_THRESHOLD)
        return set_threshold(name, value, at, err);
    if (!is_whole && setting->kind != OJ_PARAMETER_DISTANCE)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s must be a text, not the number %.15g", name, value);
    if (!(value >= setting->least && value <= setting->most) ||
        (is_whole && value != floor(value)))
        return oj_fail(err, OJ_ERR_ARG,
                       "%s must be a %snumber from %.16g to %.16g, not %.15g",
                       name, is_whole ? "whole " : "", setting->least,
                       setting->most, value);
    settings->has_k |= at == (void *)&settings->relation.k;
    if (setting->kind == OJ_PARAMETER_INT)
        *(int *)at = (int)value;
    else if (is_whole)
        *(int64_t *)at = (int64_t)value;
    else
    {
        *(double *)at = value;
        distance = distance_of_setting(settings, setting);
        if (distance != NULL)
            *distance = (struct oj_distance){value, OJ_UNIT_CRS};
    }
    return OJ_OK;
}

static oj_status set_number(struct ogrjoin_settings *settings, const char *name,
                            double value, struct oj_error *err)
{
    char text[40];
    int place;
    OJ_TRY(find_setting(name, &place, err));
    OJ_TRY(store_number_in_setting(settings, setting_at(place), value, err));
    snprintf(text, sizeof text, "%.17g", value);
    return duplicate_text(&settings->given[place], text, err);
}

int ogrjoin_set_text(struct ogrjoin_settings *settings, const char *name,
                     const char *value, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(set_text(settings, name, value, &why), &why, err);
}

int ogrjoin_set_number(struct ogrjoin_settings *settings, const char *name,
                       double value, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(set_number(settings, name, value, &why), &why, err);
}

void ogrjoin_settings_cancel(struct ogrjoin_settings *settings, const int *flag)
{
    settings->options.cancel = flag;
}

void ogrjoin_settings_progress(struct ogrjoin_settings *settings,
                               int (*report)(void *user, int64_t rows,
                                             int64_t n_rows),
                               void *user)
{
    settings->rows.report = report;
    settings->rows.report_user = user;
}

void ogrjoin_settings_notices(struct ogrjoin_settings *settings,
                              void (*notice)(void *user, const char *message),
                              void *user)
{
    settings->rows.notice = notice;
    settings->rows.notice_user = user;
}

void ogrjoin_settings_crs(
    struct ogrjoin_settings *settings,
    int (*expand)(void *user, const char *crs, char *text, size_t size),
    int (*compare)(void *user, const char *a, const char *b), void *user)
{
    settings->rows.crs_callbacks =
        (struct oj_crs_callbacks){expand, compare, user};
}

void api_settings_notify(const struct ogrjoin_settings *settings,
                         const char *format, ...)
{
    char text[1024];
    va_list arguments;
    if (settings->rows.notice == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    settings->rows.notice(settings->rows.notice_user, text);
}

int api_settings_threads(const struct ogrjoin_settings *settings)
{
    return settings != NULL && settings->options.n_threads > 0
               ? settings->options.n_threads
               : oj_cpu_count();
}

/* ---- copies -------------------------------------------------------------- */

struct ogrjoin_settings
api_settings_copy_without_texts(const struct ogrjoin_settings *settings)
{
    struct ogrjoin_settings view = *settings;
    view.word_map = view.similar = view.vector = NULL;
    memset(view.given, 0, sizeof view.given);
    return view;
}

static oj_status copy_text(char **to, const char *from, struct oj_error *err)
{
    return from != NULL ? duplicate_text(to, from, err) : OJ_OK;
}

static oj_status copy_texts(const struct ogrjoin_settings *from,
                            struct ogrjoin_settings *to, struct oj_error *err)
{
    OJ_TRY(copy_text(&to->word_map, from->word_map, err));
    OJ_TRY(copy_text(&to->similar, from->similar, err));
    OJ_TRY(copy_text(&to->vector, from->vector, err));
    for (int i = 0; i < API_MOST_SETTINGS; i++)
        OJ_TRY(copy_text(&to->given[i], from->given[i], err));
    return OJ_OK;
}

oj_status api_settings_copy(const struct ogrjoin_settings *settings,
                            struct ogrjoin_settings **out, struct oj_error *err)
{
    struct ogrjoin_settings *copy = ogrjoin_settings_new();
    oj_status status = OJ_OK;
    if (copy == NULL)
        return oj_fail_nomem(err, 1, sizeof *copy);
    if (settings != NULL)
    {
        *copy = api_settings_copy_without_texts(settings);
        status = copy_texts(settings, copy, err);
    }
    if (status == OJ_OK)
        *out = copy;
    else
        ogrjoin_settings_free(copy);
    return status;
}

/* Names of settings that ask for values of pairs. */
#define VALUE_SETTINGS                                                         \
    "overlap_area|overlap_length|overlap_percent|nearest_point|from_point|"    \
    "intersection|bearing|share|line_along|line_along_percent|line_offset|"    \
    "line_side|line_segment|line_bearing|matrix|relation|"                     \
    "nearest_point_fields|bearing_field"

/* Names of settings that do not change which pairs are found. */
static const char of_rows[] = VALUE_SETTINGS
    "|pick|one_to_one|side|how|agg|overlap|along_field|along_percent_field|"
    "offset_field|side_field|segment_field|line_bearing_field|matrix_field|"
    "relation_field|geometry|nlt|prefix|name_fid|name_distance|name_rank|"
    "name_similarity|name_difference|name_count|left_column|left_x|left_y|"
    "left_select|right_select|left_fid|left_crs|right_crs|crs|batch_rows|"
    "input_rows|right_is_part|events|key|state";

/* Returns 1 if a and b have equal values in all settings, except those named in
 * `but` ("": no exceptions), and share one cancel flag or have none. */
static int are_given_values_equal(const struct ogrjoin_settings *a,
                                  const struct ogrjoin_settings *b,
                                  const char *but)
{
    const struct oj_parameter *setting;
    for (int i = 0; (setting = setting_at(i)) != NULL; i++)
    {
        const char *in_a = a->given[i], *in_b = b->given[i];
        if (oj_words_find(but, setting->name) >= 0)
            continue;
        if ((in_a == NULL) != (in_b == NULL) ||
            (in_a != NULL && strcmp(in_a, in_b) != 0))
            return 0;
    }
    return a->options.cancel == b->options.cancel;
}

int api_settings_are_equal_for_pairs(const struct ogrjoin_settings *a,
                                     const struct ogrjoin_settings *b)
{
    return are_given_values_equal(a, b, of_rows);
}

int api_settings_are_equal(const struct ogrjoin_settings *a,
                           const struct ogrjoin_settings *b)
{
    return are_given_values_equal(a, b, "");
}

/* ---- checks of combinations of settings ---------------------------------- */

oj_status api_settings_check_units(const struct ogrjoin_settings *settings,
                                   struct oj_error *err)
{
    static const char *const names[] = {"max_distance", "min_distance",
                                        "densify"};
    const struct oj_distance *const distances[] = {&settings->rows.max_distance,
                                                   &settings->rows.min_distance,
                                                   &settings->rows.densify};
    for (int i = 0; i < 3; i++)
    {
        if (distances[i]->unit != OJ_UNIT_CRS)
            return oj_fail(err, OJ_ERR_ARG,
                           "%s %s: layers have no CRS, so a unit cannot be "
                           "converted: write a number in units of the "
                           "coordinates, or join rows (ogrjoin_rows_open)",
                           names[i],
                           api_setting_text_as_given(settings, names[i]));
    }
    return OJ_OK;
}

/* Options of the command that correspond to several settings. */
static const struct
{
    const char *option, *settings;
} spellings[] = {
    {"overlap", "overlap|overlap_area|overlap_length|overlap_percent"},
    {"nearest_point_fields", "nearest_point_fields|nearest_point"},
    {"bearing_field", "bearing_field|bearing"},
    {"along_field", "along_field|line_along"},
    {"along_percent_field", "along_percent_field|line_along_percent"},
    {"offset_field", "offset_field|line_offset"},
    {"side_field", "side_field|line_side"},
    {"segment_field", "segment_field|line_segment"},
    {"line_bearing_field", "line_bearing_field|line_bearing"},
    {"matrix_field", "matrix_field|matrix"},
    {"relation_field", "relation_field|relation"},
    {"join_select", "right_select"},
};

/* Returns the index of the first setting of the list that was set, or -1 if
 * none was. */
static int find_given_setting(const struct ogrjoin_settings *settings,
                              const char *list)
{
    for (int i = 0; i < API_MOST_SETTINGS; i++)
    {
        if (settings->given[i] != NULL &&
            oj_words_find(list, setting_at(i)->name) >= 0)
            return i;
    }
    return -1;
}

static const char *settings_named_by_option(const char *option)
{
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
    {
        if (strcmp(spellings[i].option, option) == 0)
            return spellings[i].settings;
    }
    return option;
}

/* Returns 1 if a setting was set to the number 0. */
static int is_switched_off(const struct ogrjoin_settings *settings, int place)
{
    return setting_at(place)->kind == OJ_PARAMETER_INT &&
           strcmp(settings->given[place], "0") == 0;
}

/* Returns the value of an option as text, or NULL if it was not set, or was set
 * to 0. */
static const char *value_of_option(const void *user, const char *option)
{
    const struct ogrjoin_settings *settings = user;
    int place = find_given_setting(settings, settings_named_by_option(option));
    if (place < 0 || is_switched_off(settings, place))
        return NULL;
    return settings->given[place];
}

static void write_setting_as_given(const void *user, const char *option,
                                   const char *word, char *text, size_t size)
{
    int place = find_given_setting(user, settings_named_by_option(option));
    snprintf(text, size, "%s%s%s",
             place >= 0 ? setting_at(place)->name : option,
             word != NULL ? "=" : "", word != NULL ? word : "");
}

/* Combinations of settings that the library refuses. (Those that the command
 * refuses, too, are in oj_option_clash.c.) */
static const struct
{
    const char *setting, *others, *why; /* why: reason; NULL: `setting` has
                                           no effect unless one of `others`
                                           is set */
} beside[] = {
    {"unordered", "unordered_pairs", "they are two names of one setting"},
    {"left_column", "left_x|left_y",
     "both name the columns with the geometries of the input"},
    {"right_column", "right_x|right_y",
     "both name the columns with the geometries of the join side"},
    {"min_similarity", "similar", NULL},
    {"measure", "similar", NULL},
    {"tokens", "similar", NULL},
    {"fold", "similar", NULL},
    {"word_map", "similar", NULL},
    {"name_similarity", "similar", NULL},
    {"max_difference", "vector", NULL},
    {"norm", "vector", NULL},
    {"name_difference", "vector", NULL},
    {"heading_both_ways", "heading", NULL},
    {"key", "events", NULL},
    {"state", "events", NULL},
    {"left_x", "left_y", NULL},
    {"left_y", "left_x", NULL},
    {"right_x", "right_y", NULL},
    {"right_y", "right_x", NULL},
};

static oj_status check_combinations(const struct ogrjoin_settings *s,
                                    struct oj_error *err)
{
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
    {
        int other = find_given_setting(s, beside[i].others);
        if (find_given_setting(s, beside[i].setting) < 0)
            continue;
        if (beside[i].why == NULL && other < 0)
            return oj_fail(
                err, OJ_ERR_ARG,
                "%s has no effect without %s: leave it out, or set both",
                beside[i].setting, beside[i].others);
        if (beside[i].why != NULL && other >= 0)
            return oj_fail(
                err, OJ_ERR_ARG,
                "%s and %s do not go together: leave one out, because %s",
                beside[i].setting, setting_at(other)->name, beside[i].why);
    }
    return OJ_OK;
}

/* Fails if a setting of `list` was set: these settings of kept indexes have no
 * effect here. what: the kind of join, for the message. */
static oj_status check_settings_of_kept_index(const struct ogrjoin_settings *s,
                                              const char *list,
                                              const char *what,
                                              struct oj_error *err)
{
    int place = find_given_setting(s, list);
    const char *name = place >= 0 ? setting_at(place)->name : "";
    if (place >= 0 && !is_switched_off(s, place))
        return oj_fail(
            err, OJ_ERR_ARG,
            "%s has no effect on %s, only on %s a kept index: leave it out",
            name, what,
            strcmp(name, "tree") == 0 ? "the points of" : "the near pairs of");
    return OJ_OK;
}

static oj_status check_settings_fit_op(const struct ogrjoin_settings *s,
                                       struct oj_error *err)
{
    const struct oj_op_info *op = oj_op_get(s->relation.op);
    const struct oj_parameter *setting;
    for (int i = 0; (setting = setting_at(i)) != NULL; i++)
    {
        if (s->given[i] != NULL && !is_switched_off(s, i) &&
            setting->ops != NULL && oj_words_find(setting->ops, op->name) < 0)
            return oj_fail(
                err, OJ_ERR_ARG,
                "%s has no effect on op %s, only on op %s: leave it out",
                setting->name, op->name, setting->ops);
    }
    return OJ_OK;
}

static oj_status check_distances_of_rows(const struct ogrjoin_settings *s,
                                         struct oj_error *err)
{
    int place =
        find_given_setting(s, "max_distance_field|join_max_distance_field");
    int has_field = place >= 0;
    if (has_field && !oj_relation_is_dwithin(&s->relation))
        return oj_fail(
            err, OJ_ERR_ARG,
            "%s has no effect on op %s, only on op dwithin: leave it "
            "out",
            setting_at(place)->name, oj_op_get(s->relation.op)->name);
    if (oj_relation_is_dwithin(&s->relation) && !has_field &&
        isinf(s->rows.max_distance.value))
        return oj_fail(err, OJ_ERR_ARG,
                       "op dwithin needs a finite maximum distance: set "
                       "max_distance, as 100 or \"100ft\"");
    return OJ_OK;
}

void api_settings_set_default_k(const struct ogrjoin_settings *settings,
                                struct oj_relation *relation)
{
    if (oj_relation_sorts_by_measure(relation) && !settings->has_k)
        relation->k = oj_op_get(relation->op)->k;
}

static oj_status check_option_clashes(const struct ogrjoin_settings *s,
                                      struct oj_error *err)
{
    struct oj_relation relation = s->relation;
    const struct oj_given_options given = {
        &relation, oj_op_get(relation.op)->name, value_of_option,
        write_setting_as_given, s};
    api_settings_set_default_k(s, &relation);
    return oj_option_clash_check(&given, err);
}

oj_status api_settings_check_rows(const struct ogrjoin_settings *settings,
                                  struct oj_error *err)
{
    OJ_TRY(check_settings_of_kept_index(settings, "tree|changes", "rows", err));
    OJ_TRY(check_settings_fit_op(settings, err));
    OJ_TRY(check_combinations(settings, err));
    OJ_TRY(check_distances_of_rows(settings, err));
    return check_option_clashes(settings, err);
}

/* ---- settings of joins that return pairs --------------------------------- */

/* Settings of rows that joins of layers also accept. */
static const char of_pairs_too[] =
    "unordered_pairs|nearest_point_fields|bearing_field|crs";

static oj_status check_no_settings_of_rows(const struct ogrjoin_settings *s,
                                           struct oj_error *err)
{
    const int n_own = (int)(sizeof own_settings / sizeof *own_settings);
    const int n_rows = (int)(sizeof row_settings / sizeof *row_settings);
    for (int i = 0; i < n_rows; i++)
    {
        const char *name = row_settings[i].name;
        if (s->given[n_own + i] != NULL &&
            oj_words_find(of_pairs_too, name) < 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "%s has no effect on pairs, only on rows: leave it "
                           "out, or join rows (ogrjoin_rows_open)",
                           name);
    }
    return OJ_OK;
}

/* Fails if `changes` and a value of pairs are both set: values of removed pairs
 * are not available. */
static oj_status check_values_of_changes(const struct ogrjoin_settings *s,
                                         struct oj_error *err)
{
    int value = s->changes ? find_given_setting(s, VALUE_SETTINGS) : -1;
    if (value >= 0 && !is_switched_off(s, value))
        return oj_fail(err, OJ_ERR_ARG,
                       "%s and changes do not go together, because pairs that "
                       "have gone have no values: leave out one of them",
                       setting_at(value)->name);
    return OJ_OK;
}

oj_status api_settings_check_pairs(const struct ogrjoin_settings *s,
                                   enum api_pair_sides sides,
                                   struct oj_error *err)
{
    OJ_TRY(check_no_settings_of_rows(s, err));
    OJ_TRY(check_settings_of_kept_index(
        s, sides == API_PAIRS_OF_KEPT_POINTS ? "tree" : "tree|changes", "pairs",
        err));
    OJ_TRY(check_values_of_changes(s, err));
    OJ_TRY(check_settings_fit_op(s, err));
    OJ_TRY(check_combinations(s, err));
    return check_option_clashes(s, err);
}

int ogrjoin_settings_check_pairs(const struct ogrjoin_settings *settings,
                                 struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(
        api_settings_check_pairs(settings, API_PAIRS_OF_LAYERS, &why), &why,
        err);
}
