/* x modulo 2^32, in [-2^31, 2^31). */
static inline int32_t relay_wrap32(int64_t x)
{
    return (int32_t)(uint32_t)x;
}
