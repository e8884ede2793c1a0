//! Seats set aside, and the codes that open them or a presale: counted for each ticket, and given back.

use serde_json::{Value, json};

use crate::util::{App, counts, tally, text, together};

#[tokio::test]
async fn a_seat_set_aside_is_had_with_its_code_alone() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let version = app.buyers.get(&hall.path("/seats")).await.ok(200)["version"].as_u64().expect("a version");
    app.set_aside(&hall, "Press", &["A-1", "A-2"]).await;
    assert_eq!(app.seat_states(&hall).await, "330", "to everyone they are not for sale");
    let since = format!("/seats?since={version}");
    let delta = app.buyers.get(&hall.path(&since)).await.ok(200);
    assert_eq!(delta["changes"], json!([[0, 3], [1, 3]]));
    app.code(&hall, &json!({ "code": "PRESS-1", "allocation": "Press", "tickets_max": 2 })).await;
    app.operator.post(&hall.path("/allocations"), &json!({ "name": "Staff" })).await.ok(201);
    app.code(&hall, &json!({ "code": "STAFF-1", "allocation": "Staff", "tickets_max": 2 })).await;
    let ada = app.buyer().await;
    let with = |seats: Value, code: &str| json!({ "seats": seats, "access_code": code });
    let problem = ada.hold(&hall, &["A-1", "A-3"]).await.problem(409, "seat-unavailable");
    assert_eq!(problem["seats"], json!(["A-1"]));
    ada.wish(&hall, &with(json!(["A-1"]), "STAFF-1")).await.problem(409, "seat-unavailable");
    ada.wish(&hall, &with(json!(["A-1"]), "PRESS-9")).await.problem(403, "access-code-invalid");
    for odd in ["", "abc", "PRESS 1", "PRESS_1", "ß-12345"] {
        let problem = ada.wish(&hall, &with(json!(["A-1"]), odd)).await.problem(422, "validation-failed");
        assert_eq!(text(&problem["errors"][0], "pointer"), "/access_code");
    }
    assert_eq!(app.code_in_use(&hall, "PRESS-1").await, 0, "what is refused is not counted");
    // The same code, however it is typed; and it takes what is everyone's too.
    let hold = ada.wish(&hall, &with(json!(["A-1", "A-3"]), " press-1 ")).await.ok(201);
    assert_eq!((app.seat_states(&hall).await.as_str(), app.code_in_use(&hall, "PRESS-1").await), ("131", 2));
    let held = app.buyers.get(&hall.path("/seats")).await.ok(200)["version"].as_u64().expect("a version");
    ada.release(&hold).await.ok(204);
    assert_eq!((app.seat_states(&hall).await.as_str(), app.code_in_use(&hall, "PRESS-1").await), ("330", 0));
    let since = format!("/seats?since={held}");
    let delta = app.buyers.get(&hall.path(&since)).await.ok(200);
    assert_eq!(delta["changes"], json!([[0, 3], [2, 0]]), "it goes back to its party");
    // Back on sale to all.
    let aside = json!({ "seats": ["A-1", "A-2"], "allocation": null });
    app.operator.put(&hall.path("/seats/allocation"), &aside).await.ok(200);
    assert_eq!(app.seat_states(&hall).await, "000");
    let taken = app.buyer().await.hold(&hall, &["A-2"]).await.ok(201);
    let aside = json!({ "seats": ["A-1", "A-2"], "allocation": "Press" });
    let problem =
        app.operator.put(&hall.path("/seats/allocation"), &aside).await.problem(409, "seat-unavailable");
    assert_eq!(problem["seats"], json!(["A-2"]));
    assert_eq!((app.seat_states(&hall).await.as_str(), &taken["status"]), ("010", &json!("ACTIVE")));
    app.finish().await;
}

