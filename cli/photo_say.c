/* How a photo was prepared, for people and for machines. */
#include "photo.h"
#include <string.h>

static const char *const words[] = {
    [PHOTO_OPTION] = "option", [PHOTO_METADATA] = "metadata", [PHOTO_SIDECAR] = "sidecar", [PHOTO_ZOO] = "zoo",
    [PHOTO_TRAINING] = "training", [PHOTO_DATA] = "data", [PHOTO_GUESS] = "guess" };

static const char *const phrases[] = {
    [PHOTO_OPTION] = "by --preset", [PHOTO_METADATA] = "of the model's metadata", [PHOTO_SIDECAR] = "of ",
    [PHOTO_ZOO] = "of the zoo", [PHOTO_TRAINING] = "of the training", [PHOTO_DATA] = "of the data set",
    [PHOTO_GUESS] = "guessed" };

void photo_plan_print(const photo_plan *p) {
    char spec[FAC_PREPROCESS_TEXT];
    if (p->from == PHOTO_NONE) return;
    fac_preprocess_print(&p->how, spec, sizeof spec);
    printf("preset %s (%s%s%s)", *p->name && !p->changed ? p->name : spec, phrases[p->from],
           p->from == PHOTO_SIDECAR ? p->file : "", p->changed ? ", changed by options" : "");
    if (p->from == PHOTO_GUESS)
        printf(": nothing says how this model wants its photos; --preset does, and `facula edit --set-preset` for good");
    putchar('\n');
}

void photo_plan_json(const photo_plan *p, cJSON *to) {
    char spec[FAC_PREPROCESS_TEXT];
    if (p->from == PHOTO_NONE) return;
    fac_preprocess_print(&p->how, spec, sizeof spec);
    cJSON *j = cJSON_AddObjectToObject(to, "preset");
    if (*p->name) cJSON_AddStringToObject(j, "name", p->name);
    else cJSON_AddNullToObject(j, "name");
    cJSON_AddStringToObject(j, "from", words[p->from]);
    if (*p->file) cJSON_AddStringToObject(j, "file", p->file);
    cJSON_AddBoolToObject(j, "changed", p->changed);
    cJSON_AddStringToObject(j, "spec", spec);
}

void photo_presets(void) {
    printf("\npresets\n");
    for (const fac_preset *p = fac_presets; p->name; p++) printf("  %-20s %s\n", p->name, p->help);
    printf("\nA preset in full is KEY=VALUE items, after a name or alone: --preset caffe,crop=227, --preset size=256,crop=224,\n"
           "order=bgr,range=0..255,mean=104,117,123.  size=N|HxW|keep, crop=N|HxW, interpolation=NAME, order=rgb|bgr|grey,\n"
           "range=0..1|0..255|-1..1 (or scale=X), mean=A[,B,C], std=A[,B,C], layout=nchw|nhwc.  Without --preset the model's\n"
           "metadata says it (`facula edit --set-preset`), or MODEL.json or preprocessor_config.json beside it, or the zoo;\n"
           "else it is guessed, and the answer says so.\n");
}
