use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;

use object_store::client::HttpRequestBody;

use super::*;
use crate::remote::store::redirect::cause;

/// A server at this address of the machine that answers by path, and its received requests.
struct Server {
    at: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(host: &str, answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (heads.clone(), Arc::new(answer));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (kept, answer) = (kept.clone(), answer.clone());
                thread::spawn(move || {
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                        head.push(byte[0]);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    kept.lock().unwrap().push(head);
                    answer(&path, &mut stream);
                });
            }
        });
        Self { at, heads }
    }

    fn heads(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.clone()
    }
}

fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

/// Sends without end, until the client stops reading.
fn endless(stream: &mut TcpStream, status: &str) -> usize {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: 1099511627776\r\n\r\n");
    let (mut sent, piece) = (0, vec![b'e'; 1 << 20]);
    let _ = stream.write_all(head.as_bytes());
    while let Ok(n) = stream.write(&piece) {
        sent += n;
    }
    sent
}

/// What a client with these rules gets: the status and the body, or the error's text.
fn get(url: &str, redirects: &RedirectRules) -> Result<(u16, Vec<u8>), String> {
    // Fails where it was done before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ClientOptions::new().with_allow_http(true);
    let web = Web::new(&options, redirects.clone()).unwrap();
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.uri_mut() = url.parse().unwrap();
    for (name, value) in [
        (header::AUTHORIZATION, "Bearer hunter2"),
        (header::COOKIE, "hunter2"),
        (header::RANGE, "bytes=7-"),
    ] {
        let value = header::HeaderValue::from_static(value);
        request.headers_mut().insert(name, value);
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        let answer = web.call(request).await;
        let answer = answer.map_err(|e| match cause::<RefusedRedirect>(&e) {
            Some(refused) => refused.to_string(),
            None => format!("{e:?}"),
        })?;
        let status = answer.status().as_u16();
        let bytes = answer.into_body().bytes().await;
        Ok((status, bytes.map_err(|e| e.to_string())?.to_vec()))
    })
}

fn rules(other_hosts: bool) -> RedirectRules {
    RedirectRules::new(other_hosts, Vec::new())
}

#[test]
fn a_store_with_a_name_is_reached() {
    let server = Server::start("127.0.0.1", |_, stream| {
        reply(stream, "200 OK", "", b"here");
    });
    let port = server.at.rsplit(':').next().unwrap();
    let got = get(&format!("http://localhost:{port}/x"), &rules(false));
    assert_eq!(got, Ok((200, b"here".to_vec())));
}

