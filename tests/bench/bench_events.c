/* bench_events: events of a fleet that moves at random among fences, through
 * the library, on one thread, compared with the join alone.
 *
 *   bench_events [--keys 100000] [--fences 10000] [--vertices 50]
 *                [--reports 20000000] [--batch 262144] [--threads 1]
 *                [--texts] [--op within] [--cover 1] [--write FOLDER]
 *
 * Fences are round, and cover each place of the square --cover times on
 * average. Between two reports a vehicle moves by up to a thousandth of the
 * square's side. Prints, with processor seconds:
 *   DATA keys=.. fences=.. vertices=.. reports=..
 *   RESULT join_s=.. reports_per_s=..
 *   RESULT events_s=.. reports_per_s=.. events=.. inside=.. checksum=..
 * With --write it instead makes files for the command: reports.csv (id,
 * vehicle, x, y) and fences.csv (fence, WKT). */
#include "../../algs/ogrjoin.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double side = 100000.0;

struct event_run
{
    int64_t keys, fences, vertices, reports, batch;
    int threads, texts;
    const char *op, *folder;
    double cover;
};

struct moving_fleet
{
    uint64_t random;
    double *x, *y; /* [keys] */
};

/* The reports of one batch. */
struct reports
{
    double *x, *y;
    int64_t *key, *offset;
    char *text;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_events: %s\n", what);
    exit(1);
}

static void require(int status, const struct ogrjoin_error *err)
{
    if (status != OGRJOIN_OK)
        fail(err->message);
}

