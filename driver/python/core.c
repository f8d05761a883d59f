/* ogrjoin._core: wraps the handles of the C library as capsules, and its arrays
 * as buffers.
 *
 * Uses the limited API of CPython 3.11; a Python without the GIL needs another
 * build. The functions that users call are written in Python (ogrjoin/).
 * The GIL is released during calls of the library, and the library reads no
 * memory that the GIL protects.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../../algs/api/arrow/arrow_abi.h"
#include "../../algs/api/arrow/oj_arrow_iso_wkb.h"
#include "../../algs/ogrjoin.h"
#include "../../flatten/base/oj_timed_wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- errors ----------------------------------------------------------------
 */

static PyObject *make_error; /* ogrjoin._errors.make(status, message) */
static unsigned long main_thread;

/* Raises the Python exception of err, and returns NULL. err->message may end
 * within a UTF-8 character, because the library cuts it to a fixed length. */
static PyObject *raise_error(const struct ogrjoin_error *err)
{
    PyObject *text = PyUnicode_DecodeUTF8(
        err->message, (Py_ssize_t)strlen(err->message), "replace");
    PyObject *error = text != NULL ? PyObject_CallFunction(make_error, "iO",
                                                           err->status, text)
                                   : NULL;
    Py_XDECREF(text);
    if (error != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

/* --- calls that Ctrl-C can interrupt ---------------------------------------
 *
 *   main thread   start -- wait 50 ms -- signals? -- wait ... -- join
 *   another       the library's call, without the GIL ---------/
 */

#define LISTEN_MS 50

struct side_call
{
    int (*work)(void *data, struct ogrjoin_error *err);
    void *data;
    struct ogrjoin_error err;
    int status;
    pthread_mutex_t lock; /* guards is_done */
    pthread_cond_t done;
    int has_condition, is_done;
};

/* The Python state of a thread that the library has started. The state is made
 * at the thread's first callback and kept until the thread ends: pyproj keeps a
 * context for each thread, and it crashes when the thread calls it again with
 * another state. */
static _Thread_local PyThreadState *state_of_thread;

static PyGILState_STATE acquire_gil_on_any_thread(void)
{
    if (PyGILState_GetThisThreadState() == NULL)
    {
        (void)PyGILState_Ensure();
        state_of_thread = PyEval_SaveThread();
    }
    return PyGILState_Ensure();
}

static void free_state_of_thread(void)
{
    if (state_of_thread == NULL)
        return;
    PyEval_RestoreThread(state_of_thread);
    state_of_thread = NULL;
    PyGILState_Release(PyGILState_UNLOCKED);
}

static void *run_work_on_thread(void *at)
{
    struct side_call *w = at;
    w->status = w->work(w->data, &w->err);
    free_state_of_thread();
    pthread_mutex_lock(&w->lock);
    w->is_done = 1;
    if (w->has_condition)
        pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Waits at most LISTEN_MS milliseconds for the end of the work. Returns 1 if
 * the work is done. */
static int wait_done_with_timeout(struct side_call *w)
{
    int is_done, code = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->is_done && code == 0)
        code = oj_timed_wait(&w->done, &w->lock, LISTEN_MS);
    is_done = w->is_done;
    pthread_mutex_unlock(&w->lock);
    return is_done;
}

/* Waits for the worker without the GIL, and runs signal handlers in between.
 * While *cancel is positive, the library stops. If a handler raises an
 * exception (Ctrl-C), *cancel is incremented, and decremented again when the
 * worker has ended.
 */
static void wait_handling_signals(struct side_call *w, int *cancel)
{
    int is_interrupted = 0;
    for (;;)
    {
        PyThreadState *state = PyEval_SaveThread();
        int is_done = wait_done_with_timeout(w);
        PyEval_RestoreThread(state);
        if (is_done)
            break;
        if (!is_interrupted && PyErr_CheckSignals() != 0)
        {
            is_interrupted = 1;
            __atomic_fetch_add(cancel, 1, __ATOMIC_RELAXED);
        }
    }
    if (is_interrupted)
        __atomic_fetch_sub(cancel, 1, __ATOMIC_RELAXED);
}

/* Runs the work without the GIL. Only the main thread runs signal handlers, so
 * on that thread a second thread does the work. */
static void work_without_gil(struct side_call *w, int *cancel)
{
    pthread_t thread;
    if (PyThread_get_thread_ident() == main_thread && w->has_condition &&
        pthread_create(&thread, NULL, run_work_on_thread, w) == 0)
    {
        wait_handling_signals(w, cancel);
        pthread_join(thread, NULL);
        return;
    }
    Py_BEGIN_ALLOW_THREADS run_work_on_thread(w);
    Py_END_ALLOW_THREADS
}

/* Runs the work once. Returns 0, or -1 with a Python exception. Sets
 * *is_cancelled to 1 if the work was cancelled by another thread: all callers
 * of an index share its *cancel.
 */
static int run_once_interruptible(int (*work)(void *, struct ogrjoin_error *),
                                  void *data, int *cancel, int *is_cancelled)
{
    struct side_call w = {.work = work, .data = data};
    pthread_mutex_init(&w.lock, NULL);
    w.has_condition = oj_timed_wait_init(&w.done);
    work_without_gil(&w, cancel);
    if (w.has_condition)
        pthread_cond_destroy(&w.done);
    pthread_mutex_destroy(&w.lock);
    *is_cancelled =
        w.status == OGRJOIN_ERR_CANCELLED && PyErr_Occurred() == NULL;
    if (w.status != OGRJOIN_OK && PyErr_Occurred() == NULL)
        raise_error(&w.err);
    return PyErr_Occurred() != NULL ? -1 : 0;
}

/* Like run_once_interruptible(), but repeats the work if another thread
 * cancelled it. Returns 0, or -1 with a Python exception. The work must not
 * consume its input. */
static int run_interruptible(int (*work)(void *, struct ogrjoin_error *),
                             void *data, int *cancel)
{
    int is_cancelled, code;
    while ((code = run_once_interruptible(work, data, cancel, &is_cancelled)) !=
               0 &&
           is_cancelled)
        PyErr_Clear();
    return code;
}

/* --- settings --------------------------------------------------------------
 */

/* Reads a number. Returns 1, or 0 with an exception if value is not a number.
 * Arrays are refused, even those of one element, which Python would convert. */
static int read_number(const char *name, PyObject *value, double *out)
{
    struct ogrjoin_error err = {OGRJOIN_ERR_ARG, ""};
    Py_ssize_t length = PyObject_Size(value);
    PyObject *type;
    PyErr_Clear(); /* clears the error of a number, which has no length */
    if (length < 0)
        *out = PyFloat_AsDouble(value);
    if (length < 0 && (*out != -1.0 || PyErr_Occurred() == NULL))
        return 1;
    PyErr_Clear();
    type = PyType_GetName(Py_TYPE(value));
    snprintf(err.message, sizeof err.message,
             "%.60s takes a word or a number, not a value of the type %.60s",
             name,
             type != NULL ? PyUnicode_AsUTF8AndSize(type, NULL) : "unknown");
    Py_XDECREF(type);
    (void)raise_error(&err);
    return 0;
}

/* Sets a setting to a text. A text with a zero byte is refused, because the
 * library would take it to end there. */
static int set_text(struct ogrjoin_settings *settings, const char *name,
                    PyObject *value, struct ogrjoin_error *err)
{
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(value, &n);
    if (text == NULL)
        return -1;
    if (strlen(text) == (size_t)n)
        err->status = ogrjoin_set_text(settings, name, text, err);
    else
    {
        err->status = OGRJOIN_ERR_ARG;
        snprintf(err->message, sizeof err->message,
                 "the value of the setting %.60s has a zero byte: leave it out",
                 name);
    }
    return 0;
}

static int apply_setting(struct ogrjoin_settings *settings, PyObject *key,
                         PyObject *value)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
    if (name == NULL || value == Py_None)
        return name != NULL ? 0 : -1;
    if (PyUnicode_Check(value))
    {
        if (set_text(settings, name, value, &err) != 0)
            return -1;
    }
    else
    {
        double number;
        if (!read_number(name, value, &number))
            return -1;
        err.status = ogrjoin_set_number(settings, name, number, &err);
    }
    if (err.status != OGRJOIN_OK)
        raise_error(&err);
    return err.status == OGRJOIN_OK ? 0 : -1;
}

/* Calls pyproj to compare two CRS given as texts, if the library cannot decide.
 * Returns 1 if they are equal, 0 if they differ, -1 if pyproj fails. Can be
 * called with or without the GIL. */
static int compare_crs(void *user, const char *a, const char *b)
{
    PyGILState_STATE state = acquire_gil_on_any_thread();
    PyObject *module = PyImport_ImportModule("ogrjoin._crs"), *answer = NULL;
    int is_one = -1;
    (void)user;
    if (module != NULL)
        answer = PyObject_CallMethod(module, "compare", "ss", a, b);
    if (answer != NULL)
        is_one = (int)PyLong_AsLong(answer);
    if (PyErr_Occurred() != NULL)
    {
        PyErr_Clear();
        is_one = -1;
    }
    Py_XDECREF(answer);
    Py_XDECREF(module);
    PyGILState_Release(state);
    return is_one;
}

/* Writes the PROJJSON of a CRS that is given by its code, made by pyproj, to
 * text [size]. Returns its length, or 0 if pyproj cannot make it. Can be called
 * with or without the GIL. */
static int expand_crs(void *user, const char *crs, char *text, size_t size)
{
    PyGILState_STATE state = acquire_gil_on_any_thread();
    PyObject *module = PyImport_ImportModule("ogrjoin._crs"), *made = NULL;
    PyObject *bytes = NULL;
    int n = 0;
    (void)user;
    if (module != NULL)
        made = PyObject_CallMethod(module, "expand", "s", crs);
    if (made != NULL)
        bytes = PyUnicode_AsUTF8String(made);
    if (bytes != NULL && strcmp(PyBytes_AsString(bytes), crs) != 0)
        n = snprintf(text, size, "%s", PyBytes_AsString(bytes));
    if (PyErr_Occurred() != NULL)
        PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(made);
    Py_XDECREF(module);
    PyGILState_Release(state);
    return n;
}

/* Makes settings from a dict of texts and numbers; a value None means that the
 * setting is not given. */
static struct ogrjoin_settings *make_settings(PyObject *dict, const int *cancel)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (settings == NULL)
        PyErr_NoMemory();
    else
    {
        ogrjoin_settings_cancel(settings, cancel);
        ogrjoin_settings_crs(settings, expand_crs, compare_crs, NULL);
    }
    while (settings != NULL && PyDict_Next(dict, &at, &key, &value))
    {
        if (apply_setting(settings, key, value) != 0)
        {
            ogrjoin_settings_free(settings);
            settings = NULL;
        }
    }
    return settings;
}

/* --- layers ----------------------------------------------------------------
 */

#define LAYER "ogrjoin.layer"

enum
{
    MOST_VIEWS = 32
};

struct layer_handle
{
    struct ogrjoin_layer *layer;
    Py_buffer view[MOST_VIEWS]; /* buffers that the layer borrows */
    int n_views;
};

static void release_views(struct layer_handle *self)
{
    for (int i = 0; i < self->n_views; i++)
        PyBuffer_Release(&self->view[i]);
    self->n_views = 0;
}

static void free_layer(struct layer_handle *self)
{
    ogrjoin_layer_free(self->layer);
    release_views(self);
    free(self);
}

