/* Builds the tree of many points on several threads. A skeleton tree, built
 * from a sample, divides the points into cells; each cell is then split by
 * itself.
 *
 *  sample -> skeleton        about 256 cells
 *  points -> cells           counted, then scattered, slice by slice
 *  cell   -> subtree         cells on any thread
 *  subtrees -> one subtree   concatenated */
#include "oj_live.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_parallel.h"
#include "../foundations/base/cpu_morton_order.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A skeleton is built for at least LEAST_FOR_SKELETON points, from a sample of
 * SAMPLE points. A leaf of the skeleton has at most SAMPLE_OF_LEAF points of
 * the sample. */
#define LEAST_FOR_SKELETON 500000
#define SAMPLE 32768
#define SAMPLE_OF_LEAF 64

struct build
{
    struct live_split split;
    int n_threads;
    int64_t n;
    struct live_point *point, *scratch; /* swapped after scattering */
    struct live_subtree skeleton;
    uint16_t *cell_of; /* [n] leaf of the skeleton that holds the point */
    int32_t *leaf_of;  /* [4 * nodes] leaf of the skeleton that is child c of
                          node i, at 4 * i + c */
    int64_t *start;    /* [n_slices][leaves] index in scratch where a slice puts
                          its next point of a cell */
    int64_t *offset;   /* [leaves + 1] first point of each cell */
    int64_t n_slices;
    struct live_subtree *part; /* [leaves] subtree of each cell */
    int stops_at_depth; /* 1: the tree is not wanted if it has a leaf that
                           cannot be split, although it has too many points */
    atomic_int has_reached_depth; /* 1: a leaf was found that has too many
                                     points and cannot be split */
};

/* --- the skeleton ----------------------------------------------------------
 */

static oj_status make_coarse_tree_of_sample(struct build *b,
                                            struct oj_error *err)
{
    struct live_split coarse = b->split;
    struct live_leaf whole = {
        0, SAMPLE, {-INFINITY, -INFINITY, INFINITY, INFINITY}, LIVE_NONE, 0};
    struct live_point *sample;
    oj_status status;
    OJ_NEW(sample, 2 * SAMPLE, err);
    for (int64_t i = 0; i < SAMPLE; i++)
        sample[i] = b->point[i * (b->n / SAMPLE)];
    coarse.leaf_points = SAMPLE_OF_LEAF;
    coarse.keeps_empty = 1;
    status = live_split_points(&coarse, sample, sample + SAMPLE, &whole,
                               &b->skeleton, err);
    oj_free(sample);
    return status;
}

static oj_status map_children_to_leaves(struct build *b, struct oj_error *err)
{
    const struct live_subtree *s = &b->skeleton;
    OJ_NEW_ZEROED(b->leaf_of, 4 * s->n_nodes + 1, err);
    for (int64_t i = 0; i < s->n_leaves; i++)
    {
        if (s->leaf[i].parent != LIVE_NONE)
            b->leaf_of[s->leaf[i].parent] = (int32_t)i;
    }
    return OJ_OK;
}

/* --- points to cells -------------------------------------------------------
 */

static int32_t find_coarse_leaf(const struct build *b,
                                const struct live_point *p)
{
    const struct live_node *node = b->skeleton.node;
    int32_t at = 0;
    for (;;)
    {
        int c = live_node_child(&node[at], p->x, p->y);
        if (node[at].child[c] < 0)
            return b->leaf_of[4 * at + c];
        at = node[at].child[c];
    }
}

static int64_t slice_begin(const struct build *b, int64_t slice)
{
    return oj_order_slice_begin(b->n, b->n_slices, slice);
}

static void count_points_of_slice(int64_t slice, int thread, void *user)
{
    struct build *b = user;
    int64_t *count = b->start + slice * b->skeleton.n_leaves;
    int64_t end = slice_begin(b, slice + 1);
    (void)thread;
    for (int64_t i = slice_begin(b, slice); i < end; i++)
    {
        int32_t cell = find_coarse_leaf(b, &b->point[i]);
        b->cell_of[i] = (uint16_t)cell;
        count[cell]++;
    }
}

static void distribute_slice_to_leaves(int64_t slice, int thread, void *user)
{
    struct build *b = user;
    int64_t *next = b->start + slice * b->skeleton.n_leaves;
    int64_t end = slice_begin(b, slice + 1);
    (void)thread;
    for (int64_t i = slice_begin(b, slice); i < end; i++)
        b->scratch[next[b->cell_of[i]]++] = b->point[i];
}