static void *allocate(int64_t n, size_t size)
{
    void *array = malloc((size_t)n * size);
    if (array == NULL)
        fail("out of memory");
    return array;
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* In [0, 1). */
static double next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double radius_of(const struct event_run *a)
{
    return side * sqrt(a->cover / (3.14159265358979 * (double)a->fences));
}

static struct moving_fleet make_fleet(const struct event_run *a)
{
    struct moving_fleet fleet = {1, allocate(a->keys, sizeof(double)),
                                 allocate(a->keys, sizeof(double))};
    for (int64_t i = 0; i < a->keys; i++)
    {
        fleet.x[i] = side * next_random(&fleet.random);
        fleet.y[i] = side * next_random(&fleet.random);
    }
    return fleet;
}

static double move_coordinate(double at, uint64_t *random)
{
    at += (next_random(random) - 0.5) * 0.002 * side;
    return at < 0 ? -at : at > side ? 2 * side - at : at;
}

static int64_t next_report(const struct event_run *a,
                           struct moving_fleet *fleet)
{
    int64_t i = (int64_t)(next_random(&fleet->random) * (double)a->keys);
    fleet->x[i] = move_coordinate(fleet->x[i], &fleet->random);
    fleet->y[i] = move_coordinate(fleet->y[i], &fleet->random);
    return i;
}

/* Writes the vertices of the ring of a fence to x and y. */
static void make_ring(const struct event_run *a, uint64_t *random, double *x,
                      double *y)
{
    const double cx = side * next_random(random),
                 cy = side * next_random(random);
    const double r = radius_of(a) * (0.5 + next_random(random));
    for (int64_t v = 0; v < a->vertices; v++)
    {
        const double angle =
            6.283185307179586 * (double)v / (double)(a->vertices - 1);
        x[v] = cx + r * cos(angle);
        y[v] = cy + r * sin(angle);
    }
    x[a->vertices - 1] = x[0];
    y[a->vertices - 1] = y[0];
}

/* ---- through the library --------------------------------------------------
 */

static struct ogrjoin_index *make_index(const struct event_run *a)
{
    const int64_t n = a->fences, n_vertices = n * a->vertices;
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    struct ogrjoin_arrays arrays = {.size = sizeof arrays};
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_error err;
    int64_t *one = allocate(n + 1, sizeof *one);
    int64_t *vertex = allocate(n + 1, sizeof *vertex);
    uint8_t *kind = allocate(n, 1);
    double *x = allocate(n_vertices, sizeof *x);
    double *y = allocate(n_vertices, sizeof *y);
    uint64_t random = 2;
    for (int64_t i = 0; i <= n; i++)
    {
        one[i] = i;
        vertex[i] = i * a->vertices;
        if (i == n)
            break;
        kind[i] = OGRJOIN_POLYGON;
        make_ring(a, &random, x + vertex[i], y + vertex[i]);
    }
    arrays.n_features = arrays.n_parts = arrays.n_rings = n;
    arrays.n_vertices = n_vertices;
    arrays.part_offset = arrays.ring_offset = one;
    arrays.vertex_offset = vertex;
    arrays.part_kind = kind;
    arrays.x = x;
    arrays.y = y;
    require(ogrjoin_set_text(settings, "op", a->op, &err), &err);
    require(ogrjoin_set_text(settings, "backend", "cpu", &err), &err);
    require(ogrjoin_set_number(settings, "threads", a->threads, &err), &err);
    require(ogrjoin_layer_from_arrays(&arrays, &layer, &err), &err);
    require(ogrjoin_index_new(layer, settings, &index, &err), &err);
    ogrjoin_layer_free(layer);
    ogrjoin_settings_free(settings);
    return index; /* the arrays remain until the process ends */
}

static struct reports make_room(const struct event_run *a)
{
    return (struct reports){
        allocate(a->batch, sizeof(double)), allocate(a->batch, sizeof(double)),
        allocate(a->batch, sizeof(int64_t)),
        allocate(a->batch + 1, sizeof(int64_t)), allocate(a->batch, 16)};
}

static void fill_reports(const struct event_run *a, struct moving_fleet *fleet,
                         struct reports *r, int64_t n)
{
    r->offset[0] = 0;
    for (int64_t i = 0; i < n; i++)
    {
        r->key[i] = next_report(a, fleet);
        r->x[i] = fleet->x[r->key[i]];
        r->y[i] = fleet->y[r->key[i]];
        if (a->texts)
            r->offset[i + 1] =
                r->offset[i] +
                snprintf(r->text + r->offset[i], 16, "v%" PRId64, r->key[i]);
    }
}

static struct ogrjoin_layer *layer_of(const struct reports *r, int64_t n)
{
    struct ogrjoin_arrays arrays = {.size = sizeof arrays,
                                    .n_features = n,
                                    .n_vertices = n,
                                    .x = r->x,
                                    .y = r->y};
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_error err;
    require(ogrjoin_layer_from_arrays(&arrays, &layer, &err), &err);
    return layer;
}

static uint64_t add_to_checksum(uint64_t sum,
                                const struct ogrjoin_event_rows *rows)
{
    for (int64_t i = 0; i < rows->n; i++)
        sum = (sum ^ (uint64_t)rows->report[i] * 8 ^
               (uint64_t)rows->feature[i] * 1000003 ^ rows->kind[i]) *
              UINT64_C(0x9E3779B97F4A7C15);
    return sum;
}

/* Returns the processor seconds for all reports. If events is NULL, only
 * joins. */
static double measure_reports(const struct event_run *a,
                              struct ogrjoin_index *index,
                              struct ogrjoin_events *events, int64_t *n_events,
                              uint64_t *checksum)
{
    struct moving_fleet fleet = make_fleet(a);
    struct reports r = make_room(a);
    struct ogrjoin_event_keys keys = {.size = sizeof keys};
    double seconds = 0;
    if (a->texts)
    {
        keys.offset = r.offset;
        keys.bytes = r.text;
    }
    else
        keys.integer = r.key;
    for (int64_t done = 0; done < a->reports; done += a->batch)
    {
        const int64_t left = a->reports - done;
        const int64_t n = left < a->batch ? left : a->batch;
        struct ogrjoin_event_rows rows = {.size = sizeof rows};
        struct ogrjoin_pairs *pairs = NULL;
        struct ogrjoin_layer *layer;
        struct ogrjoin_error err;
        double start;
        fill_reports(a, &fleet, &r, n);
        start = processor_seconds();
        layer = layer_of(&r, n);
        if (events != NULL)
            require(ogrjoin_events_add(events, layer, &keys, &rows, &err),
                    &err);
        else
            require(ogrjoin_join_lists(index, layer, &pairs, &err), &err);
        seconds += processor_seconds() - start;
        *n_events += events != NULL ? rows.n : ogrjoin_pairs_count(pairs);
        *checksum = add_to_checksum(*checksum, &rows);
        ogrjoin_pairs_free(pairs);
        ogrjoin_layer_free(layer);
    }
    return seconds;
}

static void time_library(const struct event_run *a)
{
    struct ogrjoin_index *index = make_index(a);
    struct ogrjoin_events *events = NULL;
    struct ogrjoin_error err;
    int64_t n_pairs = 0, n_events = 0;
    uint64_t sum = 0;
    double s;
    printf("DATA keys=%" PRId64 " fences=%" PRId64 " vertices=%" PRId64
           " reports=%" PRId64 " batch=%" PRId64 " threads=%d op=%s\n",
           a->keys, a->fences, a->vertices, a->reports, a->batch, a->threads,
           a->op);
    s = measure_reports(a, index, NULL, &n_pairs, &sum);
    printf("RESULT join_s=%.3f reports_per_s=%.0f pairs=%" PRId64 "\n", s,
           (double)a->reports / s, n_pairs);
    sum = 0;
    require(ogrjoin_events_new(index, NULL, a->texts, &events, &err), &err);
    s = measure_reports(a, index, events, &n_events, &sum);
    printf("RESULT events_s=%.3f reports_per_s=%.0f events=%" PRId64
           " inside=%" PRId64 " checksum=%016" PRIx64 "\n",
           s, (double)a->reports / s, n_events, ogrjoin_events_inside(events),
           sum);
    ogrjoin_events_free(events);
    ogrjoin_index_free(index);
}

/* ---- for the command ------------------------------------------------------
 */

static FILE *create_file(const char *folder, const char *name)
{
    char path[4096];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    if (file == NULL)
        fail("cannot write there");
    return file;
}

static void write_files(const struct event_run *a)
{
    struct moving_fleet fleet = make_fleet(a);
    double *x = allocate(2 * a->vertices, sizeof *x), *y = x + a->vertices;
    uint64_t random = 2;
    FILE *file = create_file(a->folder, "fences.csv");
    fprintf(file, "fence,WKT\n");
    for (int64_t i = 0; i < a->fences; i++)
    {
        make_ring(a, &random, x, y);
        fprintf(file, "fence %" PRId64 ",\"POLYGON ((", i);
        for (int64_t v = 0; v < a->vertices; v++)
            fprintf(file, "%s%.17g %.17g", v > 0 ? "," : "", x[v], y[v]);
        fprintf(file, "))\"\n");
    }
    fclose(file);
    file = create_file(a->folder, "reports.csv");
    fprintf(file, "id,vehicle,x,y\n");
    for (int64_t i = 0; i < a->reports; i++)
    {
        const int64_t key = next_report(a, &fleet);
        fprintf(file, "%" PRId64 ",v%" PRId64 ",%.3f,%.3f\n", i, key,
                fleet.x[key], fleet.y[key]);
    }
    fclose(file);
}

/* ---- arguments ------------------------------------------------------------
 * */

static void read_arguments(int argc, char **argv, struct event_run *a)
{
    const struct
    {
        const char *name;
        int64_t *at;
    } numbers[] = {{"--keys", &a->keys},
                   {"--fences", &a->fences},
                   {"--vertices", &a->vertices},
                   {"--reports", &a->reports},
                   {"--batch", &a->batch}};
    for (int i = 1; i < argc; i++)
    {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        int n = 1;
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        {
            if (strcmp(argv[i], numbers[k].name) == 0)
                *numbers[k].at = atoll(value), n = 0;
        }
        if (strcmp(argv[i], "--texts") == 0)
        {
            a->texts = 1;
            continue;
        }
        if (strcmp(argv[i], "--threads") == 0)
            a->threads = atoi(value), n = 0;
        if (strcmp(argv[i], "--op") == 0)
            a->op = value, n = 0;
        if (strcmp(argv[i], "--cover") == 0)
            a->cover = atof(value), n = 0;
        if (strcmp(argv[i], "--write") == 0)
            a->folder = value, n = 0;
        if (n != 0)
            fail(
                "unknown argument: the first lines of bench_events.c have all");
        i++;
    }
    if (!(a->cover > 0) || a->keys < 1 || a->fences < 1 || a->vertices < 4 ||
        a->reports < 1 || a->batch < 1)
        fail("numbers are 1 or more, and vertices 4");
}

int main(int argc, char **argv)
{
    struct event_run a = {100000, 10000, 50,       20000000, 262144,
                          1,      0,     "within", NULL,     1.0};
    read_arguments(argc, argv, &a);
    if (a.folder != NULL)
        write_files(&a);
    else
        time_library(&a);
    return 0;
}
