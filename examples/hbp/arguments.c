#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* KIND_INTEGER goes into an int32 of the library, KIND_LONG into an int64. */
enum { KIND_FLAG, KIND_TEXT, KIND_INTEGER, KIND_LONG, KIND_TOKENS, KIND_SHARE, KIND_NUMBER, KIND_CHOICE };

/* `values` of a choice: "name=number|name=number". */
typedef struct option {
    const char *name;
    int kind;
    size_t offset;
    int commands;
    const char *placeholder;
    const char *help;
    const char *values;
} option;

#define AT(field) offsetof(cli, field)

static const option options[] = {
    {"model", KIND_TEXT, AT(model_text), CLI_COSTS, "NAME",
     "preset or config.json, ,layers=4,... behind it replaces fields; or fields alone", 0},
    {"machine", KIND_TEXT, AT(machine_text), CLI_COSTS | CLI_PROBE | CLI_VLM | CLI_TASKS, "NAME[:N]",
     "preset and its number of nodes, or profile.json", 0},
    {"cost", KIND_TEXT, AT(cost_file), CLI_COSTS, "FILE",
     "a cost that hbp fit wrote, instead of --model and --machine", 0},
    {"nodes", KIND_INTEGER, AT(nodes), CLI_COSTS | CLI_PROBE | CLI_VLM | CLI_TASKS, "N", "number of nodes",
     0},
    {"set", KIND_TEXT, AT(set), CLI_COSTS | CLI_PROBE | CLI_VLM | CLI_TASKS, "FIELD=X,...",
     "fields of the machine to replace", 0},
    {"zero", KIND_CHOICE, AT(zero), CLI_COSTS | CLI_VLM, "STAGE",
     "ZeRO stage: none, 1, 2, 3 (default 3; vlm: 1)", "1=1|2=2|3=3|none=4"},
    {"shard-ranks", KIND_INTEGER, AT(shard_ranks), CLI_COSTS, "F",
     "ranks that ZeRO shards over, replicas outside (HSDP; default all)", 0},
    {"lockstep-ranks", KIND_INTEGER, AT(lockstep_ranks), CLI_COSTS, "M",
     "ranks that wait for one another in every micro-batch: 1 for DDP, ZeRO-1 and ZeRO-2 that accumulates "
     "(default: --shard-ranks with ZeRO-3, else all)",
     0},
    {"uneven-micro-batches", KIND_FLAG, AT(uneven_micro_batches), CLI_COSTS, "",
     "with --lockstep-ranks: ranks without samples skip a micro-batch (no_sync), instead of running a dummy",
     0},
    {"fused-ce", KIND_FLAG, AT(fused_cross_entropy), CLI_COSTS | CLI_VLM, "",
     "cross-entropy never holds the logits whole", 0},
    {"max-sp", KIND_INTEGER, AT(max_sp), CLI_COSTS, "N", "no SP degree above N", 0},
    {"reserve", KIND_LONG, AT(reserve_mib), CLI_COSTS | CLI_VLM | CLI_TASKS, "MIB",
     "memory kept free on each GPU (default 4096; vlm, tasks: 5 GB)", 0},
    {"pack-overhead", KIND_LONG, AT(pack_overhead_ns), CLI_COSTS, "NS", "launch time of a micro-batch", 0},
    {"dp-overlap", KIND_SHARE, AT(dp_overlap), CLI_COSTS, "SHARE", "share of ZeRO traffic hidden, 0..1", 0},
    {"sp-overlap", KIND_SHARE, AT(sp_overlap), CLI_COSTS, "SHARE", "share of all-to-all hidden, 0..1", 0},
    {"max-length", KIND_TOKENS, AT(max_length), CLI_READS, "TOKENS", "longest sample, as 131072 or 128K", 0},
    {"over-long", KIND_CHOICE, AT(over_long), CLI_READS, "POLICY",
     "past --max-length: error (default), drop, truncate, split", "error=0|drop=1|truncate=2|split=3"},
    {"tokens-per-step", KIND_TOKENS, AT(tokens_per_step), CLI_PLANS, "TOKENS",
     "of a step at most (default: chosen, and printed)", 0},
    {"samples-per-step", KIND_LONG, AT(samples_per_step), CLI_PLAN | CLI_COMPARE, "N",
     "every step holds N samples, drawn as a shuffled sampler draws them, instead of --tokens-per-step and "
     "--window",
     0},
    {"batches", KIND_TEXT, AT(batches_file), CLI_PLAN | CLI_COMPARE, "FILE",
     "the samples of each step, instead of --samples-per-step, --tokens-per-step, --window, --composition, "
     "--curriculum and --drop-last: a line a step, numbers from 0, apart by blanks or commas; blank lines "
     "at the end are left out",
     0},
    {"composition", KIND_CHOICE, AT(composition), CLI_PLAN | CLI_COMPARE, "WAY",
     "auto (default), random, stratified: each step a small copy of the epoch, hierarchy: of one group",
     "auto=0|random=1|stratified=2|hierarchy=3"},
    {"mode", KIND_CHOICE, AT(mode), CLI_PLANS, "MODE", "default, or paper: HBP as published",
     "default=0|paper=1"},
    {"way", KIND_CHOICE, AT(way), CLI_PLAN, "NAME",
     "plan as this library does (default) or as others do: no-packing, sorted, next-fit, ...",
     "this=0|no-packing=1|sorted=2|next-fit=3|first-fit-decreasing=4|best-fit-decreasing=5|isf=6|spfhp=7|"
     "homogeneous-sp=8|hbp-paper=9|random=10|first-fit-shuffled=11|flexsp=12|hybrid-cp=13|dynamic-cp=14"},
    {"mixture-slack", KIND_INTEGER, AT(mixture_slack), CLI_PLAN | CLI_COMPARE, "N",
     "auto: stratified steps may take N thousandths longer than the hierarchy (default 10)", 0},
    {"threads", KIND_INTEGER, AT(threads), CLI_PLAN | CLI_COMPARE, "N",
     "plan steps side by side; the same plan for any N (default 1)", 0},
    {"max-pack-length", KIND_TOKENS, AT(max_pack_length), CLI_PLANS | CLI_STEP, "TOKENS",
     "of a pack at most (default: as long as memory and time favour)", 0},
    {"tokens-per-rank", KIND_TOKENS, AT(tokens_per_rank), CLI_PLANS | CLI_STEP, "TOKENS",
     "on a rank at most (default: what memory holds)", 0},
    {"micro-batches-per-step", KIND_INTEGER, AT(micro_batches_per_step), CLI_PLAN | CLI_COMPARE, "N",
     "every step has N micro-batches", 0},
    {"equal-samples", KIND_FLAG, AT(equal_samples), CLI_PLAN | CLI_COMPARE | CLI_STEP, "",
     "every SP group gets the same number of a step's samples", 0},
    {"max-groups", KIND_INTEGER, AT(max_groups), CLI_PLANS, "N", "at most N levels, 1..16 (default 6)", 0},
    {"seed", KIND_LONG, AT(seed), CLI_PLAN | CLI_COMPARE | CLI_VLM | CLI_TASKS, "N", "seed of the draws", 0},
    {"epoch", KIND_LONG, AT(epoch), CLI_PLAN | CLI_COMPARE | CLI_VLM, "N", "another epoch, another draw", 0},
    {"curriculum", KIND_LONG, AT(curriculum), CLI_PLAN | CLI_COMPARE, "STEPS",
     "first so many steps from the shortest group", 0},
    {"window", KIND_LONG, AT(window), CLI_PLAN | CLI_COMPARE, "N",
     "a sample moves only inside its window of N", 0},
    {"max-samples", KIND_INTEGER, AT(max_samples), CLI_PLAN | CLI_COMPARE | CLI_STEP, "N",
     "at most N samples in a pack", 0},
    {"micro-batch-multiple", KIND_INTEGER, AT(micro_batch_multiple), CLI_PLAN | CLI_COMPARE | CLI_STEP, "N",
     "micro-batches of a step are a multiple of N", 0},
    {"sequence-multiple", KIND_LONG, AT(sequence_multiple), CLI_PLANS | CLI_STEP, "N",
     "each sample is padded to a multiple of N", 0},
    {"pack-multiple", KIND_LONG, AT(pack_multiple), CLI_PLANS | CLI_STEP, "N",
     "each pack is padded to a multiple of N", 0},
    {"sequence-multiple-per-sp", KIND_LONG, AT(sequence_multiple_per_sp), CLI_PLAN | CLI_COMPARE | CLI_STEP,
     "N", "each sample of a pack on d > 1 ranks to a multiple of d N as well", 0},
    {"pack-multiple-per-sp", KIND_LONG, AT(pack_multiple_per_sp), CLI_PLAN | CLI_COMPARE | CLI_STEP, "N",
     "each pack on d > 1 ranks to a multiple of d N as well", 0},
    {"all", KIND_FLAG, AT(all_ways), CLI_COMPARE, "",
     "also what takes minutes to plan: FlexSP for many steps", 0},
    {"drop-last", KIND_FLAG, AT(drop_last), CLI_PLAN | CLI_COMPARE, "",
     "drop a group's last, incomplete step", 0},
    {"effort", KIND_INTEGER, AT(effort), CLI_PLAN | CLI_COMPARE | CLI_VLM, "N",
     "search for fewer packs, 0..9", 0},
    {"batch", KIND_LONG, AT(batch), CLI_STEP, "N", "samples of the step (default: all in the file)", 0},
    {"skip", KIND_LONG, AT(skip), CLI_STEP, "K", "samples of the file before the step's", 0},
    {"mode", KIND_CHOICE, AT(mode), CLI_STEP, "MODE",
     "default, paper, static-sp, homogeneous-sp, hybrid-cp, dynamic-cp",
     "default=0|paper=1|static-sp=2|homogeneous-sp=3|hybrid-cp=4|dynamic-cp=5"},
    {"compare", KIND_FLAG, AT(compare), CLI_STEP, "", "every mode side by side", 0},
    {"exact", KIND_FLAG, AT(exact), CLI_STEP, "", "improve and prove by the MILP: minutes, small steps only",
     0},
    {"effort", KIND_INTEGER, AT(effort), CLI_STEP, "N", "1..9, each about three times the work (default 1)",
     0},
    {"any-degree", KIND_FLAG, AT(any_degree), CLI_STEP, "", "SP degrees that are no powers of two as well",
     0},
    {"recompute", KIND_CHOICE, AT(recompute), CLI_STEP, "LAYERS", "auto (default: as few as fit), none, all",
     "auto=0|none=1|all=2"},
    {"micro-batches", KIND_TEXT, AT(micro_batches), CLI_STEP, "A:B", "from A to B of them, or exactly A", 0},
    {"time-limit", KIND_LONG, AT(time_limit), CLI_STEP, "MS",
     "stop searching then; plans may differ from run to run", 0},
    {"format", KIND_TEXT, AT(format), CLI_READS, "NAME",
     "of the file: npy, text, csv, jsonl, idx (default: found out)", 0},
    {"column", KIND_TEXT, AT(column), CLI_READS, "NAME", "CSV column or JSON field of the length", 0},
    {"count-column", KIND_TEXT, AT(count_column), CLI_READS, "NAME", "CSV column of counts", 0},
    {"loss-column", KIND_TEXT, AT(loss_column), CLI_READS, "NAME", "column or field of loss tokens", 0},
    {"tie-column", KIND_TEXT, AT(tie_column), CLI_READS, "NAME", "column or field of ties", 0},
    {"vision", KIND_TEXT, AT(vision_file), CLI_READS, "FILE",
     "vision units, a number a sample, in any format of FILE", 0},
    {"vision-column", KIND_TEXT, AT(vision_column), CLI_READS, "NAME",
     "column or field of vision units, of --vision where given", 0},
    {"modality-column", KIND_TEXT, AT(modality_column), CLI_READS, "NAME",
     "column or field of kinds of sample", 0},
    {"vlm", KIND_TEXT, AT(vlm_text), CLI_VLM, "NAME", "preset of the vision-language model", 0},
    {"tensor-parallel", KIND_INTEGER, AT(tensor_parallel), CLI_VLM, "N",
     "GPUs that share a layer (default 1)", 0},
    {"stages", KIND_INTEGER, AT(stages), CLI_VLM | CLI_STAGES, "N", "pipeline stages (vlm: default 1)", 0},
    {"virtual-stages", KIND_INTEGER, AT(virtual_stages), CLI_VLM | CLI_STAGES, "N",
     "chunks of layers on each stage (default 1)", 0},
    {"micro-batches", KIND_INTEGER, AT(step_micro_batches), CLI_VLM | CLI_STAGES, "N",
     "of a step (stages: default 4 a stage; vlm: from --batch-samples)", 0},
    {"replicas", KIND_INTEGER, AT(replicas), CLI_VLM, "N", "data-parallel replicas (default: all GPUs)", 0},
    {"batch-samples", KIND_INTEGER, AT(batch_samples), CLI_VLM, "N", "samples of a step (default 128)", 0},
    {"samples", KIND_INTEGER, AT(samples), CLI_VLM, "N", "samples of a micro-batch (default 4)", 0},
    {"max-tokens", KIND_TOKENS, AT(max_tokens), CLI_VLM, "TOKENS", "most tokens of a pack (default: chosen)",
     0},
    {"max-vision", KIND_LONG, AT(max_vision), CLI_VLM | CLI_PLAN | CLI_STEP, "N",
     "most vision units of a pack (vlm: default chosen)", 0},
    {"modality-order", KIND_FLAG, AT(modality_order), CLI_VLM | CLI_PLAN, "",
     "all packs of a micro-batch hold the same kinds of samples", 0},
    {"data", KIND_CHOICE, AT(data), CLI_VLM, "WAY",
     "packed (default), isf: as published, random, grouped, sorted",
     "packed=0|isf=1|random=2|grouped=3|sorted=4"},
    {"partition", KIND_CHOICE, AT(partition), CLI_VLM | CLI_STAGES, "WAY",
     "optimal (default), balanced, parameters, uniform, paper",
     "optimal=0|balanced=1|parameters=2|uniform=3|paper=4"},
    {"memory", KIND_CHOICE, AT(memory), CLI_VLM, "WAY",
     "what is recomputed: optimal (default), paper, all, none", "optimal=0|paper=1|all=2|none=3"},
    {"layers", KIND_TEXT, AT(layers_file), CLI_VLM, "FILE",
     "measured layers (CSV or JSON lines) instead of derived", 0},
    {"layers-vision", KIND_LONG, AT(layers_vision), CLI_VLM, "N", "vision units they were measured with", 0},
    {"layers-tokens", KIND_LONG, AT(layers_tokens), CLI_VLM, "N", "tokens they were measured with", 0},
    {"compare", KIND_FLAG, AT(compare), CLI_VLM, "", "each part alone, all together, and as published", 0},
    {"memory-limit", KIND_LONG, AT(memory_mib), CLI_STAGES, "MIB", "of each stage (default: none)", 0},
    {"link", KIND_NUMBER, AT(link_gb_per_s), CLI_STAGES, "GB/S",
     "between stages (default: transfers take no time)", 0},
    {"link-overlap", KIND_SHARE, AT(link_overlap), CLI_STAGES, "SHARE", "share of a transfer hidden, 0..1",
     0},
    {"mode", KIND_CHOICE, AT(mode), CLI_TASKS, "MODE",
     "overlap (default), paper: Spindle as published, sequential, uniform, optimus, distmm",
     "overlap=0|paper=1|sequential=2|uniform=3|optimus=4|distmm=5"},
    {"placement", KIND_CHOICE, AT(placement), CLI_TASKS, "WAY",
     "flows (default), paper: as released, sequential: consecutive ranks", "flows=0|paper=1|sequential=2"},
    {"effort", KIND_INTEGER, AT(effort), CLI_TASKS, "N", "search for shorter schedules, 1..9 (default 5)", 0},
    {"memory-limit", KIND_LONG, AT(memory_mib), CLI_TASKS, "MIB",
     "of each GPU (default: its memory less the reserve)", 0},
    {"compare", KIND_FLAG, AT(compare), CLI_TASKS, "", "every mode side by side", 0},
    {"barriers", KIND_FLAG, AT(barriers), CLI_TASKS, "", "run with a barrier behind every wave", 0},
    {"schedule", KIND_TEXT, AT(schedule_file), CLI_TASKS, "FILE",
     "validate and run this schedule instead of planning one", 0},
    {"schedule", KIND_TEXT, AT(schedule_file), CLI_TRACE | CLI_VALIDATE, "FILE",
     "the schedule that a run of tasks is of", 0},
    {"graph", KIND_TEXT, AT(graph_text), CLI_VALIDATE, "GRAPH",
     "check a task schedule, or a run of one, against this graph and --machine", 0},
    {"barriers", KIND_FLAG, AT(barriers), CLI_VALIDATE, "",
     "the run of tasks has a barrier behind every wave", 0},
    {"previous", KIND_TEXT, AT(previous_file), CLI_TASKS, "FILE",
     "schedule from before a task joined or left: states stay where they can", 0},
    {"trace", KIND_TEXT, AT(trace_file), CLI_TASKS, "FILE", "write a timeline that opens in Perfetto", 0},
    {"run-out", KIND_TEXT, AT(run_out), CLI_TASKS, "FILE", "write the run", 0},
    {"graph-out", KIND_TEXT, AT(graph_out), CLI_TASKS, "FILE", "write the graph: .msgpack, else JSON", 0},
    {"step", KIND_LONG, AT(step), CLI_SHOW | CLI_TRACE, "K", "this step, from 0 (trace: the first)", 0},
    {"steps", KIND_LONG, AT(steps), CLI_TRACE, "N", "so many steps (default: all)", 0},
    {"measured", KIND_TEXT, AT(measured_file), CLI_TRACE, "TIMELINE",
     "what a run of the plan measured, shown beside it", 0},
    {"rank", KIND_INTEGER, AT(rank), CLI_SHOW, "R", "the packs of this rank, sample by sample", 0},
    {"lengths", KIND_TEXT, AT(lengths_file), CLI_VALIDATE, "FILE", "check the plan against this data set", 0},
    {"xml", KIND_TEXT, AT(xml), CLI_PROBE, "FILE", "a topology saved by hwloc instead of this machine", 0},
    {"synthetic", KIND_TEXT, AT(synthetic), CLI_PROBE, "TEXT", "a topology described to hwloc", 0},
    {"executor", KIND_TEXT, AT(executor_command), CLI_PROBE, "COMMAND",
     "the shell runs COMMAND probe -o TEMPORARY, as \"mpirun -n 4 hbp_executor\"", 0},
    {"nccl-topo", KIND_TEXT, AT(nccl_topo), CLI_PROBE, "FILE", "add NCCL's topology (NCCL_TOPO_DUMP_FILE)",
     0},
    {"nccl-tests", KIND_TEXT, AT(nccl_tests), CLI_PROBE, "FILE", "add what nccl-tests printed", 0},
    {"collective", KIND_CHOICE, AT(collective), CLI_PROBE, "NAME",
     "of --nccl-tests: all-to-all (default), all-gather, reduce-scatter, all-reduce",
     "all-to-all=0|all-gather=1|reduce-scatter=2|all-reduce=3"},
    {"ranks", KIND_INTEGER, AT(ranks), CLI_PROBE, "N", "of --nccl-tests: GPUs that took part", 0},
    {"all", KIND_FLAG, AT(all), CLI_GROUPS | CLI_SHOW | CLI_STAGES | CLI_TASKS, "",
     "every row of long tables", 0},
    {"output", KIND_TEXT, AT(output),
     CLI_PLAN | CLI_TRACE | CLI_PROBE | CLI_DUMP | CLI_STEP | CLI_VLM | CLI_TASKS | CLI_FIT, "FILE",
     "where to write (also -o FILE)", 0},
    {"output", KIND_TEXT, AT(output), CLI_STAGES, "FILE", "write the run of a step (also -o FILE)", 0},
    {"json", KIND_FLAG, AT(json), CLI_ALL, "", "print JSON", 0},
};

