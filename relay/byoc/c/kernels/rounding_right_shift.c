/* x / 2^amount, halves away from zero, 0 <= amount <= 31: gemmlowp's RoundingDivideByPOT. */
static inline int32_t relay_rounding_right_shift(int32_t x, int32_t amount)
{
    const int32_t mask = (int32_t)(((uint32_t)1 << amount) - 1);
    return (x >> amount) + ((x & mask) > (mask >> 1) + (x < 0));
}
