#include "walk/check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/transformer.h"
#include "walk/batch.h"

static const double GIB = 1 << 30;

int32_t ex_check_recompute(const ex_check *c, int64_t pack)
{
    if (c->recompute >= 0)
        return c->recompute;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(c->plan, &view);
    return pack < 0 ? 0 : view.pack_recompute[pack];
}

/* Rows of the plan's packs that the steps hold. */
static void find_packs(const ex_check *c, int64_t *first, int64_t *end)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(c->plan, &view);
    *first = view.micro_batch_offsets[view.step_offsets[c->first_step]];
    *end = view.micro_batch_offsets[view.step_offsets[c->first_step + c->steps]];
}

int ex_check_plan(const ex_check *c, ex_fault *fault)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(c->plan, &view);
    int64_t count = view.steps;
    if (c->first_step >= count)
        return ex_fail(fault, "step %lld is not in the plan, which has %lld", (long long)c->first_step,
                       (long long)count);
    if (c->steps < 1 || c->first_step < 0 || c->first_step > count - c->steps)
        return ex_fail(fault, "steps %lld to %lld are not in the plan, which has %lld",
                       (long long)c->first_step, (long long)(c->first_step + c->steps) - 1, (long long)count);
    int32_t layers = c->shape->layers;
    if (c->recompute > layers)
        return ex_fail(fault, "%d layers to recompute; the model has %d", (int)c->recompute, (int)layers);
    if (c->unpacked)
        return 0;
    int64_t first, end;
    find_packs(c, &first, &end);
    int32_t planned = 0;
    for (int64_t p = first; p < end; p++) {
        planned =
            view.pack_ranks[p] + view.pack_sp[p] > planned ? view.pack_ranks[p] + view.pack_sp[p] : planned;
        if (!hbp_model_is_sp_legal(c->model, view.pack_sp[p]))
            return ex_fail(fault,
                           "pack %lld has SP degree %d, which %d heads and %d key-value heads do not divide "
                           "by; plan for "
                           "this model",
                           (long long)p, (int)view.pack_sp[p], (int)c->shape->heads, (int)c->shape->kv_heads);
        if (ex_check_recompute(c, p) > layers)
            return ex_fail(fault, "pack %lld recomputes %d layers; the model has %d: plan for this model",
                           (long long)p, (int)ex_check_recompute(c, p), (int)layers);
    }
    if (planned != c->ranks)
        return ex_fail(fault,
                       "the plan is for %d ranks and there are %d; start %d (mpirun -n %d, or --virtual %d)",
                       (int)planned, (int)c->ranks, (int)planned, (int)planned, (int)planned);
    return 0;
}

/* The largest pack of one SP degree and number of recomputed layers. */
typedef struct need {
    int32_t sp, recompute;
    int64_t tokens, documents;
    int64_t pack; /* the one with most tokens */
} need;

static need *find_need(need *needs, int64_t *count, int32_t sp, int32_t recompute)
{
    for (int64_t i = 0; i < *count; i++)
        if (needs[i].sp == sp && needs[i].recompute == recompute)
            return &needs[i];
    needs[*count] = (need){.sp = sp, .recompute = recompute, .pack = -1};
    return &needs[(*count)++];
}

static void add_pack(need *n, int64_t pack, int64_t tokens, int64_t documents)
{
    if (tokens > n->tokens) {
        n->tokens = tokens;
        n->pack = pack;
    }
    n->documents = documents > n->documents ? documents : n->documents;
}

/* Weights, masters, gradients and both moments of a rank. */
static int64_t count_states(const ex_check *c, const ex_device *device)
{
    return ex_shape_parameters(c->shape) * (16 + (int64_t)ex_type_bytes(device->type));
}

/* A model that is far too large need not be measured pack by pack, which takes time with its layers. */
static int check_states(const ex_check *c, ex_device *device, ex_fault *fault)
{
    int64_t free_bytes, total_bytes, states = count_states(c, device);
    device->ops->memory(device, &free_bytes, &total_bytes);
    if (states <= free_bytes / c->sharers)
        return 0;
    return ex_fail(
        fault,
        "memory: weights and optimiser need %.2f GiB a rank; %.2f GiB of %.2f are free on %s for %d "
        "rank%s; use a smaller model",
        (double)states / GIB, (double)free_bytes / GIB, (double)total_bytes / GIB, device->name,
        (int)c->sharers, c->sharers == 1 ? "" : "s");
}

