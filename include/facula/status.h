/* facula/status.h: what can go wrong, and how you are told.
 *
 * Two rules cover the whole library.
 *   1. A call that touches the world (files, devices, memory, running) returns fac_status and takes
 *      a fac_error as its last argument, which may be NULL.  When it fails, its out-parameters are
 *      untouched: there is nothing to clean up.
 *   2. A call that builds a graph returns a value.  When it fails, the graph remembers the first
 *      error, and the call returns the graph's poison value, which every later call accepts and
 *      passes on.  Check once: fac_graph_check().
 * Nothing here aborts, exits, prints, or keeps an error in a global or thread-local variable. */
#ifndef FACULA_STATUS_H
#define FACULA_STATUS_H

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#define FAC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define FAC_PRINTF(text, first)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef enum fac_status {
    FAC_OK = 0,
    FAC_E_ARGUMENT = 1,    /* a documented precondition was broken                       */
    FAC_E_SHAPE = 2,       /* shapes do not fit together                                 */
    FAC_E_DTYPE = 3,       /* the op does not take this element type                     */
    FAC_E_FORMAT = 4,      /* a file is malformed                                        */
    FAC_E_UNSUPPORTED = 5, /* valid, but not ours (yet): op, opset, element type, device */
    FAC_E_NOMEM = 6,       /* host or device memory; the text says which and how much    */
    FAC_E_IO = 7,
    FAC_E_DEVICE = 8,  /* the driver refused, or the device was lost                 */
    FAC_E_INTERNAL = 9 /* our bug                                                    */
} fac_status;

/* Owned by the caller, usually on the stack; no allocation, so it also works when memory is gone.
 */
typedef struct fac_error {
    fac_status status;
    char text[508]; /* "conv1: conv2d: w has 3 input channels, x has 1 (x f32[N,1,28,28], w
                       f32[6,3,5,5])" */
} fac_error;

/* "FAC_E_SHAPE"; never NULL. */
const char *fac_status_name(fac_status status);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
