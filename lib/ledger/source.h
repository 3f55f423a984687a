/* Sources of data, identified by their content.
 *
 * Claim. Two sources with the same digest hold the same records in the same order, unless
 * someone found a collision of BLAKE2b. The digest of a private source tells whoever does
 * not have the owner's key nothing about its content but this: whether it is the content
 * of another source with a digest by the same key. Nothing follows from two digests that
 * differ: the same people may stand in another order.
 *
 * Proof. The digest is BLAKE2b of the number of pieces (files), and of the role and the
 * BLAKE2b-512 of the unpacked bytes of each piece, in order (of the published SHA-256,
 * for a file that has it): equal digests without equal pieces are a collision of one of
 * them. For a private source the outer hash has a key of 256 bits from the operating
 * system's entropy, which never leaves its file. Keyed BLAKE2b is a pseudorandom function
 * (Aumasson et al. 2013; Luykx, Mennink and Neves 2016): to who does not know the key its
 * values are as good as drawn at random, one for each content, so a guess at the content
 * cannot be tested. That equal contents have equal values is what the digest is for; it
 * is all that is told. Content that is published, which the catalogue knows by its
 * checksums, or that is declared public, is no secret: its digest has no key, and is the
 * same for everyone.
 *
 * Parts. A partition event names by its `cut` what was divided, and how: BLAKE2b of the
 * rule (parts, seed, share, by position or by content), of how the sources were read (the
 * options of the steps that did it) and of all events before it, sources by their
 * digests. Every step that drops, copies or reorders records leaves an event that says
 * completely what it did, so streams with the same `cut` had the same records in the same
 * order when they were divided. By content, the bytes of records decide: then all steps
 * are named with their options, and there is no `cut` unless each of them is exact (the
 * same bytes on every machine: the provenance says so), reads no other stream and no
 * merged one, and draws nothing. The rule sends each record to one part, so parts of the
 * same `cut` with different numbers have no record in common. Without a known source
 * there is no `cut`. */
#ifndef DPF_LEDGER_SOURCE_H
#define DPF_LEDGER_SOURCE_H

#include "base/digest.h"
#include "ledger/event.h"

enum { DPF_SOURCE_TEXT = 88, DPF_OWNER_KEY_BYTES = 32, DPF_PIECE_BYTES = 64 };

/* The owner's secret, from $DPFLOW_OWNER_KEY, or dpflow/owner.key in $XDG_CONFIG_HOME or
 * $HOME/.config. It is made once: in a folder of mode 0700, as a file of mode 0600, whole
 * or not at all, and the same for two programs that want it first at the same time. A
 * file that others can read, or that holds no key, is DPF_PRIVACY. If there is no place
 * that can be written, *known is false. */
enum dpf_status dpf_owner_key_get(unsigned char key[DPF_OWNER_KEY_BYTES], bool *known,
                                  struct dpf_error *e);

/* The digest of a source, "blake2b-keyed:..." or, without a key, "blake2b:...". Of each
 * piece (a file, or the description of what is generated) its role and its digest. */
void dpf_source_digest(const char *roles, unsigned char (*digests)[DPF_PIECE_BYTES],
                       size_t count, const unsigned char *key, char out[DPF_SOURCE_TEXT]);

/* Whether every source in these values, events or lists of them, has a digest without a
 * key, and every list has a source. Files that are loaded as public have such digests,
 * records from a pipe have none; a published set that somebody counts as private has one,
 * too. */
bool dpf_ledger_sources_published(const struct dpf_values *values);

/* Whether two lists of events are the same, but for what sources with equal digests
 * without a key are called: a copy of a public file may have another name. */
bool dpf_ledger_same(const struct dpf_values *a, const struct dpf_values *b);

/* The name of a partition of what `of` describes; false if it has none. */
bool dpf_source_cut(const struct dpf_partition_event *p, const struct dpf_header *of,
                    char out[DPF_SOURCE_TEXT]);

/* Add what was done, whoever's records it was done to: all events without sources. */
void dpf_ledger_fingerprint(const struct dpf_values *events, struct dpf_fingerprint *f);

/* What two lists of events say about records that both may hold. */
enum dpf_sharing {
    DPF_SHARE_NONE,    /* no record of the one is a record of the other */
    DPF_SHARE_SOME,    /* the same source, and nothing that keeps them apart */
    DPF_SHARE_UNKNOWN, /* nothing that proves either */
};
/* One source of a list: where it came from, and the parts that were taken of it. */
enum { DPF_MAX_CUTS = 8 };
struct dpf_origin {
    struct dpf_span name, digest, set, part_name;
    struct dpf_event cuts[DPF_MAX_CUTS];
    size_t cut_count;
    bool closed; /* parts that follow may share records of it: it is of a model, or there
                  * are copies, which go to different parts */
    bool windowed;      /* people's rows became windows */
    double first, last; /* times at which those end; NaN: not told */
};
enum dpf_sharing dpf_origins_share(const struct dpf_origin *a,
                                   const struct dpf_origin *b);

#endif
