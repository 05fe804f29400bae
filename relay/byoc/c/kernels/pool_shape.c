/* A window over height and width of NHWC images. */
typedef struct {
    int32_t batches, height, width, channels;
    int32_t out_height, out_width;
    int32_t pool_height, pool_width;
    int32_t stride_y, stride_x;
    int32_t pad_top, pad_left;
} relay_pool_shape;

/* The first position of a window inside the image, and the one after its last. */
static inline int32_t relay_window_begin(int32_t start)
{
    return start < 0 ? 0 : start;
}

static inline int32_t relay_window_end(int32_t start, int32_t extent, int32_t size)
{
    return start + extent < size ? start + extent : size;
}
