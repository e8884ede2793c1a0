//! `audit` and `backup`: the books are looked through and copied, at rest and in the middle of a sale.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::util::{App, DAMAGES, Hall, damage, database, eventually};

use super::at;

/// A folder whose database is a copy of another's.
fn copy(data: &Path) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let to = database(folder.path()).display().to_string();
    assert_eq!(at(data, &["backup", &to]).ok(), format!("copied to {to}\n"));
    folder
}

#[tokio::test]
async fn an_audit_names_what_is_broken() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let ada = app.buyer().await;
    let order_id = ada.pay(&ada.hold(&hall, &["A-1"]).await.ok(201)).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    ada.hold(&hall, &["A-2"]).await.ok(201);

    let data = app.data.path();
    let clean = at(data, &["audit"]).ok();
    assert!(clean.starts_with("audit: ") && clean.ends_with(" invariants hold\n"), "{clean}");
    let audit: Value = serde_json::from_str(&at(data, &["audit", "--json"]).ok()).expect("JSON");
    assert_eq!(audit["violations"], 0);
    assert!(audit["checks"].as_array().expect("checks").len() > 15);

    for (invariant, statements) in DAMAGES {
        let broken = copy(data);
        damage(broken.path(), statements);
        let said = at(broken.path(), &["audit"]);
        assert_eq!(said.code, Some(1), "{invariant}: {said:?}");
        assert!(said.stdout.contains(&format!(" {invariant} ")), "{invariant}: {}", said.stdout);
        assert!(said.stdout.trim_end().ends_with(" violations") && said.stderr.is_empty(), "{said:?}");
        let said = at(broken.path(), &["audit", "--json"]);
        assert_eq!(said.code, Some(1));
        let audit: Value = serde_json::from_str(&said.stdout).expect("JSON");
        let checks = audit["checks"].as_array().expect("checks");
        let check = checks.iter().find(|check| check["id"] == *invariant).expect("the check");
        assert!(check["violations"].as_u64() >= Some(1) && !check["rows"][0].is_null(), "{check}");
    }
    let folder = TempDir::new().expect("a folder");
    at(&folder.path().join("nowhere"), &["audit"]).refused("failed to open the database");
    std::fs::write(database(folder.path()), "no database at all, but a text").expect("a file");
    at(folder.path(), &["audit"]).refused("file is not a database");
    app.finish().await;
    assert!(!folder.path().join("nowhere").exists(), "a look makes no database");
}

/// Copies made in the middle of a sale are whole: each is a moment of the books.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_running_sale_is_a_moment_of_it() {
    let app = App::options().workers().start().await;
    let names: Vec<String> = (0..120).map(|seat| format!("A-{seat}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hall = app.hall(json!({ "tickets_per_account_max": 1_000 }), &names).await;
    let sold = AtomicUsize::new(0);
    let buy = |seats| buy_all(&app, &hall, seats, &sold);
    let crowd = async {
        let [a, b, c, d, e, f] = names.as_chunks::<20>().0 else { panic!("six parts") };
        tokio::join!(buy(a), buy(b), buy(c), buy(d), buy(e), buy(f));
    };
    let copies = async {
        let mut copies = Vec::new();
        for wanted in [10, 40, 80] {
            eventually("some are sold", || async { (sold.load(Ordering::SeqCst) >= wanted).then_some(()) })
                .await;
            let data = app.data.path().to_owned();
            copies.push(tokio::task::spawn_blocking(move || copy(&data)).await.expect("a copy"));
        }
        copies
    };
    let ((), copies): ((), Vec<TempDir>) = tokio::join!(crowd, copies);
    for copy in &copies {
        assert!(at(copy.path(), &["audit"]).ok().contains("invariants hold"));
        let files: Vec<_> = std::fs::read_dir(copy.path()).expect("a folder").collect();
        assert_eq!(files.len(), 1, "a copy is one file: {files:?}");
        let shown: Value =
            serde_json::from_str(&at(copy.path(), &["event", "show", &hall.event_id]).ok()).expect("JSON");
        assert_eq!(shown["seats"], 120);
    }
    // No file is overwritten, whatever it is.
    let to = database(copies[0].path());
    let before = std::fs::read(&to).expect("the copy");
    at(app.data.path(), &["backup", &to.display().to_string()]).refused("exists already");
    assert!(std::fs::read(&to).expect("the copy") == before);
    at(app.data.path(), &["backup", "/nowhere/copy.db"]).refused("failed");
    let nothing = TempDir::new().expect("a folder");
    let to = nothing.path().join("copy.db");
    at(nothing.path(), &["backup", &to.display().to_string()]).refused("failed to open the database");
    assert!(!to.exists(), "a copy of nothing is no file");
    app.finish().await;
}

/// Buys seats one after another, and waits for each to be paid.
async fn buy_all(app: &App, hall: &Hall, seats: &[&str], sold: &AtomicUsize) {
    let buyer = app.buyer().await;
    for seat in seats {
        let order_id = buyer.pay(&buyer.hold(hall, &[seat]).await.ok(201)).await;
        buyer.await_order(&order_id, "CONFIRMED CAPTURED").await;
        sold.fetch_add(1, Ordering::SeqCst);
    }
}
