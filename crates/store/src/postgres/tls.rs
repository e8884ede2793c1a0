//! How a connection to a server comes about: in the clear, or through TLS with a server whose certificate can be checked.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::StoreError;

/// Connects. With `sslmode=require` the certificate must be one that this machine trusts; a mode that would take any certificate,
/// or go on without, protects from nobody who could be there, so without `require` there is no TLS.
pub(super) async fn connect(
    config: &Config,
    heard: impl Fn(AsyncMessage) + Send + 'static,
) -> Result<Client, StoreError> {
    let mut config = config.clone();
    if config.get_ssl_mode() == SslMode::Require {
        let (client, connection) = config.connect(trusting()?).await?;
        drive(connection, heard);
        Ok(client)
    } else {
        config.ssl_mode(SslMode::Disable);
        let (client, connection) = config.connect(NoTls).await?;
        drive(connection, heard);
        Ok(client)
    }
}

/// Reads and writes for a connection until it ends, or until the runtime is dropped.
fn drive<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    mut connection: Connection<Socket, S>,
    heard: impl Fn(AsyncMessage) + Send + 'static,
) {
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            heard(message);
        }
    });
}

/// Trusts what this machine trusts.
fn trusting() -> Result<MakeRustlsConnect, StoreError> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| StoreError::Io(std::io::Error::other(error)))?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}
