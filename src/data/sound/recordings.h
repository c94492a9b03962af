/* Between the readers of data sets of sounds: recordings, their classes, which part they are in. */
#ifndef FACULA_DATA_SOUND_RECORDINGS_H
#define FACULA_DATA_SOUND_RECORDINGS_H
#include "data/sets/dataset_internal.h"
#include "data/sets/listing.h"
#include "data/sound/sound_internal.h"

/* A file, or a part of it, and its class. */
typedef struct fac_recording {
    const char *path;
    int64_t label, group; /* groups are never split: of a folder each file is one */
    double start, end;    /* seconds; end 0: that of the file */
    bool test;
} fac_recording;

/* All of them. */
typedef struct fac_recordings {
    const char *from; /* the folder or the table */
    const fac_sounds_opts *opts;
    fac_arena arena;
    fac_names classes; /* names, no paths */
    fac_names groups;  /* of a table */
    fac_recording *all;
    size_t n, room;
    fac_error *err;
} fac_recordings;

bool fac_is_sound(const char *name); /* by its end */
fac_status fac_recordings_add(fac_recordings *r, fac_recording one);
/* The number of this name, which is new or was met before; names: of classes or of groups. */
fac_status fac_recordings_name(fac_recordings *r, fac_names *names, const char *name, size_t length,
                               int64_t *number);
/* ... of a class, which must be one of opts->classes where there are such. */
fac_status fac_recordings_class(fac_recordings *r, const char *name, size_t length, int64_t *label);

fac_status fac_recordings_folder(fac_recordings *r); /* a folder for each class */
fac_status fac_recordings_digits(fac_recordings *r); /* CLASS_SPEAKER_INDEX.wav */
fac_status fac_recordings_table(fac_recordings *r);  /* FILE,label[,start,end] */

/* The windows of one part as a data set. */
fac_status fac_recordings_windows(const fac_recordings *r, bool test, fac_dataset *out);
#endif
