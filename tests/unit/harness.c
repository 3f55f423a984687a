#include "harness.h"

#include <CUnit/TestRun.h>
#include <stdio.h>
#include <stdlib.h>

static const char *skipped;

void dpf_test_skip(const char *why)
{
    skipped = why;
}

static void before(const CU_pTest test, const CU_pSuite suite)
{
    (void)test;
    (void)suite;
    skipped = NULL;
}

static void after(const CU_pTest test, const CU_pSuite suite,
                  const CU_pFailureRecord failures)
{
    (void)suite;
    if (skipped && !failures)
        printf("skip %s: %s (%s)\n", dpf_suite, test->pName, skipped);
    else
        printf("%s %s: %s\n", failures ? "not ok" : "ok", dpf_suite, test->pName);
    for (CU_pFailureRecord f = failures; f; f = f->pNext)
        printf("    %s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
    fflush(stdout);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return EXIT_FAILURE;
    CU_pSuite suite = CU_add_suite(dpf_suite, NULL, NULL);
    for (const struct dpf_test *t = dpf_tests; t->name; t++)
        CU_add_test(suite, t->name, t->run);
    CU_set_test_start_handler(before);
    CU_set_test_complete_handler(after);
    CU_run_all_tests();
    unsigned failed = CU_get_number_of_tests_failed();
    CU_cleanup_registry();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
