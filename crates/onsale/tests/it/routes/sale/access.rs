//! Who may do what: sessions, keys and their roles, and what others' things look like.

use serde_json::json;

use crate::util::{App, Buyer, Client, fresh_key, text};

/// A new key of a role.
async fn key(app: &App, role: &str) -> (String, Client) {
    let made = app.operator.post("/v1/keys", &json!({ "role": role, "name": "for a test" })).await.ok(201);
    super::members(&made, "key_id role name secret");
    super::is_id(&made, "key_id", "key_");
    super::is_id(&made, "secret", "osk_");
    assert_eq!(made["role"], role);
    (text(&made, "key_id").to_owned(), app.buyers.with_token(text(&made, "secret")))
}

/// What is another's is not there: 404, whatever is tried. In aortbals/southwest-checkin#42 any reservation could be seen by
/// counting.
#[tokio::test]
async fn others_things_are_not_found() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    let order_id = ada.pay(&hold).await;
    let held = ada.hold(&hall, &["A-2"]).await.ok(201);
    let hold_path = format!("/v1/holds/{}", text(&held, "hold_id"));
    ben.client.get(&hold_path).await.problem(404, "not-found");
    ben.client.delete(&hold_path).await.problem(404, "not-found");
    ben.checkout(&held, "pm_card_visa").await.problem(404, "not-found");
    ben.client.get(&format!("/v1/orders/{order_id}")).await.problem(404, "not-found");
    ben.client.get(&format!("/v1/orders/{order_id}?wait_s=5")).await.problem(404, "not-found");
    assert_eq!(ada.hold_now(&held).await["status"], "ACTIVE");
    // As is what nobody has, and what is no id at all.
    for path in ["/v1/holds/hld_0", "/v1/holds/x", "/v1/orders/ord_", "/v1/events/evt_nothing", "/v1/nothing"]
    {
        ada.client.get(path).await.problem(404, "not-found");
    }
    let absent = text(&held, "hold_id").replacen("hld_", "ord_", 1);
    ada.client.get(&format!("/v1/orders/{absent}")).await.problem(404, "not-found");
    ada.client.ask(reqwest::Method::PATCH, &hold_path).await.problem(405, "method-not-allowed");
    app.passes("payments", 2).await;
    app.finish().await;
}

#[tokio::test]
async fn a_partner_buys_for_its_customers_and_sees_each_ones_own() {
    let app = App::start().await;
    let hall = app.hall(json!({ "tickets_per_account_max": 1 }), &["A-1", "A-2"]).await;
    let (_, partner) = key(&app, "partner").await;
    let customer = |name: &str| Buyer { client: partner.for_account(name), account_id: name.to_owned() };
    let (ada, ben) = (customer("crm:ada"), customer("crm:ben"));
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    assert_eq!(hold["account_id"], "crm:ada");
    // Limits are the customer's, not the partner's.
    ada.hold(&hall, &["A-2"]).await.problem(409, "account-limit");
    ben.hold(&hall, &["A-2"]).await.ok(201);
    ben.checkout(&hold, "pm_card_visa").await.problem(404, "not-found");
    ben.client.get(&format!("/v1/holds/{}", text(&hold, "hold_id"))).await.problem(404, "not-found");
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;

    // Without an account it buys nothing and sees nothing.
    let nobody = Buyer { client: partner.clone(), account_id: String::new() };
    let refused = nobody.hold(&hall, &["A-1"]).await.problem(422, "validation-failed");
    assert_eq!(text(&refused["errors"][0], "pointer"), "/headers/Onsale-Account");
    partner.get(&format!("/v1/orders/{order_id}")).await.problem(403, "forbidden");
    partner
        .for_account(&"x".repeat(129))
        .get(&format!("/v1/orders/{order_id}"))
        .await
        .problem(422, "validation-failed");
    // A buyer's session is nobody else's, whatever it says in the header.
    let guest = app.buyer().await;
    guest
        .client
        .for_account("crm:ada")
        .get(&format!("/v1/orders/{order_id}"))
        .await
        .problem(404, "not-found");
    app.finish().await;
}