static void destroy_layer_capsule(PyObject *capsule)
{
    free_layer(PyCapsule_GetPointer(capsule, LAYER));
}

static struct layer_handle *new_layer(void)
{
    struct layer_handle *self = calloc(1, sizeof *self);
    if (self == NULL)
        PyErr_NoMemory();
    return self;
}

/* Returns a capsule that owns self. If self->layer is NULL, frees self and
 * returns NULL; the caller has set an exception. */
static PyObject *make_layer_capsule(struct layer_handle *self)
{
    PyObject *capsule = NULL;
    if (self->layer != NULL)
        capsule = PyCapsule_New(self, LAYER, destroy_layer_capsule);
    if (capsule == NULL)
        free_layer(self);
    return capsule;
}

/* Returns the memory of n values of size bytes and keeps the buffer with the
 * layer. Returns NULL with an exception on failure. */
static const void *borrow_buffer(struct layer_handle *self, PyObject *buffer,
                                 int64_t n, size_t size)
{
    Py_buffer *view = &self->view[self->n_views];
    /* checked before the multiplication, because the product could overflow */
    if (n < 0 || n > INT64_MAX / (int64_t)size)
        PyErr_SetString(
            PyExc_ValueError,
            "the number of rows must be 0 or more and fit into memory");
    else if (self->n_views == MOST_VIEWS)
        PyErr_SetString(
            PyExc_ValueError,
            "too many columns were set on this layer: leave some out");
    else if (PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE) == 0)
    {
        self->n_views++;
        if ((int64_t)view->len == n * (int64_t)size)
            return view->buf != NULL ? view->buf : "";
        PyErr_SetString(
            PyExc_ValueError,
            "each column must have one value per feature of its layer");
    }
    return NULL;
}

/* layer_from_arrays(n, x, y) -> layer of n points, or
 * layer_from_arrays(n, x, y, part_offset, part_kind, ring_offset,
 * vertex_offset) -> layer of n features; the arrays are those of struct
 * ogrjoin_arrays.
 * Arrays must be contiguous. The layer uses their memory without a copy. */
static PyObject *layer_from_arrays(PyObject *module, PyObject *args)
{
    struct ogrjoin_arrays all = {.size = sizeof all};
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct layer_handle *self;
    PyObject *x, *y, *part = NULL, *kind, *ring, *vertex;
    Py_ssize_t n;
    (void)module;
    if (!PyArg_ParseTuple(args, "nOO|OOOO", &n, &x, &y, &part, &kind, &ring,
                          &vertex) ||
        (self = new_layer()) == NULL)
        return NULL;
    if (n < 0 || n == PY_SSIZE_T_MAX)
    {
        PyErr_SetString(
            PyExc_ValueError,
            "the number of rows must be 0 or more and fit into memory");
        return make_layer_capsule(self);
    }
    all.n_features = all.n_vertices = n;
    if (part != NULL)
    {
        all.n_parts = PyObject_Size(kind);
        all.n_rings = PyObject_Size(vertex) - 1;
        all.n_vertices = PyObject_Size(x);
        if ((all.part_offset = borrow_buffer(self, part, n + 1, 8)) == NULL ||
            (all.part_kind = borrow_buffer(self, kind, all.n_parts, 1)) ==
                NULL ||
            (all.ring_offset = borrow_buffer(self, ring, all.n_parts + 1, 8)) ==
                NULL ||
            (all.vertex_offset =
                 borrow_buffer(self, vertex, all.n_rings + 1, 8)) == NULL)
            return make_layer_capsule(self);
    }
    if ((all.x = borrow_buffer(self, x, all.n_vertices, sizeof *all.x)) ==
            NULL ||
        (all.y = borrow_buffer(self, y, all.n_vertices, sizeof *all.y)) == NULL)
        return make_layer_capsule(self);
    Py_BEGIN_ALLOW_THREADS err.status =
        ogrjoin_layer_from_arrays(&all, &self->layer, &err);
    Py_END_ALLOW_THREADS if (err.status != OGRJOIN_OK) raise_error(&err);
    return make_layer_capsule(self);
}

/* Like borrow_buffer(), but returns NULL without an exception if column is
 * None. Sets *ok to 0 if it has set an exception. */
static const void *borrow_column(struct layer_handle *self, PyObject *column,
                                 size_t size, int *ok)
{
    const void *values = NULL;
    if (column != Py_None && *ok)
    {
        values =
            borrow_buffer(self, column, ogrjoin_layer_count(self->layer), size);
        *ok = values != NULL || PyErr_Occurred() == NULL;
    }
    return values;
}

static PyObject *return_none_or_raise(const struct ogrjoin_error *err)
{
    if (err->status != OGRJOIN_OK)
        return raise_error(err);
    Py_INCREF(Py_None);
    return Py_None;
}

/* set_columns(layer, id, max_distance, on_class, score): sets columns of the
 * layer. Each is None or a contiguous array of int64, double, int32 and int64,
 * in this order. The layer uses their memory without a copy. */
static PyObject *set_columns(PyObject *module, PyObject *args)
{
    struct ogrjoin_columns columns = {.size = sizeof columns};
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct layer_handle *self;
    PyObject *capsule, *id, *distance, *on_class, *score;
    int ok = 1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOO", &capsule, &id, &distance, &on_class,
                          &score) ||
        (self = PyCapsule_GetPointer(capsule, LAYER)) == NULL)
        return NULL;
    columns.id = borrow_column(self, id, 8, &ok);
    columns.max_distance = borrow_column(self, distance, 8, &ok);
    columns.on_class = borrow_column(self, on_class, 4, &ok);
    columns.score = borrow_column(self, score, 8, &ok);
    if (!ok)
        return NULL;
    err.status = ogrjoin_layer_set_columns(self->layer, &columns, &err);
    return return_none_or_raise(&err);
}

/* Reads the arguments (layer, int64 offsets, values of size bytes). The values
 * of feature i are values[offsets[i]] to values[offsets[i + 1] - 1]. The layer
 * uses both arrays without a copy. Returns NULL with an exception on
 * failure. */
static struct layer_handle *borrow_lists(PyObject *args, size_t size,
                                         const int64_t **first,
                                         const void **values)
{
    struct layer_handle *self;
    PyObject *capsule, *offset, *buffer;
    int64_t n;
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &offset, &buffer) ||
        (self = PyCapsule_GetPointer(capsule, LAYER)) == NULL)
        return NULL;
    n = ogrjoin_layer_count(self->layer);
    if ((*first = borrow_buffer(self, offset, n + 1, 8)) == NULL ||
        (*values = borrow_buffer(self, buffer, (*first)[n], size)) == NULL)
        return NULL;
    return self;
}

/* add_text(layer, offsets, bytes): adds a column of texts. */
static PyObject *add_text(PyObject *module, PyObject *args)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    const int64_t *first;
    const void *text;
    struct layer_handle *self = borrow_lists(args, 1, &first, &text);
    (void)module;
    if (self == NULL)
        return NULL;
    err.status = ogrjoin_layer_add_text(self->layer, first, text, &err);
    return return_none_or_raise(&err);
}

/* set_vectors(layer, offsets, doubles): sets the vector of each feature. */
static PyObject *set_vectors(PyObject *module, PyObject *args)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    const int64_t *first;
    const void *numbers;
    struct layer_handle *self =
        borrow_lists(args, sizeof(double), &first, &numbers);
    (void)module;
    if (self == NULL)
        return NULL;
    err.status = ogrjoin_layer_set_vectors(self->layer, first, numbers, &err);
    return return_none_or_raise(&err);
}

/* An import of either an Arrow stream, or a schema with an array, into a
 * layer. */
struct import_work
{
    struct ArrowArrayStream *stream;
    struct ArrowSchema *schema;
    struct ArrowArray *array;
    const char *column;
    struct ogrjoin_settings *settings;
    struct ogrjoin_layer *layer;
};

static int import_layer(void *data, struct ogrjoin_error *err)
{
    struct import_work *w = data;
    if (w->stream != NULL)
        return ogrjoin_layer_from_stream(w->stream, w->column, w->settings,
                                         &w->layer, err);
    return ogrjoin_layer_from_array(w->schema, w->array, w->column, w->settings,
                                    &w->layer, err);
}

static PyObject *make_layer(struct import_work *w, PyObject *settings)
{
    struct layer_handle *self = new_layer();
    int cancel = 0;
    if (self == NULL)
        return NULL;
    w->settings = make_settings(settings, &cancel);
    if (w->settings != NULL && run_interruptible(import_layer, w, &cancel) != 0)
    {
        ogrjoin_layer_free(w->layer);
        w->layer = NULL;
    }
    self->layer = w->layer;
    ogrjoin_settings_free(w->settings);
    return make_layer_capsule(self);
}

/* from_stream(capsule, column or None, settings) -> layer of the rows of an
 * Arrow stream. Consumes the stream. */
static PyObject *from_stream(PyObject *module, PyObject *args)
{
    struct import_work w = {0};
    PyObject *stream, *settings;
    (void)module;
    if (!PyArg_ParseTuple(args, "OzO!", &stream, &w.column, &PyDict_Type,
                          &settings) ||
        (w.stream = PyCapsule_GetPointer(stream, "arrow_array_stream")) == NULL)
        return NULL;
    return make_layer(&w, settings);
}

/* from_array(schema, array, column or None, settings) -> layer of the rows of
 * an Arrow array. Consumes the array. */
static PyObject *from_array(PyObject *module, PyObject *args)
{
    struct import_work w = {0};
    PyObject *schema, *array, *settings;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOzO!", &schema, &array, &w.column,
                          &PyDict_Type, &settings) ||
        (w.schema = PyCapsule_GetPointer(schema, "arrow_schema")) == NULL ||
        (w.array = PyCapsule_GetPointer(array, "arrow_array")) == NULL)
        return NULL;
    return make_layer(&w, settings);
}

/* WKB of all rows, concatenated: an Arrow array of large binary. */
struct wkb_column
{
    int64_t n;
    int64_t *offset; /* [n + 1] offset of each row in bytes */
    uint8_t *bytes;
    uint8_t *valid; /* bitmap: one bit per row */
};

static void free_wkb(struct wkb_column *c)
{
    free(c->offset);
    free(c->bytes);
    free(c->valid);
}

/* Release functions that free nothing. The schema and array that use them are
 * freed by the function that made them. */
static void ignore_schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void ignore_array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

/* Concatenates the WKB of the items of list into c. Returns 0, or -1 with an
 * exception. list must not change during the call. */
static int fill_wkb(PyObject *list, struct wkb_column *c)
{
    char *text;
    Py_ssize_t size;
    c->n = PyList_Size(list);
    c->offset = calloc((size_t)c->n + 1, sizeof *c->offset);
    c->valid = calloc((size_t)c->n / 8 + 1, 1);
    if (c->offset == NULL || c->valid == NULL)
        goto no_memory;
    for (int64_t i = 0; i < c->n; i++)
    {
        PyObject *item = PyList_GetItem(list, i);
        size = 0;
        if (item != Py_None && PyBytes_AsStringAndSize(item, &text, &size) != 0)
            return -1;
        c->valid[i >> 3] |= (uint8_t)((item != Py_None) << (i & 7));
        c->offset[i + 1] = c->offset[i] + size;
    }
    c->bytes = malloc((size_t)c->offset[c->n] + 1);
    if (c->bytes == NULL)
        goto no_memory;
    for (int64_t i = 0; i < c->n; i++)
    {
        PyObject *item = PyList_GetItem(list, i);
        if (item != Py_None && PyBytes_AsStringAndSize(item, &text, &size) == 0)
            memcpy(c->bytes + c->offset[i], text, (size_t)size);
    }
    return 0;
no_memory:
    PyErr_NoMemory();
    return -1;
}

