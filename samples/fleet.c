/* Simulates a fleet that drives over the sample city.  Events are found in each
 * step: which vehicle has entered or left which of four places.  A kept index
 * of all vehicles finds the three vehicles nearest to each place.
 *
 *   fleet [-vehicles 60] [-steps 240] [-avenues 15] [-streets 84] [FOLDER]
 *
 * A step is ten seconds.  If FOLDER is given, these files are written to it:
 *   fences.csv   name, WKT
 *   reports.csv  step, vehicle, x, y              in the order of reading
 *   events.csv   step, vehicle, event, name, x, y
 *   nearest.csv  step, name, vehicle, distance    in feet, nearest first
 * Coordinates are those of the city (EPSG:2263).  The last line of output has
 * the maximum memory until step 100 and until the end: for a million vehicles,
 * memory does not grow after 100 steps.
 * samples/draw_city.py draws the first three. */
#include "city.h"

#include <ogrjoin.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum
{
    N_FENCES = 4,
    N_CORNERS = 40,
    N_NEAREST = 3,
    WARM_STEPS = 100 /* steps after which memory must not grow */
};

static const char *const names[N_FENCES] = {"depot", "station", "market",
                                            "hospital"};
static const char *const kinds[] = {"enter", "exit", "stay", "change"};

/* A vehicle on its way from one crossing of an avenue and a street to the next.
 */
struct vehicle
{
    int avenue, street; /* crossing that the vehicle comes from */
    int to_avenue, to_street;
    double done;  /* feet of the way */
    double speed; /* feet a step */
};

struct fleet
{
    struct city city;
    int64_t n;
    struct vehicle *vehicle; /* [n] */
    uint64_t n_random;

    /* Reports of one step. */
    double *x, *y; /* [n] */
    int64_t *key;  /* [n] number of the vehicle */

    /* The fences; each has one part with one ring. */
    double fence_x[N_FENCES * N_CORNERS], fence_y[N_FENCES * N_CORNERS];
    double centre_x[N_FENCES], centre_y[N_FENCES];
    int64_t one[N_FENCES + 1], corner[N_FENCES + 1];
    uint8_t kind[N_FENCES];
};

static void stop(const char *why)
{
    fprintf(stderr, "fleet: %s\n", why);
    exit(1);
}

static void check_status(int status, const struct ogrjoin_error *err)
{
    if (status != OGRJOIN_OK)
        stop(err->message);
}

static void *allocate(int64_t n, size_t size)
{
    void *array = calloc((size_t)n, size);
    if (array == NULL)
        stop("out of memory");
    return array;
}

/* ---- the fleet -------------------------------------------------------------
 */

static double next_random(struct fleet *fleet)
{
    return city_random(&fleet->city, 77, fleet->n_random++);
}

static int is_crossing(const struct city *city, int avenue, int street)
{
    const double u = avenue * CITY_AVENUE_FT, v = street * CITY_STREET_FT;
    return avenue >= 0 && avenue < city->n_avenues && street >= 0 &&
           street < city->n_streets && city_inland(city, u, v) > 200 &&
           !city_in_park(city, u, v);
}

/* Chooses the next direction: mostly straight on, otherwise left, right or
 * back. */
static void choose_way(struct fleet *fleet, struct vehicle *vehicle)
{
    const int da = vehicle->to_avenue - vehicle->avenue;
    const int ds = vehicle->to_street - vehicle->street;
    const double random = next_random(fleet);
    const int first = da == 0 && ds == 0 ? (int)(4 * random)
                      : random < 0.7     ? 0
                      : random < 0.85    ? 1
                                         : 3;
    vehicle->avenue = vehicle->to_avenue;
    vehicle->street = vehicle->to_street;
    for (int i = 0; i < 4; i++)
    {
        /* quarter turns for each choice */
        static const int turn[4][4] = {
            {1, 0, 0, 1}, {0, -1, 1, 0}, {-1, 0, 0, -1}, {0, 1, -1, 0}};
        const int *t = turn[(first + i) % 4];
        const int a = da == 0 && ds == 0 ? 1 : da, s = ds;
        const int to_a = vehicle->avenue + t[0] * a + t[1] * s;
        const int to_s = vehicle->street + t[2] * a + t[3] * s;
        if (!is_crossing(&fleet->city, to_a, to_s))
            continue;
        vehicle->to_avenue = to_a;
        vehicle->to_street = to_s;
        return;
    }
}

