/* Bilinear resizing of NHWC images. Per result row (column): the two neighbours, and the weight of the second. */
typedef struct {
    int32_t batches, height, width, channels;
    int32_t out_height, out_width;
    const int32_t *row, *next_row, *column, *next_column;
    const ${Weight} *row_weight, *column_weight;
} ${name};
