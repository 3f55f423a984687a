/* lib/exchange/answer_stream: what may leave a teacher's machine without noise. */
#include <string.h>

#include "exchange/answer_stream.h"
#include "harness.h"
#include "ledger/merge.h"

#include "base/banned.h"

/* The header of answers of one teacher, as `teacher-infer` writes it. */
static void make(struct dpf_header *h, const char *name, uint64_t id, uint64_t classes)
{
    struct dpf_values branches = {0}, records = {0};
    const struct dpf_source_event source = {.name = "somewhere"};
    *h = (struct dpf_header){.is_private = true};
    CU_ASSERT_FATAL(dpf_answers_declare(h, 1, classes, 4, NULL) == DPF_OK);
    dpf_ledger_add_source(&records, "load", &source);
    dpf_ledger_add_branch(&branches, &records);
    const struct dpf_teachers_event event = {
        .branches = &branches, .names = &name, .ids = &id};
    dpf_ledger_add_source(&h->events, "load", &source);
    dpf_ledger_add_teachers(&h->events, "teacher-infer", &event);
    dpf_values_release(&branches);
    dpf_values_release(&records);
}

/* How many teachers a header is taken for; -1: it is refused for privacy. */
static int teachers_of(const struct dpf_header *h)
{
    struct dpf_answers a;
    struct dpf_error e = {.status = DPF_OK};
    enum dpf_status status = dpf_answers_read_alone(&a, h, &e);
    if (status != DPF_OK) {
        CU_ASSERT(status == DPF_PRIVACY && e.status == DPF_PRIVACY);
        CU_ASSERT(strstr(e.message, "answers of 'teacher-infer' and nothing else") !=
                  NULL);
        return -1;
    }
    int count = (int)a.count;
    dpf_answers_release(&a);
    return count;
}

static void test_answers(void)
{
    struct dpf_header h, other;
    make(&h, "t", 1, 0);
    CU_ASSERT(teachers_of(&h) == 1);
    make(&other, "u", 2, 0);
    CU_ASSERT(dpf_ledger_merge(&h, &other, NULL) == DPF_OK);
    CU_ASSERT(teachers_of(&h) == 2);
    dpf_header_release(&h);
    dpf_header_release(&other);
    make(&h, "t", 1, 10);
    CU_ASSERT(teachers_of(&h) == 1);
    dpf_header_release(&h);
}

static void test_more_fields(void)
{
    static const char *const names[] = {"x", "mask", "y", "vote"};
    const struct dpf_shape one = {.rank = 0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct dpf_header h;
        make(&h, "t", 1, 0);
        CU_ASSERT(dpf_header_add_field(&h, names[i], DPF_F32, &one) != NULL);
        CU_ASSERT(teachers_of(&h) == -1);
        dpf_header_release(&h);
    }
}

static void test_other_ledgers(void)
{
    const struct dpf_source_event source = {.name = "elsewhere"};
    struct dpf_header h, other;
    make(&h, "t", 1, 0); /* something came behind the teachers */
    dpf_ledger_add_source(&h.events, "load", &source);
    CU_ASSERT(teachers_of(&h) == -1);
    dpf_values_release(&h.events); /* no ledger, or one without teachers */
    CU_ASSERT(teachers_of(&h) == -1);
    dpf_ledger_add_source(&h.events, "load", &source);
    CU_ASSERT(teachers_of(&h) == -1);
    make(&other, "t", 1, 0); /* one of two is none */
    CU_ASSERT(dpf_ledger_merge(&other, &h, NULL) == DPF_OK);
    CU_ASSERT(teachers_of(&other) == -1);
    dpf_header_release(&h);
    dpf_header_release(&other);
}

static void test_other_streams(void)
{
    const struct dpf_shape one = {.rank = 0};
    struct dpf_header h = {.is_private = true};
    CU_ASSERT(teachers_of(&h) == -1);
    CU_ASSERT(dpf_header_add_field(&h, "query", DPF_F32, &one) != NULL);
    CU_ASSERT(teachers_of(&h) == -1);
    CU_ASSERT(dpf_header_add_field(&h, "teacher", DPF_I64, &one) != NULL);
    CU_ASSERT(teachers_of(&h) == -1);
    dpf_header_release(&h);
}

const char dpf_suite[] = "answers";
const struct dpf_test dpf_tests[] = {
    {"answers of one teacher, or of several", test_answers},
    {"a field beside them keeps a stream at home", test_more_fields},
    {"so does a ledger that does not end with teachers", test_other_ledgers},
    {"so does whatever is no stream of answers", test_other_streams},
    {NULL, NULL},
};
