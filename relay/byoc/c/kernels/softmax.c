// uses: wrap32 high_multiply rounding_right_shift reciprocal
/* Softmax of `rows` rows of codes; exponents[255 + x - largest] is exp(beta * scale * (x - largest)) in Q0.31. */
static void ${name}(const int32_t *restrict exponents, int32_t rows, int32_t depth, const ${Code} *restrict input,
                    ${Code} *restrict output)
{
    for (; rows > 0; --rows, input += depth, output += depth) {
        int32_t largest = input[0], sum = 0, headroom;
        for (int32_t i = 1; i < depth; ++i)
            largest = input[i] > largest ? input[i] : largest;
        for (int32_t i = 0; i < depth; ++i)
            sum = relay_wrap32((int64_t)sum + relay_rounding_right_shift(exponents[255 + input[i] - largest], 12));
        const int32_t mantissa = relay_reciprocal(sum, &headroom);
        for (int32_t i = 0; i < depth; ++i) {
            const int64_t x = relay_high_multiply(mantissa, exponents[255 + input[i] - largest]);
            const int32_t amount = 12 - headroom + 31 - 8;
            const int64_t mask = ((int64_t)1 << amount) - 1;
            const int64_t code = (x >> amount) + ((x & mask) > (mask >> 1) + (x < 0)) + ${lowest};
            output[i] = (${Code})(code < ${lowest} ? ${lowest} : code > ${highest} ? ${highest} : code);
        }
    }
}