static int compare_memory(const ex_check *c, ex_device *device, const need *worst, int64_t arena,
                          ex_fault *fault)
{
    int64_t free_bytes, total_bytes, states = count_states(c, device);
    device->ops->memory(device, &free_bytes, &total_bytes);
    if (states + arena <= free_bytes / c->sharers)
        return 0;
    return ex_fail(
        fault,
        "memory: %s %lld of %lld tokens on %d rank%s with %d of %d layers recomputed needs %.2f GiB a rank "
        "(%.2f "
        "weights and optimiser, %.2f activations); %.2f GiB of %.2f are free on %s for %d rank%s; use a "
        "smaller model, shorter packs (hbp plan --max-length, --reserve) or more recomputation",
        c->unpacked ? "sample row" : "pack", (long long)worst->pack, (long long)worst->tokens, (int)worst->sp,
        worst->sp == 1 ? "" : "s", (int)worst->recompute, (int)c->shape->layers,
        (double)(states + arena) / GIB, (double)states / GIB, (double)arena / GIB, (double)free_bytes / GIB,
        (double)total_bytes / GIB, device->name, (int)c->sharers, c->sharers == 1 ? "" : "s");
}

int ex_check_memory(const ex_check *c, ex_device *device, int64_t *arena_bytes, ex_fault *fault)
{
    int64_t first, end;
    if (check_states(c, device, fault) < 0)
        return -1;
    find_packs(c, &first, &end);
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(c->plan, &view);
    /* At most 31 degrees times the numbers of layers, 0 .. layers. */
    need *needs = calloc(31 * ((size_t)c->shape->layers + 1), sizeof *needs);
    if (!needs)
        return ex_fail(fault, "no memory to check the plan");
    int64_t count = 0;
    if (c->unpacked) {
        need *n = find_need(needs, &count, 1, ex_check_recompute(c, -1));
        for (int64_t i = view.pack_offsets[first]; i < view.pack_offsets[end]; i++)
            add_pack(n, i, view.sample_tokens[i], 1);
    } else
        for (int64_t p = first; p < end; p++) {
            int32_t sp = view.pack_sp[p];
            int64_t documents = view.pack_offsets[p + 1] - view.pack_offsets[p];
            int64_t tokens = ex_batch_tokens(c->plan, p, view.pack_offsets[p], documents, sp);
            /* Padding behind the last one is a document, too; none is empty. */
            add_pack(find_need(needs, &count, sp, ex_check_recompute(c, p)), p, tokens,
                     documents < tokens ? documents + 1 : tokens);
        }
    const need *worst = needs;
    int64_t most = -1;
    for (int64_t i = 0; i < count; i++) {
        int64_t bytes = ex_model_measure(device, c->shape, needs[i].sp, needs[i].tokens, needs[i].documents,
                                         needs[i].recompute);
        if (bytes < 0) {
            ex_fail(fault, "cannot measure pack %lld: %s", (long long)needs[i].pack,
                    device->fault.failed ? device->fault.text : "no memory");
            most = -1;
            break;
        }
        if (bytes > most) {
            most = bytes;
            worst = &needs[i];
        }
    }
    int failed = most < 0 ? ex_fail(fault, "the plan has no pack to run")
                          : compare_memory(c, device, worst, most, fault);
    if (!failed)
        *arena_bytes = most;
    free(needs);
    return failed;
}

/* Whether `text` holds `part`, letters alike in either case. */
static int holds(const char *text, const char *part, size_t length)
{
    for (; *text; text++) {
        size_t i = 0;
        while (i < length && text[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == length)
            return length > 0;
    }
    return 0;
}

int ex_check_same_device(const char *name, const char *device)
{
    /* "NAME x RANKS" is what a probe writes; "h100-80" and "h100:4" are presets. */
    size_t length = strlen(name);
    for (size_t i = 0; i + 3 < strlen(name); i++)
        if (strncmp(name + i, " x ", 3) == 0 && strspn(name + i + 3, "0123456789") == strlen(name + i + 3))
            length = i;
    if (holds(device, name, length))
        return 1;
    return holds(device, name, strcspn(name, "-:"));
}
