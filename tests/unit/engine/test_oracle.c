/* Compares the answers of the test suites of GEOS and JTS with the exact
 * reference, and with all backends in both orders of arguments: 561 pairs of
 * geometries, 5,159 questions. Needs oracle_cases.csv and oracle_tests.csv.
 * Kind: unit, degenerate. */
#include "../../../algs/api/engine/oj_join.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SKIPPED 77

static struct oj_error error;

/* 1 if GEOS has the version of the column geos3111 */
static int is_geos_311;

static void must(oj_status status)
{
    if (status == OJ_OK)
        return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

#include "../exact_truth.h"
#include "../oracle_table.h"
#include "../wkt_shapes.h"

/* --- exceptions ----------------------------------------------------------- */

/* Expected differences from the suites, with their reasons. An exception holds
 * for every backend and both orders. With GEOS 3.11 each exception must
 * occur. */

/* GEOS 3.11 does not define relate of collections whose members touch or
 * overlap: it raises an error, or treats shared borders as boundaries. The
 * patterns expected here are those of GEOS since 3.13. */
#define COLLECTION "relate of collections before GEOS 3.13"

/* The crossing of the lines is rounded. The rounded point is not on the
 * node. */
#define NODE "GEOS before 3.13 misses a node"

/* Two polygons of a multipolygon share an edge, which is invalid. */
#define COMMON_EDGE "an invalid multipolygon, for relate before GEOS 3.13"

/* The suite means decimal fractions. For the nearest doubles the answer
 * differs, in GEOS too. */
#define DECIMALS "meant for decimal fractions"

/* A point and a line of length 0 at this point. GEOS's copy of the suite says
 * that they are equal. */
#define POINT_LINE "the suites contradict each other"

static const struct oracle_exception
{
    const char *case_id, *op, *reason;
    /* 1: exact arithmetic agrees with the suite, and only GEOS differs */
    int is_of_geos;
} exceptions_list[] = {
    {"geos/general/TestRelateGC.xml#3", "relate", COLLECTION, 1},
    {"geos/general/TestRelateGC.xml#4", "relate", COLLECTION, 1},
    {"geos/general/TestRelateGC.xml#26", "relate", COLLECTION, 1},
    {"geos/general/TestRelateGC.xml#27", "relate", COLLECTION, 1},
    {"geos/general/TestRelateLL.xml#21", "relate", NODE, 1},
    {"geos/general/TestRelateLL.xml#22", "relate", NODE, 1},
    {"geos/misc/InvalidRelates.xml#2", "relate", COMMON_EDGE, 0},
    {"geos/failure/robust-TestRobustRelateFloat.xml#0", "contains", DECIMALS,
     0},
    {"jts/validate/TestRelatePL.xml#1", "equalstopo", POINT_LINE, 0},
};
#define N_EXCEPTIONS ((int)(sizeof exceptions_list / sizeof *exceptions_list))
static int n_needed[N_EXCEPTIONS];

static int is_exception(const char *case_id, const char *op, int exactly)
{
    for (int i = 0; i < N_EXCEPTIONS; i++)
    {
        const struct oracle_exception *e = &exceptions_list[i];
        if (strcmp(e->case_id, case_id) == 0 && strcmp(e->op, op) == 0 &&
            !(exactly && e->is_of_geos))
        {
            n_needed[i]++;
            return 1;
        }
    }
    return 0;
}

/* --- asking --------------------------------------------------------------- */

/* A question: does op hold between a and b? */
struct oracle_case
{
    const char *case_id, *op;
    struct oj_relation relation;
    struct oj_flat a, b;
    int is_empty;     /* 1: one of the geometries is empty */
    int has_empty;    /* 1: one of the geometries has an empty member */
    int raises;       /* 1: GEOS raises an error */
    int expected;     /* answer of the suites; 1: a pair */
    int geos_answer;  /* answer of GEOS 3.11 */
    double distance;  /* NaN: any */
    const char *text; /* text of the expected answer */
};

enum oracle_answer
{
    NO_PAIR = 0,
    PAIR = 1,
    UNDECIDED = 2
};

static enum oracle_answer join_two_features(const char *backend,
                                            const struct oj_relation *relation,
                                            const struct oj_flat *input,
                                            const struct oj_flat *join_side,
                                            double *distance)
{
    struct oj_options options;
    struct oj_matches matches;
    struct oj_join *join;
    enum oracle_answer answer;
    memset(&options, 0, sizeof options);
    memset(&matches, 0, sizeof matches);
    options.n_threads = 1;
    must(oj_join_open(join_side, relation, backend, &options, &join, &error));
    must(oj_join_batch(join, input, &matches, &error));
    answer = matches.n_pairs > 0 ? PAIR : NO_PAIR;
    *distance = matches.n_pairs > 0 ? matches.measure[0] : NAN;
    if (matches.n_undecided > 0 || oj_join_stats(join)->n_undecided_pairs > 0)
        answer = UNDECIDED;
    oj_matches_free(&matches);
    oj_join_close(join);
    return answer;
}

static struct
{
    int n_asked, n_equal, n_raised, n_answered, n_empty, n_empty_members;
    int n_exceptions, n_wrong;
} counts;

static const char *name_of(enum oracle_answer answer)
{
    static const char *const names[] = {"no pair", "pair", "undecided"};
    return names[answer];
}

/* Returns 1 if an answer is right. Our backends must answer as the suite
 * expects. A reference may instead answer as GEOS does. */
static int is_right(const struct oracle_case *q, int is_ours,
                    enum oracle_answer answer, double distance)
{
    if (q->is_empty)
    {
        counts.n_empty++;
        return answer == NO_PAIR;
    }
    if (q->raises && answer == UNDECIDED)
    {
        counts.n_raised++;
        return 1;
    }
    if (((int)answer != q->expected &&
         (is_ours || (int)answer != q->geos_answer)) ||
        (!isnan(q->distance) && distance != q->distance))
        return 0;
    if (q->raises)
        counts.n_answered++;
    else
        counts.n_equal++;
    return 1;
}

static void compare_answer(const struct oracle_case *q, const char *backend,
                           int transposed)
{
    struct oj_relation relation = q->relation;
    double distance;
    enum oracle_answer answer;
    if (transposed)
        relation = oj_relation_transpose(&q->relation);
    answer = join_two_features(backend, &relation, transposed ? &q->b : &q->a,
                               transposed ? &q->a : &q->b, &distance);
    counts.n_asked++;
    if (is_right(q, strcmp(backend, "cpu") == 0, answer, distance))
        return;
    if (q->has_empty && answer != UNDECIDED)
    {
        double other;
        counts.n_empty_members++;
        if (join_two_features("geos", &q->relation, &q->a, &q->b, &other) ==
            answer)
            return;
    }
    if (is_exception(q->case_id, q->op, 0))
    {
        counts.n_exceptions++;
        return;
    }
    counts.n_wrong++;
    fprintf(stderr, "%s: %s on %s%s: %s, distance %g; expected %s%s\n",
            q->case_id, q->op, backend, transposed ? ", sides exchanged" : "",
            name_of(answer), distance, q->text,
            q->raises ? " (GEOS raises)" : "");
}

static void make_relation(struct oracle_case *q, const char *argument)
{
    q->relation = oj_relation_default();
    q->distance = NAN;
    if (strcmp(q->op, "equalstopo") == 0)
        q->relation.op = OJ_OP_EQUALS;
    else if (strcmp(q->op, "distance") == 0)
    {
        q->relation.op = OJ_OP_NEAREST;
        q->distance = strtod(q->text, NULL);
    }
    else if (strcmp(q->op, "iswithindistance") == 0)
    {
        q->relation.op = OJ_OP_DWITHIN;
        q->relation.max_distance = strtod(argument, NULL);
    }
    else
        q->relation.op = (enum oj_op)oj_op_find(q->op);
    if (q->relation.op == OJ_OP_RELATE)
        snprintf(q->relation.mask, sizeof q->relation.mask, "%s", argument);
}

static int is_beyond(const struct oracle_case *q, double limit)
{
    return exact_order(&q->a, 0, &q->b, 0, OJ_TO_INTERIOR, limit) > 0;
}

/* Compares the exact reference with the suite. The suite's distances are
 * rounded. both_empty 1: both geometries are empty. */
static void compare_exact(const struct oracle_case *q, int both_empty)
{
    struct oj_matrix matrix = exact_matrix(&q->a, 0, &q->b, 0);
    const double d = q->distance;
    int is_right;
    if (q->relation.op == OJ_OP_NEAREST)
        is_right = q->is_empty || (!is_beyond(q, d * (1 + 1e-12)) &&
                                   (d == 0.0 || is_beyond(q, d * (1 - 1e-12))));
    else if (q->relation.op == OJ_OP_DWITHIN)
        is_right = q->is_empty ||
                   is_beyond(q, q->relation.max_distance) != q->expected;
    else /* two empty geometries are equal in the suites, but not a pair of a
            join */
        is_right =
            (q->relation.op == OJ_OP_EQUALS && both_empty) ||
            oj_matrix_satisfies_relation(&matrix, &q->relation) == q->expected;
    counts.n_asked++;
    if (is_right)
        counts.n_equal++;
    else if (is_exception(q->case_id, q->op, 1))
        counts.n_exceptions++;
    else
    {
        counts.n_wrong++;
        fprintf(stderr, "%s: %s, exactly: %s; expected %s\n", q->case_id, q->op,
                matrix.at, q->text);
    }
}

static void compare_all_backends(const struct oracle_table *cases,
                                 const struct oracle_table *tests, int row)
{
    static const char *const backends[] = {"cpu", "geos", "spatialindex"};
    int at = find_case(cases, get(tests, row, "case_id"));
    int exchanged = strcasecmp(get(tests, row, "arg1"), "B") == 0;
    const char *text_of_geos = get(tests, row, "geos3111");
    const char *wkt_a = get(cases, at, exchanged ? "b_wkt" : "a_wkt");
    const char *wkt_b = get(cases, at, exchanged ? "a_wkt" : "b_wkt");
    struct oj_flat_buf a, b;
    struct oracle_case q;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    memset(&q, 0, sizeof q);
    add_shape(&a, wkt_a);
    add_shape(&b, wkt_b);
    q.case_id = get(tests, row, "case_id");
    q.op = get(tests, row, "op");
    q.a = oj_flat_buf_view(&a);
    q.b = oj_flat_buf_view(&b);
    q.is_empty = a.counts.n_empty + b.counts.n_empty > 0;
    q.has_empty = strstr(wkt_a, "EMPTY") || strstr(wkt_b, "EMPTY");
    q.raises = strcmp(text_of_geos, "error") == 0;
    q.text = q.raises || text_of_geos[0] == '\0' ? get(tests, row, "expected")
                                                 : text_of_geos;
    q.geos_answer = strcmp(q.text, "true") == 0;
    q.expected = strcmp(get(tests, row, "expected"), "true") == 0;
    make_relation(&q, get(tests, row, "arg3"));
    if (q.relation.op == OJ_OP_NEAREST)
        q.expected = q.geos_answer = 1;
    compare_exact(&q, a.counts.n_empty + b.counts.n_empty == 2);
    for (int i = 0; i < 3; i++)
    {
        compare_answer(&q, backends[i], 0);
        if (q.relation.op != OJ_OP_NEAREST)
            compare_answer(&q, backends[i], 1);
        else
        {
            struct oracle_case other = q;
            other.a = q.b;
            other.b = q.a;
            compare_answer(&other, backends[i], 0);
        }
    }
    oj_flat_buf_free(&a);
    oj_flat_buf_free(&b);
}

int main(void)
{
    struct oracle_table cases, tests;
    if (!read_table("oracle_cases.csv", &cases) ||
        !read_table("oracle_tests.csv", &tests))
    {
        printf("skipped: 2 files, 5159 questions\n");
        return SKIPPED;
    }
    wkt_open();
    is_geos_311 = strncmp(GEOSversion(), "3.11.", 5) == 0;
    for (int row = 1; row < tests.n_rows; row++)
        compare_all_backends(&cases, &tests, row);
    for (int i = 0; i < N_EXCEPTIONS; i++)
    {
        if (n_needed[i] > 0 || !is_geos_311)
            continue;
        counts.n_wrong++;
        fprintf(stderr, "not an exception any more: %s, %s (%s)\n",
                exceptions_list[i].case_id, exceptions_list[i].op,
                exceptions_list[i].reason);
    }
    printf(
        "%d pairs of geometries, %d questions, %d times asked: %d answers "
        "equal GEOS's; where GEOS raises %d are undecided and %d right; "
        "%d about empty geometries, %d about empty members; %d exceptions (%d "
        "questions); %d wrong\n",
        cases.n_rows - 1, tests.n_rows - 1, counts.n_asked, counts.n_equal,
        counts.n_raised, counts.n_answered, counts.n_empty,
        counts.n_empty_members, counts.n_exceptions, N_EXCEPTIONS,
        counts.n_wrong);
    wkt_close();
    free_table(&cases);
    free_table(&tests);
    return counts.n_wrong > 0;
}
