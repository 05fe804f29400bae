/* x, not below low and not above high. */
static inline int64_t relay_clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}
