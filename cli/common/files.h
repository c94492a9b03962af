/* Files that verbs write, and how they are named. */
#ifndef FACULA_CLI_FILES_H
#define FACULA_CLI_FILES_H
#include <stddef.h>
#include "cli.h"

/* Before any work, for every verb: refuses outputs (OPTION_OUT, OPTION_OUTS) that are files which
 * the command line names as inputs, also by other paths or links, and two outputs in one file.  An
 * exit code. */
int files_check(const verb *v, list args);
/* The same for a file whose name follows from something else: one output against all inputs. */
int output_check(const char *path);
bool is_input(const char *path);
bool same_file(const char *a, const char *b); /* are, or would be once they are written */
#define INPUT_TOO "is an input, too: choose another file for the output"

/* Writes a whole file, as fac_file_write does, or says why not.  An exit code. */
int file_write(const char *path, const void *data, size_t bytes);
int file_write_text(const char *path, const char *text);
/* DIR/NAME and an ending.  An exit code: the path may be too long. */
int path_join(char *to, size_t size, const char *dir, const char *name, const char *ending);

/* ---- names.c ---- */

/* Names of tensors as names of files.  Two names never get the same file, also where a file system
 * takes capital and small letters for the same, and a name always gets the one that it got before.
 * A name of plain letters is its file; others are changed as little as may be, with a number of
 * their own where that leaves a doubt. */
typedef struct file_names {
    char **names, **files;
    int n, room;
} file_names;                       /* { 0 }: none */
enum { NAMES_FLAT, NAMES_FOLDERS }; /* '/' becomes '_'; '/' stays, as in an archive */
/* Without an ending; the set's own.  NULL: no memory. */
const char *file_name(file_names *s, const char *name, int how);
/* Such a name is its own file; these should be asked for first. */
bool file_name_ordinary(const char *name);
void file_names_free(file_names *s);
#endif
