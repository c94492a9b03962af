/* What `facula completion` knows of an option's value and of a verb's arguments, for all shells. */
#ifndef FACULA_CLI_COMPLETE_H
#define FACULA_CLI_COMPLETE_H
#include "cli.h"

bool complete_takes_value(const option *o);
bool complete_takes_file(const option *o); /* a file or a folder */
/* The words that the value may be, with blanks between; "" where it is anything. */
const char *complete_words(const option *o, char *to, size_t size);
bool complete_takes_model(const verb *v); /* arguments may be zoo:NAME */
bool complete_takes_verb(const verb *v);  /* facula help VERB */
/* Text with a backslash before each character among `special`. */
void complete_escaped(const char *text, const char *special);
/* the names of the zoo, `before` and a blank before each */
void complete_zoo(const char *before, const char *special);

void complete_bash(void);
void complete_zsh(void);
void complete_fish(void);
#endif
