/* facula train: sound-cnn, a small network that sees the spectrogram of a sound. */
#include <stdlib.h>
#include <string.h>
#include "train.h"

#define NAME "sound-cnn"
enum { BLOCKS = 8, WIDEST = 4096 };

typedef struct widths {
    int n, of[BLOCKS];
} widths;

/* "sound-cnn:16,32,64": channels of its convolutions; without a list these. */
static bool parse(const char *name, widths *w) {
    *w = (widths){ 3, { 16, 32, 64 } };
    if (strncmp(name, NAME, strlen(NAME))) return false;
    const char *at = name + strlen(NAME);
    if (!*at) return true;
    if (*at != ':') return false;
    w->n = 0;
    do {
        char *end;
        at++;
        const long width = strtol(at, &end, 10);
        if (*at < '1' || *at > '9' || width > WIDEST || w->n == BLOCKS) return false;
        w->of[w->n++] = (int)width;
        at = end;
    } while (*at == ',');
    return !*at;
}

bool sound_net_is(const char *name) {
    widths w;
    return parse(name, &w);
}

static fac_value *block(fac_value *x, int k, int channels, int across) {
    char name[32], norm[32];
    snprintf(name, sizeof name, "conv%d", k + 1);
    snprintf(norm, sizeof norm, "conv%d.bn", k + 1);
    const fac_nn_conv2d_opts o = { .pad = 1, .no_bias = true };
    x = fac_relu(fac_nn_batch_norm(fac_nn_conv2d(x, name, channels, 3, &o), norm, 0));
    return fac_max_pool2d(x, 2, across, NULL);
}

/* Time is averaged to about three places; frequency must not be: a voice is known by it. */
fac_value *sound_net(const char *name, fac_value *x, int classes) {
    widths w;
    parse(name, &w);
    for (int k = 0; k < w.n; k++) x = block(x, k, w.of[k], k ? 2 : 4);
    const int64_t time = fac_value_type(x).dims.d[3];
    if (time > 3) x = fac_avg_pool2d(x, 1, time / 3, NULL);
    return fac_nn_linear(fac_nn_dropout(fac_flatten(x, 1), 0.3), "fc", classes);
}
