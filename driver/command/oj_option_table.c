#include "oj_option_table.h"

#include "../../algs/api/rows/oj_row_words.h"
#include "../../flatten/text/oj_spelling.h"
#include "../../flatten/text/oj_token_sets.h"
#include "../base/oj_shell_words.h"
#include "oj_parsed_command.h"

#include <cpl_string.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define VALUE(type, field)                                                     \
    .kind = OJ_OPTION_##type, .offset = offsetof(struct oj_command, field)

static const char join[] = "The join";
static const char rows[] = "Rows and columns of the output";
static const char input_side[] =
    "Input side (the output keeps its rows and their order)";
static const char join_side[] = "Join side (its rows are looked up)";
static const char crs[] = "Coordinate reference systems";
static const char output[] = "Output";
static const char in_place[] = "Writing into the input layer";
static const char events[] = "Events of a stream of reports";
static const char running[] = "How to run";
static const char proof[] = "Proof and measurement";
static const char messages[] = "Messages";

/* Values of oj_option.not_read: reasons why a dataset does not accept an
 * option. */
static const char writes_rows[] = "the rows are read, not written";
static const char own_run[] = "it is a separate run of the command";
static const char one_layer[] = "the dataset has only the layer of the join";
static const char one_stream[] =
    "events are those of one run over a stream of reports";
static const char at_end[] = "what is left out is reported at the end of a run";

