//! Seats from files: pretix plans, our own JSON, our CSV, and made-up stadiums; over HTTP and from the command line.
//!
//! A synthetic plan with repeated seat ids is always here. Where `ONSALE_PRETIX_PLAN` names a pretix seating plan, or
//! one lies in `shared/data/pretix-theatre-plan.json` beside the workspace, the same is asked of that real theatre too.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::util::{App, Ask, Hall, run, text};

/// A pretix plan of two zones or more that number their seats alike.
struct Plan {
    json: String,
    seats: usize,
    /// Each seat whose id stood before: its pointer and its id.
    repeated: Vec<(String, String)>,
}

impl Plan {
    fn of(json: String) -> Plan {
        let plan: Value = serde_json::from_str(&json).expect("a plan is JSON");
        let list = |value: &Value, member: &str| value[member].as_array().cloned().unwrap_or_default();
        let (mut known, mut repeated, mut seats) = (HashSet::new(), Vec::new(), 0);
        for (z, zone) in list(&plan, "zones").iter().enumerate() {
            for (r, row) in list(zone, "rows").iter().enumerate() {
                for (s, seat) in list(row, "seats").iter().enumerate() {
                    seats += 1;
                    let id = text(seat, "seat_guid").to_owned();
                    if !known.insert(id.clone()) {
                        repeated.push((format!("/zones/{z}/rows/{r}/seats/{s}/seat_guid"), id));
                    }
                }
            }
        }
        Plan { json, seats, repeated }
    }

    /// Stalls of 5 rows and a balcony of 3, with 12 seats a row, all numbered from 1-1.
    fn synthetic() -> Plan {
        let zone = |name: &str, rows: i32, top: i32| {
            let rows = (1..=rows).map(|row| {
                let seats = (1..=12).map(|seat| {
                    json!({
                        "seat_guid": format!("{row}-{seat}"), "seat_number": seat.to_string(), "category": name,
                        "position": { "x": 30 * seat, "y": 0 },
                    })
                });
                let position = json!({ "x": 0, "y": 40 * row });
                json!({ "row_number": row.to_string(), "position": position, "seats": seats.collect::<Vec<_>>() })
            });
            let position = json!({ "x": 0, "y": top });
            json!({ "name": name, "position": position, "rows": rows.collect::<Vec<_>>() })
        };
        let plan = json!({
            "name": "A small theatre",
            "size": { "width": 500, "height": 500 },
            "categories": [{ "name": "Stalls", "color": "#7f4a91" }, { "name": "Balcony", "color": "#d36060" }],
            "zones": [zone("Stalls", 5, 0), zone("Balcony", 3, 300)],
        });
        let plan = Plan::of(plan.to_string());
        assert_eq!((plan.seats, plan.repeated.len()), (96, 36));
        plan
    }

    /// The real theatre, where there is one; one that was named must be there.
    fn real() -> Option<Plan> {
        let named = std::env::var_os("ONSALE_PRETIX_PLAN").map(PathBuf::from);
        let beside = || {
            let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
            let path = workspace.parent()?.join("shared/data/pretix-theatre-plan.json");
            path.exists().then_some(path)
        };
        let path = named.or_else(beside)?;
        let plan =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let plan = Plan::of(plan);
        assert_eq!((plan.seats, plan.repeated.len()), (1_057, 84), "{}", path.display());
        Some(plan)
    }

    fn all() -> impl Iterator<Item = Plan> {
        [Some(Plan::synthetic()), Plan::real()].into_iter().flatten()
    }
}

