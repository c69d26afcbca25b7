//! The HTTP client of all stores. Limits redirects, and the size of responses in memory. Objects
//! are written to files piece by piece; everything else has a limit.
//!
//! Runs in the fetcher and in the uploader. `object_store` alone would follow redirects to any
//! host, and read errors and listings without a limit.

use std::error::Error as StdError;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions, Error as StoreError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{self, HeaderMap, HeaderName};
use reqwest::redirect::Policy;
use reqwest::tls::Certificate;
use reqwest::{Client, Method, NoProxy, Proxy, StatusCode, Url};

use crate::remote::store::redirect::{MOST_REDIRECTS, NextHost, RedirectRules, RefusedRedirect};

/// Most bytes of an error's body: a code and a message.
const MOST_OF_ERROR: usize = 4 << 10;
/// Time limit to read it.
const ERROR_TIME: Duration = Duration::from_secs(5);
/// Longest response that is no object: a page of a listing has at most 5,000 names.
const MOST_OF_ANSWER: usize = 32 << 20;
/// Time limit to read it. Objects have no limit while data arrive.
const ANSWER_TIME: Duration = Duration::from_secs(180);

/// Headers that may be sent to another host: no credentials, no cookies.
const FOR_OTHERS: [HeaderName; 7] = [
    header::ACCEPT,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
    header::USER_AGENT,
];

/// Variables that name proxies, as the client reads them.
const PROXIES: [&str; 3] = ["http_proxy", "https_proxy", "all_proxy"];

/// Creates the clients of a store.
#[derive(Debug)]
pub(crate) struct StoreConnector {
    /// Whether redirects to other hosts are followed.
    pub(crate) allow_redirects: bool,
}

impl HttpConnector for StoreConnector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient, StoreError> {
        let redirects = RedirectRules::new(self.allow_redirects, proxies(options));
        Ok(HttpClient::new(Web::new(options, redirects)?))
    }
}

/// Two clients. Only one of them connects to hosts that a server named.
#[derive(Debug)]
struct Web {
    first: Client,
    other_hosts: Client,
    redirects: RedirectRules,
}

impl Web {
    fn new(options: &ClientOptions, redirects: RedirectRules) -> Result<Self, StoreError> {
        let failed = |e: reqwest::Error| wrong(e.into());
        let first = builder(options, Arc::new(SystemNames))?;
        let first = first.build().map_err(failed)?;
        let other_hosts = match redirects.other_hosts {
            true => {
                let guarded = builder(options, Arc::new(redirects.clone()))?;
                guarded.build().map_err(failed)?
            }
            // It gets no requests.
            false => first.clone(),
        };
        Ok(Self {
            first,
            other_hosts,
            redirects,
        })
    }

    /// The response after following redirects.
    async fn follow(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut at = address(&request.uri().to_string())?;
        let mut host = NextHost::Same;
        for _ in 0..=MOST_REDIRECTS {
            let client = match host {
                NextHost::Same => &self.first,
                NextHost::Other => &self.other_hosts,
            };
            let answer = client.call(request.clone()).await?;
            let Some(to) = target(&answer, &at)? else {
                return Ok(answer);
            };
            // A request that has left its host stays outside until it ends.
            if self.redirects.check(&at, &to).map_err(refused)? == NextHost::Other {
                self.redirects.check_names(&to).await.map_err(refused)?;
                host = NextHost::Other;
            }
            if host == NextHost::Other {
                leave_out_secrets(request.headers_mut());
            }
            let uri = to.as_str().parse();
            *request.uri_mut() =
                uri.map_err(|_| refused(RefusedRedirect::no_address(to.as_str())))?;
            at = to;
        }
        Err(refused(RefusedRedirect::too_many()))
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let is_object = is_read && !is_list(request.uri().query().unwrap_or_default());
        let answer = match is_read {
            true => self.follow(request).await?,
            false => self.first.call(request).await?,
        };
        let (parts, body) = answer.into_parts();
        let body = match parts.status.is_success() {
            false => beginning(body).await.into(),
            true if is_object => body,
            true => match tokio::time::timeout(ANSWER_TIME, whole(body)).await {
                Ok(answer) => answer?.into(),
                Err(late) => return Err(HttpError::new(HttpErrorKind::Timeout, late)),
            },
        };
        Ok(HttpResponse::from_parts(parts, body))
    }
}

