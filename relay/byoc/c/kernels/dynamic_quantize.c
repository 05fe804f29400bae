// uses: clamp
/* Symmetric codes of each row, and the row's scale. Source: TFLite's hybrid kernels. */
static void relay_dynamic_quantize(const float *restrict input, int32_t rows, int32_t count, int8_t *restrict codes,
                                   float *restrict scale)
{
    for (; rows > 0; --rows, input += count, codes += count, ++scale) {
        float largest = 0.0f;
        for (int32_t i = 0; i < count; ++i) {
            const float size = input[i] < 0.0f ? -input[i] : input[i];
            largest = size > largest ? size : largest;
        }
        const float factor = largest > 0.0f ? 127.0f / largest : 0.0f;
        *scale = largest > 0.0f ? largest / 127.0f : 1.0f;
        for (int32_t i = 0; i < count; ++i)
            codes[i] = (int8_t)relay_clamp(${round}(input[i] * factor), -127, 127);
    }
}
