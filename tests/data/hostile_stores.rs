//! Stores that send requests on, list without end, or name sizes that nothing has: each is refused
//! at once, in words that name the object and the fix. The client is the real one.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::command::{command, refusal};

/// A server on this address of the machine that answers by the target of a request: headers with
/// their status, and a body. Its address, and how often it was asked.
fn server(
    host: &str,
    answer: impl Fn(&str) -> (String, String) + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (asked, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    let counted = asked.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answer, counted) = (answer.clone(), counted.clone());
            thread::spawn(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = serve(&stream, &*answer);
            });
        }
    });
    (at, asked)
}

fn serve(mut stream: &TcpStream, answer: &dyn Fn(&str) -> (String, String)) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let (head, body) = answer(first.split(' ').nth(1).unwrap_or_default());
    let end = match head.contains("Content-Length") {
        true => String::new(),
        false => format!("Content-Length: {}\r\n", body.len()),
    };
    write!(stream, "HTTP/1.1 {head}\r\n{end}Connection: close\r\n\r\n")?;
    match first.starts_with("HEAD") {
        true => Ok(()),
        false => stream.write_all(body.as_bytes()),
    }
}

fn index(source: &str, endpoint: &str, flags: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let mut args = vec!["index", source, "--fetch-dir", dir];
    args.extend(flags);
    command(&args)
        .env("AWS_ENDPOINT_URL", format!("http://{endpoint}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "us-east-1")
        .env("NO_PROXY", "127.0.0.1,127.0.0.2")
        .output()
        .unwrap()
}

#[test]
fn a_redirect_to_another_host_is_not_followed_and_the_flag_is_named() {
    let (other, asked) = server("127.0.0.2", |_| ("200 OK".to_owned(), String::new()));
    let place = format!("302 Found\r\nLocation: http://{other}/x");
    let public = "302 Found\r\nLocation: http://1.1.1.1/x".to_owned();
    let metadata = "302 Found\r\nLocation: http://[::ffff:169.254.169.254]/x".to_owned();
    let (first, _) = server("127.0.0.1", move |target| {
        let head = match target {
            target if target.starts_with("/local") => &place,
            target if target.starts_with("/metadata") => &metadata,
            _ => &public,
        };
        (head.clone(), String::new())
    });
    let message = refusal(&index(&format!("http://{first}/public"), "", &[]));
    let names = message.contains(&format!("'{first}'")) && message.contains("'1.1.1.1'");
    assert!(names && message.contains("--allow-redirects"), "{message}");
    assert!(message.contains("/public/manifest.json"), "{message}");
    for path in ["local", "metadata"] {
        let source = format!("http://{first}/{path}");
        for flags in [&[][..], &["--allow-redirects"]] {
            let message = refusal(&index(&source, "", flags));
            assert!(message.contains("never followed"), "{message}");
        }
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn a_manifest_of_any_size_is_refused_before_it_is_read() {
    let (at, _) = server("127.0.0.1", |_| {
        let head = "200 OK\r\nContent-Length: 4611686018427387904\r\nETag: \"x\"\r\n\
                    Last-Modified: Wed, 26 Nov 2025 16:40:00 GMT";
        (head.to_owned(), "{".to_owned())
    });
    let message = refusal(&index(&format!("http://{at}/cache"), "", &[]));
    assert!(
        message.contains("/cache/manifest.json: too long: it has "),
        "{message}"
    );
    assert!(message.contains("(4611686018427387904 bytes)"), "{message}");
    assert!(
        message.contains("the limit is 512 MiB (536870912 bytes)"),
        "{message}"
    );
}

#[test]
fn a_listing_that_repeats_itself_is_given_up() {
    let (at, asked) = server("127.0.0.1", |target| {
        let missing = "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>";
        if !target.contains("list-type") {
            return ("404 Not Found".to_owned(), missing.to_owned());
        }
        let text = "<?xml version=\"1.0\"?><ListBucketResult><Name>b</Name><Prefix>set/</Prefix>\
                    <KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>true</IsTruncated>\
                    <NextContinuationToken>t</NextContinuationToken><Contents>\
                    <Key>set/a.tar</Key><LastModified>2025-01-01T00:00:00.000Z</LastModified>\
                    <ETag>\"x\"</ETag><Size>1024</Size></Contents></ListBucketResult>";
        ("200 OK".to_owned(), text.to_owned())
    });
    let message = refusal(&index("s3://b/set", &at, &[]));
    assert!(message.contains("s3://b/set: "), "{message}");
    assert!(
        message.contains("repeats the same page of names"),
        "{message}"
    );
    // The manifest, and two pages.
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}