static oj_status distribute_points_to_leaves(struct build *b,
                                             struct oj_error *err)
{
    struct live_point *dealt = b->scratch;
    int64_t n_leaves = b->skeleton.n_leaves;
    b->n_slices = b->n_threads;
    OJ_NEW(b->cell_of, b->n, err);
    OJ_NEW_ZEROED(b->start, b->n_slices * n_leaves, err);
    OJ_NEW(b->offset, n_leaves + 1, err);
    oj_parallel_for(b->n_threads, b->n_slices, count_points_of_slice, b);
    oj_order_counts_to_positions(b->n_slices, n_leaves, b->start, b->offset);
    oj_parallel_for(b->n_threads, b->n_slices, distribute_slice_to_leaves, b);
    b->scratch = b->point;
    b->point = dealt;
    return OJ_OK;
}

/* --- cells to subtrees -----------------------------------------------------
 */

/* Returns 1 if a leaf has more points than a page. */
static int has_crowded_leaf(const struct live_subtree *s)
{
    for (int64_t i = 0; i < s->n_leaves; i++)
    {
        if (s->leaf[i].n > LIVE_PAGE_POINTS)
            return 1;
    }
    return 0;
}

static oj_status split_coarse_leaf(int64_t i, int thread, void *user,
                                   struct oj_error *err)
{
    struct build *b = user;
    struct live_leaf whole = b->skeleton.leaf[i];
    (void)thread;
    whole.first = b->offset[i];
    whole.n = b->offset[i + 1] - whole.first;
    whole.parent = LIVE_NONE;
    if (whole.n == 0 || atomic_load(&b->has_reached_depth))
        return OJ_OK;
    OJ_TRY(live_split_points(&b->split, b->point, b->scratch, &whole,
                             &b->part[i], err));
    if (b->stops_at_depth && has_crowded_leaf(&b->part[i]))
        atomic_store(&b->has_reached_depth, 1);
    return OJ_OK;
}

/* Appends the subtree of a leaf of the skeleton. */
static void append_subtree(const struct live_subtree *part, uint32_t parent,
                           struct live_subtree *all)
{
    int64_t first = all->n_nodes;
    for (int64_t i = 0; i < part->n_nodes; i++)
    {
        struct live_node node = part->node[i];
        node.parent = node.parent == LIVE_NONE
                          ? parent
                          : node.parent + 4 * (uint32_t)first;
        for (int c = 0; c < 4; c++)
            node.child[c] += node.child[c] >= 0 ? (int32_t)first : 0;
        all->node[all->n_nodes++] = node;
    }
    if (part->n_nodes > 0)
        all->node[parent / 4].child[parent % 4] = (int32_t)first;
    for (int64_t i = 0; i < part->n_leaves; i++)
    {
        struct live_leaf leaf = part->leaf[i];
        leaf.parent = leaf.parent == LIVE_NONE
                          ? parent
                          : leaf.parent + 4 * (uint32_t)first;
        all->leaf[all->n_leaves++] = leaf;
    }
}

static oj_status append_subtrees_to_coarse_tree(struct build *b,
                                                struct live_subtree *all,
                                                struct oj_error *err)
{
    const struct live_subtree *s = &b->skeleton;
    int64_t n_nodes = s->n_nodes, n_leaves = 0;
    for (int64_t i = 0; i < s->n_leaves; i++)
    {
        n_nodes += b->part[i].n_nodes;
        n_leaves += b->part[i].n_leaves;
    }
    OJ_ROOM(all->node, 0, n_nodes, all->cap_nodes, err);
    OJ_ROOM(all->leaf, 0, n_leaves, all->cap_leaves, err);
    memcpy(all->node, s->node, (size_t)s->n_nodes * sizeof *s->node);
    all->n_nodes = s->n_nodes;
    for (int64_t i = 0; i < s->n_leaves; i++)
        append_subtree(&b->part[i], s->leaf[i].parent, all);
    return OJ_OK;
}

static oj_status split_by_coarse_tree(struct build *b, struct live_subtree *all,
                                      struct oj_error *err)
{
    OJ_TRY(map_children_to_leaves(b, err));
    OJ_TRY(distribute_points_to_leaves(b, err));
    OJ_NEW_ZEROED(b->part, b->skeleton.n_leaves, err);
    OJ_TRY(oj_parallel_try(b->n_threads, b->skeleton.n_leaves, 1,
                           split_coarse_leaf, b, err));
    if (atomic_load(&b->has_reached_depth))
        return OJ_OK;
    return append_subtrees_to_coarse_tree(b, all, err);
}

