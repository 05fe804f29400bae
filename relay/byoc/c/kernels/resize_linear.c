/* The weighted sum of four neighbours, in the order in which TFLite writes it. */
static void ${name}(const ${Shape} *op, const ${Type} *restrict input, ${Type} *restrict output)
{
    const ${Sum} one = ${one};
    for (int32_t n = 0; n < op->batches; ++n) {
        const ${Type} *const image = input + n * op->height * op->width * op->channels;
        for (int32_t y = 0; y < op->out_height; ++y) {
            const ${Type} *const row0 = image + op->row[y] * op->width * op->channels;
            const ${Type} *const row1 = image + op->next_row[y] * op->width * op->channels;
            const ${Sum} wy = op->row_weight[y];
            for (int32_t x = 0; x < op->out_width; ++x, output += op->channels) {
                const int32_t left = op->column[x] * op->channels, right = op->next_column[x] * op->channels;
                const ${Sum} wx = op->column_weight[x];
                for (int32_t c = 0; c < op->channels; ++c) {
                    const ${Sum} a = (${Sum})row0[left + c] * (one - wy) * (one - wx);
                    const ${Sum} b = (${Sum})row1[left + c] * wy * (one - wx);
                    const ${Sum} d = (${Sum})row0[right + c] * (one - wy) * wx;
                    const ${Sum} e = (${Sum})row1[right + c] * wy * wx;
                    const ${Sum} total = a + b + d + e;
                    output[c] = (${Type})(${finish});
                }
            }
        }
    }
}
