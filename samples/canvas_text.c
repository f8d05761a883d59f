/* A small typeface of strokes. A glyph is a string of strokes, apart by blanks;
 * a stroke is a line through points of two characters, x and y, 0-9 then a-z;
 * after '~' it is a curve that these points pull. Baseline y = 4, small letters
 * up to a (10), capitals up to e (14), tails down to 0. */
#include "canvas.h"

#include <string.h>

#define BASELINE 4
#define CAPITAL 10.0 /* units of a capital's height */
#define GAP 2.5      /* units between letters */
#define BLANK 3.6
#define STROKE 1.15
#define MAX_POINTS 256

struct glyph
{
    char letter;
    const char *strokes;
};

#define ROUND "~3a0a04646a3a" /* the body of a, b, d, g, o, p, q */

static const struct glyph glyphs[] = {
    {'A', "044e84 1777"},
    {'B', "040e ~0e4e7e794909 ~094989844404"},
    {'C', "~8b8e4e0e0904448487"},
    {'D', "040e ~0e4e8e89844404"},
    {'E', "7e0e0474 0969"},
    {'F', "7e0e04 0969"},
    {'G', "~8b8e4e0e0904448488 8848"},
    {'H', "040e 848e 0989"},
    {'I', "040e"},
    {'J', "~6e6764340407"},
    {'K', "040e 7e08 2a74"},
    {'L', "0e0474"},
    {'M', "040e478e84"},
    {'N', "040e747e"},
    {'O', "~4e0e0b07044484878b8e4e"},
    {'P', "040e ~0e4e7e784808"},
    {'Q', "~4e0e0b07044484878b8e4e 5783"},
    {'R', "040e ~0e4e7e784808 4874"},
    {'S', "~7c7e4e0e0a497874440406"},
    {'T', "0e8e 4e44"},
    {'U', "~0e09044484898e"},
    {'V', "0e448e"},
    {'W', "0e245c84ae"},
    {'X', "0e84 8e04"},
    {'Y', "0e498e 4944"},
    {'Z', "0e7e0474"},
    {'a', ROUND " 6a64"},
    {'b', ROUND " 0e04"},
    {'c', "~696a3a0a0704346465"},
    {'d', ROUND " 6e64"},
    {'e', "0767 ~676a3a0a0704346465"},
    {'f', "~5e2e2a 2a24 0a4a"},
    {'g', ROUND " 6a63 ~6360300001"},
    {'h', "0e04 ~070a3a6a67 6764"},
    {'i', "0a04 0d0d"},
    {'j', "2a23 ~232000 2d2d"},
    {'k', "0e04 5a07 2864"},
    {'l', "0e04"},
    {'m', "0a04 ~070a2a4a47 4744 ~474a6a8a87 8784"},
    {'n', "0a04 ~070a3a6a67 6764"},
    {'o', ROUND},
    {'p', ROUND " 0a00"},
    {'q', ROUND " 6a60"},
    {'r', "0a04 ~070a3a4a"},
    {'s', "~595a2a0a08375654240405"},
    {'t', "2d27 ~272454 0a4a"},
    {'u', "~0a0704346467 6a64"},
    {'v', "0a346a"},
    {'w', "0a2449648a"},
    {'x', "0a64 6a04"},
    {'y', "0a34 6a10"},
    {'z', "0a6a0464"},
    {'0', "~3e0e09043464696e3e"},
    {'1', "1c4e44"},
    {'2', "~0b0e3e6e6a04 0464"},
    {'3', "~0c0e3e6e6939 ~396964340406"},
    {'4', "4e0767 5a54"},
    {'5', "6e0e09 ~093a6a6764340406"},
    {'6', "~6d6e3e0e09043464676a3a0a07"},
    {'7', "0e6e24"},
    {'8', "~3e0e0939696e3e ~39090434646939"},
    {'9', "~05043464696e3e0e0b0838686b"},
    {'.', "0404"},
    {',', "1402"},
    {':', "0505 0a0a"},
    {'%', "8e14 ~2e0e0b2b4b4e2e ~78585474949878"},
    {'-', "0848"},
    {'(', "~2f0b0722"},
    {')', "~0f2b2702"},
    {'/', "025e"},
    {'+', "0868 3b35"},
    {'=', "0969 0666"},
    {'_', "0373"},
    {'\'', "0e0b"}};

static const char *find(char letter)
{
    for (size_t i = 0; i < sizeof glyphs / sizeof *glyphs; i++)
        if (glyphs[i].letter == letter)
            return glyphs[i].strokes;
    return NULL;
}

static int digit(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* A stroke under way: its points, and how many. */
struct stroke
{
    int n;
    double x[MAX_POINTS], y[MAX_POINTS];
};

/* Corner cutting (Chaikin): each inner corner becomes two, the ends stay. */
static void cut_corners(struct stroke *s)
{
    struct stroke out;
    out.n = 0;
    if (s->n < 3 || 2 * s->n > MAX_POINTS)
        return;
    out.x[out.n] = s->x[0];
    out.y[out.n++] = s->y[0];
    for (int i = 0; i + 1 < s->n; i++)
        for (int half = 0; half < 2; half++)
        {
            const double t = half ? 0.75 : 0.25;
            if ((i == 0 && !half) || (i + 2 == s->n && half))
                continue;
            out.x[out.n] = s->x[i] + t * (s->x[i + 1] - s->x[i]);
            out.y[out.n++] = s->y[i] + t * (s->y[i + 1] - s->y[i]);
        }
    out.x[out.n] = s->x[s->n - 1];
    out.y[out.n++] = s->y[s->n - 1];
    *s = out;
}

/* Reads one stroke; returns what follows it. */
static const char *read_stroke(const char *text, struct stroke *s)
{
    const int curved = *text == '~';
    s->n = 0;
    if (curved)
        text++;
    for (; text[0] != '\0' && text[0] != ' ' && text[1] != '\0'; text += 2)
    {
        s->x[s->n] = digit(text[0]);
        s->y[s->n++] = digit(text[1]);
    }
    if (curved)
        for (int i = 0; i < 3; i++)
            cut_corners(s);
    while (*text == ' ')
        text++;
    return text;
}

static double glyph_width(const char *strokes)
{
    double width = 0;
    struct stroke s;
    while (*strokes != '\0')
    {
        strokes = read_stroke(strokes, &s);
        for (int i = 0; i < s.n; i++)
            width = s.x[i] > width ? s.x[i] : width;
    }
    return width;
}

double canvas_text(struct canvas *canvas, double x, double y, double size,
                   double weight, struct paint paint, const char *text)
{
    const double unit = size / CAPITAL;
    for (; *text != '\0'; text++)
    {
        const char *strokes = find(*text);
        if (strokes == NULL)
        {
            x += BLANK * unit;
            continue;
        }
        if (canvas != NULL)
            for (const char *rest = strokes; *rest != '\0';)
            {
                struct stroke s;
                rest = read_stroke(rest, &s);
                for (int i = 0; i + 1 < s.n; i++)
                    canvas_line(canvas, x + s.x[i] * unit,
                                y - (s.y[i] - BASELINE) * unit,
                                x + s.x[i + 1] * unit,
                                y - (s.y[i + 1] - BASELINE) * unit,
                                STROKE * weight * unit, paint);
            }
        x += (glyph_width(strokes) + GAP) * unit;
    }
    return x;
}

double canvas_text_width(double size, const char *text)
{
    return canvas_text(NULL, 0, 0, size, 1, paint_of(0), text);
}
