//! Holds and payments that name what isn't there, or too much of it.

use serde_json::{Value, json};

use crate::util::{Ask, fresh_key};

use super::Stage;

#[tokio::test]
async fn a_hold_names_one_to_six_different_seats_of_its_event() {
    let stage = Stage::set().await;
    let hold = |body: &Value| stage.ada.client.post(&stage.path("/holds"), body).key(&fresh_key());
    let seats = |seats: &[&str]| hold(&json!({ "seats": seats }));
    let cases: [(Value, &[&str]); 15] = [
        (json!({}), &["/seats"]),
        (json!({ "seats": [] }), &["/seats"]),
        (json!({ "seats": null }), &["/seats"]),
        (json!({ "seats": ["A-2", "A-2"] }), &["/seats/1"]),
        (json!({ "seats": ["A-2", "A-3", "A-2", "A-3"] }), &["/seats/2", "/seats/3"]),
        (json!({ "seats": ["Z-1"] }), &["/seats/0"]),
        (json!({ "seats": ["A-2", "Z-1", "A-3", ""] }), &["/seats/1", "/seats/3"]),
        // Ids are kept byte for byte.
        (json!({ "seats": ["a-2"] }), &["/seats/0"]),
        (json!({ "seats": ["A-2 "] }), &["/seats/0"]),
        (json!({ "seats": ["7"] }), &["/seats/0"]),
        (json!({ "seats": ["A\u{2010}2"] }), &["/seats/0"]),
        (json!({ "seats": ["A-2\u{0}"] }), &["/seats/0"]),
        (json!({ "ga": [{ "ga_area": "Floor", "quantity": 1 }] }), &["/ga/0/ga_area"]),
        (json!({ "ga": [{ "ga_area": "Floor", "quantity": 1 }], "seats": ["A-2"] }), &["/ga/0/ga_area"]),
        (json!({ "ga": [], "seats": ["A-2"] }), &["/ga"]),
    ];
    for (body, places) in cases {
        stage.faulty(hold(&body), places).await;
    }
    let many: Vec<String> = (0..2_000).map(|seat| format!("A-{seat}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for count in [7, 1_000, 1_001, 2_000] {
        let problem = stage.refuses(seats(&many[..count]), 422, "too-many-seats", &[]).await;
        assert_eq!(problem["limit"], 6, "{problem}");
    }
    let problem = stage.refuses(seats(&["A-2", "A-1"]), 409, "seat-unavailable", &[]).await;
    assert_eq!(problem["seats"], json!(["A-1"]));
    let problem = stage.refuses(seats(&many[4..10]), 409, "account-limit", &[]).await;
    assert_eq!((&problem["limit"], &problem["in_use"]), (&json!(6), &json!(1)));
    stage.finish().await;
}

#[tokio::test]
async fn a_wish_for_the_best_seats_is_one() {
    let stage = Stage::set().await;
    let hold = |body: &Value| stage.ada.client.post(&stage.path("/holds"), body).key(&fresh_key());
    let best = |best: Value| hold(&json!({ "best_available": best }));
    let quantity = "/best_available/quantity";
    let cases: [(Value, &[&str]); 18] = [
        (json!({}), &[quantity]),
        (json!(2), &["/best_available"]),
        (json!([{ "quantity": 2 }]), &["/best_available/0"]),
        (json!({ "quantity": null }), &[quantity]),
        (json!({ "quantity": 0 }), &[quantity]),
        (json!({ "quantity": -1 }), &[quantity]),
        (json!({ "quantity": 1.5 }), &[quantity]),
        (json!({ "quantity": "1" }), &[quantity]),
        (json!({ "quantity": 1u64 << 32 }), &[quantity]),
        (json!({ "quantity": 1, "price_level": "Gold" }), &["/best_available/price_level"]),
        (json!({ "quantity": 1, "price_level": "stalls" }), &["/best_available/price_level"]),
        (json!({ "quantity": 1, "price_level": 0 }), &["/best_available/price_level"]),
        (json!({ "quantity": 1, "section": "" }), &["/best_available/section"]),
        (
            json!({ "quantity": 1, "section": "Z", "price_level": "" }),
            &["/best_available/price_level", "/best_available/section"],
        ),
        (json!({ "quantity": 1, "accessible": "yes" }), &["/best_available/accessible"]),
        (json!({ "quantity": 1, "split_rows": 1 }), &["/best_available/split_rows"]),
        (json!({ "quantity": 1, "row": "A" }), &["/best_available/row"]),
        (json!({ "quantity": 1, "allocation": 1 }), &["/best_available/allocation"]),
    ];
    for (body, places) in cases {
        stage.faulty(best(body), places).await;
    }
    let both = json!({ "best_available": { "quantity": 2 }, "seats": ["A-2"] });
    stage.faulty(hold(&both), &["/best_available"]).await;
    let none = json!({ "best_available": { "quantity": 2 }, "seats": [] });
    stage.faulty(hold(&none), &["/best_available"]).await;
    let places =
        json!({ "best_available": { "quantity": 2 }, "ga": [{ "ga_area": "Floor", "quantity": 1 }] });
    stage.faulty(hold(&places), &["/best_available"]).await;
    for many in [7, 50, 51, 1u64 << 31, u64::from(u32::MAX)] {
        let problem = stage.refuses(best(json!({ "quantity": many })), 422, "too-many-seats", &[]).await;
        assert_eq!(problem["limit"], 6, "{problem}");
    }
    let problem = stage.refuses(best(json!({ "quantity": 6 })), 409, "account-limit", &[]).await;
    assert_eq!((&problem["limit"], &problem["in_use"]), (&json!(6), &json!(1)));
    // Nobody can be in a wheelchair here.
    let accessible = best(json!({ "quantity": 1, "accessible": true }));
    stage.refuses(accessible, 409, "not-enough-available", &[]).await;
    stage.finish().await;
}

#[tokio::test]
async fn a_payment_names_a_card_an_address_and_a_safe_way_back() {
    let stage = Stage::set().await;
    let pay = |body: &Value| stage.ada.client.post(&stage.hold_path("/checkout"), body).key(&fresh_key());
    let card = "pm_card_visa";
    for token in ["", "pm card", "pm_\u{e4}", "pm\n", &"x".repeat(256)] {
        stage.faulty(pay(&json!({ "payment_method_token": token })), &["/payment_method_token"]).await;
    }
    for email in [
        "",
        "ada",
        "@",
        "ada@",
        "@example.org",
        "a da@example.org",
        "ada@exa\r\nmple.org",
        &format!("a@{}", "b".repeat(320)),
    ] {
        stage.faulty(pay(&json!({ "payment_method_token": card, "email": email })), &["/email"]).await;
    }
    for url in [
        "",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "java\tscript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "ftp://shop.example/",
        "http://shop.example/done",
        "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example/",
        "https://ada:secret@shop.example/",
        "https://shop.example@evil.example/",
        "//shop.example/done",
        "/done",
        "https://",
        "https://shop.example/\0",
        "https://shop.example/\r\nSet-Cookie:a=b",
        &format!("https://shop.example/{}", "x".repeat(2_048)),
    ] {
        stage
            .faulty(pay(&json!({ "payment_method_token": card, "return_url": url })), &["/return_url"])
            .await;
    }
    let all_wrong =
        json!({ "payment_method_token": "", "email": "ada", "return_url": "javascript:alert(1)" });
    stage.faulty(pay(&all_wrong), &["/payment_method_token", "/email", "/return_url"]).await;
    stage.finish().await;
}

/// What can't be an id is not there; nothing that a path may hold disturbs.
#[tokio::test]
async fn an_id_that_is_none_is_not_found() {
    let stage = Stage::set().await;
    let (ada, operator) = (&stage.ada.client, &stage.app.operator);
    let good = stage.hall.event_id.trim_start_matches("evt_").to_owned();
    // Not an id; an id of nothing; the right event's number with other digits; the pseudo-event of the house.
    let other = good.chars().rev().collect::<String>().replace(|c: char| !c.is_ascii_digit(), "7");
    let mut near: Vec<char> = good.chars().collect();
    *near.last_mut().expect("digits") = if good.ends_with('0') { '1' } else { '0' };
    let odd = [
        "nonsense".to_owned(),
        "evt_".to_owned(),
        "%00".to_owned(),
        "%ff%fe".to_owned(),
        "..%2f..%2fetc%2fpasswd".to_owned(),
        "'%20OR%201=1--".to_owned(),
        "9".repeat(3_000),
        format!("EVT_{good}"),
        format!("evt_{}", good.to_uppercase()),
        format!("evt_{good}%20"),
        "evt_8zzzzzzzzzzzzzzzzzzzzzzzzz".to_owned(),
        format!("evt_0{}", &other[1..]),
        format!("evt_{}", near.into_iter().collect::<String>()),
        format!("evt_{}", "0".repeat(26)),
    ];
    for id in odd {
        let path = |rest: &str| format!("/v1/events/{id}{rest}");
        let asks: Vec<Ask> = vec![
            ada.get(&path("")),
            ada.get(&path("/manifest")),
            ada.get(&path("/seats")),
            ada.get(&path("/seats?since=1")),
            ada.post(&path("/holds"), &json!({ "seats": ["A-2"] })).key(&fresh_key()),
            operator.get(&path("/report")),
            operator.put(&path("/on-sale"), &json!({ "state": "closed" })),
            operator.put(
                &path("/prices"),
                &json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": 1 }] }),
            ),
            operator.put(&path("/seats/status"), &json!({ "seats": ["A-2"], "status": "NOT_FOR_SALE" })),
            operator
                .ask(reqwest::Method::PUT, &path("/manifest"))
                .body("text/csv", "seat_id,section,row,seat,category\nB-1,B,1,1,Stalls\n"),
        ];
        for ask in asks {
            stage.refuses(ask, 404, "not-found", &[]).await;
        }
        let (hold, order) = (format!("/v1/holds/{id}"), format!("/v1/orders/{id}"));
        let card = json!({ "payment_method_token": "pm_card_visa" });
        let case = format!("/v1/reconciliation/cases/{id}/resolution");
        for ask in [
            ada.get(&hold),
            ada.delete(&hold),
            ada.post(&format!("{hold}/checkout"), &card).key(&fresh_key()),
            ada.get(&order),
            operator.delete(&format!("/v1/keys/{id}")),
            operator.post(&case, &json!({ "action": "void", "note": "x" })),
        ] {
            stage.refuses(ask, 404, "not-found", &[]).await;
        }
    }
    stage.finish().await;
}
