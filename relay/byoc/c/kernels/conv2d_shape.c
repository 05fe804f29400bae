/* A convolution: NHWC images, kernels as [out, height, width, in / groups], or [height, width, channel, multiplier]
   where every channel is a group. */
typedef struct {
    int32_t batches, height, width, channels;
    int32_t out_height, out_width, out_channels;
    int32_t kernel_height, kernel_width;
    int32_t stride_y, stride_x;
    int32_t dilation_y, dilation_x;
    int32_t pad_top, pad_left;
    int32_t groups;
    int32_t input_zero_point, kernel_zero_point;
} relay_conv2d_shape;