/* from_wkb(list of bytes and None, settings): the layer of WKB geometries. */
static PyObject *from_wkb(PyObject *module, PyObject *args)
{
    struct ArrowSchema schema = {.format = "Z",
                                 .flags = ARROW_FLAG_NULLABLE,
                                 .release = ignore_schema_release};
    struct wkb_column c = {0};
    const void *buffers[3];
    struct ArrowArray array = {.null_count = -1,
                               .n_buffers = 3,
                               .buffers = buffers,
                               .release = ignore_array_release};
    struct import_work w = {.schema = &schema, .array = &array};
    PyObject *list, *settings, *out = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &list, &PyDict_Type,
                          &settings))
        return NULL;
    if (fill_wkb(list, &c) == 0)
    {
        buffers[0] = c.valid;
        buffers[1] = c.offset;
        buffers[2] = c.bytes;
        array.length = c.n;
        out = make_layer(&w, settings);
    }
    free_wkb(&c);
    return out;
}

static PyObject *count_layer_features(PyObject *module, PyObject *capsule)
{
    struct layer_handle *self = PyCapsule_GetPointer(capsule, LAYER);
    (void)module;
    return self != NULL ? PyLong_FromLongLong(ogrjoin_layer_count(self->layer))
                        : NULL;
}

/* Returns an SRID as an int, or None for -1: there is no geometry. */
static PyObject *object_of_srid(int64_t srid)
{
    if (srid >= 0)
        return PyLong_FromLongLong(srid);
    Py_INCREF(Py_None);
    return Py_None;
}

/* py_srid(layer) -> SRID of the geometries of a layer, 0 if they have none, or
 * None if there is no geometry. */
static PyObject *py_srid(PyObject *module, PyObject *capsule)
{
    struct layer_handle *self = PyCapsule_GetPointer(capsule, LAYER);
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    int64_t srid;
    (void)module;
    if (self == NULL)
        return NULL;
    err.status = ogrjoin_layer_srid(self->layer, &srid, &err);
    return err.status == OGRJOIN_OK ? object_of_srid(srid) : raise_error(&err);
}

/* --- an index --------------------------------------------------------------
 */

#define INDEX "ogrjoin.index"

struct index_handle
{
    struct ogrjoin_index *index;
    /* capsule of the join side, whose buffers the index may borrow */
    PyObject *layer;
    /* number of interrupted callers; the library stops while it is not 0 */
    int cancel;
};

static void free_index(struct index_handle *self)
{
    ogrjoin_index_free(self->index);
    Py_DECREF(self->layer);
    free(self);
}

static void destroy_index_capsule(PyObject *capsule)
{
    free_index(PyCapsule_GetPointer(capsule, INDEX));
}

struct index_work
{
    struct ogrjoin_layer *layer;
    struct ogrjoin_settings *settings;
    struct ogrjoin_index *index;
};

static int make_index(void *data, struct ogrjoin_error *err)
{
    struct index_work *w = data;
    return ogrjoin_index_new(w->layer, w->settings, &w->index, err);
}

/* check_settings(settings): raises the errors of index() that depend on nothing
 * but the settings. */
static PyObject *check_settings(PyObject *module, PyObject *settings)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct ogrjoin_settings *made;
    int cancel = 0;
    (void)module;
    if (!PyDict_Check(settings))
    {
        PyErr_SetString(PyExc_TypeError, "settings must be a dict");
        return NULL;
    }
    made = make_settings(settings, &cancel);
    if (made == NULL)
        return NULL;
    err.status = ogrjoin_settings_check_pairs(made, &err);
    ogrjoin_settings_free(made);
    if (err.status != OGRJOIN_OK)
        return raise_error(&err);
    Py_INCREF(Py_None);
    return Py_None;
}

/* index(layer, settings, left CRS or None, CRS of the layer or None) -> index
 * of the layer, which becomes the join side. */
static PyObject *new_index(PyObject *module, PyObject *args)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct index_work w = {0};
    struct index_handle *self;
    struct layer_handle *layer;
    const char *left_crs, *right_crs;
    PyObject *capsule, *settings, *out = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!zz", &capsule, &PyDict_Type, &settings,
                          &left_crs, &right_crs) ||
        (layer = PyCapsule_GetPointer(capsule, LAYER)) == NULL)
        return NULL;
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return PyErr_NoMemory();
    Py_INCREF(capsule);
    self->layer = capsule;
    w.layer = layer->layer;
    w.settings = make_settings(settings, &self->cancel);
    if (w.settings != NULL)
        err.status = ogrjoin_settings_check_pairs(w.settings, &err);
    if (w.settings != NULL && err.status == OGRJOIN_OK)
        err.status =
            ogrjoin_settings_use_crs(w.settings, left_crs, right_crs, &err);
    if (err.status != OGRJOIN_OK)
        raise_error(&err);
    else if (w.settings != NULL &&
             run_interruptible(make_index, &w, &self->cancel) == 0)
        out = PyCapsule_New(self, INDEX, destroy_index_capsule);
    self->index = w.index;
    ogrjoin_settings_free(w.settings);
    if (out == NULL)
        free_index(self);
    return out;
}

/* py_backend(index) -> name of the backend that finds the pairs. */
static PyObject *py_backend(PyObject *module, PyObject *capsule)
{
    struct index_handle *self = PyCapsule_GetPointer(capsule, INDEX);
    const char *name;
    (void)module;
    if (self == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS name = ogrjoin_index_backend(self->index);
    Py_END_ALLOW_THREADS return PyUnicode_FromString(name);
}

/* --- pairs -----------------------------------------------------------------
 */

#define PAIRS "ogrjoin.pairs"

/* A read-only buffer over an array of the library. It keeps a reference to the
 * object that owns the array. */
struct array_object
{
    PyObject_HEAD PyObject *owner;
    const void *values;
    Py_ssize_t n, size; /* number of values; bytes of a value */
    char format[2];     /* q, i, d or B */
};

static PyTypeObject *array_type;

static int export_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct array_object *self = (struct array_object *)object;
    int code = PyBuffer_FillInfo(view, object, (void *)(uintptr_t)self->values,
                                 self->n * self->size, 1, flags);
    if (code == 0)
        view->itemsize = self->size; /* also without the format */
    if (code == 0 && (flags & PyBUF_FORMAT) != 0)
        view->format = self->format;
    if (code == 0 && (flags & PyBUF_ND) != 0)
        view->shape = &self->n;
    if (code == 0 && (flags & PyBUF_STRIDES) == PyBUF_STRIDES)
        view->strides = &self->size;
    return code;
}

static void dealloc_array(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(((struct array_object *)object)->owner);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *new_array(PyObject *owner, const void *values, int64_t n,
                           char format)
{
    struct array_object *self = PyObject_New(struct array_object, array_type);
    if (self == NULL)
        return NULL;
    Py_INCREF(owner);
    self->owner = owner;
    self->values = values;
    self->n = (Py_ssize_t)n;
    self->size = format == 'B' ? 1 : format == 'i' ? 4 : 8;
    self->format[0] = format;
    self->format[1] = '\0';
    return (PyObject *)self;
}

/* Returns a buffer over values, or None if values is NULL. */
static PyObject *new_array_or_none(PyObject *owner, const void *values,
                                   int64_t n, char format)
{
    if (values != NULL)
        return new_array(owner, values, n, format);
    Py_INCREF(Py_None);
    return Py_None;
}

static void destroy_pairs_capsule(PyObject *capsule)
{
    ogrjoin_pairs_free(PyCapsule_GetPointer(capsule, PAIRS));
}

struct pairs_work
{
    struct ogrjoin_index *index;
    struct ogrjoin_layer *input;   /* NULL if `source` is the input */
    struct ogrjoin_source *source; /* its remaining rows are the input */
    int64_t n_rows;                /* estimated number of rows of source */
    struct ogrjoin_pairs *pairs;
};

static int run_join_work(void *data, struct ogrjoin_error *err)
{
    struct pairs_work *w = data;
    if (w->input == NULL)
        return ogrjoin_join_source(w->index, w->source, w->n_rows, &w->pairs,
                                   err);
    return ogrjoin_join_lists(w->index, w->input, &w->pairs, err);
}

/* Returns {name: buffer} of the values that the settings ask for. */
static PyObject *make_value_buffers(PyObject *owner,
                                    const struct ogrjoin_pairs *pairs)
{
    static const char *const names[] = {"overlap_area",    "overlap_length",
                                        "overlap_percent", "nearest_x",
                                        "nearest_y",       "from_x",
                                        "from_y",          "bearing",
                                        "similarity",      "similarity_2",
                                        "similarity_3",    "similarity_4",
                                        "similarity_5",    "similarity_6",
                                        "similarity_7",    "similarity_8",
                                        "difference",      "change",
                                        "line_along",      "line_along_percent",
                                        "line_offset",     "line_side",
                                        "line_segment",    "line_bearing",
                                        "matrix",          "relation"};
    PyObject *out = PyDict_New();
    for (size_t i = 0; out != NULL && i < sizeof names / sizeof *names; i++)
    {
        const double *values = ogrjoin_pairs_value(pairs, names[i]);
        PyObject *array;
        if (values == NULL)
            continue;
        array = new_array(owner, values, ogrjoin_pairs_count(pairs), 'd');
        if (array == NULL || PyDict_SetItemString(out, names[i], array) != 0)
        {
            Py_DECREF(out);
            out = NULL;
        }
        Py_XDECREF(array);
    }
    return out;
}

/* Returns (offsets, bytes) of the intersections as WKB, or None. */
static PyObject *make_intersection_buffers(PyObject *owner,
                                           const struct ogrjoin_pairs *pairs)
{
    const int64_t *offset;
    const uint8_t *bytes = ogrjoin_pairs_intersection(pairs, &offset);
    int64_t n = ogrjoin_pairs_count(pairs);
    if (bytes == NULL)
        return Py_BuildValue("O", Py_None);
    return Py_BuildValue("NN", new_array(owner, offset, n + 1, 'q'),
                         new_array(owner, bytes, offset[n], 'B'));
}

/* Joins and returns a tuple: (pairs, offsets, right, measures or None, {name:
 * buffer} of the other values, (offsets, bytes) of the intersections or None,
 * number of undecided pairs, number of groups too large for one_to_one best).
 * offsets, right (int32) and measures are buffers. */
static PyObject *join_to_buffers(struct pairs_work *w,
                                 struct index_handle *index)
{
    PyObject *owner = NULL;
    int64_t n, n_rows;
    int is_cancelled, code;
    w->index = index->index;
    code = w->input != NULL
               ? run_interruptible(run_join_work, w, &index->cancel)
               : run_once_interruptible(run_join_work, w, &index->cancel,
                                        &is_cancelled);
    if (code == 0)
        owner = PyCapsule_New(w->pairs, PAIRS, destroy_pairs_capsule);
    if (owner == NULL)
    {
        ogrjoin_pairs_free(w->pairs);
        return NULL;
    }
    n = ogrjoin_pairs_count(w->pairs);
    n_rows = ogrjoin_pairs_rows(w->pairs);
    return Py_BuildValue(
        "NNNNNNLL", owner,
        new_array(owner, ogrjoin_pairs_offset(w->pairs), n_rows + 1, 'q'),
        new_array(owner, ogrjoin_pairs_right32(w->pairs), n, 'i'),
        new_array_or_none(owner, ogrjoin_pairs_measure(w->pairs), n, 'd'),
        make_value_buffers(owner, w->pairs),
        make_intersection_buffers(owner, w->pairs),
        (long long)ogrjoin_pairs_undecided(w->pairs),
        (long long)ogrjoin_pairs_large_groups(w->pairs));
}

/* py_join(index, layer): finds the pairs of a left layer; result as of
 * join_to_buffers(). */
static PyObject *py_join(PyObject *module, PyObject *args)
{
    struct pairs_work w = {0};
    struct index_handle *index;
    struct layer_handle *input;
    PyObject *one, *two;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &one, &two) ||
        (index = PyCapsule_GetPointer(one, INDEX)) == NULL ||
        (input = PyCapsule_GetPointer(two, LAYER)) == NULL)
        return NULL;
    w.input = input->layer;
    return join_to_buffers(&w, index);
}