/// A new event without seats; its path.
async fn draft(app: &App) -> String {
    let new = json!({ "name": "An evening", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" });
    format!("/v1/events/{}", text(&app.operator.post("/v1/events", &new).await.ok(201), "event_id"))
}

fn put(app: &App, event: &str, query: &str, kind: &str, body: impl Into<reqwest::Body>) -> Ask {
    app.operator.ask(Method::PUT, &format!("{event}/manifest{query}")).body(kind, body)
}

/// Each fault's place (a pointer or a line) and what is said of it.
fn faults(problem: &Value) -> Vec<(String, String)> {
    let errors = problem["errors"].as_array().expect("errors");
    let place = |fault: &Value| match fault["line"].as_u64() {
        Some(line) => line.to_string(),
        None => text(fault, "pointer").to_owned(),
    };
    errors.iter().map(|fault| (place(fault), text(fault, "detail").to_owned())).collect()
}

/// Plans with the same id twice were taken until pretix/pretix#4564.
#[tokio::test]
async fn a_plan_with_repeated_ids_is_refused_with_each_of_them_and_taken_with_zones_in_front() {
    let app = App::start().await;
    for plan in Plan::all() {
        let event = draft(&app).await;
        let before = app.buyers.get(&event).await.ok(200);
        let problem = put(&app, &event, "", "application/json", plan.json.clone()).await;
        let found = faults(&problem.problem(422, "validation-failed"));
        assert_eq!(found.len(), plan.repeated.len());
        for ((place, detail), (pointer, id)) in found.iter().zip(&plan.repeated) {
            assert!(place == pointer && detail.contains(&format!("{id:?}")), "{place}: {detail}");
        }
        assert_eq!(app.buyers.get(&event).await.ok(200), before, "nothing was changed");
        app.buyers.get(&format!("{event}/manifest")).await.problem(404, "not-found");

        let taken =
            put(&app, &event, "?prefix_zones=true", "application/json", plan.json.clone()).await.ok(200);
        assert_eq!((&taken["seats"], &taken["version"]), (&json!(plan.seats), &json!(1)), "{taken}");
        let manifest = app.buyers.get(&format!("{event}/manifest")).await.ok(200);
        let seats = manifest["seats"].as_array().expect("seats");
        let ids: HashSet<&str> = seats.iter().map(|seat| text(seat, "seat_id")).collect();
        assert_eq!((seats.len(), ids.len()), (plan.seats, plan.seats));
        assert!(seats.iter().all(|seat| text(seat, "seat_id").starts_with(text(seat, "section"))));
        let states = app.buyers.get(&format!("{event}/seats")).await.ok(200);
        assert_eq!(text(&states, "states"), "0".repeat(plan.seats));
        // A plan may be put again until the sale opens.
        let again = put(&app, &event, "?prefix_zones=true", "application/json", plan.json).await.ok(200);
        assert_eq!(again["version"], 2);
    }
    app.finish().await;
}

#[tokio::test]
async fn a_plan_is_checked_and_imported_from_the_command_line_too() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data").display().to_string();
    let file = folder.path().join("plan.json").display().to_string();
    for plan in Plan::all() {
        std::fs::write(&file, &plan.json).expect("a file");
        let refused = run(&["import", "--check", &file]);
        refused.refused(&format!("has {} faults; nothing was changed", plan.repeated.len()));
        let lines: Vec<&str> = refused.stderr.lines().collect();
        assert_eq!(lines.len(), plan.repeated.len() + 1);
        for (line, (pointer, id)) in lines.iter().zip(&plan.repeated) {
            assert!(line.starts_with(&format!("{pointer}: ")) && line.contains(&format!("{id:?}")), "{line}");
        }
        let checked = run(&["import", "--check", "--prefix-zones", &file]).ok();
        assert!(checked.contains(&format!("is good: {} seats", plan.seats)), "{checked}");

        let new = ["--name", "x", "--currency", "EUR", "--starts-at", "2030-05-01T19:30:00Z"];
        let event = run(&[&["event", "--data", &data, "create"], &new[..]].concat()).ok();
        let event = event.trim();
        run(&["import", "--data", &data, "--event", event, &file]).refused("nothing was changed");
        let imported = run(&["import", "--data", &data, "--event", event, "--prefix-zones", &file]).ok();
        assert!(imported.contains(&format!("{} seats", plan.seats)), "{imported}");
        let shown = run(&["event", "--data", &data, "show", event]).ok();
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!((&shown["seats"], &shown["manifest_version"]), (&json!(plan.seats), &json!(1)));
    }
    run(&["audit", "--data", &data]).ok();
}

#[tokio::test]
async fn our_own_json_is_taken_whole_or_with_every_fault() {
    let app = App::start().await;
    let event = draft(&app).await;
    let seat = |id: &str, more: Value| {
        let mut seat = json!({ "seat_id": id, "seat": id, "price_level": "Stalls" });
        more.as_object().into_iter().flatten().for_each(|(member, value)| seat[member] = value.clone());
        seat
    };
    let plan = |seats: Vec<Value>| {
        let rows = json!([{ "row": "1", "seats": seats }]);
        json!({ "price_levels": [{ "name": "Stalls" }], "sections": [{ "name": "A", "rows": rows }] })
            .to_string()
    };
    let seats = "/sections/0/rows/0/seats";
    let faulty = plan(vec![
        seat("007", json!({})),
        seat("007", json!({})),
        seat("A-2", json!({ "price_level": "Balcony" })),
        seat("A-3", json!({ "x": "left", "y": 1 })),
        seat("A-4", json!({ "companion_of": "Z-9" })),
        seat("", json!({ "wheelchair": true })),
    ]);
    let found: HashSet<String> =
        faults(&put(&app, &event, "", "application/json", faulty).await.problem(422, "validation-failed"))
            .into_iter()
            .map(|(place, _)| place)
            .collect();
    for place in [
        format!("{seats}/1/seat_id"),
        format!("{seats}/2/price_level"),
        format!("{seats}/3/x"),
        format!("{seats}/4/companion_of"),
        format!("{seats}/5/seat_id"),
        format!("{seats}/5/wheelchair"),
    ] {
        assert!(found.contains(&place), "{place} is not in {found:?}");
    }
    assert_eq!(found.len(), 6, "{found:?}");
    for (body, place) in [
        ("", ""),
        ("{", ""),
        ("[]", ""),
        ("{}", ""),
        ("{\"sections\":7}", "/sections"),
        ("{\"sections\":[],\"sections\":[]}", "/sections"),
        ("{\"sections\":[],\"zone\":1}", "/zone"),
    ] {
        let problem = put(&app, &event, "", "application/json", body).await.problem(422, "validation-failed");
        assert!(faults(&problem).iter().any(|(at, _)| at == place), "{body}: {problem}");
    }
    assert_eq!(app.buyers.get(&event).await.ok(200)["manifest_version"], 0);

    let good = plan(vec![
        seat("007", json!({ "accessible": true })),
        seat("7", json!({ "companion_of": "007" })),
        seat(" 7", json!({ "not_for_sale": true, "restricted_view": true })),
    ]);
    let taken = put(&app, &event, "", "application/json; charset=utf-8", good).await.ok(200);
    assert_eq!((&taken["seats"], &taken["price_levels"]), (&json!(3), &json!(["Stalls"])), "{taken}");
    let manifest = app.buyers.get(&format!("{event}/manifest")).await.ok(200);
    let ids: Vec<&str> =
        manifest["seats"].as_array().expect("seats").iter().map(|seat| text(seat, "seat_id")).collect();
    assert_eq!(ids, ["007", "7", " 7"], "ids stay byte for byte");
    assert_eq!(app.buyers.get(&format!("{event}/seats")).await.ok(200)["states"], "003");
    app.finish().await;
}

#[tokio::test]
async fn a_csv_is_taken_whole_or_with_the_line_of_every_fault() {
    let app = App::start().await;
    let event = draft(&app).await;
    let faulty = "seat_id,section,row,seat,category,x,y\nA-1,A,1,1,Stalls,0,0\nA-1,A,1,2,Stalls,1,0\nA-3,A,1,3\n\
                  A-4,A,1,4,,2,0\nA-5,A,1,5,Stalls,left,0\n,A,1,6,Stalls,3,0\n";
    let problem = put(&app, &event, "", "text/csv", faulty).await.problem(422, "validation-failed");
    let lines: Vec<String> = faults(&problem).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, ["3", "4", "5", "6", "7"], "{problem}");
    for (body, line) in [("", "1"), ("seat_id,section\n", "1"), ("a,b,c\n1,2,3\n", "1")] {
        let problem = put(&app, &event, "", "text/csv", body).await.problem(422, "validation-failed");
        assert!(faults(&problem).iter().all(|(at, _)| at == line), "{body}: {problem}");
    }
    let latin = b"seat_id,section,row,seat,category\nA-1,Parkett f\xfcr alle,1,1,Stalls\n".to_vec();
    let problem = put(&app, &event, "", "text/csv", latin).await.problem(422, "validation-failed");
    assert_eq!(faults(&problem)[0].0, "2");
    assert_eq!(app.buyers.get(&event).await.ok(200)["manifest_version"], 0);

    // A range of seats in a line, a byte order mark, line ends of another system.
    let good = "\u{feff}section,row,seat_from,seat_to,category\r\nA,1,1,20,Stalls\r\nA,2,1,20,Circle\r\n";
    let taken = put(&app, &event, "", "text/csv; charset=utf-8", good).await.ok(200);
    assert_eq!(
        (&taken["seats"], &taken["price_levels"]),
        (&json!(40), &json!(["Stalls", "Circle"])),
        "{taken}"
    );
    let large = " ".repeat(32 * 1024 * 1024 + 1);
    put(&app, &event, "", "text/csv", large).await.problem(413, "payload-too-large");
    assert_eq!(app.buyers.get(&event).await.ok(200)["manifest_version"], 1);
    app.finish().await;
}

