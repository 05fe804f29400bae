/* The accelerator vega, simulated: a pointwise convolution of int8, requantized with two roundings as TensorFlow Lite
   does. Weights lie in a scratchpad; sums of a tile of pixels lie in the workspace behind the output. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NO_PROGRAM, NO_MEMORY, OVERHEATED };
enum { SCRATCHPAD = 4096, TILE = 8 };

typedef struct {
    int32_t pixels, inputs, units, input_zero_point, output_zero_point, low, high, broken, tile, scratchpad;
} vega_program;

typedef struct {
    vega_program program;
    const int32_t *bias, *multiplier, *shift;
    int8_t scratchpad[SCRATCHPAD];
} vega_state;

int32_t vega_init(const void *artifact, uint64_t size, const void *const *constants, void **state)
{
    vega_program program;
    vega_state *made;
    *state = NULL;
    if (size != sizeof program)
        return NO_PROGRAM;
    memcpy(&program, artifact, sizeof program);
    if (program.tile != TILE || program.scratchpad != SCRATCHPAD || program.inputs < 1 || program.units < 1
        || program.inputs > SCRATCHPAD / program.units)
        return NO_PROGRAM;
    made = malloc(sizeof *made);
    if (made == NULL)
        return NO_MEMORY;
    made->program = program;
    made->bias = constants[0]; /* in the order of their names: bias, kernel, multiplier, shift */
    memcpy(made->scratchpad, constants[1], (size_t)(program.inputs * program.units));
    made->multiplier = constants[2];
    made->shift = constants[3];
    *state = made;
    return OK;
}

/* sum * multiplier * 2^(shift - 31), rounded after the product and after the shift. */
static int32_t rescaled(int32_t sum, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0, right = left - shift;
    const int64_t product = (int64_t)(int32_t)((uint32_t)sum << left) * multiplier;
    const int32_t high = (int32_t)((product + (product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30)))
                                   / ((int64_t)1 << 31));
    const int32_t mask = (int32_t)(((int64_t)1 << right) - 1);
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0));
}

/* Threads may be in here at the same time: the state is only read, the workspace is the call's own. */
int32_t vega_execute(void *state, void **tensors)
{
    const vega_state *const vega = state;
    const vega_program *const p = &vega->program;
    const int8_t *const input = tensors[0];
    int8_t *const output = tensors[1];
    int32_t *const sums = tensors[2];
    int32_t first, pixel, unit, lane;
    if (p->broken)
        return OVERHEATED;
    for (first = 0; first < p->pixels; first += TILE) {
        const int32_t count = p->pixels - first < TILE ? p->pixels - first : TILE;
        for (pixel = 0; pixel < count; ++pixel)
            for (unit = 0; unit < p->units; ++unit) {
                const int8_t *const x = input + (first + pixel) * p->inputs;
                uint32_t sum = (uint32_t)vega->bias[unit];
                for (lane = 0; lane < p->inputs; ++lane)
                    sum += (uint32_t)((x[lane] - p->input_zero_point) * vega->scratchpad[unit * p->inputs + lane]);
                sums[pixel * p->units + unit] = (int32_t)sum;
            }
        for (pixel = 0; pixel < count; ++pixel)
            for (unit = 0; unit < p->units; ++unit) {
                int64_t code = rescaled(sums[pixel * p->units + unit], vega->multiplier[unit], vega->shift[unit]);
                code += p->output_zero_point;
                code = code < p->low ? p->low : code > p->high ? p->high : code;
                output[(first + pixel) * p->units + unit] = (int8_t)code;
            }
    }
    return OK;
}

void vega_destroy(void *state)
{
    free(state);
}

const char *vega_message(void *state, int32_t status)
{
    (void)state;
    return status == NO_PROGRAM  ? "these bytes are no program of vega"
         : status == NO_MEMORY   ? "vega has no memory left"
                                 : "vega is too hot";
}
