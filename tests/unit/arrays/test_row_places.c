/* The output rows that an answer gives, and their FIDs, for every value of -how
 * and every form of answer.
 * Kinds: truth cases, property. */
#include "../run_tests.h"

#include "../../../flatten/arrays/oj_row_places.h"

#include <stdlib.h>
#include <string.h>

enum
{
    N_ROWS = 60,
    MOST_PAIRS = 5,
    MOST_PLACES = N_ROWS * MOST_PAIRS
};

enum form
{
    FORM_ONE,
    FORM_TIED,
    FORM_LISTS,
    FORM_SCATTERED,
    N_FORMS
};

/* Pairs of rows in the simplest form. */
struct plain
{
    int n[N_ROWS];
    int32_t join_row[N_ROWS][MOST_PAIRS];
};

static void make_plain(struct plain *plain, unsigned seed, int most)
{
    srand(seed);
    for (int row = 0; row < N_ROWS; row++)
    {
        plain->n[row] = rand() % (most + 1);
        for (int i = 0; i < plain->n[row]; i++)
            plain->join_row[row][i] = rand() % 1000;
    }
}

static void set_entry(struct oj_matches *m, int64_t entry, int32_t join_row)
{
    m->join_row[entry] = join_row;
    m->measure[entry] = join_row;
}

static void make_lists(const struct plain *plain, int scattered,
                       struct oj_matches *m)
{
    int64_t entry = 0;
    ck_assert_int_eq(
        scattered
            ? oj_matches_reserve_scattered(m, N_ROWS, 2 * MOST_PLACES, NULL)
            : oj_matches_reserve(m, N_ROWS, MOST_PLACES, 1, NULL),
        OJ_OK);
    for (int i = 0; i < N_ROWS; i++)
    {
        /* a scattered answer stores rows in reverse order, with gaps */
        int row = scattered ? N_ROWS - 1 - i : i;
        m->offset[row << scattered] = entry;
        for (int p = 0; p < plain->n[row]; p++)
            set_entry(m, entry++, plain->join_row[row][p]);
        m->offset[(row << scattered) + 1] = entry;
        if (scattered)
            set_entry(m, entry++, 77777);
    }
}

static void make_one_to_one(const struct plain *plain, int tied,
                            struct oj_matches *m)
{
    int64_t n_tied = 0, entry = N_ROWS;
    for (int row = 0; row < N_ROWS; row++)
        n_tied += plain->n[row] > 1;
    ck_assert_int_eq(oj_matches_reserve(m, N_ROWS,
                                        tied ? N_ROWS + MOST_PLACES : N_ROWS, 0,
                                        NULL),
                     OJ_OK);
    if (tied)
        ck_assert_int_eq(oj_matches_reserve_tied(m, n_tied, NULL), OJ_OK);
    n_tied = 0;
    for (int row = 0; row < N_ROWS; row++)
    {
        set_entry(m, row, plain->n[row] > 0 ? plain->join_row[row][0] : -1);
        if (!tied || plain->n[row] < 2)
            continue;
        m->join_row[row] = OJ_TIED_ROW - (int32_t)n_tied;
        m->tied_row[n_tied] = row;
        m->tied_offset[n_tied++] = entry;
        for (int p = 0; p < plain->n[row]; p++)
            set_entry(m, entry++, plain->join_row[row][p]);
        m->tied_offset[n_tied] = entry;
    }
}

static void make_matches(const struct plain *plain, enum form form,
                         struct oj_matches *m)
{
    if (form == FORM_LISTS || form == FORM_SCATTERED)
        make_lists(plain, form == FORM_SCATTERED, m);
    else
        make_one_to_one(plain, form == FORM_TIED, m);
}

/* Takes all places, at most at_once at a time, and checks each time the number
 * of places that remain. Returns the number of places taken. */
static int64_t take_all(struct oj_row_places *places, int64_t at_once,
                        struct oj_row_place *out)
{
    int64_t n = 0, more, left;
    do
    {
        left = oj_row_places_count(places);
        more = oj_row_places_next(places, out + n, at_once);
        ck_assert_int_eq(more, left < at_once ? left : at_once);
        n += more;
    } while (more > 0);
    return n;
}

