//! Web servers that do not support ranges, or that omit the length of an object in them.
//!
//! Runs in the fetcher and in the uploader. `object_store` rejects the response `Content-Range:
//! bytes a-b/*`. So the end of the range is inserted as length, with a mark. Code that knows the
//! object's length compares it. Other errors are recognised by their text only.

use std::error::Error as StdError;
use std::iter;
use std::pin::Pin;

use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService,
};
use object_store::{Extensions, Result};

/// Marks a response whose object length is unknown, and at least the end of the range.
#[derive(Debug, Clone, Copy)]
struct UnknownLength;

/// Whether an object's length differs from `bytes`, by a response with length `size`.
pub(crate) fn is_other_length(bytes: u64, size: u64, answer: &Extensions) -> bool {
    match answer.get::<UnknownLength>() {
        Some(UnknownLength) => size > bytes,
        None => size != bytes,
    }
}

/// Whether a response to a range has the length of the object.
pub(crate) fn has_length_of_object(answer: &Extensions) -> bool {
    answer.get::<UnknownLength>().is_none()
}

/// Whether the server did not serve the requested range. Then the object is downloaded from its
/// start.
pub(crate) fn is_no_range(error: &(dyn StdError + 'static)) -> bool {
    let texts = [
        "Range request not supported by ",
        "Received non-partial response when range requested",
        "Content-Range header not present in partial response",
        "Failed to parse value for CONTENT_RANGE header: ",
        "Requested ",
    ];
    texts.iter().any(|text| has_cause(error, text))
}

/// Whether `error` or a cause of it begins with this text. The store's text comes after the
/// crate's.
fn has_cause(error: &(dyn StdError + 'static), begin: &str) -> bool {
    causes(error).any(|error| error.to_string().starts_with(begin))
}

/// An error, and its causes.
pub(crate) fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| {
        (*error).source()
    })
}

/// Advice for this case.
pub(crate) const NO_RANGES: &str = "the server serves no ranges, so each broken connection \
                                    restarts the download: use a server that does, or smaller \
                                    shards";

/// Whether a response lacks the length of its object.
pub(crate) fn has_no_length(error: &(dyn StdError + 'static)) -> bool {
    has_cause(error, "Content-Length Header missing from response")
}

/// Advice for this case.
pub(crate) const NO_LENGTH: &str = "the server does not report its length: have it send \
                                    Content-Length, or copy the data set to a server that does";

/// Creates clients whose range responses always have a length.
#[derive(Debug)]
pub(crate) struct LengthOfRanges<C>(pub(crate) C);

impl<C: HttpConnector> HttpConnector for LengthOfRanges<C> {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(Client(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct Client(HttpClient);

impl HttpService for Client {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = std::result::Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let mut answer = self.0.execute(request).await?;
            let range = answer.headers().get("content-range");
            let range = range.and_then(|value| value.to_str().ok());
            if let Some(range) = range.and_then(with_length)
                && let Ok(value) = range.parse()
            {
                answer.headers_mut().insert("content-range", value);
                answer.extensions_mut().insert(UnknownLength);
            }
            Ok(answer)
        })
    }
}

/// `bytes a-b/*` with a length in place of `*`.
fn with_length(range: &str) -> Option<String> {
    let known = range.trim().strip_suffix("/*")?;
    let end: u64 = known.rsplit_once('-')?.1.trim().parse().ok()?;
    Some(format!("{known}/{}", end.checked_add(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_unknown_length_reaches_to_its_own_end() {
        assert_eq!(with_length("bytes 5-9/*").as_deref(), Some("bytes 5-9/10"));
        for other in [
            "bytes 5-9/10",
            "bytes */10",
            "bytes */*",
            "bytes 5-/*",
            "*",
            "",
        ] {
            assert_eq!(with_length(other), None, "{other}");
        }
        assert_eq!(with_length(&format!("bytes 0-{}/*", u64::MAX)), None);
    }

    #[test]
    fn a_word_of_the_store_is_no_word_about_ranges() {
        let error = |text: &str| object_store::Error::Generic {
            store: "S3",
            source: text.to_owned().into(),
        };
        for text in [
            "Requested 2..3, got 2..4",
            "Range request not supported by http://a.org/x",
        ] {
            assert!(is_no_range(&error(text)), "{text}");
            let outer = object_store::Error::Generic {
                store: "S3",
                source: error(text).into(),
            };
            assert!(is_no_range(&outer), "{text}");
        }
        let answer = error("Server returned non-2xx status code: 503: Requested bucket is busy");
        assert!(!is_no_range(&answer));
        let none = "Content-Length Header missing from response";
        assert!(has_no_length(&error(none)));
        assert!(!has_no_length(&error(&format!(
            "Server returned 503: {none}"
        ))));
    }

    #[test]
    fn a_range_of_unknown_length_fits_an_object_that_is_no_shorter() {
        let (known, mut unknown) = (Extensions::new(), Extensions::new());
        unknown.insert(UnknownLength);
        assert!(!is_other_length(10, 10, &known) && !is_other_length(10, 10, &unknown));
        assert!(is_other_length(10, 9, &known) && !is_other_length(10, 9, &unknown));
        assert!(is_other_length(10, 11, &known) && is_other_length(10, 11, &unknown));
    }
}