static const struct oj_option options[] = {
    {join, "op", "NAME",
     "the join, one of those listed above; default: intersects; relate with "
     "-relate, window with -window, nearest with -k, -ties or -distance_to, "
     "dwithin with a field of distances; similar with -similar or -vector "
     "alone",
     VALUE(OP, relation.op)},
    {join, "window", "XMIN YMIN XMAX YMAX",
     "a box of -op window, in the CRS of the join; may be repeated; the boxes "
     "are the join side, numbered from 1, and there is no join_ds",
     VALUE(BOXES, windows), .ops = "window"},
    {join, "max_distance_field", "F[:unit]",
     "-op dwithin: the distance is in this field of the input layer, row by "
     "row, as reach or reach:km (a name with : in double quotes); rows where "
     "it is NULL or negative match nothing",
     VALUE(TEXT, max_distance_field), .ops = "dwithin"},
    {join, "join_max_distance_field", "F[:unit]",
     "as -max_distance_field, for a field of the join layer",
     VALUE(TEXT, join_max_distance_field), .ops = "dwithin"},
    {join, "on", "LEFT=RIGHT,...",
     "only pairs whose fields have equal values: LEFT of the input layer, "
     "RIGHT of the join layer (one name: both; a name with = or a comma in "
     "double quotes); numbers are compared as numbers, other values as text; "
     "NULL equals nothing",
     VALUE(TEXT, on), .once = "write one list, as -on a=b,c=d"},
    {join, "within_time", "LEFT[=RIGHT]:WINDOW",
     "only pairs whose times are at most WINDOW apart: the field LEFT of the "
     "input layer and RIGHT of the join layer (one name: both), as "
     "seen=departed:30min; dates, times, datetimes in UTC (ms, s, min, h, d, "
     "w), or numbers (a number without unit); names with : = in double quotes; "
     "NULL matches nothing",
     VALUE(TEXT, within_time), .once = "a pair has one window"},
    {join, "during", "FROM..UNTIL[=FROM..UNTIL][:RELATION]",
     "only pairs whose spans of time (or numbers) have the relation of Allen, "
     "which is that of the input feature to the join feature: intersects "
     "(default), "
     "before, meets, overlaps, starts, during, finishes, equals, finished_by, "
     "contains, started_by, overlapped_by, met_by, after, or several with + "
     "between them; as came..left=opened..closed:during; one field is an "
     "instant; NULL is an open end",
     VALUE(TEXT, during), .once = "a pair has one relation of spans"},
    {join, "heading", "F[:TOLERANCE]",
     "of lines and rings of the join layer only the segments count whose "
     "direction differs from this field of the input layer, degrees clockwise "
     "from north, by at most TOLERANCE degrees (default 45), as course:30; "
     "NULL: all segments count",
     VALUE(TEXT, heading), .ops = "nearest|dwithin",
     .once = "a point has one heading"},
    {join, "heading_both_ways", "",
     "with -heading: the reverse direction of a segment may fit, too",
     VALUE(FLAG, relation.heading.both_ways), .ops = "nearest|dwithin",
     .needs = "heading"},
    {join, "exclude", "self|same_geometry|field=F",
     "leave out pairs with equal FIDs (always in a self join), with equal "
     "geometries (equal centroids with -centroid_of both), or with equal "
     "values in F (or LEFT=RIGHT); may be repeated",
     VALUE(LIST, exclude), .choices = "self|same_geometry|field="},
    {join, "unordered_pairs", "",
     "self join: each pair once, with the input FID smaller than the join "
     "FID",
     VALUE(FLAG, unordered_pairs)},
    {join, "similar", "LEFT[=RIGHT][:T]",
     "only pairs with similar texts: fields LEFT of the input layer and "
     "RIGHT of the join layer (one name: both) have a similarity of at least "
     "T, from 0 to 1, as name=NAME:0.6 or name:3/4; a+b joins fields with a "
     "space; names with : + = need double quotes; may be repeated; without "
     "another join: -op similar",
     VALUE(LIST, similar)},
    {join, "min_similarity", "T", "the T of each -similar without one",
     VALUE(TEXT, min_similarity), .needs = "similar"},
    {join, "measure", OJ_TEXT_MEASURE_NAMES,
     "similarity of two sets of tokens: common tokens divided by all tokens "
     "(default), by the mean of both sizes, by the geometric mean, or by the "
     "smaller size",
     VALUE(CHOICE, measure), .needs = "similar"},
    {join, "tokens", OJ_TOKEN_NAMES,
     "tokens of a text: three letters of each word, including its ends, like "
     "pg_trgm (default), words, or sequences of this many letters",
     VALUE(CHOICE, tokens), .needs = "similar"},
    {join, "fold", OJ_FOLD_NAMES,
     "differences between texts that are ignored: case, accents, marks and "
     "spaces (default), only case, or none",
     VALUE(CHOICE, fold), .needs = "similar"},
    {join, "word_map", "FILE",
     "a CSV file of two columns, a word and its replacement (or nothing), as "
     "street,st",
     VALUE(FILE, word_map), .needs = "similar"},
    {join, "vector", "F[:WEIGHT]+..[=..]",
     "only pairs with similar vectors: the numbers of these fields, each "
     "times its weight, or one field of lists; of the input layer and, after "
     "=, of the join layer (default: equal names), as price:0.001+area+rooms "
     "or emb=EMB; without another join: -op similar",
     VALUE(TEXT, vector), .once = "put the fields together, as a+b"},
    {join, "norm", OJ_NORM_NAMES,
     "difference of two vectors: root of the sum of squared differences "
     "(default), sum of absolute differences, greatest difference, or 1 "
     "minus the cosine",
     VALUE(CHOICE, relation.vector.norm), .needs = "vector"},
    {join, "max_difference", "D",
     "greatest difference of the vectors of a pair",
     VALUE(TEXT, max_difference), .needs = "vector"},
    {join, "centroid_of", "input|join|both",
     "join the centroids of this side's features, computed in the CRS of the "
     "join; the output keeps the features",
     VALUE(CHOICE, centroid_of)},
    {join, "point_on_surface_of", "input|join|both",
     "as -centroid_of, with a point that lies in the feature",
     VALUE(CHOICE, point_on_surface_of)},
    {join, "invalid", "use|skip|fix|fail",
     "polygons that are not valid: use them untested (default); skip them, "
     "so that they match nothing; make them valid for the join; or stop at "
     "the first",
     VALUE(CHOICE, invalid)},

    {rows, "how", OJ_HOW_WORDS,
     "left: every input row (default; inner with -op window); inner: one row "
     "per pair; semi: input rows that match, once each, without the join's "
     "columns; anti: input rows that do not match; right: as inner, then the "
     "join rows that match nothing; full: as left, then the join rows that "
     "match nothing",
     VALUE(CHOICE, how)},
    {rows, "pick", "RULE",
     "one row per input row, with one of its pairs: first (smallest FID), "
     "nearest, largest_overlap, smallest_area, largest_area, most_similar, "
     "max:FIELD or min:FIELD; ties go to the smallest FID",
     VALUE(TEXT, pick), .choices = OJ_PICK_WORDS},
    {rows, "one_to_one", "[" OJ_ONE_TO_ONE_WORDS "]",
     "keep pairs such that each feature of either side has at most one "
     "partner, best pairs first: by similarity, difference, then distance, "
     "if the join has them, then in the order of the input layer, then of "
     "join FIDs; in a self join each feature occurs once per side; reads the "
     "input twice; best: as many pairs as there can be, with the greatest sum "
     "of similarities, then the least of differences, then of distances",
     VALUE(FLAG_OR_WORD, one_to_one), .choices = OJ_ONE_TO_ONE_WORDS},
    {rows, "agg", "LIST",
     "one row per input row, with aggregates of its pairs: count, and sum, "
     "mean (or avg), min, max, range, median, percentile, q1, q3, stddev, "
     "variance, first, last, mode, minority, unique, concat, weighted_sum, "
     "weighted_mean of a join field or a column of the pair, and "
     "covered_area, covered_percent, covered_length, as in \"count, "
     "mean(fare), concat(name,'; '), percentile(fare, 90), "
     "mean(join_distance)\"",
     VALUE(TEXT, aggregates),
     .once = "write one list, as -agg \"count, sum(a)\""},
    {rows, "unmatched_layer", "NAME",
     "also write the input rows that match nothing, to this layer of dst_ds",
     VALUE(TEXT, output.unmatched_layer), .not_read = one_layer},
    {rows, "unmatched_join_layer", "NAME", "as -unmatched_layer, for join rows",
     VALUE(TEXT, output.unmatched_join_layer), .not_read = one_layer},
    {rows, "prefix", "P",
     "prefix for join fields whose names are in use (default join_)",
     VALUE(TEXT, prefix)},
    {rows, "name_fid", "NAME",
     "name of the column with the join feature's FID, instead of join_fid; "
     "\"\": no such column",
     VALUE(TEXT, name_fid)},
    {rows, "name_distance", "NAME", "as -name_fid, for join_distance",
     VALUE(TEXT, name_distance)},
    {rows, "name_similarity", "NAME",
     "as -name_fid, for join_similarity; further -similar get _2, _3, ..",
     VALUE(TEXT, name_similarity), .needs = "similar"},
    {rows, "name_difference", "NAME", "as -name_fid, for join_difference",
     VALUE(TEXT, name_difference), .needs = "vector"},
    {rows, "name_rank", "NAME", "as -name_fid, for join_rank",
     VALUE(TEXT, name_rank)},
    {rows, "name_count", "NAME",
     "add a column of this name with the number of the input row's pairs",
     VALUE(TEXT, name_count)},
    {rows, "overlap", "area,length,percent,iou,input_area,join_area",
     "add columns with the size of the intersection: overlap_area, "
     "overlap_length, overlap_percent (of the input feature), overlap_iou (of "
     "the union of both); and input_area, join_area of the features themselves",
     VALUE(TEXT, overlap), .choices = OJ_OVERLAP_WORDS,
     .once = "write one list, as -overlap area,percent"},
    {rows, "nearest_point_fields", "",
     "add nearest_x and nearest_y: the point of the join feature that is "
     "nearest to the input feature",
     VALUE(FLAG, nearest_point_fields)},
    {rows, "bearing_field", "",
     "add join_bearing: the direction from the input feature to the nearest "
     "point of the join feature, degrees clockwise from north; on the sphere "
     "the initial direction",
     VALUE(FLAG, bearing_field)},
    {rows, "along_field", "NAME",
     "add a column of this name: the distance along the join feature (a line, "
     "or the rings of a polygon) from its start to the place nearest to the "
     "input feature, in units of distances (linear referencing)",
     VALUE(TEXT, named[OJ_PAIR_ALONG - OJ_FIRST_NAMED_PAIR_VALUE]),
     .ops = OJ_LINE_OPS},
    {rows, "along", OJ_ALONG_WORDS,
     "what -along_field holds: the length (default), or the measure from the M "
     "values of the line's vertices, interpolated between two of them",
     VALUE(CHOICE, along), .ops = OJ_LINE_OPS},
    {rows, "along_percent_field", "NAME",
     "as -along_field, in percent of the whole length",
     VALUE(TEXT, named[OJ_PAIR_ALONG_PERCENT - OJ_FIRST_NAMED_PAIR_VALUE]),
     .ops = OJ_LINE_OPS},
    {rows, "offset_field", "NAME",
     "add a column of this name: the distance of the input feature from that "
     "place (see -along_field), positive on the left of the line, negative on "
     "the right",
     VALUE(TEXT, named[OJ_PAIR_OFFSET - OJ_FIRST_NAMED_PAIR_VALUE]),
     .ops = OJ_LINE_OPS},
    {rows, "side_field", "NAME",
     "add a column of this name: the side of the line on which the input "
     "feature is: left, right or on",
     VALUE(TEXT, named[OJ_PAIR_SIDE - OJ_FIRST_NAMED_PAIR_VALUE]),
     .ops = OJ_LINE_OPS},
    {rows, "segment_field", "NAME",
     "add a column of this name: the number of the line's segment that is "
     "nearest to the input feature; the first is 1",
     VALUE(TEXT, named[OJ_PAIR_SEGMENT - OJ_FIRST_NAMED_PAIR_VALUE]),
     .ops = OJ_LINE_OPS},
    {rows, "line_bearing_field", "NAME",
     "add a column of this name: the direction of that segment (see "
     "-segment_field), degrees clockwise from north; on the sphere the "
     "direction at its start",
     VALUE(TEXT, named[OJ_PAIR_LINE_BEARING - OJ_FIRST_NAMED_PAIR_VALUE]),
     .ops = OJ_LINE_OPS},
    {rows, "matrix_field", "NAME",
     "add a column of this name: the DE-9IM matrix of the two features, as "
     "212101212",
     VALUE(TEXT, named[OJ_PAIR_MATRIX - OJ_FIRST_NAMED_PAIR_VALUE])},
    {rows, "relation_field", "NAME",
     "add a column of this name: the first of equals, contains, within, "
     "touches, crosses, overlaps, intersects, disjoint that holds",
     VALUE(TEXT, named[OJ_PAIR_RELATION - OJ_FIRST_NAMED_PAIR_VALUE])},
    {rows, "geometry", OJ_ROW_GEOMETRY_WORDS,
     "the geometry of an output row: the input feature's (default), the join "
     "feature's, the join feature's nearest point, the line to it, or the "
     "intersection of both features",
     VALUE(CHOICE, geometry)},

    {input_side, "input_layer", "NAME",
     "name of the layer, if input_ds has several", VALUE(TEXT, input.layer)},
    {input_side, "input_geometry", "NAME",
     "the column of geometries: one of several, or a field with WKT, or with "
     "WKB as bytes or hexadecimal digits; default: the first geometry column",
     VALUE(TEXT, input.geometry)},
    {input_side, "where", "CONDITION|@FILE",
     "only rows for which this SQL condition holds",
     VALUE(TEXT_OR_FILE, input.where),
     .once = "write one condition, as -where \"a > 1 AND b = 2\""},
    {input_side, "sql", "STATEMENT|@FILE",
     "the result of this SELECT instead of a layer",
     VALUE(TEXT_OR_FILE, input.sql)},
    {input_side, "dialect", "NAME",
     "SQL dialect of -sql: OGRSQL, SQLITE or one of the driver's",
     VALUE(TEXT, input.dialect), .needs = "sql"},
    {input_side, "spat", "XMIN YMIN XMAX YMAX",
     "only rows that intersect this box, in the layer's own CRS",
     VALUE(BOX, spat)},
    {input_side, "select", "FIELD,...",
     "only these fields (a name with a comma in double quotes); \"\" for none",
     VALUE(TEXT, input.select), .once = "write one list, as -select a,b"},
    {input_side, "limit", "N", "only the first N rows", VALUE(COUNT, limit)},
    {input_side, "oo", "NAME=VALUE", "open option of the input driver",
     VALUE(LIST, input.open_options)},

    {join_side, "join_layer", "NAME",
     "name of the layer, if join_ds has several", VALUE(TEXT, join.layer)},
    {join_side, "join_geometry", "NAME", "as -input_geometry",
     VALUE(TEXT, join.geometry)},
    {join_side, "join_where", "CONDITION|@FILE", "as -where",
     VALUE(TEXT_OR_FILE, join.where),
     .once = "write one condition, as -join_where \"a > 1 AND b = 2\""},
    {join_side, "join_sql", "STATEMENT|@FILE", "as -sql",
     VALUE(TEXT_OR_FILE, join.sql)},
    {join_side, "join_dialect", "NAME", "SQL dialect of -join_sql",
     VALUE(TEXT, join.dialect), .needs = "join_sql"},
    {join_side, "join_select", "FIELD,...", "as -select",
     VALUE(TEXT, join.select), .once = "write one list, as -join_select a,b"},
    {join_side, "joo", "NAME=VALUE", "open option of the join driver",
     VALUE(LIST, join.open_options)},

    {crs, "crs", "auto|strict|ignore",
     "if the layers have different CRS: reproject the join side, with a "
     "notice (default); stop; or use the coordinates unchanged",
     VALUE(CHOICE, crs)},
    {crs, "s_srs", "CRS",
     "the CRS of the input layer, if it has none or a wrong one",
     VALUE(TEXT, input.srs)},
    {crs, "join_srs", "CRS", "as -s_srs, for the join layer",
     VALUE(TEXT, join.srs)},
    {crs, "t_srs", "CRS",
     "reproject both sides to this CRS; the join, its distances and the "
     "output are in it",
     VALUE(TEXT, t_srs)},
    {crs, "a_srs", "CRS",
     "write this CRS into the output without changing coordinates",
     VALUE(TEXT, a_srs)},

    {output, "f", "DRIVER",
     "output format; default: by the extension of dst_ds",
     VALUE(TEXT, output.format), .alias = "of", .not_read = writes_rows},
    {output, "nln", "NAME",
     "name of the output layer; default: the input layer's",
     VALUE(TEXT, output.layer)},
    {output, "dsco", "NAME=VALUE", "dataset creation option",
     VALUE(LIST, output.dataset_options), .not_read = writes_rows},
    {output, "lco", "NAME=VALUE",
     "layer creation option, e.g. SPATIAL_INDEX=NO",
     VALUE(LIST, output.layer_options), .not_read = writes_rows},
    {output, "doo", "NAME=VALUE", "open option of an existing dst_ds",
     VALUE(LIST, output.open_options), .not_read = writes_rows},
    {output, "nlt", "AS_IS|PROMOTE_TO_MULTI|NONE|POLYGON|LINESTRING|POINT",
     "write geometries with the types that they have (default); single points, "
     "lines and polygons as multi-geometries, for layers that mix both; or no "
     "geometry; or, with -geometry intersection, only its polygons, lines or "
     "points, as multi-geometries, without the pairs that have none",
     VALUE(CHOICE, output.layer_type),
     .choices = "AS_IS|PROMOTE_TO_MULTI|NONE|" OJ_ROW_PART_WORDS},
    {output, "overwrite", "",
     "replace the layer in an existing dst_ds; the old one remains until the "
     "new one is complete",
     VALUE(FLAG, output.overwrite), .not_read = writes_rows},
    {output, "append", "",
     "add rows to an existing layer; fields are matched by name",
     VALUE(FLAG, output.append), .not_read = writes_rows},
    {output, "update", "", "add a new layer to an existing dst_ds",
     VALUE(FLAG, output.update), .not_read = writes_rows},
    {output, "unsetFid", "",
     "let the output number its rows, instead of keeping the input's FIDs",
     VALUE(FLAG, output.unset_fid)},
    {output, "write_spec", "FILE.ogrjoin",
     "save the options and inputs as a dataset that every GDAL program "
     "opens, without running the join; takes no dst_ds",
     VALUE(TEXT, write_spec), .not_read = own_run},

    {in_place, "in_place", "",
     "add the columns to the input layer itself, or refresh them, in one "
     "transaction: ogrjoin -in_place [options] input_ds join_ds",
     VALUE(FLAG, in_place), .not_read = writes_rows},
    {in_place, "in_place_unsafe", "",
     "with -in_place: also where the driver has no transactions",
     VALUE(FLAG, in_place_unsafe), .needs = "in_place",
     .not_read = writes_rows},

    {events, "events", "[all]",
     "take the input rows as reports, in the order of reading: write a row, "
     "with a column event, for each join feature that a key has entered or "
     "left since its last report (enter, exit; with -op nearest change); all: "
     "also for each feature that it stays in (stay)",
     VALUE(FLAG_OR_WORD, events), .choices = "all", .not_read = one_stream},
    {events, "key", "FIELD",
     "the field of the input layer that identifies what moves, a text or an "
     "integer, as vehicle; reports without a key or a geometry are counted and "
     "change nothing",
     VALUE(TEXT, key), .needs = "events", .not_read = one_stream},
    {events, "state", "FILE",
     "continue from this file, which an earlier run has written, and write it "
     "again at the end; a file that does not exist is an empty state",
     VALUE(TEXT, state), .needs = "events", .not_read = one_stream},
    {events, "flush", "SECONDS",
     "for reports in CSV or GeoJSONSeq on /vsistdin/: the longest time until a "
     "report is joined and its events are written, as 1s (default) or 200ms",
     VALUE(SECONDS, flush), .needs = "events", .not_read = one_stream},
    {events, "skipfailures", "",
     "leave out and count the reports on /vsistdin/ that cannot be read, and "
     "rows whose field of -input_geometry or -join_geometry holds no geometry; "
     "without this option the first of them ends the run",
     VALUE(FLAG, skip_failures), .not_read = at_end},

    {running, "threads", "N|ALL_CPUS",
     "threads of the join; default: the configuration option GDAL_NUM_THREADS, "
     "or ALL_CPUS",
     VALUE(THREADS, threads), .choices = "ALL_CPUS", .minimum = 1,
     .maximum = OJ_MAX_THREADS},
    {running, "backend", "NAME",
     "auto (default) or one of the backends listed below",
     VALUE(BACKEND, backend)},
    {running, "gpu", "N[,N...]|all",
     "GPUs that share the work, as ogrjoin --devices numbers them; default: 0",
     VALUE(GPUS, gpus), .choices = "all|0"},
    {running, "gpu_memory", "SIZE",
     "maximum memory to use on each GPU, as 2G; default: the free memory",
     VALUE(BYTES, gpu_memory)},
    {running, "gpu_batch", "N",
     "input rows per transfer to a GPU; default: chosen automatically",
     VALUE(COUNT, gpu_batch), .minimum = 1},
    {running, "batch", "N", "input rows per batch; default: 262144",
     VALUE(COUNT, batch), .minimum = 1, .maximum = INT32_MAX},
    {running, "quadrant_size", "K",
     "points per quadrant, for backends that group points",
     VALUE(COUNT, quadrant_size), .minimum = 1},
    {running, "memory", "SIZE",
     "maximum memory, as 512M or 4G: a larger join side is split into tiles "
     "on disk",
     VALUE(BYTES, memory)},
    {running, "max_pairs", "N", "stop with an error if there are more pairs",
     VALUE(COUNT, max_pairs), .minimum = 1},
    {running, "explain", "",
     "describe what a run would do, from a sample of the rows, without "
     "running it",
     VALUE(FLAG, explain), .not_read = own_run},

    {proof, "validate", "[BACKEND]",
     "join again with geos (default; with -metric sphere or ellipsoid that of "
     "this name, lists with -op similar) or another reference and compare "
     "every pair and distance; "
     "exit code 3 if any differs",
     VALUE(REFERENCE, validate), .not_read = own_run},
    {proof, "validate_report", "FILE",
     "with -validate: write the rows that differ to this layer or CSV file, "
     "by its extension",
     VALUE(TEXT, validate_report), .needs = "validate", .not_read = own_run},
    {proof, "benchmark", "",
     "time the methods on these two layers and print a table; takes no dst_ds",
     VALUE(FLAG, benchmark), .not_read = own_run},
    {proof, "benchmark_csv", "FILE",
     "with -benchmark: also write the table as CSV", VALUE(TEXT, benchmark_csv),
     .needs = "benchmark", .not_read = own_run},
    {proof, "benchmark_seconds", "S",
     "with -benchmark: a method that would take longer runs on a sample; "
     "default: 60",
     VALUE(SECONDS, benchmark_seconds), .needs = "benchmark",
     .not_read = own_run},

    {messages, "q", "",
     "no progress, notices or summary; warnings and errors are printed",
     VALUE(FLAG, quiet), .alias = "quiet"},
    {messages, "progress", "",
     "show progress; default: when the output is a terminal",
     VALUE(FLAG, progress)},
    {messages, "json_summary", "FILE", "write the summary as JSON",
     VALUE(TEXT, json_summary), .not_read = writes_rows},
    {messages, "help", "",
     "show this text; with a word after it, as --help agg, only what the word "
     "is about",
     VALUE(FLAG, help), .alias = "h", .not_read = own_run},
};