static void place_vehicle(struct fleet *fleet, struct vehicle *vehicle)
{
    const struct city *city = &fleet->city;
    do
    {
        vehicle->avenue = (int)(next_random(fleet) * city->n_avenues);
        vehicle->street = (int)(next_random(fleet) * city->n_streets);
    } while (!is_crossing(city, vehicle->avenue, vehicle->street));
    vehicle->to_avenue = vehicle->avenue;
    vehicle->to_street = vehicle->street;
    vehicle->speed = 120 + 160 * next_random(fleet);
    choose_way(fleet, vehicle);
}

static double length_of_way(const struct vehicle *vehicle)
{
    return vehicle->to_avenue != vehicle->avenue   ? CITY_AVENUE_FT
           : vehicle->to_street != vehicle->street ? CITY_STREET_FT
                                                   : 1e30; /* standing */
}

static void drive(struct fleet *fleet, struct vehicle *vehicle, double *x,
                  double *y)
{
    double share;
    vehicle->done += vehicle->speed;
    while (vehicle->done >= length_of_way(vehicle))
    {
        vehicle->done -= length_of_way(vehicle);
        choose_way(fleet, vehicle);
    }
    share = vehicle->done / length_of_way(vehicle);
    city_to_map(
        &fleet->city,
        CITY_AVENUE_FT *
            (vehicle->avenue + share * (vehicle->to_avenue - vehicle->avenue)),
        CITY_STREET_FT *
            (vehicle->street + share * (vehicle->to_street - vehicle->street)),
        x, y);
}

static void make_step(struct fleet *fleet)
{
    for (int64_t i = 0; i < fleet->n; i++)
        drive(fleet, &fleet->vehicle[i], &fleet->x[i], &fleet->y[i]);
}

/* ---- the fences ------------------------------------------------------------
 */

/* Makes the fences: octagons in the plan of the city, which are then mapped. */
static void make_fences(struct fleet *fleet)
{
    static const double place[N_FENCES][2] = {
        {0.33, 0.30}, {0.62, 0.38}, {0.40, 0.45}, {0.68, 0.24}};
    static const double half[4][2] = {
        {1, 0.35}, {0.35, 1}, {-0.35, 1}, {-1, 0.35}};
    for (int64_t f = 0; f < N_FENCES; f++)
    {
        const double u = place[f][0] * fleet->city.width;
        const double v = place[f][1] * fleet->city.height;
        int64_t at = fleet->corner[f];
        city_to_map(&fleet->city, u, v, &fleet->centre_x[f],
                    &fleet->centre_y[f]);
        for (int i = 0; i < 8; i++)
        {
            const int sign = i < 4 ? 1 : -1;
            city_to_map(&fleet->city, u + sign * half[i % 4][0] * 1000,
                        v + sign * half[i % 4][1] * 900, &fleet->fence_x[at],
                        &fleet->fence_y[at]);
            at++;
        }
        fleet->fence_x[at] = fleet->fence_x[fleet->corner[f]];
        fleet->fence_y[at] = fleet->fence_y[fleet->corner[f]];
        fleet->kind[f] = OGRJOIN_POLYGON;
        fleet->one[f + 1] = f + 1;
        fleet->corner[f + 1] = at + 1;
    }
}

/* Makes the index of the fences, and the state of events without vehicles. */
static struct ogrjoin_events *open_events(const struct fleet *fleet)
{
    struct ogrjoin_arrays arrays = {.size = sizeof arrays,
                                    .n_features = N_FENCES,
                                    .n_parts = N_FENCES,
                                    .n_rings = N_FENCES,
                                    .n_vertices = fleet->corner[N_FENCES],
                                    .part_offset = fleet->one,
                                    .part_kind = fleet->kind,
                                    .ring_offset = fleet->one,
                                    .vertex_offset = fleet->corner,
                                    .x = fleet->fence_x,
                                    .y = fleet->fence_y};
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    struct ogrjoin_layer *fences = NULL;
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_events *events = NULL;
    struct ogrjoin_error err;
    if (settings == NULL)
        stop("out of memory");
    check_status(ogrjoin_set_text(settings, "op", "within", &err), &err);
    check_status(ogrjoin_layer_from_arrays(&arrays, &fences, &err), &err);
    check_status(ogrjoin_index_new(fences, settings, &index, &err), &err);
    check_status(ogrjoin_events_new(index, "changes", 0, &events, &err), &err);
    ogrjoin_index_free(index); /* the events hold a reference to the index */
    ogrjoin_layer_free(fences);
    ogrjoin_settings_free(settings);
    return events;
}

