#include "around.h"

static int split(int64_t color, int32_t size)
{
    return color >= 0 && size > 1;
}

int main(void)
{
    enum { capacity = 32 };
    begin();
    hbp_communicator groups[capacity];
    int communicator[capacity] = {0};
    int64_t i, count = 0;
    int32_t rank = 5;
#include "block.inc"
    need(count == 5, "not the degrees 1, 2, 4, 8 and 16");
    for (i = 1; i < count; i++)
        need(communicator[i], "a group has no communicator");
    end();
    return 0;
}
