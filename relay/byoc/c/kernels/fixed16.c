// uses: rounding_right_shift
/* gemmlowp's functions of 16-bit fixed-point numbers; with i integer bits the unit is 2^(i - 15). */
static inline int32_t relay_wrap16(int32_t x)
{
    return (int16_t)(uint16_t)x;
}

static inline int32_t relay_saturate16(int32_t x)
{
    return x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x;
}

/* The product of two numbers without integer bits, halves up. */
static inline int32_t relay_multiply16(int32_t a, int32_t b)
{
    const int32_t product = (a * b + (1 << 14)) >> 15;
    return product > INT16_MAX ? INT16_MAX : product;
}

/* exp(a) for a in [-1/4, 0): the polynomial of degree 4 about -1/8. */
static inline int32_t relay_exp16_on_quarter(int32_t a)
{
    const int32_t x = relay_wrap16(a + (1 << 12));
    const int32_t x2 = relay_multiply16(x, x), x3 = relay_multiply16(x2, x), x4 = relay_multiply16(x2, x2);
    const int32_t third = relay_multiply16(relay_wrap16(relay_rounding_right_shift(x4, 2) + x3), 10923);
    const int32_t tail = relay_rounding_right_shift(relay_wrap16(third + x2), 1);
    return relay_wrap16(28918 + relay_multiply16(28918, relay_wrap16(x + tail)));
}

/* exp(a) without integer bits for a <= 0 with integer_bits of them. */
static inline int32_t relay_exp16(int32_t a, int32_t integer_bits)
{
    static const int32_t factors[] = {25520, 19875, 12055, 4435, 600, 11, 0}; /* exp(-2^k), k = -2..4 */
    const int32_t fraction_bits = 15 - integer_bits, quarter = 1 << (fraction_bits - 2);
    const int32_t rest = (a & (quarter - 1)) - quarter, remainder = rest - a;
    int32_t result = relay_exp16_on_quarter(relay_saturate16(rest * (1 << integer_bits)));
    for (int32_t k = -2; k < integer_bits && k <= 4; ++k)
        if (remainder & (1 << (fraction_bits + k)))
            result = relay_multiply16(result, factors[k + 2]);
    if (integer_bits > 5 && a < -(1 << (20 - integer_bits)))
        result = 0;
    return a == 0 ? INT16_MAX : result;
}

/* 2 / (1 + a) with two integer bits, for a in [0, 1] without. */
static inline int32_t relay_two_over_one_plus16(int32_t a)
{
    const int32_t total = a + INT16_MAX;
    const int32_t half_denominator = (total + (total >= 0 ? 1 : -1)) / 2;
    int32_t x = relay_wrap16(23130 + relay_multiply16(half_denominator, -15420));
    for (int i = 0; i < 3; ++i) {
        const int32_t error = relay_wrap16((1 << 13) - relay_multiply16(half_denominator, x));
        x = relay_wrap16(x + relay_saturate16(relay_multiply16(x, error) * 4));
    }
    return x;
}

/* 1 / (1 + exp(-a)) without integer bits. */
static inline int32_t relay_logistic16(int32_t a, int32_t integer_bits)
{
    const int32_t power = relay_exp16(a < 0 ? a : -a, integer_bits);
    const int32_t positive = relay_saturate16(relay_two_over_one_plus16(power) * 2);
    return a == 0 ? 1 << 14 : a > 0 ? positive : INT16_MAX - positive;
}

/* The hyperbolic tangent without integer bits. */
static inline int32_t relay_tanh16(int32_t a, int32_t integer_bits)
{
    const int32_t power = relay_exp16(a < 0 ? a : -a, integer_bits + 1);
    const int32_t positive = relay_saturate16(relay_wrap16(relay_two_over_one_plus16(power) - (1 << 13)) * 4);
    return a == 0 ? 0 : a > 0 ? positive : -positive;
}