impl HttpService for Web {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.answer(request))
    }
}

/// Whether a query requests a listing, in the forms of S3, Google and Azure.
fn is_list(query: &str) -> bool {
    query
        .split('&')
        .any(|part| part.starts_with("list-type=") || part == "comp=list")
}

/// The target of a redirect.
fn target(answer: &HttpResponse, at: &Url) -> Result<Option<Url>, HttpError> {
    let is_redirect = matches!(
        answer.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let Some(place) = answer
        .headers()
        .get(header::LOCATION)
        .filter(|_| is_redirect)
    else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(place.as_bytes());
    let no_address = || refused(RefusedRedirect::no_address(&text));
    let mut to = at.join(&text).map_err(|_| no_address())?;
    // A server has no credentials for another one.
    if to.set_username("").is_ok() {
        to.set_password(None).map_err(|()| no_address())?;
    }
    Ok(Some(to))
}

fn leave_out_secrets(headers: &mut HeaderMap) {
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names.iter().filter(|name| !FOR_OTHERS.contains(name)) {
        headers.remove(name);
    }
}

fn address(text: &str) -> Result<Url, HttpError> {
    Url::parse(text).map_err(|_| refused(RefusedRedirect::no_address(text)))
}

/// An error that is not retried.
fn refused(why: RefusedRedirect) -> HttpError {
    HttpError::new(HttpErrorKind::Decode, why)
}

/// The beginning of an error's text. The rest is not requested.
async fn beginning(body: HttpResponseBody) -> String {
    let mut text = Vec::new();
    let mut pieces = body.bytes_stream();
    let read = async {
        while text.len() < MOST_OF_ERROR {
            match pieces.next().await {
                Some(Ok(piece)) => {
                    let left = (MOST_OF_ERROR - text.len()).min(piece.len());
                    text.extend_from_slice(&piece[..left]);
                }
                _ => return,
            }
        }
    };
    // Uses what has arrived by then.
    let _ = tokio::time::timeout(ERROR_TIME, read).await;
    String::from_utf8_lossy(&text).into_owned()
}

/// A response that is longer than any of a store.
#[derive(Debug)]
pub(crate) struct LongAnswer;

impl fmt::Display for LongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the response is longer than the limit of {MOST_OF_ANSWER} bytes"
        )
    }
}

impl StdError for LongAnswer {}

