/* One row of sums to codes; rescaled by ${rescale}. */
static void ${name}(const relay_requantize_scale *op, const ${Sum} *restrict sums, int32_t count,
                    ${Code} *restrict codes)
{
    const int32_t *const multiplier = op->multiplier;
    const int32_t *const shift = op->shift;
    const int32_t low = op->low, high = op->high, zero_point = op->zero_point;
    for (int32_t i = 0; i < count; ++i) {
        ${Rescaled} code = ${rescale}(sums[i], multiplier[${at}], shift[${at}]);
        code = code < low ? low : code;
        code = code > high ? high : code;
        codes[i] = (${Code})(code + zero_point);
    }
}
