//! Scanners that could not ask: what they did is told later, and what the books would not have done stays on record.

use serde_json::{Value, json};

use crate::util::{App, Hall, text};

use super::{Scanner, ticketed, told};

async fn conflicts(app: &App, hall: &Hall) -> Vec<Value> {
    let path = format!("/v1/events/{}/gate/conflicts", hall.event_id);
    app.operator.get(&path).await.ok(200)["conflicts"].as_array().expect("conflicts").clone()
}

/// SandeepVashishtha/Eventra#10933, SandeepVashishtha/Eventra#11074: what was scanned offline was dropped in silence, and all but
/// the first of an event were taken for its repeats. pretix/pretix#3187: that a dead ticket's owner had been let in was kept as
/// a scan that had failed. roshankumar0036singh/Uni-Event#248: the time of a scan became the time of its upload.
#[tokio::test]
async fn the_books_decide_in_the_order_in_which_they_hear_of_it() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let ada = app.buyer().await;
    let tickets = ticketed(&app, &ada, &hall, &["A-1", "A-2", "A-3"]).await;
    let [one, two, three] = [0, 1, 2].map(|at| text(&tickets[at], "barcode"));
    let (north, south) = (Scanner::at(&app, "north").await, Scanner::at(&app, "south").await);

    // Both were cut off and let somebody in with a copy of the same ticket.
    let uploaded = north.upload(&[north.let_in("n-1", one), north.let_in("n-2", two)]).await.ok(200);
    assert_eq!(told(&uploaded), ["n-1 ADMIT", "n-2 ADMIT"]);
    assert_eq!(conflicts(&app, &hall).await, [] as [Value; 0]);
    let scans = [south.let_in("s-1", one), south.let_in("s-2", "no ticket"), south.let_in("s-3", three)];
    let uploaded = south.upload(&scans).await.ok(200);
    assert_eq!(told(&uploaded), ["s-1 ALREADY_USED*", "s-2 INVALID*", "s-3 ADMIT"]);
    // Sent again, since the answer was lost: nothing more happens.
    assert_eq!(south.upload(&scans).await.ok(200), uploaded);
    let found = conflicts(&app, &hall).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let shown =
        ["scan_id", "gate", "result", "seat_id", "admitted_gate"].map(|member| text(&found[0], member));
    assert_eq!(shown, ["s-1", "south", "ALREADY_USED", "A-1", "north"]);
    assert_eq!(text(&found[0], "scanned_at"), "2026-01-01T10:00:00.000Z");
    assert_eq!(found[0]["ticket_id"], tickets[0]["ticket_id"]);
    // On line again, the gates know.
    assert_eq!(north.scan(three).await, "ALREADY_USED");
    app.finish().await;
}

/// It had asked, had no answer, and let them in by itself. The books had said no.
#[tokio::test]
async fn a_scan_whose_answer_was_lost_may_come_again_as_an_upload() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let ticket = ticketed(&app, &ada, &hall, &["A-1"]).await.remove(0);
    let barcode = text(&ticket, "barcode");
    let (north, south) = (Scanner::at(&app, "north").await, Scanner::at(&app, "south").await);
    let at = json!({ "scanned_at": "2026-01-01T10:00:00Z" });
    assert_eq!(north.show("n-1", barcode, at.clone()).await.ok(200)["result"], "ADMIT");
    assert_eq!(south.show("s-1", barcode, at.clone()).await.ok(200)["result"], "ALREADY_USED");
    assert_eq!(told(&north.upload(&[north.let_in("n-1", barcode)]).await.ok(200)), ["n-1 ADMIT"]);
    assert_eq!(conflicts(&app, &hall).await.len(), 0);
    for _ in 0..2 {
        let uploaded = south.upload(&[south.let_in("s-1", barcode)]).await.ok(200);
        assert_eq!(told(&uploaded), ["s-1 ALREADY_USED*"]);
        assert_eq!(conflicts(&app, &hall).await.len(), 1);
    }
    // An id that was another scan's stops the upload there; what came before stays.
    let problem = south.upload(&[south.let_in("s-2", barcode), north.let_in("s-1", barcode)]).await;
    assert_eq!(problem.problem(422, "idempotency-key-reused")["index"], 1);
    assert_eq!(conflicts(&app, &hall).await.len(), 2);
    app.finish().await;
}

#[tokio::test]
async fn who_left_while_nobody_could_ask_has_left() {
    let app = App::start().await;
    let hall = app.hall(json!({ "reentry": true }), &["A-1"]).await;
    let ada = app.buyer().await;
    let ticket = ticketed(&app, &ada, &hall, &["A-1"]).await.remove(0);
    let (north, barcode) = (Scanner::at(&app, "north").await, text(&ticket, "barcode"));
    assert_eq!(north.scan(barcode).await, "ADMIT");
    let mut left = north.let_in("n-2", barcode);
    left["verdict"] = "EXITED".into();
    let uploaded = north.upload(&[left.clone(), north.let_in("n-3", barcode), left]).await.ok(200);
    assert_eq!(told(&uploaded), ["n-2 EXITED", "n-3 ADMIT", "n-2 EXITED"]);
    assert_eq!(conflicts(&app, &hall).await.len(), 0);
    assert_eq!(north.scan(barcode).await, "ALREADY_USED");
    app.finish().await;
}

/// The list of what is good no more, whole and as changes.
#[tokio::test]
async fn a_scanner_learns_which_tickets_are_good_no_more() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let tickets = ticketed(&app, &ada, &hall, &["A-1", "A-2"]).await;
    let north = Scanner::at(&app, "north").await;
    let path = format!("/v1/events/{}/gate/revoked", hall.event_id);
    let list = async |query: String| north.client.get(&format!("{path}{query}")).await.ok(200);
    let empty = list(String::new()).await;
    assert_eq!((&empty["tickets"], &empty["since"]), (&json!([]), &Value::Null));

    let id = text(&tickets[0], "ticket_id");
    let reissue = format!("/v1/tickets/{id}/reissue");
    app.operator.post(&reissue, &json!({ "generation": 1 })).await.ok(200);
    // That somebody came in is none of the list's business.
    assert_eq!(north.scan(text(&tickets[1], "barcode")).await, "ADMIT");
    let entry = |generation: u16| json!([{ "ticket_id": id, "status": "VALID", "generation": generation }]);
    let changed = list(format!("?since={}", empty["version"])).await;
    assert_eq!((&changed["tickets"], &changed["since"]), (&entry(2), &empty["version"]));
    let whole = list(String::new()).await;
    assert_eq!((&whole["tickets"], &whole["since"]), (&entry(2), &Value::Null));
    assert_eq!(whole["version"], changed["version"]);
    assert_eq!(list(format!("?since={}", whole["version"])).await["tickets"], json!([]));
    app.operator.post(&reissue, &json!({ "generation": 2 })).await.ok(200);
    assert_eq!(list(format!("?since={}", whole["version"])).await["tickets"], entry(3));
    // Of a time that has not been there is nothing to tell but all.
    let ahead = list("?since=1000000".to_owned()).await;
    assert_eq!((&ahead["tickets"], &ahead["since"]), (&entry(3), &Value::Null));
    app.finish().await;
}
