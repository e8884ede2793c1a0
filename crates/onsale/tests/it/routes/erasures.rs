//! Erasing a person: the books keep what was bought and paid, and not who it was.

use serde_json::{Value, json};

use crate::routes::sale::members;
use crate::util::{App, Buyer, Hall, finish, keep_in, program, text};

const SEATS: &[&str] = &["A-1", "A-2", "A-3"];

async fn buy(hall: &Hall, buyer: &Buyer, seat: &str, email: &str) -> String {
    let hold = buyer.hold(hall, &[seat]).await.ok(201);
    let path = format!("/v1/holds/{}/checkout", text(&hold, "hold_id"));
    let body = json!({
        "payment_method_token": "pm_card_visa", "email": email, "return_url": "https://shop.example/back?who=ada",
    });
    let key = format!("\"{}\"", text(&hold, "hold_id"));
    let begun = buyer.client.post(&path, &body).header("Idempotency-Key", &key).await.ok(202);
    text(&begun, "order_id").to_owned()
}

async fn attendees(app: &App, hall: &Hall) -> Vec<Value> {
    let page = app.operator.get(&format!("/v1/events/{}/exports/attendees", hall.event_id)).await.ok(200);
    page["attendees"].as_array().expect("attendees").clone()
}

/// Whether the bytes of the database still have a text. Only a file can be looked into like this.
fn is_in_the_file(app: &App, what: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("copy.db");
    let mut command = program(&["backup", &to.display().to_string()]);
    keep_in(&mut command, app.data.path());
    let said = finish(command.env("ONSALE_DATA", app.data.path()).spawn().expect("the program starts"));
    if said.stderr.contains("PostgreSQL") {
        return false;
    }
    said.ok();
    let bytes = std::fs::read(&to).expect("a copy");
    bytes.windows(what.len()).any(|window| window == what.as_bytes())
}

/// opengento/magento2-gdpr#94: the account was erased, and its orders still named the buyer. thelia/thelia#3588: who had bought
/// could not be erased at all, for the sake of the books.
#[tokio::test]
async fn an_account_is_erased_and_the_ledger_keeps_a_pseudonym() {
    let app = App::start().await;
    let hall = app.hall(json!({}), SEATS).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let order_id = buy(&hall, &ada, "A-1", "Ada@example.com").await;
    let erase = |who: Value| {
        let mut body = json!({ "note": "asked by letter of 3 May" });
        body.as_object_mut().expect("an object").extend(who.as_object().expect("an object").clone());
        app.operator.post("/v1/erasures", &body)
    };
    // While a payment is under way nothing is done.
    let refused = erase(json!({ "account_id": ada.account_id })).await.problem(409, "action-not-possible");
    assert!(text(&refused, "detail").contains("under way"), "{refused}");
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let held = ada.hold(&hall, &["A-3"]).await.ok(201);
    erase(json!({ "account_id": ada.account_id })).await.problem(409, "action-not-possible");
    ada.client.delete(&format!("/v1/holds/{}", text(&held, "hold_id"))).await.ok(204);
    let theirs = buy(&hall, &ben, "A-2", "ben@example.com").await;
    app.passes("payments", 2).await;
    ben.expect_order(&theirs, "CONFIRMED CAPTURED").await;
    let before = app.report(&hall).await;

    let done = erase(json!({ "account_id": ada.account_id })).await.ok(200);
    members(&done, "accounts orders holds under_way repeated");
    assert_eq!(done, json!({ "accounts": 1, "orders": 1, "holds": 2, "under_way": 0, "repeated": false }));
    let again = erase(json!({ "account_id": ada.account_id })).await.ok(200);
    assert_eq!(again, json!({ "accounts": 0, "orders": 0, "holds": 0, "under_way": 0, "repeated": true }));

    assert_eq!(app.report(&hall).await, before, "the ledger stays");
    let rows = attendees(&app, &hall).await;
    let of = |seat: &str| rows.iter().find(|row| row["seat_id"] == seat).expect("it is sold");
    assert_eq!((&of("A-1")["email"], &of("A-1")["order_id"]), (&Value::Null, &json!(order_id)));
    assert!(text(of("A-1"), "account_id").starts_with("anon_"), "{rows:?}");
    assert_eq!(text(of("A-2"), "email"), "ben@example.com", "nobody else is touched");
    let listed = app.operator.get("/v1/erasures").await.ok(200);
    let [kept] = &listed["erasures"].as_array().expect("erasures")[..] else { panic!("one: {listed}") };
    members(kept, "digest subject note actor created_at");
    assert!(!listed.to_string().contains(&ada.account_id), "{listed}");
    // Nobody acts for a pseudonym, and the old name opens nothing.
    ada.client.get(&format!("/v1/orders/{order_id}")).await.problem(404, "not-found");
    let partner = app.operator.for_account(text(of("A-1"), "account_id"));
    partner.get(&format!("/v1/orders/{order_id}")).await.problem(422, "validation-failed");
    app.finish().await;
}

