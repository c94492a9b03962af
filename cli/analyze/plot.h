/* facula plot: what its files share. */
#ifndef FACULA_CLI_PLOT_H
#define FACULA_CLI_PLOT_H
#include "cli.h"

typedef struct plot_look {
    const char *title;
    int width, height;
} plot_look; /* sizes 0: the usual */

/* DIR/model.safetensors to a picture; to NULL: DIR/weights.png, or .svg. */
int plot_weights(const char *dir, const char *to, const plot_look *look);

/* The spectrogram of a sound to a picture, or as text. */
int plot_sound(const char *path, const char *to, bool text, const plot_look *look);
#endif
