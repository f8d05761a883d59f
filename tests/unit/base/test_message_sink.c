/* Messages of a thread are sent to the sink of that thread. Sinks can be
 * nested, and so can cancel flags. Texts become one line of UTF-8.
 * Kind: unit. */
#include "../run_tests.h"

#include "../../../driver/base/oj_cancel.h"
#include "../../../driver/base/oj_message.h"

#include <cpl_error.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Checks the messages in their order. expected has "n:TEXT|" for a notice,
 * "w:TEXT|" for a warning. */
static void check_heard(const struct oj_message_list *list,
                        const char *expected)
{
    char text[1024] = "";
    for (int i = 0; i < list->n; i++)
        oj_message_append(text, sizeof text, "%c:%s|",
                          list->messages[i].is_warning ? 'w' : 'n',
                          list->messages[i].text);
    ck_assert_str_eq(text, expected);
}

TEST(sinks_nest_like_brackets)
{
    static struct oj_message_list outer, inner;
    struct oj_message_sink a, b;
    char first[64];
    oj_message_redirect_to_list(&outer, &a);
    oj_notice("one %d", 1);
    CPLError(CE_Warning, CPLE_AppDefined, "two");
    CPLError(CE_Failure, CPLE_AppDefined, "three");
    oj_message_redirect_to_list(&inner, &b);
    oj_warn("four");
    CPLError(CE_Failure, CPLE_AppDefined, "five");
    CPLError(CE_Failure, CPLE_AppDefined, "six");
    ck_assert_int_eq(oj_message_take_errors(first, (int)sizeof first), 2);
    ck_assert_str_eq(first, "five");
    ck_assert_int_eq(oj_message_take_errors(first, (int)sizeof first), 0);
    oj_message_end_redirection();
    oj_message_print("seven");
    CPLDebug("X", "not heard");
    ck_assert_int_eq(oj_message_take_errors(first, (int)sizeof first), 1);
    ck_assert_str_eq(first, "three");
    oj_message_end_redirection();
    check_heard(&outer, "n:one 1|w:two|n:seven|");
    check_heard(&inner, "w:four|");
    /* GDAL's own error handler is active again: the test's lists get no further
     * message */
    CPLPushErrorHandler(CPLQuietErrorHandler);
    CPLError(CE_Warning, CPLE_AppDefined, "to nobody");
    CPLPopErrorHandler();
    check_heard(&outer, "n:one 1|w:two|n:seven|");
}

static void *say_elsewhere(void *user)
{
    struct oj_message_sink sink;
    oj_message_redirect_to_list(user, &sink);
    oj_notice("elsewhere");
    oj_message_end_redirection();
    return NULL;
}

TEST(threads_have_sinks_of_their_own)
{
    static struct oj_message_list here, there;
    struct oj_message_sink sink;
    pthread_t thread;
    oj_message_redirect_to_list(&here, &sink);
    ck_assert_int_eq(pthread_create(&thread, NULL, say_elsewhere, &there), 0);
    pthread_join(thread, NULL);
    oj_notice("here");
    oj_message_end_redirection();
    check_heard(&here, "n:here|");
    check_heard(&there, "n:elsewhere|");
}

static void *is_cancelled(void *user)
{
    *(int *)user = oj_is_cancelled();
    return NULL;
}

TEST(flags_belong_to_threads)
{
    const int *of_process = oj_cancel_flag();
    int a = 0, b = 0, elsewhere = -1;
    pthread_t thread;
    ck_assert_ptr_nonnull(of_process);
    ck_assert_ptr_null(oj_cancel_use_flag(&a));
    ck_assert_ptr_eq(oj_cancel_flag(), &a);
    ck_assert_ptr_eq(oj_cancel_use_flag(&b), &a);
    __atomic_store_n(&b, 1, __ATOMIC_RELAXED);
    ck_assert_int_eq(oj_is_cancelled(), 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, is_cancelled, &elsewhere),
                     0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(elsewhere, 0);
    ck_assert_ptr_eq(oj_cancel_use_flag(&a), &b);
    ck_assert_int_eq(oj_is_cancelled(), 0);
    ck_assert_ptr_eq(oj_cancel_use_flag(NULL), &a);
    ck_assert_ptr_eq(oj_cancel_flag(), of_process);
}

TEST(texts_become_a_line_of_utf8)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"a\nb\tc\rd\x01", "a b c d "},
        {"\x7F", "?"},
        {"z\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80",
         "z\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"a\xFF\xFE", "a??"},
        {"\xC3", "?"},
        {"\xE2\x82", "??"},
        {"\xE2\x82 x", "?? x"},
        {"\x80\xBF", "??"},
        {"\xC0\x80", "??"},
        {"\xE0\x80\x80", "???"},
        {"\xED\xA0\x80", "???"},
        {"\xF4\x90\x80\x80", "????"},
        {"\xF8\x88\x80\x80\x80", "?????"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        char text[32];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        oj_message_make_one_line(text);
        ck_assert_str_eq(text, cases[i][1]);
    }
}

int main(void)
{
    tests_open("messages");
    return tests_run();
}
