/* facula train: its options.  Those up to --out are what a training is: they are recorded in
 * run.json under their names, and taken from there when it is resumed. */
#include <string.h>
#include "train.h"

train_options train_given;
#define O train_given

const option train_rows[] = {
    { "--data", OPTION_TEXT, &O.data, "DIR", "where the data set is" },
    { "--model", OPTION_TEXT, &O.model, "NAME",
      "a name from below, zoo:NAME or FILE.onnx; default by data set" },
    { "--weights", OPTION_TEXT, &O.weights, "FILE",
      "start from these; or DIR, the --out folder "
      "of another training; random\n"
      "                             without" },
    { "--quantize", OPTION_LIST, &O.quantize, "SCHEME",
      "layers of few bits, such as lq:w1a2; or "
      "'conv2*=lq:w2a2' for layers of\n"
      "                             these names; may be repeated, see below" },
    { "--rest", OPTION_TEXT, &O.rest, "int8|float",
      "of model.fac and model.onnx: weights of layers that --quantize leaves; default\n"
      "                             float" },
    { "--freeze", OPTION_LIST, &O.freeze, "PATTERN",
      "parameters that stay as they are: 'conv1.*'; may be repeated" },
    { "--epochs", OPTION_INT, &O.epochs, "N", "how often over all samples", OPTION_COUNT },
    { "--batch", OPTION_INT, &O.batch, "N", "samples in a step", "[1, 1048576]" },
    { "--accumulate", OPTION_INT, &O.accumulate, "N",
      "a step takes the gradients of so many batches; default 1", "[1, 1048576]" },
    { "--optimizer", OPTION_TEXT, &O.optimizer, "NAME",
      "sgd, adam, adamw, rmsprop, adagrad or lion; default adam" },
    { "--lr", OPTION_REAL, &O.lr, "X", "highest learning rate; default by data set and optimizer",
      "(0, inf)" },
    { "--momentum", OPTION_REAL, &O.momentum, "X", "of sgd and rmsprop; default 0", "[0, 1)" },
    { "--nesterov", OPTION_FLAG, &O.nesterov, NULL, "sgd: Nesterov's momentum" },
    { "--weight-decay", OPTION_REAL, &O.weight_decay, "X",
      "default 0, adamw 0.01; negative: none" },
    { "--spare-vectors", OPTION_FLAG, &O.spare_vectors, NULL,
      "no weight decay of biases and norms" },
    { "--schedule", OPTION_TEXT, &O.schedule, "NAME",
      "constant, step, exponential, cosine, one-cycle, linear, polynomial, restarts\n"
      "                             or plateau (on the test loss)" },
    { "--warmup", OPTION_INT, &O.warmup, "N", "first steps with a rising learning rate; default 0",
      OPTION_TALLY },
    { "--patience", OPTION_INT, &O.patience, "N",
      "plateau: epochs without progress before the rate falls; default 10", OPTION_COUNT },
    { "--gamma", OPTION_REAL, &O.gamma, "X",
      "step, plateau: the rate falls to this part, default 0.1; exponential: 0.95", "(0, 1]" },
    { "--clip", OPTION_REAL, &O.clip, "X", "largest norm of all gradients together; default none",
      "(0, inf)" },
    { "--clip-value", OPTION_REAL, &O.clip_value, "X",
      "largest element of a gradient; default none", "(0, inf)" },
    { "--ema", OPTION_REAL, &O.ema, "X",
      "test and keep a moving average of the parameters, such as 0.999", "[0, 1)" },
    { "--label-smoothing", OPTION_REAL, &O.label_smoothing, "X",
      "part of a label spread over all classes; default 0", "[0, 1)" },
    { "--augment", OPTION_TEXT, &O.augment, "LIST",
      "changes of training images, such as crop,flip,cutout=8; see below" },
    { "--size", OPTION_TEXT, &O.size, "HxW",
      "images become so large, and the model's input; image-folder: default the model's,\n"
      "                             else 64x64" },
    { "--glove", OPTION_TEXT, &O.glove, "FILE",
      "texts: vectors of words to begin with, as text (GloVe)" },
    { "--rate", OPTION_INT, &O.rate, "HZ", "sounds: samples a second; default by data set",
      "[1000, 192000]" },
    { "--seconds", OPTION_REAL, &O.seconds, "X", "sounds: length of a sample; default by data set",
      "(0, 600]" },
    { "--mels", OPTION_INT, &O.mels, "N", "sounds: bands of the spectrogram; default by data set",
      "[8, 1024]" },
    { "--low", OPTION_REAL, &O.low, "HZ", "sounds: where the bands begin; default 0",
      "[0, 96000)" },
    { "--high", OPTION_REAL, &O.high, "HZ", "sounds: where they end; default half of --rate",
      "(0, 96000]" },
    { "--normalize", OPTION_TEXT, &O.normalize, "NAME",
      "sounds: clip, each spectrogram has mean 0 and deviation 1; or bands, each band\n"
      "                             has mean 0, and the whole deviation 1; default clip" },
    { "--mask", OPTION_REAL, &O.mask, "PART",
      "sounds: SpecAugment, up to this part of the time and of the\n"
      "                             bands is the mean; default 0.1, 0: none",
      "[-1, 0.9]" },
    { "--sound-memory", OPTION_INT, &O.sound_memory, "MIB",
      "sounds: recordings that are kept in memory, of each part; others are read\n"
      "                             from their files again, a whole file for\n"
      "                             each window, which is slow; default 2048",
      "[1, 1048576]" },
    { "--hold-out", OPTION_TEXT, &O.hold_out, "NAME",
      "sounds: recordings with this word in their names are for testing, such as a\n"
      "                             speaker" },
    { "--points", OPTION_INT, &O.points, "N", "toy: how many; default 50", "[1, 1000000]" },
    { "--noise", OPTION_REAL, &O.noise, "X",
      "toy: deviation added to the coordinates; the square is 1 wide", "[0, 10]" },
    { "--test-part", OPTION_REAL, &O.test_part, "X",
      "this part is for testing; toy: default all points, as\n"
      "                             MiniTorch; sounds, text: default 0.1",
      "[0, 1)" },
    { "--seed", OPTION_INT, &O.seed, "S", "of everything random; default 0" },
    { "--precision", OPTION_TEXT, &O.precision, "NAME", PRECISION_HELP },
    { "--tokenizer", OPTION_TEXT, &O.tokenizer, "NAME",
      "text: char, a token for each character, or bpe:N, learned from it; default char" },
    { "--context", OPTION_INT, &O.context, "N", "text: tokens that are seen at once; default 64",
      "[1, 1048576]" },
    { "--lora", OPTION_TEXT, &O.lora, "SPEC",
      "text: train adapters alone: r=8,alpha=16,dropout=0.05,q_proj,v_proj" },
    { "--scheme", OPTION_TEXT, &O.scheme, "NAME",
      "text: of a .gguf: what DIR/model.gguf has its weights in (q8_0, f16, ...);\n"
      "                             default: as they were" },
    { "--steps", OPTION_INT, &O.steps, "N",
      "text: of the whole training; default 2000, or as --epochs says", OPTION_COUNT },
    { "--dropout", OPTION_REAL, &O.dropout, "X",
      "text: of a new model, its attention, too; default 0", "[0, 1)" },
    { "--beta2", OPTION_REAL, &O.beta2, "X",
      "adam, adamw, lion: of the second moment; default 0.999, text 0.99", "(0, 1)" },
    { "--test-batches", OPTION_INT, &O.test_batches, "N",
      "text: batches of a look at the test part; default 100", OPTION_COUNT },
    { "--evaluate-every", OPTION_INT, &O.evaluate_every, "N",
      "epochs between looks at the test set; default 1; text: steps, 250", OPTION_COUNT },
    { "--tensorboard", OPTION_TEXT, &O.tensorboard, "DIR",
      "event files for TensorBoard: curves, histograms, graph, pictures" },
    { "--out", OPTION_TEXT, &O.out, "DIR",
      "for run.json, logs (log.csv), checkpoint.safetensors, model.safetensors,\n"
      "                             model.onnx" },
    { "--merge", OPTION_FLAG, &O.merge, NULL, "with --lora: the whole model, too, in DIR/merged" },
    { "--overwrite", OPTION_FLAG, &O.overwrite, NULL,
      "--out may hold another training, which is lost" },
    { "--resume", OPTION_TEXT, &O.resume, "DIR", "go on with a training from its --out folder" },
    LINK_ROOT_OPTION,
    { "--recompute", OPTION_REAL, &O.recompute, "SHARE",
      "keep this share of the forward values and make the others again: less memory", "(0, 1)" },
    { "--detect-anomaly", OPTION_FLAG, &O.detect_anomaly, NULL,
      "slow: stop at the first operation that makes NaN or infinity" },
    { "--show", OPTION_INT, &O.show, "N", "at the end so many test samples with their predictions",
      OPTION_TALLY },
    { "--quiet", OPTION_FLAG, &O.quiet, NULL, "at the end one line instead of charts" },
    DEVICE_OPTIONS(O.device),
    { "--json", OPTION_FLAG, &O.json, NULL,
      "for machines: a line for each epoch, the last one for the whole" },
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

void train_list(void) {
    printf(
        "\naugmentation, any of these, \"crop=2\" for another number than the usual one:\n"
        "  crop=PIXELS     black pixels around, then a random window of the old size (28 x 28: 2, "
        "else an eighth of the side)\n"
        "  flip            half of the images are mirrored, left to right\n"
        "  resize=PART     a window of at least this part of the area becomes the image (0.5)\n"
        "  rotate=DEGREES  by up to so many to either side (10)\n"
        "  colour=X        brightness=X, contrast=X and saturation=X together: factors within 1 - "
        "X to 1 + X (0.4)\n"
        "  hue=X           by up to this part of a turn (0.1)\n"
        "  cutout=PIXELS   a square of this side becomes 0 (a quarter of the side)\n"
        "  erase=PART      in this part of the images a random rectangle becomes 0 (0.5)\n"
        "  mixup=ALPHA     images and labels are mixed with others, by shares from Beta(ALPHA, "
        "ALPHA) (0.2)\n"
        "  shift=PART      waveforms are turned around by up to this part of their length (0.1)\n"
        "  gain=DB         waveforms become louder or softer by up to so many dB (6)\n"
        "  noise=PART      waveforms get white noise of up to this part of their loudness (0.05)\n"
        "  none            nothing of it\n");
    printf("\nmodels of our own fit the samples: mlp, cnn, resnet, text-cnn, sound-cnn; "
           "mlp:16,16,tanh has hidden\nlayers of these widths, with relu, tanh, sigmoid, gelu "
           "or linear after each;\n"
           "text-cnn:100,3-4-5,0.25 has 100 filters of each of these widths in words, and this "
           "dropout;\nsound-cnn:16,32,64,128 has convolutions of so many channels, 16,32,64 "
           "without the list\n");
    printf("\nschemes of --quantize: W bits of weights, A of what layers read; the first and the "
           "last layer stay floats:\n"
           "  lq:wWaA      learned levels (LQ-Nets), 1 to 4 bits; 32: floats\n"
           "  dorefa:wWaA  even levels within [-1, 1] and [0, 1], 1 to 4 bits\n"
           "  lsq:wWaA     even levels with learned steps, weights of 2 to 8 bits, activations "
           "of 1 to 8\n"
           "  abc:wWaA     sums of W and A signs (ABC-Net), 1 to 8\n"
           "  bnn xnor bireal reactnet   signs times signs: plain, with a factor for each "
           "filter, with a smoother\n"
           "               gradient, with learned thresholds too;  bwn: signs times floats\n");
    printf("\ndata sets and their defaults (optimizer adam):\n");
    for (const train_set *s = train_sets; s->name; s++) {
        if (lm_is_set(s->name)) continue;
        printf("  %-14s %s\n  %-14s --model %s --epochs %ld --batch %ld --lr %g --schedule %s "
               "--augment %s%s%s\n",
               s->name, s->help, "", s->model, s->epochs, s->batch, s->lr, s->schedule,
               text_or(s->augment, "none"), text_if(s->folder, " --data "), text_or(s->folder, ""));
    }
    lm_list();
    printf("  the zoo's models and those of files have --lr %g with adam\n",
           fac_optim_find("adam")->lr);
    printf(
        "\nlonger: facula train fashion-mnist --model resnet --epochs 12 --label-smoothing 0.1\n");
}
