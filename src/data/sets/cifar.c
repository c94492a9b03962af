/* CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html), binary and python versions.
 *
 * A binary record is a byte for the label (CIFAR-100: for the superclass, then for the class) and
 * 3072 for the image, its red, green and blue plane of 32 x 32.  A python file is a pickled dict
 * with the images as an array and the labels as a list. */
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/text.h"
#include "data/sets/dataset_internal.h"
#include "tensor/pickle/pickle.h"

enum { IMAGE = 3 * 32 * 32, FILES = 5 };

static const char *const ten[] = { "airplane", "automobile", "bird",  "cat",  "deer",
                                   "dog",      "frog",       "horse", "ship", "truck" };
static const char *const hundred[] = {
    "apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
    "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
    "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
    "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
    "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
    "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
    "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
    "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
    "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
    "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
    "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
    "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
    "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
    "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
    "table",       "tank",          "telephone", "television", "tiger",        "tractor",
    "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
    "willow_tree", "wolf",          "woman",     "worm"
};

typedef struct version {
    int classes, label_at,
        head; /* where the label is in a binary record, and where its image begins */
    const char *const *names;
    const char *labels; /* key of the python version */
    const char *train[FILES], *test;
} version;
static const version cifar10 = {
    10,          0,
    1,           ten,
    "labels",    { "data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5" },
    "test_batch"
};
static const version cifar100 = { 100, 1, 2, hundred, "fine_labels", { "train" }, "test" };

/* One file of a data set. */
typedef struct part {
    const version *v;
    fac_text path;
    fac_file *file;
    bool python;
    fac_arena arena;
    int64_t count;
    const unsigned char *images;    /* python: one after the other; binary: records */
    const fac_pickle_value *labels; /* python */
} part;

static fac_status read_binary(part *p, fac_error *err) {
    const size_t bytes = fac_file_size(p->file), record = (size_t)p->v->head + IMAGE;
    p->count = (int64_t)(bytes / record);
    p->images = fac_file_data(p->file);
    if (bytes % record == 0) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT,
                     "%s: record %lld is cut off: %zu of its %zu bytes are there", p->path.s,
                     (long long)p->count, bytes % record, record);
}

static fac_status read_python(part *p, fac_error *err) {
    fac_pickle pickle;
    FAC_TRY(
        fac_pickle_read(&p->arena, fac_file_data(p->file), fac_file_size(p->file), &pickle, err));
    const bool dict = pickle.value->kind == FAC_PICKLE_DICT;
    const fac_pickle_value *data = dict ? fac_pickle_get(pickle.value, "data") : NULL;
    p->labels = dict ? fac_pickle_get(pickle.value, p->v->labels) : NULL;
    if (data && data->kind == FAC_PICKLE_OTHER)
        return fac_raise(err, FAC_E_UNSUPPORTED, "its \"data\" is %s", data->text);
    if (!data || data->kind != FAC_PICKLE_ARRAY || !data->tensor || data->dtype != FAC_U8 ||
        data->tensor->dims.n != 2 || data->tensor->dims.d[1] != IMAGE || !p->labels ||
        p->labels->kind != FAC_PICKLE_LIST)
        return fac_raise(err, FAC_E_FORMAT,
                         "it is no dict with \"data\", an array u8[N,%d], and \"%s\", a list",
                         IMAGE, p->v->labels);
    p->count = data->tensor->dims.d[0];
    p->images = (const unsigned char *)data->tensor->storage->text;
    if (p->labels->n == (size_t)p->count) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT, "it has %lld images and %zu labels", (long long)p->count,
                     p->labels->n);
}

/* NAME.bin or, if only that is there, NAME. */
static fac_status open_part(const char *folder, const char *name, part *p, fac_error *err) {
    fac_text binary = { 0 };
    fac_text_print(&p->path, "%s/%s", folder, name);
    fac_text_print(&binary, "%s/%s.bin", folder, name);
    fac_status status = FAC_OK;
    if (p->path.failed || binary.failed) {
        status = fac_raise_memory(err, "a path");
    } else if (access(binary.s, F_OK) == 0 || access(p->path.s, F_OK)) {
        fac_text path = p->path;
        p->path = binary;
        binary = path;
    } else {
        p->python = true;
    }
    fac_text_free(&binary);
    if (!status) status = fac_file_map(p->path.s, &p->file, err);
    if (status) return status;
    if (!p->python) return read_binary(p, err);
    status = read_python(p, err);
    return status ? fac_raise_in(err, status, "%s", p->path.s) : FAC_OK;
}

static void close_part(part *p) {
    fac_text_free(&p->path);
    fac_arena_free(&p->arena);
    fac_file_free(p->file);
}

static fac_status take(const part *p, fac_dataset *d, int64_t at, fac_error *err) {
    const size_t each = IMAGE + (p->python ? 0 : (size_t)p->v->head);
    const unsigned char *from = p->images;
    for (int64_t i = 0; i < p->count; i++, from += each) {
        const fac_pickle_value *given = p->python ? p->labels->item[i] : NULL;
        const int64_t label = !given                          ? from[p->v->label_at]
                              : given->kind == FAC_PICKLE_INT ? given->i
                                                              : -1;
        if (label < 0 || label >= p->v->classes)
            return fac_raise(err, FAC_E_FORMAT,
                             "%s: record %lld has label %lld, which is not 0 to %d", p->path.s,
                             (long long)i, (long long)label, p->v->classes - 1);
        fac_dataset_labels(d)[at + i] = label;
        memcpy(fac_dataset_bytes(d) + (at + i) * IMAGE, from + (p->python ? 0 : p->v->head), IMAGE);
    }
    return FAC_OK;
}

static fac_status read_all(const version *v, const char *folder, bool train, fac_dataset *out,
                           fac_error *err) {
    part parts[FILES] = { { .v = v }, { .v = v }, { .v = v }, { .v = v }, { .v = v } };
    fac_dataset d = { 0 };
    fac_status status = FAC_OK;
    int64_t count = 0, at = 0;
    int n = 0;
    for (; n < (train ? FILES : 1) && (!train || v->train[n]) && !status; n++) {
        status = open_part(folder, train ? v->train[n] : v->test, &parts[n], err);
        count += parts[n].count;
    }
    if (!status) status = fac_dataset_new(&d, count, fac_shape(3, 32, 32), false, folder, err);
    for (int k = 0; k < n && !status; k++) {
        status = take(&parts[k], &d, at, err);
        at += parts[k].count;
    }
    for (int k = 0; k < n; k++) close_part(&parts[k]);
    if (status) {
        fac_dataset_free(&d);
        return status;
    }
    d.classes = v->classes;
    d.class_names = v->names;
    static const double mean[3] = { 0.485, 0.456, 0.406 },
                        std[3] = { 0.229, 0.224, 0.225 }; /* as the preset "cifar10" */
    memcpy(d.mean, mean, sizeof mean);
    memcpy(d.std, std, sizeof std);
    *out = d;
    return FAC_OK;
}

fac_status fac_dataset_cifar10(const char *folder, bool train, fac_dataset *out, fac_error *err) {
    return read_all(&cifar10, folder, train, out, err);
}

fac_status fac_dataset_cifar100(const char *folder, bool train, fac_dataset *out, fac_error *err) {
    return read_all(&cifar100, folder, train, out, err);
}
