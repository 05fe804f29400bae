/* sums[o] = bias[o] + sum over k of patch[k] * (weights[o][k] - zero_point), for `outputs` rows of weights; wraps.
   Four rows at a time: each number of the patch is loaded once for four products. */
static void ${name}(const ${Patch} *restrict patch, const ${Weight} *restrict weights, const ${Sum} *restrict bias,
                    ${Zero} zero_point, int32_t depth, int32_t outputs, ${Sum} *restrict sums)
{
    ${Wrap} offset = 0;
    if (zero_point != 0)
        for (int32_t k = 0; k < depth; ++k)
            offset += (${Wrap})patch[k] * (${Wrap})zero_point;
    const int32_t fours = outputs / 4 * 4;
    for (int32_t o = 0; o < fours; o += 4, weights += 4 * depth) {
        const ${Weight} *const w0 = weights, *const w1 = w0 + depth, *const w2 = w1 + depth, *const w3 = w2 + depth;
        ${Wrap} sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
        for (int32_t k = 0; k < depth; ++k) {
            const ${Product} x = patch[k];
            sum0 += (${Wrap})(x * w0[k]);
            sum1 += (${Wrap})(x * w1[k]);
            sum2 += (${Wrap})(x * w2[k]);
            sum3 += (${Wrap})(x * w3[k]);
        }
        sums[o] = (${Sum})(sum0 - offset);
        sums[o + 1] = (${Sum})(sum1 - offset);
        sums[o + 2] = (${Sum})(sum2 - offset);
        sums[o + 3] = (${Sum})(sum3 - offset);
    }
    for (int32_t o = fours; o < outputs; ++o, weights += depth) {
        ${Wrap} sum = 0;
        for (int32_t k = 0; k < depth; ++k)
            sum += (${Wrap})((${Product})patch[k] * weights[k]);
        sums[o] = (${Sum})(sum - offset);
    }
    if (bias != NULL)
        for (int32_t o = 0; o < outputs; ++o)
            sums[o] = (${Sum})((${Wrap})sums[o] + (${Wrap})bias[o]);
}
