// uses: conv2d_shape
/* A depthwise convolution, pixel by pixel: add every tap inside the image to a row of sums, finish it with ${finish}. */
static void ${name}(const relay_conv2d_shape *op, const ${Input} *restrict input, const ${Weight} *restrict weights,
                    const ${Sum} *restrict bias, const ${Finish} *finish, ${Sum} *restrict sums,
                    ${Output} *restrict output)
{
    const ${Zero} input_zero_point = (${Zero})op->input_zero_point, kernel_zero_point = (${Zero})op->kernel_zero_point;
    const int32_t multiplier = op->out_channels / op->channels;
    for (int32_t n = 0; n < op->batches; ++n) {
        const ${Input} *const image = input + n * op->height * op->width * op->channels;
        for (int32_t y = 0; y < op->out_height; ++y) {
            for (int32_t x = 0; x < op->out_width; ++x) {
                for (int32_t o = 0; o < op->out_channels; ++o)
                    sums[o] = bias == NULL ? 0 : bias[o];
                for (int32_t i = 0; i < op->kernel_height; ++i) {
                    const int32_t row = y * op->stride_y - op->pad_top + i * op->dilation_y;
                    if (row < 0 || row >= op->height)
                        continue;
                    for (int32_t j = 0; j < op->kernel_width; ++j) {
                        const int32_t column = x * op->stride_x - op->pad_left + j * op->dilation_x;
                        if (column < 0 || column >= op->width)
                            continue;
                        const ${Input} *const cell = image + (row * op->width + column) * op->channels;
                        const ${Weight} *const tap = weights + (i * op->kernel_width + j) * op->out_channels;
                        ${tap}(cell, tap, input_zero_point, kernel_zero_point, op->channels, multiplier, sums);
                    }
                }
                ${finish}(finish, sums, op->out_channels, output);
                output += op->out_channels;
            }
        }
    }
}
