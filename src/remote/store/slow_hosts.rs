//! Hosts that ask for fewer requests (status 429 or 503): no request is sent to them before the time
//! that they name, and then one after the other.
//!
//! Runs in the fetcher. All requests for the addresses of a list share one table. A host is in it
//! from its first such response until it has kept up again.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use object_store::Result;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use reqwest::StatusCode;

/// Longest wait that a host may ask for.
const MOST_WAIT: Duration = Duration::from_secs(300);
/// How long a host may answer nothing else, before its objects count as lost.
const MOST_SLOW: Duration = Duration::from_secs(900);
/// The same as a fraction, for a host that says 503 and never how long to wait: most such servers are
/// broken.
const UNEXPLAINED: u32 = 15;

/// Time between two requests to a slow host: after its first such response, doubled each time that it
/// names no wait, and the longest. Below the least the host is not slow any more.
const FIRST_GAP: Duration = Duration::from_millis(100);
const LONGEST_GAP: Duration = Duration::from_secs(20);
const LEAST_GAP: Duration = Duration::from_millis(20);
/// Longest time between two looks at the pace, which may have become faster.
const LOOK: Duration = Duration::from_millis(500);

/// The response of a host that asks for fewer requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlowDown {
    status: u16,
    /// How long it has answered nothing else.
    pub(crate) lasts: Duration,
    /// Time until the next request.
    pub(crate) wait: Duration,
    /// How long that may last.
    most: Duration,
}

impl SlowDown {
    /// Whether the host has answered nothing else for too long.
    pub(crate) fn is_over(&self) -> bool {
        self.lasts >= self.most
    }
}

impl fmt::Display for SlowDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the server asks for fewer requests (status {}), and has answered nothing else for {} \
             s: try again later",
            self.status,
            self.most.as_secs_f64()
        )
    }
}

impl StdError for SlowDown {}

#[cfg(not(feature = "internals"))]
fn most_slow() -> Duration {
    MOST_SLOW
}

/// Tests set it by a variable.
#[cfg(feature = "internals")]
fn most_slow() -> Duration {
    let given = std::env::var("FEATHERLOAD_TEST_MOST_SLOW").ok();
    given
        .and_then(|text| humantime::parse_duration(&text).ok())
        .unwrap_or(MOST_SLOW)
}

/// The pace of a slow host.
#[derive(Debug, Clone, Copy)]
struct HostPace {
    /// Earliest time of the next request.
    next: Instant,
    gap: Duration,
    /// When the gap was last made longer. Requests that were sent before do not count again.
    changed: Instant,
    /// Its first such response since its last other one.
    since: Option<Instant>,
    /// Whether it has said that the requests are too many, or how long to wait.
    has_reason: bool,
}

/// The slow hosts, by name and port.
#[derive(Debug, Default)]
pub(crate) struct SlowHosts(Mutex<HashMap<String, HostPace>>);

impl SlowHosts {
    fn all(&self) -> MutexGuard<'_, HashMap<String, HostPace>> {
        // Its content is valid between any two operations.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a request, or returns how long to wait before the next try.
    fn admit(&self, host: &str, now: Instant) -> Option<Duration> {
        let mut all = self.all();
        let pace = all.get_mut(host)?;
        if pace.next > now {
            return Some((pace.next - now).min(LOOK));
        }
        pace.next = now + pace.gap;
        None
    }

    /// Records that a host asks for fewer requests, by this status. `sent`: when the request was sent;
    /// `after`: the wait that the host names.
    fn slow(
        &self,
        host: &str,
        (status, after): (StatusCode, Option<Duration>),
        (sent, now): (Instant, Instant),
    ) -> SlowDown {
        let mut all = self.all();
        let pace = all.entry(host.to_owned()).or_insert(HostPace {
            next: now,
            gap: FIRST_GAP / 2,
            changed: sent,
            since: None,
            has_reason: false,
        });
        pace.has_reason |= after.is_some() || status == StatusCode::TOO_MANY_REQUESTS;
        if sent >= pace.changed {
            let more = if after.is_none() {
                pace.gap * 2
            } else {
                pace.gap
            };
            pace.gap = more.clamp(FIRST_GAP, LONGEST_GAP);
            pace.changed = now;
        }
        let wait = after.unwrap_or(pace.gap).min(MOST_WAIT);
        pace.next = pace.next.max(now + wait);
        SlowDown {
            status: status.as_u16(),
            lasts: now - *pace.since.get_or_insert(now),
            wait: pace.next - now,
            most: match pace.has_reason {
                true => most_slow(),
                false => most_slow() / UNEXPLAINED,
            },
        }
    }

    /// Records another response of a host.
    fn answered(&self, host: &str, now: Instant) {
        let mut all = self.all();
        let Some(pace) = all.get_mut(host) else {
            return;
        };
        pace.since = None;
        pace.gap /= 2;
        pace.next = pace.next.min(now + pace.gap);
        if pace.gap < LEAST_GAP {
            all.remove(host);
        }
    }
}

