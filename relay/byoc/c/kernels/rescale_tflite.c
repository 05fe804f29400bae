// uses: wrap32 rounding_right_shift
/* x * multiplier * 2^(shift - 31), rounded twice: TFLite's MultiplyByQuantizedMultiplier. The high product saturates
   for no multiplier above -2^31. */
static inline int32_t relay_rescale_tflite(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t shifted = relay_wrap32((int64_t)x * ((int64_t)1 << left));
    const int32_t high = (int32_t)(((int64_t)shifted * multiplier + ((int64_t)1 << 30)) >> 31);
    return relay_rounding_right_shift(high, left - shift);
}
