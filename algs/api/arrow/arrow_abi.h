/** The Arrow C data and stream interfaces: structs by which programs pass data
 * in memory. Source (names and layout):
 * https://arrow.apache.org/docs/format/CDataInterface.html and
 * CStreamInterface.html. */
#ifndef ARROW_ABI_H
#define ARROW_ABI_H

#include <stdint.h>

/** Error message for a schema that violates the C data interface. */
#define OJ_ARROW_SCHEMA_IS_BROKEN                                              \
    "the Arrow schema is broken: it is NULL, has been released or moved, or "  \
    "has no format or children; export it anew for each call"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema
{
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray
{
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream
{
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif
#endif
