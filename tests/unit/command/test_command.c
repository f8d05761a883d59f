/* The parser of command lines: a table of lines and their meaning, errors and
 * their texts, and combinations of options.
 * Kind: unit. */
#include "../run_tests.h"

#include "../../../algs/api/rows/oj_option_clash.h"
#include "../../../driver/base/oj_message.h"
#include "../../../driver/base/oj_shell_words.h"
#include "../../../driver/command/oj_option_table.h"
#include "../../../driver/command/oj_parsed_command.h"
#include "../../../flatten/base/oj_alloc.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Splits the line into words as a shell does, and parses them. Returns a
 * status. */
static oj_status parse(const char *line, struct oj_command *command,
                       struct oj_error *err)
{
    char **words;
    int n;
    oj_status status;
    OJ_TRY(oj_words_split(line, &words, &n, err));
    status = oj_command_parse(n, (const char *const *)words, command, err);
    oj_free(words);
    return status;
}

static struct oj_command must_parse(const char *line)
{
    struct oj_command command;
    struct oj_error err = {OJ_OK, ""};
    if (parse(line, &command, &err) != OJ_OK)
        ck_abort_msg("%s: %s", line, err.message);
    return command;
}

/* Returns the word of a choice. */
static const char *choice_text(const struct oj_option *option, int value)
{
    const char *choice = oj_option_choices(option);
    for (; value > 0; value--)
        choice += strcspn(choice, "|") + 1;
    return CPLSPrintf("%.*s", (int)strcspn(choice, "|"), choice);
}

static void put_list(char *out, size_t size, const char *const *list)
{
    out[0] = '\0';
    for (; list != NULL && *list != NULL; list++)
        oj_message_append(out, size, "%s%s", out[0] != '\0' ? "," : "", *list);
}

static void put_numbers(char *out, size_t size, const double *number, int64_t n)
{
    out[0] = '\0';
    for (int64_t i = 0; i < n; i++)
        oj_message_append(out, size, "%s%g", i > 0 ? " " : "", number[i]);
}

/* Writes the value of an option as text. name can also be dst, input or join. A
 * value NULL becomes "-". */
static void put_value(const struct oj_command *c, const char *name, char *out,
                      size_t size)
{
    const struct oj_option *option = oj_option_at(oj_option_find(name));
    const void *at = (const char *)c + (option != NULL ? option->offset : 0);
    const char *text = strcmp(name, "dst") == 0     ? c->output.dst
                       : strcmp(name, "input") == 0 ? c->input.dataset
                                                    : c->join.dataset;
    struct oj_distance d;
    switch (option != NULL ? option->kind : OJ_OPTION_OP)
    {
        case OJ_OPTION_DISTANCE:
            d = oj_command_distance(c, name);
            snprintf(out, size, "%g%s", d.value, oj_units[d.unit].name);
            return;
        case OJ_OPTION_FLAG:
            snprintf(out, size, "%d", *(const int *)at);
            return;
        case OJ_OPTION_COUNT:
        case OJ_OPTION_THREADS:
        case OJ_OPTION_BYTES:
            snprintf(out, size, "%lld", *(const long long *)at);
            return;
        case OJ_OPTION_SECONDS:
            put_numbers(out, size, at, 1);
            return;
        case OJ_OPTION_BOX:
            put_numbers(out, size, at, c->has_spat ? 4 : 0);
            return;
        case OJ_OPTION_BOXES:
            put_numbers(out, size, c->windows, 4 * c->n_windows);
            return;
        case OJ_OPTION_LIST:
            put_list(out, size, *(const char *const *const *)at);
            return;
        case OJ_OPTION_CHOICE:
            text = choice_text(option, *(const int *)at);
            break;
        case OJ_OPTION_OP:
            text = option != NULL ? oj_command_op_name(c) : text;
            break;
        default:
            text = *(const char *const *)at;
            break;
    }
    snprintf(out, size, "%s", text != NULL ? text : "-");
}

