/* Start of a bare RV32 program on QEMU's virt board: memory, semihosting, the count of instructions. */
#include <stdint.h>

extern uint32_t data_source, data_start, data_end, bss_start, bss_end, stack_top;
int main(void);

static int32_t semihosting(int32_t operation, const void *argument)
{
    register int32_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(".option push\n .option norvc\n .balign 16\n slli x0, x0, 0x1f\n ebreak\n srai x0, x0, 7\n .option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
}

void print(const char *text)
{
    semihosting(0x04, text);
}

static uint32_t count(void)
{
    uint32_t now;
    __asm__ volatile(".option push\n .option arch, +zicsr\n csrr %0, minstret\n .option pop" : "=r"(now));
    return now;
}

static uint32_t first;

void start_ticks(void)
{
    first = count();
}

uint32_t ticks(void)
{
    return count() - first;
}

void run(void)
{
    for (uint32_t *to = &data_start, *from = &data_source; to < &data_end;)
        *to++ = *from++;
    for (uint32_t *to = &bss_start; to < &bss_end;)
        *to++ = 0;
    semihosting(0x18, (const void *)(main() == 0 ? 0x20026 : 0x20023));
    for (;;)
        ;
}

__attribute__((section(".vectors"), naked, used)) void reset(void)
{
    __asm__ volatile("la sp, stack_top\n j run");
}
