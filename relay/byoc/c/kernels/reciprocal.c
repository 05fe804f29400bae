// uses: wrap32 high_multiply
/* x * 4, saturated to 32 bits. */
static inline int32_t relay_times_four(int32_t x)
{
    const int64_t product = (int64_t)x * 4;
    return product > INT32_MAX ? INT32_MAX : product < INT32_MIN ? INT32_MIN : (int32_t)product;
}

/* 1 / (1 + a) in Q0.31 for a in [0, 1]: three steps of Newton and Raphson from 48/17 - 32/17 x. Source: gemmlowp. */
static inline int32_t relay_one_over_one_plus(int32_t a)
{
    const int64_t total = (int64_t)a + INT32_MAX;
    const int32_t half_denominator = (int32_t)((total + (total >= 0 ? 1 : -1)) / 2);
    int32_t x = relay_wrap32((int64_t)1515870810 + relay_high_multiply(half_denominator, -1010580540));
    for (int i = 0; i < 3; ++i) {
        const int32_t error = relay_wrap32(((int64_t)1 << 29) - relay_high_multiply(half_denominator, x));
        x = relay_wrap32((int64_t)x + relay_times_four(relay_high_multiply(x, error)));
    }
    return x > INT32_MAX / 2 ? INT32_MAX : x < INT32_MIN / 2 ? INT32_MIN : x * 2;
}

/* The number of leading zero bits; 32 for 0. */
static inline int32_t relay_leading_zeros(int32_t x)
{
    uint32_t bits = (uint32_t)x;
    int32_t count = 0;
    if (bits == 0)
        return 32;
    for (; (bits & 0x80000000u) == 0; bits <<= 1)
        ++count;
    return count;
}

/* 1 / x ~ mantissa * 2^(headroom - 62). Source: TFLite's GetReciprocal. */
static inline int32_t relay_reciprocal(int32_t x, int32_t *headroom)
{
    *headroom = relay_leading_zeros(x);
    return relay_one_over_one_plus(relay_wrap32((int64_t)x * ((int64_t)1 << *headroom) - ((int64_t)1 << 31)));
}
