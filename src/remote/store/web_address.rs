//! Whole web addresses of any host, through one client.
//!
//! Runs in the fetcher. `object_store` has a client for each host, and reads the path of an address
//! as the name of an object: without a query, without empty parts. A list may have 100,000 hosts
//! and any addresses. So the name of an object is the whole address in hexadecimal digits, and the
//! request gets the address back before it is sent.

use std::io;
use std::pin::Pin;

use object_store::Result;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use object_store::path::Path;

/// The host of all requests before they get their addresses. No name server knows it.
pub(super) const HOST: &str = "https://addresses.invalid";

/// The object of an address.
///
/// # Errors
/// It is no valid web address.
pub(super) fn object_of(address: &str) -> Result<Path, String> {
    let mut url = url::Url::parse(address).map_err(|e| format!("is no valid address: {e}"))?;
    url.set_fragment(None);
    let has_login = !url.username().is_empty() || url.password().is_some();
    if url.host_str().is_none_or(str::is_empty) || has_login {
        return Err("has no host, or a user name or password, which is not sent".to_owned());
    }
    let digits = url.as_str().bytes().map(|byte| format!("{byte:02x}"));
    Ok(Path::from(digits.collect::<String>()))
}

/// A text without the names of such objects, which tell people nothing.
pub(super) fn without_objects(text: &str) -> String {
    let mut parts = text.split(HOST);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let part = part.strip_prefix('/').unwrap_or(part);
        text + "the address" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit())
    })
}

/// Creates clients that send a request to the address that its object names.
#[derive(Debug)]
pub(super) struct WholeAddresses<C>(pub(super) C);

impl<C: HttpConnector> HttpConnector for WholeAddresses<C> {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(AddressClient(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct AddressClient(HttpClient);

impl HttpService for AddressClient {
    fn call<'a, 'b>(
        &'a self,
        mut request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = std::result::Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let address = address_of(request.uri().path().trim_start_matches('/'));
            let Some(address) = address.and_then(|text| text.parse().ok()) else {
                let error = io::Error::other("the request has an invalid address");
                return Err(HttpError::new(HttpErrorKind::Decode, error));
            };
            *request.uri_mut() = address;
            self.0.execute(request).await
        })
    }
}

/// The address that an object names.
fn address_of(digits: &str) -> Option<String> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_a_browser_sends_them() {
        for (given, sent) in [
            (
                "http://h:8/a//b%20c.jpg?w=1&s=x%2F",
                "http://h:8/a//b%20c.jpg?w=1&s=x%2F",
            ),
            ("HTTPS://H/a b.jpg#part", "https://h/a%20b.jpg"),
            ("https://h/\u{e9}.jpg", "https://h/%C3%A9.jpg"),
            ("https://h/x/../a.jpg", "https://h/a.jpg"),
            ("https://h", "https://h/"),
        ] {
            let object = object_of(given).unwrap();
            assert_eq!(address_of(object.as_ref()).as_deref(), Some(sent));
        }
        for bad in ["https://", "https://user:pass@h/a.jpg", "http://[h/a.jpg"] {
            assert!(object_of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn texts_have_no_digits() {
        let object = object_of("http://h/a.jpg").unwrap();
        let text = format!("Error performing GET {HOST}/{object} in 3ms: no");
        let want = "Error performing GET the address in 3ms: no";
        assert_eq!(without_objects(&text), want);
        assert_eq!(without_objects("other"), "other");
    }
}
