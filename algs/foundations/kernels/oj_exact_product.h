/** Exact products of two doubles, and the exact sign of a sum of them, without
 *  rounding, overflow or underflow: for all finite doubles, subnormal ones
 *  included.
 *
 *      a * b = sign * m * 2^exponent,   m = high * 2^64 + low,   m < 2^106
 *
 *  Source: ours. */
#ifndef OJ_EXACT_PRODUCT_H
#define OJ_EXACT_PRODUCT_H

#include "oj_sum_limbs.h"

#include <string.h>

/** The exact product of two doubles: sign * (high * 2^64 + low) * 2^exponent.
 * */
struct oj_exact_product
{
    uint64_t high, low;
    int32_t exponent, sign; /**< sign is -1, 0 or 1 */
};

/** Computes a * b exactly. a and b must be finite. */
OJ_FN struct oj_exact_product oj_exact_product_of(double a, double b)
{
    struct oj_exact_product p;
    uint64_t bits_a, bits_b, of_a, of_b, middle, low;
    int exponent_a, exponent_b;
    memcpy(&bits_a, &a, sizeof bits_a);
    memcpy(&bits_b, &b, sizeof bits_b);
    oj_limbs_split_double(bits_a, &of_a, &exponent_a);
    oj_limbs_split_double(bits_b, &of_b, &exponent_b);
    /* Each product has at most 53 bits (32 + 21), their sum at most 54. */
    middle = (of_a >> 32) * (of_b & 0xffffffffu) +
             (of_a & 0xffffffffu) * (of_b >> 32);
    low = (of_a & 0xffffffffu) * (of_b & 0xffffffffu);
    p.low = low + (middle << 32);
    p.high = (of_a >> 32) * (of_b >> 32) + (middle >> 32) + (p.low < low);
    p.exponent = exponent_a + exponent_b;
    p.sign = (bits_a ^ bits_b) >> 63 != 0 ? -1 : 1;
    if (of_a == 0 || of_b == 0)
        p.sign = 0;
    return p;
}

/* A 128-bit integer in two's complement, in units of 2^exponent. */
struct oj_exact_product_sum
{
    uint64_t high, low;
    int32_t exponent;
};

/* Converts the sum to units of 2^exponent, which must be smaller than its
 * present units. Returns 0 and leaves the sum unchanged if its magnitude would
 * be 2^110 units or more. */
OJ_FN int oj_exact_product_sum_lower_exponent(struct oj_exact_product_sum *sum,
                                              int exponent)
{
    int by = sum->exponent - exponent, most = 110 - by;
    uint64_t high = sum->high, low = sum->low;
    if (high >> 63 != 0) /* replace a negative sum by its magnitude */
    {
        low = ~low + 1;
        high = ~high + (low == 0);
    }
    if ((high | low) == 0)
        by = 0;
    else if (most <= 0 || (most >= 64 ? high >> (most - 64) != 0
                                      : (high != 0 || low >> most != 0)))
        return 0;
    if (by >= 64)
    {
        sum->high = sum->low << (by - 64);
        sum->low = 0;
    }
    else if (by > 0)
    {
        sum->high = sum->high << by | sum->low >> (64 - by);
        sum->low <<= by;
    }
    sum->exponent = exponent;
    return 1;
}

/** Adds a product, whose exponent must equal the sum's. */
OJ_FN void oj_exact_product_sum_add(struct oj_exact_product_sum *sum,
                                    const struct oj_exact_product *p)
{
    uint64_t before = sum->low;
    if (p->sign > 0)
    {
        sum->low += p->low;
        sum->high += p->high + (sum->low < before);
    }
    else if (p->sign < 0)
    {
        sum->low -= p->low;
        sum->high -= p->high + (sum->low > before);
    }
}

/** Returns the sign (-1, 0, 1) of the sum of n products, n <= 8. Sorts the
 * array by descending exponent and adds the products in this order. When the
 * partial sum is at least 2^110 units of the next exponent, it exceeds all
 * remaining products together (below 8 * 2^106 units), so its sign is the
 * result. A smaller partial sum fits into 128 bits together with them. */
OJ_FN int oj_exact_product_sum_sign(struct oj_exact_product *product, int n)
{
    struct oj_exact_product_sum sum = {0, 0, 0};
    int i, j;
    for (i = 1; i < n; i++)
    {
        struct oj_exact_product p = product[i];
        for (j = i; j > 0 && product[j - 1].exponent < p.exponent; j--)
            product[j] = product[j - 1];
        product[j] = p;
    }
    for (i = 0; i < n; i++)
    {
        if (!oj_exact_product_sum_lower_exponent(&sum, product[i].exponent))
            break;
        oj_exact_product_sum_add(&sum, &product[i]);
    }
    if (sum.high >> 63 != 0)
        return -1;
    return (sum.high | sum.low) != 0;
}

/** Returns 1 if a * b == c * d. */
OJ_FN int oj_exact_products_equal(double a, double b, double c, double d)
{
    struct oj_exact_product both[2];
    both[0] = oj_exact_product_of(a, b);
    both[1] = oj_exact_product_of(-c, d);
    return oj_exact_product_sum_sign(both, 2) == 0;
}

#endif