/* py_pair_word(name, value) -> the word for a value of pairs, for example of
 * line_side; None if there is none. */
static PyObject *py_pair_word(PyObject *module, PyObject *args)
{
    const char *name;
    double value;
    (void)module;
    if (!PyArg_ParseTuple(args, "sd", &name, &value))
        return NULL;
    return Py_BuildValue("z", ogrjoin_pairs_word(name, value));
}

/* py_fill_left(offsets, first, left): writes first + i into left for each pair
 * of row i. offsets and left are int64. */
static PyObject *py_fill_left(PyObject *module, PyObject *args)
{
    PyObject *from, *to, *out = NULL;
    Py_buffer offsets, left;
    long long first;
    (void)module;
    if (!PyArg_ParseTuple(args, "OLO", &from, &first, &to) ||
        PyObject_GetBuffer(from, &offsets, PyBUF_SIMPLE) != 0)
        return NULL;
    if (PyObject_GetBuffer(to, &left, PyBUF_WRITABLE) == 0)
    {
        const int64_t *offset = offsets.buf;
        int64_t n_rows = offsets.len / 8 - 1, n = left.len / 8;
        int64_t *row_of = left.buf;
        if (n_rows < 0 || offset[n_rows] > n)
            PyErr_SetString(PyExc_ValueError,
                            "a column has fewer values than its offsets need: "
                            "give as many as the last offset");
        else
        {
            for (int64_t row = 0; row < n_rows; row++)
            {
                for (int64_t i = offset[row]; i < offset[row + 1]; i++)
                    row_of[i] = first + row;
            }
            Py_INCREF(Py_None);
            out = Py_None;
        }
        PyBuffer_Release(&left);
    }
    PyBuffer_Release(&offsets);
    return out;
}

/* py_trim(index): frees the scratch memory of joins. */
static PyObject *py_trim(PyObject *module, PyObject *capsule)
{
    struct index_handle *self = PyCapsule_GetPointer(capsule, INDEX);
    (void)module;
    if (self == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS ogrjoin_index_trim(self->index);
    Py_END_ALLOW_THREADS Py_INCREF(Py_None);
    return Py_None;
}

/* --- numpy columns as Arrow, and classes of their values -------------------
 */

static void destroy_schema_capsule(PyObject *capsule);
static void destroy_array_capsule(PyObject *capsule);

enum
{
    COLUMN_BUFFERS = 3 /* validity bitmap, offsets of texts, values */
};

/* An Arrow array over buffers of Python objects. */
struct column_array
{
    Py_buffer view[COLUMN_BUFFERS];
    const void *buffers[COLUMN_BUFFERS];
};

/* Release function of the array. Takes the GIL, since consumers may call it on
 * any thread. */
static void release_column(struct ArrowArray *array)
{
    struct column_array *self = array->private_data;
    PyGILState_STATE state = PyGILState_Ensure();
    for (int i = 0; i < COLUMN_BUFFERS; i++)
        PyBuffer_Release(&self->view[i]);
    PyGILState_Release(state);
    free(self);
    array->release = NULL;
}

static void release_column_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

/* Returns the static string that is equal to this Arrow format, since a schema
 * outlives the argument; NULL if column() takes no such format. */
static const char *static_column_format(const char *name)
{
    static const char *const formats[] = {"l",    "L",    "g",    "U",   "tdD",
                                          "tss:", "tsm:", "tsu:", "tsn:"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    {
        if (strcmp(formats[i], name) == 0)
            return formats[i];
    }
    return NULL;
}

/* column(n, format, validity bitmap or None, offsets or None, values) ->
 * (schema, array) */
static PyObject *py_column(PyObject *module, PyObject *args)
{
    struct ArrowSchema *schema = NULL;
    struct ArrowArray *array = NULL;
    struct column_array *self = NULL;
    PyObject *from[COLUMN_BUFFERS], *one = NULL, *two = NULL;
    const char *format;
    Py_ssize_t n;
    (void)module;
    if (!PyArg_ParseTuple(args, "nsOOO", &n, &format, &from[0], &from[1],
                          &from[2]))
        return NULL;
    format = static_column_format(format);
    schema = calloc(1, sizeof *schema);
    array = calloc(1, sizeof *array);
    self = calloc(1, sizeof *self);
    if (format == NULL || schema == NULL || array == NULL || self == NULL)
    {
        PyErr_NoMemory();
        goto failed;
    }
    schema->format = format;
    schema->flags = ARROW_FLAG_NULLABLE;
    schema->release = release_column_schema;
    array->length = n;
    array->null_count = from[0] == Py_None ? 0 : -1;
    array->n_buffers = 1;
    array->buffers = self->buffers;
    array->private_data = self;
    array->release = release_column;
    for (int i = 0; i < COLUMN_BUFFERS; i++)
    {
        if (from[i] == Py_None)
            continue;
        if (PyObject_GetBuffer(from[i], &self->view[i], PyBUF_SIMPLE) != 0)
            goto failed;
        self->buffers[i == 0 ? 0 : array->n_buffers++] =
            self->view[i].buf != NULL ? self->view[i].buf : "";
    }
    one = PyCapsule_New(schema, "arrow_schema", destroy_schema_capsule);
    two = one != NULL
              ? PyCapsule_New(array, "arrow_array", destroy_array_capsule)
              : NULL;
    if (two != NULL)
        return Py_BuildValue("NN", one, two);
    if (one != NULL)
        schema = NULL; /* owned by the capsule now */
    Py_XDECREF(one);
failed:
    if (array != NULL && array->release != NULL)
        array->release(array);
    else
        free(self);
    free(array);
    free(schema);
    return NULL;
}

#define CLASSES "ogrjoin.classes"

static void destroy_classes_capsule(PyObject *capsule)
{
    ogrjoin_classes_free(PyCapsule_GetPointer(capsule, CLASSES));
}

/* classes(schema, array) -> classes of the values of a column of the join side;
 * equal values have one class. Consumes the array. */
static PyObject *py_classes(PyObject *module, PyObject *args)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct ogrjoin_classes *classes = NULL;
    struct ArrowSchema *schema;
    struct ArrowArray *array;
    PyObject *one, *two, *capsule;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &one, &two) ||
        (schema = PyCapsule_GetPointer(one, "arrow_schema")) == NULL ||
        (array = PyCapsule_GetPointer(two, "arrow_array")) == NULL)
        return NULL;
    err.status = ogrjoin_classes_new(schema, array, &classes, &err);
    if (err.status != OGRJOIN_OK)
        return raise_error(&err);
    capsule = PyCapsule_New(classes, CLASSES, destroy_classes_capsule);
    if (capsule == NULL)
        ogrjoin_classes_free(classes);
    return capsule;
}

/* find_classes(classes, schema, array, out, n) -> buffer with the class of each
 * of the n join rows, int32. Writes the class of each value of array to out.
 * Consumes array. */
static PyObject *py_find_classes(PyObject *module, PyObject *args)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct ogrjoin_classes *classes;
    struct ArrowSchema *schema;
    struct ArrowArray *array;
    const int32_t *of_join = NULL;
    PyObject *one, *two, *three, *to;
    Py_ssize_t n_join;
    Py_buffer out;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOn", &one, &two, &three, &to, &n_join) ||
        (classes = PyCapsule_GetPointer(one, CLASSES)) == NULL ||
        (schema = PyCapsule_GetPointer(two, "arrow_schema")) == NULL ||
        (array = PyCapsule_GetPointer(three, "arrow_array")) == NULL ||
        PyObject_GetBuffer(to, &out, PyBUF_WRITABLE) != 0)
        return NULL;
    if (array->length != out.len / 4)
    {
        PyBuffer_Release(&out);
        PyErr_SetString(
            PyExc_ValueError,
            "each column must have one value per feature of its layer");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS err.status =
        ogrjoin_classes_find(classes, schema, array, out.buf, &of_join, &err);
    Py_END_ALLOW_THREADS PyBuffer_Release(&out);
    if (err.status != OGRJOIN_OK)
        return raise_error(&err);
    return new_array(one, of_join, n_join, 'i');
}

/* --- a stream that is read layer by layer ----------------------------------
 */

#define SOURCE "ogrjoin.source"

struct source_handle
{
    struct ogrjoin_source *source;
    int cancel;
};

/* Frees a source without the GIL, because releasing its stream may run Python
 * code that takes the GIL. */
static void destroy_source_capsule(PyObject *capsule)
{
    struct source_handle *self = PyCapsule_GetPointer(capsule, SOURCE);
    Py_BEGIN_ALLOW_THREADS ogrjoin_source_free(self->source);
    Py_END_ALLOW_THREADS free(self);
}

struct source_work
{
    /* stream to open; NULL if rows of the source are read */
    struct ArrowArrayStream *stream;
    const char *column;
    struct ogrjoin_settings *settings;
    struct ogrjoin_source *source;
    int64_t n_rows;
    struct ogrjoin_layer *layer;
};

static int run_source_work(void *data, struct ogrjoin_error *err)
{
    struct source_work *w = data;
    if (w->stream != NULL)
        return ogrjoin_source_open(w->stream, w->column, w->settings,
                                   &w->source, err);
    return ogrjoin_source_next(w->source, w->n_rows, &w->layer, err);
}

/* py_source(stream, column or None, settings) -> source of the rows of the
 * Arrow stream. The source takes over the stream. */
static PyObject *py_source(PyObject *module, PyObject *args)
{
    struct source_work w = {0};
    struct source_handle *self;
    PyObject *stream, *settings, *capsule = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OzO!", &stream, &w.column, &PyDict_Type,
                          &settings) ||
        (w.stream = PyCapsule_GetPointer(stream, "arrow_array_stream")) == NULL)
        return NULL;
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return PyErr_NoMemory();
    w.settings = make_settings(settings, &self->cancel);
    if (w.settings != NULL &&
        run_interruptible(run_source_work, &w, &self->cancel) == 0)
        capsule = PyCapsule_New(self, SOURCE, destroy_source_capsule);
    ogrjoin_settings_free(w.settings);
    self->source = w.source;
    if (capsule == NULL)
    {
        ogrjoin_source_free(w.source);
        free(self);
    }
    return capsule;
}

