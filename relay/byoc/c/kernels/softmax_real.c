/* exp(beta (x - largest)) / sum for `rows` rows; exp in double. */
static void ${name}(${Real} beta, int32_t rows, int32_t depth, const ${Real} *restrict input, ${Real} *restrict output)
{
    for (; rows > 0; --rows, input += depth, output += depth) {
        ${Real} largest = input[0], sum = 0;
        for (int32_t i = 1; i < depth; ++i)
            largest = input[i] > largest ? input[i] : largest;
        for (int32_t i = 0; i < depth; ++i) {
            output[i] = (${Real})exp((double)((input[i] - largest) * beta));
            sum += output[i];
        }
        for (int32_t i = 0; i < depth; ++i)
            output[i] /= sum;
    }
}
