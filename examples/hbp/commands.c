/* The commands, in the order of their groups: what --help, the page for man and completion are made from.
 * Examples run as printed from the root of the repository after examples/quickstart.sh, with hbp on the path
 * (tests/whole/face.sh). */
#include <string.h>

#include "cli.h"

#define LENGTHS  "build/lengths.npy"
#define PLAN     "build/plan.msgpack"
#define PATTERNS "build/plan.patterns"
#define ON_H100  " --model llama-3.1-8b --machine h100:4"

static const char *const groups[CLI_GROUPS_OF_COMMANDS] = {"look at lengths", "plan", "look at a plan",
                                                           "models, machines and what they cost", "other"};

static const cli_command commands[] = {
    {"lengths",
     CLI_LENGTHS,
     1,
     "FILE",
     "What is in a file of lengths: count, tokens, quantiles, a histogram.",
     cli_lengths,
     CLI_TO_LOOK_AT_LENGTHS,
     {"hbp lengths " LENGTHS, "printf '5\\n70\\n900\\n' | hbp lengths -",
      "hbp lengths " LENGTHS " --max-length 32K --over-long truncate --json"}},
    {"plan",
     CLI_PLAN,
     1,
     "FILE",
     "Plan an epoch and write it to a plan file.",
     cli_plan,
     CLI_TO_PLAN,
     {"hbp plan " LENGTHS ON_H100 " -o " PLAN, "hbp plan " LENGTHS ON_H100 " --samples-per-step 4096",
      "hbp plan " LENGTHS ON_H100 " --tokens-per-step 4M --threads 2",
      "hbp plan " LENGTHS ON_H100 " --patterns -o " PATTERNS}},
    {"expand",
     CLI_EXPAND,
     1,
     "PLAN",
     "A plan by patterns, or some steps of it, with its samples listed.",
     cli_expand,
     CLI_TO_PLAN,
     {"hbp plan " LENGTHS ON_H100 " --patterns -o " PATTERNS,
      "hbp expand " PATTERNS " --lengths " LENGTHS " -o build/listed.msgpack",
      "hbp expand " PATTERNS " --lengths " LENGTHS " --steps 10:20 -o build/ten.msgpack"}},
    {"groups",
     CLI_GROUPS,
     1,
     "FILE",
     "The hierarchy of pack lengths it would choose, and those it rejected.",
     cli_groups,
     CLI_TO_PLAN,
     {"hbp groups " LENGTHS ON_H100, "hbp groups " LENGTHS ON_H100 " --max-groups 2 --all"}},
    {"compare",
     CLI_COMPARE,
     1,
     "FILE",
     "This plan beside the classic methods of batching, and the bound.",
     cli_compare,
     CLI_TO_PLAN,
     {"hbp compare " LENGTHS ON_H100, "hbp compare " LENGTHS ON_H100 " --samples-per-step 512"}},
    {"step",
     CLI_STEP,
     1,
     "FILE",
     "Plan one step: micro-batches of SP groups of different degrees.",
     cli_step,
     CLI_TO_PLAN,
     {"hbp step " LENGTHS ON_H100 " --samples-per-step 512",
      "hbp step " LENGTHS ON_H100 " --samples-per-step 128 --compare"}},
    {"vlm",
     CLI_VLM,
     1,
     "FILE",
     "Plan a vision-language run: packs under two budgets, pipeline stages, recomputation.",
     cli_vlm,
     CLI_TO_PLAN,
     {"build/draw_lengths examples/data/vlm.csv build/samples.csv 4000",
      "hbp vlm build/samples.csv --vision-column vision --vlm qwen2-vl-7b --machine a100-80:2 \\\n"
      "      --tensor-parallel 2 --stages 4",
      "hbp vlm build/samples.csv --vision-column vision --vlm internvl-1.5-26b \\\n"
      "      --machine a100-80:4 --tensor-parallel 4 --stages 4 --compare"}},
    {"stages",
     CLI_STAGES,
     1,
     "LAYERS",
     "Cut layers into pipeline stages.",
     cli_stages,
     CLI_TO_PLAN,
     {"printf '%s\\n' name,forward_ms,backward_ms in,2,4 a,5,9 b,5,9 out,3,6 >build/layers.csv",
      "hbp stages build/layers.csv --stages 2 --micro-batches 8 --all"}},
    {"tasks",
     CLI_TASKS,
     1,
     "GRAPH",
     "Plan many tasks on one machine: which operators on how many GPUs, on which, when.",
     cli_tasks,
     CLI_TO_PLAN,
     {"hbp tasks examples/data/tasks.json --machine a800-80:2",
      "hbp tasks clip-4 --machine a800-80:2 --compare",
      "hbp tasks clip-4 --machine a800-80:2 -o build/tasks.msgpack"}},
    {"show",
     CLI_SHOW,
     1,
     "PLAN",
     "A plan, one step of it, or what one rank runs in it.",
     cli_show,
     CLI_TO_LOOK_AT_A_PLAN,
     {"hbp show " PLAN, "hbp show " PLAN " --step 17", "hbp show " PLAN " --step 17 --rank 3"}},
    {"report",
     CLI_REPORT,
     1,
     "PLAN",
     "One page to look at: lengths, steps by rank, memory, waiting.",
     cli_report,
     CLI_TO_LOOK_AT_A_PLAN,
     {"hbp report " PLAN " -o build/report.html", "hbp report " PLAN " --step 17 -o build/report.html"}},
    {"trace",
     CLI_TRACE,
     1,
     "PLAN",
     "A timeline of ranks that opens in Perfetto.",
     cli_trace,
     CLI_TO_LOOK_AT_A_PLAN,
     {"hbp trace " PLAN " -o build/trace.json.gz", "hbp trace " PLAN " --steps 17:20 -o build/trace.json"}},
    {"validate",
     CLI_VALIDATE,
     1,
     "PLAN",
     "Check every promise of a plan.",
     cli_validate,
     CLI_TO_LOOK_AT_A_PLAN,
     {"hbp validate " PLAN, "hbp validate " PLAN " --lengths " LENGTHS " \\\n     " ON_H100}},
    {"dump",
     CLI_DUMP,
     1,
     "PLAN",
     "A plan as JSON.",
     cli_dump,
     CLI_TO_LOOK_AT_A_PLAN,
     {"hbp dump " PLAN " | head -c 300", "hbp dump " PLAN " -o build/plan.json"}},
    {"model",
     CLI_MODEL,
     0,
     "[NAME]",
     "The presets of models; or one model: its fields, parameters, and bytes of its states.",
     cli_model,
     CLI_TO_COST,
     {"hbp model", "hbp model llama-3.1-8b",
      "hbp model llama-3.1-8b,layers=16,vocab=32000 --machine h100:4"}},
    {"machine",
     CLI_MACHINE,
     0,
     "[NAME[:N]]",
     "The presets of machines; or one machine: its fields, and where each is from.",
     cli_machine,
     CLI_TO_COST,
     {"hbp machine", "hbp machine h100:4", "hbp machine h100:4 --set network_bytes_per_s=25e9"}},
    {"stack",
     CLI_STACK,
     0,
     "[NAME[:KERNEL]]",
     "The presets of software stacks; or what one comes to for a model on a machine.",
     cli_stack,
     CLI_TO_COST,
     {"hbp stack", "hbp stack fsdp --model llama-3.1-70b --machine a100-80",
      "hbp stack fsdp:fa3,elementwise_bytes=200"}},
    {"probe",
     CLI_PROBE,
     0,
     "",
     "This machine, or one described by files; -o saves it as a profile.",
     cli_probe,
     CLI_TO_COST,
     {"hbp probe", "hbp probe --machine h100:4 --set network_bytes_per_s=25e9 -o build/machine.json"}},
    {"fit",
     CLI_FIT,
     0,
     "[TIMELINE]",
     "A cost from what a run measured, or scaled to the speed of one; -o saves it for --cost.",
     cli_fit,
     CLI_TO_COST,
     {"hbp fit build/packs.csv --machine build/here.json --zero none --fused-ce \\\n"
      "      --model llama-3.1-8b,layers=2,hidden=128,ffn=384,heads=8,kv_heads=4,head_dim=16,vocab=512 \\\n"
      "      -o build/cost.json",
      "hbp fit --model llama-3.1-8b --machine h100 --stack fsdp \\\n"
      "      --anchor tokens_per_s_per_gpu=5600,sequence_tokens=8K,recompute=32"}},
    {"methods",
     CLI_METHODS,
     0,
     "",
     "Every method that the library has, with its paper.",
     cli_methods,
     CLI_TO_OTHER,
     {"hbp methods", "hbp methods --json"}},
    {"completion",
     CLI_COMPLETION,
     1,
     "SHELL",
     "What bash, zsh or fish completes of hbp.",
     cli_completion,
     CLI_TO_OTHER,
     {"hbp completion bash >build/hbp.bash", "hbp completion zsh >build/_hbp"}},
    {"help",
     CLI_HELP,
     0,
     "[COMMAND]",
     "The options of a command; --man: all of hbp as a page for man.",
     cli_help,
     CLI_TO_OTHER,
     {"hbp help plan", "hbp help --max-length", "hbp help --man >build/hbp.1"}},
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

const cli_command *cli_get_commands(int *count)
{
    *count = (int)COMMAND_COUNT;
    return commands;
}

const char *cli_command_group(int group)
{
    return groups[group];
}

const cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

const char *cli_nearest_command(const char *name)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    return cli_nearest(name, names, (int)COMMAND_COUNT);
}
