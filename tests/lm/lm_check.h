/* What tests of language models share. */
#ifndef FACULA_TESTS_LM_CHECK_H
#define FACULA_TESTS_LM_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/rng.h"
#include "lm/lm.h"
#include "text/tokenizer.h"

static fac_error err;
static fac_device *cpu;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

#endif
