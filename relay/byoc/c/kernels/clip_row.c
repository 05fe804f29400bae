/* One row of sums, clamped. */
static void ${name}(const ${Bounds} *op, const ${Type} *restrict sums, int32_t count, ${Type} *restrict output)
{
    const ${Type} low = op->low, high = op->high;
    for (int32_t i = 0; i < count; ++i) {
        const ${Type} x = sums[i] < low ? low : sums[i];
        output[i] = x > high ? high : x;
    }
}
