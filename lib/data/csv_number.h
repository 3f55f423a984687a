/* The number in a cell: most of the time that a table takes is spent here. */
#ifndef DPF_DATA_CSV_NUMBER_H
#define DPF_DATA_CSV_NUMBER_H

#include "data/csv_text.h"

/* The nearest double; false if the text is no number. */
bool dpf_csv_number(const struct dpf_csv_cell *cell, double *value);

#endif
