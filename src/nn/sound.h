/* Between the layers for sounds. */
#ifndef FACULA_NN_SOUND_H
#define FACULA_NN_SOUND_H
#include "facula/nn.h"

/* The orthonormal cosines of cepstra, f64 [count, mels]. */
fac_status fac_nn_cosines(int count, int mels, fac_tensor **out, fac_error *err);
#endif