static void free_build(struct build *b)
{
    for (int64_t i = 0; b->part != NULL && i < b->skeleton.n_leaves; i++)
        live_subtree_free(&b->part[i]);
    oj_free(b->part);
    oj_free(b->cell_of);
    oj_free(b->leaf_of);
    oj_free(b->start);
    oj_free(b->offset);
    live_subtree_free(&b->skeleton);
}

/* Splits all points into *all. Afterwards b->point holds the points in the
 * order of the leaves. If b->has_reached_depth is set, *all is incomplete. */
static oj_status split_all_points(struct build *b, struct live_subtree *all,
                                  struct oj_error *err)
{
    struct live_leaf whole = {
        0, b->n, {-INFINITY, -INFINITY, INFINITY, INFINITY}, LIVE_NONE, 0};
    if (b->n >= LEAST_FOR_SKELETON)
    {
        OJ_TRY(make_coarse_tree_of_sample(b, err));
        if (b->skeleton.n_nodes > 0 && b->skeleton.n_leaves <= UINT16_MAX)
            return split_by_coarse_tree(b, all, err);
    }
    if (b->n == 0)
        return OJ_OK;
    return live_split_points(&b->split, b->point, b->scratch, &whole, all, err);
}

/* --- which tree ------------------------------------------------------------
 */

/* Minimum average fill of the pages of a quadtree; below it the k-d tree is
 * used. Uniform points fill pages to 0.4 to 0.7. */
#define LEAST_FILL 0.3

static int64_t count_pages_of_subtree(const struct live_subtree *s)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_leaves; i++)
        n += live_count_pages_of_leaf(s->leaf[i].n);
    return n;
}

/* Returns why a quadtree does not suit these points, as text for
 * oj_live_explain_tree_choice(). Returns NULL if it suits them. */
static const char *find_fault_of_quadtree(const struct build *b,
                                          const struct live_subtree *s)
{
    if (atomic_load(&b->has_reached_depth) || has_crowded_leaf(s))
        return "the quadtree would reach its depth";
    if (b->n > 16 * LIVE_PAGE_POINTS &&
        (double)b->n < LEAST_FILL * LIVE_PAGE_POINTS * (double)s->n_leaves)
        return "the quadtree's pages would be badly filled";
    return NULL;
}

static void write_reason_for_tree(struct oj_live *live, const struct build *b,
                                  const struct live_subtree *s,
                                  const char *fault)
{
    double room = (double)count_pages_of_subtree(s) * LIVE_PAGE_POINTS;
    snprintf(live->reason, sizeof live->reason,
             "%s: %s; %lld points fill %.0f %% of the pages",
             b->split.rule->name,
             live->tree != OJ_LIVE_AUTO ? "as asked"
             : fault != NULL            ? fault
                                        : "its pages are well filled",
             (long long)b->n, b->n > 0 ? 100.0 * (double)b->n / room : 0.0);
}

/* Splits all points by the chosen tree. With tree auto, a k-d tree replaces a
 * quadtree that does not suit the points; *fault is then the reason. */
static oj_status choose_tree_and_split(struct oj_live *live, struct build *b,
                                       struct live_subtree *all,
                                       const char **fault, struct oj_error *err)
{
    *fault = NULL;
    b->stops_at_depth = live->tree == OJ_LIVE_AUTO;
    if (live->tree == OJ_LIVE_AUTO)
        b->split.rule = live_split_rule_at(LIVE_QUADTREE);
    OJ_TRY(split_all_points(b, all, err));
    if (live->tree != OJ_LIVE_AUTO)
        return OJ_OK;
    *fault = find_fault_of_quadtree(b, all);
    if (*fault == NULL)
        return OJ_OK;
    live_subtree_free(all);
    free_build(b);
    *b = (struct build){.split = b->split,
                        .n_threads = b->n_threads,
                        .n = b->n,
                        .point = b->point,
                        .scratch = b->scratch};
    b->split.rule = live_split_rule_at(LIVE_KDTREE);
    return split_all_points(b, all, err);
}

/* --- pages -----------------------------------------------------------------
 */

struct filling
{
    struct oj_live *live;
    struct live_state *state;
    const struct live_subtree *subtree;
    const struct live_point *point;
    const uint32_t *page; /* [leaves] first page of each leaf */
};

/* Distance in points between the prefetch of an entry and its use. */
#define AHEAD 16

static void prefetch_entry_of_point(const struct live_ids *ids,
                                    const struct live_point *p)
{
    if (p->entry >= 0)
        __builtin_prefetch(&ids->entry[p->entry], 1);
    else
        live_ids_prefetch(ids, p->id);
}

