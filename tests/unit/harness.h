/* The frame of a unit test program: a table of CUnit tests and a name. Each program
 * prints one line a test ("ok", "not ok", "skip") that tests/run counts. */
#ifndef DPF_TESTS_HARNESS_H
#define DPF_TESTS_HARNESS_H

#include <CUnit/CUnit.h>

struct dpf_test {
    const char *name;
    void (*run)(void);
};

/* Defined by each test program. */
extern const struct dpf_test dpf_tests[];
extern const char dpf_suite[];

/* Say that the running test could not run here. */
void dpf_test_skip(const char *why);

#endif