enum
{
    N_BEFORE = 2 /* number of rows before those generated from
                    oj_parameter_at(): -op, -window */
};

static struct oj_option table[OJ_MAX_OPTIONS];
static int n_options;
static pthread_once_t is_made = PTHREAD_ONCE_INIT;

static struct oj_option
option_of_parameter(const struct oj_parameter *parameter)
{
    return (struct oj_option){
        join,
        parameter->name,
        parameter->arguments,
        parameter->option_help != NULL ? parameter->option_help
                                       : parameter->help,
        .kind = (enum oj_option_kind)parameter->kind,
        .offset = offsetof(struct oj_command, relation) + parameter->offset,
        .minimum = (int64_t)parameter->least,
        .maximum = (int64_t)fmin(parameter->most, 1e18),
        .ops = parameter->ops};
}

static void make_option_table(void)
{
    const struct oj_parameter *parameter;
    int n = (int)(sizeof options / sizeof *options);
    for (int i = 0; i < n; i++)
    {
        table[n_options++] = options[i];
        for (int j = 0;
             i + 1 == N_BEFORE && (parameter = oj_parameter_at(j)) != NULL; j++)
            table[n_options++] = option_of_parameter(parameter);
    }
}

const struct oj_option *oj_option_at(int i)
{
    pthread_once(&is_made, make_option_table);
    return i >= 0 && i < n_options ? &table[i] : NULL;
}

