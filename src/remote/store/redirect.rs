//! Which redirects are followed, and which addresses they may not reach.
//!
//! Runs in the fetcher and in the uploader. The address that a user gives is not checked here: it
//! may be on this machine. A redirect to this machine comes from a server, not from the user.

use std::error::Error as StdError;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Position};

use crate::remote::store::ranges::causes;

/// Most redirects per request.
pub(crate) const MOST_REDIRECTS: usize = 10;

/// The first cause of `error` with this type.
pub(crate) fn cause<'a, T: StdError + 'static>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a T> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RefusedRedirect(String);

impl fmt::Display for RefusedRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for RefusedRedirect {}

impl RefusedRedirect {
    pub(crate) fn no_address(text: &str) -> Self {
        let text: String = text.chars().take(200).collect();
        Self(format!("redirects to {text:?}, which is not an address"))
    }

    pub(crate) fn too_many() -> Self {
        Self(format!(
            "redirects more than {MOST_REDIRECTS} times: check the address"
        ))
    }

    fn local(to: &Url, address: Option<IpAddr>) -> Self {
        let at = address.map_or(String::new(), |address| format!(" ({address})"));
        Self(format!(
            "redirects to '{}'{at}, an address of this machine or of a private network. Such \
             redirects are never followed: give that address as the data set if you trust it",
            site(to)
        ))
    }
}

/// Host and port, for people.
fn site(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

/// Which redirects are followed.
#[derive(Debug, Clone)]
pub(crate) struct RedirectRules {
    /// Also those to other hosts.
    pub(crate) other_hosts: bool,
    /// Whether a redirect may lead to this address.
    is_public: fn(IpAddr) -> bool,
    /// Names of proxies, which the user chose; no redirect leads to them.
    proxies: Vec<String>,
}

impl RedirectRules {
    pub(crate) fn new(other_hosts: bool, proxies: Vec<String>) -> Self {
        Self {
            other_hosts,
            is_public,
            proxies,
        }
    }

    /// Checks a redirect from `from` to `to`, and whether it stays on its host.
    ///
    /// # Errors
    /// The redirect is not followed.
    pub(crate) fn check(&self, from: &Url, to: &Url) -> Result<NextHost, RefusedRedirect> {
        match (from.scheme(), to.scheme()) {
            ("http", "http" | "https") | ("https", "https") => {}
            ("https", "http") => {
                let what = format!(
                    "redirects from https to http, at '{}', which is never followed: check the \
                     address",
                    site(to)
                );
                return Err(RefusedRedirect(what));
            }
            (_, scheme) => {
                let what = format!("redirects to an address of '{scheme}:', not of a web server");
                return Err(RefusedRedirect(what));
            }
        }
        let is_upgrade =
            from.scheme() != to.scheme() && from.port().is_none() && to.port().is_none();
        let is_same_port = from.port_or_known_default() == to.port_or_known_default();
        if from.host() == to.host() && (is_same_port || is_upgrade) {
            return Ok(NextHost::Same);
        }
        let address = match to.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(name)) if self.proxies.iter().any(|proxy| proxy == name) => {
                return Err(RefusedRedirect::local(to, None));
            }
            _ => None,
        };
        if address.is_some_and(|address| !(self.is_public)(address)) {
            return Err(RefusedRedirect::local(to, None));
        }
        match self.other_hosts {
            true => Ok(NextHost::Other),
            false => Err(RefusedRedirect(format!(
                "redirects from '{}' to another host, '{}': use `allow_redirects` if you trust \
                 that host to serve this data set",
                site(from),
                site(to)
            ))),
        }
    }

    /// Resolves another host. A host that no name server knows may be known to a proxy.
    ///
    /// # Errors
    /// The host is on this machine or in a private network.
    pub(crate) async fn check_names(&self, to: &Url) -> Result<(), RefusedRedirect> {
        let Some(Host::Domain(name)) = to.host() else {
            return Ok(());
        };
        let Ok(found) = tokio::net::lookup_host((name, 0)).await else {
            return Ok(());
        };
        let local = |found: SocketAddr| Some(found.ip()).filter(|ip| !(self.is_public)(*ip));
        match found.into_iter().find_map(local) {
            Some(address) => Err(RefusedRedirect::local(to, Some(address))),
            None => Ok(()),
        }
    }
}

/// The target of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextHost {
    Same,
    Other,
}