/* ---- the nearest vehicles --------------------------------------------------
 */

/* The index of all vehicles, and the settings and places of the join. */
struct nearest
{
    struct ogrjoin_live *live;
    struct ogrjoin_settings *settings;
    struct ogrjoin_layer *places;
};

static struct nearest open_nearest(const struct fleet *fleet)
{
    struct ogrjoin_arrays arrays = {.size = sizeof arrays,
                                    .n_features = N_FENCES,
                                    .n_vertices = N_FENCES,
                                    .x = fleet->centre_x,
                                    .y = fleet->centre_y};
    struct nearest nearest = {.settings = ogrjoin_settings_new()};
    struct ogrjoin_error err;
    if (nearest.settings == NULL)
        stop("out of memory");
    check_status(ogrjoin_set_text(nearest.settings, "op", "nearest", &err),
                 &err);
    check_status(ogrjoin_set_number(nearest.settings, "k", N_NEAREST, &err),
                 &err);
    check_status(ogrjoin_layer_from_arrays(&arrays, &nearest.places, &err),
                 &err);
    check_status(ogrjoin_live_new(NULL, &nearest.live, &err), &err);
    return nearest;
}

static void close_nearest(struct nearest *nearest)
{
    ogrjoin_live_free(nearest->live);
    ogrjoin_layer_free(nearest->places);
    ogrjoin_settings_free(nearest->settings);
}

/* Moves all vehicles in one batch, then joins the places with them. */
static struct ogrjoin_pairs *find_nearest(const struct fleet *fleet,
                                          const struct nearest *nearest)
{
    struct ogrjoin_pairs *pairs = NULL;
    struct ogrjoin_error err;
    check_status(ogrjoin_live_apply(nearest->live, fleet->n, fleet->key,
                                    fleet->x, fleet->y, &err),
                 &err);
    check_status(ogrjoin_live_join(nearest->live, nearest->settings,
                                   nearest->places, &pairs, &err),
                 &err);
    return pairs;
}

/* ---- files -----------------------------------------------------------------
 */

static FILE *create(const char *folder, const char *name, const char *header)
{
    char path[4096];
    FILE *file;
    if (folder == NULL)
        return NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    if (file == NULL)
        stop("the folder is not there, or cannot be written to");
    fprintf(file, "%s\n", header);
    return file;
}

static void finish(FILE *file)
{
    int has_failed = file != NULL && ferror(file) != 0;
    if (file != NULL && fclose(file) != 0)
        has_failed = 1;
    if (has_failed)
        stop("a file was not written whole: is there room on the disk?");
}

static void write_fences(const struct fleet *fleet, const char *folder)
{
    FILE *file = create(folder, "fences.csv", "name,WKT");
    for (int64_t f = 0; f < N_FENCES && file != NULL; f++)
    {
        fprintf(file, "%s,\"POLYGON ((", names[f]);
        for (int64_t c = fleet->corner[f]; c < fleet->corner[f + 1]; c++)
            fprintf(file, "%s%.17g %.17g", c > fleet->corner[f] ? "," : "",
                    fleet->fence_x[c], fleet->fence_y[c]);
        fprintf(file, "))\"\n");
    }
    finish(file);
}

static void write_reports(const struct fleet *fleet, int64_t step, FILE *file)
{
    for (int64_t i = 0; i < fleet->n && file != NULL; i++)
        fprintf(file, "%" PRId64 ",%" PRId64 ",%.17g,%.17g\n", step,
                fleet->key[i], fleet->x[i], fleet->y[i]);
}

static void write_events(const struct fleet *fleet, int64_t step,
                         const struct ogrjoin_event_rows *rows, FILE *file)
{
    for (int64_t i = 0; i < rows->n && file != NULL; i++)
    {
        const int64_t report = rows->report[i];
        fprintf(file, "%" PRId64 ",%" PRId64 ",%s,%s,%.17g,%.17g\n", step,
                fleet->key[report], kinds[rows->kind[i]],
                names[rows->feature[i]], fleet->x[report], fleet->y[report]);
    }
}

static void write_nearest(int64_t step, const struct ogrjoin_pairs *pairs,
                          FILE *file)
{
    for (int64_t i = 0; i < ogrjoin_pairs_count(pairs) && file != NULL; i++)
        fprintf(file, "%" PRId64 ",%s,%" PRId64 ",%.17g\n", step,
                names[ogrjoin_pairs_left(pairs)[i]],
                ogrjoin_pairs_right(pairs)[i], ogrjoin_pairs_measure(pairs)[i]);
}