int oj_option_find(const char *name)
{
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        if (strcasecmp(option->name, name) == 0 ||
            (option->alias != NULL && strcasecmp(option->alias, name) == 0))
            return i;
    }
    return -1;
}

const char *oj_option_choices(const struct oj_option *option)
{
    return option->choices != NULL ? option->choices : option->arguments;
}

const char *oj_option_choice_word(const struct oj_option *option, int value)
{
    int n = 0;
    const char *word = oj_words_at(oj_option_choices(option), value, &n);
    return oj_words_excerpt(word, (size_t)n);
}

int oj_word_is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

const struct oj_option *oj_option_of_word(const char *word)
{
    return oj_word_is_option(word)
               ? oj_option_at(oj_option_find(word + 1 + (word[1] == '-')))
               : NULL;
}

int oj_option_is_of_join_side(const struct oj_option *option)
{
    return option->group == join || option->group == join_side ||
           option->group == running;
}

int oj_option_is_of_pairs(const struct oj_option *option)
{
    return option->group == join || option->group == crs;
}

int oj_option_count_words(const struct oj_option *option)
{
    if (option->kind == OJ_OPTION_FLAG || option->kind == OJ_OPTION_REFERENCE ||
        option->kind == OJ_OPTION_FLAG_OR_WORD)
        return 0;
    if (option->kind == OJ_OPTION_BOX || option->kind == OJ_OPTION_BOXES)
        return 4;
    return 1;
}