/// A code for the presale opens the sale before its time, and nothing else: not a paused sale, nor one that is over.
#[tokio::test]
async fn a_presale_begins_with_the_code() {
    let app = App::start().await;
    let at = |ms: i64| jiff::Timestamp::from_millisecond(ms).expect("a time").to_string();
    let now = app.now_ms().await;
    let new = json!({
        "name": "Soon", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z",
        "on_sale_at": at(now + 100_000), "off_sale_at": at(now + 200_000), "policy": { "tickets_per_account_max": 20 },
    });
    let hall = app.opened(&new, &["A-1", "A-2", "A-3", "A-4", "A-5"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let fans = json!({ "code": "FANS-2030", "presale": true, "tickets_max": 4, "valid_from": at(now + 10_000), "valid_until": at(now + 50_000) });
    app.code(&hall, &fans).await;
    app.set_aside(&hall, "Press", &["A-5"]).await;
    app.code(&hall, &json!({ "code": "PRESS-1", "allocation": "Press", "tickets_max": 4 })).await;
    let with = |seat: &str, code: &str| json!({ "seats": [seat], "access_code": code });
    ada.wish(&hall, &with("A-1", "FANS-2030")).await.problem(403, "access-code-invalid");
    app.set_clock(now + 10_000).await;
    ada.wish(&hall, &with("A-1", "FANS-2030")).await.ok(201);
    ben.hold(&hall, &["A-2"]).await.problem(409, "event-not-on-sale");
    ben.wish(&hall, &with("A-5", "PRESS-1")).await.problem(409, "event-not-on-sale");
    ben.wish(&hall, &with("A-5", "FANS-2030")).await.problem(409, "seat-unavailable");
    let state = async |state: &str| {
        app.operator.put(&hall.path("/on-sale"), &json!({ "state": state })).await.ok(200)
    };
    state("paused").await;
    ada.wish(&hall, &with("A-2", "FANS-2030")).await.problem(503, "event-paused");
    state("open").await;
    // At the end of its time a code is good no more; what was had with it stays.
    app.set_clock(now + 49_999).await;
    ada.wish(&hall, &with("A-2", "FANS-2030")).await.ok(201);
    app.set_clock(now + 50_000).await;
    ada.wish(&hall, &with("A-3", "FANS-2030")).await.problem(403, "access-code-invalid");
    app.set_clock(now + 100_000).await;
    ben.hold(&hall, &["A-3"]).await.ok(201);
    ben.wish(&hall, &with("A-5", "PRESS-1")).await.ok(201);
    app.set_clock(now + 200_000).await;
    ben.wish(&hall, &with("A-4", "PRESS-1")).await.problem(409, "event-not-on-sale");
    app.finish().await;
}

/// Sixty-four at once, for a code of ten tickets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_a_code_lets_as_many_in_as_it_is_good_for() {
    let app = App::start().await;
    let hall = app.grounds(json!({}), &["A-1"], &[("Floor", 1_000, 4)]).await;
    app.code(&hall, &json!({ "code": "TEN-ONLY", "presale": true, "tickets_max": 10 })).await;
    let mut asks = Vec::new();
    for _ in 0..64 {
        let wish = json!({ "ga": [{ "ga_area": "Floor", "quantity": 1 }], "access_code": "TEN-ONLY" });
        asks.push(app.buyer().await.wish(&hall, &wish));
    }
    let replies = together(asks).await;
    assert_eq!(tally(&replies), counts([("201 ok", 10), ("409 access-code-exhausted", 54)]));
    let lost = replies.iter().find(|reply| reply.status == 409).expect("one lost");
    assert_eq!((&lost.body["limit"], &lost.body["in_use"]), (&json!(10), &json!(10)));
    assert_eq!((app.code_in_use(&hall, "TEN-ONLY").await, app.available(&hall, "Floor").await), (10, 990));
    app.finish().await;
}

/// By release, by expiry, by the deadline alone, by a payment that is undone, and by a refund.
#[tokio::test]
async fn a_code_gets_its_tickets_back() {
    let app = App::start().await;
    let hall = app.grounds(json!({ "hold_ttl_s": 60 }), &["A-1"], &[("Floor", 100, 2)]).await;
    app.code(&hall, &json!({ "code": "PAIR-1", "presale": true, "tickets_max": 2 })).await;
    let wish = json!({ "ga": [{ "ga_area": "Floor", "quantity": 2 }], "access_code": "PAIR-1" });
    let one = json!({ "ga": [{ "ga_area": "Floor", "quantity": 1 }], "access_code": "PAIR-1" });
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let used_up = async || drop(ben.wish(&hall, &one).await.problem(409, "access-code-exhausted"));
    let hold = ada.wish(&hall, &wish).await.ok(201);
    used_up().await;
    ada.release(&hold).await.ok(204);
    ada.release(&hold).await.ok(204);
    assert_eq!(app.code_in_use(&hall, "PAIR-1").await, 0, "given back once");
    ada.wish(&hall, &wish).await.ok(201);
    app.advance(60_000).await;
    app.worker("expirer").await;
    assert_eq!(app.code_in_use(&hall, "PAIR-1").await, 0);
    ada.wish(&hall, &wish).await.ok(201);
    app.advance(59_999).await;
    used_up().await;
    app.advance(1).await;
    // Nobody has swept.
    let hold = ben.wish(&hall, &wish).await.ok(201);
    assert_eq!(app.code_in_use(&hall, "PAIR-1").await, 2);
    app.provider.script("capture", &["declined"]).await;
    let order_id = ben.pay(&hold).await;
    used_up().await;
    app.passes("payments", 1).await;
    ben.expect_order(&order_id, "CONFIRMED AUTHORIZED").await;
    used_up().await;
    app.work_until(&ben, &order_id, "CANCELLED VOIDED").await;
    assert_eq!(app.code_in_use(&hall, "PAIR-1").await, 0);
    let hold = ben.wish(&hall, &wish).await.ok(201);
    let order_id = ben.pay(&hold).await;
    app.passes("payments", 2).await;
    used_up().await;
    app.refund(&order_id, &json!({ "ga": [{ "ga_area": "Floor", "quantity": 1 }] })).await.ok(202);
    used_up().await;
    app.work_until(&ben, &order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.code_in_use(&hall, "PAIR-1").await, 1);
    ada.wish(&hall, &one).await.ok(201);
    used_up().await;
    app.finish().await;
}

#[tokio::test]
async fn a_code_is_changed_and_withdrawn_without_taking_what_was_had() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    app.set_aside(&hall, "Press", &["A-1", "A-2"]).await;
    app.operator.post(&hall.path("/allocations"), &json!({ "name": "Staff" })).await.ok(201);
    let code = |more: Value| {
        let mut code = json!({ "code": "PRESS-1", "allocation": "Press", "tickets_max": 2 });
        for (member, value) in more.as_object().expect("an object") {
            code[member] = value.clone();
        }
        code
    };
    app.code(&hall, &code(json!({}))).await;
    let ada = app.buyer().await;
    let wish = |seat: &str| json!({ "seats": [seat], "access_code": "PRESS-1" });
    let hold = ada.wish(&hall, &wish("A-1")).await.ok(201);
    // Its tickets are counted on; with fewer allowed than are used there is nothing left.
    assert_eq!(app.code(&hall, &code(json!({ "tickets_max": 1 }))).await["tickets_in_use"], 1);
    let problem = ada.wish(&hall, &wish("A-2")).await.problem(409, "access-code-exhausted");
    assert_eq!((&problem["limit"], &problem["in_use"]), (&json!(1), &json!(1)));
    let other = app.operator.put(&hall.path("/access-codes"), &code(json!({ "allocation": "Staff" }))).await;
    other.problem(409, "action-not-possible");
    let withdrawn = app.code(&hall, &code(json!({ "tickets_max": 2, "revoked": true }))).await;
    assert!(withdrawn["revoked_at"].is_string(), "{withdrawn}");
    ada.wish(&hall, &wish("A-2")).await.problem(403, "access-code-invalid");
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.code(&hall, &code(json!({ "revoked": false }))).await;
    ada.wish(&hall, &wish("A-2")).await.ok(201);
    let time = |member: &str, value: &str| code(json!({ member: value }));
    for (body, place) in [
        (json!({ "code": "abc", "presale": true, "tickets_max": 1 }), "/code"),
        (json!({ "code": "NOTHING", "tickets_max": 1 }), "/allocation"),
        (code(json!({ "allocation": "Nobody" })), "/allocation"),
        (code(json!({ "tickets_max": 0 })), "/tickets_max"),
        (code(json!({ "tickets_max": -1 })), "/tickets_max"),
        (code(json!({ "tickets_max": 1.5 })), "/tickets_max"),
        (code(json!({ "tickets_max": "1" })), "/tickets_max"),
        (code(json!({ "tickets_max": 2_147_483_648u64 })), "/tickets_max"),
        (time("valid_from", "tomorrow"), "/valid_from"),
        (time("valid_until", "2030-05-01T19:30:00"), "/valid_until"),
        (
            code(json!({ "valid_from": "2030-01-02T00:00:00Z", "valid_until": "2030-01-02T00:00:00Z" })),
            "/valid_until",
        ),
    ] {
        let problem =
            app.operator.put(&hall.path("/access-codes"), &body).await.problem(422, "validation-failed");
        assert_eq!(text(&problem["errors"][0], "pointer"), place, "{body}: {problem}");
    }
    for after in ["%00", "a", "two%20words"] {
        let path = hall.path(&format!("/access-codes?after={after}"));
        app.operator.get(&path).await.problem(422, "validation-failed");
    }
    app.finish().await;
}