/* ---- a run --------------------------------------------------------------- */

/* Finds and writes the events of one step. */
static void add_step(const struct fleet *fleet, struct ogrjoin_events *events,
                     struct ogrjoin_event_rows *rows)
{
    struct ogrjoin_arrays arrays = {.size = sizeof arrays,
                                    .n_features = fleet->n,
                                    .n_vertices = fleet->n,
                                    .x = fleet->x,
                                    .y = fleet->y};
    const struct ogrjoin_event_keys keys = {.size = sizeof keys,
                                            .integer = fleet->key};
    struct ogrjoin_layer *reports = NULL;
    struct ogrjoin_error err;
    check_status(ogrjoin_layer_from_arrays(&arrays, &reports, &err), &err);
    check_status(ogrjoin_events_add(events, reports, &keys, rows, &err), &err);
    ogrjoin_layer_free(reports);
}

/* Returns the greatest memory of the process until now, in MB. */
static long greatest_megabytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static void run(struct fleet *fleet, int64_t n_steps, const char *folder)
{
    struct ogrjoin_events *events = open_events(fleet);
    struct nearest nearest = open_nearest(fleet);
    FILE *reports = create(folder, "reports.csv", "step,vehicle,x,y");
    FILE *found = create(folder, "events.csv", "step,vehicle,event,name,x,y");
    FILE *near = create(folder, "nearest.csv", "step,name,vehicle,distance");
    int64_t n_events = 0;
    long warm = 0;
    write_fences(fleet, folder);
    for (int64_t step = 0; step < n_steps; step++)
    {
        struct ogrjoin_event_rows rows = {.size = sizeof rows};
        struct ogrjoin_pairs *pairs;
        make_step(fleet);
        add_step(fleet, events, &rows);
        pairs = find_nearest(fleet, &nearest);
        write_reports(fleet, step, reports);
        write_events(fleet, step, &rows, found);
        write_nearest(step, pairs, near);
        ogrjoin_pairs_free(pairs);
        n_events += rows.n;
        if (step < WARM_STEPS)
            warm = greatest_megabytes();
    }
    finish(reports);
    finish(found);
    finish(near);
    printf("%" PRId64 " reports of %" PRId64 " vehicles, %" PRId64
           " events, %" PRId64
           " vehicles inside, %ld MB until step %d, %ld MB until the end\n",
           fleet->n * n_steps, fleet->n, n_events,
           ogrjoin_events_inside(events), warm, WARM_STEPS,
           greatest_megabytes());
    close_nearest(&nearest);
    ogrjoin_events_free(events);
}

int main(int argc, char **argv)
{
    struct fleet fleet = {.n = 60};
    int64_t n_steps = 240;
    int n_avenues = 15, n_streets = 84, i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
    {
        const long long value = atoll(argv[i + 1]);
        if (value < 1 || value > 2000000000)
            stop("numbers are 1 or more");
        if (strcmp(argv[i], "-vehicles") == 0)
            fleet.n = value;
        else if (strcmp(argv[i], "-steps") == 0)
            n_steps = value;
        else if (strcmp(argv[i], "-avenues") == 0)
            n_avenues = (int)value;
        else if (strcmp(argv[i], "-streets") == 0)
            n_streets = (int)value;
        else
            stop("usage: fleet [-vehicles N] [-steps N] [-avenues N] "
                 "[-streets N] [FOLDER]");
    }
    if (n_avenues < 6 || n_streets < 12)
        stop("the city has at least 6 avenues and 12 streets");
    fleet.city = city_plan(1, n_avenues, n_streets);
    fleet.vehicle = allocate(fleet.n, sizeof *fleet.vehicle);
    fleet.x = allocate(fleet.n, sizeof *fleet.x);
    fleet.y = allocate(fleet.n, sizeof *fleet.y);
    fleet.key = allocate(fleet.n, sizeof *fleet.key);
    for (int64_t v = 0; v < fleet.n; v++)
    {
        fleet.key[v] = v + 1;
        place_vehicle(&fleet, &fleet.vehicle[v]);
    }
    make_fences(&fleet);
    run(&fleet, n_steps, i < argc ? argv[i] : NULL);
    free(fleet.vehicle);
    free(fleet.x);
    free(fleet.y);
    free(fleet.key);
    return 0;
}
