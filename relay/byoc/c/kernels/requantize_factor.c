/* How sums become codes: clamp(round(sum * factor), low, high) + zero_point. */
typedef struct {
    const ${Real} *factor;
    int32_t low, high, zero_point;
} ${name};
