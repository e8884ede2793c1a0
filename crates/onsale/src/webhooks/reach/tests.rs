//! Every range of addresses, and every spelling.

use super::*;

fn at(text: &str) -> Place {
    place(text.parse().unwrap())
}

#[test]
fn every_range_is_where_it_belongs_to_its_very_ends() {
    for (place, addresses) in [
        (Place::Loopback, "127.0.0.0 127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1"),
        (Place::Private, "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255"),
        (
            Place::Private,
            "100.64.0.0 100.127.255.255 fc00:: fd12:3456::1 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ),
        (Place::Never, "0.0.0.0 0.255.255.255 169.254.0.0 169.254.169.254 169.254.255.255"),
        (
            Place::Never,
            "192.0.0.0 192.0.0.192 192.0.2.255 192.88.99.1 198.18.0.0 198.19.255.255 198.51.100.7 203.0.113.9",
        ),
        (Place::Never, "224.0.0.1 239.255.255.255 240.0.0.0 255.255.255.255"),
        (Place::Never, "100.100.100.200 168.63.129.16 fd00:ec2::254 fd20:ce::254"),
        (Place::Never, ":: ::2 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:93.184.215.14 ::127.0.0.1"),
        (Place::Never, "64:ff9b::7f00:1 64:ff9b:1::1 100::1 fe80::1 febf::1 fec0::1 ff02::1"),
        (Place::Never, "2001::1 2001:1ff::1 2001:db8::1 2002:7f00:1:: 3fff::1 3fff:fff::1 4000::1 1fff::1"),
        (
            Place::Public,
            "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0",
        ),
        (
            Place::Public,
            "169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.1 192.167.255.255 192.169.0.0",
        ),
        (
            Place::Public,
            "198.17.255.255 198.20.0.0 223.255.255.255 2001:200::1 2606:4700::1111 2a00:1450::1 3fff:1000::1",
        ),
    ] {
        for address in addresses.split_whitespace() {
            assert_eq!(at(address), place, "{address}");
        }
    }
}

/// wintermeyer/vutuv#775, shashankswe2020-ux/whoop-mcp#126: addresses of the own network were taken, plain or written otherwise.
#[test]
fn targets_are_refused_by_what_they_are() {
    let check = |reach: Reach, url: &str| reach.check(url).map(|url| url.to_string());
    let address = |text: &str| Err(Unreachable::Address(text.parse().unwrap()));
    for (url, public, loopback, private) in [
        ("https://shop.example/hook?a=1", None, None, None),
        ("https://8.8.8.8/", None, None, None),
        ("https://shop.example:8443/hook", None, None, None),
        ("http://shop.example/", Some(Unreachable::Plain), Some(Unreachable::Plain), None),
        ("http://8.8.8.8/", Some(Unreachable::Plain), Some(Unreachable::Plain), None),
        ("https://localhost/", Some(Unreachable::Localhost), None, None),
        ("https://a.LOCALHOST./", Some(Unreachable::Localhost), None, None),
        ("http://localhost:9/", Some(Unreachable::Plain), None, None),
        ("http://127.0.0.1:9/", Some(Unreachable::Plain), None, None),
        ("http://[::1]:9/", Some(Unreachable::Plain), None, None),
    ] {
        for (reach, wanted) in
            [(Reach::Public, public), (Reach::Loopback, loopback), (Reach::Private, private)]
        {
            assert_eq!(check(reach, url).err(), wanted, "{reach:?} {url}");
        }
    }
    // In whatever spelling.
    for url in [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
    ] {
        assert_eq!(check(Reach::Public, url), address("127.0.0.1"), "{url}");
    }
    for ip in ["10.0.0.7", "192.168.1.1", "172.16.0.1", "100.64.0.1"] {
        for reach in [Reach::Public, Reach::Loopback] {
            assert_eq!(check(reach, &format!("https://{ip}/")), address(ip), "{reach:?} {ip}");
        }
        assert!(check(Reach::Private, &format!("http://{ip}/")).is_ok(), "{ip}");
    }
    for ip in ["169.254.169.254", "0.0.0.0", "224.0.0.1", "100.100.100.200"] {
        assert_eq!(check(Reach::Private, &format!("https://{ip}/")), address(ip));
    }
    for (host, ip) in [("[::1]", "::1"), ("[fd00::1]", "fd00::1"), ("[::ffff:7f00:1]", "::ffff:127.0.0.1")] {
        assert_eq!(check(Reach::Public, &format!("https://{host}/")), address(ip));
    }
    for decorated in ["https://ada@shop.example/", "https://ada:pw@shop.example/", "https://shop.example/#a"]
    {
        assert_eq!(check(Reach::Private, decorated), Err(Unreachable::Decorated), "{decorated}");
    }
    let long = format!("https://shop.example/{}", "a".repeat(URL_BYTES_MAX));
    for wrong in [
        "",
        "shop.example",
        "/hook",
        "https://",
        "https:///",
        "https://shop.example:0/",
        "https://1.2.3.4.5/",
        "https://shop.example/\0",
        " https://shop.example/",
        "https://shop.example/\n",
        &long,
    ] {
        assert_eq!(check(Reach::Private, wrong), Err(Unreachable::NotAUrl), "{wrong}");
    }
    for wrong in ["ftp://shop.example/", "file://shop.example/etc/passwd"] {
        assert_eq!(check(Reach::Private, wrong), Err(Unreachable::Plain), "{wrong}");
    }
}

#[derive(Clone)]
struct Says(&'static [&'static str]);

impl Names for Says {
    async fn look_up(&self, _: &str) -> std::io::Result<Vec<SocketAddr>> {
        Ok(self.0.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect())
    }
}

#[tokio::test]
async fn a_name_leads_only_where_messages_may_go() {
    let ask = async |reach, says: &'static [&'static str]| {
        let found = Checked { reach, names: Says(says) }.addresses("shop.example").await;
        found.map(|found| found.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>())
    };
    assert_eq!(
        ask(Reach::Public, &["8.8.8.8", "2606:4700::1111"]).await.unwrap(),
        ["8.8.8.8", "2606:4700::1111"]
    );
    for private in [&["10.0.0.1"][..], &["8.8.8.8", "127.0.0.1"], &["::ffff:10.0.0.1"], &["169.254.169.254"]]
    {
        assert!(matches!(ask(Reach::Public, private).await, Err(Unreachable::Address(_))), "{private:?}");
    }
    assert_eq!(ask(Reach::Public, &[]).await, Err(Unreachable::Unresolved));
    assert_eq!(ask(Reach::Loopback, &["127.0.0.1"]).await.unwrap(), ["127.0.0.1"]);
    assert!(ask(Reach::Loopback, &["10.0.0.1"]).await.is_err());
    assert_eq!(ask(Reach::Private, &["10.0.0.1"]).await.unwrap(), ["10.0.0.1"]);
}
