//! Prints warnings of the library on stderr, in the form of errors: one line, with flags instead of
//! the library's option names.
//!
//! Runs in the consumer, and in the coordinator that this executable becomes.

use std::fmt;

use featherload::error::printable;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::flags;

/// `featherload: warning: ...`
pub struct AsErrors;

impl<S, N> FormatEvent<S, N> for AsErrors
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        let text = printable(flags::in_place(&text));
        writeln!(line, "featherload: warning: {text}")
    }
}