/* Command lines, and the resulting values of some options. */
TEST(words_and_what_they_mean)
{
    static const char *const cases[][2] = {
        {"-op nearest out.gpkg in.gpkg join.gpkg",
         "op=nearest;max_distance=inf;k=1;ties=first;distance_to=interior;"
         "how=left;prefix=join_;limit=-1;crs=auto;dst=out.gpkg;input=in.gpkg;"
         "join=join.gpkg;input_layer=-;oo=;validate=-;backend=auto;threads=0;"
         "batch=262144;spat="},
        {"-op NEAREST -max_distance 1.5km -k 3 -ties all -distance_to boundary "
         "-how inner -prefix p_ -input_layer a -where x\\ =\\ 1 -spat -1 -2 3 "
         "4 -select n,m -limit 0 -oo A=1 -oo B=2 -join_layer b -join_where y "
         "-join_select '' out in join",
         "max_distance=1.5km;k=3;ties=all;distance_to=boundary;how=inner;"
         "prefix=p_;input_layer=a;where=x = 1;spat=-1 -2 3 4;select=n,m;"
         "limit=0;oo=A=1,B=2;join_layer=b;join_where=y;join_select=;"
         "join_sql=-"},
        {"out in join -op nearest -of GPKG -NLN name -lco X=1 -dsco Y=2 -doo "
         "Z=3 -Overwrite -unsetfid -nlt promote_to_multi -threads ALL_CPUS "
         "-backend QUADRANT -batch 10 -quadrant_size 5 --quiet -json_summary s "
         "-crs ignore -s_srs A -join_srs B -t_srs C -a_srs D",
         "f=GPKG;nln=name;lco=X=1;dsco=Y=2;doo=Z=3;overwrite=1;unsetFid=1;"
         "nlt=PROMOTE_TO_MULTI;threads=0;backend=quadrant;batch=10;"
         "quadrant_size=5;q=1;json_summary=s;crs=ignore;s_srs=A;join_srs=B;"
         "t_srs=C;a_srs=D"},
        {"-exclude self -exclude field=a=b -on x=y,z -invalid fix -centroid_of "
         "both -min_distance 3m -op dwithin -max_distance 1km -max_pairs 9 "
         "-explain a b c",
         "exclude=self,field=a=b;on=x=y,z;invalid=fix;centroid_of=both;"
         "min_distance=3m;max_pairs=9;explain=1"},
        /* each side has its own kind of point; flags and lists may be
         * repeated */
        {"-centroid_of input -point_on_surface_of join -q -q -exclude self "
         "-exclude field=f -lco A=1 -lco B=2 a b c",
         "centroid_of=input;point_on_surface_of=join;exclude=self,field=f;"
         "lco=A=1,B=2"},

        {"-k 1 -max_distance 0 a b c", "max_distance=0"},
        {"-k 1 -max_distance 100 a b c", "max_distance=100"},
        {"-k 1 -max_distance 1e3 a b c", "max_distance=1000"},
        {"-k 1 -max_distance .5 a b c", "max_distance=0.5"},
        {"-k 1 -max_distance 100ft a b c", "max_distance=100ft"},
        {"-k 1 -max_distance 100us-ft a b c", "max_distance=100us-ft"},
        {"-k 1 -max_distance 1e3m a b c", "max_distance=1000m"},
        {"-k 1 -max_distance 2KM a b c", "max_distance=2km"},
        {"-k 1 -max_distance 0.25mi a b c", "max_distance=0.25mi"},
        {"-k 1 -max_distance 0.01deg a b c", "max_distance=0.01deg"},
        {"-k 1 -max_distance 100\\ ft a b c", "max_distance=100ft"},
        {"-k 1 -max_distance inf a b c", "max_distance=inf"},
        {"-k 1 -max_distance infdeg a b c", "max_distance=infdeg"},
        {"-k 1 -max_distance Infinity a b c", "max_distance=inf"},
        {"-k 1 -max_distance -0 a b c", "max_distance=-0"},

        {"-memory 100000 a b c", "memory=100000"},
        {"-memory 64M a b c", "memory=67108864"},
        {"-memory 4G a b c", "memory=4294967296"},
        {"-memory 1.5g a b c", "memory=1610612736"},
        {"-memory 512MB a b c", "memory=536870912"},
        {"-memory 2KiB a b c", "memory=2048"},
        {"-memory 1T a b c", "memory=1099511627776"},
        {"-memory 7b a b c", "memory=7"},
        {"-memory 64\\ M a b c", "memory=67108864"},

        /* the join that the options imply if -op is missing */
        {"a b c", "op=intersects;how=left"},
        {"-relate T*F**F*** a b c", "op=relate;how=left"},
        {"-k 3 a b c", "op=nearest;how=left"},
        {"-k 3 -max_distance 5 a b c", "op=nearest;how=left"},
        {"-ties all a b c", "op=nearest;how=left"},
        {"-distance_to boundary a b c", "op=nearest;how=left"},
        {"-max_distance_field f a b c", "op=dwithin;how=left"},
        {"-join_max_distance_field f a b c", "op=dwithin;how=left"},
        {"-window 0 0 1 1 a b", "op=window;how=inner"},
        {"-op window a b c", "op=window;how=inner"},
        {"-op WINDOW -how left a b c", "op=window;how=left"},
        {"-op window -in_place -pick first a b", "op=window;how=left"},
        {"-op Contains_Properly a b c", "op=contains_properly;how=left"},
        {"-op bbox -how full a b c", "op=bbox;how=full"},

        {"-window -1 2 3 4.5 out -window 1e3 0 1e3 0 in",
         "window=-1 2 3 4.5 1000 0 1000 0;dst=out;input=in;join=-window"},
        {"-in_place -pick first -window 0 0 1 1 in", "dst=-;input=in"},
        {"-in_place -op nearest in join", "dst=-;input=in;join=join"},
        {"-op nearest in join -benchmark -benchmark_seconds 2.5",
         "dst=-;benchmark_seconds=2.5"},

        {"-op nearest -validate a b c", "validate=geos;dst=a"},
        {"-op nearest -validate -metric sphere a b c", "validate=sphere"},
        {"-op nearest -validate SpatialIndex a b c",
         "validate=spatialindex;dst=a"},
        {"a b c -op nearest -validate", "validate=geos"},

        /* options of some backends, for the joining or the validating
         * backend */
        {"-gpu 1 a b c", ""},
        {"-backend CUDA -gpu_memory 1G a b c", "gpu_memory=1073741824"},
        {"-backend cpu -validate cuda -gpu_batch 5 a b c", "gpu_batch=5"},
        {"-backend cuda_quadrant -op nearest -quadrant_size 5 a b c", ""},
        {"-validate spatialindex_collective -quadrant_size 5 a b c", ""},
        {"-benchmark -gpu 1 -quadrant_size 5 a b", "quadrant_size=5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        struct oj_command c = must_parse(cases[i][0]);
        char **pairs = CSLTokenizeString2(cases[i][1], ";", 0);
        for (int k = 0; pairs != NULL && pairs[k] != NULL; k++)
        {
            char *name, out[200];
            const char *value = CPLParseNameValue(pairs[k], &name);
            put_value(&c, name, out, sizeof out);
            ck_assert_msg(strcmp(out, value) == 0, "%s: %s is %s, not %s",
                          cases[i][0], name, out, value);
            CPLFree(name);
        }
        CSLDestroy(pairs);
        oj_command_free(&c);
    }
}

TEST(what_is_given)
{
    struct oj_command c = must_parse("-join_select '' a b c");
    ck_assert(oj_command_has_option(&c, "join_select"));
    ck_assert(!oj_command_has_option(&c, "join_sql"));
    oj_command_free(&c);
}

TEST(help_needs_nothing_else)
{
    struct oj_command c = must_parse("-foo -h");
    ck_assert_int_eq(c.help, 1);
    oj_command_free(&c);
    c = must_parse("--help");
    ck_assert_int_eq(c.help, 1);
    oj_command_free(&c);
}

TEST(a_condition_can_come_from_a_file)
{
    char name[] = "/tmp/test_command_XXXXXX", line[128];
    int file = mkstemp(name);
    struct oj_command c;
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, "a = 1\nAND b\n", 12), 12);
    close(file);
    snprintf(line, sizeof line, "-op nearest -where @%s a b c", name);
    c = must_parse(line);
    ck_assert_str_eq(c.input.where, "a = 1\nAND b");
    oj_command_free(&c);
    unlink(name);
}

