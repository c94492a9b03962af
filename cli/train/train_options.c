/* facula train: its options.  Those up to --out are what a training is: they are recorded in
 * run.json under their names, and taken from there when it is resumed. */
#include <string.h>
#include "train.h"

train_options train_given;
#define O train_given

const option train_rows[] = {
    { "--data", OPTION_TEXT, &O.data, "DIR", "folder of the data set, or file of a text or table" },
    { "--model", OPTION_TEXT, &O.model, "NAME",
      "a name from below, zoo:NAME or FILE.onnx; default: by data set" },
    { "--weights", OPTION_TEXT, &O.weights, "FILE",
      "start from these weights, or from those of another training, whose --out folder is DIR; "
      "default: random ones" },
    { "--quantize", OPTION_LIST, &O.quantize, "SCHEME",
      "train layers of few bits, such as lq:w1a2, or 'conv2*=lq:w2a2' for layers of these names; "
      "may be repeated; see below" },
    { "--rest", OPTION_TEXT, &O.rest, "int8|float",
      "with --quantize: what weights of the other layers are in model.fac and model.onnx; default "
      "float" },
    { "--freeze", OPTION_LIST, &O.freeze, "PATTERN",
      "parameters that are not trained, such as 'conv1.*'; may be repeated" },
    { "--epochs", OPTION_INT, &O.epochs, "N",
      "how often all samples are seen; default: by data set", OPTION_COUNT },
    { "--batch", OPTION_INT, &O.batch, "N", "samples of a step; default: by data set",
      "[1, 1048576]" },
    { "--accumulate", OPTION_INT, &O.accumulate, "N",
      "add up the gradients of N batches for a step; default 1", "[1, 1048576]" },
    { "--optimizer", OPTION_TEXT, &O.optimizer, "NAME",
      "sgd, adam, adamw, rmsprop, adagrad or lion; default adam" },
    { "--lr", OPTION_REAL, &O.lr, "X", "highest learning rate; default: by data set and optimizer",
      "(0, inf)" },
    { "--momentum", OPTION_REAL, &O.momentum, "X", "momentum of sgd and rmsprop; default 0",
      "[0, 1)" },
    { "--nesterov", OPTION_FLAG, &O.nesterov, NULL, "with sgd: use Nesterov's momentum" },
    { "--weight-decay", OPTION_REAL, &O.weight_decay, "X",
      "weight decay; default 0, of adamw 0.01; negative: none" },
    { "--spare-vectors", OPTION_FLAG, &O.spare_vectors, NULL,
      "exempt biases and norms from weight decay" },
    { "--schedule", OPTION_TEXT, &O.schedule, "NAME",
      "learning rate over time: constant, step, exponential, cosine, one-cycle, linear, "
      "polynomial, restarts or plateau (by the test loss); default: by data set" },
    { "--warmup", OPTION_INT, &O.warmup, "N",
      "steps at the beginning in which the learning rate rises; default 0", OPTION_TALLY },
    { "--patience", OPTION_INT, &O.patience, "N",
      "with plateau: epochs without progress before the rate falls; default 10", OPTION_COUNT },
    { "--gamma", OPTION_REAL, &O.gamma, "X",
      "the rate falls to this share of itself: with step and plateau, default 0.1; with "
      "exponential, 0.95",
      "(0, 1]" },
    { "--clip", OPTION_REAL, &O.clip, "X",
      "largest norm of all gradients together; default: no limit", "(0, inf)" },
    { "--clip-value", OPTION_REAL, &O.clip_value, "X",
      "largest element of a gradient; default: no limit", "(0, inf)" },
    { "--ema", OPTION_REAL, &O.ema, "X",
      "test and keep a moving average of the parameters with this decay, such as 0.999", "[0, 1)" },
    { "--label-smoothing", OPTION_REAL, &O.label_smoothing, "X",
      "share of a label that is spread over all classes; default 0", "[0, 1)" },
    { "--augment", OPTION_TEXT, &O.augment, "LIST",
      "change training samples at random, such as crop,flip,cutout=8; default: by data set; see "
      "below" },
    { "--size", OPTION_TEXT, &O.size, "HxW",
      "resize images, and the model's input, to this size; default of image-folder: that of the "
      "model, else 64x64" },
    { "--glove", OPTION_TEXT, &O.glove, "FILE",
      "texts: a text file of vectors of words to begin with (GloVe)" },
    { "--rate", OPTION_INT, &O.rate, "HZ", "sounds: samples per second; default: by data set",
      "[1000, 192000]" },
    { "--seconds", OPTION_REAL, &O.seconds, "X",
      "sounds: length of a window in seconds; default: by data set", "(0, 600]" },
    { "--mels", OPTION_INT, &O.mels, "N", "sounds: bands of the spectrogram; default: by data set",
      "[8, 1024]" },
    { "--low", OPTION_REAL, &O.low, "HZ", "sounds: lowest frequency of the bands, in Hz; default 0",
      "[0, 96000)" },
    { "--high", OPTION_REAL, &O.high, "HZ",
      "sounds: highest frequency of the bands, in Hz; default: half of --rate", "(0, 96000]" },
    { "--normalize", OPTION_TEXT, &O.normalize, "NAME",
      "sounds: clip: each spectrogram has mean 0 and deviation 1; bands: each band has mean 0, and "
      "the whole deviation 1; default clip" },
    { "--mask", OPTION_REAL, &O.mask, "PART",
      "sounds: SpecAugment: up to this share of the time and of the bands becomes the mean; 0: "
      "none; default 0.1",
      "[-1, 0.9]" },
    { "--sound-memory", OPTION_INT, &O.sound_memory, "MIB",
      "sounds: memory for recordings, for each of the two parts; the others are read from their "
      "files again for each window, which is slow; default 2048",
      "[1, 1048576]" },
    { "--hold-out", OPTION_TEXT, &O.hold_out, "NAME",
      "sounds: test with the recordings that have this word in their names, such as a speaker's" },
    { "--points", OPTION_INT, &O.points, "N", "toy: how many points; default 50", "[1, 1000000]" },
    { "--noise", OPTION_REAL, &O.noise, "X",
      "toy: deviation of noise on the coordinates of a square of width 1; default 0", "[0, 10]" },
    { "--test-part", OPTION_REAL, &O.test_part, "X",
      "share of the samples that is for testing; default of sounds and text 0.1; of toy: all "
      "points are for both, as in MiniTorch",
      "[0, 1)" },
    { "--seed", OPTION_INT, &O.seed, "S", "seed of everything random; default 0" },
    { "--precision", OPTION_TEXT, &O.precision, "NAME", PRECISION_HELP },
    { "--tokenizer", OPTION_TEXT, &O.tokenizer, "NAME",
      "text: char: a token per character; or bpe:N: N tokens, learned from the text; default "
      "char" },
    { "--context", OPTION_INT, &O.context, "N",
      "text: tokens that the model sees at once; default 64", "[1, 1048576]" },
    { "--lora", OPTION_TEXT, &O.lora, "SPEC",
      "text: train adapters of some layers alone, such as "
      "r=8,alpha=16,dropout=0.05,q_proj,v_proj" },
    { "--scheme", OPTION_TEXT, &O.scheme, "NAME",
      "text: with a model of a .gguf: the type of the weights in DIR/model.gguf, such as q8_0 or "
      "f16; default: as they were" },
    { "--steps", OPTION_INT, &O.steps, "N",
      "text: steps of the whole training; default 2000, or as --epochs says", OPTION_COUNT },
    { "--dropout", OPTION_REAL, &O.dropout, "X",
      "text: dropout of a new model, also in its attention; default 0", "[0, 1)" },
    { "--beta2", OPTION_REAL, &O.beta2, "X",
      "with adam, adamw and lion: decay of the second moment; default 0.999, of text 0.99",
      "(0, 1)" },
    { "--test-batches", OPTION_INT, &O.test_batches, "N",
      "text: batches of the test part for each test; default 100", OPTION_COUNT },
    { "--evaluate-every", OPTION_INT, &O.evaluate_every, "N",
      "epochs, of text steps, from test to test; default 1, of text 250", OPTION_COUNT },
    { "--tensorboard", OPTION_TEXT, &O.tensorboard, "DIR",
      "write event files for TensorBoard: curves, histograms, graph, pictures" },
    { "--out", OPTION_TEXT, &O.out, "DIR",
      "write run.json, logs (log.csv), checkpoint.safetensors, model.safetensors and model.onnx to "
      "this folder" },
    { "--merge", OPTION_FLAG, &O.merge, NULL,
      "with --lora: write the whole model, too, to DIR/merged" },
    { "--overwrite", OPTION_FLAG, &O.overwrite, NULL,
      "replace another training that the --out folder holds" },
    { "--resume", OPTION_TEXT, &O.resume, "DIR", "go on with the training of this --out folder" },
    LINK_ROOT_OPTION,
    { "--recompute", OPTION_REAL, &O.recompute, "SHARE",
      "keep this share of the forward values, and compute the others again: less memory, more time",
      "(0, 1)" },
    { "--detect-anomaly", OPTION_FLAG, &O.detect_anomaly, NULL,
      "stop at the first operation that makes NaN or infinity; slow" },
    { "--show", OPTION_INT, &O.show, "N", "print N test samples with their predictions at the end",
      OPTION_TALLY },
    { "--quiet", OPTION_FLAG, &O.quiet, NULL, "print one line at the end instead of charts" },
    DEVICE_OPTIONS(O.device),
    { "--json", OPTION_FLAG, &O.json, NULL,
      "print JSON, a line for each epoch and a last one for the whole, as docs/JSON.md describes" },
    { 0 }
};

