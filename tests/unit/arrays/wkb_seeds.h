/** Geometries as WKB, written byte by byte, for the tests and the fuzzer of the
 * WKB reader. They have every type, dimension and byte order, and each way of
 * marking dimensions. */
#ifndef OJ_WKB_SEEDS_H
#define OJ_WKB_SEEDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct wkb
{
    size_t n;
    int big_endian;
    uint8_t bytes[2048];
};

static inline void wkb_byte(struct wkb *w, unsigned value)
{
    w->bytes[w->n++] = (uint8_t)value;
}

static inline void wkb_u32(struct wkb *w, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        wkb_byte(w, value >> (w->big_endian ? 24 - 8 * i : 8 * i) & 0xFF);
}

static inline void wkb_double(struct wkb *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        wkb_byte(w, (unsigned)(bits >> (w->big_endian ? 56 - 8 * i : 8 * i)) &
                        0xFF);
}

static inline void wkb_header(struct wkb *w, uint32_t type)
{
    wkb_byte(w, w->big_endian ? 0 : 1);
    wkb_u32(w, type);
    if (type & 0x20000000u)
        wkb_u32(w, 4326);
}

static inline void wkb_header_count(struct wkb *w, uint32_t type, uint32_t n)
{
    wkb_header(w, type);
    wkb_u32(w, n);
}

/* Returns the number of ordinates of a vertex of this type. */
static inline int wkb_ordinates(uint32_t type)
{
    uint32_t thousands = (type & 0x1FFFFFFFu) / 1000;
    return 2 + ((type & 0x80000000u) != 0 || (thousands & 1) != 0) +
           ((type & 0x40000000u) != 0 || (thousands & 2) != 0);
}

static inline void wkb_vertex(struct wkb *w, uint32_t type, double x, double y)
{
    wkb_double(w, x);
    wkb_double(w, y);
    for (int i = 2; i < wkb_ordinates(type); i++)
        wkb_double(w, 100.0 * i);
}

static inline void wkb_point(struct wkb *w, uint32_t flags, double x, double y)
{
    wkb_header(w, flags + 1);
    wkb_vertex(w, flags, x, y);
}

/* Writes n vertices (x + i, y + i * i). If closed is 1, writes the first
 * again. */
static inline void wkb_vertices(struct wkb *w, uint32_t flags, uint32_t n,
                                int closed, double x, double y)
{
    wkb_u32(w, n + (closed != 0));
    for (uint32_t i = 0; i < n; i++)
        wkb_vertex(w, flags, x + i, y + (double)i * i);
    if (closed)
        wkb_vertex(w, flags, x, y);
}

static inline void wkb_line(struct wkb *w, uint32_t flags, uint32_t n, double x,
                            double y)
{
    wkb_header(w, flags + 2);
    wkb_vertices(w, flags, n, 0, x, y);
}

/* Writes a polygon with a shell of four vertices and a hole of three. closed 1:
 * the first vertex of a ring is written again at its end. */
static inline void wkb_polygon(struct wkb *w, uint32_t flags, int closed,
                               double x, double y)
{
    wkb_header_count(w, flags + 3, 2);
    wkb_vertices(w, flags, 4, closed, x, y);
    wkb_vertices(w, flags, 3, closed, x + 0.25, y + 0.25);
}

enum
{
    WKB_SEEDS = 22
};

/* Writes seed i, 0 <= i < WKB_SEEDS, with these flags of its type and this byte
 * order. Returns its number of parts, or -1 if the reader must refuse it. */