/* Lines that must fail, and a part of each expected message. */
TEST(errors_say_what_is_wrong)
{
    static const struct
    {
        const char *line, *text;
    } cases[] = {
        {"", "0 datasets given, 3 needed"},
        {"-op nearest a b", "2 datasets given, 3 needed"},
        {"-op nearest a", "1 dataset given"},
        {"-op nearest a b c d", "one word too many: 'd'"},
        {"-op nearest a '' c", "empty dataset name"},
        {"-op nearest -max_distance 10 ft a b c",
         "-max_distance 10 ft: the unit belongs to the number, write "
         "-max_distance 10ft"},
        {"a b c -op dwithin -max_distance .5 km", "write -max_distance .5km"},
        {"-in_place -op nearest -max_distance 10 us-ft a b",
         "write -max_distance 10us-ft"},
        {"-memory 4 G a b c", "write -memory 4G"},
        {"-op nearest -max_distance 10 foot a b c",
         "one word too many: 'c', after 'foot'"},
        {"-max_distance 5 a b c", "-op nearest"},
        {"-min_distance 5 a b c", "-op nearest"},
        {"-metric sphere a b c", "-op nearest"},
        {"-op inside a b c", "did you mean within?"},
        {"-op intresects a b c", "did you mean intersects?"},
        {"-op windw a b c", "did you mean window?"},
        {"-op ST_Within a b c", "did you mean within?"},
        {"-op foo a b c", "no such join; known"},
        {"-op knn a b c", "did you mean nearest?"},
        {"-op xyzzy a b c", "known: nearest, dwithin, intersects"},
        {"-op relate a b c", "needs -relate"},
        {"-relate T*F**F** a b c", "nine of the letters"},
        {"-relate T*F**F**3 a b c", "nine of the letters"},
        {"-op within -relate T*F**F*** a b c", "only with -op relate"},
        {"-op dwithin a b c", "needs a distance"},
        {"-op dwithin -max_distance inf a b c", "every pair"},
        {"-op dwithin -max_distance 5 -max_distance_field f a b c",
         "do not go together"},
        {"-max_distance_field f -join_max_distance_field g a b c",
         "do not go together"},
        {"-op nearest -max_distance_field f a b c", "-op dwithin"},
        {"-op intersects -k 2 a b c", "only with -op nearest"},
        {"-op dwithin -max_distance 1 -ties all a b c",
         "only with -op nearest"},
        {"-op within -max_distance 1 a b c", "nearest or dwithin"},
        {"-op window -min_distance 1 a b c", "with -op window"},
        {"-op nearest -metric sphere -distance_to boundary a b c", "planar"},
        {"-op nearest -metric sphere -validate geos a b c", "-validate sphere"},
        {"-op nearest -validate sphere a b c", "-validate geos"},
        {"-op nearest -on a=b -on c=d a b c",
         "-on is given twice: write one list, as -on a=b,c=d"},
        {"-op nearest -where x=1 -where y=2 a b c", "a > 1 AND b = 2"},
        {"-op nearest -k 2 -k 3 a b c", "-k is given twice: leave one out"},
        {"-op nearest -op within a b c", "-op is given twice"},
        {"-f GPKG -of CSV a b c", "-f is given twice"},
        {"-spat 0 0 1 1 -spat 2 2 3 3 a b c", "-spat is given twice"},
        {"-validate -validate geos a b c", "-validate is given twice"},
        {"-op within -window 0 0 1 1 a b", "only with -op window"},
        {"-window 0 0 1 1 a b c", "3 datasets given, 2 needed"},
        {"-window 0 0 1 a b", "four numbers, XMIN YMIN XMAX YMAX, not 'a'"},
        {"-window 5 0 1 1 a b", "is empty"},
        {"-op window -centroid_of both a b c", "write -centroid_of input"},
        {"-window 0 0 1 1 -join_layer x a b", "do not go together"},
        {"-window 0 0 1 1 -on x a b", "do not go together"},
        {"-memory 0 a b c", "number of bytes"},
        {"-memory 4X a b c", "number of bytes"},
        {"-memory -1G a b c", "number of bytes"},
        {"-memory inf a b c", "number of bytes"},
        {"-max_pairs 0 a b c", "1 or more"},
        {"-exclude same a b c", "self, same_geometry or field=F"},
        {"-centroid_of left a b c", "input|join|both"},
        {"-centroid_of join -point_on_surface_of join a b c", "the join side"},
        {"-centroid_of both -point_on_surface_of input a b c",
         "the input side"},
        {"-pick first -agg count a b c", "do not go together"},
        {"-agg count -name_rank x a b c", "needs several pairs per input row"},
        {"-agg count -overlap area a b c", "max(overlap_area)"},
        {"-how semi -pick first a b c", "only the input layer's"},
        {"-how anti -name_count n a b c", "only the input layer's"},
        {"-how semi -geometry connection a b c", "only the input layer's"},
        {"-name_distance d a b c", "-op intersects measures no distance"},
        {"-in_place a b", "choose one with -pick"},
        {"-in_place -pick all a b", "choose one with -pick"},
        {"-agg count -how right a b c", "write -how left, or -how inner"},
        {"-agg count -name_count n a b c", "write \"count as n\""},
        {"-pick most_similar a b c", "needs -similar or -vector"},
        {"-op nearest -name_rank r a b c", "needs several pairs per input row"},
        {"-in_place -pick first -how right a b", "write -how left"},
        {"-in_place -pick first -geometry join a b", "do not go together"},
        {"-in_place -pick first -unmatched_layer x a b", "do not go together"},
        {"-explain -validate a b c", "do not go together"},
        {"-explain -q a b c", "do not go together"},
        {"-explain -progress a b c", "only shows the plan"},
        {"-benchmark -pick first a b", "do not go together"},
        {"-benchmark -f CSV a b",
         "-benchmark and -f do not go together: leave one out, because the "
         "benchmark writes no layer"},
        {"-benchmark -max_pairs 5 a b",
         "holds all rows and pairs in memory at once"},
        {"-benchmark -backend geos a b", "runs one backend after the other"},
        {"-how semi -prefix x a b c", "only the input layer's"},
        {"-how anti -join_select x a b c", "only the input layer's"},
        {"-how anti -unmatched_join_layer x a b c", "only the input layer's"},
        {"-nlt NONE -geometry join a b c", "no geometry is written"},
        {"-nlt none -a_srs EPSG:4326 a b c", "no geometry is written"},
        {"-quadrant_size 5 a b c",
         "-quadrant_size has no meaning with -backend auto, only with "
         "quadrant, cuda_quadrant, spatialindex_collective, gpics_* or "
         "cuda_gpics_*"},
        {"-backend cpu -gpu 1 a b c",
         "-gpu has no meaning with -backend cpu, only with cuda or auto"},
        {"-backend cpu -gpu 1 -validate geos a b c", "only with cuda"},
        {"-op", "-op needs a value"},
        {"-on -select x a b c",
         "-on needs a value, and the option -select follows: -on LEFT=RIGHT"},
        {"-op dwithin -max_distance --K 3 a b c", "the option -k follows"},
        {"-spat 1 2 3 -q a b c", "the option -q follows"},
        {"-op nearest -along_field \"\" a b c",
         "-along_field is empty: write a name"},
        {"-op nearest -name_count \"\" a b c",
         "-name_count is empty: write a name"},
        {"-input_layer \"\" a b c", "-input_layer is empty: write a name"},
        {"-events -key \"\" a b c", "-key is empty: write a name"},
        {"-skipfailures a b c", "needs -events, -input_geometry or"},
        {"-op nearest -max_dist 5 a b c", "did you mean -max_distance?"},
        {"-op nearest -maxdistance 5 a b c", "did you mean -max_distance?"},
        {"-op nearest -jion_layer x a b c", "did you mean -join_layer?"},
        {"-op nearest --overwrit a b c", "did you mean -overwrite?"},
        {"-max-dist 5 a b c", "did you mean -max_distance?"},
        {"-xyzzy a b c", "-xyzzy; ogrjoin --help lists all"},
        {"--op=within a b c", "write -op within, with a space"},
        {"-nosuch=within a b c", "-nosuch=within; ogrjoin --help lists all"},
        {"-predicate within a b c", "write -op NAME"},
        {"-Inner a b c", "write -how left, inner"},
        {"-makevalid a b c", "write -invalid fix"},
        {"-dim XY a b c", "ogr2ogr -dim"},
        {"-formats", "two dashes"},
        {"-in_place_unsafe -op nearest a b",
         "-in_place_unsafe needs -in_place"},
        {"-benchmark_csv x a b", "-benchmark_csv needs -benchmark"},
        {"-validate goes a b c", "too many: 'c', after 'goes' 'a' 'b'"},
        {"-nlt CURVE a b c", "AS_IS|PROMOTE_TO_MULTI|NONE|POLYGON"},
        {"-nlt POLYGON a b c", "-nlt POLYGON keeps parts of intersections"},
        {"-nlt point -geometry join a b c", "it needs -geometry intersection"},
        {"-op nearest -max_distance -1 a b c", "0 or more, not '-1'"},
        {"-op nearest -max_distance -inf a b c", "-max_distance"},
        {"-op nearest -max_distance nan a b c", "-max_distance"},
        {"-op nearest -max_distance ft a b c", "must be a number"},
        {"-op nearest -max_distance 5parsec a b c", "unknown unit 'parsec'"},
        {"-op nearest -max_distance 1,5 a b c", "write a point for the comma"},
        {"-op nearest a b c -max_distance", "-max_distance needs a value"},
        {"-max_distance 5 a b c",
         "-max_distance alone does not choose a join: add -op nearest"},
        {"-op nearest -k 0 a b c", "1 or more, not '0'"},
        {"-op nearest -k 1.5 a b c", "whole number"},
        {"-op nearest -k 99999999999999999999 a b c", "2147483647 or less"},
        {"-op nearest -k 3000000000 a b c", "2147483647 or less"},
        {"-op nearest -ties some a b c", "first|all, not 'some'"},
        {"-op nearest -how outer a b c", "left|inner|semi|anti|right|full"},
        {"-op nearest -limit -1 a b c", "0 or more, not '-1'"},
        {"-op nearest -threads none a b c", "-threads"},
        {"-op nearest -threads 0 a b c", "-threads"},
        {"-op nearest -threads 100000 a b c", "4096 or less"},
        {"-op nearest -batch 0 a b c", "-batch"},
        {"-op nearest -backend gpu a b c", "auto, cpu"},
        {"-op nearest -oo novalue a b c", "takes NAME=VALUE"},
        {"-op nearest -spat 1 2 3 a b c",
         "four numbers, XMIN YMIN XMAX YMAX, not 'a'"},
        {"-op nearest -spat 3 2 1 4 a b c", "is empty"},
        {"a b c -op nearest -spat 1 2 3", "-spat needs a value"},
        {"-op nearest -where @/no/such/file a b c", "cannot be read"},
        {"-op nearest -dialect x a b c", "-dialect needs -sql"},
        {"-op nearest -validate_report x a b c", "needs -validate"},
        {"-op nearest -sql x -input_layer y a b c", "do not go together"},
        {"-op nearest -overwrite -append a b c", "do not go together"},
        {"-op nearest -q -progress a b c", "do not go together"},
        {"-op nearest -in_place a b c", "3 datasets given, 2 needed"},
        {"-op nearest -in_place -k 2 a b", "write -k 1"},
        {"-op nearest -in_place -ties all a b", "write -ties first"},
        {"-op nearest -in_place -how inner a b", "write -how left"},
        {"-op nearest -in_place -nln x a b", "do not go together"},
        {"-op nearest -in_place_unsafe a b c", "needs -in_place"},
        {"-op nearest -benchmark -overwrite a b", "do not go together"},
        {"-op nearest -benchmark_seconds 0 -benchmark a b", "more than 0"},
        {"-op nearest -benchmark_csv x a b c", "needs -benchmark"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        struct oj_command command;
        struct oj_error err = {OJ_OK, ""};
        oj_status status = parse(cases[i].line, &command, &err);
        ck_assert_msg(status == OJ_ERR_ARG, "'%s' gives status %d",
                      cases[i].line, (int)status);
        ck_assert_msg(strstr(err.message, cases[i].text) != NULL,
                      "'%s' gives '%s'", cases[i].line, err.message);
        ck_assert_ptr_null(strchr(err.message, '\n'));
    }
}

TEST(error_text_may_be_unwanted)
{
    struct oj_command command;
    const char *words[] = {"-nonsense"};
    ck_assert_int_eq(oj_command_parse(1, words, &command, NULL), OJ_ERR_ARG);
}

TEST(names_are_unique)
{
    const struct oj_option *a, *b;
    for (int i = 0; (a = oj_option_at(i)) != NULL; i++)
    {
        for (int j = 0; j < i; j++)
        {
            b = oj_option_at(j);
            ck_assert_str_ne(a->name, b->name);
            if (a->alias != NULL)
                ck_assert_str_ne(a->alias, b->name);
        }
    }
}

/* Writes the shortest command line with this option. The value may be
 * invalid. */
static void write_option(const struct oj_option *option, char *line,
                         size_t size)
{
    static const char *const values[] = {
        [OJ_OPTION_TEXT] = "x",        [OJ_OPTION_TEXT_OR_FILE] = "x",
        [OJ_OPTION_LIST] = "A=B",      [OJ_OPTION_COUNT] = "5",
        [OJ_OPTION_THREADS] = "2",     [OJ_OPTION_SECONDS] = "5",
        [OJ_OPTION_DISTANCE] = "5",    [OJ_OPTION_BOX] = "0 0 1 1",
        [OJ_OPTION_BOXES] = "0 0 1 1", [OJ_OPTION_BYTES] = "1G",
        [OJ_OPTION_GPUS] = "all",      [OJ_OPTION_OP] = "within",
        [OJ_OPTION_BACKEND] = "cpu",
    };
    int n_kinds = (int)(sizeof values / sizeof *values);
    int n = snprintf(line, size, "-%s ", option->name);
    if (option->kind == OJ_OPTION_CHOICE)
        snprintf(line + n, size - (size_t)n, "%.*s",
                 (int)strcspn(oj_option_choices(option), "|"),
                 oj_option_choices(option));
    else if ((int)option->kind < n_kinds && values[option->kind] != NULL)
        snprintf(line + n, size - (size_t)n, "%s", values[option->kind]);
}

static int is_word_of(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n)
    {
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return 1;
    }
    return 0;
}

