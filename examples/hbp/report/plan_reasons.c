/* Why a plan has the packs that it has: other hierarchies, other SP degrees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* A plan whose packs hold so much in the groups has them, if they are about as fast as the first choice. */
#define MOST_TOKENS   .6
#define ABOUT_AS_FAST 1.01

enum { MOST_LEVELS = 16 };

static int count_levels(const char *text)
{
    int levels = 1;
    for (; *text; text++)
        levels += *text == ',';
    return levels;
}

/* "13,270 at SP 1, 105,788 at SP 8" of the library's "13270 x SP 1, 105788 x SP 8". */
static json_t *level_text(const char *text)
{
    char out[1024] = "";
    size_t at = 0;
    while (*text && at < sizeof out - 64) {
        char *end;
        const long long length = strtoll(text, &end, 10);
        const size_t rest = strcspn(end, ",");
        at +=
            (size_t)snprintf(out + at, sizeof out - at, "%s%.20s at%.*s", at ? ", " : "",
                             show_count(length).s, (int)(rest > 2 ? rest - 2 : 0), end + (rest > 2 ? 2 : 0));
        text = end + rest + strspn(end + rest, ", ");
    }
    return report_text("%s", out);
}

/* The share of the tokens that are in packs of a set of groups, "13270 x SP 1, 105788 x SP 8"; 0 where one of
 * them has no pack, as in a plan made under other options. The last packs of a plan may be of other lengths.
 */
static double share_in_groups(const report_plan *p, const char *text)
{
    const hbp_plan_view *v = &p->view;
    int64_t length[MOST_LEVELS];
    long sp[MOST_LEVELS];
    const int levels = count_levels(text);
    unsigned met = 0;
    double in = 0;
    if (levels > MOST_LEVELS)
        return 0;
    for (int i = 0; i < levels; i++) {
        char *end;
        length[i] = strtoll(text, &end, 10);
        end += strspn(end, " xSP");
        sp[i] = strtol(end, &end, 10);
        text = end + strspn(end, ", ");
    }
    for (int64_t q = 0; q < v->packs; q++) {
        int i = 0;
        while (i < levels && (length[i] != v->pack_capacity[q] || sp[i] != v->pack_sp[q]))
            i++;
        if (i == levels || v->pack_tokens[q] == 0)
            continue;
        met |= 1U << i;
        in += (double)v->pack_tokens[q];
    }
    return met == (1U << levels) - 1 && p->summary.tokens > 0 ? in / (double)p->summary.tokens : 0;
}

/* The candidate that most of the tokens are in packs of, among those about as fast as the first: the planner
 * packs several and keeps the fastest. -1: none. */
static int64_t find_candidate(const report_plan *p, const hbp_groups_view *g, double *share)
{
    int64_t found = -1;
    *share = MOST_TOKENS;
    for (int64_t i = 0; i < g->candidates; i++) {
        if ((double)g->candidate_ns[i] > ABOUT_AS_FAST * (double)g->candidate_ns[0])
            continue;
        const double in = share_in_groups(p, g->candidate_texts[i]);
        if (in > *share) {
            found = i;
            *share = in;
        }
    }
    return found;
}

/* The fastest set of groups of each number of lengths, beside the plan's own. */
static void draw_groups(report_plan *p, const hbp_groups_view *g, int64_t own, double share)
{
    int64_t best[MOST_LEVELS + 1];
    int most = 0;
    for (int i = 0; i <= MOST_LEVELS; i++)
        best[i] = -1;
    for (int64_t i = 0; i < g->candidates; i++) {
        const int levels = count_levels(g->candidate_texts[i]);
        if (levels > MOST_LEVELS)
            continue;
        most = levels > most ? levels : most;
        if (best[levels] < 0 || g->candidate_ns[i] < g->candidate_ns[best[levels]])
            best[levels] = i;
    }
    const int levels = count_levels(g->candidate_texts[own]);
    best[levels] = own;
    json_t *answer = report_text(
        "%s of the tokens are in %s of packs, a length and an SP degree each. Each bar is the fastest set of "
        "so many groups, by the epoch's time predicted before samples are packed; in bold the plan's. One "
        "group more is taken where it saves more than a thousandth of the time.",
        show_share(share).s, show_number(levels, "group").s);
    json_t *picture =
        report_picture(p->page, "bars", "groups",
                       levels == 1 ? "Why one group of packs?" : "Why this many groups of packs?", answer);
    json_object_set_new(picture, "unit", json_string("ns"));
    json_object_set_new(picture, "value_name", json_string("epoch"));
    for (int i = 1; i <= most; i++) {
        if (best[i] < 0)
            continue;
        const double ns = (double)g->candidate_ns[best[i]];
        json_t *label = level_text(g->candidate_texts[best[i]]);
        json_t *counted = report_text("%d: %s", i, json_string_value(label));
        report_bar(picture, json_string_value(counted), ns,
                   show_real("x %.4f", ns / (double)g->candidate_ns[own]).s, i == levels);
        json_decref(counted);
        json_decref(label);
    }
}

static hbp_status find_groups(report_plan *p, hbp_groups_view *g)
{
    cli *c = p->c;
    const hbp_groups_options options = {.struct_size = sizeof options,
                                        .tokens_per_step = p->summary.tokens_per_step,
                                        .pack_multiple = p->summary.pack_multiple,
                                        .sequence_multiple = p->summary.sequence_multiple};
    hbp_status status =
        hbp_lengths_create_i32(c->context, p->view.sample_tokens, p->view.samples, NULL, &c->lengths);
    if (status >= 0)
        status = hbp_plan_groups(c->context, c->lengths, c->cost, &options, &c->groups);
    return status < 0 ? status : hbp_groups_get_view(c->groups, g);
}

