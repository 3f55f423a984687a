/* A clock for durations: seconds that never go back, from an arbitrary start. */
#ifndef DPF_BASE_CLOCK_H
#define DPF_BASE_CLOCK_H

double dpf_clock_seconds(void);

#endif
