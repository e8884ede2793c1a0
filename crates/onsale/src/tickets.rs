//! Tickets as they are handed out: signed barcodes, QR codes and the page that is printed.

pub(crate) mod barcode;
mod base45;
pub(crate) mod page;
mod qr;

use anyhow::Context;
use onsale_core::time::Timestamp;
use onsale_store::Store;

use barcode::Signer;

/// The installation's signer. Its key is made once and kept in the main home; barcodes that are out there need it for as long as
/// the events they are for.
pub(crate) async fn signer(main: &Store, now: Timestamp) -> anyhow::Result<Signer> {
    let secret = main.secret("ticket signing", rand::random::<[u8; 32]>().to_vec(), now).await?;
    Signer::new(&secret).context("the database's key for signing tickets is not 32 bytes")
}