/* py_next_layer(source, rows) -> layer of the next rows of the source, at most
 * `rows`; None at the end. */
static PyObject *py_next_layer(PyObject *module, PyObject *args)
{
    struct source_work w = {0};
    struct source_handle *self;
    struct layer_handle *layer;
    PyObject *capsule;
    Py_ssize_t n_rows;
    int is_cancelled;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &capsule, &n_rows) ||
        (self = PyCapsule_GetPointer(capsule, SOURCE)) == NULL ||
        (layer = new_layer()) == NULL)
        return NULL;
    w.source = self->source;
    w.n_rows = n_rows;
    if (run_once_interruptible(run_source_work, &w, &self->cancel,
                               &is_cancelled) != 0)
    {
        ogrjoin_layer_free(w.layer);
        w.layer = NULL;
    }
    layer->layer = w.layer;
    if (w.layer != NULL || PyErr_Occurred() != NULL)
        return make_layer_capsule(layer);
    free_layer(layer);
    Py_INCREF(Py_None);
    return Py_None;
}

/* py_source_srid(source) -> SRID of the rows of a source so far, or of the
 * first array of a source that was not read yet, as py_srid() returns it. */
static PyObject *py_source_srid(PyObject *module, PyObject *capsule)
{
    struct source_handle *self = PyCapsule_GetPointer(capsule, SOURCE);
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    int64_t srid;
    int status;
    (void)module;
    if (self == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status =
        ogrjoin_source_srid(self->source, &srid, &err);
    Py_END_ALLOW_THREADS err.status = status;
    return status == OGRJOIN_OK ? object_of_srid(srid) : raise_error(&err);
}

/* py_join_source(index, source, rows or 0) -> the tuple of join_to_buffers().
 * Finds the pairs of all rows that source has not returned yet. rows is an
 * estimate of their number, or 0. */
static PyObject *py_join_source(PyObject *module, PyObject *args)
{
    struct pairs_work w = {0};
    struct index_handle *index;
    struct source_handle *source;
    PyObject *one, *two;
    Py_ssize_t n_rows;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOn", &one, &two, &n_rows) ||
        (index = PyCapsule_GetPointer(one, INDEX)) == NULL ||
        (source = PyCapsule_GetPointer(two, SOURCE)) == NULL)
        return NULL;
    w.source = source->source;
    w.n_rows = n_rows;
    return join_to_buffers(&w, index);
}

/* --- rows ------------------------------------------------------------------
 *
 *   rows(stream, settings)              the join side, with its columns
 *   join_rows(rows, stream, settings)   begins the join of a left side with it
 *   next_rows(joined)                   makes the next batch of joined rows
 */

#define ROWS "ogrjoin.rows"
#define JOINED "ogrjoin.joined"

struct rows_handle
{
    struct ogrjoin_rows *rows;
    PyObject *notices; /* a list of texts that notices are added to */
    int cancel;
};

struct joined_handle
{
    struct ArrowArrayStream stream;
    PyObject *rows, *index; /* the capsules; index may be None */
    PyObject *notices;
    PyObject *progress; /* function to call with (rows done, all rows), or
                           None */
    PyObject *raised;   /* the exception that progress raised, or NULL */
    int cancel;
};

/* Appends a notice of the library to a list of texts. Called without the
 * GIL. */
static void add_notice(void *notices, const char *message)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *text = PyUnicode_FromString(message);
    if (text == NULL || PyList_Append(notices, text) != 0)
        PyErr_Clear();
    Py_XDECREF(text);
    PyGILState_Release(state);
}

/* Calls the progress function. The caller does not hold the GIL. Returns 0, or
 * 1 if the function raises an exception, which ends the join. */
static int call_progress(void *joined, int64_t rows, int64_t n_rows)
{
    struct joined_handle *self = joined;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *traceback,
        *done =
            PyObject_CallFunction(self->progress, "LL", (long long)rows,
                                  (long long)(n_rows > rows ? n_rows : rows));
    int code = done == NULL;
    Py_XDECREF(done);
    if (code)
    {
        PyErr_Fetch(&type, &self->raised, &traceback);
        PyErr_NormalizeException(&type, &self->raised, &traceback);
        Py_XDECREF(type);
        Py_XDECREF(traceback);
    }
    PyGILState_Release(state);
    return code;
}

static struct ogrjoin_settings *
make_row_settings(PyObject *dict, const int *cancel, PyObject *notices)
{
    struct ogrjoin_settings *settings = make_settings(dict, cancel);
    if (settings != NULL)
        ogrjoin_settings_notices(settings, add_notice, notices);
    return settings;
}

static void free_rows(struct rows_handle *self)
{
    Py_BEGIN_ALLOW_THREADS ogrjoin_rows_free(self->rows);
    Py_END_ALLOW_THREADS Py_XDECREF(self->notices);
    free(self);
}

static void destroy_rows_capsule(PyObject *capsule)
{
    free_rows(PyCapsule_GetPointer(capsule, ROWS));
}

static void free_joined(struct joined_handle *self)
{
    Py_BEGIN_ALLOW_THREADS if (self->stream.release != NULL)
        self->stream.release(&self->stream);
    Py_END_ALLOW_THREADS Py_XDECREF(self->rows);
    Py_XDECREF(self->index);
    Py_XDECREF(self->notices);
    Py_XDECREF(self->progress);
    Py_XDECREF(self->raised);
    free(self);
}

static void destroy_joined_capsule(PyObject *capsule)
{
    free_joined(PyCapsule_GetPointer(capsule, JOINED));
}

struct rows_work
{
    struct ArrowArrayStream *stream;
    struct ogrjoin_settings *settings;
    struct ogrjoin_rows *rows;
    struct ogrjoin_index *index; /* index to use for the pairs, or NULL */
    /* the stream of the joined rows: written when a join begins, read if
     * `array` is set; else NULL */
    struct ArrowArrayStream *out;
    struct ArrowArray *array; /* where to store the next batch; else NULL */
};

static int run_rows_work(void *data, struct ogrjoin_error *err)
{
    struct rows_work *w = data;
    if (w->array != NULL)
    {
        int code = w->out->get_next(w->out, w->array);
        const char *why = code != 0 ? w->out->get_last_error(w->out) : NULL;
        snprintf(
            err->message, sizeof err->message, "%s",
            why != NULL
                ? why
                : "internal error: the stream of joined rows failed without a "
                  "reason; this is a bug of ogrjoin: report it with the calls "
                  "that led to it");
        return err->status = code == 0           ? OGRJOIN_OK
                             : code == ECANCELED ? OGRJOIN_ERR_CANCELLED
                             : code == ENOMEM    ? OGRJOIN_ERR_NOMEM
                             : code == EIO       ? OGRJOIN_ERR_IO
                             : code == ENOSYS    ? OGRJOIN_ERR_UNSUPPORTED
                                                 : OGRJOIN_ERR_DATA;
    }
    if (w->out != NULL)
        return ogrjoin_rows_join_index(w->rows, w->index, w->stream,
                                       w->settings, w->out, err);
    return ogrjoin_rows_open(w->stream, w->settings, &w->rows, err);
}

/* py_rows(stream, settings) -> (rows, number of rows, notices). The Arrow
 * stream is consumed. */
static PyObject *py_rows(PyObject *module, PyObject *args)
{
    struct rows_work w = {0};
    struct rows_handle *self;
    PyObject *stream, *settings, *capsule = NULL;
    int is_cancelled;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &stream, &PyDict_Type, &settings) ||
        (w.stream = PyCapsule_GetPointer(stream, "arrow_array_stream")) == NULL)
        return NULL;
    if ((self = calloc(1, sizeof *self)) == NULL)
        return PyErr_NoMemory();
    if ((self->notices = PyList_New(0)) != NULL)
        w.settings = make_row_settings(settings, &self->cancel, self->notices);
    if (w.settings != NULL &&
        run_once_interruptible(run_rows_work, &w, &self->cancel,
                               &is_cancelled) == 0)
        capsule = PyCapsule_New(self, ROWS, destroy_rows_capsule);
    ogrjoin_settings_free(w.settings);
    self->rows = w.rows;
    if (capsule == NULL)
    {
        free_rows(self);
        return NULL;
    }
    return Py_BuildValue("NLO", capsule,
                         (long long)ogrjoin_rows_count(self->rows),
                         self->notices);
}

static void destroy_schema_capsule(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema->release != NULL)
        schema->release(schema);
    free(schema);
}

static void destroy_array_capsule(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array->release != NULL)
        array->release(array);
    free(array);
}

/* py_stream_schema(stream) -> capsule of the schema of an Arrow stream, or None
 * if the stream fails, whose reader reports that. */
