// uses: wrap32
/* x * multiplier * 2^(shift - 31), rounded once, halves away from zero. */
static inline int32_t relay_rescale_tonearest(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t amount = 31 - shift;
    const int64_t product = (int64_t)x * multiplier;
    return relay_wrap32((product + ((int64_t)1 << (amount - 1)) - (product < 0)) >> amount);
}
