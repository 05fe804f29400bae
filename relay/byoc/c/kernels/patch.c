// uses: conv2d_shape
/* What lies under the kernel at one position of an image, less the zero point: [kernel_height, kernel_width, depth],
   0 outside the image. `image` starts at the group's first channel. */
static void ${name}(const relay_conv2d_shape *op, const ${Input} *restrict image, int32_t y, int32_t x, int32_t depth,
                    ${Patch} *restrict patch)
{
    const ${Zero} zero_point = (${Zero})op->input_zero_point;
    for (int32_t i = 0; i < op->kernel_height; ++i) {
        const int32_t row = y * op->stride_y - op->pad_top + i * op->dilation_y;
        for (int32_t j = 0; j < op->kernel_width; ++j, patch += depth) {
            const int32_t column = x * op->stride_x - op->pad_left + j * op->dilation_x;
            if (row < 0 || row >= op->height || column < 0 || column >= op->width) {
                for (int32_t c = 0; c < depth; ++c)
                    patch[c] = 0;
                continue;
            }
            const ${Input} *const cell = image + (row * op->width + column) * op->channels;
            for (int32_t c = 0; c < depth; ++c)
                patch[c] = (${Patch})(cell[c] - zero_point);
        }
    }
}