static PyObject *py_stream_schema(PyObject *module, PyObject *capsule)
{
    struct ArrowArrayStream *stream =
        PyCapsule_GetPointer(capsule, "arrow_array_stream");
    struct ArrowSchema *schema;
    PyObject *out;
    int status;
    (void)module;
    if (stream == NULL)
        return NULL;
    schema = calloc(1, sizeof *schema);
    if (schema == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS status =
        stream->release == NULL ? -1 : stream->get_schema(stream, schema);
    Py_END_ALLOW_THREADS if (status == 0)
    {
        out = PyCapsule_New(schema, "arrow_schema", destroy_schema_capsule);
        if (out == NULL)
        {
            schema->release(schema);
            free(schema);
        }
        return out;
    }
    free(schema);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *make_schema_capsule(struct ArrowArrayStream *stream)
{
    struct ArrowSchema *schema = calloc(1, sizeof *schema);
    PyObject *capsule = NULL;
    if (schema == NULL || stream->get_schema(stream, schema) != 0)
        PyErr_NoMemory();
    else if ((capsule = PyCapsule_New(schema, "arrow_schema",
                                      destroy_schema_capsule)) == NULL)
        schema->release(schema);
    if (capsule == NULL)
        free(schema);
    return capsule;
}

static PyObject *make_array_capsule(struct ArrowArray *array)
{
    struct ArrowArray *own = calloc(1, sizeof *own);
    PyObject *capsule = NULL;
    if (own == NULL)
        PyErr_NoMemory();
    else if ((capsule = PyCapsule_New(own, "arrow_array",
                                      destroy_array_capsule)) != NULL)
    {
        *own = *array;
        return capsule;
    }
    free(own);
    array->release(array);
    return NULL;
}

/* py_iso_wkb(schema, array, has_crs) -> (capsule of the Arrow array of ISO WKB,
 * its format, SRID or 0) of a column of texts or WKB; the capsule is None if
 * the column is already ISO WKB. has_crs: the CRS is stated elsewhere, so that
 * SRIDs are ignored. */
static PyObject *py_iso_wkb(PyObject *module, PyObject *args)
{
    struct oj_arrow_geometry_column of = {NULL, "right", 0};
    struct oj_arrow_srid srid = {0, 0, 0, 0};
    struct ArrowArray *array, made;
    struct oj_error error;
    PyObject *one, *two, *capsule;
    const char *format = "z";
    oj_status status;
    int is_made = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOp", &one, &two, &srid.is_ignored) ||
        (of.schema = PyCapsule_GetPointer(one, "arrow_schema")) == NULL ||
        (array = PyCapsule_GetPointer(two, "arrow_array")) == NULL)
        return NULL;
    if (!oj_arrow_is_text(of.schema))
        format = of.schema->format[0] == 'z' ? "z" : "Z";
    Py_BEGIN_ALLOW_THREADS status = oj_arrow_iso_wkb_make(
        &of, array, -1, format, &srid, &is_made, &made, &error);
    Py_END_ALLOW_THREADS if (status != OJ_OK)
    {
        struct ogrjoin_error err = {(int)status, ""};
        snprintf(err.message, sizeof err.message, "%s", error.message);
        return raise_error(&err);
    }
    if (!is_made)
        return Py_BuildValue("OsL", Py_None, format, (long long)srid.number);
    capsule = make_array_capsule(&made);
    return capsule == NULL
               ? NULL
               : Py_BuildValue("NsL", capsule, format, (long long)srid.number);
}

/* py_join_rows(rows, stream, settings, progress or None, index or None) ->
 * (joined, schema, index of the geometry column or -1, notices). The Arrow
 * stream is consumed. */
static PyObject *py_join_rows(PyObject *module, PyObject *args)
{
    struct rows_work w = {0};
    struct rows_handle *rows;
    struct joined_handle *self;
    struct index_handle *index = NULL;
    PyObject *one, *stream, *settings, *progress, *two, *schema;
    PyObject *capsule = NULL;
    int is_cancelled;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!OO", &one, &stream, &PyDict_Type,
                          &settings, &progress, &two) ||
        (rows = PyCapsule_GetPointer(one, ROWS)) == NULL ||
        (two != Py_None &&
         (index = PyCapsule_GetPointer(two, INDEX)) == NULL) ||
        (w.stream = PyCapsule_GetPointer(stream, "arrow_array_stream")) == NULL)
        return NULL;
    if ((self = calloc(1, sizeof *self)) == NULL)
        return PyErr_NoMemory();
    Py_INCREF(one);
    self->rows = one;
    Py_INCREF(two);
    self->index = two;
    Py_INCREF(progress);
    self->progress = progress;
    w.rows = rows->rows;
    w.index = index != NULL ? index->index : NULL;
    w.out = &self->stream;
    if ((self->notices = PyList_New(0)) != NULL)
        w.settings = make_row_settings(settings, &self->cancel, self->notices);
    if (w.settings != NULL && progress != Py_None)
        ogrjoin_settings_progress(w.settings, call_progress, self);
    if (w.settings != NULL &&
        run_once_interruptible(run_rows_work, &w, &self->cancel,
                               &is_cancelled) == 0)
        capsule = PyCapsule_New(self, JOINED, destroy_joined_capsule);
    ogrjoin_settings_free(w.settings);
    if (capsule == NULL)
    {
        free_joined(self);
        return NULL;
    }
    if ((schema = make_schema_capsule(&self->stream)) == NULL)
    {
        Py_DECREF(capsule);
        return NULL;
    }
    return Py_BuildValue("NNLO", capsule, schema,
                         (long long)ogrjoin_rows_geometry(&self->stream),
                         self->notices);
}

/* py_next_rows(joined) -> (schema, array), or None at the end */
static PyObject *py_next_rows(PyObject *module, PyObject *capsule)
{
    struct joined_handle *self = PyCapsule_GetPointer(capsule, JOINED);
    struct rows_work w = {0};
    PyObject *schema, *array;
    int is_cancelled;
    (void)module;
    if (self == NULL)
        return NULL;
    w.out = &self->stream;
    if ((w.array = calloc(1, sizeof *w.array)) == NULL)
        return PyErr_NoMemory();
    if (run_once_interruptible(run_rows_work, &w, &self->cancel,
                               &is_cancelled) != 0 ||
        w.array->release == NULL)
    {
        if (w.array->release != NULL)
            w.array->release(w.array);
        free(w.array);
        if (self->raised != NULL)
            PyErr_SetObject((PyObject *)Py_TYPE(self->raised), self->raised);
        return PyErr_Occurred() != NULL ? NULL : Py_BuildValue("O", Py_None);
    }
    array = PyCapsule_New(w.array, "arrow_array", destroy_array_capsule);
    if (array == NULL)
    {
        w.array->release(w.array);
        free(w.array);
        return NULL;
    }
    if ((schema = make_schema_capsule(&self->stream)) == NULL)
    {
        Py_DECREF(array);
        return NULL;
    }
    return Py_BuildValue("NN", schema, array);
}

/* --- validation ------------------------------------------------------------
 */

struct validation_work
{
    struct ogrjoin_index *index;
    struct ogrjoin_layer *input;
    const char *reference;
    struct ogrjoin_validation out;
};

static int run_validation_work(void *data, struct ogrjoin_error *err)
{
    struct validation_work *w = data;
    return ogrjoin_validate(w->index, w->input, w->reference, &w->out, err);
}

/* py_validate(index, layer, reference or None) -> (rows, pairs, differences,
 * rows proved, rows undecided, pairs undecided, left, right, kind or None) */
static PyObject *py_validate(PyObject *module, PyObject *args)
{
    struct validation_work w = {.out.size = sizeof w.out};
    struct index_handle *index;
    struct layer_handle *input;
    PyObject *one, *two;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOz", &one, &two, &w.reference) ||
        (index = PyCapsule_GetPointer(one, INDEX)) == NULL ||
        (input = PyCapsule_GetPointer(two, LAYER)) == NULL)
        return NULL;
    w.index = index->index;
    w.input = input->layer;
    if (run_interruptible(run_validation_work, &w, &index->cancel) != 0)
        return NULL;
    return Py_BuildValue(
        "LLLLLLLLz", (long long)w.out.n_rows, (long long)w.out.n_pairs,
        (long long)w.out.n_differences, (long long)w.out.n_rows_proved,
        (long long)w.out.n_rows_undecided, (long long)w.out.n_pairs_undecided,
        (long long)w.out.left, (long long)w.out.right, w.out.kind);
}

/* --- arrays on a CUDA device -----------------------------------------------
 */

#define DEVICE_PAIRS "ogrjoin.device_pairs"

/* A join of points in device memory. Kernels may still read the points when the
 * call has returned, so this object keeps the points. */
struct device_handle
{
    struct ogrjoin_device_pairs pairs;
    PyObject *points;
};

static void free_device_pairs(struct device_handle *self)
{
    Py_BEGIN_ALLOW_THREADS ogrjoin_device_pairs_free(&self->pairs);
    Py_END_ALLOW_THREADS Py_DECREF(self->points);
    free(self);
}

static void destroy_device_capsule(PyObject *capsule)
{
    free_device_pairs(PyCapsule_GetPointer(capsule, DEVICE_PAIRS));
}

/* join_device(index, points, n, x, y, stride, stream) -> (owner, device, pairs,
 * offset, right, measure). x, y, offset, right and measure are addresses, or 0.
 * points is the object that owns x and y. The call runs on the caller's thread,
 * because some streams belong to a thread. */
static PyObject *join_device(PyObject *module, PyObject *args)
{
    struct ogrjoin_device_points in = {.size = sizeof in};
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct device_handle *self;
    struct index_handle *index;
    PyObject *capsule, *points, *owner;
    Py_ssize_t n, stride, x, y, stream;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOnnnnn", &capsule, &points, &n, &x, &y,
                          &stride, &stream) ||
        (index = PyCapsule_GetPointer(capsule, INDEX)) == NULL)
        return NULL;
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return PyErr_NoMemory();
    in.n = n;
    in.x = (const double *)x;
    in.y = (const double *)y;
    in.stride = stride;
    in.stream = (void *)stream;
    self->pairs.size = sizeof self->pairs;
    Py_INCREF(points);
    self->points = points;
    Py_BEGIN_ALLOW_THREADS err.status =
        ogrjoin_join_device(index->index, &in, &self->pairs, &err);
    Py_END_ALLOW_THREADS if (err.status != OGRJOIN_OK) raise_error(&err);
    owner = err.status == OGRJOIN_OK
                ? PyCapsule_New(self, DEVICE_PAIRS, destroy_device_capsule)
                : NULL;
    if (owner == NULL)
    {
        free_device_pairs(self);
        return NULL;
    }
    return Py_BuildValue(
        "NiLnnn", owner, self->pairs.device, (long long)self->pairs.n_pairs,
        (Py_ssize_t)self->pairs.offset, (Py_ssize_t)self->pairs.right,
        (Py_ssize_t)self->pairs.measure);
}

/* py_make_stream_wait_for_pairs(owner, stream): makes work that is queued on
 * stream from now on begin only after the pairs are complete. */
static PyObject *py_make_stream_wait_for_pairs(PyObject *module, PyObject *args)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct device_handle *self;
    PyObject *capsule;
    Py_ssize_t stream;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &capsule, &stream) ||
        (self = PyCapsule_GetPointer(capsule, DEVICE_PAIRS)) == NULL)
        return NULL;
    err.status = ogrjoin_device_pairs_wait(&self->pairs, (void *)stream, &err);
    return return_none_or_raise(&err);
}