/* In each of two kinds of run, every option must be read or refused. Otherwise
 * an option could be ignored. Parameters of joins are read in both. A new
 * option must be added to one of the two lists. */
TEST(no_option_is_without_effect)
{
    static const struct
    {
        const char *run, *reads;
    } cases[] = {
        {"-benchmark",
         "op on within_time during exclude unordered_pairs centroid_of "
         "point_on_surface_of "
         "invalid "
         "input_layer input_geometry where sql dialect spat limit oo "
         "join_layer join_geometry join_where "
         "join_sql join_dialect joo crs s_srs join_srs t_srs threads gpu "
         "gpu_memory gpu_batch quadrant_size benchmark benchmark_csv "
         "benchmark_seconds q validate_report in_place_unsafe help "
         "similar min_similarity measure tokens fold word_map "
         "vector norm max_difference name_similarity name_difference along "
         "key state flush skipfailures"},
        {"-in_place -pick first",
         "op on within_time during exclude unordered_pairs centroid_of "
         "point_on_surface_of "
         "invalid how "
         "pick prefix name_fid name_distance name_rank name_count overlap "
         "nearest_point_fields bearing_field along_field along "
         "along_percent_field "
         "offset_field side_field segment_field line_bearing_field "
         "matrix_field relation_field input_layer input_geometry where "
         "dialect spat join_geometry "
         "limit oo join_layer join_where join_sql join_dialect join_select joo "
         "crs s_srs join_srs t_srs in_place in_place_unsafe threads backend "
         "gpu gpu_memory gpu_batch batch quadrant_size memory max_pairs "
         "explain validate validate_report benchmark_csv benchmark_seconds q "
         "progress json_summary help "
         "similar min_similarity measure tokens fold word_map name_similarity "
         "vector norm max_difference name_difference key state flush "
         "skipfailures"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        const struct oj_option *option;
        for (int j = 0; (option = oj_option_at(j)) != NULL; j++)
        {
            char words[128], line[256];
            struct oj_command command = {0};
            struct oj_error err = {OJ_OK, ""};
            int is_column =
                strcmp(option->group, "Rows and columns of the output") == 0;
            int is_read = (option->ops != NULL && !is_column) ||
                          is_word_of(cases[i].reads, option->name);
            int refused;
            write_option(option, words, sizeof words);
            snprintf(line, sizeof line, "%s %s %s a%s", cases[i].run,
                     is_column && option->ops != NULL ? "-op nearest" : "",
                     words, strcmp(option->name, "window") == 0 ? "" : " b");
            refused =
                parse(line, &command, &err) != OJ_OK &&
                (strstr(err.message, "do not go together") != NULL ||
                 strstr(err.message, "in a spec file or a dataset") != NULL);
            ck_assert_msg(refused != is_read, "'%s': '%s'", line, err.message);
            if (err.message[0] == '\0')
                oj_command_free(&command);
        }
    }
}

/* The table of clashes names only options that exist. */
TEST(clashes_name_options)
{
    const char *names, *at;
    for (int i = 0; oj_option_clash_names(i, 0) != NULL; i++)
    {
        for (int which = 0; which < 3; which++)
        {
            names = oj_option_clash_names(i, which);
            for (int w = 0, n;
                 names[0] != '\0' && (at = oj_words_at(names, w, &n)) != NULL;
                 w++)
            {
                const char *name = CPLSPrintf("%.*s", n, at);
                const int row = oj_option_find(name);
                ck_assert_msg(row >= 0, "%s", name);
                ck_assert_str_eq(oj_option_at(row)->name, name);
            }
        }
    }
}

int main(void)
{
    tests_open("command");
    return tests_run();
}