/// Resolves names of other hosts for a connection. Rejects forbidden addresses again, because the
/// answer may differ from the earlier check.
impl Resolve for RedirectRules {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.clone();
        Box::pin(async move {
            let name = name.as_str();
            let found = tokio::net::lookup_host((name, 0)).await?;
            let is_proxy = rules.proxies.iter().any(|proxy| proxy == name);
            let may_be = |found: &SocketAddr| is_proxy || (rules.is_public)(found.ip());
            let found: Vec<SocketAddr> = found.filter(may_be).collect();
            match found.is_empty() {
                true => Err(format!("'{name}' has no public address").into()),
                false => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

/// Whether an address may belong to another machine on the internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            let s = address.segments();
            let tail =
                |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
            match s {
                // IPv4 addresses in IPv6: mapped, compatible (with :: and ::1), translated.
                [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                    is_public_v4(tail(high, low))
                }
                [0x2002, high, low, ..] => is_public_v4(tail(high, low)),
                // The allocated space, without Teredo and examples.
                [first, second, ..] => {
                    (0x2000..0x4000).contains(&first)
                        && !(first == 0x2001 && (second < 0x200 || second == 0xdb8))
                }
            }
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_reserved = match address.octets() {
        // This network, shared by carriers, protocols, benchmarks, future use.
        [0, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] | [240..=255, ..] => {
            true
        }
        _ => false,
    };
    !(is_reserved
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

#[cfg(test)]
impl RedirectRules {
    /// With another rule for addresses, so that a test can use two hosts on one machine.
    pub(crate) fn with_public(mut self, is_public: fn(IpAddr) -> bool) -> Self {
        self.is_public = is_public;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn no_redirect_reaches_a_local_address_in_any_form() {
        for text in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "100::1",
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert!(!is_public(address), "{text}");
            let host = match address {
                IpAddr::V4(_) => text.to_owned(),
                IpAddr::V6(_) => format!("[{text}]"),
            };
            let rules = RedirectRules::new(true, Vec::new());
            let to = url(&format!("https://{host}/x"));
            let e = rules.check(&url("https://a.org/x"), &to).unwrap_err();
            assert!(e.0.contains("never followed"), "{text}: {e}");
        }
        for text in [
            "1.1.1.1",
            "172.32.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn numbers_that_are_addresses_are_taken_as_such() {
        let rules = RedirectRules::new(true, Vec::new());
        for host in ["2130706433", "0x7f.1", "127.1", "0251.0376.0251.0376"] {
            let to = url(&format!("http://{host}/latest"));
            assert!(rules.check(&url("http://a.org/"), &to).is_err(), "{host}");
        }
    }

    #[test]
    fn redirects_stay_on_their_host_unless_others_are_allowed() {
        let strict = RedirectRules::new(false, Vec::new());
        let open = RedirectRules::new(true, vec!["proxy.corp".to_owned()]);
        for (from, to) in [
            ("https://a.org/x", "https://a.org/y?z"),
            ("http://a.org/x", "https://a.org/x"),
            ("http://a.org:80/x", "http://a.org/x"),
            // As the user gave it.
            ("http://127.0.0.1:8000/x", "http://127.0.0.1:8000/y"),
        ] {
            assert_eq!(
                strict.check(&url(from), &url(to)),
                Ok(NextHost::Same),
                "{to}"
            );
        }
        for (from, to) in [
            ("https://a.org/x", "https://b.a.org/x"),
            ("https://a.org/x", "https://a.org:8443/x"),
            ("http://a.org/x", "http://1.1.1.1/x"),
            ("http://a.org/x", "https://a.org:8443/x"),
        ] {
            let e = strict.check(&url(from), &url(to)).unwrap_err().0;
            let names_both = e.contains(site(&url(from))) && e.contains(site(&url(to)));
            assert!(names_both && e.contains("`allow_redirects`"), "{e}");
            assert_eq!(
                open.check(&url(from), &url(to)),
                Ok(NextHost::Other),
                "{to}"
            );
        }
        for (from, to, says) in [
            ("https://a.org/x", "http://a.org/x", "https to http"),
            ("https://a.org/x", "file:///etc/passwd", "'file:'"),
            (
                "http://127.0.0.1:8000/x",
                "http://127.0.0.1:8001/x",
                "never followed",
            ),
            ("http://a.org/x", "http://proxy.corp/x", "never followed"),
        ] {
            let e = open.check(&url(from), &url(to)).unwrap_err().0;
            assert!(e.contains(says), "{e}");
        }
    }

    #[test]
    fn a_name_of_this_machine_is_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let rules = RedirectRules::new(true, Vec::new());
        let checked = runtime.block_on(rules.check_names(&url("http://localhost/x")));
        let e = checked.unwrap_err().to_string();
        assert!(
            e.contains("'localhost' (") && e.contains("never followed"),
            "{e}"
        );
        // A name that changes between the two checks is rejected for the connection, too.
        let resolved = runtime.block_on(rules.resolve("localhost".parse().unwrap()));
        let e = resolved.err().unwrap().to_string();
        assert!(e.contains("no public address"), "{e}");
    }
}