/* DLTensor of dlpack.h. */
struct dl_tensor
{
    void *data;
    int32_t device_type, device_id;
    int32_t n_dimensions;
    uint8_t code, bits;
    uint16_t lanes;
    /* numbers of elements; strides is NULL if the array is contiguous */
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct dl_managed
{
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
};

#define DL_NAME "dltensor"

/* from_dlpack(capsule) -> (address, shape, strides in elements, code, bits,
 * device type, device). The capsule keeps the memory and is not consumed. */
static PyObject *from_dlpack(PyObject *module, PyObject *capsule)
{
    const struct dl_managed *managed = PyCapsule_GetPointer(capsule, DL_NAME);
    const struct dl_tensor *t;
    int64_t shape[2] = {0, 1}, stride[2] = {1, 1};
    (void)module;
    if (managed == NULL)
        return NULL;
    t = &managed->tensor;
    if (t->n_dimensions < 1 || t->n_dimensions > 2 || t->lanes != 1)
    {
        PyErr_SetString(PyExc_ValueError,
                        "the DLPack array must have 1 or 2 dimensions and "
                        "values of one lane");
        return NULL;
    }
    for (int i = t->n_dimensions; i-- > 0;)
    {
        shape[i] = t->shape[i];
        stride[i] = i + 1 < t->n_dimensions ? shape[i + 1] : 1;
        if (t->strides != NULL)
            stride[i] = t->strides[i];
    }
    return Py_BuildValue(
        "n(LL)(LL)iiii", (Py_ssize_t)t->data + (Py_ssize_t)t->byte_offset,
        (long long)shape[0], (long long)shape[1], (long long)stride[0],
        (long long)stride[1], (int)t->code, (int)t->bits, (int)t->device_type,
        (int)t->device_id);
}

struct shared_array
{
    struct dl_managed managed;
    int64_t length;
    PyObject *owner;
};

/* Release function of an exported array; its consumer calls it, on any thread.
 */
static void release_dlpack_array(struct dl_managed *managed)
{
    struct shared_array *self = managed->context;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(self->owner);
    PyGILState_Release(state);
    free(self);
}

/* Frees the array if no consumer has taken it out of the capsule. */
static void destroy_dlpack_capsule(PyObject *capsule)
{
    struct dl_managed *managed;
    if (!PyCapsule_IsValid(capsule, DL_NAME))
        return;
    managed = PyCapsule_GetPointer(capsule, DL_NAME);
    managed->deleter(managed);
}

/* to_dlpack(owner, address, n, code, bits, device) -> capsule. The array keeps
 * a reference to owner. */
static PyObject *to_dlpack(PyObject *module, PyObject *args)
{
    enum
    {
        CUDA = 2 /* kDLCUDA */
    };
    struct shared_array *self;
    struct dl_tensor *t;
    PyObject *owner, *out;
    Py_ssize_t at, n;
    int code, bits, device;
    (void)module;
    if (!PyArg_ParseTuple(args, "Onniii", &owner, &at, &n, &code, &bits,
                          &device))
        return NULL;
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return PyErr_NoMemory();
    t = &self->managed.tensor;
    t->data = (void *)at;
    t->device_type = CUDA;
    t->device_id = device;
    t->n_dimensions = 1;
    t->code = (uint8_t)code;
    t->bits = (uint8_t)bits;
    t->lanes = 1;
    t->shape = &self->length;
    self->length = n;
    self->managed.context = self;
    self->managed.deleter = release_dlpack_array;
    Py_INCREF(owner);
    self->owner = owner;
    out = PyCapsule_New(&self->managed, DL_NAME, destroy_dlpack_capsule);
    if (out == NULL)
        release_dlpack_array(&self->managed);
    return out;
}

/* --- a kept index of points ------------------------------------------------
 */

#define LIVE "ogrjoin.live"

struct live_handle
{
    struct ogrjoin_live *live;
    /* number of interrupted callers; the library stops while it is not 0 */
    int cancel;
};

/* Arguments and results of one call of the library. */
struct live_work
{
    struct ogrjoin_live *live;
    const struct ogrjoin_settings *settings;
    const char *path;
    struct ogrjoin_layer *input;
    int64_t n;
    const int64_t *id;
    const double *x, *y;
    struct ogrjoin_pairs *pairs;
    struct ArrowSchema *schema;
    struct ArrowArray *array;
};

static void destroy_live_capsule(PyObject *capsule)
{
    struct live_handle *self = PyCapsule_GetPointer(capsule, LIVE);
    ogrjoin_live_free(self->live);
    free(self);
}

static int make_live(void *data, struct ogrjoin_error *err)
{
    struct live_work *w = data;
    return w->path == NULL
               ? ogrjoin_live_new(w->settings, &w->live, err)
               : ogrjoin_live_load(w->path, w->settings, &w->live, err);
}

/* py_live(settings, path or None) -> a kept index: empty, or read from the file
 * path. */
static PyObject *py_live(PyObject *module, PyObject *args)
{
    struct live_work w = {0};
    struct live_handle *self;
    struct ogrjoin_settings *settings;
    PyObject *dict, *out = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!z", &PyDict_Type, &dict, &w.path) ||
        (settings = make_settings(dict, NULL)) == NULL)
        return NULL;
    w.settings = settings;
    if ((self = calloc(1, sizeof *self)) == NULL)
        PyErr_NoMemory();
    else if (run_interruptible(make_live, &w, &self->cancel) == 0)
    {
        self->live = w.live;
        out = PyCapsule_New(self, LIVE, destroy_live_capsule);
    }
    ogrjoin_settings_free(settings);
    if (out == NULL)
    {
        ogrjoin_live_free(w.live);
        free(self);
    }
    return out;
}

static int apply_to_live(void *data, struct ogrjoin_error *err)
{
    struct live_work *w = data;
    return ogrjoin_live_apply(w->live, w->n, w->id, w->x, w->y, err);
}

/* py_live_apply(live, n, id, x, y): applies n changes. id is contiguous int64;
 * x and y are contiguous float64. */
static PyObject *py_live_apply(PyObject *module, PyObject *args)
{
    struct live_work w = {0};
    struct live_handle *self;
    /* used only to hold the buffers; its layer is NULL */
    struct layer_handle columns = {0};
    PyObject *capsule, *id, *x, *y;
    Py_ssize_t n;
    int code = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnOOO", &capsule, &n, &id, &x, &y) ||
        (self = PyCapsule_GetPointer(capsule, LIVE)) == NULL)
        return NULL;
    w.live = self->live;
    w.n = n;
    if ((w.id = borrow_buffer(&columns, id, n, sizeof *w.id)) != NULL &&
        (w.x = borrow_buffer(&columns, x, n, sizeof *w.x)) != NULL &&
        (w.y = borrow_buffer(&columns, y, n, sizeof *w.y)) != NULL)
        code = run_interruptible(apply_to_live, &w, &self->cancel);
    release_views(&columns);
    return code == 0 ? Py_BuildValue("") : NULL;
}

/* Joins the layer w->input with the kept points. If it is NULL, joins the kept
 * points with each other. */
static int join_with_live(void *data, struct ogrjoin_error *err)
{
    struct live_work *w = data;
    return w->input == NULL
               ? ogrjoin_live_near_pairs(w->live, w->settings, &w->pairs, err)
               : ogrjoin_live_join(w->live, w->settings, w->input, &w->pairs,
                                   err);
}

/* Returns a tuple: (left, right, measures, {name: buffer} of the other values,
 * (offsets, bytes) of the intersections or None, number of undecided pairs,
 * number of groups too large for one_to_one best). left, right and measures are
 * buffers. */
static PyObject *make_live_pairs(struct ogrjoin_pairs *pairs)
{
    PyObject *owner = PyCapsule_New(pairs, PAIRS, destroy_pairs_capsule);
    int64_t n = ogrjoin_pairs_count(pairs);
    PyObject *out;
    if (owner == NULL)
    {
        ogrjoin_pairs_free(pairs);
        return NULL;
    }
    out = Py_BuildValue("NNNNNLL",
                        new_array(owner, ogrjoin_pairs_left(pairs), n, 'q'),
                        new_array(owner, ogrjoin_pairs_right(pairs), n, 'q'),
                        new_array(owner, ogrjoin_pairs_measure(pairs), n, 'd'),
                        make_value_buffers(owner, pairs),
                        make_intersection_buffers(owner, pairs),
                        (long long)ogrjoin_pairs_undecided(pairs),
                        (long long)ogrjoin_pairs_large_groups(pairs));
    Py_DECREF(owner);
    return out;
}

/* py_live_join(live, settings, layer or None, CRS of the layer or None, CRS of
 * the points or None) -> the tuple of make_live_pairs(). Joins the layer with
 * the kept points; without a layer, the kept points with each other. */
static PyObject *py_live_join(PyObject *module, PyObject *args)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct live_work w = {0};
    struct live_handle *self;
    struct layer_handle *input;
    struct ogrjoin_settings *settings;
    const char *left_crs, *right_crs;
    PyObject *capsule, *dict, *layer;
    int code = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!Ozz", &capsule, &PyDict_Type, &dict, &layer,
                          &left_crs, &right_crs) ||
        (self = PyCapsule_GetPointer(capsule, LIVE)) == NULL)
        return NULL;
    if (layer != Py_None)
    {
        if ((input = PyCapsule_GetPointer(layer, LAYER)) == NULL)
            return NULL;
        w.input = input->layer;
    }
    if ((settings = make_settings(dict, &self->cancel)) == NULL)
        return NULL;
    w.live = self->live;
    w.settings = settings;
    err.status = ogrjoin_settings_use_crs(settings, left_crs, right_crs, &err);
    if (err.status != OGRJOIN_OK && right_crs == NULL)
    {
        const size_t used = strlen(err.message);
        snprintf(err.message + used, sizeof err.message - used,
                 "; Live(crs=...) names the CRS of the kept points");
    }
    if (err.status != OGRJOIN_OK)
        raise_error(&err);
    else
        code = run_interruptible(join_with_live, &w, &self->cancel);
    ogrjoin_settings_free(settings);
    if (code == 0)
        return make_live_pairs(w.pairs);
    ogrjoin_pairs_free(w.pairs);
    return NULL;
}

static int save_live(void *data, struct ogrjoin_error *err)
{
    struct live_work *w = data;
    return ogrjoin_live_save(w->live, w->path, err);
}

/* py_live_save(live, path): writes all points to a file. */
static PyObject *py_live_save(PyObject *module, PyObject *args)
{
    struct live_work w = {0};
    struct live_handle *self;
    PyObject *capsule;
    (void)module;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &w.path) ||
        (self = PyCapsule_GetPointer(capsule, LIVE)) == NULL)
        return NULL;
    w.live = self->live;
    return run_interruptible(save_live, &w, &self->cancel) == 0
               ? Py_BuildValue("")
               : NULL;
}

static int read_live_points(void *data, struct ogrjoin_error *err)
{
    struct live_work *w = data;
    return ogrjoin_live_to_arrow(w->live, w->schema, w->array, err);
}

/* py_live_points(live) -> (schema, array) of the columns id, x and y */
static PyObject *py_live_points(PyObject *module, PyObject *capsule)
{
    struct live_handle *self = PyCapsule_GetPointer(capsule, LIVE);
    struct live_work w = {0};
    PyObject *schema = NULL, *array = NULL;
    (void)module;
    if (self == NULL)
        return NULL;
    w.live = self->live;
    w.schema = calloc(1, sizeof *w.schema);
    w.array = calloc(1, sizeof *w.array);
    if (w.schema == NULL || w.array == NULL)
        PyErr_NoMemory();
    else
    {
        schema =
            PyCapsule_New(w.schema, "arrow_schema", destroy_schema_capsule);
        array = PyCapsule_New(w.array, "arrow_array", destroy_array_capsule);
    }
    if (schema == NULL)
        free(w.schema);
    if (array == NULL)
        free(w.array);
    if (schema != NULL && array != NULL &&
        run_interruptible(read_live_points, &w, &self->cancel) == 0)
        return Py_BuildValue("NN", schema, array);
    Py_XDECREF(schema);
    Py_XDECREF(array);
    return NULL;
}

/* py_live_counts(live) -> dict of the counts */
static PyObject *py_live_counts(PyObject *module, PyObject *capsule)
{
    struct live_handle *self = PyCapsule_GetPointer(capsule, LIVE);
    struct ogrjoin_live_counts c = {.size = sizeof c};
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    (void)module;
    if (self == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS err.status =
        ogrjoin_live_counts(self->live, &c, &err);
    Py_END_ALLOW_THREADS if (err.status != OGRJOIN_OK) return raise_error(&err);
    return Py_BuildValue(
        "{sLsLsLsLsLsLsLsLsLsLsLss}", "n", (long long)c.n, "n_batches",
        (long long)c.n_batches, "n_put", (long long)c.n_put, "n_moved",
        (long long)c.n_moved, "n_removed", (long long)c.n_removed, "n_unknown",
        (long long)c.n_unknown, "n_unjoinable", (long long)c.n_unjoinable,
        "n_superseded", (long long)c.n_superseded, "n_rebuilt",
        (long long)c.n_rebuilt, "n_pages", (long long)c.n_pages, "n_bytes",
        (long long)c.n_bytes, "tree", c.tree);
}

/* --- exact sums ------------------------------------------------------------
 */

#define SUMS "ogrjoin.sums"

struct sums_handle
{
    struct ogrjoin_sums *sums;
    int64_t n;
};

/* Arguments of one call of the library. */
struct sums_work
{
    struct ogrjoin_sums *sums;
    int64_t n;
    const int64_t *group, *integer, *offset;
    const double *real;
    const uint64_t *word;
};

static void destroy_sums_capsule(PyObject *capsule)
{
    struct sums_handle *self = PyCapsule_GetPointer(capsule, SUMS);
    ogrjoin_sums_free(self->sums);
    free(self);
}

/* py_sums(n) -> exact sums of n groups, all 0 */
static PyObject *py_sums(PyObject *module, PyObject *args)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct sums_handle *self;
    PyObject *out = NULL;
    Py_ssize_t n;
    (void)module;
    if (!PyArg_ParseTuple(args, "n", &n))
        return NULL;
    if ((self = calloc(1, sizeof *self)) == NULL)
        return PyErr_NoMemory();
    self->n = n;
    if (ogrjoin_sums_new(n, &self->sums, &err) != OGRJOIN_OK)
        raise_error(&err);
    else
        out = PyCapsule_New(self, SUMS, destroy_sums_capsule);
    if (out == NULL)
    {
        ogrjoin_sums_free(self->sums);
        free(self);
    }
    return out;
}