#define OPTION_COUNT (sizeof options / sizeof *options)

int cli_parse_tokens(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || errno)
        return 1;
    int shift = 0;
    if (*end == 'K' || *end == 'k')
        shift = 10;
    else if (*end == 'M' || *end == 'm')
        shift = 20;
    else if (*end == 'G' || *end == 'g')
        shift = 30;
    end += shift > 0;
    if (*end || number < 0 || number > (INT64_MAX >> shift))
        return 1;
    *value = (int64_t)number << shift;
    return 0;
}

static int parse_choice(const char *values, const char *text, int64_t *value)
{
    size_t length = strlen(text);
    for (const char *at = values; at; at = strchr(at, '|')) {
        at += *at == '|';
        const char *equals = strchr(at, '=');
        if ((size_t)(equals - at) == length && memcmp(at, text, length) == 0) {
            *value = strtoll(equals + 1, NULL, 10);
            return 0;
        }
    }
    return 1;
}

static int store(cli *c, const option *o, const char *text)
{
    void *field = (char *)c + o->offset;
    int64_t integer = 0;
    char *end;
    switch (o->kind) {
    case KIND_FLAG:
        *(int64_t *)field = 1;
        return 0;
    case KIND_TEXT:
        *(const char **)field = text;
        return 0;
    case KIND_NUMBER: {
        double number = strtod(text, &end);
        if (end == text || *end || !(number >= 0 && number <= 1e18))
            return cli_usage("--%s is '%s'; it takes a number", o->name, text);
        *(double *)field = number;
        return 0;
    }
    case KIND_SHARE: {
        double share = strtod(text, &end);
        if (end == text || *end || !(share >= 0 && share <= 1))
            return cli_usage("--%s is '%s'; it takes a number from 0 to 1", o->name, text);
        *(double *)field = share;
        return 0;
    }
    case KIND_CHOICE:
        if (parse_choice(o->values, text, &integer))
            return cli_usage("--%s is '%s'; %s", o->name, text, o->help);
        break;
    case KIND_TOKENS:
        if (cli_parse_tokens(text, &integer))
            return cli_usage("--%s is '%s'; it takes a number of tokens such as 131072 or 128K", o->name,
                             text);
        break;
    default: {
        int64_t limit = o->kind == KIND_INTEGER ? INT32_MAX : INT64_MAX >> 20;
        errno = 0;
        integer = strtoll(text, &end, 10);
        if (end == text || *end || errno || integer < 0 || integer > limit)
            return cli_usage("--%s is '%s'; it takes a whole number from 0 to %lld", o->name, text,
                             (long long)limit);
    }
    }
    *(int64_t *)field = integer;
    return 0;
}

