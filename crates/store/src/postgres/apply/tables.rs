//! How each table is written.

use std::sync::LazyLock;

use crate::postgres::columns::Kind::{Id, Int2, Int4, Int8, Real, Text};
use crate::postgres::columns::Writing;

macro_rules! insert {
    ($($name:ident into $table:literal ($($column:literal $kind:ident),* $(,)?);)*) => {$(
        pub(super) static $name: LazyLock<Writing> =
            LazyLock::new(|| Writing::insert($table, &[$(($column, $kind)),*]));
    )*};
}

macro_rules! update {
    ($($name:ident in $table:literal
        ($($column:literal $kind:ident),* $(,)?)
        key ($($key:literal $key_kind:ident),*)
        was ($($was:literal $was_kind:ident),*);)*) => {$(
        pub(super) static $name: LazyLock<Writing> = LazyLock::new(|| {
            Writing::update($table, &[$(($column, $kind)),*], &[$(($key, $key_kind)),*], &[$(($was, $was_kind)),*])
        });
    )*};
}

insert! {
    EVENTS_NEW into "events" (
        "event_no" Int4, "event_id" Id, "name" Text, "currency" Text, "starts_at" Int8, "on_sale_at" Int8, "off_sale_at" Int8,
        "timezone" Text, "created_at" Int8, "status" Text, "hold_ttl_ms" Int8, "payment_grace_ms" Int8, "seats_per_hold_max" Int8,
        "tickets_per_account_max" Int8, "payment_pending_per_account_max" Int8, "payment_pending_max" Int8, "admission" Text,
        "queue_order" Text, "shoppers_max" Int8, "in_doubt" Text, "orphan_seats" Text, "payment" Text, "ga_max" Int8, "reentry" Int2,
        "epoch" Int8, "clock" Int8,
        "version" Int8, "manifest_version" Int8, "seat_count" Int8, "price_level_count" Int4, "price_version" Int8,
        "payment_pending" Int8, "area_count" Int4, "ga_in_use" Int8, "allocation_count" Int4,
    );
    PRICE_LEVELS_NEW into "price_levels" ("event_no" Int4, "level" Int4, "name" Text, "color" Text);
    PRICES_NEW into "prices" ("event_no" Int4, "price_version" Int8, "level" Int4, "amount_minor" Int8);
    SECTIONS_NEW into "sections" ("event_no" Int4, "section" Int4, "name" Text);
    GA_AREAS_NEW into "ga_areas" ("event_no" Int4, "position" Int4, "ga_area" Text, "capacity" Int8, "price_level" Int4);
    GA_BUCKETS_NEW into "ga_buckets" (
        "event_no" Int4, "area" Int4, "bucket" Int4, "capacity" Int8, "held" Int8, "sold" Int8, "allocation" Int4, "version" Int8,
    );
    TRANSFERS_NEW into "quota_transfers" (
        "transfer_id" Id, "event_no" Int4, "area" Int4, "from_bucket" Int4, "to_bucket" Int4, "quantity" Int8, "status" Text,
        "actor" Text, "created_at" Int8, "ended_at" Int8,
    );
    ALLOCATIONS_NEW into "allocations" ("event_no" Int4, "allocation" Int4, "name" Text, "created_at" Int8);
    CODES_NEW into "access_codes" (
        "event_no" Int4, "code" Text, "allocation" Int4, "presale" Int2, "tickets_max" Int8, "tickets_in_use" Int8,
        "valid_from" Int8, "valid_until" Int8, "revoked_at" Int8, "created_at" Int8,
    );
    REFUNDS_NEW into "refunds" (
        "operation_id" Id, "event_no" Int4, "order_id" Id, "reason" Text, "resell" Int2, "seats" Text, "ga" Text, "actor" Text,
        "created_at" Int8,
    );
    TICKETS_NEW into "tickets" (
        "ticket_id" Id, "event_no" Int4, "order_id" Id, "ordinal" Int4, "area" Int4, "generation" Int4, "status" Text,
        "inside" Int2, "admissions" Int8, "admitted_at" Int8, "admitted_gate" Text, "issued_at" Int8, "version" Int8,
    );
    SCANS_NEW into "scans" (
        "event_no" Int4, "scan_id" Text, "ticket_id" Id, "generation" Int4, "direction" Text, "gate" Text, "scanned_at" Int8,
        "received_at" Int8, "result" Text, "let_in_offline" Int2,
    );
    MANIFEST_SEATS_NEW into "manifest_seats" (
        "event_no" Int4, "ordinal" Int4, "seat_id" Text, "section" Int4, "row_label" Text, "seat_label" Text, "x" Real, "y" Real,
        "accessible" Int2, "companion_of" Text, "restricted_view" Int2, "rank" Int8,
    );
    SEATS_NEW into "seats" ("event_no" Int4, "ordinal" Int4, "status" Int2, "price_level" Int4, "version" Int8);
    HOLDS_NEW into "holds" (
        "hold_id" Id, "event_no" Int4, "account_id" Text, "status" Text, "expires_at" Int8, "first_expires_at" Int8,
        "created_at" Int8, "seats" Text, "price_version" Int8, "total_minor" Int8, "order_id" Id, "grace_used" Int2,
        "in_doubt" Int2, "ga" Text, "code" Text,
    );
    ORDERS_NEW into "orders" (
        "order_id" Id, "event_no" Int4, "hold_id" Id, "account_id" Text, "amount_minor" Int8, "currency" Text,
        "price_version" Int8, "ticket_count" Int8, "status" Text, "payment_status" Text, "paid_by" Id, "created_at" Int8,
        "confirmed_at" Int8, "email" Text, "return_url" Text, "returned_seats" Text, "returned_ga" Text, "ticketed" Int2,
    );
    OPERATIONS_NEW into "operations" (
        "operation_id" Id, "event_no" Int4, "order_id" Id, "seq" Int8, "kind" Text, "status" Text, "target" Id, "reference" Text,
        "amount_minor" Int8, "currency" Text, "payment_method_token" Text, "next_action_url" Text, "failure_code" Text,
        "created_at" Int8, "updated_at" Int8, "due_at" Int8, "tries" Int8, "base_minor" Int8,
    );
    CASES_NEW into "cases" (
        "case_id" Id, "event_no" Int4, "kind" Text, "order_id" Id, "operation_id" Id, "opened_at" Int8, "evidence" Text,
        "status" Text, "owner" Text, "next_check_at" Int8, "action" Text, "note" Text, "actor" Text, "acted_at" Int8,
        "subject" Text,
    );
    CALLBACKS_NEW into "callbacks" (
        "provider_event_id" Text, "event_no" Int4, "digest" Id, "kind" Text, "reference" Text, "claimed_order" Id, "verdict" Text,
        "received_at" Int8, "due_at" Int8, "case_id" Id,
    );
    KEYS_NEW into "idempotency_keys" ("event_no" Int4, "key" Id, "digest" Id, "answer" Text, "created_at" Int8);
    // A batch among those that are done, entered by the transaction that does it.
    BATCHES_NEW into "batches" ("batch_id" Id, "applied" Int2, "at" Int8);
    LOG_NEW into "log" ("event_no" Int4, "version" Int8, "at" Int8, "kind" Text, "payload" Text);
}

