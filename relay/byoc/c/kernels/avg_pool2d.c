// uses: pool_shape
/* The mean of the cells inside the image, halves away from zero. */
static void ${name}(const relay_pool_shape *op, const ${Type} *restrict input, ${Sum} *restrict sums,
                    ${Type} *restrict output)
{
    for (int32_t n = 0; n < op->batches; ++n) {
        const ${Type} *const image = input + n * op->height * op->width * op->channels;
        for (int32_t y = 0; y < op->out_height; ++y) {
            const int32_t top = y * op->stride_y - op->pad_top;
            const int32_t first = relay_window_begin(top), bottom = relay_window_end(top, op->pool_height, op->height);
            for (int32_t x = 0; x < op->out_width; ++x, output += op->channels) {
                const int32_t left = x * op->stride_x - op->pad_left;
                const int32_t begin = relay_window_begin(left), end = relay_window_end(left, op->pool_width, op->width);
                const ${Sum} count = (${Sum})((bottom - first) * (end - begin));
                for (int32_t c = 0; c < op->channels; ++c)
                    sums[c] = 0;
                for (int32_t row = first; row < bottom; ++row) {
                    for (int32_t column = begin; column < end; ++column) {
                        const ${Type} *const cell = image + (row * op->width + column) * op->channels;
                        for (int32_t c = 0; c < op->channels; ++c)
                            sums[c] += cell[c];
                    }
                }
                for (int32_t c = 0; c < op->channels; ++c)
                    output[c] = (${Type})(${mean});
            }
        }
    }
}
