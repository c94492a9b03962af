/* Which product of a convolution is asked for. */
#ifndef FACULA_GPU_CONV_KIND_H
#define FACULA_GPU_CONV_KIND_H

typedef enum fac_gpu_conv_kind {
    FAC_GPU_FORWARD,
    FAC_GPU_GRAD_X,
    FAC_GPU_GRAD_W
} fac_gpu_conv_kind;
#endif
