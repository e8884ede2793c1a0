//! A line to a server that can be cut: nothing is refused, and nothing comes through.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// The socket's name in a server's folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// A socket that leads to another.
pub(super) struct Line {
    folder: TempDir,
    server: PathBuf,
    is_cut: watch::Sender<bool>,
}

impl Line {
    /// To the server in a folder.
    pub(super) fn to(server: &Path) -> Line {
        let folder = TempDir::new().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(SOCKET)).expect("a socket");
        let (is_cut, cut) = watch::channel(false);
        let target = server.join(SOCKET);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (target, cut) = (target.clone(), cut.clone());
                tokio::spawn(async move {
                    let Ok(far) = UnixStream::connect(target).await else {
                        return;
                    };
                    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                    // Where one end is closed, so is the other.
                    tokio::select! {
                        () = carry(near_in, far_out, cut.clone()) => {}
                        () = carry(far_in, near_out, cut) => {}
                    }
                });
            }
        });
        Line { folder, server: server.to_owned(), is_cut }
    }

    /// The URL of a database, over this line.
    pub(super) fn url(&self, url: &str) -> String {
        let encoded = |path: &Path| path.display().to_string().replace('/', "%2F");
        let replaced = url.replace(&encoded(&self.server), &encoded(self.folder.path()));
        assert_ne!(replaced, url, "the line leads elsewhere");
        replaced
    }

    pub(super) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub(super) fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}

/// Carries bytes one way, while the line isn't cut. What is on its way when it is cut arrives when it is mended.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut cut: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if cut.wait_for(|cut| !cut).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
