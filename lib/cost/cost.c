/* A cost as an object: made from terms, which are checked here, and what it says of itself. */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

#include "base/options.h"

static hbp_status check_numbers(hbp_context *context, const hbp_cost_terms *t)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {
#define NUMBER(name) {#name, t->name},
        HBP__COST_NUMBERS(NUMBER) HBP__COST_VISION_NUMBERS(NUMBER) HBP__COST_OVERLAP_NUMBERS(NUMBER)
#undef NUMBER
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i].value) || numbers[i].value < 0)
            return hbp__fail(context, HBP_E_INVALID, "%s is %g; it must be finite and at least 0",
                             numbers[i].name, numbers[i].value);
    if (t->compute_overlap > 1)
        return hbp__fail(context, HBP_E_INVALID, "compute_overlap is %g; it is a share, at most 1",
                         t->compute_overlap);
    if (t->traffic_ns > t->pack_ns)
        return hbp__fail(context, HBP_E_INVALID, "traffic_ns is %g; it is a part of pack_ns, at most %g",
                         t->traffic_ns, t->pack_ns);
    if (t->domain_ranks < 0 || t->domain_ranks > t->ranks)
        return hbp__fail(context, HBP_E_INVALID,
                         "domain_ranks is %d; it must be in 1..%d, or 0 for all ranks", (int)t->domain_ranks,
                         (int)t->ranks);
    return HBP_OK;
}

/* Sets of ranks that cut the machine evenly and no SP group; the degrees are checked. */
static hbp_status check_lockstep(hbp_context *context, const hbp_cost_terms *t)
{
    int32_t set = t->lockstep_ranks ? t->lockstep_ranks : t->ranks;
    if (set < 1 || set > t->ranks || t->ranks % set)
        return hbp__fail(context, HBP_E_INVALID,
                         "lockstep_ranks is %d; it must divide the %d ranks, or be 0 for all of them",
                         (int)t->lockstep_ranks, (int)t->ranks);
    for (int32_t i = 0; set > 1 && i < t->degrees; i++)
        if (set % t->degree[i])
            return hbp__fail(context, HBP_E_INVALID,
                             "lockstep_ranks is %d, which cuts groups of degree[%d], %d ranks; it must be 1 "
                             "or a multiple of every degree",
                             (int)set, (int)i, (int)t->degree[i]);
    if (t->uneven_micro_batches && set == t->ranks && set > 1)
        return hbp__fail(context, HBP_E_INVALID,
                         "uneven_micro_batches is set; with lockstep_ranks %d of %d ranks all of them meet "
                         "in every micro-batch",
                         (int)set, (int)t->ranks);
    return HBP_OK;
}

static hbp_status check_tables(hbp_context *context, const hbp_cost_terms *t)
{
    if (t->degrees < 1)
        return hbp__fail(context, HBP_E_INVALID, "degrees is %d; there is at least degree 1",
                         (int)t->degrees);
    HBP__TRY(hbp__require(context, t->degree, "degree"));
    HBP__TRY(hbp__require(context, t->sp_latency_ns, "sp_latency_ns"));
    HBP__TRY(hbp__require(context, t->sp_ns_per_token, "sp_ns_per_token"));
    for (int32_t i = 0; i < t->degrees; i++) {
        int32_t d = t->degree[i];
        if (i == 0 ? d != 1 : d <= t->degree[i - 1])
            return hbp__fail(context, HBP_E_INVALID, "degree[%d] is %d; degrees begin at 1 and ascend",
                             (int)i, (int)d);
        if (t->ranks % d)
            return hbp__fail(context, HBP_E_INVALID, "degree[%d] is %d, which does not divide %d ranks",
                             (int)i, (int)d, (int)t->ranks);
        int32_t domain = t->domain_ranks ? t->domain_ranks : t->ranks;
        if (d <= domain && domain % d)
            return hbp__fail(context, HBP_E_INVALID,
                             "degree[%d] is %d, whose groups would cross a domain of %d ranks", (int)i,
                             (int)d, (int)domain);
        if (!isfinite(t->sp_latency_ns[i]) || t->sp_latency_ns[i] < 0)
            return hbp__fail(context, HBP_E_INVALID,
                             "sp_latency_ns[%d] is %g; it must be finite and at least 0", (int)i,
                             t->sp_latency_ns[i]);
        if (!isfinite(t->sp_ns_per_token[i]) || t->sp_ns_per_token[i] < 0)
            return hbp__fail(context, HBP_E_INVALID,
                             "sp_ns_per_token[%d] is %g; it must be finite and at least 0", (int)i,
                             t->sp_ns_per_token[i]);
    }
    return HBP_OK;
}

