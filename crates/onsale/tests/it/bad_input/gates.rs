//! Scanners that send what can't be right, and operators who do.

use serde_json::{Value, json};

use crate::util::{App, fresh_key, text};

use super::Stage;

/// A body with some of its members put differently; null takes one away.
fn with(body: &Value, changes: &Value) -> Value {
    let mut body = body.clone();
    let members = body.as_object_mut().expect("an object");
    for (name, value) in changes.as_object().expect("an object") {
        members.insert(name.clone(), value.clone());
    }
    members.retain(|_, value| !value.is_null());
    body
}

/// A time so far from the server's, in RFC 3339.
async fn in_ms(app: &App, ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(app.now_ms().await + ms).expect("a time");
    at.to_string()
}

#[tokio::test]
async fn a_scan_says_what_where_and_when() {
    let stage = Stage::set().await;
    let scans = |body: &Value| stage.app.operator.post("/v1/gate/scans", body);
    let right = json!({ "scan_id": "s-1", "barcode": "x", "gate": "north" });
    let far = in_ms(&stage.app, 601_000).await;
    let cases: [(Value, &[&str]); 27] = [
        (json!({ "scan_id": null }), &["/scan_id"]),
        (json!({ "barcode": null }), &["/barcode"]),
        (json!({ "gate": null }), &["/gate"]),
        (json!({ "scan_id": "" }), &["/scan_id"]),
        (json!({ "scan_id": "a b" }), &["/scan_id"]),
        (json!({ "scan_id": "n\u{e4}" }), &["/scan_id"]),
        (json!({ "scan_id": "s".repeat(129) }), &["/scan_id"]),
        (json!({ "scan_id": 7 }), &["/scan_id"]),
        (json!({ "barcode": 7 }), &["/barcode"]),
        (json!({ "barcode": ["x"] }), &["/barcode"]),
        (json!({ "gate": "" }), &["/gate"]),
        (json!({ "gate": "n".repeat(65) }), &["/gate"]),
        (json!({ "gate": "north\n" }), &["/gate"]),
        (json!({ "gate": {} }), &["/gate"]),
        (json!({ "direction": "IN" }), &["/direction"]),
        (json!({ "direction": "through" }), &["/direction"]),
        (json!({ "direction": 1 }), &["/direction"]),
        (json!({ "event_id": "evt_" }), &["/event_id"]),
        (json!({ "event_id": text(&stage.hold, "hold_id") }), &["/event_id"]),
        (json!({ "scanned_at": "yesterday" }), &["/scanned_at"]),
        (json!({ "scanned_at": 1_700_000_000 }), &["/scanned_at"]),
        (json!({ "scanned_at": "1969-12-31T23:59:59Z" }), &["/scanned_at"]),
        (json!({ "scanned_at": "9999-12-31T23:59:59Z" }), &["/scanned_at"]),
        (json!({ "scanned_at": far }), &["/scanned_at"]),
        (json!({ "verdict": "ADMIT" }), &["/verdict"]),
        (json!({ "barcod": "x" }), &["/barcod"]),
        (json!({ "scan_id": "", "gate": "", "direction": "x" }), &["/gate", "/direction", "/scan_id"]),
    ];
    for (changes, places) in cases {
        stage.faulty(scans(&with(&right, &changes)), places).await;
    }
    // What was read is whatever it is: it is no ticket, and that is the answer.
    let soon = in_ms(&stage.app, 599_000).await;
    for barcode in ["", "x", &"9".repeat(60_000), "\u{0}", "\u{1f3ab}"] {
        let body = with(&right, &json!({ "barcode": barcode, "scanned_at": soon, "scan_id": fresh_key() }));
        assert_eq!(scans(&body).await.ok(200)["result"], "INVALID");
    }
    let long = with(&right, &json!({ "barcode": "9".repeat(70_000) }));
    stage.refuses(scans(&long), 413, "payload-too-large", &[]).await;
    stage.finish().await;
}

#[tokio::test]
async fn an_upload_is_right_in_all_of_its_scans_or_none_is_taken() {
    let stage = Stage::set().await;
    let upload = |scans: Value| stage.app.operator.post("/v1/gate/uploads", &json!({ "scans": scans }));
    let at = "2026-01-01T10:00:00Z";
    let right =
        json!({ "scan_id": "s-1", "barcode": "x", "gate": "north", "scanned_at": at, "verdict": "ADMIT" });
    let far = in_ms(&stage.app, 601_000).await;
    let odd = [
        with(&right, &json!({ "verdict": "LET_IN" })),
        with(&right, &json!({ "scanned_at": far })),
        right.clone(),
        with(&right, &json!({ "gate": "", "event_id": "x", "scan_id": "\u{7f}" })),
    ];
    let places =
        ["/scans/0/verdict", "/scans/1/scanned_at", "/scans/3/scan_id", "/scans/3/gate", "/scans/3/event_id"];
    stage.faulty(upload(json!(odd)), &places).await;
    stage.faulty(upload(json!([with(&right, &json!({ "verdict": null }))])), &["/scans/0/verdict"]).await;
    stage
        .faulty(upload(json!([with(&right, &json!({ "scanned_at": null }))])), &["/scans/0/scanned_at"])
        .await;
    stage.faulty(upload(json!([right, 7])), &["/scans/1"]).await;
    stage.faulty(upload(json!({})), &["/scans"]).await;
    stage.faulty(upload(json!(vec![right.clone(); 101])), &["/scans"]).await;
    assert_eq!(upload(json!([])).await.ok(200), json!({ "scans": [] }));
    stage.finish().await;
}

#[tokio::test]
async fn only_a_ticket_that_is_there_is_issued_anew() {
    let stage = Stage::set().await;
    let ticket = format!("tkt_{}", "0".repeat(26));
    let reissue =
        |id: &str, body: &Value| stage.app.operator.post(&format!("/v1/tickets/{id}/reissue"), body);
    for generation in [json!(-1), json!(1.5), json!("1"), json!(65_536), json!(2_147_483_648u64), json!(null)]
    {
        stage.faulty(reissue(&ticket, &json!({ "generation": generation })), &["/generation"]).await;
    }
    stage.faulty(reissue(&ticket, &json!({ "generation": 0 })), &["/generation"]).await;
    stage.faulty(reissue(&ticket, &json!({})), &["/generation"]).await;
    for id in [ticket.as_str(), "tkt_", "x", text(&stage.hold, "hold_id")] {
        stage.refuses(reissue(id, &json!({ "generation": 1 })), 404, "not-found", &[]).await;
    }
    let nothing = format!("/v1/events/evt_{}/gate/", "0".repeat(26));
    for list in ["revoked", "conflicts"] {
        let ask = stage.app.operator.get(&format!("{nothing}{list}"));
        stage.refuses(ask, 404, "not-found", &[]).await;
    }
    for since in ["-1", "x", "1.5", "18446744073709551616"] {
        let path = stage.path(&format!("/gate/revoked?since={since}"));
        stage.faulty(stage.app.operator.get(&path), &["/query/since"]).await;
    }
    stage.finish().await;
}
