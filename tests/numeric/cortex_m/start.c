/* Start of a bare Cortex-M program on QEMU's mps2 and mps3 boards: vectors, memory, semihosting, the core's timer. */
#include <stdint.h>

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

/* The core's timer counts 24 bits down at the core's clock. */
static volatile uint32_t *const timer = (volatile uint32_t *)0xE000E010;

void start_ticks(void)
{
    timer[1] = 0xFFFFFF;
    timer[2] = 0;
    timer[0] = 5;
}

uint32_t ticks(void)
{
    return 0xFFFFFF - timer[2];
}

void reset(void)
{
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the unit for floats and vectors, where there is one */
#ifdef __ARM_ARCH_6M__
    *(volatile uint32_t *)0xE000ED14 |= 1u << 3; /* where another core stands in, let it trap what is not aligned */
#endif
    __asm__ volatile("dsb\n isb");
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
    (const void *)fault, (const void *)fault,
};