/// By an address, in whatever case: all accounts that have given it. And again, when a copy of before is back.
#[tokio::test]
async fn an_address_is_erased_and_a_copy_of_before_is_erased_again() {
    let app = App::start().await;
    let hall = app.hall(json!({}), SEATS).await;
    let mut guests = Vec::new();
    for (seat, email) in [("A-1", "Äda@Example.com"), ("A-2", "äda@example.com"), ("A-3", "ben@example.com")]
    {
        let guest = app.buyer().await;
        let order_id = buy(&hall, &guest, seat, email).await;
        app.passes("payments", 2).await;
        guest.expect_order(&order_id, "CONFIRMED CAPTURED").await;
        guests.push(guest);
    }
    let body = json!({ "email": " ÄDA@example.com ", "note": "asked by mail" });
    let done = app.operator.post("/v1/erasures", &body).await.ok(200);
    assert_eq!((&done["accounts"], &done["orders"]), (&json!(2), &json!(2)), "{done}");
    let emails: Vec<_> = attendees(&app, &hall).await.iter().map(|row| row["email"].clone()).collect();
    let left: Vec<&Value> = emails.iter().filter(|email| !email.is_null()).collect();
    assert_eq!((emails.len(), left), (3, vec![&json!("ben@example.com")]));
    assert!(!is_in_the_file(&app, "Äda@Example.com") && !is_in_the_file(&app, &guests[0].account_id));

    let kept = app.operator.get("/v1/erasures").await.ok(200)["erasures"].clone();
    assert_eq!(kept.as_array().map(Vec::len), Some(3), "two accounts and an address: {kept}");
    // As after a restore, one of them is back under the old name, and with it what it had bought.
    let back = app.buyer().await;
    let hold = guests[0].hold(&hall, &["A-1"]).await;
    hold.problem(409, "seat-unavailable");
    let other = app.hall(json!({}), &["B-1"]).await;
    let order_id = buy(&other, &guests[0], "B-1", "ädA@example.com").await;
    let replay = |body: Value| app.operator.post("/v1/erasures/replay", &body);
    let left = replay(json!({ "note": "restored" })).await.ok(200);
    assert_eq!((&left["accounts"], left["under_way"].as_u64() > Some(0)), (&json!(0), true), "{left}");
    app.passes("payments", 2).await;
    guests[0].expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let given = json!({ "note": "restored", "erasures": kept });
    let done = replay(given.clone()).await.ok(200);
    assert_eq!((&done["accounts"], &done["orders"]), (&json!(1), &json!(1)), "{done}");
    assert_eq!(attendees(&app, &other).await[0]["email"], Value::Null);
    assert_eq!(replay(given).await.ok(200)["accounts"], 0);
    // As many as may be given fit into a body, as they were listed.
    let mut many: Vec<Value> = vec![kept[0].clone(); 10_000];
    assert_eq!(replay(json!({ "note": "restored", "erasures": many })).await.ok(200)["accounts"], 0);
    many.push(kept[0].clone());
    let refused = replay(json!({ "note": "restored", "erasures": many })).await;
    refused.problem(422, "validation-failed");
    drop(back);
    app.finish().await;
}

#[tokio::test]
async fn what_makes_no_sense_and_who_may_not_is_refused() {
    let app = App::start().await;
    let anon = format!("anon_{}", "0".repeat(26));
    for body in [
        json!({ "note": "x" }),
        json!({ "account_id": "a", "email": "a@b", "note": "x" }),
        json!({ "account_id": "two words", "note": "x" }),
        json!({ "account_id": "", "note": "x" }),
        json!({ "account_id": anon, "note": "x" }),
        json!({ "email": "nobody", "note": "x" }),
        json!({ "account_id": "a" }),
        json!({ "account_id": "a", "note": " " }),
        json!({ "account_id": "a", "note": "by\0mail" }),
        json!({ "email": "a@b\0", "note": "x" }),
        json!({ "account_id": "a", "note": "x".repeat(3_000) }),
        json!({ "account_id": "a", "note": "x", "force": true }),
        json!([]),
    ] {
        app.operator.post("/v1/erasures", &body).await.problem(422, "validation-failed");
    }
    for erasure in [
        json!({ "digest": "x", "subject": "account" }),
        json!({ "digest": "+".repeat(32), "subject": "account" }),
        json!({ "digest": "0".repeat(32), "subject": "seat" }),
        json!({ "digest": "0".repeat(33), "subject": "account" }),
    ] {
        let body = json!({ "note": "x", "erasures": [erasure] });
        app.operator.post("/v1/erasures/replay", &body).await.problem(422, "validation-failed");
    }
    // Somebody whom nobody knows is erased all the same: he may be in a backup.
    let unknown = app.operator.post("/v1/erasures", &json!({ "account_id": "a", "note": "x" })).await.ok(200);
    assert_eq!((&unknown["accounts"], &unknown["repeated"]), (&json!(0), &json!(false)));
    let reader = app.operator.post("/v1/keys", &json!({ "role": "reader" })).await.ok(201);
    let reader = app.operator.with_token(text(&reader, "secret"));
    reader.post("/v1/erasures", &json!({ "account_id": "a", "note": "x" })).await.problem(403, "forbidden");
    reader.get("/v1/erasures").await.problem(403, "forbidden");
    app.finish().await;
}
