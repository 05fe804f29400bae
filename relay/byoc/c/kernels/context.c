/* What the loader hands to a function: an arena, and the constants that lie outside of the code. The first caller
   takes the arena; who comes while it runs makes one of its own, or waits where there is no memory for one. */
typedef struct {
    int32_t busy;
    uint8_t *arena;
    const void *const *constants;
} relay_context;

static uint8_t *relay_take_arena(relay_context *context, size_t size, void **own)
{
    for (;;) {
        *own = NULL;
        if (__atomic_exchange_n(&context->busy, 1, __ATOMIC_ACQUIRE) == 0)
            return context->arena;
        *own = malloc(size);
        if (*own != NULL)
            return *own;
    }
}

static void relay_give_arena(relay_context *context, void *own)
{
    free(own);
    if (own == NULL)
        __atomic_store_n(&context->busy, 0, __ATOMIC_RELEASE);
}
