/* hbp methods: every method that the library has, under the option or the field that takes its name. The
 * names are the library's own: those of its records' choices, of baselines and of modes; where a record has a
 * text, so is the line. Here is whose each is, by its constant. */
#include <stdio.h>
#include <string.h>

#include "options.h"

/* What no record says of a method. */
typedef struct note {
    int64_t value;
    const char *paper; /* "": this library's */
    const char *line;  /* NULL: the record's text */
} note;

typedef struct family {
    const char *plans;
    const char *option;  /* that takes the names */
    const char *choices; /* of the records; NULL: name_of */
    const char *(*name_of)(int64_t value);
    int64_t most; /* of the choices, the last that may be asked for */
    const note *notes;
    int count;
} family;

#define HBP          "HBP, arXiv 2503.07680"
#define FLEXSP       "FlexSP, arXiv 2412.01523"
#define OMNIBAL      "OmniBal, arXiv 2407.20761"
#define SPINDLE      "Spindle, arXiv 2409.03365"
#define ALIGN        "LongAlign, arXiv 2401.18058"
#define FITS         "Johnson, 1974"
#define NOTES(n)     n, (int)(sizeof n / sizeof *n)
#define OF(baseline) ((baseline) + 1)

static const note epochs[] = {
    {0, "", "the fastest plan found under the contract of the steps"},
    {OF(HBP_BASELINE_NO_PACKING), "", "one sample a pack, none padded"},
    {OF(HBP_BASELINE_SORTED), ALIGN, "sort, cut into micro-batches in order, permute these"},
    {OF(HBP_BASELINE_NEXT_FIT), ALIGN, "next fit in the order given"},
    {OF(HBP_BASELINE_FIRST_FIT_DECREASING), FITS, "the longest first, each into the first pack with space"},
    {OF(HBP_BASELINE_BEST_FIT_DECREASING), FITS, "the longest first, each into the fullest pack with space"},
    {OF(HBP_BASELINE_ISF), OMNIBAL, "iterative sampling and filtering, on tokens alone"},
    {OF(HBP_BASELINE_SPFHP), "Krell et al., arXiv 2107.02027", "shortest-pack-first histogram packing"},
    {OF(HBP_BASELINE_HOMOGENEOUS_SP), "", "this library's packing and balance, one group"},
    {OF(HBP_BASELINE_PAPER), HBP, "as published: groups, greedy fill, sorted balance"},
    {OF(HBP_BASELINE_RANDOM), "", "next fit in a random order"},
    {OF(HBP_BASELINE_FIRST_FIT_SHUFFLED), HBP, "first fit in a random order"},
    {OF(HBP_BASELINE_FLEXSP), FLEXSP, "as published, step by step: hbp step --method paper"},
    {OF(HBP_BASELINE_HYBRID_CP), "Megatron-LM", "hybrid context parallelism, step by step"},
    {OF(HBP_BASELINE_DYNAMIC_CP), "Megatron-LM", "dynamic context parallelism, step by step"},
};
static const note compositions[] = {{HBP_COMPOSITION_HIERARCHY, HBP, NULL}};
static const note steps[] = {
    {HBP_STEP_DEFAULT, "", "direct search with a proven bound; --exact: improved and proved by a MILP"},
    {HBP_STEP_PAPER, FLEXSP, "as published: buckets, blaster, one MILP a micro-batch"},
    {HBP_STEP_STATIC_SP, "DeepSpeed-Ulysses, arXiv 2309.14509",
     "one degree for every step: the least that holds the longest sample"},
    {HBP_STEP_HOMOGENEOUS_SP, FLEXSP, "the best single degree for this step (BatchAda)"},
    {HBP_STEP_HYBRID_CP, "Megatron-LM", "hybrid context parallelism"},
    {HBP_STEP_DYNAMIC_CP, "Megatron-LM", "dynamic context parallelism"},
};
static const note groups[] = {{HBP_GROUPS_PAPER, HBP, NULL}};
static const note fills[] = {{HBP_FILL_PAPER, HBP, NULL}};
static const note balances[] = {{HBP_BALANCE_SORTED, HBP, NULL}};
static const note budgets_fills[] = {{HBP_ISF_REFERENCE, OMNIBAL, NULL}};
static const note budgets[] = {{HBP_BUDGETS_LINE, OMNIBAL, NULL}};
static const note vlm_data[] = {{HBP_VLM_DATA_ISF, OMNIBAL, NULL}};
static const note partitions[] = {{HBP_PARTITION_BALANCED, "DeepSpeed", NULL},
                                  {HBP_PARTITION_PARAMETERS, "DeepSpeed", NULL},
                                  {HBP_PARTITION_PAPER, OMNIBAL, NULL}};
