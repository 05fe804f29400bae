// uses: wrap32
/* The same for 64-bit sums: the multiplier is cut to 16 bits, halves up once; it wraps; shift <= 14. */
static inline int32_t relay_rescale_sums64(int64_t x, int32_t multiplier, int32_t shift)
{
    const int32_t amount = 15 - shift;
    const int32_t reduced = multiplier < 0x7FFF0000 ? (multiplier + (1 << 15)) >> 16 : 0x7FFF;
    const uint64_t product = (uint64_t)x * (uint64_t)reduced + ((uint64_t)1 << (amount - 1));
    return relay_wrap32((int64_t)product >> amount);
}
