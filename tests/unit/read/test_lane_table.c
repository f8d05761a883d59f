/* The table of lanes: which lane may read and write which datasets.
 * Kind: unit. */
#include "../../../flatten/arrays/oj_iso_time.h"
#include "../run_tests.h"

#include "../../../flatten/read/oj_lane_table.h"

#include <cpl_conv.h>
#include <gdal.h>

#include <string.h>

#define READS_ALL                                                              \
    (OJ_LANE_WHOLE_LAYER | OJ_LANE_SOLE_LAYER | OJ_LANE_PLAIN_OPEN |           \
     OJ_LANE_SOUND_STREAM)
#define BIT(lane) (1u << OJ_LANE_##lane)

static unsigned reading(const char *driver, unsigned facts)
{
    const struct oj_lane_dataset dataset = {
        .driver = driver != NULL ? GDALGetDriverByName(driver) : NULL,
        .facts = facts};
    unsigned built = 0;
    for (int i = 0; i < OJ_N_LANES; i++)
        built |= oj_lane_at(i)->reads != NULL ? 1u << i : 0;
    ck_assert_int_eq(oj_lanes_that_read(&dataset) & ~built, 0);
    /* lanes that this build lacks count as present, so that one table
     * suffices */
    return oj_lanes_that_read(&dataset) | (~built & OJ_LANES_ALL);
}

static const char *writing(const char *driver, const char *path, unsigned facts)
{
    const struct oj_lane_dataset dataset = {
        .driver = GDALGetDriverByName(driver), .path = path, .facts = facts};
    const struct oj_lane_row *row = oj_lane_that_writes(&dataset);
    return row != NULL ? row->name : "";
}

/* Each requirement of a lane is violated in turn. */
TEST(what_is_read)
{
    const unsigned missing[] = {OJ_LANE_WHOLE_LAYER, OJ_LANE_SOLE_LAYER,
                                OJ_LANE_PLAIN_OPEN, OJ_LANE_SOUND_STREAM};
    const struct
    {
        const char *driver;
        unsigned all, without[4];
    } cases[] = {
        {"FlatGeobuf",
         BIT(FLATGEOBUF) | BIT(ARROW),
         {BIT(ARROW), BIT(ARROW), BIT(FLATGEOBUF) | BIT(ARROW),
          BIT(FLATGEOBUF)}},
        {"GPKG",
         BIT(GEOPACKAGE) | BIT(ARROW),
         {BIT(ARROW), BIT(GEOPACKAGE) | BIT(ARROW), BIT(ARROW),
          BIT(GEOPACKAGE)}},
        {"GeoJSON", BIT(ARROW), {BIT(ARROW), BIT(ARROW), BIT(ARROW), 0}},
        {NULL, BIT(ARROW), {BIT(ARROW), BIT(ARROW), BIT(ARROW), 0}},
    };
    unsigned lacking = 0;
    for (int i = 0; i < OJ_N_LANES; i++)
        lacking |= oj_lane_at(i)->reads == NULL ? 1u << i : 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        ck_assert_int_eq(reading(cases[i].driver, READS_ALL),
                         cases[i].all | lacking);
        for (int j = 0; j < 4; j++)
            ck_assert_int_eq(reading(cases[i].driver, READS_ALL & ~missing[j]),
                             cases[i].without[j] | lacking);
    }
}

TEST(what_is_written)
{
    const unsigned new_file = OJ_LANE_NEW_FILE | OJ_LANE_SOLE_LAYER;
    const char *table =
        oj_lane_at(OJ_LANE_GEOPACKAGE)->writes == OJ_LANE_WRITES_DATASET
            ? "GeoPackage"
            : "";
    ck_assert_str_eq(writing("FlatGeobuf", "a.fgb", new_file), "FlatGeobuf");
    ck_assert_str_eq(writing("FlatGeobuf", "a.FGB", new_file), "FlatGeobuf");
    ck_assert_str_eq(writing("FlatGeobuf", "folder", new_file), "");
    ck_assert_str_eq(writing("FlatGeobuf", "a.fgb", OJ_LANE_NEW_FILE), "");
    ck_assert_str_eq(writing("FlatGeobuf", "a.fgb", OJ_LANE_SOLE_LAYER), "");
    ck_assert_str_eq(writing("GPKG", "a.gpkg", new_file), table);
    ck_assert_str_eq(writing("GPKG", "a.gpkg", 0), table);
    ck_assert_str_eq(writing("GeoJSON", "a.fgb", new_file), "");
}

