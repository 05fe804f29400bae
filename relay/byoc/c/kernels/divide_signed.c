/* a / b towards zero; 0 where b is 0; the lowest number by -1 wraps. */
static inline ${Type} ${name}(${Type} a, ${Type} b)
{
    if (b == 0)
        return 0;
    return b == -1 ? (${Type})(0 - (${Wrap})a) : (${Type})(a / b);
}
