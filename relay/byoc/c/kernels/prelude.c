/* Two things that C99 leaves to the compiler: both hold on every two's complement machine in use. */
typedef char relay_shifts_right_arithmetically[(-1 >> 1) == -1 ? 1 : -1];
typedef char relay_converts_modulo_a_power_of_two[(int32_t)0xFFFFFFFFu == -1 ? 1 : -1];
