/* The bounds of a fused activation. */
typedef struct {
    ${Type} low, high;
} ${name};
