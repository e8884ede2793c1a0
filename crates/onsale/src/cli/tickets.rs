//! `onsale ticket-key` and `onsale verify-ticket`: what a gate without a line to the server needs.

use std::process::ExitCode;

use onsale_store::Clock;

use crate::tickets::barcode::PublicKey;
use crate::tickets::signer;

use super::offline::Offline;
use super::serve::runtime;
use super::{DataArgs, say};

#[derive(clap::Args)]
pub(crate) struct TicketKeyArgs {
    #[command(flatten)]
    data: DataArgs,
}

#[derive(clap::Args)]
pub(crate) struct VerifyTicketArgs {
    /// The key, as `onsale ticket-key` prints it
    #[arg(long, value_parser = public_key)]
    public_key: PublicKey,
    /// The barcode's text, as a scanner reads it
    #[arg(allow_hyphen_values = true)]
    barcode: String,
}

fn public_key(text: &str) -> Result<PublicKey, &'static str> {
    PublicKey::parse(text).ok_or("an Ed25519 public key is 32 bytes in base 64")
}

/// Prints the public key alone; makes the pair if the installation has none yet.
pub(crate) fn key(args: TicketKeyArgs) -> anyhow::Result<()> {
    let offline = Offline::open(args.data)?;
    let main = offline.homes.main();
    let signer = runtime()?.block_on(signer(main, offline.clock.now()))?;
    say(signer.public())?;
    Ok(())
}

/// Says which ticket a barcode is of. Whether that is still good, only the server or its list of revoked tickets knows.
pub(crate) fn verify(args: VerifyTicketArgs) -> anyhow::Result<ExitCode> {
    match args.public_key.read(&args.barcode) {
        Ok(barcode) => {
            say(format_args!("{} generation {}", barcode.ticket, barcode.generation))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            eprintln!("onsale: {why}");
            Ok(ExitCode::FAILURE)
        }
    }
}
