#include "account/code_noise.h"

#include <string.h>

#include "account/compose.h"
#include "privacy/code_mean.h"

#include "base/banned.h"

const char *const dpf_calibrations[] = {"exact", "paper", NULL};

enum dpf_status dpf_code_calibrate(const char *calibration, uint64_t queries,
                                   double epsilon, double delta, double *multiplier,
                                   struct dpf_error *e)
{
    struct dpf_spending spent = {
        .kind = &dpf_spending_gaussian, .parameter = 1, .rate = 1, .count = queries};
    if (strcmp(calibration, "paper") == 0) {
        *multiplier = dpf_code_paper_multiplier(epsilon, (double)queries, delta);
        return DPF_OK;
    }
    enum dpf_status status =
        dpf_solve_parameter(DPF_METHOD_BEST, &spent, 1, 0, epsilon, delta, e);
    *multiplier = spent.parameter * (1 + 0x1p-48);
    return status;
}
