//! `ticket-key` and `verify-ticket`: what a gate knows of tickets without a line to the server.

use serde_json::json;
use tempfile::TempDir;

use crate::util::{App, run, text};

use super::at;

/// Made by another implementation, from the secret of 32 times 7.
const PUBLIC: &str = "6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=";
const BARCODE: &str = "ONSALE:FB0%EGJC29OIH%MJ2RW10L60$Y88IHA-PHK0K-BMANAWEKCE41NNUB94P%6P+XU/K29V6VSOCMCETF5SPQLQKMM/YFLN3PHS7E4 33$J9 +E1*5FD35-3 FJ.1R0NB.BMF0";

#[test]
fn a_ticket_is_verified_with_the_public_key_alone() {
    let verify = |barcode: &str| run(&["verify-ticket", "--public-key", PUBLIC, barcode]);
    assert_eq!(verify(BARCODE).ok(), "tkt_01jahv9hep0004t0938nkrkayd generation 3\n");
    let altered = BARCODE.replace("$Y88", "$Y89");
    for (text, words) in [
        (altered.as_str(), "signature is wrong"),
        (&BARCODE.to_lowercase(), "no barcode"),
        (&BARCODE[..BARCODE.len() - 1], "no barcode"),
        (&format!("{BARCODE} "), "no barcode"),
        ("", "no barcode"),
        ("-7", "no barcode"),
    ] {
        verify(text).refused(words);
    }
    let folder = TempDir::new().expect("a folder");
    let other = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";
    at(folder.path(), &["verify-ticket", "--public-key", other, BARCODE]).refused("another key");
    assert!(std::fs::read_dir(folder.path()).expect("the folder").next().is_none(), "it needs no database");
}

#[tokio::test]
async fn an_installation_keeps_its_key() {
    let app = App::start().await;
    let keys = app.operator.get("/v1/gate/keys").await.ok(200);
    let key = &keys["keys"][0];
    assert_eq!((keys["keys"].as_array().map(Vec::len), &key["algorithm"]), (Some(1), &json!("Ed25519")));
    let printed = at(app.data.path(), &["ticket-key"]).ok();
    assert_eq!(printed.trim_end(), text(key, "public_key"), "while it is served");
    let data = app.stop();
    assert_eq!(at(data.path(), &["ticket-key"]).ok(), printed, "while it is not");
}
