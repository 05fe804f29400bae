/* The nearest integer, halves to even, saturated to 32 bits. */
static inline int32_t ${name}(${Real} x)
{
    if (x >= (${Real})2147483648.0)
        return INT32_MAX;
    if (!(x > (${Real})-2147483648.0))
        return INT32_MIN;
    const int32_t whole = (int32_t)x;
    const ${Real} rest = x - (${Real})whole;
    const int32_t odd = whole & 1;
    if (rest > (${Real})0.5 || (rest == (${Real})0.5 && odd))
        return whole < INT32_MAX ? whole + 1 : whole;
    return rest < (${Real})-0.5 || (rest == (${Real})-0.5 && odd) ? whole - 1 : whole;
}
