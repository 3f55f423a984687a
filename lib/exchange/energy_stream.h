/* A stream with one record that holds the coefficients of a polynomial energy
 * (privacy/energy_form.h): `perturb --release energy` writes it, `solve --what energy`
 * reads it.
 *
 *   coefficients  f64 [N]: for each l whose expansion is not 0, those of the monomials of
 *                 degree l + 1 of (b, w_1, ..., w_p), in lexicographic order
 *   expansion     f64 [L + 1]: alpha_l Z^-l
 *   patch         i64 [3]: channels, height, width
 *   conditions    i64: how many values stand behind the patch, p includes them
 *   visible       f64: the coefficient of the visible bias, 0 if it was not released
 *   noise         f64: the deviation of the noise on the moments of the highest degree;
 *                 of the paper's variant, on every coefficient */
#ifndef DPF_EXCHANGE_ENERGY_STREAM_H
#define DPF_EXCHANGE_ENERGY_STREAM_H

#include "stage/stage.h"

struct dpf_energy_record {
    size_t count; /* of coefficients */
    int degree;   /* L */
    double *coefficients, *expansion;
    int64_t *patch, *conditions;
    double *visible, *noise;
};

/* Make the header that of such a record. */
enum dpf_status dpf_energy_declare(struct dpf_header *h, size_t count, int degree,
                                   struct dpf_error *e);
/* Send the header, and with it the ledger, before there is anything to release; room for
 * the record in a batch. */
enum dpf_status dpf_energy_begin(struct dpf_stage *s, struct dpf_batch *b,
                                 struct dpf_energy_record *record, struct dpf_error *e);
/* Send it and release the batch. */
enum dpf_status dpf_energy_send(struct dpf_stage *s, struct dpf_batch *take_b,
                                struct dpf_error *e);

/* DPF_BAD_STREAM if a header declares no such record; whether a batch holds one whose
 * numbers fit each other and are finite: the views are into the batch. */
enum dpf_status dpf_energy_expect(struct dpf_header *h, struct dpf_error *e);
enum dpf_status dpf_energy_read(struct dpf_batch *b, struct dpf_header *h,
                                struct dpf_energy_record *record, struct dpf_error *e);

#endif
