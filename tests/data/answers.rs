//! What a store answers that holds nothing: a final answer ends the command at once, and names
//! the bucket and the cause. The client is the real one, and the store a server that answers one
//! thing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::command::{code, command, refusal};
use crate::common::data;

/// Less than a run waits for a store that is away.
const AT_ONCE: Duration = Duration::from_secs(10);

/// A bucket's answer, by its name: to all requests, or but for those of an object, which is not
/// there.
fn answer(bucket: &str, is_object: bool) -> (&'static str, &'static str) {
    match bucket {
        "no-bucket" => ("404 Not Found", "NoSuchBucket"),
        // Objects may be read, and not listed.
        "no-list" if is_object => ("404 Not Found", "NoSuchKey"),
        "no-list" | "no-right" => ("403 Forbidden", "AccessDenied"),
        "no-key" => ("403 Forbidden", "InvalidAccessKeyId"),
        "elsewhere" => ("301 Moved Permanently", "PermanentRedirect"),
        "wrong-region" => ("400 Bad Request", "AuthorizationHeaderMalformed"),
        _ => ("500 Internal Server Error", "InternalError"),
    }
}

fn serve(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace();
        let (method, target) = (words.next(), words.next().unwrap_or("/").to_owned());
        let is_head = method == Some("HEAD");
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let header = header.trim().to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if header.is_empty() {
                break;
            }
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
        let path = target.split('?').next().unwrap_or_default();
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let bucket = parts.next().unwrap_or_default();
        let is_object = parts.next().is_some_and(|rest| !rest.is_empty());
        let (status, code) = answer(bucket, is_object);
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>It is so.</Message></Error>"
        );
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = &stream;
        stream.write_all(head.as_bytes())?;
        if !is_head {
            stream.write_all(body.as_bytes())?;
        }
    }
}

/// A server for as long as the test runs; its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A command that meets the server, and how long it took.
fn run(endpoint: &str, args: &[&str]) -> (Output, Duration) {
    let began = Instant::now();
    let out = command(args)
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret-that-no-text-may-hold")
        .env("AWS_REGION", "us-east-1")
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    (out, began.elapsed())
}

#[test]
fn a_final_answer_ends_a_read_at_once_and_names_bucket_and_cause() {
    let endpoint = server();
    for (bucket, says) in [
        (
            "no-bucket",
            "there is no such bucket, 'no-bucket': check its name",
        ),
        (
            "no-right",
            "what they may read and list in bucket 'no-right'",
        ),
        ("no-list", "what they may read and list in bucket 'no-list'"),
        ("no-key", "check the credentials"),
        ("elsewhere", "bucket 'elsewhere' is in another region"),
        ("wrong-region", "bucket 'wrong-region' is in another region"),
    ] {
        for source in [
            format!("s3://{bucket}/set"),
            format!("s3://{bucket}/a-{{0..1}}.tar"),
        ] {
            // A head has no body: an object that is not there, and no word of its bucket.
            let is_named = source.ends_with("set");
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path().to_str().unwrap();
            let (out, took) = run(&endpoint, &["index", &source, "--fetch-dir", dir]);
            let message = refusal(&out);
            assert!(took < AT_ONCE, "{source}: {took:?}: {message}");
            assert!(message.contains(&format!("s3://{bucket}/")), "{message}");
            assert!(!is_named || message.contains(says), "{source}: {message}");
            assert!(!message.contains("secret-that"), "{message}");
        }
    }
}

#[test]
fn a_final_answer_ends_a_build_at_once_and_names_bucket_and_cause() {
    let endpoint = server();
    let source = data(1, 2);
    let stage = tempfile::tempdir().unwrap();
    for (bucket, says) in [
        ("no-bucket", "there is no such bucket, 'no-bucket'"),
        ("no-key", "check the credentials"),
        ("wrong-region", "bucket 'wrong-region' is in another region"),
    ] {
        let to = format!("s3://{bucket}/cache");
        let (from, stage) = (
            source.path().to_str().unwrap(),
            stage.path().to_str().unwrap(),
        );
        let args = ["cache", "build", from, &to, "--stage-dir", stage];
        let (out, took) = run(&endpoint, &args);
        let message = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_ne!(code(&out), 0, "{message}");
        assert!(took < AT_ONCE, "{to}: {took:?}: {message}");
        assert!(message.contains(says), "{to}: {message}");
    }
}
