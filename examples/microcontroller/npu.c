/* The vendor's library of the accelerator of npu.py, which here is simulated: a convolution of int8, rescaled to int8
   with two roundings (TensorFlow Lite's MultiplyByQuantizedMultiplier). No memory is allocated. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { OK, NO_PROGRAM, NO_ROOM };
enum { STATES = 16, VERSION = 1, SUMS = 64 };

typedef struct {
    int32_t batch, height, width, channels, out_height, out_width, out_channels, kernel_height, kernel_width, stride_y,
        stride_x, dilation_y, dilation_x, top, left, input_zero_point, output_zero_point, low, high, version;
} npu_program;

typedef struct {
    npu_program program;
    const int32_t *bias, *multiplier, *shift;
    const int8_t *kernel;
    int used;
} npu_state;

static npu_state states[STATES];
uint32_t npu_multiplications; /* what the simulation counts */

int32_t npu_init(const void *artifact, uint64_t size, const void *const *constants, void **state)
{
    npu_state *made = states;
    *state = NULL;
    if (size != sizeof made->program)
        return NO_PROGRAM;
    while (made < states + STATES && made->used)
        ++made;
    if (made == states + STATES)
        return NO_ROOM;
    memcpy(&made->program, artifact, sizeof made->program);
    if (made->program.version != VERSION || made->program.out_channels > SUMS)
        return NO_PROGRAM;
    made->bias = constants[0];
    made->kernel = constants[1];
    made->multiplier = constants[2];
    made->shift = constants[3];
    made->used = 1;
    *state = made;
    return OK;
}

void npu_destroy(void *state)
{
    ((npu_state *)state)->used = 0;
}

const char *npu_message(void *state, int32_t status)
{
    (void)state;
    return status == NO_PROGRAM ? "these bytes are no program of this accelerator" : "all programs are in use";
}

/* A sum times multiplier * 2^(shift - 31), rounded after the product and after the shift. */
static int32_t rescaled(int32_t sum, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0, right = left - shift;
    const int64_t product = (int64_t)(sum * ((int64_t)1 << left)) * multiplier;
    const int32_t high = (int32_t)((product + ((int64_t)1 << 30)) >> 31);
    const int32_t mask = (int32_t)(((int64_t)1 << right) - 1);
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0));
}

static int32_t sum_of(const npu_state *npu, const int8_t *image, int32_t y, int32_t x, int32_t o)
{
    const npu_program *const p = &npu->program;
    const int8_t *weight = npu->kernel + o * p->kernel_height * p->kernel_width * p->channels;
    int32_t sum = npu->bias[o];
    for (int32_t i = 0; i < p->kernel_height; ++i) {
        const int32_t row = y * p->stride_y - p->top + i * p->dilation_y;
        for (int32_t j = 0; j < p->kernel_width; ++j, weight += p->channels) {
            const int32_t column = x * p->stride_x - p->left + j * p->dilation_x;
            const int8_t *const pixel = image + (row * p->width + column) * p->channels;
            if (row < 0 || row >= p->height || column < 0 || column >= p->width)
                continue;
            for (int32_t c = 0; c < p->channels; ++c)
                sum += (pixel[c] - p->input_zero_point) * weight[c];
            npu_multiplications += (uint32_t)p->channels;
        }
    }
    return sum;
}

int32_t npu_execute(void *state, void **tensors)
{
    const npu_state *const npu = state;
    const npu_program *const p = &npu->program;
    const int8_t *image = tensors[0];
    int8_t *output = tensors[1];
    for (int32_t n = 0; n < p->batch; ++n, image += p->height * p->width * p->channels)
        for (int32_t y = 0; y < p->out_height; ++y)
            for (int32_t x = 0; x < p->out_width; ++x)
                for (int32_t o = 0; o < p->out_channels; ++o) {
                    int32_t code = rescaled(sum_of(npu, image, y, x, o), npu->multiplier[o], npu->shift[o]);
                    code += p->output_zero_point;
                    code = code < p->low ? p->low : code > p->high ? p->high : code;
                    *output++ = (int8_t)code;
                }
    return OK;
}