static int add_to_sums(void *data, struct ogrjoin_error *err)
{
    struct sums_work *w = data;
    if (w->word != NULL)
        return ogrjoin_sums_merge(w->sums, w->n, w->group, w->offset, w->word,
                                  err);
    return w->real != NULL
               ? ogrjoin_sums_add(w->sums, w->n, w->group, w->real, err)
               : ogrjoin_sums_add_integers(w->sums, w->n, w->group, w->integer,
                                           err);
}

/* py_sums_add(sums, n, group, values, is_integer): adds values[i] to the sum of
 * group[i], for n values. group is contiguous int64, values are contiguous
 * int64 or float64. */
static PyObject *py_sums_add(PyObject *module, PyObject *args)
{
    struct sums_work w = {0};
    struct sums_handle *self;
    /* used only to hold the buffers; its layer is NULL */
    struct layer_handle columns = {0};
    PyObject *capsule, *group, *values;
    const void *value;
    Py_ssize_t n;
    int is_integer, cancel = 0, code = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnOOp", &capsule, &n, &group, &values,
                          &is_integer) ||
        (self = PyCapsule_GetPointer(capsule, SUMS)) == NULL)
        return NULL;
    w.sums = self->sums;
    w.n = n;
    if ((w.group = borrow_buffer(&columns, group, n, sizeof *w.group)) !=
            NULL &&
        (value = borrow_buffer(&columns, values, n, sizeof *w.real)) != NULL)
    {
        if (is_integer)
            w.integer = value;
        else
            w.real = value;
        code = run_interruptible(add_to_sums, &w, &cancel);
    }
    release_views(&columns);
    return code == 0 ? Py_BuildValue("") : NULL;
}

/* py_sums_merge(sums, n, group, offsets, n_words, words): adds n exact sums,
 * which py_sums_words() has returned. The words of sum i, words[offsets[i]] to
 * words[offsets[i + 1] - 1], are added to the sum of group[i]. offsets are
 * contiguous int64, begin at 0, ascend, and end at n_words. */
static PyObject *py_sums_merge(PyObject *module, PyObject *args)
{
    struct sums_work w = {0};
    struct sums_handle *self;
    struct layer_handle columns = {0};
    PyObject *capsule, *group, *offset, *word;
    Py_ssize_t n, n_words;
    int cancel = 0, code = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnOOnO", &capsule, &n, &group, &offset,
                          &n_words, &word) ||
        (self = PyCapsule_GetPointer(capsule, SUMS)) == NULL)
        return NULL;
    w.sums = self->sums;
    w.n = n;
    if ((w.group = borrow_buffer(&columns, group, n, sizeof *w.group)) !=
            NULL &&
        (w.offset = borrow_buffer(&columns, offset, n + 1, sizeof *w.offset)) !=
            NULL &&
        (w.word = borrow_buffer(&columns, word, n_words, sizeof *w.word)) !=
            NULL)
    {
        int ascends = w.offset[0] == 0 && w.offset[n] == n_words;
        for (Py_ssize_t i = 0; i < n && ascends; i++)
            ascends = w.offset[i] <= w.offset[i + 1];
        if (ascends)
            code = run_interruptible(add_to_sums, &w, &cancel);
        else
            PyErr_SetString(
                PyExc_ValueError,
                "offsets must begin at 0, ascend and end at the number "
                "of words");
    }
    release_views(&columns);
    return code == 0 ? Py_BuildValue("") : NULL;
}

/* py_sums_words(sums) -> (offsets, words): the exact sums as long integers, one
 * after another, as bytes of int64 and uint64. The words of sum i are
 * words[offsets[i]] to words[offsets[i + 1] - 1]. */
static PyObject *py_sums_words(PyObject *module, PyObject *capsule)
{
    struct sums_handle *self = PyCapsule_GetPointer(capsule, SUMS);
    PyObject *offsets, *words = NULL;
    (void)module;
    if (self == NULL)
        return NULL;
    offsets = PyBytes_FromStringAndSize(NULL, (self->n + 1) *
                                                  (Py_ssize_t)sizeof(int64_t));
    if (offsets != NULL)
    {
        int64_t *offset = (int64_t *)(void *)PyBytes_AsString(offsets);
        ogrjoin_sums_words(self->sums, offset, NULL);
        words = PyBytes_FromStringAndSize(
            NULL, (Py_ssize_t)offset[self->n] * (Py_ssize_t)sizeof(uint64_t));
        if (words != NULL)
            ogrjoin_sums_words(self->sums, offset,
                               (uint64_t *)(void *)PyBytes_AsString(words));
    }
    if (words == NULL)
    {
        Py_XDECREF(offsets);
        return NULL;
    }
    return Py_BuildValue("NN", offsets, words);
}

/* py_sums_values(sums, are_integers) -> bytes of float64, or of int64 if
 * are_integers */
static PyObject *py_sums_values(PyObject *module, PyObject *args)
{
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    struct sums_handle *self;
    PyObject *capsule, *out;
    void *value;
    int are_integers;
    (void)module;
    if (!PyArg_ParseTuple(args, "Op", &capsule, &are_integers) ||
        (self = PyCapsule_GetPointer(capsule, SUMS)) == NULL)
        return NULL;
    out = PyBytes_FromStringAndSize(NULL, self->n * (Py_ssize_t)sizeof(double));
    if (out == NULL)
        return NULL;
    value = PyBytes_AsString(out);
    if (!are_integers)
        ogrjoin_sums_values(self->sums, value);
    else if (ogrjoin_sums_integers(self->sums, value, &err) != OGRJOIN_OK)
    {
        Py_DECREF(out);
        return raise_error(&err);
    }
    return out;
}

/* --- the module ------------------------------------------------------------
 */

/* Returns {name: help text}. */
static PyObject *make_help(const char *(*name_at)(int i),
                           const char *(*help_at)(int i))
{
    PyObject *out = PyDict_New();
    const char *name;
    for (int i = 0; out != NULL && (name = name_at(i)) != NULL; i++)
    {
        PyObject *help = PyUnicode_FromString(help_at(i));
        if (help == NULL || PyDict_SetItemString(out, name, help) != 0)
        {
            Py_DECREF(out);
            out = NULL;
        }
        Py_XDECREF(help);
    }
    return out;
}

static PyObject *py_settings_help(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return make_help(ogrjoin_setting_name, ogrjoin_setting_help);
}

static PyObject *py_backends_help(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return make_help(ogrjoin_backend_name, ogrjoin_backend_help);
}

static PyMethodDef methods[] = {
    {"arrays", layer_from_arrays, METH_VARARGS, NULL},
    {"from_stream", from_stream, METH_VARARGS, NULL},
    {"from_array", from_array, METH_VARARGS, NULL},
    {"from_wkb", from_wkb, METH_VARARGS, NULL},
    {"iso_wkb", py_iso_wkb, METH_VARARGS, NULL},
    {"set_columns", set_columns, METH_VARARGS, NULL},
    {"add_text", add_text, METH_VARARGS, NULL},
    {"set_vectors", set_vectors, METH_VARARGS, NULL},
    {"rows", py_rows, METH_VARARGS, NULL},
    {"join_rows", py_join_rows, METH_VARARGS, NULL},
    {"next_rows", py_next_rows, METH_O, NULL},
    {"classes", py_classes, METH_VARARGS, NULL},
    {"find_classes", py_find_classes, METH_VARARGS, NULL},
    {"column", py_column, METH_VARARGS, NULL},
    {"count", count_layer_features, METH_O, NULL},
    {"srid", py_srid, METH_O, NULL},
    {"index", new_index, METH_VARARGS, NULL},
    {"backend", py_backend, METH_O, NULL},
    {"join", py_join, METH_VARARGS, NULL},
    {"source", py_source, METH_VARARGS, NULL},
    {"next_layer", py_next_layer, METH_VARARGS, NULL},
    {"check_settings", check_settings, METH_O, NULL},
    {"source_srid", py_source_srid, METH_O, NULL},
    {"stream_schema", py_stream_schema, METH_O, NULL},
    {"join_source", py_join_source, METH_VARARGS, NULL},
    {"trim", py_trim, METH_O, NULL},
    {"pair_word", py_pair_word, METH_VARARGS, NULL},
    {"fill_left", py_fill_left, METH_VARARGS, NULL},
    {"validate", py_validate, METH_VARARGS, NULL},
    {"join_device", join_device, METH_VARARGS, NULL},
    {"wait_device", py_make_stream_wait_for_pairs, METH_VARARGS, NULL},
    {"from_dlpack", from_dlpack, METH_O, NULL},
    {"to_dlpack", to_dlpack, METH_VARARGS, NULL},
    {"live", py_live, METH_VARARGS, NULL},
    {"live_apply", py_live_apply, METH_VARARGS, NULL},
    {"live_join", py_live_join, METH_VARARGS, NULL},
    {"live_save", py_live_save, METH_VARARGS, NULL},
    {"live_points", py_live_points, METH_O, NULL},
    {"live_counts", py_live_counts, METH_O, NULL},
    {"sums", py_sums, METH_VARARGS, NULL},
    {"sums_add", py_sums_add, METH_VARARGS, NULL},
    {"sums_merge", py_sums_merge, METH_VARARGS, NULL},
    {"sums_words", py_sums_words, METH_O, NULL},
    {"sums_values", py_sums_values, METH_VARARGS, NULL},
    {"settings", py_settings_help, METH_NOARGS, NULL},
    {"backends", py_backends_help, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static int init_core_module(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_bf_getbuffer, export_buffer},
                                  {Py_tp_dealloc, dealloc_array},
                                  {0, NULL}};
    static PyType_Spec spec = {"ogrjoin._core.Array",
                               (int)sizeof(struct array_object), 0,
                               Py_TPFLAGS_DEFAULT, slots};
    PyObject *errors = PyImport_ImportModule("ogrjoin._errors");
    PyObject *number;
    if (errors == NULL)
        return -1;
    number = PyObject_GetAttrString(errors, "MAIN_THREAD");
    if (number != NULL)
        main_thread = PyLong_AsUnsignedLong(number);
    Py_XDECREF(number);
    if (PyErr_Occurred() == NULL)
        make_error = PyObject_GetAttrString(errors, "make");
    Py_DECREF(errors);
    array_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (make_error == NULL || array_type == NULL)
        return -1;
    return PyModule_AddStringConstant(module, "version", ogrjoin_version());
}

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)init_core_module},
#ifdef Py_GIL_DISABLED
                                       {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                       {0, NULL}};
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                            "_core",
                                            NULL,
                                            0,
                                            methods,
                                            slots,
                                            NULL,
                                            NULL,
                                            NULL};
    return PyModuleDef_Init(&definition);
}