/* ---- options of other tools ---------------------------------------------- */

/* General options of GDAL's programs, which have two dashes. */
#define OF_GDAL "debug|config|formats|optfile|version|devices"

int oj_option_is_of_gdal(const char *word)
{
    return oj_words_find(OF_GDAL, word + 1 + (word[1] == '-')) >= 0;
}

/* Options of other tools, and what to write here instead. */
static const struct
{
    const char *words, *instead;
} options_of_other_tools[] = {
    {"predicate", "write -op NAME"},
    {"left|inner|outer|right|full|semi|anti",
     "write -how left, inner, semi, anti, right or full"},
    {"distance|dist|radius|buffer", "write -max_distance D[unit]"},
    {"makevalid", "write -invalid fix"},
    {"clipsrc",
     "-spat selects the rows that intersect a box, -geometry intersection "
     "writes the intersection of two features"},
    {"spat_srs", "the box of -spat is in the layer's own CRS"},
    {"geomfield", "-input_geometry and -join_geometry name the column"},
    {"fid", "write -where \"fid = N\", with the name of the FID column"},
    {"preserve_fid", "FIDs are kept if no input row gives two rows"},
    {"ds_transaction", "the output is always written in one transaction"},
    {"join_spat|join_limit", "-join_where or -join_sql chooses join rows"},
    {"layer", "write -input_layer NAME or -join_layer NAME"},
    {"group_by", "-agg makes one row per input row"},
    {"force", "write -overwrite"},
    {"o|out|output",
     "the destination is the first argument that is not an option"},
    {"verbose", "write --debug on"},
    {OF_GDAL, "write it with two dashes"},
    {"format", "write -f DRIVER, or --format DRIVER for a description"},
};

