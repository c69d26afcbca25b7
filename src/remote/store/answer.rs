//! Interprets an error response of a store: whether a retry can help, and what to change.
//!
//! Runs in the fetcher and in the uploader. `object_store` passes the status only inside an error
//! text, so this parses the text. Tests check it against the client.

/// Client errors that are temporary: timeouts, conflicts, too many requests.
const PASSING: [u16; 4] = [408, 409, 425, 429];

/// A response without an object.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct StoreAnswer {
    status: Option<u16>,
    /// The store's error code, such as `NoSuchBucket`.
    code: String,
}

impl StoreAnswer {
    /// Parses the text of an error with its causes.
    pub(crate) fn of(text: &str) -> Self {
        let behind = |mark: &str| Some(text.split_once(mark)?.1);
        let status = behind("status code: ").and_then(|rest| rest.get(..3)?.parse().ok());
        let code = behind("<Code>").and_then(|rest| Some(rest.split_once("</Code>")?.0));
        // S3 names the other region in a header that the client drops.
        let is_redirect = text.contains("redirect without LOCATION");
        Self {
            status: status.or(is_redirect.then_some(301)),
            code: code.unwrap_or_default().to_owned(),
        }
    }

    /// Whether a retry would get the same response.
    pub(crate) fn is_final(&self) -> bool {
        let is_slow = matches!(&*self.code, "RequestTimeout" | "SlowDown" | "Throttling");
        let is_final = |status: u16| (300..500).contains(&status) && !PASSING.contains(&status);
        !is_slow && self.status.is_some_and(is_final)
    }

    /// Whether it has a status.
    pub(crate) fn is_of_server(&self) -> bool {
        self.status.is_some()
    }

    /// The problem with a web address, and what to change.
    pub(crate) fn web_text(&self) -> String {
        match self.status {
            Some(300..=399) => "the server redirects, and does not say where to: open the address \
                                in a browser, and write the one that it ends at"
                .to_owned(),
            Some(401 | 403) => "the server denies access to it: the address needs a login, or its \
                                signature has expired. Write one that needs no login"
                .to_owned(),
            Some(status) => {
                format!("the server responds with {status}, and will again: check the address")
            }
            None => "the server denies access to it: check the address".to_owned(),
        }
    }

    /// Whether the server has no such object, and says so of this address.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.status, Some(404 | 410))
    }

    /// Whether the bucket does not exist, by any store's code.
    pub(crate) fn has_no_bucket(&self) -> bool {
        matches!(&*self.code, "NoSuchBucket" | "ContainerNotFound")
    }

    /// The problem, and what to change.
    pub(crate) fn text(&self, bucket: &str) -> String {
        match &*self.code {
            "NoSuchBucket" | "ContainerNotFound" => format!(
                "there is no such bucket, '{bucket}': check its name, and the endpoint in the \
                 environment"
            ),
            "InvalidBucketName" => {
                format!("'{bucket}' is not the name of a bucket: check the address")
            }
            "PermanentRedirect"
            | "AuthorizationHeaderMalformed"
            | "IllegalLocationConstraintException"
            | "IncorrectEndpoint" => other_region(bucket),
            "InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "InvalidToken"
            | "ExpiredToken"
            | "AuthenticationFailed" => {
                "the store does not accept them: check the credentials in the environment"
                    .to_owned()
            }
            "RequestTimeTooSkewed" => {
                "the clock of this machine is wrong, so the store rejects the request: set it"
                    .to_owned()
            }
            _ => match self.status {
                Some(300..=399) => other_region(bucket),
                Some(401 | 403) => format!(
                    "the store denies access to it: check the credentials in the environment, and \
                     what they may read and list in bucket '{bucket}'"
                ),
                Some(status) => format!(
                    "the store responds with {status}, and will again: check address, region, \
                     endpoint and credentials"
                ),
                None => "the store denies access to it: check the credentials in the environment"
                    .to_owned(),
            },
        }
    }
}

pub(crate) fn other_region(bucket: &str) -> String {
    format!(
        "bucket '{bucket}' is in another region or at another endpoint: set AWS_REGION or \
         AWS_ENDPOINT_URL"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: &str, code: &str) -> StoreAnswer {
        let code = match code {
            "" => String::new(),
            code => format!("<?xml?><Error><Code>{code}</Code><Message>x</Message></Error>"),
        };
        StoreAnswer::of(&format!(
            "Generic S3 error: Error performing list request: Error performing GET http://h/b?x \
             in 1ms - Server returned non-2xx status code: {status}: {code}"
        ))
    }

    #[test]
    fn answers_that_stay_the_same_are_final() {
        for (status, code, says) in [
            (
                "404 Not Found",
                "NoSuchBucket",
                "there is no such bucket, 'b'",
            ),
            (
                "404 Not Found",
                "ContainerNotFound",
                "there is no such bucket, 'b'",
            ),
            (
                "403 Forbidden",
                "AccessDenied",
                "the store denies access to it",
            ),
            (
                "403 Forbidden",
                "InvalidAccessKeyId",
                "check the credentials",
            ),
            (
                "403 Forbidden",
                "RequestTimeTooSkewed",
                "the clock of this machine",
            ),
            ("401 Unauthorized", "", "the store denies access to it"),
            (
                "400 Bad Request",
                "AuthorizationHeaderMalformed",
                "AWS_REGION",
            ),
            ("400 Bad Request", "ExpiredToken", "check the credentials"),
            (
                "400 Bad Request",
                "InvalidBucketName",
                "'b' is not the name of a bucket",
            ),
            ("301 Moved Permanently", "PermanentRedirect", "AWS_REGION"),
            ("400 Bad Request", "", "the store responds with 400"),
            ("405 Method Not Allowed", "", "the store responds with 405"),
        ] {
            let answer = of(status, code);
            assert!(answer.is_final(), "{status} {code}");
            let text = answer.text("b");
            assert!(text.contains(says), "{status} {code}: {text}");
        }
        let text = "Generic S3 error: - Received redirect without LOCATION, this normally";
        assert!(
            StoreAnswer::of(text).is_final()
                && StoreAnswer::of(text).text("b").contains("AWS_REGION")
        );
    }

    #[test]
    fn a_web_server_has_no_bucket_and_no_credentials() {
        for (status, says) in [
            ("401 Unauthorized", "needs a login"),
            ("403 Forbidden", "signature has expired"),
            ("304 Not Modified", "does not say where to"),
            ("418 Teapot", "responds with 418"),
        ] {
            let text = of(status, "").web_text();
            assert!(text.contains(says), "{text}");
            assert!(
                !text.contains("bucket") && !text.contains("environment"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        for (status, code) in [
            ("500 Internal Server Error", "InternalError"),
            ("503 Service Unavailable", "SlowDown"),
            ("429 Too Many Requests", ""),
            ("408 Request Timeout", ""),
            ("400 Bad Request", "RequestTimeout"),
            ("409 Conflict", "OperationAborted"),
        ] {
            assert!(!of(status, code).is_final(), "{status} {code}");
        }
        let dns = "Generic HTTP error: HTTP error: dns error: failed to lookup address information";
        assert!(!StoreAnswer::of(dns).is_final());
        assert_eq!(StoreAnswer::of(""), StoreAnswer::default());
    }
}
