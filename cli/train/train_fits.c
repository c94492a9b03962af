/* facula train: options that do nothing with this data set, optimizer or schedule are refused. */
#include <string.h>
#include "train.h"

#define O train_given
enum { IMAGES = 1, SENTENCES = 2, SOUNDS = 4, POINTS = 8, LANGUAGE = 16, FILES = 1 + 2 + 4 + 16 };

/* Options of some kinds of data sets alone. */
static const struct {
    const void *to;
    unsigned kinds;
    const char *what;
} of_sets[] = {
    { &O.data, FILES, "sets of files" },
    { &O.size, IMAGES, "images" },
    { &O.augment, IMAGES | SOUNDS, "images and sounds" },
    { &O.glove, SENTENCES, "sentences" },
    { &O.rate, SOUNDS, "sounds" },
    { &O.seconds, SOUNDS, "sounds" },
    { &O.mels, SOUNDS, "sounds" },
    { &O.mask, SOUNDS, "sounds" },
    { &O.low, SOUNDS, "sounds" },
    { &O.high, SOUNDS, "sounds" },
    { &O.normalize, SOUNDS, "sounds" },
    { &O.sound_memory, SOUNDS, "sounds" },
    { &O.hold_out, SOUNDS, "sounds" },
    { &O.points, POINTS, "toys" },
    { &O.noise, POINTS, "toys" },
    { &O.test_part, POINTS | SOUNDS | LANGUAGE, "toys, sounds and texts" },
    { &O.tokenizer, LANGUAGE, "the set text" },
    { &O.context, LANGUAGE, "the set text" },
    { &O.lora, LANGUAGE, "the set text" },
    { &O.scheme, LANGUAGE, "the set text" },
    { &O.steps, LANGUAGE, "the set text" },
    { &O.dropout, LANGUAGE, "the set text" },
    { &O.test_batches, LANGUAGE, "the set text" },
    { &O.merge, LANGUAGE, "the set text" },
};
enum { OF_SETS = sizeof of_sets / sizeof *of_sets };

/* Options of some optimizers or schedules alone. */
static const struct {
    const void *to;
    const char *const *of;
    const char *names[3], *what;
} of_names[] = {
    { &O.momentum, &O.optimizer, { "sgd", "rmsprop" }, "the optimizers sgd and rmsprop" },
    { &O.nesterov, &O.optimizer, { "sgd" }, "the optimizer sgd" },
    { &O.beta2, &O.optimizer, { "adam", "adamw", "lion" }, "the optimizers adam, adamw and lion" },
    { &O.patience, &O.schedule, { "plateau" }, "the schedule plateau" },
    { &O.gamma,
      &O.schedule,
      { "step", "plateau", "exponential" },
      "the schedules step, plateau and exponential" },
};
enum { OF_NAMES = sizeof of_names / sizeof *of_names };

/* Options of the spectrogram, which a model of a file has in it. */
static const void *const of_pictures[] = { &O.mels, &O.low, &O.high, &O.normalize, &O.mask };
enum { OF_PICTURES = sizeof of_pictures / sizeof *of_pictures };

static unsigned kind_of(const char *set) {
    if (lm_is_set(set)) return LANGUAGE;
    if (sound_is_set(set)) return SOUNDS;
    if (!strncmp(set, "toy:", 4)) return POINTS;
    return strcmp(set, "sst2") ? IMAGES : SENTENCES;
}

static int wrong(const verb *v, const void *to, const char *what, const char *has) {
    const option *row = train_rows;
    while (row->to != to) row++;
    return usage_error(v, "%s is for %s, not for %s", row->name, what, has);
}

static bool is_one_of(const char *name, const char *const names[3]) {
    for (int k = 0; k < 3 && names[k]; k++)
        if (!strcmp(name, names[k])) return true;
    return false;
}

int train_fits(const verb *v, const train_options *o) {
    const unsigned kind = kind_of(o->set);
    for (int k = 0; k < OF_SETS; k++)
        if (option_given(of_sets[k].to) && !(of_sets[k].kinds & kind))
            return wrong(v, of_sets[k].to, of_sets[k].what, o->set);
    if (kind == SOUNDS && !strncmp(o->model, "sound-cnn:", 10) && !sound_net_is(o->model))
        return usage_error(v, "sound-cnn:WIDTH,... has 1 to 8 widths of 1 to 4096, not \"%s\"",
                           o->model + 10);
    for (int k = 0; k < OF_PICTURES; k++)
        if (option_given(of_pictures[k]) && !sound_is_own(o->model))
            return wrong(v, of_pictures[k], "sound-cnn and zoo:NAME", o->model);
    if (option_given(&o->test_part) && o->test_part == 0 && kind != POINTS)
        return usage_error(v, "--test-part 0: something must be for testing");
    for (int k = 0; k < OF_NAMES; k++)
        if (option_given(of_names[k].to) && !is_one_of(*of_names[k].of, of_names[k].names))
            return wrong(v, of_names[k].to, of_names[k].what, *of_names[k].of);
    return EXIT_OK;
}
