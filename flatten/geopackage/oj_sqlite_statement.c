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

static oj_status prepare(sqlite3 *connection, sqlite3_stmt **out,
                         struct oj_error *err, const char *format,
                         va_list arguments)
{
    char *text = sqlite3_vmprintf(format, arguments);
    int code;
    if (text == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a statement");
    code = sqlite3_prepare_v3(connection, text, -1, SQLITE_PREPARE_PERSISTENT,
                              out, NULL);
    sqlite3_free(text);
    return code == SQLITE_OK
               ? OJ_OK
               : oj_sqlite_fail(connection, "a statement failed", err);
}

oj_status oj_sqlite_prepare(sqlite3 *connection, sqlite3_stmt **out,
                            struct oj_error *err, const char *format, ...)
{
    va_list arguments;
    oj_status status;
    va_start(arguments, format);
    status = prepare(connection, out, err, format, arguments);
    va_end(arguments);
    return status;
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

oj_status oj_sqlite_run(sqlite3 *connection, struct oj_error *err,
                        const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list arguments;
    oj_status status;
    va_start(arguments, format);
    status = prepare(connection, &statement, err, format, arguments);
    va_end(arguments);
    if (status == OJ_OK)
        status = oj_sqlite_step(statement, err);
    sqlite3_finalize(statement);
    return status;
}
