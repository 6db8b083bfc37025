/* What the executor's command line says. */
#ifndef EX_OPTIONS_H
#define EX_OPTIONS_H

#include <stdint.h>

#include "device/device.h"

enum { EX_RUN = 1, EX_PROBE = 2, EX_MEASURE = 4 };
enum { EX_CPU = 1, EX_CUDA = 2 };
enum { EX_COMM_AUTO = 0, EX_COMM_MPI = 1, EX_COMM_NCCL = 2, EX_COMM_SELF = 3 };

/* Strings point into argv. */
typedef struct ex_options {
    int command; /* EX_RUN, EX_PROBE, EX_MEASURE */
    const char *plan;
    const char *model;
    int64_t device; /* 0: a GPU where there is one */
    int64_t type;   /* ex_type + 1; 0: fp32 on the CPU, bf16 on a GPU */
    int64_t comm;
    int64_t virtual_ranks;
    int64_t threads;
    const char *rendezvous;
    double limit_s;

    int64_t step;  /* row of the plan; -1: not given */
    int64_t steps; /* 0: all */
    int64_t seed;
    const char *tokens;
    int64_t end_token;
    double learning_rate, weight_decay, clip;
    int64_t normaliser;
    int64_t clock;
    int64_t recompute; /* -1: not given */
    int64_t unpacked, repeat, no_update, communication;
    const char *resume, *save, *gradients, *timeline, *profile, *cost;
    int64_t save_every;

    const char *output; /* probe, measure */
    double seconds;     /* 0: the command's own default */
    int64_t max_tokens; /* measure */
    int64_t json;
    int64_t help;
} ex_options;

/* Reads argv [argc]; prints one line on stderr and returns 2 on wrong usage, else 0. */
int ex_options_read(ex_options *options, int argc, char **argv);
void ex_options_print_help(void);

#endif