static const option *find(const char *name, size_t length, int bit)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((options[i].commands & bit) && strlen(options[i].name) == length &&
            memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

int cli_parse(cli *c, const cli_command *command, int argc, char **argv)
{
    c->step = c->rank = -1;
    for (int i = 2; i < argc; i++) {
        const char *argument = argv[i];
        const char *name = NULL;
        size_t length = 0;
        const char *value = NULL;
        if (strcmp(argument, "-o") == 0) {
            name = "output";
            length = 6;
        } else if (strncmp(argument, "--", 2) == 0) {
            name = argument + 2;
            value = strchr(name, '=');
            length = value ? (size_t)(value - name) : strlen(name);
            value = value ? value + 1 : NULL;
        } else if (argument[0] == '-' && argument[1]) {
            return cli_usage("unknown option '%s'; see hbp %s --help", argument, command->name);
        } else if (c->file || !command->argument[0]) {
            return cli_usage("'%s' is one argument too many; see hbp %s --help", argument, command->name);
        } else {
            c->file = argument;
            continue;
        }
        const option *o = find(name, length, command->bit);
        if (!o)
            return cli_usage("unknown option '%s'; see hbp %s --help", argument, command->name);
        if (o->kind == KIND_FLAG && value)
            return cli_usage("--%s takes no value", o->name);
        if (o->kind != KIND_FLAG && !value) {
            if (i + 1 == argc)
                return cli_usage("--%s needs a value", o->name);
            value = argv[++i];
        }
        int wrong = store(c, o, value);
        if (wrong)
            return wrong;
    }
    if (command->needs_file && !c->file)
        return cli_usage("hbp %s needs %s; see hbp %s --help", command->name, command->argument,
                         command->name);
    return 0;
}

void cli_print_options(const cli_command *command)
{
    printf("usage: hbp %s%s%s [options]\n%s\n\n", command->name, command->argument[0] ? " " : "",
           command->argument, command->summary);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (!(options[i].commands & command->bit))
            continue;
        char left[64];
        snprintf(left, sizeof left, "--%s %s", options[i].name, options[i].placeholder);
        printf("  %-28s %s\n", left, options[i].help);
    }
}
