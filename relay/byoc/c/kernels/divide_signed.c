/* a / b towards zero; 0 where b is 0; the lowest number by -1 wraps. */
static inline ${Type} ${name}(${Type} a, ${Type} b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return (${Type})(0 - (${Wrap})a);
    return (${Type})(a / b);
}