/// A response that is no object.
///
/// # Errors
/// It is too long; the connection breaks.
async fn whole(body: HttpResponseBody) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    let mut pieces = body.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if bytes.len() + piece.len() > MOST_OF_ANSWER {
            return Err(HttpError::new(HttpErrorKind::Decode, LongAnswer));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn wrong(source: Box<dyn StdError + Send + Sync>) -> StoreError {
    StoreError::Generic {
        store: "HTTP client",
        source,
    }
}

/// The names of proxies.
fn proxies(options: &ClientOptions) -> Vec<String> {
    let of_environment = PROXIES.into_iter().flat_map(|name| {
        [name.to_owned(), name.to_uppercase()].map(|name| std::env::var(name).ok())
    });
    let given = [options.get_config_value(&ClientConfigKey::ProxyUrl)];
    let all = of_environment.chain(given).flatten();
    let hosts = all.filter_map(|text| {
        let url = Url::parse(&text).or_else(|_| Url::parse(&format!("http://{text}")));
        Some(url.ok()?.host_str()?.to_owned())
    });
    hosts.collect()
}

/// Resolves names as the system does.
struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Shuffles the addresses of a name each time, so that connections use all machines of a store.
struct ShuffledAddresses(Arc<dyn Resolve>);

impl Resolve for ShuffledAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.0.resolve(name);
        Box::pin(async move {
            let mut found: Vec<SocketAddr> = found.await?.collect();
            let random = RandomState::new();
            found.sort_by_cached_key(|address| random.hash_one(address));
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A client with the options of the store. It follows no redirects by itself.
///
/// # Errors
/// An invalid option.
fn builder(
    options: &ClientOptions,
    names: Arc<dyn Resolve>,
) -> Result<reqwest::ClientBuilder, StoreError> {
    use ClientConfigKey as Key;

    let option = |key: Key| options.get_config_value(&key);
    let is = |key: Key| {
        let word = option(key).map(|word| word.to_ascii_lowercase());
        word.is_some_and(|word| matches!(&*word, "1" | "true" | "on" | "yes" | "y"))
    };
    let time = |key: Key| {
        let read = option(key).map(|text| humantime::parse_duration(&text));
        read.transpose().map_err(|e| wrong(e.into()))
    };
    let number = |key: Key| {
        let read = option(key).map(|text| text.parse::<u32>());
        read.transpose().map_err(|e| wrong(e.into()))
    };
    let failed = |e: reqwest::Error| wrong(e.into());

    let own = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
    let mut builder = Client::builder()
        .redirect(Policy::none())
        // A program may enable these features of the client. But a decoded body has no known
        // length.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .user_agent(option(Key::UserAgent).unwrap_or_else(|| own.to_owned()))
        .https_only(!is(Key::AllowHttp))
        .danger_accept_invalid_certs(is(Key::AllowInvalidCertificates))
        .pool_idle_timeout(time(Key::PoolIdleTimeout)?.or(Some(Duration::from_secs(90))))
        .http2_keep_alive_interval(time(Key::Http2KeepAliveInterval)?)
        .http2_keep_alive_while_idle(is(Key::Http2KeepAliveWhileIdle))
        .http2_max_frame_size(number(Key::Http2MaxFrameSize)?);
    if let Some(headers) = options.get_default_headers() {
        builder = builder.default_headers(headers.clone());
    }
    if let Some(time) = time(Key::ConnectTimeout)? {
        builder = builder.connect_timeout(time);
    }
    if let Some(time) = time(Key::ReadTimeout)? {
        builder = builder.read_timeout(time);
    }
    if let Some(time) = time(Key::Timeout)? {
        builder = builder.timeout(time);
    }
    if let Some(time) = time(Key::Http2KeepAliveTimeout)? {
        builder = builder.http2_keep_alive_timeout(time);
    }
    if let Some(most) = number(Key::PoolMaxIdlePerHost)? {
        builder = builder.pool_max_idle_per_host(most as usize);
    }
    if is(Key::Http1Only) {
        builder = builder.http1_only();
    }
    if is(Key::Http2Only) {
        builder = builder.http2_prior_knowledge();
    }
    if is(Key::NoSystemCertificates) {
        builder = builder.tls_certs_only([]);
    }
    if let Some(url) = option(Key::ProxyUrl) {
        let none = option(Key::ProxyExcludes).and_then(|names| NoProxy::from_string(&names));
        let proxy = Proxy::all(url).map_err(failed)?;
        builder = builder.proxy(proxy.no_proxy(none));
        if let Some(text) = option(Key::ProxyCaCertificate) {
            let certificate = Certificate::from_pem(text.as_bytes()).map_err(failed)?;
            builder = builder.tls_certs_merge([certificate]);
        }
    }
    let names: Arc<dyn Resolve> = match is(Key::RandomizeAddresses) {
        true => Arc::new(ShuffledAddresses(names)),
        false => names,
    };
    Ok(builder.dns_resolver(names))
}

#[cfg(test)]
mod tests;