static void copy_text(char *to, size_t room, const char *text)
{
    size_t length = strlen(text);
    if (length >= room)
        length = room - 1;
    memcpy(to, text, length);
    to[length] = '\0';
}

void hbp__cost_set_source(hbp_cost *cost, int32_t index, const char *source)
{
    copy_text(cost->source[index], HBP__COST_SOURCE_BYTES, source);
}

void hbp__cost_set_name(char name[HBP__COST_NAME_BYTES], const char *text)
{
    copy_text(name, HBP__COST_NAME_BYTES, text);
}

hbp_status hbp__cost_check_terms(hbp_context *context, const hbp_cost_terms *terms)
{
    HBP__TRY(check_numbers(context, terms));
    return check_tables(context, terms);
}

hbp_status hbp__cost_make(hbp_context *context, const hbp_cost_terms *terms, const char *source,
                          hbp_cost **out)
{
    HBP__TRY(hbp__options_check(context, "hbp_cost_terms", terms));
    HBP__TRY(hbp__cost_check_terms(context, terms));
    HBP__TRY(check_lockstep(context, terms));
    hbp_cost *cost = hbp__new_zero(&context->memory, 1, sizeof *cost);
    if (!cost)
        return hbp__fail_memory(context, "a cost");
    cost->memory = context->memory;
    uint64_t rows = (uint64_t)terms->degrees;
    cost->degree = hbp__new(&cost->memory, rows, sizeof *cost->degree);
    cost->sp_latency_ns = hbp__new(&cost->memory, rows, sizeof *cost->sp_latency_ns);
    cost->sp_ns_per_token = hbp__new(&cost->memory, rows, sizeof *cost->sp_ns_per_token);
    if (!cost->degree || !cost->sp_latency_ns || !cost->sp_ns_per_token) {
        hbp_cost_free(cost);
        return hbp__fail_memory(context, "a cost");
    }
    memcpy(cost->degree, terms->degree, rows * sizeof *cost->degree);
    memcpy(cost->sp_latency_ns, terms->sp_latency_ns, rows * sizeof *cost->sp_latency_ns);
    memcpy(cost->sp_ns_per_token, terms->sp_ns_per_token, rows * sizeof *cost->sp_ns_per_token);
    cost->terms = *terms;
    cost->terms.struct_size = sizeof cost->terms;
    if (!cost->terms.domain_ranks)
        cost->terms.domain_ranks = terms->ranks;
    /* One rank that may skip micro-batches is a set that skips, not all that meet. */
    if (terms->ranks == 1 && terms->uneven_micro_batches)
        cost->terms.lockstep_ranks = 1;
    else if (cost->terms.lockstep_ranks == terms->ranks)
        cost->terms.lockstep_ranks = 0;
    cost->terms.degree = cost->degree;
    cost->terms.sp_latency_ns = cost->sp_latency_ns;
    cost->terms.sp_ns_per_token = cost->sp_ns_per_token;
    for (int32_t i = 0; i < HBP__COST_TERM_COUNT; i++)
        hbp__cost_set_source(cost, i, source);
    *out = cost;
    return HBP_OK;
}

