#include "map_panel.h"

#include <stdio.h>
#include <string.h>

#define PAPER 0xFBFAF6
#define INK 0x26303A
#define FAINT 0x6F7A83
#define RULE 0xD5D3C9
#define MARGIN 34

static const unsigned colours[CITY_N_USES] = {
    0xE3A51A, /* homes */
    0xE2681E, /* apartments */
    0xC2272D, /* homes above shops */
    0xB0338A, /* offices and shops */
    0x6B4BA3, /* industry */
    0x5C6F82, /* transport */
    0x1F78B4, /* public buildings */
    0x2E9348  /* parks */
};

struct paint panel_paint(enum city_use use)
{
    return paint_of(colours[use]);
}

struct paint panel_unmatched_paint(void)
{
    return paint_of(0x101010);
}

/* 1234567 -> "1,234,567" */
static const char *with_commas(int64_t n, char *text, size_t size)
{
    char digits[32];
    int length, used = 0;
    snprintf(digits, sizeof digits, "%lld", (long long)n);
    length = (int)strlen(digits);
    for (int i = 0; i < length && used + 2 < (int)size; i++)
    {
        if (i > 0 && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

static void text_to_right(struct canvas *canvas, double x1, double y,
                          double size, struct paint paint, const char *text)
{
    canvas_text(canvas, x1 - canvas_text_width(size, text), y, size, 1, paint,
                text);
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static double draw_title(struct canvas *canvas, double x, double y,
                         const struct panel_counts *counts)
{
    char text[128], a[32];
    canvas_text(canvas, x, y, 25, 1.45, paint_of(INK), "Where taxi trips");
    y += 42;
    canvas_text(canvas, x, y, 25, 1.45, paint_of(INK), "begin");
    y += 40;
    snprintf(text, sizeof text, "%s pickups, each joined to",
             with_commas(counts->n_pickups, a, sizeof a));
    canvas_text(canvas, x, y, 11.5, 1, paint_of(FAINT), text);
    y += 23;
    snprintf(text, sizeof text, "the nearest of %s tax lots",
             with_commas(counts->n_lots, a, sizeof a));
    canvas_text(canvas, x, y, 11.5, 1, paint_of(FAINT), text);
    y += 23;
    canvas_text(canvas, x, y, 11.5, 1, paint_of(FAINT), "within 100 feet");
    return y + 46;
}

/* One row for each use: swatch, name, bar, share. */
static double draw_legend(struct canvas *canvas, double x, double x1, double y,
                          const struct panel_counts *counts)
{
    int64_t most = 1;
    char text[32];
    for (int use = 0; use < CITY_N_USES; use++)
        if (counts->by_use[use] > most)
            most = counts->by_use[use];
    canvas_text(canvas, x, y, 12.5, 1.35, paint_of(INK),
                "Land use of the nearest lot");
    y += 30;
    for (int use = 0; use < CITY_N_USES; use++)
    {
        const struct paint paint = panel_paint((enum city_use)use);
        const double length =
            (x1 - x - 86) * (double)counts->by_use[use] / (double)most;
        canvas_text(canvas, x, y, 10.5, 1, paint_of(INK),
                    city_use_name((enum city_use)use));
        y += 10;
        canvas_rectangle(canvas, x, y, x + (length > 2 ? length : 2), y + 13,
                         paint);
        snprintf(text, sizeof text, "%.1f %%",
                 100 * share(counts->by_use[use], counts->n_pickups));
        text_to_right(canvas, x1, y + 12, 10.5, paint_of(INK), text);
        y += 40;
    }
    canvas_disc(canvas, x + 4, y - 6, 4, panel_unmatched_paint());
    canvas_text(canvas, x + 18, y - 1, 10.5, 1, paint_of(INK),
                "No lot in reach");
    snprintf(
        text, sizeof text, "%.1f %%",
        100 * share(counts->n_pickups - counts->n_matched, counts->n_pickups));
    text_to_right(canvas, x1, y - 1, 10.5, paint_of(INK), text);
    return y + 58;
}

/* Stacked bars, one for each hour. */
static double draw_hours(struct canvas *canvas, double x, double x1, double y,
                         const struct panel_counts *counts)
{
    const double height = 190, step = (x1 - x) / 24;
    int64_t most = 1;
    for (int hour = 0; hour < 24; hour++)
    {
        int64_t n = 0;
        for (int use = 0; use < CITY_N_USES; use++)
            n += counts->by_hour[hour][use];
        most = n > most ? n : most;
    }
    canvas_text(canvas, x, y, 12.5, 1.35, paint_of(INK),
                "Pickups by hour of the day");
    y += 22 + height;
    for (int hour = 0; hour < 24; hour++)
    {
        double top = y;
        for (int use = 0; use < CITY_N_USES; use++)
        {
            const double h =
                height * (double)counts->by_hour[hour][use] / (double)most;
            canvas_rectangle(canvas, x + step * hour + 1, top - h,
                             x + step * (hour + 1) - 1, top,
                             panel_paint((enum city_use)use));
            top -= h;
        }
    }
    canvas_line(canvas, x, y + 1, x1, y + 1, 1, paint_of(FAINT));
    for (int hour = 0; hour <= 24; hour += 6)
    {
        char text[8];
        const double at = x + step * hour;
        snprintf(text, sizeof text, "%d", hour);
        canvas_line(canvas, at, y + 1, at, y + 6, 1, paint_of(FAINT));
        canvas_text(canvas,
                    hour == 0    ? at
                    : hour == 24 ? at - canvas_text_width(10, text)
                                 : at - canvas_text_width(10, text) / 2,
                    y + 21, 10, 1, paint_of(FAINT), text);
    }
    return y + 62;
}

static void draw_facts(struct canvas *canvas, double x, double x1, double y,
                       const struct panel_counts *counts)
{
    char text[64];
    canvas_text(canvas, x, y, 10.5, 1, paint_of(INK), "Pickups with a lot");
    snprintf(text, sizeof text, "%.2f %%",
             100 * share(counts->n_matched, counts->n_pickups));
    text_to_right(canvas, x1, y, 10.5, paint_of(INK), text);
    y += 24;
    canvas_text(canvas, x, y, 10.5, 1, paint_of(INK), "Inside their lot");
    snprintf(text, sizeof text, "%.2f %%",
             100 * share(counts->n_inside, counts->n_pickups));
    text_to_right(canvas, x1, y, 10.5, paint_of(INK), text);
    y += 24;
    canvas_text(canvas, x, y, 10.5, 1, paint_of(INK), "Mean distance");
    snprintf(text, sizeof text, "%.1f ft",
             counts->n_matched > 0
                 ? counts->sum_distance / (double)counts->n_matched
                 : 0);
    text_to_right(canvas, x1, y, 10.5, paint_of(INK), text);
}

void panel_draw(struct canvas *canvas, const struct panel_place *place,
                const struct panel_counts *counts)
{
    const double x = place->x0 + MARGIN, x1 = place->x1 - MARGIN;
    double y = place->y0 + 66;
    canvas_rectangle(canvas, place->x0, place->y0, place->x1, place->y1,
                     paint_of(PAPER));
    canvas_line(canvas, place->x0, place->y0, place->x0, place->y1, 1.5,
                paint_of(RULE));
    y = draw_title(canvas, x, y, counts);
    y = draw_legend(canvas, x, x1, y, counts);
    y = draw_hours(canvas, x, x1, y, counts);
    draw_facts(canvas, x, x1, y, counts);
    canvas_line(canvas, x, place->y1 - 76, x1, place->y1 - 76, 1,
                paint_of(RULE));
    canvas_text(canvas, x, place->y1 - 50, 9.5, 1, paint_of(FAINT),
                "ogrjoin -op nearest -max_distance 100");
    canvas_text(canvas, x, place->y1 - 30, 9.5, 1, paint_of(FAINT),
                "Generated city, EPSG:2263");
}

void panel_scale_bar(struct canvas *canvas, double x, double y, double feet)
{
    static const int lengths[] = {100, 200, 500, 1000, 2000, 5000, 10000};
    int length = lengths[0];
    char text[40], digits[32];
    double w;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        if (lengths[i] / feet < 260)
            length = lengths[i];
    w = length / feet;
    {
        struct paint paper = paint_of(PAPER);
        paper.alpha = 0.88;
        canvas_rectangle(canvas, x - 16, y - 34, x + w + 16, y + 16, paper);
    }
    canvas_rectangle(canvas, x, y - 4, x + w / 2, y + 2, paint_of(INK));
    canvas_rectangle(canvas, x + w / 2, y - 4, x + w, y + 2, paint_of(PAPER));
    canvas_line(canvas, x, y + 2, x + w, y + 2, 1, paint_of(INK));
    canvas_line(canvas, x, y - 4, x + w, y - 4, 1, paint_of(INK));
    canvas_line(canvas, x + w, y - 4, x + w, y + 2, 1, paint_of(INK));
    snprintf(text, sizeof text, "%s ft",
             with_commas(length, digits, sizeof digits));
    canvas_text(canvas, x, y - 13, 10.5, 1.1, paint_of(INK), text);
}
