/* The states of a pass: their table, and passes on files, also with calls in a
 * wrong order.
 * Kind: unit. */
#include "../job/shared_jobs.h"

/* For each state, the letters of its possible successors. States are in the
 * order of the enum, with the letters C O P S p c s I R B. */
static const char *const allowed[OJ_N_PASS_STATES] = {
    "O", "P", "Sp", "p", "Pcs", "s", "PI", "sR", "s", "O"};
static const char letters[] = "COPSpcsIRB";

static enum oj_pass_state state_of(const struct job_trial *t)
{
    return oj_pass_state_get(&t->pass.state);
}

TEST(table)
{
    for (int from = 0; from < OJ_N_PASS_STATES; from++)
    {
        for (int to = 0; to < OJ_N_PASS_STATES; to++)
        {
            enum oj_pass_state state = (enum oj_pass_state)from;
            struct oj_error err = {OJ_OK, ""};
            const int may = to == OJ_PASS_BROKEN ||
                            strchr(allowed[from], letters[to]) != NULL;
            const oj_status status =
                oj_pass_state_enter(&state, (enum oj_pass_state)to, &err);
            ck_assert_int_eq(oj_pass_state_allows((enum oj_pass_state)from,
                                                  (enum oj_pass_state)to),
                             may);
            ck_assert_int_eq(status, may ? OJ_OK : OJ_ERR_INTERNAL);
            ck_assert_int_eq(state, may ? to : from);
            if (may)
                continue;
            ck_assert_ptr_nonnull(strstr(
                err.message, oj_pass_state_name((enum oj_pass_state)from)));
            ck_assert_ptr_nonnull(strstr(
                err.message, oj_pass_state_name((enum oj_pass_state)to)));
        }
    }
}

/* Every state can be reached from CLOSED. From every state, CLOSED or OPEN can
 * be reached.
 */
TEST(no_dead_ends)
{
    int reached[OJ_N_PASS_STATES] = {1};
    for (int round = 0; round < OJ_N_PASS_STATES; round++)
    {
        for (int from = 0; from < OJ_N_PASS_STATES; from++)
        {
            int n_next = 0;
            for (int to = 0; to < OJ_N_PASS_STATES; to++)
            {
                if (!oj_pass_state_allows((enum oj_pass_state)from,
                                          (enum oj_pass_state)to))
                    continue;
                reached[to] |= reached[from];
                n_next += to != OJ_PASS_BROKEN;
            }
            ck_assert_int_gt(n_next, 0);
        }
    }
    for (int i = 0; i < OJ_N_PASS_STATES; i++)
        ck_assert_int_eq(reached[i], 1);
}

TEST(join_sides)
{
    enum oj_pass_state state = OJ_PASS_CLOSED;
    ck_assert(!oj_pass_state_has_join_side(OJ_PASS_OPEN));
    ck_assert(!oj_pass_state_has_join_side(OJ_PASS_STREAMING));
    ck_assert(!oj_pass_state_has_join_side(OJ_PASS_BROKEN));
    ck_assert(oj_pass_state_has_join_side(OJ_PASS_PREPARED));
    ck_assert(oj_pass_state_has_join_side(OJ_PASS_CHOOSING));
    ck_assert(oj_pass_state_has_join_side(OJ_PASS_OTHER_ROWS));
    oj_pass_state_set_broken(&state);
    ck_assert_int_eq(state, OJ_PASS_BROKEN);
}

/* ---- passes on files ------------------------------------------------------
 */

