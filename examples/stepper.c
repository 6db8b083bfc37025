/* An online trainer: batches come one by one, and the next step is planned while this one trains. */
#include <hbp/hbp.h>
#include <stdio.h>

enum { RANK = 5, STEPS = 6, BATCH = 512, MOST_DEGREES = 32, MOST_MICRO_BATCHES = 256 };

typedef struct trainer {
    hbp_context *ctx;
    const hbp_cost *cost;
    hbp_stepper *stepper;
    hbp_communicator groups[MOST_DEGREES]; /* of this rank */
    int64_t group_count;
} trainer;

/* Every SP group this rank can be in is known before the run: make its communicators here, in this order. */
static hbp_status make_communicators(trainer *t)
{
    hbp_status status = hbp_list_communicators(t->ctx, t->cost, NULL, RANK, t->groups, sizeof *t->groups,
                                               MOST_DEGREES, &t->group_count);
    for (int64_t i = 0; status >= 0 && i < t->group_count; i++)
        printf("communicator %lld: ranks %d to %d\n", (long long)t->groups[i].index,
               (int)t->groups[i].first_rank, (int)(t->groups[i].first_rank + t->groups[i].sp - 1));
    return status;
}

/* Stands for the data loader: mostly short samples, now and then a long one. */
static hbp_status submit_batch(trainer *t, int64_t step)
{
    int64_t tokens[BATCH];
    for (int64_t i = 0; i < BATCH; i++) {
        int64_t draw = (step * BATCH + i) * 7919 % 10007;
        tokens[i] = draw % 41 == 0 ? 8000 + draw * 3 : 200 + draw % 3000;
    }
    return hbp_stepper_submit(t->ctx, t->stepper, tokens, BATCH, NULL);
}

/* Stands for training: what this rank runs, micro-batch by micro-batch, with the group it shares it with. */
static hbp_status train(trainer *t, const hbp_plan *plan)
{
    hbp_rank_pack packs[MOST_MICRO_BATCHES];
    int64_t count;
    hbp_status status =
        hbp_plan_copy_rank_packs(t->ctx, plan, 0, RANK, packs, sizeof *packs, MOST_MICRO_BATCHES, &count);
    hbp_plan_view view = {.struct_size = sizeof view};
    hbp_plan_get_view(plan, &view);
    for (int64_t m = 0; status >= 0 && m < count; m++) {
        const hbp_rank_pack *p = &packs[m];
        int64_t group =
            hbp_find_communicator(t->groups, sizeof *t->groups, t->group_count, p->first_rank, p->sp);
        printf("  micro-batch %lld: ", (long long)m);
        if (p->is_padding) /* still to be run, on padding and without loss: the others wait for its gradients
                            */
            printf("nothing\n");
        else
            printf("communicator %lld, place %d of %d, %d layers recomputed, %lld samples of %lld tokens, "
                   "the first is %lld\n",
                   (long long)t->groups[group].index, (int)p->sp_rank, (int)p->sp, (int)p->recompute,
                   (long long)p->samples, (long long)p->tokens, (long long)view.sample_ids[p->first_sample]);
    }
    return status;
}

static hbp_status run(trainer *t)
{
    hbp_status status = hbp_stepper_create(t->ctx, t->cost, NULL, NULL, &t->stepper);
    if (status >= 0)
        status = submit_batch(t, 0);
    for (int64_t step = 0; status >= 0 && step < STEPS; step++) {
        hbp_plan *plan = NULL;
        if (step + 1 < STEPS)
            status = submit_batch(t, step + 1); /* planned while this step trains */
        if (status >= 0)
            status = hbp_stepper_take(t->ctx, t->stepper, &plan);
        if (status >= 0) {
            hbp_plan_summary summary = {.struct_size = sizeof summary};
            status = hbp_plan_get_summary(t->ctx, plan, &summary);
            printf("step %lld: %.0f ms, digest %016llx\n", (long long)step,
                   (double)summary.predicted_ns / 1e6, (unsigned long long)summary.digest);
            if (status >= 0)
                status = train(t, plan);
        }
        hbp_plan_free(plan);
    }
    /* Every rank made these plans by itself. Compare this number between ranks now and then. */
    hbp_stepper_summary summary = {.struct_size = sizeof summary};
    if (status >= 0)
        status = hbp_stepper_get_summary(t->ctx, t->stepper, &summary);
    if (status >= 0)
        printf("%lld steps, digest of all %016llx\n", (long long)summary.taken,
               (unsigned long long)summary.digest);
    return status;
}

int main(void)
{
    trainer t = {.ctx = NULL};
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    int failed = hbp_context_create(NULL, &t.ctx) < 0 ||
                 hbp_model_create_preset(t.ctx, "llama-3.1-8b", &model) < 0 ||
                 hbp_machine_create_preset(t.ctx, "h100:2", &machine) < 0 ||
                 hbp_cost_create(t.ctx, model, machine, NULL, &cost) < 0;
    t.cost = cost;
    failed = failed || make_communicators(&t) < 0 || run(&t) < 0;
    if (failed)
        fprintf(stderr, "stepper: %s\n", t.ctx ? hbp_context_message(t.ctx) : "no context");
    hbp_stepper_free(t.stepper);
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_context_free(t.ctx);
    return failed;
}