/* Options of ogr2ogr that change a layer. ogrjoin lacks them; the hint is to
 * run ogr2ogr on the join. */
static const char of_ogr2ogr[] =
    "addfields|clipdst|clipsrclayer|clipsrcsql|clipsrcwhere|ct|dateTimeTo|"
    "dim|emptyStrAsNull|explodecollections|fieldmap|fieldTypeToString|"
    "forceNullable|gcp|gt|lang|mapFieldType|mo|nomd|noNativeData|order|"
    "relaxedFieldNameMatch|resolveDomains|s_coord_epoch|segmentize|"
    "simplify|t_coord_epoch|tps|unsetDefault|unsetFieldWidth|upsert|"
    "wrapdateline|datelineoffset|xyRes|zfield";

/* Copies a name without "_" and "-", because users confuse these. */
static void strip_word_separators(const char *name, size_t n, char *out,
                                  size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < n && used + 1 < size; i++)
    {
        if (name[i] != '_' && name[i] != '-')
            out[used++] = name[i];
    }
    out[used] = '\0';
}

/* Returns the option whose name differs from name in the fewest letters; NULL
 * if more than `most` letters differ. */
static const char *closest_spelled_option(const char *name, size_t n, int most)
{
    const struct oj_option *option;
    const char *best = NULL;
    char word[64], here[64];
    int least = most + 1;
    strip_word_separators(name, n, word, sizeof word);
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        int distance;
        strip_word_separators(option->name, strlen(option->name), here,
                              sizeof here);
        distance = oj_spelling_distance(word, here);
        if (distance < least && distance < (int)strlen(word))
        {
            best = option->name;
            least = distance;
        }
    }
    return best;
}

