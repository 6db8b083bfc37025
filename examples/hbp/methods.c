/* hbp methods: every method that the library has, under the option or the field that takes its name, from the
 * library's own lists (hbp/base.h, "Methods"). */
#include <stdio.h>

#include "options.h"

static const struct {
    const char *plans;
    const char *option; /* that takes the names; "": C and Python alone */
    const char *list;
} families[] = {
    {"an epoch", "hbp plan --method", "HBP_EPOCH_METHODS"},
    {"what a step holds", "hbp plan --composition", "HBP_COMPOSITION"},
    {"a step", "hbp step --method", "HBP_STEP_METHODS"},
    {"groups of pack lengths", "hbp groups --method", "HBP_GROUPS_METHODS"},
    {"samples into packs", "", "HBP_FILL_METHODS"},
    {"packs into micro-batches", "", "HBP_BALANCE_METHODS"},
    {"samples into micro-batches, vision and language", "hbp vlm --data-method", "HBP_VLM_DATA_METHODS"},
    {"packs under two budgets", "", "HBP_ITERATIVE_FILL_METHODS"},
    {"the two budgets", "", "HBP_BUDGETS_METHODS"},
    {"layers into stages", "hbp stages, vlm --partition-method", "HBP_LAYER_PARTITION_METHODS"},
    {"recomputation", "hbp vlm --recompute-method", "HBP_RECOMPUTE_METHODS"},
    {"many tasks", "hbp tasks --method", "HBP_TASKS_METHODS"},
    {"slices on GPUs", "hbp tasks --placement-method", "HBP_PLACEMENT_METHODS"},
};

/* Method `index` of a family; 0 past the end. A plan may have a composition that no option asks for. */
static int get_method(const char *list, int64_t index, hbp_choice *choice)
{
    *choice = (hbp_choice){.struct_size = sizeof *choice};
    return hbp_record_get_choice(list, index, choice) >= 0 &&
           !(choice->constant && choice->value > HBP_COMPOSITION_HIERARCHY);
}

static const char *paper_of(const hbp_choice *choice)
{
    if (choice->constant)
        return choice->value == HBP_COMPOSITION_HIERARCHY ? "HBP, arXiv 2503.07680" : "";
    return choice->paper;
}

static int print_json(cli *c)
{
    hbp_choice m;
    c->result = json_array();
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
        for (int64_t i = 0; get_method(families[k].list, i, &m); i++)
            json_array_append_new(c->result,
                                  json_pack("{s:s,s:s?,s:s,s:s,s:s}", "plans", families[k].plans, "option",
                                            families[k].option[0] ? families[k].option : NULL, "name", m.name,
                                            "paper", paper_of(&m), "text", m.text));
    return cli_print_json(c);
}

int cli_methods(cli *c)
{
    hbp_choice m;
    if (c->json)
        return print_json(c);
    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        table t;
        say("%s%s: %s\n", k ? "\n" : "", families[k].plans,
            families[k].option[0] ? families[k].option : "in C and Python, no option");
        table_begin(&t, 3, (const char *[]){"<method", "-<paper", "~what it does"});
        for (int64_t i = 0; get_method(families[k].list, i, &m); i++) {
            table_add(&t, "%s", m.name);
            table_add(&t, "%s", paper_of(&m)[0] ? paper_of(&m) : "-");
            table_add(&t, "%s", m.text);
        }
        table_end(&t);
    }
    return 0;
}
