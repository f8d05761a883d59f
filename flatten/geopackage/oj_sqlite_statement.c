#include "oj_sqlite_statement.h"

#include <stdarg.h>
#include <stddef.h>

oj_status oj_sqlite_fail(sqlite3 *connection, const char *what,
                         struct oj_error *err)
{
    int code = sqlite3_errcode(connection) & 255;
    if (code == SQLITE_INTERRUPT)
        return oj_fail_cancelled(err);
    return oj_fail(err, code == SQLITE_NOMEM ? OJ_ERR_NOMEM : OJ_ERR_IO,
                   "%s: %s", what, sqlite3_errmsg(connection));
}

static oj_status fail_text(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a statement");
}

oj_status oj_sqlite_run(sqlite3 *connection, struct oj_error *err,
                        const char *format, ...)
{
    va_list arguments;
    char *text;
    int code;
    va_start(arguments, format);
    text = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    if (text == NULL)
        return fail_text(err);
    code = sqlite3_exec(connection, text, NULL, NULL, NULL);
    sqlite3_free(text);
    return code == SQLITE_OK
               ? OJ_OK
               : oj_sqlite_fail(connection, "a statement failed", err);
}

oj_status oj_sqlite_prepare(sqlite3 *connection, sqlite3_stmt **out,
                            struct oj_error *err, const char *format, ...)
{
    va_list arguments;
    char *text;
    int code;
    va_start(arguments, format);
    text = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    if (text == NULL)
        return fail_text(err);
    code = sqlite3_prepare_v3(connection, text, -1, SQLITE_PREPARE_PERSISTENT,
                              out, NULL);
    sqlite3_free(text);
    return code == SQLITE_OK
               ? OJ_OK
               : oj_sqlite_fail(connection, "a statement failed", err);
}

oj_status oj_sqlite_step(sqlite3_stmt *statement, struct oj_error *err)
{
    oj_status status = OJ_OK;
    if (sqlite3_step(statement) != SQLITE_DONE)
        status = oj_sqlite_fail(sqlite3_db_handle(statement),
                                "a statement failed", err);
    sqlite3_reset(statement);
    return status;
}