update! {
    // The epoch fences whoever wrote before a move, and an event that is elsewhere is nobody's to write here.
    EVENTS_CHANGED in "events"
        ("status" Text, "clock" Int8, "version" Int8, "manifest_version" Int8, "seat_count" Int8, "price_level_count" Int4,
            "price_version" Int8, "payment_pending" Int8, "area_count" Int4, "ga_in_use" Int8, "allocation_count" Int4)
        key ("event_no" Int4) was ("version" Int8, "epoch" Int8, "elsewhere" Text);
    SEATS_CHANGED in "seats"
        ("status" Int2, "hold_id" Id, "hold_expires_at" Int8, "order_id" Id, "version" Int8, "allocation" Int4)
        key ("event_no" Int4, "ordinal" Int4)
        was ("status" Int2, "version" Int8, "hold_id" Id, "hold_expires_at" Int8, "order_id" Id, "allocation" Int4);
    AREAS_CHANGED in "ga_areas" ("capacity" Int8) key ("event_no" Int4, "position" Int4) was ("capacity" Int8);
    BUCKETS_CHANGED in "ga_buckets"
        ("capacity" Int8, "held" Int8, "sold" Int8, "version" Int8)
        key ("event_no" Int4, "area" Int4, "bucket" Int4)
        was ("capacity" Int8, "held" Int8, "sold" Int8, "version" Int8);
    TRANSFERS_CHANGED in "quota_transfers" ("status" Text, "ended_at" Int8) key ("transfer_id" Id) was ("status" Text);
    CODES_CHANGED in "access_codes"
        ("allocation" Int4, "presale" Int2, "tickets_max" Int8, "tickets_in_use" Int8, "valid_from" Int8, "valid_until" Int8,
            "revoked_at" Int8)
        key ("event_no" Int4, "code" Text) was ("tickets_in_use" Int8);
    TICKETS_CHANGED in "tickets"
        ("generation" Int4, "status" Text, "inside" Int2, "admissions" Int8, "admitted_at" Int8, "admitted_gate" Text,
            "version" Int8)
        key ("ticket_id" Id)
        was ("generation" Int4, "status" Text, "inside" Int2, "admissions" Int8, "version" Int8);
    SCANS_CHANGED in "scans"
        ("let_in_offline" Int2) key ("event_no" Int4, "scan_id" Text) was ("let_in_offline" Int2);
    HOLDS_CHANGED in "holds"
        ("status" Text, "expires_at" Int8, "order_id" Id, "grace_used" Int2, "in_doubt" Int2)
        key ("hold_id" Id) was ("status" Text, "expires_at" Int8, "order_id" Id);
    ORDERS_CHANGED in "orders"
        ("status" Text, "payment_status" Text, "paid_by" Id, "confirmed_at" Int8, "email" Text, "return_url" Text,
            "ticket_count" Int8, "returned_seats" Text, "returned_ga" Text, "ticketed" Int2)
        key ("order_id" Id) was ("status" Text, "payment_status" Text, "paid_by" Id, "ticketed" Int2);
    OPERATIONS_CHANGED in "operations"
        ("status" Text, "reference" Text, "amount_minor" Int8, "currency" Text, "payment_method_token" Text,
            "next_action_url" Text, "failure_code" Text, "updated_at" Int8, "due_at" Int8, "tries" Int8)
        key ("operation_id" Id) was ("status" Text, "reference" Text, "updated_at" Int8);
    CASES_CHANGED in "cases"
        ("status" Text, "owner" Text, "next_check_at" Int8, "action" Text, "note" Text, "actor" Text, "acted_at" Int8)
        key ("case_id" Id) was ("status" Text, "owner" Text);
    CALLBACKS_CHANGED in "callbacks"
        ("verdict" Text, "due_at" Int8, "case_id" Id, "event_no" Int4)
        key ("provider_event_id" Text) was ("verdict" Text, "due_at" Int8);
}
