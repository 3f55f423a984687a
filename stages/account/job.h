/* Everything between the options of `account` and its answer. */
#ifndef DPF_STAGE_ACCOUNT_JOB_H
#define DPF_STAGE_ACCOUNT_JOB_H

#include "account/ledger.h"
#include "stage/stage.h"

extern const char *const dpf_account_methods[]; /* the methods, and "all" */
extern const char *const dpf_solve_words[];     /* "sigma", "steps", "rate" */

struct dpf_account_job {
    /* what the user asked for */
    struct dpf_list gaussian, laplace, response, pure;
    const char *method, *relation, *solve, *sweep, *budget;
    double delta, epsilon; /* below 0: not given */
    int64_t shuffled;      /* messages that a trusted shuffler mixed; 0: none did */
    bool json;
    /* what it takes */
    struct dpf_spending *list;
    size_t count;
    enum dpf_solve_what { DPF_SOLVE_SIGMA, DPF_SOLVE_STEPS, DPF_SOLVE_RATE } what;
    double sweep_lo, sweep_hi;
    int64_t sweep_points;
    double budget_epsilon, budget_delta;
};

/* Parse the mechanisms and check that the options go together. */
enum dpf_status dpf_account_job_check(struct dpf_account_job *j, struct dpf_error *e);
/* Whether mechanisms were given, so that no stream is read. */
bool dpf_account_job_is_direct(const struct dpf_account_job *j);
/* Print the account to s->text. A budget that is exceeded is DPF_PRIVACY, after the
 * account was printed. */
enum dpf_status dpf_account_job_run(struct dpf_account_job *j, struct dpf_stage *s,
                                    struct dpf_error *e);
void dpf_account_job_release(struct dpf_account_job *j);

#endif