/* Checks the place of a pair, or of a row without a pair (pair -1). */
static void check_place(const struct plain *plain, int row, int pair,
                        int64_t first_row, const struct oj_matches *m,
                        const struct oj_row_place *place)
{
    ck_assert_int_eq(place->row, first_row + row);
    ck_assert_int_eq(place->n_pairs, plain->n[row]);
    ck_assert_int_eq(place->rank, pair + 1);
    ck_assert_int_eq(place->join_row,
                     pair < 0 ? -1 : plain->join_row[row][pair]);
    if (pair < 0)
        ck_assert_int_eq(place->entry, -1);
    else
        ck_assert_int_eq(m->join_row[place->entry], place->join_row);
    ck_assert_int_eq(place->fid, OJ_NO_FID);
}

/* The rows of random answers in every form, with every value of -how. */
TEST_LOOP(property_rows_of_answers, 0, N_FORMS * 4)
{
    enum form form = (enum form)(_i / 4);
    enum oj_how how = (enum oj_how)(_i % 4);
    struct oj_row_place out[MOST_PLACES];
    struct oj_row_places places = oj_row_places_make(how);
    struct oj_matches m = {0};
    struct plain plain;
    for (unsigned seed = 1; seed <= 20; seed++)
    {
        int64_t n, at = 0, first_row = seed % 3 * 100;
        make_plain(&plain, seed, form == FORM_ONE ? 1 : MOST_PAIRS);
        make_matches(&plain, form, &m);
        oj_row_places_begin(&places, &m, &m, first_row, NULL);
        n = take_all(&places, 1 + seed % 7, out);
        for (int row = 0; row < N_ROWS; row++)
        {
            int pairs = plain.n[row];
            if (how == OJ_HOW_SEMI ? pairs > 0
                                   : pairs == 0 && how != OJ_HOW_INNER)
                check_place(&plain, row, -1, first_row, &m, &out[at++]);
            for (int p = 0; p < pairs && how <= OJ_HOW_INNER; p++)
                check_place(&plain, row, p, first_row, &m, &out[at++]);
        }
        ck_assert_int_eq(at, n);
    }
    oj_matches_free(&m);
}

/* If one pair of a row is picked, the count of the row still includes all its
 * pairs. */
TEST(truth_picked_rows_count_all_pairs)
{
    struct oj_row_places places = oj_row_places_make(OJ_HOW_LEFT);
    struct oj_matches all = {0}, picked = {0};
    struct oj_row_place out[MOST_PLACES];
    struct plain plain;
    make_plain(&plain, 7, MOST_PAIRS);
    make_matches(&plain, FORM_LISTS, &all);
    make_matches(&plain, FORM_ONE, &picked);
    oj_row_places_begin(&places, &picked, &all, 0, NULL);
    ck_assert_int_eq(take_all(&places, MOST_PLACES, out), N_ROWS);
    for (int row = 0; row < N_ROWS; row++)
    {
        ck_assert_int_eq(out[row].n_pairs, plain.n[row]);
        ck_assert_int_eq(out[row].rank, plain.n[row] > 0);
    }
    oj_matches_free(&all);
    oj_matches_free(&picked);
}

TEST(truth_unmatched_join_rows)
{
    static const uint8_t is_matched[] = {0, 1, 0, 0, 1};
    struct oj_row_places places = oj_row_places_make(OJ_HOW_INNER);
    struct oj_row_place out[6];
    oj_row_places_set_first_fid(&places, 40);
    oj_row_places_begin_unmatched(&places, 5, is_matched);
    ck_assert_int_eq(oj_row_places_count(&places), 3);
    ck_assert_int_eq(oj_row_places_next(&places, out, 6), 3);
    for (int i = 0; i < 3; i++)
    {
        ck_assert_int_eq(out[i].row, i == 0 ? 0 : i + 1);
        ck_assert_int_eq(out[i].entry, -1);
        ck_assert_int_eq(out[i].join_row, -1);
        ck_assert_int_eq(out[i].rank, 0);
        ck_assert_int_eq(out[i].n_pairs, 0);
        ck_assert_int_eq(out[i].fid, 40 + i);
    }
    oj_row_places_end(&places);
    ck_assert_int_eq(oj_row_places_next(&places, out, 6), 0);
}

