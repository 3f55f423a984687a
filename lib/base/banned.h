/* Functions that have a safer neighbour in this tree. Include last, in every .c file:
 * using one of them is then a compile error. */
#ifndef DPF_BASE_BANNED_H
#define DPF_BASE_BANNED_H

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets
#pragma GCC poison atoi atol atoll atof strtok tmpnam mktemp
/* rand and random are not poisoned by name (headers use them); a lint test looks. */

#endif
