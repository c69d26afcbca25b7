//! An object store, opened by its address, and its errors for users.
//!
//! Runs in the fetcher and in the uploader. Credentials come from the environment, or the role of
//! machine or cluster (`object_store`'s chain). They are in no text that leaves this file.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::HttpConnector;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::local::LocalFileSystem;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, Error as StoreError, ListResult, ObjectStore,
    ObjectStoreScheme, RetryConfig,
};

use crate::remote::address::StoreAddress;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::answer::{StoreAnswer, other_region};
use crate::remote::store::connector::{LongAnswer, StoreConnector};
use crate::remote::store::ranges;
use crate::remote::store::ranges::LengthOfRanges;
use crate::remote::store::redirect::{RefusedRedirect, cause};
use crate::remote::store::slow_hosts::{PacedRequests, SlowDown, SlowHosts};
use crate::remote::store::web_address::{self, WholeAddresses};

/// Time limit of a request until its response begins. After that it is retried (`download`).
const CONNECT: &str = "5s";
/// Time limit between two pieces of a response.
const READ: &str = "20s";
/// The same for uploads of a part, whose response comes at the end.
const READ_BEHIND_A_PART: &str = "120s";
/// No limit for a whole response, because shards may be large.
const WHOLE: &str = "1d";

/// Most characters of a store's message in an error. A page of HTML tells no more.
const LONGEST_TEXT: usize = 600;

/// A store, and the place of the data set in it.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// The same store, if it takes an object in parts.
    pub(crate) parts: Option<Arc<dyn MultipartStore>>,
    /// The same store, if it lists names by page.
    pages: Option<Arc<dyn PaginatedListStore>>,
    prefix: Path,
    address: StoreAddress,
    /// Names of objects are whole addresses.
    is_web: bool,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.address).finish()
    }
}

/// Which names a listing has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListDepth {
    /// Those directly under the address, and folders.
    Folder,
    /// Those in folders, too.
    Tree,
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum StoreFailure {
    /// A retry may succeed.
    Transient(String),
    /// The host asks for fewer requests. The next one waits as long as it says.
    Slowed(SlowDown),
    /// A retry will not succeed.
    Permanent(HelperError),
}

/// The name of an environment variable whose value cannot be in a header, if there is one.
fn broken_setting(variables: impl Iterator<Item = (OsString, OsString)>) -> Option<String> {
    let of_stores = ["AWS_", "AZURE_", "GOOGLE_"];
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .find(|(name, value)| {
            let is_control = |byte: &u8| byte.is_ascii_control();
            of_stores.iter().any(|prefix| name.starts_with(prefix))
                && value.as_encoded_bytes().iter().any(is_control)
        })
        .map(|(name, _)| name)
}

impl Store {
    /// Opens nothing yet; the first request connects. With `allow_redirects`, a response may
    /// redirect to another host.
    ///
    /// # Errors
    /// An invalid address for this store; invalid settings.
    pub(crate) fn open(address: &StoreAddress, allow_redirects: bool) -> Result<Self, HelperError> {
        Self::with_limit(address, READ, StoreConnector { allow_redirects })
    }

    /// Like [`Store::open`], with the pace of slow hosts.
    ///
    /// # Errors
    /// Like [`Store::open`].
    pub(crate) fn open_paced(
        address: &StoreAddress,
        allow_redirects: bool,
        hosts: Arc<SlowHosts>,
    ) -> Result<Self, HelperError> {
        let inner = StoreConnector { allow_redirects };
        Self::with_limit(address, READ, PacedRequests { inner, hosts })
    }

    /// Like [`Store::open`], for uploads.
    ///
    /// # Errors
    /// Like [`Store::open`]; a web server.
    pub(crate) fn open_to_send(address: &StoreAddress) -> Result<Self, HelperError> {
        let connector = StoreConnector {
            allow_redirects: false,
        };
        let store = Self::with_limit(address, READ_BEHIND_A_PART, connector)?;
        let text = address.as_str();
        if store.parts.is_none() && !text.starts_with("file:") {
            let what = "is a web server, which takes no objects: give s3://, gs://, az:// or \
                        file://";
            return Err(HelperError::new(text, what));
        }
        Ok(store)
    }

