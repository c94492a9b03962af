/* Between the readers of sounds. */
#ifndef FACULA_DATA_SOUND_INTERNAL_H
#define FACULA_DATA_SOUND_INTERNAL_H
#include "facula/data/sound.h"

/* Room for a sound, zeroed. */
fac_status fac_sound_new(int64_t frames, int channels, int rate, const char *name, fac_sound *out,
                         fac_error *err);
/* By libsndfile. */
fac_status fac_sndfile_decode(const void *bytes, size_t size, const char *name, fac_sound *out,
                              fac_error *err);

enum { FAC_SOUND_CHANNELS = 256, FAC_SOUND_RATE = 10000000 };
#endif
