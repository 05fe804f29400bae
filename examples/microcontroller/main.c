/* Reads the digits of images.h with the exported model, and prints the ten codes of each, and what the accelerator did. */
#include "digits.h"
#include "images.h"

extern uint32_t npu_multiplications;
void print(const char *text);

static void print_number(int32_t number)
{
    char text[12], *at = text + sizeof text;
    uint32_t rest = number < 0 ? 0u - (uint32_t)number : (uint32_t)number;
    *--at = 0;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (number < 0)
        *--at = '-';
    print(at);
}

int main(void)
{
#ifdef DIGITS_ARENA_ALIGNMENT /* object code, by Executable.export */
    static _Alignas(DIGITS_ARENA_ALIGNMENT) uint8_t arena[DIGITS_ARENA_BYTES];
#endif
    static int8_t codes[DIGITS_OUTPUT_0_COUNT];
    if (digits_init() != 0)
        return 1;
    for (int32_t n = 0; n < IMAGES; ++n) {
#ifdef DIGITS_ARENA_ALIGNMENT
        const int32_t failed = digits_run(arena, images[n], codes);
#else
        const int32_t failed = digits_run(images[n], codes);
#endif
        if (failed != 0) {
            print(digits_regions[failed - 1].name);
            return 2;
        }
        for (int32_t i = 0; i < DIGITS_OUTPUT_0_COUNT; ++i) {
            print_number(codes[i]);
            print(" ");
        }
        print("\n");
    }
    print("multiplications of the accelerator: ");
    print_number((int32_t)npu_multiplications);
    print("\n");
    digits_destroy();
    return 0;
}
