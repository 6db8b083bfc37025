/* What needs no launcher; the rest is tests/executor/mpi. */
#include "comm/comm.h"

#include "test.h"

/* Without MPI no environment is one that we could join. */
START_TEST(the_launcher_is_seen_in_the_environment)
{
    const char *const set[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (int i = 0; i < 3; i++)
        unsetenv(set[i]);
    ck_assert_int_eq(ex_mpi_launched(), 0);
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        setenv(set[i], "1", 1);
        seen += ex_mpi_launched();
        unsetenv(set[i]);
    }
    if (seen) {
        ck_assert_int_eq(seen, 3);
        return;
    }
    ex_fault fault = {0};
    ck_assert_ptr_null(ex_mpi_open(1, &fault));
    ck_assert_str_eq(fault.text, "this executor was built without MPI");
}
END_TEST

TEST_MAIN("mpi", the_launcher_is_seen_in_the_environment)