static void fill_page_with_points(struct live_ids *ids, struct live_page *page,
                                  uint32_t number, int64_t n,
                                  const struct live_point *point)
{
    for (int64_t i = 0; i < n && i < AHEAD; i++)
        prefetch_entry_of_point(ids, &point[i]);
    for (int64_t i = 0; i < n; i++)
    {
        const struct live_point *p = &point[i];
        struct live_entry *entry;
        if (i + AHEAD < n)
            prefetch_entry_of_point(ids, &point[i + AHEAD]);
        entry =
            &ids->entry[p->entry >= 0 ? p->entry : live_ids_find(ids, p->id)];
        live_entry_set_page_and_slot(
            entry, number, live_page_add_point(page, p->x, p->y, p->id));
    }
}

void live_fill_leaf(struct oj_live *live, struct live_state *state,
                    const struct live_leaf *leaf,
                    const struct live_point *point, uint32_t page)
{
    for (int64_t at = 0; at < leaf->n; at += LIVE_PAGE_POINTS)
    {
        int64_t n = leaf->n - at;
        fill_page_with_points(&live->ids, &state->page[page], page,
                              n < LIVE_PAGE_POINTS ? n : LIVE_PAGE_POINTS,
                              point + leaf->first + at);
        page = state->page[page].next;
    }
}

static void fill_leaves(int64_t first, int64_t end, void *user)
{
    const struct filling *f = user;
    for (int64_t i = first; i < end; i++)
        live_fill_leaf(f->live, f->state, &f->subtree->leaf[i], f->point,
                       f->page[i]);
}

/* Makes the pages of a leaf, as a chain that is a child of parent. Returns the
 * first page. */
static uint32_t make_pages_of_leaf(struct oj_live *live,
                                   struct live_state *state,
                                   const struct live_leaf *leaf,
                                   uint32_t parent)
{
    uint32_t first = LIVE_NONE;
    for (int64_t i = live_count_pages_of_leaf(leaf->n); i > 0; i--)
    {
        uint32_t page =
            live_state_new_page(state, live_blocks_take(&live->blocks),
                                &leaf->cell, parent, leaf->depth);
        state->page[page].next = first;
        first = page;
    }
    live_state_set_child(state, parent, live_child_of_page(first));
    return first;
}

static void make_nodes(struct live_state *state,
                       const struct live_subtree *subtree, uint32_t parent,
                       int32_t *node_of)
{
    for (int64_t i = 0; i < subtree->n_nodes; i++)
        node_of[i] = live_state_new_node(state);
    for (int64_t i = 0; i < subtree->n_nodes; i++)
    {
        struct live_node *node = &state->node[node_of[i]];
        *node = subtree->node[i];
        node->cover = node->cell;
        for (int c = 0; c < 4; c++)
        {
            if (node->child[c] >= 0)
                node->child[c] = node_of[node->child[c]];
        }
        if (node->parent == LIVE_NONE)
            node->parent = parent;
        else
            node->parent =
                4 * (uint32_t)node_of[node->parent / 4] + node->parent % 4;
        live_state_extend_covers(state, node->parent, &node->cell);
    }
    if (subtree->n_nodes > 0)
        live_state_set_child(state, parent, node_of[0]);
}

/* Returns the parent, in the state, of a leaf of the subtree. */
static uint32_t parent_of_leaf(const struct live_leaf *leaf, uint32_t parent,
                               const int32_t *node_of)
{
    return leaf->parent == LIVE_NONE
               ? parent
               : 4 * (uint32_t)node_of[leaf->parent / 4] + leaf->parent % 4;
}

void live_add_subtree_to_state(struct oj_live *live, struct live_state *state,
                               const struct live_subtree *subtree,
                               uint32_t parent, int32_t *node_of,
                               uint32_t *page)
{
    make_nodes(state, subtree, parent, node_of);
    for (int64_t i = 0; i < subtree->n_leaves; i++)
    {
        const struct live_leaf *leaf = &subtree->leaf[i];
        page[i] = make_pages_of_leaf(live, state, leaf,
                                     parent_of_leaf(leaf, parent, node_of));
    }
}

/* --- a whole state -------------------------------------------------------- */

/* Leaves per task of a thread. */
#define LEAVES_AT_ONCE 64

/* Makes the nodes and pages of the new state, and fills the pages on all
 * threads. The threads write different entries of ids, because each point has
 * an entry of its own. */
