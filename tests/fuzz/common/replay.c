/* Runs a fuzz target without a fuzzer: its seeds, the files named on the command line, and
 * mutations of all of them.
 *     replay_weights [--mutations N] [FILE | FOLDER]...        FACULA_SEED=N: the same mutations
 *         again
 *     replay_weights --write FOLDER                           the seeds as files, for libFuzzer */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/rng.h"
#include "fresh_seed.h"
#include "fuzz.h"

typedef struct replay {
    uint64_t seed, drawn, mutations;
    size_t inputs;
    const char *folder;
    int failed;
} replay;

static uint64_t draw(replay *r, uint64_t below) {
    return below ? fac_random_bits(r->seed, 0, r->drawn++) % below : 0;
}

/* Bytes of their exact number on the heap, so that a sanitizer sees the end. */
static void run(const uint8_t *data, size_t bytes) {
    uint8_t *copy = malloc(bytes ? bytes : 1);
    if (!copy) exit(2);
    if (bytes) memcpy(copy, data, bytes);
    LLVMFuzzerTestOneInput(copy, bytes);
    free(copy);
}

/* A few flips, numbers at the borders, a part moved or dropped, the end cut off. */
static void mutate(replay *r, const uint8_t *data, size_t bytes) {
    static const uint8_t border[] = { 0, 1, 0x7f, 0x80, 0xfe, 0xff };
    uint8_t *copy = malloc(bytes ? bytes : 1);
    if (!copy) exit(2);
    if (bytes) memcpy(copy, data, bytes);
    size_t n = bytes;
    for (uint64_t k = 1 + draw(r, 4); k && n; k--) {
        size_t at = (size_t)draw(r, n), size = (size_t)draw(r, n - at < 9 ? n - at + 1 : 9),
               to = (size_t)draw(r, n - size + 1);
        switch (draw(r, 6)) {
        case 0:
            copy[at] ^= (uint8_t)(1 << draw(r, 8));
            break;
        case 1:
            copy[at] = (uint8_t)draw(r, 256);
            break;
        case 2:
            memset(copy + at, border[draw(r, sizeof border)], size);
            break;
        case 3:
            memmove(copy + to, copy + at, size);
            break;
        case 4:
            memmove(copy + at, copy + at + size, n - at - size);
            n -= size;
            break;
        case 5:
            n = draw(r, 4) ? n : at;
            break;
        }
    }
    run(copy, n);
    free(copy);
}

static void replay_one(void *self, const char *name, const void *data, size_t bytes) {
    replay *r = self;
    printf("%s: %zu bytes, numbers from %llu on\n", name, bytes, (unsigned long long)r->drawn);
    fflush(stdout); /* before what may be the last act of this program */
    r->inputs++;
    run(data, bytes);
    for (size_t n = 0; n < bytes; n += bytes < 2000 ? 1 : bytes / 2000) run(data, n);
    for (uint64_t k = 0; k < r->mutations; k++) mutate(r, data, bytes);
}

static void write_one(void *self, const char *name, const void *data, size_t bytes) {
    replay *r = self;
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes) r->failed = 2;
    if (f && fclose(f)) r->failed = 2;
    if (r->failed) perror(path);
}

static void replay_file(replay *r, const char *path) {
    FILE *f = fopen(path, "rb");
    long bytes = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
    uint8_t *data = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
    if (data) rewind(f);
    if (!data || fread(data, 1, (size_t)bytes, f) != (size_t)bytes) {
        perror(path);
        r->failed = 2;
    } else {
        replay_one(r, path, data, (size_t)bytes);
    }
    free(data);
    if (f) fclose(f);
}

static void replay_path(replay *r, const char *path) {
    DIR *folder = opendir(path);
    if (!folder) {
        replay_file(r, path);
        return;
    }
    for (struct dirent *e; (e = readdir(folder));) {
        char file[2000];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') replay_file(r, file);
    }
    closedir(folder);
}

int main(int argc, char **argv) {
    replay r = { .mutations = 500 };
    int at = 1;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
        if (!strcmp(argv[at], "--mutations"))
            r.mutations = strtoull(argv[at + 1], NULL, 10);
        else if (!strcmp(argv[at], "--write"))
            r.folder = argv[at + 1];
        else
            return fprintf(stderr, "unknown option %s\n", argv[at]), 2;
    }
    if (r.folder && mkdir(r.folder, 0777)) perror(r.folder); /* it may be there already */
    if (!r.folder) r.seed = fresh_seed();
    if (fac_seeds) fac_seeds(r.folder ? write_one : replay_one, &r);
    for (; at < argc; at++) replay_path(&r, argv[at]);
    if (!r.folder) printf("%zu inputs\n", r.inputs);
    return r.inputs || r.folder ? r.failed : 2; /* a replay of nothing is a mistake */
}
