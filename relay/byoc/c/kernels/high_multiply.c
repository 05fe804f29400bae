/* (a * b + 2^30) >> 31, saturated: gemmlowp's SaturatingRoundingDoublingHighMul. */
static inline int32_t relay_high_multiply(int32_t a, int32_t b)
{
    const int64_t product = ((int64_t)a * b + ((int64_t)1 << 30)) >> 31;
    return product > INT32_MAX ? INT32_MAX : (int32_t)product;
}
