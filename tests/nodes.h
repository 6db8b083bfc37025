/* So many nodes of a machine preset. */
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

#endif