    fn with_limit(
        address: &StoreAddress,
        read: &str,
        connector: impl HttpConnector,
    ) -> Result<Self, HelperError> {
        let address_error = |what: String| HelperError::new(address.as_str(), what);
        if let Some(name) = broken_setting(std::env::vars_os()) {
            return Err(address_error(format!(
                "the environment variable {name} holds a line break or another control \
                 character: set it without"
            )));
        }
        let url = url::Url::parse(address.as_str()).map_err(|e| address_error(e.to_string()))?;
        let known = ObjectStoreScheme::parse(&url);
        let (scheme, prefix) = known.map_err(|e| address_error(without_secrets(&e.to_string())))?;
        let failed = |e: StoreError| address_error(without_secrets(&chain(&e)));
        let retry = retries();
        let limits = [
            (ClientConfigKey::ConnectTimeout, CONNECT),
            (ClientConfigKey::ReadTimeout, read),
            (ClientConfigKey::Timeout, WHOLE),
        ];
        let text = address.as_str();
        let mut parts: Option<Arc<dyn MultipartStore>> = None;
        let mut pages: Option<Arc<dyn PaginatedListStore>> = None;
        // The builders are alike but have no common type.
        macro_rules! bucket {
            ($builder:ident, $key:ident) => {{
                let builder_start = $builder::from_env().with_url(text).with_retry(retry);
                let builder_start = builder_start.with_http_connector(connector);
                let builder = limits
                    .into_iter()
                    .fold(builder_start, |builder, (key, value)| {
                        builder.with_config($key::Client(key), value)
                    });
                let store = Arc::new(builder.build().map_err(failed)?);
                parts = Some(store.clone());
                pages = Some(store.clone());
                store
            }};
        }
        let objects: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::AmazonS3 => bucket!(AmazonS3Builder, AmazonS3ConfigKey),
            ObjectStoreScheme::GoogleCloudStorage => {
                bucket!(GoogleCloudStorageBuilder, GoogleConfigKey)
            }
            ObjectStoreScheme::MicrosoftAzure => bucket!(MicrosoftAzureBuilder, AzureConfigKey),
            ObjectStoreScheme::Http => {
                let host = &url[..url::Position::BeforePath];
                let builder_start = HttpBuilder::new().with_url(host).with_retry(retry);
                let builder_start = builder_start.with_http_connector(LengthOfRanges(connector));
                let allowed = match url.scheme() {
                    "http" => "true",
                    _ => "false",
                };
                let limits = limits
                    .into_iter()
                    .chain([(ClientConfigKey::AllowHttp, allowed)]);
                let builder = limits.fold(builder_start, |builder, (key, value)| {
                    builder.with_config(key, value)
                });
                Arc::new(builder.build().map_err(failed)?)
            }
            ObjectStoreScheme::Local => Arc::new(LocalFileSystem::new()),
            _ => {
                return Err(address_error(format!(
                    "has an unknown store: {}",
                    StoreAddress::KINDS
                )));
            }
        };
        Ok(Self {
            objects,
            parts,
            pages,
            prefix,
            address: address.clone(),
            is_web: false,
        })
    }

    /// The store of whole web addresses, of any host.
    ///
    /// # Errors
    /// Invalid settings.
    pub(crate) fn open_web(
        allow_redirects: bool,
        hosts: Arc<SlowHosts>,
    ) -> Result<Self, HelperError> {
        let failed = |e: StoreError| HelperError::new("https://", without_secrets(&chain(&e)));
        let address = StoreAddress::parse(web_address::HOST)
            .map_err(|e| HelperError::new(web_address::HOST, e.to_string()))?;
        let inner = LengthOfRanges(StoreConnector { allow_redirects });
        let connector = WholeAddresses(PacedRequests { inner, hosts });
        let limits = [
            (ClientConfigKey::ConnectTimeout, CONNECT),
            (ClientConfigKey::ReadTimeout, READ),
            (ClientConfigKey::Timeout, WHOLE),
            (ClientConfigKey::AllowHttp, "true"),
            // There may be very many hosts.
            (ClientConfigKey::PoolIdleTimeout, "2s"),
        ];
        let builder = HttpBuilder::new().with_url(address.as_str());
        // Who asks decides when to ask again: hosts share their retries.
        let once = RetryConfig {
            max_retries: 0,
            ..retries()
        };
        let builder = builder.with_retry(once).with_http_connector(connector);
        let builder = limits.into_iter().fold(builder, |builder, (key, value)| {
            builder.with_config(key, value)
        });
        Ok(Self {
            objects: Arc::new(builder.build().map_err(failed)?),
            parts: None,
            pages: None,
            prefix: Path::default(),
            address,
            is_web: true,
        })
    }

    /// Whether names of objects are web addresses.
    pub(crate) fn is_web(&self) -> bool {
        self.is_web
    }

    /// The object of a web address in [`Store::open_web`].
    ///
    /// # Errors
    /// An invalid address.
    pub(crate) fn web_object(address: &str) -> Result<Path, String> {
        web_address::object_of(address)
    }

    /// The address of an object for people.
    pub(crate) fn address_of(&self, name: &str) -> String {
        match self.is_web {
            true => name.to_owned(),
            false => self.address.of(name),
        }
    }

    /// Whether an object may be served although a request for its header failed: some web servers
    /// know only one kind of request, and some signatures are for one kind.
    pub(crate) fn may_serve_all_the_same(&self, error: &StoreError) -> bool {
        let answer = StoreAnswer::of(&chain(error));
        let was_answered = answer.is_of_server() || ranges::has_no_length(error);
        self.is_web && was_answered && !answer.is_missing()
    }

    /// Whether a server answered, with an error of its own.
    pub(crate) fn is_answer(error: &StoreError) -> bool {
        StoreAnswer::of(&chain(error)).is_of_server()
    }

    /// Whether an error is that of the store, not of one object: credentials, a setting, the bucket,
    /// the region. Web servers answer for each object by itself.
    pub(crate) fn refuses_all_objects(&self, error: &StoreError) -> bool {
        let is_missing = matches!(error, StoreError::NotFound { .. });
        !self.is_web && (!is_missing || StoreAnswer::of(&chain(error)).has_no_bucket())
    }

    pub(crate) fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    /// The object at this path below the address. The path may have slashes.
    ///
    /// # Errors
    /// An invalid name.
    pub(crate) fn object(&self, below: &str) -> Result<Path, HelperError> {
        let text = match self.prefix.as_ref() {
            "" => below.to_owned(),
            prefix => format!("{prefix}/{below}"),
        };
        Path::parse(text).map_err(|e| HelperError::new(self.address.of(below), e.to_string()))
    }

    /// The name of an object below the address.
    pub(crate) fn name_below<'a>(&self, object: &'a Path) -> Option<&'a str> {
        match self.prefix.as_ref() {
            "" => Some(object.as_ref()),
            prefix => object.as_ref().strip_prefix(prefix)?.strip_prefix('/'),
        }
    }

    /// A page of the names under the address. `mark` selects the page. A local folder is one page.
    pub(crate) async fn list_page(
        &self,
        depth: ListDepth,
        mark: Option<String>,
    ) -> Result<PaginatedListResult, StoreError> {
        let Some(pages) = &self.pages else {
            let result = match depth {
                ListDepth::Folder => self.objects.list_with_delimiter(Some(&self.prefix)).await?,
                ListDepth::Tree => ListResult {
                    common_prefixes: Vec::new(),
                    objects: self.objects.list(Some(&self.prefix)).try_collect().await?,
                    extensions: Default::default(),
                },
            };
            return Ok(PaginatedListResult {
                result,
                page_token: None,
            });
        };
        let prefix = match self.prefix.as_ref() {
            "" => None,
            prefix => Some(format!("{prefix}/")),
        };
        let options = PaginatedListOptions {
            delimiter: (depth == ListDepth::Folder).then(|| "/".into()),
            page_token: mark,
            ..PaginatedListOptions::default()
        };
        pages.list_paginated(prefix.as_deref(), options).await
    }

    pub(crate) fn address(&self) -> &StoreAddress {
        &self.address
    }

    /// The error for a missing object.
    pub(crate) fn missing(&self, name: &str) -> HelperError {
        let what = "does not exist: check the address, or upload it again";
        HelperError::new(self.address_of(name), what)
    }

    /// Interprets an error while uploading `name`.
    pub(crate) fn failure_to_send(&self, name: &str, error: &StoreError) -> StoreFailure {
        let what = match error {
            _ if cause::<RefusedRedirect>(error).is_some() => return self.failure(name, error),
            _ if StoreAnswer::of(&chain(error)).has_no_bucket() => {
                return self.failure(name, error);
            }
            StoreError::NotFound { .. } => "there is no such bucket, or the upload has ended",
            StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
                "the store denies writing it: check the credentials in the environment, and what \
                 they may write"
            }
            _ => return self.failure(name, error),
        };
        let message = without_secrets(&chain(error));
        StoreFailure::Permanent(HelperError::new(
            self.address.of(name),
            format!("{what} ({message})"),
        ))
    }

    /// Interprets an error of a request for `name`.
    pub(crate) fn failure(&self, name: &str, error: &StoreError) -> StoreFailure {
        let address = self.address_of(name);
        let lasting = |what: String| StoreFailure::Permanent(HelperError::new(&address, what));
        if let Some(refused) = cause(error) {
            return lasting(self.redirect_text(refused));
        }
        if let Some(slow) = cause::<SlowDown>(error) {
            return StoreFailure::Slowed(slow.clone());
        }
        if let Some(too_long) = cause::<LongAnswer>(error) {
            return lasting(format!("{too_long}: check the endpoint"));
        }
        let answer = StoreAnswer::of(&chain(error));
        let message = || without_secrets(&chain(error));
        let refused = || {
            let text = match self.is_web {
                true => answer.web_text(),
                false => answer.text(self.bucket()),
            };
            lasting(format!("{text} ({})", message()))
        };
        match error {
            StoreError::NotFound { .. } => match answer.has_no_bucket() {
                true => refused(),
                false => StoreFailure::Permanent(self.missing(name)),
            },
            StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => refused(),
            StoreError::Precondition { .. } => lasting(
                "changed while it was downloaded: wait until the writer has finished".to_owned(),
            ),
            StoreError::InvalidPath { .. } => lasting(format!(
                "{}: rename or remove the object, whose name this client cannot read",
                message()
            )),
            StoreError::AlreadyExists { .. }
            | StoreError::NotSupported { .. }
            | StoreError::NotImplemented { .. }
            | StoreError::UnknownConfigurationKey { .. } => lasting(message()),
            _ if answer.is_final() => refused(),
            _ if ranges::has_no_length(error) => lasting(ranges::NO_LENGTH.to_owned()),
            _ => StoreFailure::Transient(message()),
        }
    }

    /// The error for an object whose bucket does not exist.
    pub(crate) fn no_bucket(&self, name: &str, error: &StoreError) -> Option<HelperError> {
        let has_none = StoreAnswer::of(&chain(error)).has_no_bucket();
        match self.failure(name, error) {
            StoreFailure::Permanent(found) if has_none => Some(found),
            _ => None,
        }
    }

    /// Why a redirect was not followed. A bucket that redirects is in another region.
    fn redirect_text(&self, refused: &RefusedRedirect) -> String {
        match self.address.as_str().starts_with("http") {
            true => refused.to_string(),
            false => format!("{refused}. Or {}", other_region(self.bucket())),
        }
    }

    /// The bucket, container or host of the address.
    fn bucket(&self) -> &str {
        let text = self.address.as_str();
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest)
    }
}

