#include "oj_field_kind.h"

const char *oj_field_kind_name(enum oj_field_kind kind)
{
    static const char *const names[] = {[OJ_FIELD_BOOLEAN] = "Integer",
                                        [OJ_FIELD_INT16] = "Integer",
                                        [OJ_FIELD_INT32] = "Integer",
                                        [OJ_FIELD_INT64] = "Integer64",
                                        [OJ_FIELD_FLOAT32] = "Real",
                                        [OJ_FIELD_FLOAT64] = "Real",
                                        [OJ_FIELD_TEXT] = "String",
                                        [OJ_FIELD_BYTES] = "Binary",
                                        [OJ_FIELD_DATE] = "Date",
                                        [OJ_FIELD_TIME] = "Time",
                                        [OJ_FIELD_DATETIME] = "DateTime",
                                        [OJ_FIELD_INT32_LIST] = "IntegerList",
                                        [OJ_FIELD_INT64_LIST] = "Integer64List",
                                        [OJ_FIELD_FLOAT64_LIST] = "RealList",
                                        [OJ_FIELD_TEXT_LIST] = "StringList",
                                        [OJ_FIELD_NULL] = "without any value",
                                        [OJ_FIELD_OTHER] = "of another type"};
    return names[kind];
}
