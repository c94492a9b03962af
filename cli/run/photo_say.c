/* How a photo was prepared, for people and for machines. */
#include "photo.h"
#include <string.h>

static const struct {
    const char *word, *phrase;
} sources[] = { [PHOTO_OPTION] = { "option", "by --preset" },
                [PHOTO_METADATA] = { "metadata", "of the model's metadata" },
                [PHOTO_SIDECAR] = { "sidecar", "of " },
                [PHOTO_ZOO] = { "zoo", "of the zoo" },
                [PHOTO_TRAINING] = { "training", "of the training" },
                [PHOTO_DATA] = { "data", "of the data set" },
                [PHOTO_GUESS] = { "guess", "guessed" } };

void photo_plan_print(const photo_plan *p) {
    char spec[FAC_PREPROCESS_TEXT];
    if (p->from == PHOTO_NONE) return;
    fac_preprocess_print(&p->how, spec, sizeof spec);
    const bool named = *p->name && !p->changed;
    printf("preset %s (%s%s%s)", named ? p->name : spec, sources[p->from].phrase,
           text_if(p->from == PHOTO_SIDECAR, p->file), text_if(p->changed, ", changed by options"));
    if (p->from == PHOTO_GUESS)
        printf(": nothing says how this model wants its photos; --preset does, and `facula edit "
               "--set-preset` for good");
    putchar('\n');
}

void photo_plan_json(const photo_plan *p, cJSON *to) {
    char spec[FAC_PREPROCESS_TEXT];
    if (p->from == PHOTO_NONE) return;
    fac_preprocess_print(&p->how, spec, sizeof spec);
    cJSON *j = cJSON_AddObjectToObject(to, "preset");
    if (*p->name)
        cJSON_AddStringToObject(j, "name", p->name);
    else
        cJSON_AddNullToObject(j, "name");
    cJSON_AddStringToObject(j, "from", sources[p->from].word);
    if (*p->file) cJSON_AddStringToObject(j, "file", p->file);
    cJSON_AddBoolToObject(j, "changed", p->changed);
    cJSON_AddStringToObject(j, "spec", spec);
}

void photo_presets(void) {
    printf("\npresets\n");
    for (const fac_preset *p = fac_presets; p->name; p++) help_row(p->name, 20, p->help);
    printf("\n");
    help_paragraphs(
        "A preset in full is a list of KEY=VALUE, alone or after a name:\n"
        "  --preset caffe,crop=227\n"
        "  --preset size=256,crop=224,order=bgr,range=0..255,mean=104,117,123\n\n"
        "The keys are size=N|HxW|keep, crop=N|HxW, interpolation=NAME, order=rgb|bgr|grey, "
        "range=0..1|0..255|-1..1 (or scale=X), mean=A[,B,C], std=A[,B,C], layout=nchw|nhwc.\n\n"
        "Without --preset, the model's metadata (`facula edit --set-preset`), a file MODEL.json or "
        "preprocessor_config.json beside it, or the zoo tell the preset.  Else it is guessed, and "
        "the answer says so.");
}
