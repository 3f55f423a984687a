/* The noise of a release of codes for an epsilon (privacy/code_mean.h). */
#ifndef DPF_ACCOUNT_CODE_NOISE_H
#define DPF_ACCOUNT_CODE_NOISE_H

#include <stdint.h>

#include "base/status.h"

extern const char *const dpf_calibrations[]; /* words of '--calibration' */

/* The least noise multiplier with which `queries` means of codes cost epsilon at delta:
 * `exact`, by the composition of Gaussian mechanisms, or `paper`, by the formula of Fay
 * et al. 2020, which asks for more. */
enum dpf_status dpf_code_calibrate(const char *calibration, uint64_t queries,
                                   double epsilon, double delta, double *multiplier,
                                   struct dpf_error *e);

#endif
