#include "around.h"

int main(void)
{
    begin();
    int64_t count = SAMPLES;
#include "block.inc" /* its own include finds the header read already */
    end();
    return 0;
}