static void fill_state(struct oj_live *live, struct live_state *state,
                       const struct live_subtree *all,
                       const struct live_point *point, int32_t *node_of,
                       uint32_t *page)
{
    struct filling f = {live, state, all, point, page};
    live_add_subtree_to_state(live, state, all, LIVE_NONE, node_of, page);
    oj_parallel_slices(live->n_threads, all->n_leaves, LEAVES_AT_ONCE,
                       fill_leaves, &f);
}

/* Returns the number of blocks of the current state that no reader uses. */
static int64_t count_blocks_without_readers(const struct oj_live *live)
{
    const struct live_state *state = live->state;
    int64_t n = 0;
    for (int64_t i = 0; i < state->n_pages; i++)
        n += state->page[i].block != NULL &&
             state->page[i].birth > live->newest_read;
    return n;
}

static void drop_blocks_of_state(struct oj_live *live)
{
    const struct live_state *state = live->state;
    for (int64_t i = 0; i < state->n_pages; i++)
    {
        if (state->page[i].block != NULL)
            live_drop_block(live, &state->page[i]);
    }
}

static oj_status build_state(struct oj_live *live, struct build *b,
                             struct live_subtree *all, struct live_state **out,
                             struct oj_error *err)
{
    struct live_state *state = NULL;
    int32_t *node_of = NULL;
    uint32_t *page = NULL;
    const char *fault;
    int64_t n_pages;
    oj_status status = choose_tree_and_split(live, b, all, &fault, err);
    OJ_TRY(status);
    n_pages = count_pages_of_subtree(all);
    status = live_state_new(&state, err);
    if (status == OJ_OK)
        status = live_state_reserve_pages(state, n_pages, err);
    if (status == OJ_OK)
        status = live_state_reserve_nodes(state, all->n_nodes, err);
    if (status == OJ_OK)
        status = live_blocks_reserve(
            &live->blocks, n_pages - count_blocks_without_readers(live), err);
    node_of = oj_malloc(all->n_nodes, sizeof *node_of);
    page = oj_malloc(all->n_leaves, sizeof *page);
    if (status == OJ_OK && (node_of == NULL || page == NULL))
        status = oj_fail_nomem(err, all->n_leaves, sizeof *page);
    if (status == OJ_OK)
    {
        state->number = live->state->number + 1;
        state->edition = live->state->edition + 1;
        state->n_points = b->n;
        write_reason_for_tree(live, b, all, fault);
        live->rule = b->split.rule;
        live->frame = b->split.frame;
        drop_blocks_of_state(live);
        fill_state(live, state, all, b->point, node_of, page);
        *out = state;
    }
    else
        live_state_free(state);
    oj_free(node_of);
    oj_free(page);
    return status;
}

/* Points per task of a thread. */
#define POINTS_AT_ONCE 65536

struct framing
{
    const struct live_point *point;
    struct oj_box box;
};

static void add_points_to_frame(int64_t first, int64_t end, void *user)
{
    struct framing *f = user;
    struct oj_box box = oj_box_empty();
    for (int64_t i = first; i < end; i++)
        oj_box_add_point(&box, f->point[i].x, f->point[i].y);
    live_box_extend(&f->box, &box);
}

/* Returns the square around all points. */
static struct oj_box square_around_points(int n_threads, int64_t n,
                                          const struct live_point *point)
{
    struct framing f = {point, oj_box_empty()};
    struct oj_box box;
    double side;
    oj_parallel_slices(n_threads, n, POINTS_AT_ONCE, add_points_to_frame, &f);
    box = f.box;
    side = oj_larger(box.x1 - box.x0, box.y1 - box.y0);
    if (n > 0 && side < INFINITY)
    {
        box.x1 = oj_larger(box.x1, box.x0 + side);
        box.y1 = oj_larger(box.y1, box.y0 + side);
    }
    return box;
}

oj_status live_rebuild(struct oj_live *live, int64_t n,
                       struct live_point *point, struct live_point *scratch,
                       struct oj_error *err)
{
    struct build b = {.n_threads = live->n_threads,
                      .n = n,
                      .point = point,
                      .scratch = scratch};
    struct live_subtree all = {0};
    struct live_state *state = NULL;
    oj_status status;
    b.split = (struct live_split){
        live->rule, square_around_points(live->n_threads, n, point),
        LIVE_PAGE_POINTS, 0};
    status = build_state(live, &b, &all, &state, err);
    free_build(&b);
    live_subtree_free(&all);
    OJ_TRY(status);
    live_publish_state(live, state);
    return OJ_OK;
}
