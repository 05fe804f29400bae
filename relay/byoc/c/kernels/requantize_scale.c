/* How sums become codes: clamp(rescale(sum), low, high) + zero_point. The bounds are those of the codes, less the
   zero point, so that nothing overflows. */
typedef struct {
    const int32_t *multiplier;
    const int32_t *shift;
    int32_t low, high, zero_point;
} relay_requantize_scale;
