/* facula train: data sets and their defaults by name. */
#include <string.h>
#include "train.h"

const train_set train_sets[] = {
    { "mnist",
      "handwritten digits, 60,000 + 10,000 of 28 x 28; --data is the folder of the four files",
      NULL, "cnn", "one-cycle", "crop", 6, 128, 1e-2 },
    { "fashion-mnist", "clothes, 60,000 + 10,000 of 28 x 28; Debian's dataset-fashion-mnist",
      "/usr/share/datasets/fashion-mnist", "cnn", "one-cycle", "flip", 7, 128, 1e-2 },
    { "cifar10",
      "ten kinds of things, 50,000 + 10,000 of 32 x 32 in colour; the binary or the python version",
      NULL, "resnet", "one-cycle", "crop,flip", 15, 128, 1e-2 },
    { "cifar100", "a hundred kinds of things; likewise", NULL, "resnet", "one-cycle", "crop,flip",
      20, 128, 1e-2 },
    { "image-folder", "a folder of photos for each class; a tenth is for testing", NULL, "resnet",
      "one-cycle", "crop,flip", 20, 32, 3e-3 },
    { "sst2",
      "sentences of film reviews, bad or good, 6,920 + 872: train.tsv and dev.tsv of the Stanford "
      "Sentiment Treebank",
      NULL, "text-cnn", "cosine", NULL, 5, 50, 2e-3 },
    { "spoken-digits",
      "ten digits of several speakers, CLASS_SPEAKER_INDEX.wav; indices 0 to 4 are for testing",
      NULL, "sound-cnn", "one-cycle", "shift,noise", 25, 64, 2.5e-3 },
    { "sound-folder",
      "a folder of sounds for each class, or a table of lines FILE,label[,start,end]; a tenth of "
      "the recordings is for testing",
      NULL, "sound-cnn", "one-cycle", "shift,gain,noise", 25, 32, 2.5e-3 },
    { "toy:NAME",
      "points of two classes: simple, diag, split, xor, circle, spiral, or a "
      "file toy:FILE.csv of lines x,y,label",
      NULL, "mlp", "one-cycle", NULL, 500, 25, 5e-3 },
    { "text", "a text for a language model", NULL, "gpt:4x4x128", "cosine", NULL, 0, 12, 1e-3 },
    { .name = NULL },
};

static bool is_toy(const char *set) { return !strncmp(set, "toy:", 4); }

static const train_set *find(const char *name) {
    for (const train_set *s = train_sets; s->name; s++)
        if (!strcmp(s->name, name) || (is_toy(s->name) && is_toy(name))) return s;
    return NULL;
}

int train_defaults(train_options *o) {
    const train_set *s = find(o->set);
    if (!s) return usage_error(verb_find("train"), "there is no data set \"%s\"", o->set);
    if (!o->data) o->data = s->folder;
    if (lm_is_set(o->set)) {
        const int code = lm_defaults(o);
        if (code) return code;
    }
    if (!o->data && !is_toy(o->set))
        return usage_error(verb_find("train"), "%s needs --data %s", o->set,
                           lm_is_set(o->set) ? "FILE" : "DIR");
    if (!o->model) o->model = s->model;
    if (!o->optimizer) o->optimizer = "adam";
    if (!o->precision) o->precision = "default";
    const fac_optim *optim = fac_optim_find(o->optimizer);
    if (!optim)
        return usage_error(verb_find("train"), "there is no optimizer \"%s\"", o->optimizer);
    const bool ours = text_is_model(o->model) || train_model_ours(o->model) ||
                      (sound_is_set(o->set) && sound_net_is(o->model));
    const bool usual = !strcmp(o->optimizer, "adam") && (!strcmp(o->model, s->model) || ours);
    if (option_given(&o->weight_decay) && o->weight_decay == 0)
        o->weight_decay = -1;                                 /* not the optimizer's own */
    if (option_given(&o->mask) && o->mask <= 0) o->mask = -1; /* recorded: none */
    if (o->mask == 0 && sound_is_set(o->set)) o->mask = 0.1;
    if (!o->lr) o->lr = usual ? s->lr : optim->lr;
    if (!o->augment) o->augment = s->augment ? s->augment : "none";
    if (!o->schedule) o->schedule = s->schedule;
    if (!o->epochs) o->epochs = s->epochs;
    if (!o->batch) o->batch = s->batch;
    return EXIT_OK;
}

