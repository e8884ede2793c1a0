//! A ticket goes with its money, and standing places have tickets too.

use reqwest::Method;
use serde_json::{Value, json};

use crate::util::{App, Hall, fresh_key, text};

use super::{Scanner, bought, ticketed, tickets};

fn statuses(tickets: &[Value]) -> Vec<String> {
    tickets.iter().map(|ticket| format!("{} {}", text(ticket, "seat_id"), text(ticket, "status"))).collect()
}

/// The comparison of whole orders with the provider's books doesn't know of parts that were given back.
async fn end(app: App) {
    app.audit().await;
    app.stop();
}

/// from the moment the money is asked back the ticket opens nothing; the seat's next buyer has a ticket of their own.
/// chobbledotcom/tickets#355: who had been given the money back could come in all the same.
#[tokio::test]
async fn who_has_the_money_back_does_not_come_in() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let order_id = bought(&app, &ada, &hall, &["A-1", "A-2"]).await;
    app.worker("issuer").await;
    let issued = tickets(&ada, &order_id).await;
    let (north, barcode) = (Scanner::at(&app, "north").await, text(&issued[0], "barcode"));
    let refund = json!({ "reason": "ill", "resell": true, "seats": ["A-1"] });
    let refunds = format!("/v1/orders/{order_id}/refunds");
    app.operator.post(&refunds, &refund).key(&fresh_key()).await.ok(202);
    let suspended = tickets(&ada, &order_id).await;
    assert_eq!(statuses(&suspended), ["A-1 SUSPENDED", "A-2 VALID"]);
    assert_eq!((&suspended[0]["barcode"], &suspended[1]["barcode"]), (&Value::Null, &issued[1]["barcode"]));
    assert_eq!(north.scan(barcode).await, "REVOKED");
    let reissue = format!("/v1/tickets/{}/reissue", text(&issued[0], "ticket_id"));
    app.operator.post(&reissue, &json!({ "generation": 1 })).await.problem(409, "action-not-possible");
    let path = format!("/v1/orders/{order_id}/tickets");
    let page = ada.client.get(&path).header("Accept", "text/html").await.text;
    assert_eq!((page.matches("<svg").count(), page.matches("Not valid: being refunded").count()), (1, 1));

    app.work_until(&ada, &order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(statuses(&tickets(&ada, &order_id).await), ["A-1 REVOKED", "A-2 VALID"]);
    let resold = ticketed(&app, &ben, &hall, &["A-1"]).await;
    assert_eq!(north.scan(text(&resold[0], "barcode")).await, "ADMIT");
    assert_eq!(north.scan(barcode).await, "REVOKED");
    assert_eq!(north.scan(text(&issued[1], "barcode")).await, "ADMIT");
    // A seat whose ticket was used can't be sold again.
    let refund = json!({ "reason": "left early", "resell": true, "seats": ["A-2"] });
    app.operator.post(&refunds, &refund).key(&fresh_key()).await.problem(409, "not-refundable");
    end(app).await;
}

/// What is refunded before there are tickets never has any.
#[tokio::test]
async fn what_was_given_back_before_has_no_ticket() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let order_id = bought(&app, &ada, &hall, &["A-1", "A-2"]).await;
    let refund = json!({ "reason": "ill", "resell": false, "seats": ["A-2"] });
    app.operator.post(&format!("/v1/orders/{order_id}/refunds"), &refund).key(&fresh_key()).await.ok(202);
    app.worker("issuer").await;
    assert_eq!(tickets(&ada, &order_id).await.len(), 0, "its money is on its way");
    app.work_until(&ada, &order_id, "CONFIRMED CAPTURED").await;
    app.worker("issuer").await;
    assert_eq!(statuses(&tickets(&ada, &order_id).await), ["A-1 VALID"]);
    end(app).await;
}

#[tokio::test]
async fn each_standing_place_has_a_ticket() {
    let app = App::start().await;
    let new = json!({ "name": "An evening", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" });
    let hall =
        Hall { event_id: text(&app.operator.post("/v1/events", &new).await.ok(201), "event_id").to_owned() };
    let path = format!("/v1/events/{}", hall.event_id);
    let row = json!({ "row": "1", "seats": [{ "seat_id": "A-1", "seat": "1", "price_level": "All" }] });
    let manifest = json!({
        "sections": [{ "name": "A", "rows": [row] }],
        "ga_areas": [{ "ga_area": "Floor", "capacity": 10, "price_level": "All" }],
    });
    app.operator.ask(Method::PUT, &format!("{path}/manifest")).json(&manifest).await.ok(200);
    let prices = json!({ "price_levels": [{ "price_level": "All", "amount_minor": 1_000 }] });
    app.operator.put(&format!("{path}/prices"), &prices).await.ok(200);
    app.operator.put(&format!("{path}/on-sale"), &json!({ "state": "open" })).await.ok(200);
    let ada = app.buyer().await;
    let wish = json!({ "seats": ["A-1"], "ga": [{ "ga_area": "Floor", "quantity": 3 }] });
    let hold = ada.client.post(&format!("{path}/holds"), &wish).key(&fresh_key()).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    app.worker("issuer").await;
    let made = tickets(&ada, &order_id).await;
    let shown = |ticket: &Value| ticket["ga_area"].as_str().or(ticket["seat_id"].as_str()).map(str::to_owned);
    let shown: Vec<String> = made.iter().filter_map(shown).collect();
    assert_eq!(shown, ["A-1", "Floor", "Floor", "Floor"]);
    let north = Scanner::at(&app, "north").await;
    for ticket in &made {
        assert_eq!(north.scan(text(ticket, "barcode")).await, "ADMIT");
    }
    let again = north.show(&fresh_key(), text(&made[2], "barcode"), json!({})).await.ok(200);
    assert_eq!((text(&again, "result"), text(&again, "ga_area")), ("ALREADY_USED", "Floor"));
    let page = format!("/v1/orders/{order_id}/tickets");
    let page = ada.client.get(&page).header("Accept", "text/html").await.text;
    assert_eq!((page.matches("<svg").count(), page.matches("Standing area").count()), (4, 3));
    app.finish().await;
}
