//! `reconcile` and `case`: the provider's books beside these, and what a person does about what differs, served or not.

use serde_json::{Value, json};

use crate::util::{App, ProviderProcess, text};

use super::at;

#[tokio::test]
async fn differences_are_found_shown_and_resolved_on_the_database_itself() {
    let provider = ProviderProcess::start();
    let app = App::options().provider(&provider).start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let order_id = ada.pay(&ada.hold(&hall, &["A-1"]).await.ok(201)).await;
    app.passes("payments", 2).await;
    let data = app.data.clone();
    let config = data.path().join("onsale.toml").display().to_string();
    let reconcile = |since: &str| at(data.path(), &["reconcile", "--since", since, "--config", &config]);
    let said = reconcile("2h").ok();
    assert!(said.starts_with("1 payments: 1 agree, 0 were brought in, 0 differ (0 cases are new"), "{said}");
    let intent = app.provider.intent_of(&order_id).await;
    let form = format!("payment_intent={intent}&amount=700");
    let ask = app.provider.client.ask(reqwest::Method::POST, "/v1/refunds");
    ask.body("application/x-www-form-urlencoded", form).await.ok(200);

    let said = reconcile("90m");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stdout.contains("1 differ (1 cases are new"), "{said:?}");
    assert!(said.stdout.contains("`onsale case list`"), "{said:?}");
    let case = app.open_case("refund_mismatch").await;
    let case_id = text(&case, "case_id");
    app.stop();

    // Nobody serves now.
    let said = reconcile("1d");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stdout.contains("1 differ (0 cases are new"), "{said:?}");
    let listed = at(data.path(), &["case", "list"]).ok();
    for word in [case_id, "refund_mismatch", "OPEN", &order_id, "1 cases"] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    let shown: Value = serde_json::from_str(&at(data.path(), &["case", "show", case_id]).ok()).expect("JSON");
    assert_eq!((&shown["order_id"], &shown["status"]), (&json!(order_id), &json!("OPEN")));
    let resolve = |words: &[&str]| at(data.path(), &[&["case", "resolve", case_id], words].concat());
    resolve(&["--action", "refund", "--note", "x"]).refused("refund the order instead");
    resolve(&["--action", "dismiss", "--note", " "]).refused("--note must say why");
    let shown = resolve(&["--action", "dismiss", "--note", "agreed by telephone"]).ok();
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((&shown["status"], &shown["resolution"]["actor"]), (&json!("CLOSED"), &json!("command line")));
    assert!(at(data.path(), &["case", "list"]).ok().ends_with("0 cases\n"));
    let all: Value =
        serde_json::from_str(&at(data.path(), &["case", "list", "--all", "--json"]).ok()).expect("JSON");
    assert_eq!(all[0]["case_id"], json!(case_id));
    resolve(&["--action", "dismiss", "--note", "again"]).refused("closed");
    let said = reconcile("1d").ok();
    assert!(
        said.contains("0 differ") && said.contains("1 differ as somebody has already dismissed"),
        "{said}"
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let id = format!("cas_{}", "0".repeat(26));
    let cases: &[(&[&str], &str)] = &[
        (&["reconcile", "--since", "soon"], "must be a time of the past"),
        (&["reconcile", "--since", "-1h"], "unexpected argument"),
        (&["reconcile", "--since", "0h"], "must be a time of the past"),
        (&["reconcile", "--since", "99999999999999999999d"], "must be a time of the past"),
        (&["reconcile", "--since", "2999-01-01T00:00:00Z"], "must be a time of the past"),
        (&["reconcile"], "no payment provider is configured"),
        (&["case", "resolve", &id, "--action", "burn", "--note", "x"], "possible values"),
        (&["case", "resolve", &id, "--action", "dismiss"], "--note"),
        (&["case", "show", "cas_1"], "invalid value"),
        (&["case", "show", &id], "there is no case"),
        (&["case", "resolve", &id, "--action", "dismiss", "--note", "x"], "refused"),
    ];
    for (arguments, why) in cases {
        at(folder.path(), arguments).refused(why);
    }
}
