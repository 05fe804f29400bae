/* What the program needs of QEMU's mps3-an547, a board with a Cortex-M55: vectors, memory, the FPU, semihosting. */
#include <stdint.h>

#define CPACR (*(volatile uint32_t *)0xE000ED88)

extern uint32_t data_source, data_start, data_end, bss_start, bss_end, stack_top;
int main(void);

static int32_t semihosting(int32_t operation, const void *argument)
{
    register int32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void print(const char *text)
{
    semihosting(0x04, text);
}

static void leave(int32_t status)
{
    semihosting(0x18, (const void *)(status == 0 ? 0x20026 : 0x20023));
    for (;;)
        ;
}

void reset(void)
{
    CPACR |= 0xFu << 20; /* coprocessors 10 and 11: floats */
    __asm__ volatile("dsb\n\tisb");
    for (uint32_t *to = &data_start, *from = &data_source; to < &data_end;)
        *to++ = *from++;
    for (uint32_t *to = &bss_start; to < &bss_end;)
        *to++ = 0;
    leave(main());
}

static void fault(void)
{
    print("fault\n");
    leave(1);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (const void *)reset, (const void *)fault, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
};
