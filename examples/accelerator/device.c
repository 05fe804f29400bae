/* The runtime library of an accelerator as relay.runtime.open_device calls it: here one that multiplies floats with a
   factor. Memory "on the device" is malloc's; a tensor that only this device uses stays there, and its memory on the
   host holds the pointer. Its scratch memory is the workspace that the artifact asks for, behind the output. Build: cc -std=c99 -shared -fPIC device.c -o libdevice.so */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KEEPS_INPUT = 1, KEEPS_OUTPUT = 2, BROKEN = 4, USES_WORKSPACE = 8 };
enum { OK, NO_PROGRAM, NO_MEMORY, STOPPED };

typedef struct {
    uint32_t count, flags;
    float factor;
} device_state;

int32_t device_living = 0; /* states that init made and destroy has not taken back */

int32_t device_init(const void *artifact, uint64_t size, const void *const *constants, void **state)
{
    device_state *made;
    if (size != 8)
        return NO_PROGRAM;
    made = malloc(sizeof *made);
    if (made == NULL)
        return NO_MEMORY;
    memcpy(&made->count, artifact, 4);
    memcpy(&made->flags, (const char *)artifact + 4, 4);
    made->factor = *(const float *)constants[0];
    device_living++;
    *state = made;
    return OK;
}

/* Threads may be in here at the same time: whatever a run changes is its own. */
int32_t device_execute(void *state, void **tensors)
{
    const device_state *const device = state;
    float *input = tensors[0], *output = tensors[1];
    uint32_t i;
    if (device->flags & BROKEN)
        return STOPPED;
    if (device->flags & KEEPS_INPUT)
        memcpy(&input, tensors[0], sizeof input);
    if (device->flags & KEEPS_OUTPUT) {
        output = malloc(device->count * sizeof *output);
        if (output == NULL)
            return NO_MEMORY;
        memcpy(tensors[1], &output, sizeof output);
    }
    if (device->flags & USES_WORKSPACE) {
        float *const work = tensors[2];
        for (i = 0; i < device->count; i++)
            work[i] = input[device->count - 1 - i];
        for (i = 0; i < device->count; i++)
            output[i] = device->factor * work[device->count - 1 - i];
    } else {
        for (i = 0; i < device->count; i++)
            output[i] = device->factor * input[i];
    }
    if (device->flags & KEEPS_INPUT)
        free(input);
    return OK;
}

void device_destroy(void *state)
{
    device_living--;
    free(state);
}

const char *device_message(void *state, int32_t status)
{
    (void)state;
    return status == NO_PROGRAM ? "these bytes are no program"
         : status == NO_MEMORY  ? "the device has no memory left"
                                : "the watchdog stopped the device";
}