static inline int wkb_seed(struct wkb *w, int i, uint32_t flags, int big_endian)
{
    const double none = (double)__builtin_nanf("");
    const double inf = (double)__builtin_inff();
    w->n = 0;
    w->big_endian = big_endian;
    switch (i)
    {
        case 0:
            wkb_point(w, flags, 1.5, -2.5);
            return 1;
        case 1:
            wkb_point(w, flags, none, none);
            return 0;
        case 2:
            wkb_line(w, flags, 5, 1, 2);
            return 1;
        case 3:
            wkb_line(w, flags, 0, 1, 2);
            return 0;
        case 4:
            wkb_polygon(w, flags, 1, 3, 4);
            return 1;
        case 5:
            wkb_polygon(w, flags, 0, 3, 4);
            return 1;
        case 6:
            wkb_header_count(w, flags + 3, 0);
            return 0;
        case 7: /* a single point, which may be stored in the short form */
            wkb_header_count(w, flags + 4, 1);
            wkb_point(w, flags, 7, 8);
            return 1;
        case 8: /* members in both byte orders; one is empty */
            wkb_header_count(w, flags + 4, 3);
            wkb_point(w, flags, 7, 8);
            w->big_endian = !big_endian;
            wkb_point(w, flags, none, none);
            w->big_endian = big_endian;
            wkb_point(w, flags, 9, 10);
            return 2;
        case 9:
            wkb_header_count(w, flags + 5, 3);
            wkb_line(w, flags, 2, 0, 0);
            wkb_line(w, flags, 0, 0, 0);
            wkb_line(w, flags, 3, 5, 5);
            return 2;
        case 10:
            wkb_header_count(w, flags + 6, 3);
            wkb_polygon(w, flags, 1, 0, 0);
            wkb_header_count(w, flags + 3, 0);
            wkb_polygon(w, flags, 0, 10, 0);
            return 2;
        case 11:
            wkb_header_count(w, flags + 7, 0);
            return 0;
        case 12: /* a collection that contains an empty collection */
            wkb_header_count(w, flags + 7, 4);
            wkb_point(w, flags, 1, 1);
            wkb_header_count(w, flags + 7, 2);
            wkb_polygon(w, flags, 1, 0, 0);
            wkb_header_count(w, flags + 7, 0);
            wkb_line(w, flags, 4, 1, 1);
            wkb_header_count(w, flags + 4, 2);
            wkb_point(w, flags, 2, 2);
            wkb_point(w, flags, 3, 3);
            return 5;
        case 13: /* the hole is empty */
            wkb_header_count(w, flags + 3, 2);
            wkb_vertices(w, flags, 4, 1, 0, 0);
            wkb_vertices(w, flags, 0, 0, 0, 0);
            return 1;
        case 14: /* the shell is empty */
            wkb_header_count(w, flags + 3, 2);
            wkb_vertices(w, flags, 0, 0, 0, 0);
            wkb_vertices(w, flags, 4, 1, 0, 0);
            return 0;
        case 15:
            wkb_line(w, flags, 3, inf, 0);
            return 0;
        case 16:
            wkb_point(w, flags, 1, none);
            return 0;
        case 17: /* a member of a wrong type */
            wkb_header_count(w, flags + 4, 2);
            wkb_point(w, flags, 1, 1);
            wkb_line(w, flags, 2, 1, 1);
            return -1;
        case 18: /* a circular string */
            wkb_header(w, flags + 8);
            wkb_vertices(w, flags, 3, 0, 1, 1);
            return -1;
        case 19:
            wkb_header(w, flags + 99);
            wkb_u32(w, 0);
            return -1;
        case 20: /* more vertices than bytes */
            wkb_header(w, flags + 2);
            wkb_u32(w, 0xFFFFFFFFu);
            wkb_double(w, 1);
            return -1;
        default: /* a line with one vertex, a ring with one vertex */
            wkb_header_count(w, flags + 7, 2);
            wkb_line(w, flags, 1, 1, 1);
            wkb_header_count(w, flags + 3, 1);
            wkb_vertices(w, flags, 1, 0, 4, 4);
            return 2;
    }
}

enum
{
    WKB_FLAGS = 9
};

static inline uint32_t wkb_flags(int i)
{
    static const uint32_t flags[WKB_FLAGS] = {
        0,           1000,        2000,        3000,       0x80000000u,
        0x40000000u, 0xC0000000u, 0x20000000u, 0xA0000000u};
    return flags[i];
}

#endif