/* Right and full joins treat input rows like inner and left joins. */
TEST(truth_how_of_input_rows)
{
    static const enum oj_how of[] = {OJ_HOW_LEFT, OJ_HOW_INNER, OJ_HOW_SEMI,
                                     OJ_HOW_ANTI, OJ_HOW_INNER, OJ_HOW_LEFT};
    for (int how = OJ_HOW_LEFT; how <= OJ_HOW_FULL; how++)
    {
        ck_assert_int_eq(oj_how_of_input_rows((enum oj_how)how), of[how]);
        ck_assert_int_eq(oj_how_has_join_rows((enum oj_how)how),
                         how >= OJ_HOW_RIGHT);
        ck_assert_int_eq(oj_how_is_at_most_one_row((enum oj_how)how),
                         how == OJ_HOW_SEMI || how == OJ_HOW_ANTI);
    }
}

/* An input feature with three pairs is tested with each of several FIDs. */
TEST(truth_spread_fids)
{
    static const int64_t fids[] = {0, 7, -1, -8, INT64_MAX / 3 + 1, INT64_MIN};
    static const int64_t first[] = {0, 21, -3, -24, OJ_NO_FID, OJ_NO_FID};
    struct oj_row_places places = oj_row_places_make(OJ_HOW_LEFT);
    struct oj_matches m = {0};
    ck_assert_int_eq(oj_matches_reserve(&m, 1, 3, 1, NULL), OJ_OK);
    m.offset[0] = 0;
    m.offset[1] = 3;
    for (int i = 0; i < 3; i++)
        set_entry(&m, i, i);
    oj_row_places_set_fid_stride(&places, 3);
    for (size_t i = 0; i < sizeof fids / sizeof *fids; i++)
    {
        struct oj_row_place out[3];
        oj_row_places_begin(&places, &m, &m, 0, &fids[i]);
        ck_assert_int_eq(oj_row_places_next(&places, out, 3), 3);
        for (int p = 0; p < 3; p++)
        {
            int64_t n, feature;
            if (first[i] == OJ_NO_FID)
            {
                ck_assert_int_eq(out[p].fid, OJ_NO_FID);
                continue;
            }
            ck_assert_int_eq(out[p].fid, first[i] + p);
            feature = oj_row_places_input_fid(out[p].fid, 3, &n);
            ck_assert_int_eq(feature, fids[i]);
            ck_assert_int_eq(n, p);
        }
    }
    oj_matches_free(&m);
}

/* FIDs are negative, or at the limits of int64_t. Rows keep an FID that is
 * within the limits; other rows get none. */
TEST(truth_spread_fids_at_the_ends)
{
    static const int64_t least = INT64_MIN / 3; /* rounded towards 0 */
    struct oj_row_places places = oj_row_places_make(OJ_HOW_INNER);
    struct oj_row_place out[3];
    struct oj_matches m = {0};
    /* FID of an input row with 3 pairs: with a stride of 3 the rows of the
     * output would have the FIDs INT64_MIN - 1, INT64_MIN and INT64_MIN + 1;
     * the first is beyond the limit */
    int64_t fid = least - 1;
    ck_assert_int_eq(oj_matches_reserve(&m, 1, 3, 1, NULL), OJ_OK);
    m.offset[0] = 0;
    m.offset[1] = 3;
    for (int i = 0; i < 3; i++)
        set_entry(&m, i, i);
    oj_row_places_set_fid_stride(&places, 3);
    oj_row_places_begin(&places, &m, &m, 0, &fid);
    ck_assert_int_eq(oj_row_places_next(&places, out, 3), 3);
    ck_assert_int_eq(out[0].fid, OJ_NO_FID);
    ck_assert_int_eq(out[1].fid, INT64_MIN);
    ck_assert_int_eq(out[2].fid, INT64_MIN + 1);
    oj_matches_free(&m);
}

int main(void)
{
    tests_open("row places");
    return tests_run();
}
