/* Any bytes as the events of a ledger: accounted for, as a table and JSON, or refused;
 * and whatever else is asked of a ledger. */
#include <math.h>

#include "account/ledger.h"
#include "ledger/lineage.h"
#include "ledger/merge.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input is one MessagePack array, checked as a frame is. */
static bool take_events(const uint8_t *data, size_t size, struct dpf_values *events)
{
    msgpack_unpacked all;
    size_t at = 0;
    if (dpf_frame_check(data, size, NULL) != DPF_OK)
        return false;
    msgpack_unpacked_init(&all);
    bool good = msgpack_unpack_next(&all, (const char *)data, size, &at) ==
                    MSGPACK_UNPACK_SUCCESS &&
                all.data.type == MSGPACK_OBJECT_ARRAY;
    for (uint32_t i = 0; good && i < all.data.via.array.size; i++)
        dpf_values_append_object(events, &all.data.via.array.ptr[i]);
    msgpack_unpacked_destroy(&all);
    return good;
}

/* Lineage, parts, counts, and a merge with itself. */
static void ask(struct dpf_header *h)
{
    static const struct dpf_partition_event half = {.parts = 2, .by = "content"};
    struct dpf_lineage lineage;
    struct dpf_fingerprint f;
    struct dpf_header other = {.is_protected = true};
    dpf_lineage_read(&lineage, h, h);
    dpf_lineage_release(&lineage);
    dpf_ledger_count_is_private(&h->events);
    dpf_fingerprint_init(&f);
    dpf_ledger_fingerprint(&h->events, &f);
    dpf_values_append(&other.events, &h->events);
    dpf_ledger_add_partition(&other.events, "fuzz", &half, h);
    dpf_header_merge(h, &other, dpf_ledger_merge, NULL);
    dpf_header_release(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dpf_header h = {.is_protected = true};
    struct dpf_account account;
    struct dpf_text table = {0}, json = {0};
    struct dpf_account_request request = {.method = DPF_METHOD_BEST, .delta = NAN};
    bool good = take_events(data, size, &h.events);
    for (int i = 0; good && i < 2; i++) {
        if (dpf_account_ledger(&account, &h, &request, NULL) == DPF_OK) {
            dpf_account_table(&account, &table);
            dpf_account_json(&account, &h.events, &json);
            dpf_account_release(&account);
        }
        ask(&h);
    }
    dpf_text_release(&table);
    dpf_text_release(&json);
    dpf_header_release(&h);
    return 0;
}
