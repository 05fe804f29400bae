// uses: fixed16 rescale_tflite clamp wrap32
/* An int8 LSTM with int16 cell state. Kernels are [gates * units, inputs] and [gates * units, units]; the gates are
   input (absent where there are three), forget, cell, output; multipliers and shifts have one number per gate. */
typedef struct {
    int32_t steps, batches, inputs, units, gates;
    int32_t step_stride, batch_stride; /* of data, in vectors of `inputs`; of the result, in vectors of `units` */
    int32_t input_zero_point, hidden_zero_point;
    int32_t input_multiplier[4], input_shift[4];
    int32_t recurrent_multiplier[4], recurrent_shift[4];
    int32_t hidden_multiplier, hidden_shift;
    int32_t cell_shift, cell_clip;
} relay_lstm;

/* sum of (x[k] - zero_point) * weights[k]; wraps. */
static inline int32_t relay_lstm_product(const int8_t *x, const int8_t *weights, int32_t count, int32_t zero_point)
{
    uint32_t sum = 0;
    for (int32_t k = 0; k < count; ++k)
        sum += (uint32_t)((x[k] - zero_point) * weights[k]);
    return (int32_t)sum;
}

/* What goes into every gate, from the input and from the last hidden state. */
static void relay_lstm_gates(const relay_lstm *op, const int8_t *input_kernel, const int8_t *recurrent_kernel,
                             const int32_t *bias, const int8_t *x, const int8_t *hidden, int16_t *gates)
{
    for (int32_t gate = 0; gate < op->gates; ++gate) {
        for (int32_t unit = 0; unit < op->units; ++unit) {
            const int32_t row = gate * op->units + unit;
            const int32_t from_input = relay_lstm_product(x, input_kernel + row * op->inputs, op->inputs,
                op->input_zero_point);
            const int32_t from_hidden = relay_lstm_product(hidden, recurrent_kernel + row * op->units, op->units,
                op->hidden_zero_point);
            const int64_t first = relay_clamp(
                relay_rescale_tflite(relay_wrap32((int64_t)from_input + bias[row]), op->input_multiplier[gate],
                    op->input_shift[gate]), INT16_MIN, INT16_MAX);
            const int64_t second = relay_rescale_tflite(from_hidden, op->recurrent_multiplier[gate],
                op->recurrent_shift[gate]);
            gates[row] = (int16_t)relay_clamp(first + second, INT16_MIN, INT16_MAX);
        }
    }
}

/* The new states of one sequence. */
static void relay_lstm_states(const relay_lstm *op, const int16_t *gates, int8_t *hidden, int16_t *cell)
{
    const int16_t *const output = gates + (op->gates - 1) * op->units;
    const int16_t *const candidate = output - op->units, *const forget = candidate - op->units;
    for (int32_t unit = 0; unit < op->units; ++unit) {
        const int32_t kept_part = relay_logistic16(forget[unit], 3);
        const int32_t new_part = op->gates == 3 ? INT16_MAX - kept_part : relay_logistic16(gates[unit], 3);
        const int32_t kept = relay_wrap16(relay_rounding_right_shift(kept_part * cell[unit], 15));
        const int32_t written = relay_wrap16(
            relay_rounding_right_shift(new_part * relay_tanh16(candidate[unit], 3), 30 + op->cell_shift));
        int32_t state = relay_saturate16(kept + written);
        if (op->cell_clip > 0)
            state = (int32_t)relay_clamp(state, -op->cell_clip, op->cell_clip);
        const int32_t shown = relay_tanh16(state, 15 + op->cell_shift);
        const int64_t code = (int64_t)relay_rescale_tflite(relay_logistic16(output[unit], 3) * shown,
            op->hidden_multiplier, op->hidden_shift) + op->hidden_zero_point;
        cell[unit] = (int16_t)state;
        hidden[unit] = (int8_t)relay_clamp(code, INT8_MIN, INT8_MAX);
    }
}

static void relay_lstm_run(const relay_lstm *op, const int8_t *data, const int8_t *input_kernel,
                           const int8_t *recurrent_kernel, const int32_t *bias, const int8_t *hidden_state,
                           const int16_t *cell_state, int16_t *gates, int8_t *result, int8_t *hidden, int16_t *cell)
{
    const int32_t states = op->batches * op->units;
    memcpy(hidden, hidden_state, (size_t)states * sizeof *hidden);
    memcpy(cell, cell_state, (size_t)states * sizeof *cell);
    for (int32_t step = 0; step < op->steps; ++step) {
        for (int32_t batch = 0; batch < op->batches; ++batch) {
            const int32_t at = step * op->step_stride + batch * op->batch_stride;
            int8_t *const h = hidden + batch * op->units;
            relay_lstm_gates(op, input_kernel, recurrent_kernel, bias, data + at * op->inputs, h, gates);
            relay_lstm_states(op, gates, h, cell + batch * op->units);
            memcpy(result + at * op->units, h, (size_t)op->units * sizeof *h);
        }
    }
}
