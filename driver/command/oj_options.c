/* The table of options, and how a row of it is found: --help prints it, the
 * tests hold the man page and the completion against it. */
#include "oj_command.h"

#include <stddef.h>
#include <strings.h>

#define AT(field) offsetof(struct oj_command, field)

static const char join[] = "The join";
static const char rows[] = "Who is kept, and what is written";
static const char input_side[] = "Input side (its rows are kept, in order)";
static const char join_side[] = "Join side (its rows are looked up)";
static const char crs[] = "Coordinate reference systems";
static const char output[] = "Output";
static const char in_place[] = "Writing into the input layer";
static const char running[] = "How to run";
static const char proof[] = "Proof and measurement";
static const char messages[] = "Messages";

static const struct oj_option options[] = {
    {join, "op", NULL, "NAME", OJ_OPTION_OP, AT(op), NULL, 0,
     "the join, one of those listed above; default: intersects, but relate "
     "with -relate, window with -window, nearest with -k, -ties or "
     "-distance_to, dwithin with a field of distances"},
    {join, "relate", NULL, "MASK", OJ_OPTION_TEXT, AT(mask), NULL, 0,
     "the join is a DE-9IM pattern: nine of T F * 0 1 2, as T*F**F***"},
    {join, "window", NULL, "XMIN YMIN XMAX YMAX", OJ_OPTION_BOXES, AT(windows),
     NULL, 0,
     "a box of -op window, in the CRS of the join; may be repeated; the boxes "
     "are the join side, numbered from 1, and there is no join_ds"},
    {join, "max_distance", NULL, "D[unit]", OJ_OPTION_DISTANCE,
     AT(max_distance), NULL, 0,
     "only join features within this distance; units m, km, ft, us-ft, mi, "
     "deg, or none for the units of the CRS of the join (the input layer's, or "
     "-t_srs); without this option -op nearest is unbounded"},
    {join, "max_distance_field", NULL, "F[:unit]", OJ_OPTION_TEXT,
     AT(max_distance_field), NULL, 0,
     "-op dwithin: the distance is in this field of the input layer, row by "
     "row, as reach or reach:km; rows where it is NULL or negative match "
     "nothing"},
    {join, "join_max_distance_field", NULL, "F[:unit]", OJ_OPTION_TEXT,
     AT(join_max_distance_field), NULL, 0, "the same, of the join layer"},
    {join, "min_distance", NULL, "D[unit]", OJ_OPTION_DISTANCE,
     AT(min_distance), NULL, 0, "only join features at least so far"},
    {join, "metric", NULL, "planar|sphere", OJ_OPTION_CHOICE, AT(metric),
     "planar|sphere", 0,
     "distances in the plane of the CRS (default), or along great circles, in "
     "metres, where the CRS of the join is in degrees"},
    {join, "k", NULL, "K", OJ_OPTION_COUNT, AT(k), NULL, 1,
     "the K nearest instead of one; adds the column join_rank"},
    {join, "ties", NULL, "first|all", OJ_OPTION_CHOICE, AT(ties), "first|all",
     0,
     "of equally near join features, the ones with the smallest FID "
     "(default), or all"},
    {join, "distance_to", NULL, "interior|boundary", OJ_OPTION_CHOICE,
     AT(distance_to), "interior|boundary", 0,
     "the distance of a point in a polygon is 0 (default), or measured to the "
     "polygon's rings"},
    {join, "on", NULL, "LEFT=RIGHT,...", OJ_OPTION_TEXT, AT(on), NULL, 0,
     "only pairs whose fields have equal values, LEFT of the input layer and "
     "RIGHT of the join layer (one name: both); numbers as numbers, else as "
     "text; NULL equals nothing"},
    {join, "exclude", NULL, "self|same_geometry|field=F", OJ_OPTION_LIST,
     AT(exclude), NULL, 0,
     "leave out pairs with the same FID (done anyway where both sides are one "
     "layer), with an equal geometry (equal centroids with -centroid_of both), "
     "or with equal values in F (or LEFT=RIGHT); may be repeated"},
    {join, "unordered_pairs", NULL, "", OJ_OPTION_FLAG, AT(unordered_pairs),
     NULL, 0, "in a self join each pair once: input FID smaller than join FID"},
    {join, "centroid_of", NULL, "input|join|both", OJ_OPTION_CHOICE,
     AT(centroid_of), "input|join|both", 0,
     "join the centroids of this side's features, taken in the CRS of the "
     "join; the output keeps the features"},
    {join, "point_on_surface_of", NULL, "input|join|both", OJ_OPTION_CHOICE,
     AT(point_on_surface_of), "input|join|both", 0,
     "the same with a point that lies in the feature"},
    {join, "invalid", NULL, "use|skip|fix|fail", OJ_OPTION_CHOICE, AT(invalid),
     "use|skip|fix|fail", 0,
     "polygons that are not valid: take them as they are, untested (default); "
     "as features that join nothing; made valid for the join; or stop at the "
     "first"},

    {rows, "how", NULL, "left|inner|semi|anti|right|full", OJ_OPTION_CHOICE,
     AT(how), "left|inner|semi|anti|right|full", 0,
     "every input row (default; inner with -op window); only rows that match; "
     "those once each, without the join's columns; only rows that do not "
     "match; inner, or left, and then every join row that matches nothing"},
    {rows, "pick", NULL, "RULE", OJ_OPTION_TEXT, AT(pick), NULL, 0,
     "one row per input row, of its pairs the one that is first (smallest "
     "FID), nearest, largest_overlap, smallest_area, largest_area, max:FIELD "
     "or min:FIELD; ties go to the smallest FID"},
    {rows, "agg", NULL, "LIST", OJ_OPTION_TEXT, AT(aggregates), NULL, 0,
     "one row per input row, with aggregates of its pairs' join features: "
     "count, and sum, mean (or avg), min, max, median, stddev, first, last, "
     "mode, unique, concat, weighted_sum of a field, as in \"count, "
     "mean(fare), "
     "concat(name,'; ')\""},
    {rows, "unmatched_layer", NULL, "NAME", OJ_OPTION_TEXT, AT(unmatched_layer),
     NULL, 0,
     "write the input rows that match nothing to this layer of dst_ds, too"},
    {rows, "unmatched_join_layer", NULL, "NAME", OJ_OPTION_TEXT,
     AT(unmatched_join_layer), NULL, 0, "the same for join rows"},
    {rows, "prefix", NULL, "P", OJ_OPTION_TEXT, AT(prefix), NULL, 0,
     "put before names of join fields that the output has already (default "
     "join_)"},
    {rows, "name_fid", NULL, "NAME", OJ_OPTION_TEXT, AT(name_fid), NULL, 0,
     "call the column of the join feature's FID so, not join_fid; \"\": no "
     "such column"},
    {rows, "name_distance", NULL, "NAME", OJ_OPTION_TEXT, AT(name_distance),
     NULL, 0, "the same for join_distance"},
    {rows, "name_rank", NULL, "NAME", OJ_OPTION_TEXT, AT(name_rank), NULL, 0,
     "the same for join_rank"},
    {rows, "name_count", NULL, "NAME", OJ_OPTION_TEXT, AT(name_count), NULL, 0,
     "add a column of this name with the number of the input row's pairs"},
    {rows, "overlap", NULL, "area,length,percent", OJ_OPTION_TEXT, AT(overlap),
     NULL, 0,
     "add columns with the size of the intersection: overlap_area, "
     "overlap_length, overlap_percent (of the input feature)"},
    {rows, "nearest_point_fields", NULL, "", OJ_OPTION_FLAG,
     AT(nearest_point_fields), NULL, 0,
     "add nearest_x and nearest_y: the point of the join feature that is "
     "nearest to the input feature"},
    {rows, "bearing_field", NULL, "", OJ_OPTION_FLAG, AT(bearing_field), NULL,
     0,
     "add join_bearing: the direction to that point, degrees clockwise from "
     "north; on the sphere the one to set out in"},
    {rows, "geometry", NULL, "input|join|nearest_point|connection|intersection",
     OJ_OPTION_CHOICE, AT(geometry),
     "input|join|nearest_point|connection|intersection", 0,
     "the geometry of an output row: the input feature's (default), the join "
     "feature's, the join feature's nearest point, the line to it, or what "
     "both have in common"},

    {input_side, "input_layer", NULL, "NAME", OJ_OPTION_TEXT, AT(input.layer),
     NULL, 0, "the layer, where input_ds has several"},
    {input_side, "where", NULL, "CONDITION|@FILE", OJ_OPTION_TEXT_OR_FILE,
     AT(input.where), NULL, 0, "only rows for which this SQL condition holds"},
    {input_side, "sql", NULL, "STATEMENT|@FILE", OJ_OPTION_TEXT_OR_FILE,
     AT(input.sql), NULL, 0, "the result of this SELECT instead of a layer"},
    {input_side, "dialect", NULL, "NAME", OJ_OPTION_TEXT, AT(input.dialect),
     NULL, 0, "of -sql: OGRSQL, SQLITE or what the driver knows"},
    {input_side, "spat", NULL, "XMIN YMIN XMAX YMAX", OJ_OPTION_BOX, AT(spat),
     NULL, 0, "only rows that touch this box, in the layer's own CRS"},
    {input_side, "select", NULL, "FIELD,...", OJ_OPTION_TEXT, AT(input.select),
     NULL, 0, "only these fields; \"\" for none"},
    {input_side, "limit", NULL, "N", OJ_OPTION_COUNT, AT(limit), NULL, 0,
     "only the first N rows"},
    {input_side, "oo", NULL, "NAME=VALUE", OJ_OPTION_LIST,
     AT(input.open_options), NULL, 0, "open option of the input driver"},

    {join_side, "join_layer", NULL, "NAME", OJ_OPTION_TEXT, AT(join.layer),
     NULL, 0, "the layer, where join_ds has several"},
    {join_side, "join_where", NULL, "CONDITION|@FILE", OJ_OPTION_TEXT_OR_FILE,
     AT(join.where), NULL, 0, "as -where"},
    {join_side, "join_sql", NULL, "STATEMENT|@FILE", OJ_OPTION_TEXT_OR_FILE,
     AT(join.sql), NULL, 0, "as -sql"},
    {join_side, "join_dialect", NULL, "NAME", OJ_OPTION_TEXT, AT(join.dialect),
     NULL, 0, "of -join_sql"},
    {join_side, "join_select", NULL, "FIELD,...", OJ_OPTION_TEXT,
     AT(join.select), NULL, 0, "as -select"},
    {join_side, "joo", NULL, "NAME=VALUE", OJ_OPTION_LIST,
     AT(join.open_options), NULL, 0, "open option of the join driver"},

    {crs, "crs", NULL, "auto|strict|ignore", OJ_OPTION_CHOICE, AT(crs),
     "auto|strict|ignore", 0,
     "two different CRS: reproject the join side and say so (default); stop; "
     "or take the coordinates as they are"},
    {crs, "s_srs", NULL, "CRS", OJ_OPTION_TEXT, AT(input.srs), NULL, 0,
     "the CRS of the input layer, where it has none or a wrong one"},
    {crs, "join_srs", NULL, "CRS", OJ_OPTION_TEXT, AT(join.srs), NULL, 0,
     "the same for the join layer"},
    {crs, "t_srs", NULL, "CRS", OJ_OPTION_TEXT, AT(t_srs), NULL, 0,
     "bring both sides into this CRS; the join, its distances and the output "
     "are in it"},
    {crs, "a_srs", NULL, "CRS", OJ_OPTION_TEXT, AT(a_srs), NULL, 0,
     "write this CRS into the output without changing coordinates"},

    {output, "f", "of", "DRIVER", OJ_OPTION_TEXT, AT(format), NULL, 0,
     "output format; default: by the extension of dst_ds"},
    {output, "nln", NULL, "NAME", OJ_OPTION_TEXT, AT(layer_name), NULL, 0,
     "name of the output layer; default: the input layer's"},
    {output, "dsco", NULL, "NAME=VALUE", OJ_OPTION_LIST, AT(dataset_options),
     NULL, 0, "dataset creation option"},
    {output, "lco", NULL, "NAME=VALUE", OJ_OPTION_LIST, AT(layer_options), NULL,
     0, "layer creation option, e.g. SPATIAL_INDEX=NO"},
    {output, "doo", NULL, "NAME=VALUE", OJ_OPTION_LIST, AT(dst_open_options),
     NULL, 0, "open option of an existing dst_ds"},
    {output, "nlt", NULL, "PROMOTE_TO_MULTI|NONE", OJ_OPTION_CHOICE,
     AT(layer_type), "AS_IS|PROMOTE_TO_MULTI|NONE", 0,
     "write single points, lines and polygons as multi-geometries, for layers "
     "that mix both; or write no geometry"},
    {output, "overwrite", NULL, "", OJ_OPTION_FLAG, AT(overwrite), NULL, 0,
     "replace the layer in an existing dst_ds; the old one stays until the new "
     "one is complete"},
    {output, "append", NULL, "", OJ_OPTION_FLAG, AT(append), NULL, 0,
     "add rows to an existing layer, fields by name"},
    {output, "update", NULL, "", OJ_OPTION_FLAG, AT(update), NULL, 0,
     "add a new layer to an existing dst_ds"},
    {output, "unsetFid", NULL, "", OJ_OPTION_FLAG, AT(unset_fid), NULL, 0,
     "let the output number its rows, instead of keeping the input's FIDs"},
    {output, "write_spec", NULL, "FILE.ogrjoin", OJ_OPTION_TEXT, AT(write_spec),
     NULL, 0,
     "save the words as a dataset that every GDAL program opens, and do not "
     "run "
     "the join; takes no dst_ds"},

    {in_place, "in_place", NULL, "", OJ_OPTION_FLAG, AT(in_place), NULL, 0,
     "add the columns to the input layer itself, or refresh them, in one "
     "transaction: ogrjoin -in_place [options] input_ds join_ds"},
    {in_place, "in_place_unsafe", NULL, "", OJ_OPTION_FLAG, AT(in_place_unsafe),
     NULL, 0, "with -in_place: also where the driver has no transactions"},

    {running, "threads", NULL, "N|ALL_CPUS", OJ_OPTION_THREADS, AT(threads),
     NULL, 1,
     "threads of the join; default: the configuration option GDAL_NUM_THREADS, "
     "or ALL_CPUS"},
    {running, "backend", NULL, "NAME", OJ_OPTION_BACKEND, AT(backend), NULL, 0,
     "auto (default) or one of the backends listed below"},
    {running, "gpu", NULL, "N[,N...]|all", OJ_OPTION_GPUS, AT(gpus), NULL, 0,
     "GPUs that share the work, as ogrjoin --devices numbers them; default: 0"},
    {running, "gpu_memory", NULL, "SIZE", OJ_OPTION_BYTES, AT(gpu_memory), NULL,
     0, "memory to use at most on each GPU, as 2G; default: what is free"},
    {running, "gpu_batch", NULL, "N", OJ_OPTION_COUNT, AT(gpu_batch), NULL, 1,
     "input rows that go to a GPU in one piece; default: chosen"},
    {running, "batch", NULL, "N", OJ_OPTION_COUNT, AT(batch), NULL, 1,
     "input rows in flight per batch; default: 262144"},
    {running, "quadrant_size", NULL, "K", OJ_OPTION_COUNT, AT(quadrant_size),
     NULL, 1, "points per quadrant, for backends that group points"},

    {running, "memory", NULL, "SIZE", OJ_OPTION_BYTES, AT(memory), NULL, 0,
     "bound of what is held in memory, as 512M or 4G: a larger join side is "
     "split into tiles on disk"},
    {running, "max_pairs", NULL, "N", OJ_OPTION_COUNT, AT(max_pairs), NULL, 1,
     "stop with an error when there are more pairs"},
    {running, "explain", NULL, "", OJ_OPTION_FLAG, AT(explain), NULL, 0,
     "print what would be done, from a sample of the rows, and do not do it"},

    {proof, "validate", NULL, "[BACKEND]", OJ_OPTION_REFERENCE, AT(validate),
     NULL, 0,
     "join again with geos (default; sphere with -metric sphere) or another "
     "reference and compare every pair and distance; exit code 3 if any "
     "differs"},
    {proof, "validate_report", NULL, "FILE", OJ_OPTION_TEXT,
     AT(validate_report), NULL, 0,
     "with -validate: write the differing rows here, as a layer or CSV by the "
     "extension"},
    {proof, "benchmark", NULL, "", OJ_OPTION_FLAG, AT(benchmark), NULL, 0,
     "time the methods on these two layers and print a table; takes no "
     "dst_ds"},
    {proof, "benchmark_csv", NULL, "FILE", OJ_OPTION_TEXT, AT(benchmark_csv),
     NULL, 0, "with -benchmark: the table as CSV, too"},
    {proof, "benchmark_seconds", NULL, "S", OJ_OPTION_SECONDS,
     AT(benchmark_seconds), NULL, 0,
     "with -benchmark: a method that would take longer runs on a sample; "
     "default: 60"},

    {messages, "q", "quiet", "", OJ_OPTION_FLAG, AT(quiet), NULL, 0,
     "no progress, no notices, no summary; warnings and errors stay"},
    {messages, "progress", NULL, "", OJ_OPTION_FLAG, AT(progress), NULL, 0,
     "show progress; default: when the output is a terminal"},
    {messages, "json_summary", NULL, "FILE", OJ_OPTION_TEXT, AT(json_summary),
     NULL, 0, "write the summary for machines"},
    {messages, "help", "h", "", OJ_OPTION_FLAG, AT(help), NULL, 0,
     "show this text"},
};

_Static_assert(sizeof options / sizeof *options <= OJ_MAX_OPTIONS,
               "struct oj_command.given holds one mark per option");

const struct oj_option *oj_option_at(int i)
{
    int n = (int)(sizeof options / sizeof *options);
    return i >= 0 && i < n ? &options[i] : NULL;
}

int oj_option_find(const char *name)
{
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        if (strcasecmp(option->name, name) == 0)
            return i;
        if (option->alias != NULL && strcasecmp(option->alias, name) == 0)
            return i;
    }
    return -1;
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

int oj_option_words(const struct oj_option *option)
{
    if (option->kind == OJ_OPTION_FLAG || option->kind == OJ_OPTION_REFERENCE)
        return 0;
    if (option->kind == OJ_OPTION_BOX || option->kind == OJ_OPTION_BOXES)
        return 4;
    return 1;
}

int oj_command_given(const struct oj_command *command, const char *name)
{
    int row = oj_option_find(name);
    return row >= 0 && command->given[row];
}
