// uses: svdf_shape rescale_tflite clamp wrap32
/* `new_state` is `state` without its oldest slot, and the newest feature behind it. */
static void ${name}(const relay_svdf *op, const int8_t *data, const int8_t *feature_kernel, const ${Time} *time_kernel,
                    const int32_t *bias, const ${Time} *state, int8_t *output, ${Time} *new_state)
{
    for (int32_t batch = 0; batch < op->batches; ++batch, data += op->inputs) {
        for (int32_t unit = 0; unit < op->units; ++unit) {
            int64_t total = bias == NULL ? 0 : bias[unit];
            for (int32_t rank = 0; rank < op->rank; ++rank) {
                const int32_t filter = unit * op->rank + rank;
                uint32_t feature = 0;
                for (int32_t k = 0; k < op->inputs; ++k)
                    feature += (uint32_t)((data[k] - op->input_zero_point) * feature_kernel[filter * op->inputs + k]);
                memcpy(new_state, state + 1, (size_t)(op->memory - 1) * sizeof *state);
                new_state[op->memory - 1] = (${Time})relay_clamp(
                    relay_rescale_tflite((int32_t)feature, op->feature_multiplier, op->feature_shift),
                    ${lowest}, ${highest});
                for (int32_t k = 0; k < op->memory; ++k)
                    total += (int64_t)new_state[k] * time_kernel[filter * op->memory + k];
                state += op->memory;
                new_state += op->memory;
            }
            *output++ = (int8_t)(relay_clamp(
                relay_rescale_tflite(relay_wrap32(total), op->multiplier, op->shift), op->low, op->high)
                + op->output_zero_point);
        }
    }
}
