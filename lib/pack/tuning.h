/* What was chosen in the planners of packs: by the benchmark named (benchmarks/README.md), or, where none is
 * named, without one. Whoever changes a figure runs bench_quality and bench_packs before and after, for
 * groups bench_settings as well, for budgets bench_isf. */
#ifndef HBP_PACK_TUNING_H
#define HBP_PACK_TUNING_H

/* The balanced fill. */
enum {
    HBP__FILL_MIN_WIDTH = 16,   /* narrower bins hold too few items for their packs to come out alike */
    HBP__FILL_MIN_BINS = 32,    /* with fewer, wider bins are not worth it: a group is rounded up to whole
                                   ones */
    HBP__FILL_MOST_BINS = 3,    /* times the least number; past that, what does not fit gets its own packs */
    HBP__FILL_MAX_HALVINGS = 6, /* steps of the search for the fewest bins, once some number suffices */
    HBP__FILL_SLACK = 4096,     /* share of a capacity left free, so that the last small runs find room and no
                                   micro-batch is for what did not */
    HBP__FILL_MOST_LOST = 4096, /* where a micro-batch is one pack: share of the room whose items may be left
                                   to find a pack one by one, and of packs that rounding up to whole bins may
                                   add for speed; bench_peers */
    HBP__FILL_TAIL = 16,        /* share of all room that the last runs fill, best fit */
    HBP__FILL_WORTH_TIGHT = 200 /* a tight fill is tried where it could save this share of the time */
};

/* The choice of groups. */
enum {
    HBP__GROUPS_CANDIDATES = 40,    /* rows of the table of hierarchies */
    HBP__GROUPS_OPTIMA = 28,        /* the optimum's among them; the rest is the paper's and single levels */
    HBP__GROUPS_PATHS = 8,          /* kept of each number of levels to each threshold */
    HBP__GROUPS_SLACK = 25,         /* percent of tokens_per_step that a step may lack, unless the caller says
                                       otherwise; bench_quality (docs/decisions/step-slack.md) */
    HBP__GROUPS_LEVEL_SHARE = 1000, /* share of the epoch that one more level must save: it costs
                                       communicators, a last step that is not full, and steps that look less
                                       like the data */
    HBP__GROUPS_MANY_ITEMS = 8,     /* of so many items in a pack, sizes no longer matter */
    HBP__GROUPS_FEW_BATCHES = 12,   /* micro-batches of a step tried one by one, more in steps of a quarter */
    HBP__GROUPS_MANY_BATCHES = 64,  /* with so many, whether the last is full no longer matters */
    HBP__GROUPS_THRESHOLD_SHARE = 32, /* a threshold is left out that leaves this share of tokens and squares
                                         undivided */
};

/* Tokens of a step where none are given. */
enum {
    HBP__STEP_ONCE_SHARE = 20, /* what a pack pays once need be no less than this share of its time */
    HBP__STEP_WHOLE = 3,       /* up to so many micro-batches of longest packs, a step holds whole ones */
    HBP__STEP_MOST_LOSS = 1,   /* percent that a token may take longer for a step to stay as small as longest
                                  packs make it; bench_settings */
};

/* The search of the plane of budgets. */
enum {
    HBP__BUDGETS_PART = 8192,        /* samples, or linked ones, that pairs are tried with */
    HBP__BUDGETS_COLUMNS = 24,       /* vision budgets of the first round */
    HBP__BUDGETS_HELD = 4,           /* numbers of samples a pack where there is one vision budget */
    HBP__BUDGETS_FINALISTS = 4,      /* pairs that are refined, and that are filled with all samples */
    HBP__BUDGETS_COMPARED = 1 << 17, /* samples up to which those all are, else the first that holds enough */
};

/* Vision units that packs have room for, as times what the data have for so many tokens: more leaves fewer
 * packs that are full of units before tokens, and more to wait for in a micro-batch. bench_vision. */
#define HBP__VISION_ROOM 1.25

#endif
