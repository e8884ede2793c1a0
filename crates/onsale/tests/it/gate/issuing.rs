//! Tickets are made when the money is there by proof, once, for whoever bought them.

use serde_json::{Value, json};

use crate::util::{App, run, text};

use super::{bought, key, ticketed, tickets};

/// while it isn't known whether the money was taken there is no ticket; the seats are the buyer's all the same.
/// fossasia/open-event-server#5169: tickets were printed as soon as an order was begun.
#[tokio::test]
async fn there_is_no_ticket_before_the_money_has_been_taken() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    app.provider.script("capture", &["lost_reply"]).await;
    let order_id = ada.pay(&ada.hold(&hall, &["A-1", "A-2"]).await.ok(201)).await;
    let nothing = async |why: &str| {
        app.worker("issuer").await;
        assert_eq!(tickets(&ada, &order_id).await, [] as [Value; 0], "{why}");
        let order = ada.order(&order_id).await;
        assert_eq!(order["tickets_ready"], false, "{order}");
    };
    nothing("nothing is paid").await;
    app.worker("payments").await;
    ada.expect_order(&order_id, "CONFIRMED AUTHORIZED").await;
    nothing("the money is set aside").await;
    app.worker("payments").await;
    nothing("the capture's answer was lost").await;
    assert_eq!(app.seat_states(&hall).await, "22");

    app.work_until(&ada, &order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(
        ada.order(&order_id).await["tickets_ready"],
        false,
        "the issuer makes tickets, and nobody else"
    );
    app.worker("issuer").await;
    assert_eq!(ada.order(&order_id).await["tickets_ready"], true);
    let made = tickets(&ada, &order_id).await;
    let shown = |ticket: &Value| (text(ticket, "seat_id").to_owned(), text(ticket, "status").to_owned());
    let valid = |seat: &str| (seat.to_owned(), "VALID".to_owned());
    assert_eq!(made.iter().map(shown).collect::<Vec<_>>(), [valid("A-1"), valid("A-2")]);
    // Again and again: the same tickets.
    app.passes("issuer", 3).await;
    assert_eq!(tickets(&ada, &order_id).await, made);
    app.finish().await;
}

/// a capture that fails for good is compensated before any ticket exists.
#[tokio::test]
async fn a_sale_that_is_undone_never_had_a_ticket() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    app.provider.script("capture", &["declined"]).await;
    let order_id = ada.pay(&ada.hold(&hall, &["A-1"]).await.ok(201)).await;
    app.passes("payments", 2).await;
    app.worker("issuer").await;
    assert_eq!(tickets(&ada, &order_id).await, [] as [Value; 0]);
    app.work_until(&ada, &order_id, "CANCELLED VOIDED").await;
    app.worker("issuer").await;
    assert_eq!(tickets(&ada, &order_id).await, [] as [Value; 0]);
    assert_eq!(app.seat_states(&hall).await, "0");

    // The seat is sold anew, with a ticket of its own.
    let ben = app.buyer().await;
    ticketed(&app, &ben, &hall, &["A-1"]).await;
    assert_eq!(tickets(&ada, &order_id).await, [] as [Value; 0]);
    app.finish().await;
}

#[tokio::test]
async fn tickets_are_their_buyers_and_nobody_elses() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let order_id = bought(&app, &ada, &hall, &["A-1"]).await;
    app.worker("issuer").await;
    let path = format!("/v1/orders/{order_id}/tickets");
    let hers = ada.client.get(&path).await;
    assert_eq!(hers.header("cache-control"), Some("private, no-store"));
    ben.client.get(&path).await.problem(404, "not-found");
    app.buyers.get(&path).await.problem(401, "unauthenticated");
    assert_eq!(app.operator.get(&path).await.ok(200), hers.clone().ok(200));
    assert_eq!(app.operator.for_account(&ada.account_id).get(&path).await.ok(200), hers.ok(200));
    app.operator.for_account(&ben.account_id).get(&path).await.problem(404, "not-found");
    for role in ["reader", "gate", "partner"] {
        key(&app, role).await.get(&path).await.problem(403, "forbidden");
    }
    let nothing = path.replace(&order_id, &format!("ord_{}", "0".repeat(26)));
    ada.client.get(&nothing).await.problem(404, "not-found");
    app.finish().await;
}

#[tokio::test]
async fn the_page_has_a_code_for_each_ticket_and_needs_nothing_else() {
    let app = App::start().await;
    let new = json!({
        "name": "Faust & <Gretchen>", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "timezone": "Europe/Berlin",
    });
    let hall = app.opened(&new, &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let order_id = bought(&app, &ada, &hall, &["A-1", "A-2"]).await;
    app.worker("issuer").await;
    let path = format!("/v1/orders/{order_id}/tickets");
    let page = ada.client.get(&path).header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("cache-control"), Some("private, no-store"));
    let policy = page.header("content-security-policy").expect("a policy").to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    let shown = page.text;
    assert_eq!((shown.matches("<article>").count(), shown.matches("<svg").count()), (2, 2));
    assert!(shown.contains("Wednesday, 1 May 2030, 21:30 CEST"), "in the venue's time");
    assert!(shown.contains("Faust &#38; &#60;Gretchen&#62;") && !shown.contains("<script"), "{shown:.2000}");
    assert_eq!(ada.client.get(&path).await.header("content-type"), Some("application/json"));
    app.finish().await;
}

/// Whoever has the public key verifies, and needs no server.
/// pretix/pretixscan-desktop#65: cut off from its server, a scanner found every good ticket invalid.
#[tokio::test]
async fn a_barcode_is_verified_offline() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let ticket = &ticketed(&app, &ada, &hall, &["A-1"]).await[0];
    let keys = app.operator.get("/v1/gate/keys").await.ok(200);
    let public = text(&keys["keys"][0], "public_key").to_owned();
    app.finish().await;
    let said = run(&["verify-ticket", "--public-key", &public, text(ticket, "barcode")]).ok();
    assert_eq!(said, format!("{} generation 1\n", text(ticket, "ticket_id")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_an_order_hears_of_its_tickets() {
    let app = App::options().workers().start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let order_id = ada.pay(&ada.hold(&hall, &["A-1"]).await.ok(201)).await;
    // Each answer is the next change; the last of them is that there are tickets.
    let mut order = ada.order(&order_id).await;
    for _ in 0..8 {
        if order["tickets_ready"] == true {
            break;
        }
        order = ada.client.get(&format!("/v1/orders/{order_id}?wait_s=20")).await.ok(200);
    }
    assert_eq!(order["tickets_ready"], true, "{order}");
    assert_eq!(tickets(&ada, &order_id).await.len(), 1);
    app.finish().await;
}
