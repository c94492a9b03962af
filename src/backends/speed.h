/* What estimates count on, whatever the device: of the solvers that take what no other takes, and
 * of nodes that have none yet.  Rates of a device are in its own speed.h.  Only ratios matter:
 * estimates are compared with each other. */
#ifndef FACULA_BACKENDS_SPEED_H
#define FACULA_BACKENDS_SPEED_H

typedef struct fac_last_speed {
    /* The reference kernels: seconds of a step, of an element, of a multiply-add. */
    double ref_step, ref_element, ref_mac;
    /* The cpu for another device: seconds of a step, bytes a second; any kernel there is better. */
    double fallback_step, fallback_bytes;
    double unsolved; /* seconds of a node that no solver of the device takes as it is */
} fac_last_speed;
extern const fac_last_speed fac_last_speeds;
#endif
