// uses: conv2d_shape
/* A convolution, pixel by pixel: gather the patch, multiply, finish the row of sums with ${finish}. */
static void ${name}(const relay_conv2d_shape *op, const ${Input} *restrict input, const ${Weight} *restrict weights,
                    const ${Sum} *restrict bias, const ${Finish} *finish, ${Patch} *restrict patch,
                    ${Sum} *restrict sums, ${Output} *restrict output)
{
    const int32_t depth = op->channels / op->groups, outputs = op->out_channels / op->groups;
    const int32_t taps = op->kernel_height * op->kernel_width * depth;
    for (int32_t n = 0; n < op->batches; ++n) {
        const ${Input} *const image = input + n * op->height * op->width * op->channels;
        for (int32_t y = 0; y < op->out_height; ++y) {
            for (int32_t x = 0; x < op->out_width; ++x) {
                for (int32_t g = 0; g < op->groups; ++g) {
                    const int32_t first = g * outputs;
                    ${patch}(op, image + g * depth, y, x, depth, patch);
                    ${dot}(patch, weights + first * taps, bias == NULL ? NULL : bias + first,
                        (${Zero})op->kernel_zero_point, taps, outputs, sums + first);
                }
                ${finish}(finish, sums, op->out_channels, output);
                output += op->out_channels;
            }
        }
    }
}
