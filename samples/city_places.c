/* Shops and other places of the city, as two independent mappings record them.
 */
#include "city.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum
{
    STREAM_NAME = 300,
    STREAM_IS_IN_B,
    STREAM_CHANGE,
    STREAM_EDIT,
    STREAM_EAST,
    STREAM_NORTH
};

#define PLACE_SEAT                                                             \
    ((uint64_t)1 << 40) /* the first pickup that is used as a place */
#define IN_BOTH 0.7
#define APART_FT 98.4 /* standard deviation of each coordinate: 30 m */

#define N_OF(table) (sizeof(table) / sizeof *(table))

static const char *const adjectives[] = {
    "Golden", "Blue",   "Old",    "Corner", "Royal",  "Green",   "Lucky",
    "Grand",  "Little", "Silver", "Sunny",  "Happy",  "Red",     "Village",
    "Urban",  "Fresh",  "Quiet",  "Copper", "Bright", "Northern"};
static const char *const nouns[] = {
    "Lion",   "Harbor", "Garden", "Dragon", "Bridge",  "Apple",     "Anchor",
    "Crown",  "Tower",  "Maple",  "River",  "Lantern", "Rose",      "Fox",
    "Willow", "Market", "Star",   "Pearl",  "Phoenix", "Lighthouse"};
static const char *const categories[] = {
    "Caf\303\251", "Pizza",   "Pharmacy", "Bakery", "Deli",   "Books",
    "Grill",       "Laundry", "Florist",  "Bar",    "Hotel",  "Gym",
    "Hardware",    "Noodles", "Dentist",  "Salon",  "Tailor", "Bistro"};
static const char *const chains[] = {
    "Star Coffee",    "Burger Palace", "Quick Mart",         "Metro Pharmacy",
    "Pizza Uno",      "Daily Bagel",   "Bank of the Island", "FitFirst",
    "Noodle Express", "Green Grocer"};
static const char *const first_syllables[] = {
    "Mar", "Bel", "Tor", "San", "Kal", "Ros", "Gar", "Len",
    "Vin", "Dor", "Pel", "Han", "Ric", "Mon", "Fer", "Wil"};
static const char *const last_syllables[] = {
    "ini", "etti", "son",  "ez",  "ova", "man", "elli", "ski",
    "ton", "ara",  "berg", "oux", "ley", "edo", "ner",  "ano"};

/* Draws a number below n from the hash, and changes the hash. */
static size_t draw_number(uint64_t *hash, size_t n)
{
    const size_t drawn = (size_t)(*hash % n);
    *hash /= n;
    return drawn;
}

static void name_of(const struct city *city, uint64_t place,
                    char name[CITY_NAME_SIZE])
{
    uint64_t h = city_hash(city, STREAM_NAME, place);
    const size_t kind = draw_number(&h, 16);
    const char *adjective = adjectives[draw_number(&h, N_OF(adjectives))];
    const char *noun = nouns[draw_number(&h, N_OF(nouns))];
    const char *category = categories[draw_number(&h, N_OF(categories))];
    char family[16];
    snprintf(family, sizeof family, "%s%s",
             first_syllables[draw_number(&h, N_OF(first_syllables))],
             last_syllables[draw_number(&h, N_OF(last_syllables))]);
    if (kind == 0) /* a shop of a chain */
        snprintf(name, CITY_NAME_SIZE, "%s",
                 chains[draw_number(&h, N_OF(chains))]);
    else if (kind <= 6)
        snprintf(name, CITY_NAME_SIZE, "%s's %s", family, category);
    else if (kind <= 10)
        snprintf(name, CITY_NAME_SIZE, "%s %s %s", adjective, noun, category);
    else if (kind <= 12)
        snprintf(name, CITY_NAME_SIZE, "%s %s", noun, category);
    else if (kind == 13)
        snprintf(name, CITY_NAME_SIZE, "The %s %s", adjective, noun);
    else
        snprintf(name, CITY_NAME_SIZE, "%s %s & %s", adjective, category,
                 family);
}

/* Replaces, drops or doubles a letter. */
static void mistype(char *name, uint64_t *hash)
{
    const size_t n = strlen(name), at = draw_number(hash, n),
                 kind = draw_number(hash, 3);
    if (!isalpha((unsigned char)name[at]))
        return;
    if (kind == 0)
        name[at] = (char)('a' + draw_number(hash, 26));
    else if (kind == 1)
        memmove(name + at, name + at + 1, n - at);
    else if (n + 2 <= CITY_NAME_SIZE)
        memmove(name + at + 1, name + at, n + 1 - at);
}

/* Writes the name as the second mapping does: half of the names stay; the
 * others have one or two errors, a word more or less, or the first word
 * last. */
static void rewrite(const struct city *city, uint64_t place,
                    char name[CITY_NAME_SIZE])
{
    const double change = city_random(city, STREAM_CHANGE, place);
    uint64_t h = city_hash(city, STREAM_EDIT, place);
    const char *space = strchr(name, ' ');
    if (change < 0.1)
        for (char *c = name; *c != '\0'; c++) /* in capitals */
            *c = (char)toupper((unsigned char)*c);
    else if (change >= 0.5 && change < 0.75)
        for (size_t i = draw_number(&h, 2) + 1; i > 0; i--)
            mistype(name, &h);
    else if (change >= 0.75 && change < 0.82)
        snprintf(name + strlen(name), CITY_NAME_SIZE - strlen(name), " %s",
                 draw_number(&h, 2) ? "Inc" : "Shop");
    else if (change >= 0.9 && space != NULL)
    {
        char turned[2 * CITY_NAME_SIZE]; /* as long as the name */
        snprintf(turned, sizeof turned, "%s %.*s", space + 1,
                 (int)(space - name), name);
        memcpy(name, turned, strlen(turned) + 1);
    }
    else if (change >= 0.82 && space != NULL)
        memmove(name, space + 1, strlen(space + 1) + 1);
}

struct city_place city_place(const struct city_traffic *traffic,
                             const struct city *city, int side, uint64_t i,
                             uint64_t n)
{
    const int is_in_both = city_random(city, STREAM_IS_IN_B, i) < IN_BOTH;
    const uint64_t place = side == 1 && !is_in_both ? i + n : i;
    const struct city_pickup seat = city_pickup(traffic, PLACE_SEAT + place);
    struct city_place out = {
        .id = (int64_t)place + 1, .x = seat.x, .y = seat.y};
    name_of(city, place, out.name);
    if (side == 1)
    {
        out.x += APART_FT * city_normal(city, STREAM_EAST, i);
        out.y += APART_FT * city_normal(city, STREAM_NORTH, i);
        rewrite(city, place, out.name);
    }
    return out;
}
