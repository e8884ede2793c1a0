//! `event move` and `to-postgres`, while a server serves what moves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use crate::util::{
    App, Buyer, ProviderProcess, Said, eventually, finish, keep_in, postgres, program, put_on_its_way, run,
    text, url_of,
};

fn fresh() -> String {
    postgres().create_database().expect("a database")
}

/// Runs a command with the settings of a server.
fn with_settings(data: &Path, arguments: &[&str]) -> Said {
    let mut command = program(arguments);
    keep_in(&mut command, data);
    command.arg("--config").arg(data.join("onsale.toml"));
    finish(command.spawn().expect("the program starts"))
}

/// `event`, whose options come before its own subcommand.
fn event(data: PathBuf, arguments: &[&str]) -> Said {
    let mut command = program(&["event"]);
    keep_in(&mut command, &data);
    command.arg("--config").arg(data.join("onsale.toml")).args(arguments);
    finish(command.spawn().expect("the program starts"))
}

#[tokio::test]
async fn an_event_moves_to_another_home_while_it_is_being_sold() {
    let (main, east) = (fresh(), fresh());
    let homes =
        format!("[database]\nurl = \"{main}\"\n[[database.homes]]\nname = \"east\"\nurl = \"{east}\"\n");
    let app = App::options().config(&homes).start().await;
    let data = app.data.path().to_owned();
    let seats: Vec<String> = (0..200).map(|seat| format!("A-{seat}")).collect();
    let hall = app.hall(json!({}), &seats.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let id = hall.event_id.clone();
    let ada = app.buyer().await;
    let paid = ada.hold(&hall, &["A-0"]).await.ok(201);
    let order_id = ada.pay(&paid).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let held = ada.hold_as("the-key", &hall, &["A-1"]).await.ok(201);

    // On its way nothing is decided, and what is known of it is shown.
    let url = url_of(&data).unwrap_or(main);
    put_on_its_way(&url, true);
    eventually("it is shown as not bookable", async || {
        let shown = app.buyers.get(&format!("/v1/events/{id}")).await.ok(200);
        (shown["bookable"] == false).then_some(())
    })
    .await;
    ada.hold(&hall, &["A-2"]).await.problem(503, "authority-unavailable");
    ada.release(&held).await.problem(503, "authority-unavailable");
    let listed = app.buyers.get("/v1/events").await.ok(200);
    assert_eq!(listed["events"].as_array().map(Vec::len), Some(1), "{listed}");
    app.buyers.get(&format!("/v1/events/{id}/manifest")).await.ok(200);
    assert!(app.seat_states(&hall).await.starts_with("2100"));
    assert_eq!(ada.hold_now(&held).await["status"], "ACTIVE");
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    put_on_its_way(&url, false);

    // Whoever asks while it moves is answered truly: a seat, or that nothing was done.
    let moving = {
        let (data, id) = (data.clone(), id.clone());
        tokio::task::spawn_blocking(move || event(data, &["move", &id, "--to", "east"]))
    };
    let ben = app.buyer().await;
    let (mut taken, mut next) = (0, 2);
    while !moving.is_finished() && next < 200 {
        let reply = ben.hold(&hall, &[&format!("A-{next}")]).await;
        next += 1;
        match reply.status {
            201 => {
                taken += 1;
                // Seats go back, so that the account's limit is never met.
                ben.release(&reply.ok(201)).await;
            }
            _ => drop(reply.problem(503, "authority-unavailable")),
        }
    }
    let said = moving.await.expect("it ends").ok();
    assert!(said.contains("compared ") && said.ends_with(&format!("{id} is at home at east\n")), "{said}");
    assert!(taken > 0, "it was sold before");

    eventually("it is sold at its new home", async || {
        let reply = ada.hold(&hall, &["A-199"]).await;
        (reply.status == 201).then_some(())
    })
    .await;
    assert_eq!(ada.hold_now(&held).await["status"], "ACTIVE");
    let again = ada.hold_as("the-key", &hall, &["A-1"]).await;
    assert!(again.replayed(), "{again:?}");
    assert_eq!(text(&again.ok(201), "hold_id"), text(&held, "hold_id"));
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let second = ada.pay(&held).await;
    app.passes("payments", 2).await;
    ada.expect_order(&second, "CONFIRMED CAPTURED").await;
    let shown = event(data.clone(), &["show", &id]).ok();
    assert!(shown.contains("\"home\": \"east\""), "{shown}");
    assert!(event(data.clone(), &["fence", &id]).ok().contains("is in epoch "));

    event(data.clone(), &["move", &id, "--cancel"]).refused("nothing is under way that could be undone");
    event(data.clone(), &["move", &id, "--to", "north"]).refused("no home is called north");
    event(data.clone(), &["move", &id]).refused("--to");
    assert!(event(data.clone(), &["move", &id, "--to", "main"]).ok().ends_with("is at home at main\n"));
    assert!(with_settings(&data, &["audit"]).ok().ends_with(" invariants hold\n"));
    app.finish().await;
}

#[tokio::test]
async fn an_installation_moves_from_its_file_to_a_server() {
    let provider = ProviderProcess::start();
    let app = App::options().provider(&provider).start().await;
    let data = Arc::clone(&app.data);
    let folder = data.path().display().to_string();
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let ada = app.buyer().await;
    let order_id = ada.pay(&ada.hold(&hall, &["A-1"]).await.ok(201)).await;
    app.passes("payments", 2).await;
    let held = ada.hold_as("the-key", &hall, &["A-2"]).await.ok(201);
    let token = ada.client.clone();

    let url = fresh();
    run(&["to-postgres", "--data", &folder]).refused("say where to");
    run(&["to-postgres", "--data", &folder, "--database-url", &url, "--cancel"])
        .refused("nothing is under way");
    let said = run(&["to-postgres", "--data", &folder, "--database-url", &url]).ok();
    assert!(said.contains("copied seats: 3 rows") && said.ends_with("is not served any more\n"), "{said}");
    // The server that still has the file open decides nothing more.
    ada.hold(&hall, &["A-3"]).await.problem(503, "authority-unavailable");
    drop(app.kill());

    let again = program(&["serve", "--data", &folder, "--listen", "127.0.0.1:0"]).spawn();
    finish(again.expect("the program starts")).refused("has moved to the home main");
    run(&["event", "--data", &folder, "list"]).refused("has moved to the home main");

    // The same sessions and keys, the same answers.
    let app = App::options().provider(&provider).data(data).env("ONSALE_DATABASE_URL", &url).start().await;
    let ada = Buyer { client: token.at(&app.buyers.base), account_id: ada.account_id };
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let again = ada.hold_as("the-key", &hall, &["A-2"]).await;
    assert!(again.replayed(), "{again:?}");
    assert_eq!(text(&again.ok(201), "hold_id"), text(&held, "hold_id"));
    ada.hold(&hall, &["A-3"]).await.ok(201);
    let cancel = ["to-postgres", "--data", &folder, "--database-url", &url, "--cancel"];
    run(&cancel).refused("main serves already: it can't be undone");
    app.finish().await;
}
