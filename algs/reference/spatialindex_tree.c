/* The papers' serial baseline: an R-tree of libspatialindex, bulk-loaded, in
 * memory.  Source: Zhang, You, Gruenwald 2012, section 4.1. */
#include "box_tree.h"

#include "../../flatten/base/oj_library_texts.h"

#include <spatialindex/capi/sidx_api.h>

#include <stdlib.h>
#include <string.h>

/* What the stream of boxes has got to.  The library's callback has no user
 * pointer; loading begins and ends within one call, so one place per thread
 * will do. */
struct stream
{
    const struct oj_boxes *boxes;
    int64_t next;
    double low[2], high[2];
};
static _Thread_local struct stream *loading;

/* The bulk loader sorts more than a million boxes through files that it makes
 * in the current folder. */
static oj_status fail(struct oj_error *err)
{
    char *text = Error_GetLastErrorMsg();
    oj_status status = OJ_ERR_INTERNAL;
    const char *hint = "";
    if (text == NULL || strstr(text, OJ_TEXT_NO_MEMORY) != NULL)
        status = OJ_ERR_NOMEM;
    else if (strstr(text, OJ_TEXT_NO_LOADER_FILE) != NULL)
    {
        status = OJ_ERR_IO;
        hint = " (it needs to write to the current folder)";
    }
    status = oj_fail(err, status, "libspatialindex: %s%s",
                     text != NULL ? text : "out of memory", hint);
    free(text);
    return status;
}

/* 0: a box was handed over; -1: no more. */
static int read_next(int64_t *id, double **low, double **high,
                     uint32_t *dimension, const uint8_t **data, size_t *length)
{
    struct stream *stream = loading;
    const struct oj_box *box;
    while (stream->next < stream->boxes->n &&
           oj_box_is_empty(&stream->boxes->box[stream->next]))
        stream->next++;
    if (stream->next >= stream->boxes->n)
        return -1;
    box = &stream->boxes->box[stream->next];
    stream->low[0] = box->x0;
    stream->low[1] = box->y0;
    stream->high[0] = box->x1;
    stream->high[1] = box->y1;
    *id = stream->next++;
    *low = stream->low;
    *high = stream->high;
    *dimension = 2;
    *data = NULL;
    *length = 0;
    return 0;
}

static oj_status build(const struct oj_boxes *boxes, void **out,
                       struct oj_error *err)
{
    struct stream stream = {boxes, 0, {0.0, 0.0}, {0.0, 0.0}};
    IndexPropertyH properties = IndexProperty_Create();
    IndexH tree = NULL;
    if (properties == NULL)
        return fail(err);
    /* R*-tree in memory; capacities stay the library's own (100 and 100) */
    if (IndexProperty_SetIndexType(properties, RT_RTree) == RT_None &&
        IndexProperty_SetDimension(properties, 2) == RT_None &&
        IndexProperty_SetIndexVariant(properties, RT_Star) == RT_None &&
        IndexProperty_SetIndexStorage(properties, RT_Memory) == RT_None)
    {
        loading = &stream;
        tree = Index_CreateWithStream(properties, read_next);
        loading = NULL;
    }
    IndexProperty_Destroy(properties);
    if (tree == NULL)
        return fail(err);
    *out = tree;
    return OJ_OK;
}

static oj_status query(void *tree, const struct oj_box *window,
                       struct oj_box_found *found, struct oj_error *err)
{
    double low[2] = {window->x0, window->y0};
    double high[2] = {window->x1, window->y1};
    int64_t *ids = NULL;
    uint64_t n = 0;
    oj_status status = OJ_OK;
    if (Index_Intersects_id(tree, low, high, 2, &ids, &n) != RT_None)
        return fail(err);
    for (uint64_t i = 0; i < n && status == OJ_OK; i++)
        status = oj_box_found_add(found, ids[i], err);
    Index_Free(ids);
    return status;
}

static void free_tree(void *tree)
{
    if (tree != NULL)
        Index_Destroy(tree);
}

const struct oj_box_library oj_spatialindex_tree = {build, query, free_tree};
