/* One step of an SVDF layer: a filter of rank `rank` over the last `memory` inputs. */
typedef struct {
    int32_t batches, inputs, units, rank, memory;
    int32_t input_zero_point;
    int32_t feature_multiplier, feature_shift;
    int32_t multiplier, shift, output_zero_point, low, high;
} relay_svdf;