bool train_recorded(const option *o) {
    for (const option *row = train_rows; strcmp(row->name, "--out"); row++)
        if (row == o) return true;
    return false;
}

/* What is wrong with the numbers, or NULL. */
const char *train_wrong(const train_options *o) {
    numerics how;
    bool bytes;
    if (!precision_parse(o->precision, &how)) return "--precision is " PRECISION_NAMES;
    if (!rest_chosen(o->rest, &bytes)) return "--rest is int8 or float";
    if (o->normalize && strcmp(o->normalize, "clip") && strcmp(o->normalize, "bands"))
        return "--normalize is clip or bands";
    if (o->rest && !o->quantize.n) return "--rest goes with --quantize";
    return NULL;
}

const char *train_wrong_scheme(const train_options *o, const char **which) {
    for (int i = 0; i < o->quantize.n; i++) {
        const char *wrong = fac_quantizing_wrong(o->quantize.at[i]);
        *which = o->quantize.at[i];
        if (wrong) return wrong;
    }
    return NULL;
}

static void list_augmentation(void) {
    static const char *const rows[][2] = {
        { "crop=PIXELS", "black pixels around, then a random window of the old size; 28 x 28: 2, "
                         "others: an eighth of the side" },
        { "flip", "half of the images are mirrored, left to right" },
        { "resize=SHARE", "a window of at least this share of the area becomes the image; 0.5" },
        { "rotate=DEGREES", "by up to so many degrees to either side; 10" },
        { "colour=X", "brightness=X, contrast=X and saturation=X together: factors from 1 - X to "
                      "1 + X; 0.4" },
        { "hue=SHARE", "by up to this share of a turn; 0.1" },
        { "cutout=PIXELS", "a square of this side becomes 0; a quarter of the side" },
        { "erase=SHARE", "in this share of the images a random rectangle becomes 0; 0.5" },
        { "mixup=ALPHA", "images and labels are mixed with others, by shares from Beta(ALPHA, "
                         "ALPHA); 0.2" },
        { "shift=SHARE", "waveforms are rotated by up to this share of their length; 0.1" },
        { "gain=DB", "waveforms become louder or softer by up to so many dB; 6" },
        { "noise=SHARE", "waveforms get white noise of up to this share of their loudness; 0.05" },
        { "none", "no changes" },
    };
    printf("\naugmentation: any of these with commas between, and what each takes without =\n");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) help_row(rows[k][0], 14, rows[k][1]);
}

