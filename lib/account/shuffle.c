#include "account/shuffle.h"

#include <math.h>

#include "base/banned.h"

double dpf_shuffled_epsilon(double local_epsilon, uint64_t messages, double delta)
{
    double e0 = local_epsilon, n = (double)messages;
    if (!(e0 > 0) || !(delta > 0) || delta > 1 || messages < 1 ||
        !(e0 <= log(n / (16 * log(2 / delta))) * (1 - 1e-12)))
        return e0;
    double clones = 8 * sqrt(exp(e0) * log(4 / delta) / n) + 8 * exp(e0) / n;
    double e = log1p(tanh(e0 / 2) * clones) * (1 + 1e-13);
    return fmin(e, e0);
}