void oj_option_hint(const char *word, char *text, size_t size)
{
    const char *name = word + 1 + (word[1] == '-');
    size_t n = strcspn(name, "=");
    const char *instead = NULL;
    /* A name with more than 2 wrong letters is probably no typing error. */
    const char *nearest =
        closest_spelled_option(name, n, name[n] == '=' ? 0 : 2);
    for (size_t i = 0;
         i < sizeof options_of_other_tools / sizeof *options_of_other_tools;
         i++)
    {
        if (oj_words_find(options_of_other_tools[i].words, name) >= 0)
            instead = options_of_other_tools[i].instead;
    }
    if (name[n] == '=' && nearest != NULL)
        snprintf(text, size, "; write -%s %.100s, with a space", nearest,
                 name + n + 1);
    else if (instead != NULL)
        snprintf(text, size, ": %s (ogrjoin --help lists all)", instead);
    else if (oj_words_find(of_ogr2ogr, name) >= 0)
        snprintf(text, size,
                 ": it is one of ogr2ogr, which reads joins, too: ogr2ogr "
                 "-%s ... dst_ds 'JOIN:[options] input_ds join_ds'",
                 name);
    else if (nearest != NULL)
        snprintf(text, size, "; did you mean -%s? (ogrjoin --help lists all)",
                 nearest);
    else
        snprintf(text, size, "; ogrjoin --help lists all");
}