/// The client itself retries briefly; `download` retries for longer.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(1),
            base: 2.0,
        },
        max_retries: 3,
        retry_timeout: Duration::from_secs(30),
    }
}

/// The text of an error with its causes, each once.
fn chain(error: &StoreError) -> String {
    ranges::causes(error).fold(String::new(), |text, cause| {
        let message = cause.to_string();
        match text.as_str() {
            "" => message,
            _ if text.contains(&message) => text,
            _ => format!("{text}: {message}"),
        }
    })
}

/// Removes secrets from a text. The query of an address may be a signature. The body of a response
/// may repeat a token, so only code and message are kept from XML.
fn without_secrets(text: &str) -> String {
    let text = &web_address::without_objects(text);
    let begin = ["<?xml", "<Error"]
        .iter()
        .filter_map(|tag| text.find(tag))
        .min();
    let Some(begin) = begin else {
        return shortened(without_queries(text));
    };
    let of = |tag: &str| {
        let inside = text.split_once(&format!("<{tag}>"))?.1;
        Some(inside.split_once(&format!("</{tag}>"))?.0)
    };
    let message: Vec<&str> = ["Code", "Message"].into_iter().filter_map(of).collect();
    shortened(without_queries(&format!(
        "{}{}",
        &text[..begin],
        message.join(": ")
    )))
}

