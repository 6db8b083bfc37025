/* Machines: so many nodes of a preset, with measured collectives. */
#ifndef HBP_TESTS_NODES_H
#define HBP_TESTS_NODES_H

#include <hbp/hbp.h>
#include <stdio.h>

static inline hbp_status make_nodes(hbp_context *context, const char *preset, int32_t nodes,
                                    hbp_machine **out)
{
    char text[64];
    snprintf(text, sizeof text, "%s:%d", preset, (int)nodes);
    return hbp_machine_create_preset(context, text, out);
}

/* Sets one collective without a spread. */
static inline hbp_status set_collective(hbp_context *context, hbp_machine *machine, int32_t collective,
                                        int32_t ranks, double latency_ns, double bytes_per_s,
                                        const char *source)
{
    return hbp_machine_set_collective(context, machine,
                                      &(hbp_machine_collective){sizeof(hbp_machine_collective), collective,
                                                                ranks, latency_ns, bytes_per_s, 0, source});
}

#endif