#[test]
fn connections_are_spread_over_the_addresses_of_a_name() {
    struct Many;
    impl Resolve for Many {
        fn resolve(&self, _: Name) -> Resolving {
            let all: Vec<SocketAddr> = (0..16u8)
                .map(|n| SocketAddr::from(([10, 0, 0, n], 0)))
                .collect();
            Box::pin(async move { Ok(Box::new(all.into_iter()) as Addrs) })
        }
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let resolved = |names: &dyn Resolve| -> Vec<SocketAddr> {
        let found = runtime.block_on(names.resolve("a.org".parse().unwrap()));
        found.unwrap().collect()
    };
    let all = resolved(&Many);
    let shuffled = ShuffledAddresses(Arc::new(Many));
    let mut orders: Vec<Vec<SocketAddr>> = (0..8).map(|_| resolved(&shuffled)).collect();
    assert!(orders.iter().any(|order| *order != orders[0]));
    for order in &mut orders {
        order.sort_unstable();
        assert_eq!(*order, all);
    }
}

#[test]
fn of_an_error_its_beginning_is_read() {
    let sent = Arc::new(Mutex::new(None));
    let kept = sent.clone();
    let server = Server::start("127.0.0.1", move |_, stream| {
        let mut kept = kept.lock().unwrap();
        *kept = Some(endless(stream, "403 Forbidden"));
    });
    let (status, body) = get(&format!("http://{}/x", server.at), &rules(false)).unwrap();
    assert_eq!((status, body), (403, vec![b'e'; 4096]));
    // What the kernel took: locked until the server was done.
    let sent = loop {
        if let Some(sent) = *sent.lock().unwrap() {
            break sent;
        }
        thread::yield_now();
    };
    assert!(sent < 32 << 20, "{sent}");
}

#[test]
fn an_error_that_is_no_utf8_keeps_its_status() {
    let server = Server::start("127.0.0.1", |_, stream| {
        reply(stream, "403 Forbidden", "", b"no \xff\xfe");
    });
    let (status, body) = get(&format!("http://{}/x", server.at), &rules(false)).unwrap();
    assert_eq!(status, 403);
    assert_eq!(String::from_utf8(body).unwrap(), "no \u{fffd}\u{fffd}");
}

#[test]
fn a_listing_without_end_is_given_up_and_an_object_is_not() {
    let server = Server::start("127.0.0.1", |path, stream| match path {
        "/object" => reply(stream, "200 OK", "", &vec![7; MOST_OF_ANSWER + 1]),
        _ => {
            endless(stream, "200 OK");
        }
    });
    for query in ["list-type=2&prefix=a", "restype=container&comp=list"] {
        let e = get(&format!("http://{}/b?{query}", server.at), &rules(false)).unwrap_err();
        assert!(e.contains("LongAnswer"), "{e}");
    }
    let (_, object) = get(&format!("http://{}/object", server.at), &rules(false)).unwrap();
    assert_eq!(object.len(), MOST_OF_ANSWER + 1);
}

#[test]
fn redirects_within_a_host_are_followed_up_to_a_number() {
    let server = Server::start("127.0.0.1", |path, stream| match path {
        "/a" => reply(stream, "302 Found", "Location: /b\r\n", b""),
        "/b" => reply(stream, "308 Permanent Redirect", "Location: c\r\n", b""),
        "/c" => reply(stream, "200 OK", "", b"here"),
        _ => reply(stream, "302 Found", "Location: /round\r\n", b""),
    });
    let got = get(&format!("http://{}/a", server.at), &rules(false));
    assert_eq!(got, Ok((200, b"here".to_vec())));
    assert!(server.heads()[2].contains("hunter2"), "its own host");
    let before = server.heads().len();
    let e = get(&format!("http://{}/round", server.at), &rules(true)).unwrap_err();
    assert!(e.contains("more than 10 times"), "{e}");
    assert_eq!(server.heads().len() - before, 1 + MOST_REDIRECTS);
}

#[test]
fn another_host_is_reached_where_that_is_allowed_and_sees_no_credentials() {
    let other = Server::start("127.0.0.2", |path, stream| match path {
        "/back" => reply(stream, "302 Found", "Location: /x\r\n", b""),
        _ => reply(stream, "200 OK", "", b"other"),
    });
    let to = format!("Location: http://user:hunter3@{}/back\r\n", other.at);
    let first = Server::start("127.0.0.1", move |_, stream| {
        reply(stream, "302 Found", &to, b"");
    });
    let url = format!("http://{}/a", first.at);
    // As if the addresses of this machine were public ones.
    let open = |other_hosts| rules(other_hosts).with_public(|_| true);
    let e = get(&url, &open(false)).unwrap_err();
    let names = e.contains(&first.at) && e.contains(&other.at);
    assert!(names && e.contains("`allow_redirects`"), "{e}");
    assert!(!e.contains("hunter"), "{e}");
    // They are not.
    let e = get(&url, &rules(true)).unwrap_err();
    assert!(e.contains("never followed"), "{e}");
    assert!(other.heads().is_empty());

    assert_eq!(get(&url, &open(true)), Ok((200, b"other".to_vec())));
    let heads = other.heads();
    assert_eq!(heads.len(), 2);
    for head in heads {
        let head = head.to_ascii_lowercase();
        assert!(head.contains("range: bytes=7-"), "{head}");
        let has_secret = ["hunter", "authorization", "cookie"]
            .iter()
            .any(|s| head.contains(s));
        assert!(!has_secret, "{head}");
    }
}
