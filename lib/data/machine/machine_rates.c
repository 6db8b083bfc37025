/* Rates of one device that were measured at a size. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "data/machine/machine.h"

/* The first row not before (rate, size). O(log count). */
static int64_t find_rate(const hbp_machine *machine, int32_t rate, int64_t size)
{
    int64_t first = 0, end = machine->rate_count;
    while (first < end) {
        int64_t middle = first + (end - first) / 2;
        const hbp__rate *row = &machine->rates[middle];
        if (row->rate < rate || (row->rate == rate && row->size < size))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static hbp_status check_rate(hbp_context *context, const hbp__rate *r)
{
    if (r->rate < 0 || r->rate >= HBP_RATE_COUNT)
        return hbp__fail(context, HBP_E_INVALID, "rate is %d; it must be a HBP_RATE_* value", (int)r->rate);
    if (r->size < 1)
        return hbp__fail(context, HBP_E_INVALID, "size is %lld; it must be at least 1", (long long)r->size);
    if (!(isfinite(r->per_s) && r->per_s > 0))
        return hbp__fail(context, HBP_E_INVALID, "per_s is %g; it must be finite and above 0", r->per_s);
    if (!(isfinite(r->spread) && r->spread >= 0))
        return hbp__fail(context, HBP_E_INVALID, "spread is %g; it must be finite and at least 0", r->spread);
    return HBP_OK;
}

hbp_status hbp__machine_set_rate(hbp_context *context, hbp_machine *machine, int32_t rate, int64_t size,
                                 double per_s, double spread, const char *source)
{
    hbp__rate fresh = {rate, size, per_s, spread, ""};
    HBP__TRY(check_rate(context, &fresh));
    HBP__TRY(hbp__machine_check_text(context, "source", source));
    snprintf(fresh.source, sizeof fresh.source, "%s", source);
    int64_t at = find_rate(machine, rate, size);
    if (at == machine->rate_count || machine->rates[at].rate != rate || machine->rates[at].size != size) {
        int64_t count = machine->rate_count + 1;
        hbp__rate *rows = hbp__renew(&machine->memory, machine->rates, (uint64_t)count, sizeof *rows);
        if (!rows)
            return hbp__fail_memory(context, "rates");
        memmove(rows + at + 1, rows + at, (size_t)(count - 1 - at) * sizeof *rows);
        machine->rates = rows;
        machine->rate_count = count;
    }
    machine->rates[at] = fresh;
    return HBP_OK;
}

hbp_status hbp_machine_set_rate(hbp_context *context, hbp_machine *machine, const hbp_machine_rate *rate)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, rate, "rate"));
    hbp_machine_rate r;
    HBP__TRY(hbp__options_read(context, &r, sizeof r, rate, "hbp_machine_rate"));
    return hbp__machine_set_rate(context, machine, r.rate, r.size, r.per_s, r.spread,
                                 r.source ? r.source : "given");
}

int32_t hbp_machine_get_rate(const hbp_machine *machine, int64_t index, hbp_machine_rate *rate)
{
    hbp_machine_rate all = {0};
    int is_there = machine && index >= 0 && index < machine->rate_count;
    if (is_there) {
        const hbp__rate *row = &machine->rates[index];
        all = (hbp_machine_rate){0, row->rate, row->size, row->per_s, row->spread, row->source};
    }
    return hbp__view_write(rate, is_there ? machine : NULL, &all, sizeof all) == HBP_OK;
}