/* ---- data ---- */

static fac_status read_points(const train_options *o, fac_dataset *out, fac_error *err) {
    const fac_points_opts p = { .count = o->points, .seed = (uint64_t)o->seed, .noise = o->noise };
    const char *name = o->set + 4;
    if (ends_with(name, ".csv")) return fac_dataset_points_csv(name, out, err);
    return fac_dataset_points(name, &p, out, err);
}

/* As in MiniTorch the points of the test are those of the training, unless a part is asked for. */
static fac_status load_points(const train_options *o, fac_dataset *train, fac_dataset *test,
                              fac_error *err) {
    fac_dataset all;
    if (o->test_part == 0) {
        const fac_status first = read_points(o, train, err);
        return first ? first : read_points(o, test, err);
    }
    fac_status status = read_points(o, &all, err);
    if (status) return status;
    status = fac_dataset_split(&all, o->test_part, (uint64_t)o->seed, train, test, err);
    fac_dataset_free(&all);
    return status;
}

static fac_status load(const train_options *o, int height, int width, fac_dataset *train,
                       fac_dataset *test, fac_error *err) {
    fac_dataset all = { 0 };
    fac_status status;
    if (is_toy(o->set)) return load_points(o, train, test, err);
    if (!strcmp(o->set, "image-folder")) {
        status = fac_dataset_images(o->data, height, width, &all, err);
        if (!status) status = fac_dataset_split(&all, 0.1, (uint64_t)o->seed, train, test, err);
        fac_dataset_free(&all);
        return status;
    }
    static const char *const clothes[] = {
        "T-shirt", "trouser", "pullover", "dress", "coat",
        "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"
    };
    fac_status (*read)(const char *, bool, fac_dataset *, fac_error *) =
        !strcmp(o->set, "cifar10")    ? fac_dataset_cifar10
        : !strcmp(o->set, "cifar100") ? fac_dataset_cifar100
                                      : fac_dataset_mnist;
    status = read(o->data, true, train, err);
    if (!status) status = read(o->data, false, test, err);
    if (!status && !strcmp(o->set, "fashion-mnist"))
        train->class_names = test->class_names = clothes;
    return status;
}

/* Sets that come in one size: *d becomes height x width, in colour where the model wants that. */
static fac_status resize(int64_t channels, int height, int width, fac_dataset *d, fac_error *err) {
    fac_dataset sized;
    if (channels != 3) channels = d->item.d[0];
    if (d->item.d[0] == channels && d->item.d[1] == height && d->item.d[2] == width) return FAC_OK;
    fac_status status = fac_dataset_resize(d, (int)channels, height, width, &sized, err);
    if (status) return status;
    fac_dataset_free(d);
    *d = sized;
    return FAC_OK;
}

int train_data(train_options *o, fac_dims want, fac_dataset *train, fac_dataset *test) {
    fac_error err = { 0 };
    int height = want.n == 4 && want.d[2] > 0 ? (int)want.d[2] : 64,
        width = want.n == 4 && want.d[3] > 0 ? (int)want.d[3] : 64;
    fac_dims size;
    if (!strcmp(o->set, "sst2")) return text_data(o, train, test);
    if (sound_is_set(o->set)) return sound_data(o, train, test);
    if (o->size) {
        const int64_t most = 16384;
        if (!dims_parse(o->size, &size) || size.n != 2 || size.d[0] < 1 || size.d[1] < 1 ||
            size.d[0] > most || size.d[1] > most)
            return usage_error(verb_find("train"), "--size needs HEIGHTxWIDTH, not \"%s\"",
                               o->size);
        height = (int)size.d[0];
        width = (int)size.d[1];
    }
    const int64_t channels = want.n == 4 ? want.d[1] : 0;
    fac_status status = load(o, height, width, train, test, &err);
    if (!status && o->size) status = resize(channels, height, width, train, &err);
    if (!status && o->size) status = resize(channels, height, width, test, &err);
    if (status) {
        if (!strcmp(o->set, "fashion-mnist") && err.status == FAC_E_IO)
            fprintf(stderr,
                    "facula: is the package installed?  apt-get install dataset-fashion-mnist\n");
        return fail(&err);
    }
    return EXIT_OK;
}
