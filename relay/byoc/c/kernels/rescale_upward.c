// uses: wrap32
/* x * multiplier * 2^(shift - 31), rounded once, halves up. */
static inline int32_t relay_rescale_upward(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t amount = 31 - shift;
    return relay_wrap32(((int64_t)x * multiplier + ((int64_t)1 << (amount - 1))) >> amount);
}
