#include "oj_row_places.h"

struct oj_row_places oj_row_places_make(enum oj_how how)
{
    struct oj_row_places places = {0};
    places.how = how;
    places.number = -1;
    return places;
}

void oj_row_places_set_first_fid(struct oj_row_places *places, int64_t first)
{
    places->number = first;
}

void oj_row_places_set_fid_stride(struct oj_row_places *places, int64_t stride)
{
    places->stride = stride;
}

int64_t oj_row_places_input_fid(int64_t fid, int64_t stride, int64_t *n)
{
    int64_t feature = fid / stride;
    *n = fid % stride;
    if (*n < 0)
    {
        *n += stride;
        feature--;
    }
    return feature;
}

void oj_row_places_end(struct oj_row_places *places)
{
    places->entries = NULL;
    places->all = NULL;
    places->input_fid = NULL;
    places->is_matched = NULL;
    places->at = places->n_rows = 0;
    places->entry = places->end_entry = 0;
}

void oj_row_places_begin(struct oj_row_places *places,
                         const struct oj_matches *entries,
                         const struct oj_matches *all, int64_t first_row,
                         const int64_t *input_fid)
{
    oj_row_places_end(places);
    places->entries = entries;
    places->all = all;
    places->first_row = first_row;
    places->input_fid = input_fid;
    places->n_rows = entries->n_rows;
}

void oj_row_places_begin_unmatched(struct oj_row_places *places, int64_t n_rows,
                                   const uint8_t *is_matched)
{
    oj_row_places_end(places);
    places->is_matched = is_matched;
    places->first_row = 0;
    places->n_rows = n_rows;
}

/* Returns 1 if a row of the answer becomes output rows. Sets the range first ..
 * end - 1 of its entries, which may be empty. */
static inline int find_entries_of_output_row(const struct oj_row_places *places,
                                             int64_t row, int64_t *first,
                                             int64_t *end)
{
    enum oj_how how = places->how;
    *first = *end = 0;
    if (places->entries == NULL)
        return !places->is_matched[row];
    *first = oj_matches_first(places->entries, row);
    *end = oj_matches_end(places->entries, row);
    return *first == *end ? how != OJ_HOW_INNER && how != OJ_HOW_SEMI
                          : how != OJ_HOW_ANTI;
}

/* Returns 1 if a row with the entries first .. end - 1 becomes a single output
 * row that refers to no entry. */
static inline int is_output_without_entry(const struct oj_row_places *places,
                                          int64_t first, int64_t end)
{
    return first == end || places->how == OJ_HOW_SEMI;
}

/* Moves to the next row of the answer; if entry == end_entry afterwards, that
 * row has no output row. */
static void move_to_next_row(struct oj_row_places *places)
{
    int64_t row = places->at++, first, end;
    if (!find_entries_of_output_row(places, row, &first, &end))
        return;
    places->row = places->first_row + row;
    places->n_pairs = end - first;
    if (places->all != places->entries)
        places->n_pairs = oj_matches_end(places->all, row) -
                          oj_matches_first(places->all, row);
    if (is_output_without_entry(places, first, end))
    {
        first = -1;
        end = 0;
    }
    places->entry = places->first_entry = first;
    places->end_entry = end;
}

/* Returns the FID of the output row for the pair with this rank (0: no pair) of
 * input feature `fid`, which has a range of `stride` FIDs; OJ_NO_FID if it
 * exceeds 64 bits. FIDs below 0 are counted back from the end of the feature's
 * range, because the start of the range may exceed 64 bits although the FID
 * does not. */
static int64_t fid_of_pair_rank(int64_t stride, int64_t fid, int32_t rank)
{
    int64_t n = rank > 0 ? rank - 1 : 0, first;
    if (stride <= 1)
        return fid;
    if (fid < 0)
    {
        fid++;
        n -= stride;
    }
    return __builtin_mul_overflow(fid, stride, &first) ||
                   __builtin_add_overflow(first, n, &first)
               ? OJ_NO_FID
               : first;
}

/* Describes the output row of the current entry and moves to the next entry. */
static void set_place_of_next_entry(struct oj_row_places *places,
                                    struct oj_row_place *place)
{
    int64_t entry = places->entry++;
    place->row = places->row;
    place->entry = entry;
    place->n_pairs = places->n_pairs;
    place->rank = 0;
    place->join_row = -1;
    if (entry >= 0)
    {
        place->rank = (int32_t)(entry - places->first_entry + 1);
        place->join_row = places->entries->join_row[entry];
    }
    place->fid = OJ_NO_FID;
    if (places->input_fid != NULL)
        place->fid = fid_of_pair_rank(
            places->stride, places->input_fid[place->row], place->rank);
    else if (places->number >= 0)
        place->fid = places->number++;
}

int64_t oj_row_places_next(struct oj_row_places *places,
                           struct oj_row_place *out, int64_t n)
{
    struct oj_row_places p = *places; /* a copy, which the compiler can keep in
                                         registers */
    int64_t n_taken = 0;
    while (n_taken < n)
    {
        if (p.entry != p.end_entry)
            set_place_of_next_entry(&p, &out[n_taken++]);
        else if (p.at < p.n_rows)
            move_to_next_row(&p);
        else
            break;
    }
    *places = p;
    return n_taken;
}

int64_t oj_row_places_count(const struct oj_row_places *places)
{
    int64_t n = places->end_entry - places->entry;
    for (int64_t row = places->at; row < places->n_rows; row++)
    {
        int64_t first, end;
        if (find_entries_of_output_row(places, row, &first, &end))
            n += is_output_without_entry(places, first, end) ? 1 : end - first;
    }
    return n;
}