static const note memories[] = {{HBP_MEMORY_PAPER, OMNIBAL, NULL}};
static const note tasks[] = {{HBP_TASKS_PAPER, SPINDLE, NULL},
                             {HBP_TASKS_UNIFORM, SPINDLE, NULL},
                             {HBP_TASKS_SEQUENTIAL, SPINDLE, NULL},
                             {HBP_TASKS_OPTIMUS, "Optimus, EuroSys 2018", NULL},
                             {HBP_TASKS_DISTMM, "DistMM, NSDI 2024", NULL}};
static const note places[] = {{HBP_PLACE_PAPER, SPINDLE, NULL}};

static const family families[] = {
    {"an epoch", "hbp plan --method", NULL, cli_baseline_method, INT32_MAX, NOTES(epochs)},
    {"what a step holds", "hbp plan --composition", "HBP_COMPOSITION", NULL, HBP_COMPOSITION_HIERARCHY,
     NOTES(compositions)},
    {"a step", "hbp step --method", NULL, cli_step_method, INT32_MAX, NOTES(steps)},
    {"groups of pack lengths", "hbp_groups_options.mode", "HBP_GROUPS", NULL, INT32_MAX, NOTES(groups)},
    {"samples into packs", "hbp_fill_options.mode", "HBP_FILL", NULL, INT32_MAX, NOTES(fills)},
    {"packs into micro-batches", "hbp_balance_options.mode", "HBP_BALANCE", NULL, INT32_MAX, NOTES(balances)},
    {"packs under two budgets", "hbp vlm --data", "HBP_VLM_DATA", NULL, INT32_MAX, NOTES(vlm_data)},
    {"the fill under two budgets", "hbp_iterative_fill_options.mode", "HBP_ISF", NULL, INT32_MAX,
     NOTES(budgets_fills)},
    {"the two budgets", "hbp_budgets_options.mode", "HBP_BUDGETS", NULL, INT32_MAX, NOTES(budgets)},
    {"layers into stages", "hbp stages --partition", "HBP_PARTITION", NULL, INT32_MAX, NOTES(partitions)},
    {"recomputation", "hbp vlm --memory", "HBP_MEMORY", NULL, INT32_MAX, NOTES(memories)},
    {"many tasks", "hbp tasks --method", "HBP_TASKS", NULL, INT32_MAX, NOTES(tasks)},
    {"slices on GPUs", "hbp tasks --placement", "HBP_PLACE", NULL, INT32_MAX, NOTES(places)},
};

/* Method `index` of a family; 0 past the end. */
static int get_method(const family *f, int64_t index, const char **name, note *n)
{
    hbp_choice choice = {.struct_size = sizeof choice};
    if (f->choices && (hbp_record_get_choice(f->choices, index, &choice) < 0 || choice.value > f->most))
        return 0;
    *n = (note){f->choices ? choice.value : index, "", NULL};
    *name = f->choices ? choice.name : f->name_of(index);
    for (int i = 0; i < f->count; i++)
        if (f->notes[i].value == n->value)
            *n = f->notes[i];
    if (!n->line)
        n->line = choice.text ? choice.text : "";
    return *name != NULL;
}

static int print_json(cli *c)
{
    c->result = json_array();
    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        const char *name;
        note n;
        for (int64_t i = 0; get_method(&families[k], i, &name, &n); i++)
            json_array_append_new(c->result, json_pack("{s:s,s:s,s:s,s:s,s:s}", "plans", families[k].plans,
                                                       "option", families[k].option, "name", name, "paper",
                                                       n.paper, "text", n.line));
    }
    return cli_print_json(c);
}

int cli_methods(cli *c)
{
    if (c->json)
        return print_json(c);
    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        const char *name;
        note n;
        table t;
        printf("%s%s: %s\n", k ? "\n" : "", families[k].plans, families[k].option);
        table_begin(&t, 3, (const char *[]){"<method", "<paper", "<what it does"});
        for (int64_t i = 0; get_method(&families[k], i, &name, &n); i++) {
            table_add(&t, "%s", name);
            table_add(&t, "%s", n.paper[0] ? n.paper : "-");
            table_add(&t, "%s", n.line);
        }
        table_end(&t);
    }
    return 0;
}
