/* Names of joins as datasets: words quoted as in a shell, and paths in them.
 * The end-to-end test dataset_names checks which words a dataset refuses.
 * fuzz_dataset_name checks that joined words are split into the original ones.
 * Kind: unit. */
#include "../run_tests.h"

#include "../../../driver/base/oj_shell_words.h"
#include "../../../driver/base/oj_sql_volatility.h"
#include "../../../driver/dataset/oj_dataset_name.h"
#include "../../../driver/files/oj_path.h"
#include "../../../flatten/base/oj_alloc.h"

#include <cpl_conv.h>
#include <cpl_vsi.h>
#include <gdal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the words of a text to out, each followed by |, or "!" if the text is
 * refused. Returns out. */
static const char *split_words(const char *text, char *out)
{
    struct oj_error err = {OJ_OK, ""};
    char **words = NULL;
    int n = -1, seen = 0;
    out[0] = '\0';
    if (oj_words_split(text, &words, &n, &err) != OJ_OK)
    {
        ck_assert_int_eq(err.status, OJ_ERR_ARG);
        ck_assert_ptr_nonnull(strstr(err.message, "quote"));
        return "!";
    }
    for (; words[seen] != NULL; seen++)
    {
        strcat(out, words[seen]);
        strcat(out, "|");
    }
    ck_assert_int_eq(seen, n);
    oj_free(words);
    return out;
}

TEST(words_are_split_as_a_shell_splits_them)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"  \t\n ", ""},
        {"a", "a|"},
        {"a b", "a|b|"},
        {" a\n\tb ", "a|b|"},
        {"'a b' c", "a b|c|"},
        {"\"a b\" c", "a b|c|"},
        {"''", "|"},
        {"'' \"\" x", "||x|"},
        {"a''b", "ab|"},
        {"a'b c'd", "ab cd|"},
        {"'a'\"b\"c", "abc|"},
        {"a\\ b c", "a b|c|"},
        {"\\'a\\\"", "'a\"|"},
        {"'a\\b'", "a\\b|"},
        {"'it'\\''s'", "it's|"},
        {"\"a\\\"b\\\\c\\$d\\`e\\f'\"", "a\"b\\c$d`e\\f'|"},
        {"$HOME *.gpkg ~ #x", "$HOME|*.gpkg|~|#x|"},
        {"a\\", "a\\|"},
        {"\\\\", "\\|"},
        {"'a", "!"},
        {"a \"b c", "!"},
        {"\"a\\\"", "!"},
        {"\xC3\xBC'\xC3\xA4 \xC3\xB6'", "\xC3\xBC\xC3\xA4 \xC3\xB6|"},
    };
    char out[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(split_words(cases[i][0], out), cases[i][1]);
}

static void check_resolved(const char *folder, const char *name,
                           const char *expected)
{
    char *path = oj_path_resolve(folder, name);
    ck_assert_str_eq(path, expected);
    CPLFree(path);
}

TEST(plain_paths_alone_are_relative)
{
    check_resolved("", "a.gpkg", "a.gpkg");
    check_resolved("d", "a.gpkg", "d/a.gpkg");
    check_resolved("/", "a.gpkg", "/a.gpkg");
    check_resolved("/d/e", "../a.gpkg", "/d/e/../a.gpkg");
    check_resolved("d", "/a.gpkg", "/a.gpkg");
    check_resolved("d", "PG:dbname=x", "PG:dbname=x");
    check_resolved("d", "GPKG:a.gpkg:b", "GPKG:a.gpkg:b");
    check_resolved("d", "join:a b", "join:a b");
    check_resolved("d", "https://h/a.fgb", "https://h/a.fgb");
    check_resolved("d", "<OGRVRTDataSource/>", "<OGRVRTDataSource/>");
    check_resolved("d", "{\"type\":\"Point\"}", "{\"type\":\"Point\"}");
    check_resolved("d", "/vsimem/a.gpkg", "/vsimem/a.gpkg");
    check_resolved("d", "/vsizip/a.zip/b.shp", "/vsizip/d/a.zip/b.shp");
    check_resolved("d", "/vsizip//x/a.zip", "/vsizip//x/a.zip");
    check_resolved("/d", "/vsitar//vsigzip/a", "/vsitar//vsigzip//d/a");
    check_resolved("d", "a b/10:30.gpkg", "d/a b/10:30.gpkg");
    check_resolved("/vsimem/d", "a.gpkg", "/vsimem/d/a.gpkg");
}

/* A path that is written to a file in a folder leads to its target from that
 * folder. */
TEST(paths_seen_from_a_folder_lead_back)
{
    char base[] = "/tmp/oj_names_XXXXXX", here[4096], path[4200];
    static const char *const folders[] = {"",   ".",      "x",    "x/y",
                                          "..", "../mid", "../z", "../../"};
    static const char *const names[] = {
        "a.gpkg",    "./a.gpkg",      "x/b.gpkg",
        "../c.gpkg", "./../z/d.gpkg", "x/../a.gpkg",
        "-e.gpkg",   "./-e.gpkg",     "../../base.gpkg"};
    ck_assert_ptr_nonnull(mkdtemp(base));
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    snprintf(path, sizeof path,
             "cd %s && mkdir -p top/mid/x/y top/z && cd top/mid && touch "
             "a.gpkg x/b.gpkg ../c.gpkg ../z/d.gpkg ./-e.gpkg ../../base.gpkg",
             base);
    ck_assert_int_eq(system(path), 0);
    snprintf(path, sizeof path, "%s/top/mid", base);
    ck_assert_int_eq(chdir(path), 0);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
    {
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
        {
            char *made = oj_path_make_relative(folders[i], names[j]), *back;
            char *a, *b;
            ck_assert_int_ne(made[0], '-');
            ck_assert_int_ne(made[0], '/');
            back = oj_path_resolve(folders[i], made);
            a = realpath(names[j], NULL);
            b = realpath(back, NULL);
            ck_assert_msg(a != NULL && b != NULL && strcmp(a, b) == 0,
                          "%s in %s: %s, %s", names[j], folders[i], made, back);
            free(a);
            free(b);
            CPLFree(made);
            CPLFree(back);
        }
    }
    ck_assert_int_eq(chdir(here), 0);
    snprintf(path, sizeof path, "rm -r %s", base);
    ck_assert_int_eq(system(path), 0);
}

TEST(names_are_recognised_by_their_letters)
{
    ck_assert_str_eq(oj_dataset_name_words("JOIN:"), "");
    ck_assert_str_eq(oj_dataset_name_words("join:a b"), "a b");
    ck_assert_ptr_null(oj_dataset_name_words("JOIN"));
    ck_assert_ptr_null(oj_dataset_name_words(" JOIN:"));
    ck_assert_int_eq(oj_dataset_name_is_file("a.ogrjoin"), 1);
    ck_assert_int_eq(oj_dataset_name_is_file("/x/A.OGRJOIN"), 1);
    ck_assert_int_eq(oj_dataset_name_is_file(".ogrjoin"), 0);
    ck_assert_int_eq(oj_dataset_name_is_file("ogrjoin"), 0);
    ck_assert_int_eq(oj_dataset_name_is_file("a.ogrjoin.json"), 0);
    ck_assert_int_eq(oj_sql_is_keyword("Join"), 1);
    ck_assert_int_eq(oj_sql_is_keyword("joined"), 0);
}

int main(void)
{
    tests_open("dataset names");
    GDALAllRegister();
    return tests_run();
}
