/* x towards zero, saturated; what is no number becomes the lowest. */
static inline ${Integer} ${name}(${Real} x)
{
    if (x >= ${above})
        return ${highest};
    return x > ${below} ? (${Integer})x : ${lowest};
}
