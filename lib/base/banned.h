/* Functions that have a safer neighbour in this tree. Include last, in every .c file:
 * using one of them is then a compile error. */
#ifndef DPF_BASE_BANNED_H
#define DPF_BASE_BANNED_H

/* Neither may the compiler take it that no number is infinite or NaN: checks that privacy
 * rests on would be gone. */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "dpflow needs infinities and NaN: build it without -ffast-math and -Ofast"
#endif

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets
#pragma GCC poison atoi atol atoll atof strtok tmpnam mktemp
/* rand and random are not poisoned by name (headers use them); a lint test looks. */

#endif
