/* Where to resume, in 64 bytes: eight little-endian words. */
#include <string.h>

#include "base/digest.h"
#include "data/plan/cursor.h"
#include "data/plan/plan.h"

#define CURSOR_MAGIC UINT64_C(0x3172736370626820) /* " hbpcsr1" */

/* The words of a cursor, in order. */
enum { MAGIC, STEP, PLAN_DIGEST, LENGTHS_DIGEST, RANKS, SEED, EPOCH, CHECK, WORDS };

static uint64_t check_word(const uint64_t *words)
{
    hbp__digest digest = hbp__digest_begin();
    for (int i = 0; i < CHECK; i++)
        hbp__digest_u64(&digest, words[i]);
    return hbp__digest_end(&digest);
}

hbp_status hbp__cursor_save(hbp_context *context, const hbp__cursor_of *of, int64_t step, uint8_t *cursor)
{
    HBP__TRY(hbp__require(context, cursor, "cursor"));
    if (step < 0 || step > of->steps)
        return hbp__fail(context, HBP_E_INVALID, "step %lld; the plan has %lld", (long long)step,
                         (long long)of->steps);
    uint64_t words[WORDS] = {CURSOR_MAGIC,        (uint64_t)step, of->digest, of->lengths_digest,
                             (uint64_t)of->ranks, of->seed,       of->epoch,  0};
    words[CHECK] = check_word(words);
    for (int i = 0; i < WORDS * 8; i++)
        cursor[i] = (uint8_t)(words[i / 8] >> (i % 8 * 8));
    return HBP_OK;
}

hbp_status hbp__cursor_load(hbp_context *context, const hbp__cursor_of *of, const uint8_t *cursor,
                            int64_t *step)
{
    HBP__TRY(hbp__require(context, cursor, "cursor"));
    HBP__TRY(hbp__require(context, step, "step"));
    uint64_t words[WORDS] = {0};
    for (int i = 0; i < WORDS * 8; i++)
        words[i / 8] |= (uint64_t)cursor[i] << (i % 8 * 8);
    if (words[MAGIC] != CURSOR_MAGIC || words[CHECK] != check_word(words))
        return hbp__fail(context, HBP_E_FORMAT, "these %d bytes are not a cursor, or they are damaged",
                         HBP_CURSOR_BYTES);
    if (words[RANKS] != (uint64_t)of->ranks)
        return hbp__fail(context, HBP_E_INVALID, "the cursor is of a plan for %llu ranks; this one is for %d",
                         (unsigned long long)words[RANKS], (int)of->ranks);
    if (words[LENGTHS_DIGEST] != of->lengths_digest)
        return hbp__fail(context, HBP_E_INVALID,
                         "the lengths changed: the cursor's have digest %016llx, the plan's %016llx",
                         (unsigned long long)words[LENGTHS_DIGEST], (unsigned long long)of->lengths_digest);
    if (words[SEED] != of->seed || words[EPOCH] != of->epoch)
        return hbp__fail(context, HBP_E_INVALID,
                         "the cursor is of seed %llu, epoch %llu; the plan of seed %llu, epoch %llu",
                         (unsigned long long)words[SEED], (unsigned long long)words[EPOCH],
                         (unsigned long long)of->seed, (unsigned long long)of->epoch);
    if (words[PLAN_DIGEST] != of->digest)
        return hbp__fail(
            context, HBP_E_INVALID,
            "the plan changed: the cursor's has digest %016llx, this one %016llx; options, cost or version "
            "differ",
            (unsigned long long)words[PLAN_DIGEST], (unsigned long long)of->digest);
    if (words[STEP] > (uint64_t)of->steps)
        return hbp__fail(context, HBP_E_INVALID, "the cursor is at step %llu; the plan has %lld",
                         (unsigned long long)words[STEP], (long long)of->steps);
    *step = (int64_t)words[STEP];
    return HBP_OK;
}

static hbp__cursor_of cursor_of(const hbp_plan *plan)
{
    return (hbp__cursor_of){plan->steps,          plan->ranks, plan->digest,
                            plan->lengths_digest, plan->seed,  plan->epoch};
}

hbp_status hbp_plan_save_cursor(hbp_context *context, const hbp_plan *plan, int64_t step, uint8_t *cursor)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    const hbp__cursor_of of = cursor_of(plan);
    return hbp__cursor_save(context, &of, step, cursor);
}

hbp_status hbp_plan_load_cursor(hbp_context *context, const hbp_plan *plan, const uint8_t *cursor,
                                int64_t *step)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    const hbp__cursor_of of = cursor_of(plan);
    return hbp__cursor_load(context, &of, cursor, step);
}