/* "fits: 4.94 s, 1.32 min of GPU time, recomputed", of this very pack. */
static void describe_choice(const report_plan *p, int64_t pack, const hbp_sp_choice *choice, char *note,
                            size_t bytes)
{
    const hbp_plan_view *v = &p->view;
    const int64_t ns =
        hbp_cost_predict_pack_ns(p->c->cost, choice->sp, choice->recompute, v->pack_padded_tokens[pack],
                                 (double)v->pack_squares[pack], v->pack_vision ? v->pack_vision[pack] : 0);
    /* A saved cost has its degrees and not the heads: why others are not among them is not known. */
    if (choice->reason == HBP_SP_TOO_FEW_RANKS && choice->sp <= p->terms.ranks)
        snprintf(note, bytes, "none of the cost's degrees");
    else if (choice->reason != HBP_SP_FEASIBLE || ns < 0)
        snprintf(note, bytes, "%s", cli_sp_reason(choice->reason));
    else
        snprintf(note, bytes, "fits: %.20s, %.20s of GPU time%s", show_time((double)ns).s,
                 show_time((double)ns * choice->sp).s, choice->recompute ? ", recomputed" : "");
}

/* Memory of the longest pack on each degree, and its time. */
static hbp_status draw_degrees(report_plan *p)
{
    int64_t longest = 0, count = 0;
    hbp_sp_choice *choices = NULL;
    const hbp_plan_view *v = &p->view;
    for (int64_t q = 1; q < v->packs; q++)
        if (v->pack_padded_tokens[q] > v->pack_padded_tokens[longest])
            longest = q;
    if (v->packs == 0 || v->pack_padded_tokens[longest] < 1)
        return HBP_OK;
    const int64_t tokens = v->pack_padded_tokens[longest];
    hbp_status status = cli_list_sp_choices(p->c, tokens, 0, &choices, &count);
    if (status < 0) {
        free(choices);
        return status;
    }
    json_t *answer = report_text(
        "The longest pack has %s and runs at SP %d. Bars are the memory of a rank that "
        "holds it at each degree, with as many layers recomputed as that takes; beside "
        "them the pack's time there, and its GPU time: time x GPUs. Which degree is taken hangs on all "
        "packs of the step: a higher one is done sooner, on GPUs that others then lack.",
        show_number(tokens, "token").s, (int)v->pack_sp[longest]);
    json_t *picture = report_picture(p->page, "bars", "degrees", "Why so much sequence parallelism?", answer);
    json_object_set_new(picture, "unit", json_string("bytes"));
    json_object_set_new(picture, "value_name", json_string("peak memory"));
    for (int64_t i = 0; i < count; i++) {
        char label[32], note[128];
        const hbp_sp_choice *choice = &choices[i];
        const int sized = choice->reason == HBP_SP_FEASIBLE || choice->reason == HBP_SP_OUT_OF_MEMORY;
        snprintf(label, sizeof label, "SP %d", (int)choice->sp);
        describe_choice(p, longest, choice, note, sizeof note);
        report_bar(picture, label, sized ? (double)choice->peak_bytes : -1, note,
                   choice->sp == v->pack_sp[longest]);
        report_bar_colour(picture, report_degree_colour(choice->sp).s);
    }
    free(choices);
    report_limit(picture, "limit", (double)p->terms.limit_bytes);
    return HBP_OK;
}

static void say_no_groups(const report_plan *p, const char *why)
{
    report_picture(p->page, "text", "no-groups", "Why are there no groups of packs?", report_text("%s", why));
}

/* How the choice of groups came out, or why there was none. */
static hbp_status explain_groups(report_plan *p)
{
    hbp_groups_view g = {.struct_size = sizeof g};
    const int32_t composition = p->summary.composition;
    if (composition == HBP_COMPOSITION_RANDOM || composition == HBP_COMPOSITION_GIVEN) {
        say_no_groups(p, composition == HBP_COMPOSITION_RANDOM
                             ? "The samples of each step were drawn at random before packs were planned, and "
                               "each step's packs were planned by themselves: no pack lengths are shared by "
                               "all steps."
                             : "The samples of each step were given, and each step's packs were planned by "
                               "themselves: no pack lengths are shared by all steps.");
        return HBP_OK;
    }
    if (!p->c->cost || p->summary.lockstep_ranks)
        return HBP_OK;
    hbp_status status = find_groups(p, &g);
    if (status < 0 && status != HBP_E_INFEASIBLE) /* of a plan made under other options */
        return status;
    double share = 0;
    const int64_t own = status < 0 ? -1 : find_candidate(p, &g, &share);
    if (own >= 0)
        draw_groups(p, &g, own, share);
    else
        say_no_groups(p,
                      "Of no set of groups considered for these lengths, the packs hold most of the tokens: "
                      "steps planned one by one, other methods and other options make such packs.");
    return HBP_OK;
}

hbp_status report_reasons(report_plan *p)
{
    hbp_status status = p->summary.steps > 1 ? explain_groups(p) : HBP_OK;
    return status < 0 || !p->c->cost ? status : draw_degrees(p);
}