hbp_status hbp__cost_copy(hbp_context *context, const hbp_cost *cost, hbp_cost **out)
{
    hbp_cost *copy = NULL;
    HBP__TRY(hbp__cost_make(context, &cost->terms, "", &copy));
    copy->heads = cost->heads;
    copy->kv_heads = cost->kv_heads;
    copy->zero_stage = cost->zero_stage;
    copy->origin = cost->origin;
    memcpy(copy->model_name, cost->model_name, sizeof copy->model_name);
    memcpy(copy->machine_name, cost->machine_name, sizeof copy->machine_name);
    memcpy(copy->source, cost->source, sizeof copy->source);
    *out = copy;
    return HBP_OK;
}

static const int32_t times[] = {
    HBP__COST_ns_per_token,     HBP__COST_ns_per_token_squared, HBP__COST_pack_ns,
    HBP__COST_step_ns,          HBP__COST_ns_per_vision,        HBP__COST_traffic_ns,
    HBP__COST_least_compute_ns, HBP__COST_sp_latency_ns,        HBP__COST_sp_ns_per_token};

void hbp__cost_scale_times(const hbp_cost *prior, double scale, const char *source, hbp_cost *cost)
{
    const hbp_cost_terms *from = &prior->terms;
    hbp_cost_terms *to = &cost->terms;
    to->ns_per_token = from->ns_per_token * scale;
    to->ns_per_token_squared = from->ns_per_token_squared * scale;
    to->recompute_linear = from->recompute_linear;
    to->recompute_attention = from->recompute_attention;
    to->pack_ns = from->pack_ns * scale;
    to->step_ns = from->step_ns * scale;
    to->ns_per_vision = from->ns_per_vision * scale;
    to->traffic_ns = from->traffic_ns * scale;
    to->least_compute_ns = from->least_compute_ns * scale;
    for (int32_t row = 0; row < from->degrees; row++) {
        cost->sp_latency_ns[row] = prior->sp_latency_ns[row] * scale;
        cost->sp_ns_per_token[row] = prior->sp_ns_per_token[row] * scale;
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        hbp__cost_set_source(cost, times[i], source ? source : prior->source[times[i]]);
    hbp__cost_set_source(cost, HBP__COST_recompute_linear, prior->source[HBP__COST_recompute_linear]);
    hbp__cost_set_source(cost, HBP__COST_recompute_attention, prior->source[HBP__COST_recompute_attention]);
}

hbp_status hbp_cost_create_terms(hbp_context *context, const hbp_cost_terms *terms, hbp_cost **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, terms, "terms"));
    hbp_cost_terms all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, terms, "hbp_cost_terms"));
    return hbp__cost_make(context, &all, "given", out);
}

hbp_status hbp_cost_get_terms(hbp_context *context, const hbp_cost *cost, hbp_cost_terms *terms)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, cost, "cost"));
    return hbp__struct_write(context, terms, &cost->terms, sizeof cost->terms, "hbp_cost_terms");
}

const char *hbp_cost_get_source(const hbp_cost *cost, const char *term)
{
    static const char *const names[] = {
#define TERM_NAME(name) #name,
        HBP__COST_TERMS(TERM_NAME)
#undef TERM_NAME
    };
    if (!cost || !term)
        return NULL;
    for (int32_t i = 0; i < HBP__COST_TERM_COUNT; i++)
        if (!strcmp(names[i], term))
            return cost->source[i];
    return NULL;
}

const char *hbp_cost_get_model_name(const hbp_cost *cost)
{
    return cost ? cost->model_name : "";
}

const char *hbp_cost_get_machine_name(const hbp_cost *cost)
{
    return cost ? cost->machine_name : "";
}

void hbp_cost_free(hbp_cost *cost)
{
    if (!cost)
        return;
    hbp__memory memory = cost->memory;
    hbp__delete(&memory, cost->degree);
    hbp__delete(&memory, cost->sp_latency_ns);
    hbp__delete(&memory, cost->sp_ns_per_token);
    hbp__delete(&memory, cost);
}
