/* The question that is put to `account`, as its options ask it, and what answers it. */
#ifndef DPF_STAGE_ACCOUNT_H
#define DPF_STAGE_ACCOUNT_H

#include "account/ledger.h"
#include "stage/stage.h"

/* A number of the first mechanism that --solve finds or --sweep varies. */
struct dpf_account_unknown {
    const char *name;  /* in --solve */
    const char *key;   /* in --sweep */
    bool is_parameter; /* the mechanism need not be given it */
    enum dpf_status (*solve)(enum dpf_method method, struct dpf_spending *list,
                             size_t count, size_t which, double epsilon, double delta,
                             struct dpf_error *e);
    double (*get)(const struct dpf_spending *s);
    double (*set)(struct dpf_spending *s, double value); /* returns what it stands for */
};

extern const struct dpf_account_unknown dpf_account_unknowns[];

struct dpf_account_question {
    /* what the user asked for */
    struct dpf_list mechanisms[DPF_SPENDING_KIND_COUNT]; /* by kind */
    const char *method, *relation, *solve, *sweep, *budget, *unit;
    double delta, epsilon; /* below 0: not given */
    int64_t shuffled;      /* messages that a trusted shuffler mixed; 0: none did */
    bool json;
    const char *methods[DPF_METHOD_BEST + 3]; /* what `method` may be, ended by NULL */
    /* what it comes to */
    struct dpf_spending *list;
    size_t count;
    const struct dpf_account_unknown *unknown; /* NULL: nothing is found or varied */
    double sweep_lo, sweep_hi;
    int64_t sweep_points;
    double budget_epsilon, budget_delta;
};

/* What --budget judges. */
extern const char *const dpf_account_units[];

/* The methods, and "all"; filled in before options are parsed. */
void dpf_account_list_methods(struct dpf_account_question *q);
/* Parse the mechanisms and check that the options go together. */
enum dpf_status dpf_account_options(struct dpf_stage *s, struct dpf_error *e);
/* Whether mechanisms were given, so that no stream is read. */
bool dpf_account_is_direct(const struct dpf_account_question *q);
/* Print the answer to s->text. A budget that is exceeded is DPF_PRIVACY, after the
 * account was printed. */
enum dpf_status dpf_account_answer(struct dpf_stage *s, struct dpf_error *e);

#endif