/// The wait that the header `Retry-After` names: seconds, or a date.
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number has are a long time.
        return Some(text.parse().map_or(MOST_WAIT, Duration::from_secs));
    }
    // As `Sun, 06 Nov 1994 08:49:37 GMT`.
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (_, date) = text.split_once(", ")?;
    let words: Vec<&str> = date.split_ascii_whitespace().collect();
    let [day, month, year, time, "GMT"] = words[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let at = humantime::parse_rfc3339(&format!("{year}-{month:02}-{day:0>2}T{time}Z")).ok()?;
    // A date that has passed is no wait.
    Some(at.duration_since(now).unwrap_or_default())
}

/// Creates clients that keep the pace of slow hosts.
#[derive(Debug)]
pub(super) struct PacedRequests<C> {
    pub(super) inner: C,
    pub(super) hosts: Arc<SlowHosts>,
}

impl<C: HttpConnector> HttpConnector for PacedRequests<C> {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(PacedClient {
            inner: self.inner.connect(options)?,
            hosts: self.hosts.clone(),
        }))
    }
}

#[derive(Debug)]
struct PacedClient {
    inner: HttpClient,
    hosts: Arc<SlowHosts>,
}

impl HttpService for PacedClient {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = std::result::Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let host = request.uri().authority().map(ToString::to_string);
            let host = host.unwrap_or_default().to_ascii_lowercase();
            while let Some(wait) = self.hosts.admit(&host, Instant::now()) {
                tokio::time::sleep(wait).await;
            }
            let sent = Instant::now();
            let answer = self.inner.execute(request).await?;
            let status = answer.status();
            if !matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            ) {
                self.hosts.answered(&host, Instant::now());
                return Ok(answer);
            }
            let after = answer.headers().get("retry-after");
            let after =
                after.and_then(|value| retry_after(value.to_str().ok()?, SystemTime::now()));
            let times = (sent, Instant::now());
            let slow = self.hosts.slow(&host, (status, after), times);
            // The client does not repeat it by itself.
            Err(HttpError::new(HttpErrorKind::Decode, slow))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_seconds_or_dates() {
        let now = humantime::parse_rfc3339("1994-11-06T08:49:07Z").unwrap();
        let seconds = |text: &str| retry_after(text, now).map(|wait| wait.as_secs());
        for (text, want) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30)),
            ("Sun, 6 Nov 1994 08:49:37 GMT", Some(30)),
            ("Sat, 05 Nov 1994 08:49:37 GMT", Some(0)),
            ("99999999999999999999999", Some(300)),
            ("-1", None),
            ("", None),
            ("soon", None),
            ("Sun, 06 Foo 1994 08:49:37 GMT", None),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ] {
            assert_eq!(seconds(text), want, "{text}");
        }
    }

    #[test]
    fn a_burst_counts_once_and_requests_come_one_after_the_other() {
        let hosts = SlowHosts::default();
        let begin = Instant::now();
        let many = StatusCode::TOO_MANY_REQUESTS;
        let at = |ms: u64| begin + Duration::from_millis(ms);
        assert_eq!(hosts.admit("h", at(0)), None);
        for n in 0..50 {
            let slow = hosts.slow("h", (many, None), (at(0), at(10 + n)));
            assert!(slow.wait <= FIRST_GAP && !slow.is_over());
        }
        let wait = |ms: u64| hosts.admit("h", at(ms)).map(|wait| wait.as_millis());
        assert_eq!(wait(60), Some(99));
        assert_eq!([wait(159), wait(160), wait(259)], [None, Some(99), None]);
        assert_eq!(hosts.admit("other", at(59)), None);
        // The host names a longer wait.
        let slow = hosts.slow(
            "h",
            (many, Some(Duration::from_secs(7))),
            (at(400), at(400)),
        );
        assert_eq!((slow.wait.as_secs(), slow.lasts.as_millis()), (7, 390));
        let hours = hosts.slow(
            "h",
            (many, Some(Duration::from_secs(9000))),
            (at(400), at(500)),
        );
        assert_eq!(hours.wait, MOST_WAIT);
        // An answer ends the long wait.
        assert_eq!(wait(501), Some(500));
        hosts.answered("h", at(501));
        assert_eq!([wait(501), wait(551)], [Some(50), None]);
        for _ in 0..20 {
            hosts.answered("h", at(552));
        }
        assert!(hosts.all().is_empty());
        let slow = hosts.slow("h", (many, None), (at(0), at(0)));
        assert!(!slow.is_over());
        assert!(
            hosts
                .slow("h", (many, None), (at(0), at(0) + MOST_SLOW))
                .is_over()
        );
    }

    #[test]
    fn a_host_that_says_503_and_nothing_more_is_given_up_soon() {
        let begin = Instant::now();
        let at = |s: u64| begin + Duration::from_secs(s);
        let (busy, many) = (
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        );
        let ends = |first: (StatusCode, Option<Duration>)| {
            let hosts = SlowHosts::default();
            hosts.slow("h", first, (at(0), at(0)));
            let over = |s: &u64| hosts.slow("h", (busy, None), (at(*s), at(*s))).is_over();
            (1..1000).find(over)
        };
        assert_eq!(ends((busy, None)), Some(60));
        assert_eq!(ends((busy, Some(Duration::from_secs(1)))), Some(900));
        assert_eq!(ends((many, None)), Some(900));
    }
}
