/* What a plan promises of its steps, and what its steps came to hold. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* A price of steps is said from so many times the bound with steps left free on. */
#define WORTH_SAYING 1.01

shown show_contract(const hbp_plan_summary *s, const char *how)
{
    shown out = {""};
    size_t length = 0;
    /* More may be asked for than there are. */
    const int64_t in_a_step = s->samples_per_step < s->samples ? s->samples_per_step : s->samples;
    if (s->samples_per_step)
        length = (size_t)snprintf(out.s, sizeof out.s, " of %s", show_number(in_a_step, "sample").s);
    if (s->tokens_per_step)
        length += (size_t)snprintf(out.s + length, sizeof out.s - length, "%s at most %s%s",
                                   length ? " and" : " of", show_number(s->tokens_per_step, "token").s, how);
    if (s->composition)
        snprintf(out.s + length, sizeof out.s - length, ", %s", hbp_composition_name(s->composition));
    return out;
}

shown show_gpus(const hbp_plan_summary *s)
{
    shown out = show_number(s->ranks, "GPU");
    size_t length = strlen(out.s);
    if (s->lockstep_ranks)
        snprintf(out.s + length, sizeof out.s - length, " in lockstep sets of %d", (int)s->lockstep_ranks);
    return out;
}

shown show_rivals(const hbp_plan_summary *s)
{
    shown out = {"plan of these samples in so many steps"};
    /* The samples of each step were chosen before the steps were planned. */
    int are_chosen = s->composition == HBP_COMPOSITION_RANDOM && !s->mixture_ns;
    if (!s->bound_ns)
        return out;
    if (are_chosen || s->composition == HBP_COMPOSITION_GIVEN || s->samples_per_step > 0)
        snprintf(out.s, sizeof out.s, "schedule of these very steps");
    else if (s->tokens_per_step)
        snprintf(out.s, sizeof out.s, "plan in steps of at most %.40s",
                 show_number(s->tokens_per_step, "token").s);
    return out;
}

shown show_conditions(const hbp_plan_summary *s)
{
    shown out;
    snprintf(out.s, sizeof out.s, "on %.80s under this cost and these options", show_gpus(s).s);
    return out;
}

void print_steps(const hbp_report *r)
{
    say("steps: %s .. %s .. %s samples, %s .. %s .. %s tokens (5 %%, median, 95 %%); a step's mixture is %s "
        "from the epoch's\n",
        show_count(r->step_samples_p5).s, show_count(r->step_samples_median).s,
        show_count(r->step_samples_p95).s, show_count(r->step_tokens_p5).s,
        show_count(r->step_tokens_median).s, show_count(r->step_tokens_p95).s,
        show_real("%.3f", r->mixture_distance).s);
}

void print_hierarchy(const hbp_plan_summary *s)
{
    if (s->hierarchy_ns && s->mixture_ns)
        say("the hierarchy takes %s, the fastest found without one %s%s\n",
            show_time((double)s->hierarchy_ns).s, show_time((double)s->mixture_ns).s,
            s->composition == HBP_COMPOSITION_HIERARCHY && s->mixture_ns < s->hierarchy_ns
                ? " (estimated from some of them: too little is saved to plan all)"
                : "");
}

int has_price(const hbp_plan_summary *s, int64_t bound_ns)
{
    return s->free_bound_ns > 0 && (double)bound_ns > WORTH_SAYING * (double)s->free_bound_ns;
}

void print_price(const hbp_plan_summary *s, int64_t bound_ns)
{
    if (has_price(s, bound_ns))
        say("these very steps cost up to %s: with steps left free, no plan takes less than %s under this "
            "cost and these options\n",
            show_share((double)s->predicted_ns / (double)s->free_bound_ns - 1).s,
            show_time((double)s->free_bound_ns).s);
}

void json_add_contract(json_t *object, const hbp_plan_summary *s)
{
    const char *composition = s->composition ? hbp_composition_name(s->composition) : NULL;
    json_t *rest =
        json_pack("{s:s?,s:I,s:I,s:I,s:I,s:I,s:o,s:b}", "composition", composition, "samples_per_step",
                  (json_int_t)s->samples_per_step, "tokens_per_step", (json_int_t)s->tokens_per_step,
                  "hierarchy_ns", (json_int_t)s->hierarchy_ns, "mixture_ns", (json_int_t)s->mixture_ns,
                  "lockstep_ranks", (json_int_t)(s->lockstep_ranks ? s->lockstep_ranks : s->ranks),
                  "free_bound_ns", json_known(s->free_bound_ns), "shifted_loss", (int)s->shifted_loss);
    json_object_update(object, rest);
    json_decref(rest);
}

void json_add_steps(json_t *object, const hbp_report *r)
{
    json_t *rest =
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o}", "step_samples_p5", (json_int_t)r->step_samples_p5,
                  "step_samples_median", (json_int_t)r->step_samples_median, "step_samples_p95",
                  (json_int_t)r->step_samples_p95, "step_tokens_p5", (json_int_t)r->step_tokens_p5,
                  "step_tokens_median", (json_int_t)r->step_tokens_median, "step_tokens_p95",
                  (json_int_t)r->step_tokens_p95, "samples_cv", json_number(r->samples_cv),
                  "mixture_distance", json_number(r->mixture_distance));
    json_object_update(object, rest);
    json_decref(rest);
}