/* For a database it does not matter whether a layer is the only one, so its
 * layers are not listed. */
TEST(facts_that_matter)
{
    ck_assert_int_ne(
        oj_lane_facts_of_driver(GDALGetDriverByName("FlatGeobuf")) &
            OJ_LANE_SOLE_LAYER,
        0);
    ck_assert_int_eq(oj_lane_facts_of_driver(GDALGetDriverByName("GPKG")) &
                         OJ_LANE_SOLE_LAYER,
                     0);
    ck_assert_int_eq(oj_lane_facts_of_driver(NULL), OJ_LANE_SOUND_STREAM);
}

/* OGRJOIN_LANES=NO switches off the lanes of file formats, but not the lane for
 * Arrow. */
TEST(switched_off)
{
    CPLSetConfigOption("OGRJOIN_LANES", "NO");
    ck_assert_int_eq(reading("FlatGeobuf", READS_ALL) & BIT(FLATGEOBUF), 0);
    ck_assert_int_eq(reading("GPKG", READS_ALL) & BIT(ARROW), BIT(ARROW));
    ck_assert_str_eq(writing("GPKG", "a.gpkg", 0), "");
    ck_assert_str_eq(
        writing("FlatGeobuf", "a.fgb", OJ_LANE_NEW_FILE | OJ_LANE_SOLE_LAYER),
        "");
    CPLSetConfigOption("OGRJOIN_LANES", NULL);
}

/* Times that the lanes parse themselves are those of GDAL's parser. All other
 * times are left to GDAL. */
TEST(times_are_those_of_gdal)
{
    static const char *const texts[] = {"2026-11-29",
                                        "2026-11-29T18:00:00",
                                        "2026-11-29T18:00:07Z",
                                        "2026-11-29T18:00:07.123Z",
                                        "2026-01-01T00:00:59.999",
                                        "0001-12-31T23:59:00.001Z",
                                        "2026-02-31T01:02:03Z"};
    static const char *const others[] = {"2026/11/29",
                                         "2026-11-29 18:00:00",
                                         "2026-13-29",
                                         "2026-11-32",
                                         "2026-11-29T24:00:00Z",
                                         "2026-11-29T18:60:00Z",
                                         "2026-11-29T18:00:60Z",
                                         "2026-11-29T18:00:00+",
                                         "2026-11-29T18:00:0aZ",
                                         "2026-11-29T18:00:00,123",
                                         "0000-11-29",
                                         "",
                                         "2026-11-29T18:00:00.12",
                                         "2026-1-29T18:00:00Z"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    {
        OGRField ours = {0}, gdals = {0};
        struct oj_iso_time time;
        ck_assert_msg(
            oj_iso_time_read(texts[i], (int64_t)strlen(texts[i]), &time), "%s",
            texts[i]);
        OJ_ISO_TIME_ASSIGN(time, ours.Date);
        ck_assert(OGRParseDate(texts[i], &gdals, 0));
        ck_assert_msg(ours.Date.Year == gdals.Date.Year &&
                          ours.Date.Month == gdals.Date.Month &&
                          ours.Date.Day == gdals.Date.Day &&
                          ours.Date.Hour == gdals.Date.Hour &&
                          ours.Date.Minute == gdals.Date.Minute &&
                          ours.Date.Second == gdals.Date.Second &&
                          ours.Date.TZFlag == gdals.Date.TZFlag,
                      "%s", texts[i]);
    }
    for (int i = 0; i < 60000; i++)
    {
        char text[32];
        OGRField gdals = {0};
        struct oj_iso_time time;
        snprintf(text, sizeof text, "2026-11-29T18:00:%02d.%03dZ", i / 1000,
                 i % 1000);
        ck_assert(oj_iso_time_read(text, 24, &time));
        ck_assert(OGRParseDate(text, &gdals, 0));
        ck_assert(time.second == gdals.Date.Second);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    {
        struct oj_iso_time time;
        ck_assert_msg(
            !oj_iso_time_read(others[i], (int64_t)strlen(others[i]), &time),
            "%s", others[i]);
    }
}

int main(void)
{
    tests_open("lane_table");
    GDALAllRegister();
    return tests_run();
}
