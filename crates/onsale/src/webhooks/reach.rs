//! Whom messages may go to. An endpoint's address comes from outside: it must not lead to what only this machine or its network
//! can reach. The address is looked at when the name is resolved for a connection, and the connection goes to what was looked
//! at: a name that means something else a moment later gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::URL_BYTES_MAX;

/// How far messages may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// To public addresses, over TLS.
    Public,
    /// To this machine too, and there without TLS: in test mode, which nobody else reaches.
    Loopback,
    /// To the networks around, too, and without TLS: where an operator says so.
    Private,
}

/// Why a target isn't one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreachable {
    #[error("must be a URL with a host, of at most {URL_BYTES_MAX} bytes")]
    NotAUrl,
    #[error("must begin with https://")]
    Plain,
    #[error("must not have a user, a password or a fragment")]
    Decorated,
    #[error("must not lead to {0}, which is not a public address")]
    Address(IpAddr),
    #[error("must not lead to this machine")]
    Localhost,
    #[error("could not be resolved")]
    Unresolved,
}

/// Addresses at which machines of clouds are told secrets, beside those that no setting allows anyway.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Where an address is, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Public,
    Loopback,
    /// Of a network of one's own.
    Private,
    /// Nobody's to connect to, or a way around: link-local, multicast, reserved, embedding another address.
    Never,
}

fn place(address: IpAddr) -> Place {
    match address {
        _ if METADATA.contains(&address) => Place::Never,
        IpAddr::V4(v4) => place_v4(v4),
        IpAddr::V6(v6) => place_v6(v6),
    }
}

fn place_v4(address: Ipv4Addr) -> Place {
    match address.octets() {
        [127, ..] => Place::Loopback,
        [10, ..] | [192, 168, ..] => Place::Private,
        [172, b, ..] if b & 0xf0 == 16 => Place::Private,
        // Shared by a carrier and its customers.
        [100, b, ..] if b & 0xc0 == 64 => Place::Private,
        [0, ..] | [169, 254, ..] | [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => Place::Never,
        [198, 51, 100, _] | [203, 0, 113, _] => Place::Never,
        // Multicast, reserved, broadcast.
        [a, ..] if a >= 224 => Place::Never,
        _ => Place::Public,
    }
}

fn place_v6(address: Ipv6Addr) -> Place {
    if let Some(mapped) = address.to_ipv4_mapped() {
        // Such an address is the other one, in another spelling; nobody needs it.
        return if place_v4(mapped) == Place::Loopback { Place::Loopback } else { Place::Never };
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Place::Loopback,
        // Unique local.
        [a, ..] if a & 0xfe00 == 0xfc00 => Place::Private,
        // Tunnels have other addresses in them; the others are for documents and protocols.
        [0x2001, b, ..] if b < 0x200 || b == 0xdb8 => Place::Never,
        [0x2002, ..] => Place::Never,
        [0x3fff, b, ..] if b < 0x1000 => Place::Never,
        [a, ..] if a & 0xe000 == 0x2000 => Place::Public,
        _ => Place::Never,
    }
}

impl Reach {
    fn has(self, address: IpAddr) -> bool {
        match place(address) {
            Place::Public => true,
            Place::Loopback => self != Reach::Public,
            Place::Private => self == Reach::Private,
            Place::Never => false,
        }
    }

    /// Checks what can be seen of a target without asking anyone: its form, and an address that is written out.
    pub(crate) fn check(self, text: &str) -> Result<Url, Unreachable> {
        // What is kept is the text, of which a URL forgives much.
        let is_plain = !text.chars().any(|c| c.is_control() || c.is_whitespace());
        let url = (is_plain && text.len() <= URL_BYTES_MAX).then(|| Url::parse(text).ok()).flatten();
        let url = url.filter(|url| url.port() != Some(0)).ok_or(Unreachable::NotAUrl)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(Unreachable::NotAUrl)?;
        if !matches!(url.scheme(), "http" | "https") || (url.scheme() == "http" && self == Reach::Public) {
            return Err(Unreachable::Plain);
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(Unreachable::Decorated);
        }
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let written = host.parse::<IpAddr>();
        match written {
            Ok(address) if !self.has(address) => return Err(Unreachable::Address(address)),
            Ok(_) => {}
            Err(_) => {
                let name = host.trim_end_matches('.');
                let is_local = name == "localhost" || name.ends_with(".localhost");
                if is_local && self == Reach::Public {
                    return Err(Unreachable::Localhost);
                }
                // Where the networks around are not allowed, a name without TLS can only mean this machine.
                if url.scheme() == "http" && self == Reach::Loopback && !is_local {
                    return Err(Unreachable::Plain);
                }
            }
        }
        if url.scheme() == "http"
            && self == Reach::Loopback
            && written.is_ok_and(|a| place(a) != Place::Loopback)
        {
            return Err(Unreachable::Plain);
        }
        Ok(url)
    }

    /// The addresses of a name, if messages may go to each of them. One that leads to both sides is up to something.
    fn addresses(self, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, Unreachable> {
        let found: Vec<SocketAddr> = found.collect();
        match found.iter().find(|address| !self.has(address.ip())) {
            Some(address) => Err(Unreachable::Address(address.ip())),
            None if found.is_empty() => Err(Unreachable::Unresolved),
            None => Ok(found),
        }
    }
}

/// How names become addresses.
pub(crate) trait Names: Send + Sync + 'static {
    fn look_up(&self, name: &str) -> impl Future<Output = std::io::Result<Vec<SocketAddr>>> + Send;
}

/// As this machine does it.
#[derive(Clone, Copy)]
pub(crate) struct System;

impl Names for System {
    async fn look_up(&self, name: &str) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.collect())
    }
}

/// The only way from a name to a connection: what it lets through was looked at.
#[derive(Clone)]
pub(crate) struct Checked<N> {
    pub(super) reach: Reach,
    pub(super) names: N,
}

impl<N: Names> Checked<N> {
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, Unreachable> {
        let found = self.names.look_up(name).await.map_err(|_| Unreachable::Unresolved)?;
        self.reach.addresses(found.into_iter())
    }
}

impl<N: Names + Clone> Resolve for Checked<N> {
    fn resolve(&self, name: Name) -> Resolving {
        let checked = self.clone();
        Box::pin(async move {
            let addresses = checked.addresses(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
