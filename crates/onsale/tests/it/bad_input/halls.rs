//! Events, prices, seats and sales that can't be set up as asked.

use reqwest::Method;
use serde_json::{Value, json};

use crate::util::{Ask, text};

use super::Stage;

#[tokio::test]
async fn an_event_is_described_without_a_fault_or_not_made() {
    let stage = Stage::set().await;
    let good = json!({ "name": "An evening", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" });
    let with = |changes: &[(&str, Value)]| {
        let mut body = good.clone();
        changes.iter().for_each(|(member, value)| body[*member] = value.clone());
        stage.app.operator.post("/v1/events", &body)
    };
    for (member, values) in [
        ("name", vec!["", "   ", "a\nb", "a\u{0}", &"x".repeat(201)]),
        ("currency", vec!["", "eur", "EURO", "ZZZ", "978", "\u{20ac}", "EUR "]),
        (
            "starts_at",
            vec!["", "tomorrow", "2030-05-01", "2030-05-01T19:30:00", "2030-13-01T00:00:00Z", "1893456000"],
        ),
        ("on_sale_at", vec!["", "10:00", "2030-02-30T00:00:00Z", "99999-01-01T00:00:00Z"]),
        ("off_sale_at", vec!["", "never"]),
        ("timezone", vec!["", "Mars/Olympus", "../../etc/passwd", "Europe/Berlin\u{0}", "+25:00"]),
    ] {
        for value in values {
            stage.faulty(with(&[(member, json!(value))]), &[&format!("/{member}")]).await;
        }
    }
    let (ten, noon) = (json!("2030-01-01T10:00:00Z"), json!("2030-01-01T12:00:00+02:00"));
    stage.faulty(with(&[("on_sale_at", ten), ("off_sale_at", noon)]), &["/off_sale_at"]).await;
    let all = [
        ("name", json!("")),
        ("currency", json!("")),
        ("starts_at", json!("")),
        ("timezone", json!("x")),
        ("policy", json!({ "hold_ttl_s": 0, "admission": "x" })),
    ];
    let places = ["/name", "/currency", "/starts_at", "/timezone", "/policy/hold_ttl_s", "/policy/admission"];
    stage.faulty(with(&all), &places).await;
    stage.finish().await;
}

#[tokio::test]
async fn a_policy_keeps_to_its_ranges_and_words() {
    let stage = Stage::set().await;
    let make = |member: &str, value: Value| {
        let event = json!({
            "name": "x", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "policy": { (member): value },
        });
        stage.app.operator.post("/v1/events", &event)
    };
    for (member, least, most) in [
        ("hold_ttl_s", 1_u64, 3_600_u64),
        ("payment_grace_s", 0, 1_800),
        ("seats_per_hold_max", 1, 50),
        ("tickets_per_account_max", 1, 10_000),
        ("payment_pending_per_account_max", 1, 10_000),
        ("payment_pending_max", 1, 1_000_000),
        ("shoppers_max", 1, 1_000_000),
    ] {
        let place = format!("/policy/{member}");
        for value in [least.checked_sub(1), Some(most + 1), Some(u32::MAX.into())].into_iter().flatten() {
            stage.faulty(make(member, json!(value)), &[&place]).await;
        }
        for value in [least, most] {
            let made = make(member, json!(value)).await.ok(201);
            assert_eq!(made["policy"][member], json!(value), "{made}");
        }
    }
    for (member, good, bad) in [
        ("admission", "queue", "closed"),
        ("queue_order", "lottery", "FIFO"),
        ("in_doubt", "release", ""),
        ("orphan_seats", "avoid", "avoid "),
        ("payment", "charge", "cash"),
    ] {
        stage.faulty(make(member, json!(bad)), &[&format!("/policy/{member}")]).await;
        assert_eq!(make(member, json!(good)).await.ok(201)["policy"][member], good);
    }
    stage.finish().await;
}

#[tokio::test]
async fn prices_are_whole_positive_and_of_levels_that_exist() {
    let stage = Stage::set().await;
    let put =
        |prices: Value| stage.app.operator.put(&stage.path("/prices"), &json!({ "price_levels": prices }));
    let price = |level: &str, amount: Value| json!({ "price_level": level, "amount_minor": amount });
    let amount = ["/price_levels/0/amount_minor"];
    for wrong in [
        json!(0),
        json!(-1),
        json!(100_000_000_000_i64),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(25.5),
        json!(25.0),
        json!(1e300),
        json!("25"),
        json!(null),
    ] {
        stage.faulty(put(json!([price("Stalls", wrong)])), &amount).await;
    }
    let level = ["/price_levels/0/price_level"];
    for unknown in ["Balcony", "stalls", "", "Stalls "] {
        stage.faulty(put(json!([price(unknown, json!(100))])), &level).await;
    }
    let twice = json!([price("Stalls", json!(100)), price("Stalls", json!(200))]);
    stage.faulty(put(twice), &["/price_levels/1/price_level"]).await;
    let both = json!([price("Balcony", json!(0)), price("Stalls", json!(0))]);
    let places =
        ["/price_levels/0/price_level", "/price_levels/0/amount_minor", "/price_levels/1/amount_minor"];
    stage.faulty(put(both), &places).await;
    stage.faulty(put(json!([])), &["/price_levels"]).await;
    for good in [99_999_999_999_i64, 1, 2_500] {
        put(json!([price("Stalls", json!(good))])).await.ok(200);
    }
    stage.finish().await;
}

/// A sale opens with seats and prices, and from then on its seats stay as they are. Where a plan may change later, it must be
/// seen to that no sold seat vanishes (pretix/pretix#1228).
#[tokio::test]
async fn a_sale_opens_when_it_is_ready_and_its_seats_are_frozen_then() {
    let stage = Stage::set().await;
    let operator = &stage.app.operator;
    let new = json!({ "name": "Another", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" });
    let made = operator.post("/v1/events", &new).await.ok(201);
    let path = format!("/v1/events/{}", text(&made, "event_id"));
    let state = |state: &str| operator.put(&format!("{path}/on-sale"), &json!({ "state": state }));
    let csv = |path: &str, rows: &str| {
        let csv = format!("seat_id,section,row,seat,category\n{rows}");
        operator.ask(Method::PUT, &format!("{path}/manifest")).body("text/csv", csv)
    };
    let prices = json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": 100 }] });
    let set_prices = || operator.put(&format!("{path}/prices"), &prices);
    let impossible = async |ask: Ask| stage.refuses(ask, 409, "action-not-possible", &[]).await;

    impossible(state("open")).await;
    impossible(set_prices()).await;
    let seats = json!({ "seats": ["B-1"], "status": "NOT_FOR_SALE" });
    impossible(operator.put(&format!("{path}/seats/status"), &seats)).await;
    csv(&path, "B-1,B,1,1,Stalls\nB-2,B,1,2,Balcony\n").await.ok(200);
    for early in ["open", "paused", "closed"] {
        impossible(state(early)).await;
    }
    set_prices().await.ok(200);
    impossible(state("open")).await;
    for odd in ["", "OPEN", "half", "draft"] {
        stage.faulty(state(odd), &["/state"]).await;
    }
    // Seats laid out anew need prices anew.
    csv(&path, "B-1,B,1,1,Stalls\n").await.ok(200);
    impossible(state("open")).await;
    set_prices().await.ok(200);
    state("open").await.ok(200);
    for state_now in ["open", "paused", "closed"] {
        state(state_now).await.ok(200);
        stage.refuses(csv(&path, "C-1,C,1,1,Stalls\n"), 409, "manifest-frozen", &[]).await;
    }
    stage.refuses(csv(&stage.path(""), "C-1,C,1,1,Stalls\n"), 409, "manifest-frozen", &[]).await;
    stage.finish().await;
}

#[tokio::test]
async fn seats_are_kept_from_sale_all_or_none() {
    let stage = Stage::set().await;
    let set = |seats: &[&str], status: &str| {
        stage.app.operator.put(&stage.path("/seats/status"), &json!({ "seats": seats, "status": status }))
    };
    stage.faulty(set(&[], "NOT_FOR_SALE"), &["/seats"]).await;
    stage.faulty(set(&["A-2", "Z-1"], "NOT_FOR_SALE"), &["/seats/1"]).await;
    stage.faulty(set(&["A-2"], "SOLD"), &["/status"]).await;
    stage.faulty(set(&["Z-1"], "not_for_sale"), &["/status", "/seats/0"]).await;
    for status in ["NOT_FOR_SALE", "AVAILABLE"] {
        let problem = stage.refuses(set(&["A-2", "A-1"], status), 409, "seat-unavailable", &[]).await;
        assert_eq!(problem["seats"], json!(["A-1"]));
    }
    stage.finish().await;
}

#[tokio::test]
async fn a_case_is_acted_upon_with_a_word_and_a_reason() {
    let stage = Stage::set().await;
    let case = stage.hold_path("").replace("hld_", "cas_").replace("holds", "reconciliation/cases");
    let act = |action: &str, note: &str| {
        stage.app.operator.post(&format!("{case}/resolution"), &json!({ "action": action, "note": note }))
    };
    stage.faulty(act("forget", "why"), &["/action"]).await;
    stage.faulty(act("void", ""), &["/note"]).await;
    stage.faulty(act("void", " \n"), &["/note"]).await;
    stage.faulty(act("void", &"x".repeat(2_001)), &["/note"]).await;
    stage.refuses(act("void", "why"), 404, "not-found", &[]).await;
    stage.finish().await;
}
