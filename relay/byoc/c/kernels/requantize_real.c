/* One row of sums to codes; multiplied by ${Real} numbers and rounded by ${round}. */
static void ${name}(const ${Scale} *op, const ${Sum} *restrict sums, int32_t count, ${Code} *restrict codes)
{
    const ${Real} *const factor = op->factor;
    const int32_t low = op->low, high = op->high, zero_point = op->zero_point;
    for (int32_t i = 0; i < count; ++i) {
        int32_t code = ${round}((${Real})sums[i] * factor[${at}]);
        code = code < low ? low : code;
        code = code > high ? high : code;
        codes[i] = (${Code})(code + zero_point);
    }
}