/// The beginning of a text, which a server may have made long.
fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn without_queries(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once('?') {
        Some((front, _)) if front.contains("://") || front.contains('/') => format!("{front}?..."),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_with_a_line_break_is_named() {
        let named = |name: &str, value: &str| {
            let pair = (OsString::from(name), OsString::from(value));
            broken_setting([("AWS_REGION".into(), "eu".into()), pair].into_iter())
        };
        assert_eq!(
            named("AWS_ACCESS_KEY_ID", "abc\n").as_deref(),
            Some("AWS_ACCESS_KEY_ID")
        );
        assert_eq!(
            named("AZURE_STORAGE_ACCOUNT_NAME", "a\u{7f}").as_deref(),
            Some("AZURE_STORAGE_ACCOUNT_NAME")
        );
        assert_eq!(named("AWS_ACCESS_KEY_ID", "abc"), None);
        assert_eq!(named("PS1", "\u{1b}[0m"), None);
    }

    #[test]
    fn signatures_are_left_out() {
        let text = "Error performing GET https://a.blob.core.windows.net/c/x?sv=1&sig=hunter2 in \
                    3ms, after 2 retries: /c/x?sig=hunter2 why? no";
        let text = without_secrets(text);
        assert!(
            !text.contains("hunter2") && text.ends_with("why? no"),
            "{text}"
        );
        assert!(text.contains("windows.net/c/x?..."), "{text}");
        let body = "Server returned 400: <?xml version=\"1.0\"?><Error><Code>ExpiredToken</Code>\
                    <Message>The token has expired.</Message><Token-0>hunter2</Token-0></Error>";
        let text = without_secrets(body);
        assert_eq!(
            text,
            "Server returned 400: ExpiredToken: The token has expired."
        );
    }

    #[test]
    fn of_a_long_text_the_beginning_is_said() {
        let long = format!("Server returned 403: {}", "é".repeat(4096));
        let message = without_secrets(&long);
        assert_eq!(message.chars().count(), 600 + 3);
        assert!(message.starts_with("Server returned 403: é") && message.ends_with("é..."));
        let xml = format!(
            "500: <Error><Message>{}</Message></Error>",
            "e".repeat(4096)
        );
        assert_eq!(without_secrets(&xml).chars().count(), 600 + 3);
    }

    #[test]
    fn what_cannot_be_opened_is_named() {
        let address = StoreAddress::parse("gs://bucket/prefix");
        // Without a network: nothing is requested yet.
        assert!(address.is_ok());
        let store =
            Store::open(&StoreAddress::parse("file:///data/cache").unwrap(), false).unwrap();
        assert_eq!(
            store.path("manifest.json").as_ref(),
            "data/cache/manifest.json"
        );
    }
}