/* The states in the order of a run of the command. */
TEST(states_of_a_pass)
{
    static const char *const lines[] = {
        "-op intersects", "-op nearest", "-op intersects -one_to_one",
        "-op intersects -agg sum(n)", "-op intersects -agg count"};
    static const enum oj_answers_from from[] = {
        OJ_ANSWERS_JOINED, OJ_ANSWERS_JOINED, OJ_ANSWERS_CHOSEN,
        OJ_ANSWERS_JOINED, OJ_ANSWERS_ADDED_UP};
    make_folder();
    for (int i = 0; i < 5; i++)
    {
        const struct oj_answer *answer;
        struct job_trial t;
        parse(&t, lines[i], i < 4 ? "points.gpkg" : "zones.gpkg",
              i < 4 ? "zones.gpkg" : "points.gpkg");
        ck_assert_int_eq(state_of(&t), OJ_PASS_CLOSED);
        must(&t, oj_pass_open(&t.command, &t.pass, &t.error));
        ck_assert_int_eq(state_of(&t), OJ_PASS_OPEN);
        must(&t, oj_pass_prepare(&t.pass, &t.error));
        ck_assert_int_eq(state_of(&t), OJ_PASS_PREPARED);
        must(&t, oj_pass_start(&t.pass, 0, &t.error));
        ck_assert_int_eq(state_of(&t), OJ_PASS_STARTED);
        ck_assert_int_eq(t.pass.answers_from, from[i]);
        ck_assert(!oj_pass_is_running(&t.pass));
        must(&t, oj_pass_next(&t.pass, &answer, &t.error));
        ck_assert_ptr_nonnull(answer);
        ck_assert(oj_pass_is_running(&t.pass));
        ck_assert_int_eq(state_of(&t), OJ_PASS_INPUT_ROWS);
        while (answer != NULL)
            must(&t, oj_pass_next(&t.pass, &answer, &t.error));
        ck_assert_int_eq(state_of(&t), OJ_PASS_OTHER_ROWS);
        ck_assert(oj_pass_is_running(&t.pass));
        must(&t, oj_pass_stop(&t.pass, OJ_OK, &t.error));
        ck_assert_int_eq(state_of(&t), OJ_PASS_STARTED);
        ck_assert(!oj_pass_is_running(&t.pass));
        close_job(&t);
        ck_assert_int_eq(state_of(&t), OJ_PASS_CLOSED);
    }
    remove_folder();
}

/* If a pass was not started, asking for its rows is an error. */
TEST(next_before_start)
{
    struct job_trial t;
    make_folder();
    for (int is_prepared = 0; is_prepared < 2; is_prepared++)
    {
        const struct oj_answer *answer;
        parse(&t, "-op intersects", "points.gpkg", "zones.gpkg");
        must(&t, oj_pass_open(&t.command, &t.pass, &t.error));
        if (is_prepared)
            must(&t, oj_pass_prepare(&t.pass, &t.error));
        ck_assert_int_eq(oj_pass_next(&t.pass, &answer, &t.error),
                         OJ_ERR_INTERNAL);
        ck_assert_int_eq(oj_pass_stop(&t.pass, OJ_ERR_INTERNAL, &t.error),
                         OJ_ERR_INTERNAL);
        ck_assert_int_eq(state_of(&t), OJ_PASS_BROKEN);
        close_job(&t);
    }
    remove_folder();
}

/* A shared pass that has failed can be opened again and returns its rows. */
TEST(broken_and_reopened)
{
    struct job_trial t, alone;
    make_folder();
    join_alone(&alone, "-op intersects", "points.gpkg", "zones.gpkg");
    open_job(&t, "-op intersects", "points.gpkg", "zones.gpkg");
    must(&t, stream(&t));
    ck_assert_int_eq(state_of(&t), OJ_PASS_STARTED);
    ck_assert(!oj_pass_is_outdated(&t.pass));
    ck_assert_int_eq(oj_pass_stop(&t.pass, OJ_ERR_IO, &t.error), OJ_ERR_IO);
    ck_assert_int_eq(state_of(&t), OJ_PASS_BROKEN);
    ck_assert(oj_pass_is_outdated(&t.pass));
    must(&t, oj_pass_reopen_if_outdated(&t.pass, &t.error));
    ck_assert_int_eq(state_of(&t), OJ_PASS_OPEN);
    must(&t, stream(&t));
    ck_assert(same_answer(&alone, &t));
    close_job(&t);
    close_job(&alone);
    remove_folder();
}

/* A pass that was stopped, before or after its first rows, can be started
 * again.
 */
TEST(stopped_and_begun_again)
{
    struct job_trial t, alone;
    make_folder();
    join_alone(&alone, "-op intersects", "points.gpkg", "zones.gpkg");
    open_job(&t, "-op intersects", "points.gpkg", "zones.gpkg");
    for (int i = 0; i < 20; i++)
    {
        const struct oj_answer *answer;
        must(&t, oj_pass_next(&t.pass, &answer, &t.error));
        must(&t, oj_pass_stop(&t.pass, OJ_OK, &t.error));
        ck_assert_int_eq(state_of(&t), OJ_PASS_STARTED);
    }
    must(&t, stream(&t));
    ck_assert(same_answer(&alone, &t));
    close_job(&t);
    close_job(&alone);
    remove_folder();
}

int main(void)
{
    tests_open("pass_states");
    GDALAllRegister();
    return tests_run();
}
