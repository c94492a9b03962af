/* Products and convolutions of bytes, conv_integer to qlinear_matmul: at which inputs their numbers
 * are, whatever device solves them. */
#ifndef FACULA_BYTE_PORTS_H
#define FACULA_BYTE_PORTS_H
#include "facula/backend.h"

/* Input numbers; -1: an op without. */
typedef struct fac_byte_ports {
    int b, x_scale, x_zero, w_scale, w_zero, y_scale, y_zero;
} fac_byte_ports;
const fac_byte_ports *fac_byte_ports_of(const fac_node *n);

/* How many numbers an input has; 0: it is absent. */
int64_t fac_byte_count(const fac_problem *p, int port);
/* Scales are f32; bias, scales and zero points of w are single numbers or one an output, those of x
 * and y single ones. */
bool fac_byte_numbers_fit(const fac_problem *p, const fac_byte_ports *at, int64_t outputs);
#endif