#[tokio::test]
async fn a_bowl_is_the_same_for_the_same_seed_and_can_be_sold() {
    let bowl = |seed: &str| run(&["bowl", "--seats", "3000", "--seed", seed]).ok();
    let plan = bowl("7");
    assert!(plan == bowl("7"), "the same seed makes the same bytes");
    assert!(plan != bowl("8"), "another seed makes another bowl");
    for wrong in ["0", "many", "1200001"] {
        run(&["bowl", "--seats", wrong]).refused("--seats");
    }
    let app = App::start().await;
    let event = draft(&app).await;
    let taken = put(&app, &event, "", "application/json", plan.clone()).await.ok(200);
    assert_eq!(taken["seats"], 3_000);
    let event_id = event.rsplit('/').next().expect("an id");
    let file = app.data.path().join("bowl.json").display().to_string();
    std::fs::write(&file, plan).expect("a file");
    let data = app.data.path().display().to_string();
    let imported = run(&["import", "--data", &data, "--event", event_id, &file]).ok();
    assert!(imported.contains("3000 seats") && imported.contains("version 2"), "{imported}");
    let levels = taken["price_levels"].as_array().expect("levels");
    let prices: Vec<Value> =
        levels.iter().map(|level| json!({ "price_level": level, "amount_minor": 1_000 })).collect();
    app.operator.put(&format!("{event}/prices"), &json!({ "price_levels": prices })).await.ok(200);
    app.operator.put(&format!("{event}/on-sale"), &json!({ "state": "open" })).await.ok(200);
    let manifest = app.buyers.get(&format!("{event}/manifest")).await.ok(200);
    let last = text(&manifest["seats"][2_999], "seat_id");
    let hall = Hall { event_id: event_id.to_owned() };
    app.buyer().await.hold(&hall, &[last]).await.ok(201);
    app.finish().await;
}
