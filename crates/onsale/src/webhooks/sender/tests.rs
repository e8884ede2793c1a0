//! Sending to receivers that answer as they like.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A receiver that answers everything with the same bytes, and counts.
async fn receiver(answer: String) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut read = [0; 4096];
                let _ = stream.read(&mut read).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                // It is the sender who hangs up.
                while let Ok(1..) = stream.read(&mut read).await {}
            });
        }
    });
    (address, asked)
}

fn sender<N: Names + Clone>(reach: Reach, names: N) -> Sender<N> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Sender::with_names(reach, names).unwrap()
}

fn message(url: &str) -> Signed {
    let text = str::to_owned;
    Signed { url: text(url), id: text("msg_1"), timestamp_s: 1, signatures: text("v1,x"), body: text("{}") }
}

/// Gives the first address at the first question, and the second from then on.
#[derive(Clone)]
struct Turns(Arc<AtomicUsize>, [&'static str; 2]);

impl Names for Turns {
    async fn look_up(&self, _: &str) -> std::io::Result<Vec<SocketAddr>> {
        let turn = self.0.fetch_add(1, Ordering::SeqCst).min(1);
        Ok(vec![SocketAddr::new(self.1[turn].parse().unwrap(), 0)])
    }
}

/// deskhq/the-desk#554, Cap-go/capgo.app#2200: a public address answered with a redirect into the house, and was followed.
#[tokio::test]
async fn an_answer_is_told_and_a_redirect_is_an_answer() {
    let (other, asked_other) = receiver("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let moved = format!("HTTP/1.1 307 Moved\r\nlocation: http://{other}/\r\ncontent-length: 0\r\n\r\n");
    let (address, asked) = receiver(moved).await;
    let sender = sender(Reach::Loopback, System);
    let told = sender.send(message(&format!("http://{address}/"))).await.unwrap();
    assert_eq!(told, Answered { status: 307, retry_after_ms: None });
    assert_eq!((asked.load(Ordering::SeqCst), asked_other.load(Ordering::SeqCst)), (1, 0));

    let busy = "HTTP/1.1 429 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n".to_owned();
    let (address, _) = receiver(busy).await;
    let told = sender.send(message(&format!("http://{address}/"))).await.unwrap();
    assert_eq!(told, Answered { status: 429, retry_after_ms: Some(7_000) });
}

/// deskhq/the-desk#555, liwala/ay-framework#301: only what is written in the address was looked at, not where its name leads.
#[tokio::test]
async fn what_is_not_allowed_is_never_connected_to() {
    let (address, asked) = receiver("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let port = address.port();
    // Written out, by a name that leads there, and by one that led elsewhere when it was looked at for the operator.
    let public = sender(Reach::Public, Turns(Arc::default(), ["127.0.0.1"; 2]));
    for url in [format!("https://127.0.0.1:{port}/"), format!("https://shop.example:{port}/")] {
        let error = public.send(message(&url)).await.unwrap_err();
        assert!(error.contains("not a public address"), "{error}");
    }
    let rebound = sender(Reach::Public, Turns(Arc::default(), ["8.8.8.8", "127.0.0.1"]));
    let url = format!("https://shop.example:{port}/");
    assert_eq!(rebound.check(&url).await, Ok(()));
    let error = rebound.send(message(&url)).await.unwrap_err();
    assert!(error.contains("not a public address"), "{error}");
    assert_eq!(rebound.check(&url).await, Err(Unreachable::Address("127.0.0.1".parse().unwrap())));
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nobody has connected");
}

/// The address that was looked at is the one that is connected to: the name is asked once, and what it would say next is not
/// heard.
#[tokio::test]
async fn the_address_that_was_looked_at_is_connected_to() {
    let (address, asked) = receiver("HTTP/1.1 204 Done\r\n\r\n".to_owned()).await;
    let turns = Turns(Arc::default(), ["127.0.0.1", "203.0.113.1"]);
    let questions = Arc::clone(&turns.0);
    let told = sender(Reach::Private, turns)
        .send(message(&format!("http://shop.example:{}/", address.port())))
        .await;
    assert_eq!(told.unwrap().status, 204);
    assert_eq!((asked.load(Ordering::SeqCst), questions.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_to_it() {
    let endless = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n{}", "x".repeat(64 * 1024));
    let (address, _) = receiver(endless).await;
    let sender = sender(Reach::Loopback, System);
    let sent = sender.send(message(&format!("http://{address}/")));
    let told = timeout(Duration::from_secs(10), sent).await.expect("it ends long before the receiver does");
    assert_eq!(told.unwrap().status, 200);
}