static void list_models(void) {
    printf("\nmodels of our own, which fit the samples\n");
    help_row("mlp", 14,
             "mlp:16,16,tanh has hidden layers of these widths, with relu, tanh, "
             "sigmoid, gelu or linear after each");
    help_row("cnn, resnet", 14, "for images");
    help_row("resnet20", 14, "ResNet-20 of He et al. 2015, with 16, 32 and 64 channels");
    help_row("text-cnn", 14,
             "text-cnn:100,3-4-5,0.25 has 100 filters of each of these widths in "
             "words, and this dropout");
    help_row("sound-cnn", 14,
             "sound-cnn:16,32,64,128 has convolutions of so many channels; "
             "16,32,64 without the list");
}

static void list_schemes(void) {
    printf("\n");
    help_paragraphs(
        "schemes of --quantize: W bits of weights, A bits of what layers read; the first "
        "and the last layer stay floats");
    help_row("lq:wWaA", 14, "learned levels (LQ-Nets), 1 to 4 bits; 32: floats");
    help_row("dorefa:wWaA", 14, "even levels within [-1, 1] and [0, 1], 1 to 4 bits");
    help_row("lsq:wWaA", 14,
             "even levels with learned steps; weights of 2 to 8 bits, activations "
             "of 1 to 8");
    help_row("abc:wWaA", 14, "sums of W and of A signs (ABC-Net), 1 to 8");
    help_row("bnn", 14, "signs times signs");
    help_row("xnor", 14, "the same with a factor for each filter");
    help_row("bireal", 14, "the same with a smoother gradient");
    help_row("reactnet", 14, "the same with learned thresholds, too");
    help_row("bwn", 14, "signs times floats");
}

void train_list(void) {
    list_augmentation();
    list_models();
    list_schemes();
    printf("\ndata sets and their defaults; the optimizer is adam\n");
    for (const train_set *s = train_sets; s->name; s++) {
        if (lm_is_set(s->name)) continue;
        char row[256];
        help_row(s->name, 14, s->help);
        snprintf(row, sizeof row,
                 "--model %s --epochs %ld --batch %ld --lr %g --schedule %s "
                 "--augment %s%s%s",
                 s->model, s->epochs, s->batch, s->lr, s->schedule, text_or(s->augment, "none"),
                 text_if(s->folder, " --data "), text_or(s->folder, ""));
        help_row("", 14, row);
    }
    lm_list();
    printf("Models of the zoo and of files have --lr %g with adam.\n", fac_optim_find("adam")->lr);
}
