/* Adds one tap of a depthwise kernel to a row of sums: every channel, `multiplier` results for each; wraps. */
static void ${name}(const ${Input} *restrict cell, const ${Weight} *restrict weights, ${Zero} input_zero_point,
                    ${Zero} kernel_zero_point, int32_t channels, int32_t multiplier, ${Sum} *restrict sums)
{
    if (multiplier == 1) {
        for (int32_t c = 0; c < channels; ++c)
            sums[c] = (${Sum})((${Wrap})sums[c]
                + (${Wrap})((${Product})(cell[c] - input_zero_point) * (weights[c] - kernel_zero_point)));
        return;
    }
    for (int32_t c = 0; c < channels; ++c) {
        const ${Product} x = cell[c] - input_zero_point;
        for (int32_t m = 0; m < multiplier; ++m, ++sums, ++weights)
            *sums = (${Sum})((${Wrap})*sums + (${Wrap})(x * (*weights - kernel_zero_point)));
    }
}