#[tokio::test]
async fn each_role_may_do_its_own() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    let hold_path = format!("/v1/holds/{}", text(&hold, "hold_id"));
    let event = format!("/v1/events/{}", hall.event_id);
    let (report, cases) = (format!("{event}/report"), "/v1/reconciliation/cases");
    let at_operators = |client: &Client| client.at(&app.operator.base);
    let (reader_id, reader) = key(&app, "reader").await;
    for (role, client, reads_reports, reads_holds, is_at_gates) in [
        ("reader", &reader, true, true, true),
        ("partner", &key(&app, "partner").await.1, false, false, false),
        ("gate", &key(&app, "gate").await.1, false, false, true),
        ("buyer", &ada.client, false, true, false),
        ("operator", &app.operator.at(&app.buyers.base), true, true, true),
    ] {
        let inside = at_operators(client);
        for path in [&report, cases] {
            match reads_reports {
                true => drop(inside.get(path).await.ok(200)),
                false => drop(inside.get(path).await.problem(403, "forbidden")),
            }
            // Operators' routes are on the operators' listener alone, whoever asks.
            client.get(path).await.problem(404, "not-found");
        }
        match is_at_gates {
            true => drop(inside.get("/v1/gate/keys").await.ok(200)),
            false => drop(inside.get("/v1/gate/keys").await.problem(403, "forbidden")),
        }
        client.get("/v1/gate/keys").await.problem(404, "not-found");
        let scan = json!({ "scan_id": role, "barcode": "no ticket", "gate": "north" });
        match role {
            "gate" | "operator" => drop(inside.post("/v1/gate/scans", &scan).await.ok(200)),
            _ => drop(inside.post("/v1/gate/scans", &scan).await.problem(403, "forbidden")),
        }
        client.post("/v1/gate/scans", &scan).await.problem(404, "not-found");
        match reads_holds {
            true => drop(client.get(&hold_path).await.ok(200)),
            false => drop(client.get(&hold_path).await.problem(403, "forbidden")),
        }
        if role != "operator" {
            let body = json!({ "state": "closed" });
            inside.put(&format!("{event}/on-sale"), &body).await.problem(403, "forbidden");
            inside.post("/v1/keys", &json!({ "role": "operator" })).await.problem(403, "forbidden");
        }
    }
    for path in ["/metrics", "/_test/clock", "/_test/audit"] {
        app.buyers.get(path).await.problem(404, "not-found");
        assert_eq!(app.operator.get(path).await.status, 200, "{path}");
    }
    // An operator acts for an account when it names one, and releases any hold.
    let for_ben = Buyer { client: app.operator.for_account("ben"), account_id: "ben".to_owned() };
    for_ben.hold(&hall, &["A-1"]).await.problem(409, "seat-unavailable");
    reader.delete(&hold_path).await.problem(403, "forbidden");
    app.operator.delete(&hold_path).await.ok(204);
    let hold = for_ben.hold(&hall, &["A-1"]).await.ok(201);
    assert_eq!(hold["account_id"], "ben");

    // A revoked key opens nothing any more.
    app.operator.delete(&format!("/v1/keys/{reader_id}")).await.ok(204);
    reader.get(&hold_path).await.problem(401, "unauthenticated");
    app.finish().await;
}

#[tokio::test]
async fn a_session_ends_by_the_clock() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let path = format!("/v1/events/{}/holds", hall.event_id);
    let wish = json!({ "seats": ["A-1"] });
    for token in [None, Some("ost_forged"), Some("osk_unknown_key_of_nobody"), Some("")] {
        let client = token.map_or(app.buyers.clone(), |token| app.buyers.with_token(token));
        let refused = client.post(&path, &wish).key(&fresh_key()).await;
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        refused.problem(401, "unauthenticated");
    }
    app.advance(24 * 3_600_000 - 1).await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    app.advance(1).await;
    let over = ada.client.get(&format!("/v1/holds/{}", text(&hold, "hold_id"))).await;
    over.problem(401, "unauthenticated");
    app.finish().await;
}
